"""About: what only people know of a synthetic cohort. It is given as a TOML file; what is not given stays a blank."""

from dataclasses import dataclass, fields
from pathlib import Path

from timediff.errors import Problems
from timediff.runtime.parsing import read_toml
from timediff.settings import typed

LONGEST = 2_000  # characters of a text


@dataclass(frozen=True)
class About:
    """Empty = not given."""

    title: str = ""  # of the synthetic cohort
    source: str = ""  # name and version of the data that the generator was trained on
    population: str = ""  # whose stays: hospital, wards, years, who was left out
    legal_basis: str = ""  # of the use of the source: ethics vote, consent, data use agreement
    maker: str = ""  # person who fitted and sampled
    organisation: str = ""
    contact: str = ""  # an address that stays valid
    purpose: str = ""  # why it was made
    recipients: str = ""  # who is to get it
    uses: str = ""  # what it may be used for
    conditions: str = ""
    expires: str = ""  # a date, or an event
    license: str = ""  # of the synthetic cohort; an address or an SPDX name
    url: str = ""  # where it can be got
    citation: str = ""
    version: str = "1.0.0"  # of the synthetic cohort

    def __post_init__(self) -> None:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        found = [f"{name} is longer than {LONGEST:,} characters" for name, v in values.items() if len(v) > LONGEST]
        found += [f"{name} holds characters that cannot be printed" for name, v in values.items() if not _printable(v)]
        if found:
            raise Problems("about", found)

    @staticmethod
    def read(path: Path) -> "About":
        """What the file says; a name that is none of the above is refused."""
        return typed.update(About(), read_toml(path), str(path))


def _printable(text: str) -> bool:
    return all(line.isprintable() for line in text.split("\n"))
