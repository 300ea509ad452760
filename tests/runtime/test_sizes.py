"""What no machine holds is refused in one sentence that says how much it would be."""

from pathlib import Path

import pytest

from timediff.errors import TimeDiffError
from timediff.runtime.seeding import MAX_SEED, require_seed
from timediff.runtime.sizes import in_words, physical_memory, require_disk, require_memory


def test_memory_and_disk_are_asked_before_they_are_needed(tmp_path: Path) -> None:
    require_memory(physical_memory(), "all of it")
    require_disk(1, tmp_path / "new" / "out", "a byte")
    with pytest.raises(TimeDiffError, match=r"9 stays would take at least 1 EB of memory, and this machine has .*B"):
        require_memory(10**18, "9 stays")
    with pytest.raises(TimeDiffError, match=r"9 stays would take at least 1 EB, and the disk of .*out has .*B left"):
        require_disk(10**18, tmp_path / "new" / "out", "9 stays")


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1 kB"), (3_210_000_000, "3.21 GB"), (10**23, "100,000 EB")],
)
def test_sizes_in_words(size: int, words: str) -> None:
    assert in_words(size) == words


def test_seeds_have_63_bits() -> None:
    require_seed(0)
    require_seed(MAX_SEED)
    for seed in (-1, MAX_SEED + 1, 2**64):
        with pytest.raises(TimeDiffError, match="cannot be a seed"):
            require_seed(seed)
