"""The three phases of TimeGAN, and of what follows it: an autoencoder, a supervisor, and all networks together."""

from dataclasses import dataclass


@dataclass(frozen=True)
class PhaseSettings:
    embedding: float = 0.25  # fraction of the updates in which embedder and recovery are trained alone
    supervised: float = 0.25  # fraction in which the supervisor is trained alone, after that

    def ends(self, updates: int) -> tuple[int, int]:
        """The first update of the second phase and of the third, which has at least one."""
        joint = min(round(updates * (self.embedding + self.supervised)), updates - 1)
        return min(round(updates * self.embedding), joint), joint

    def problems(self) -> list[str]:
        if min(self.embedding, self.supervised) >= 0 and self.embedding + self.supervised < 1:
            return []
        return ["phases.embedding and phases.supervised are fractions, and must leave some for joint training"]
