"""`timediff extract` as a function."""

from collections.abc import Mapping
from pathlib import Path

from timediff.runtime.files import require_new
from timediff.runtime.progress import Progress, silent
from timediff.sources.extraction import Extraction
from timediff.sources.losses import require_kept
from timediff.sources.registry import source as lookup


def extract(
    name: str,
    source: str | Path,
    out: str | Path | None = None,
    *,
    config: str | Path | None = None,
    changes: Mapping[str, object] | None = None,
    as_published: bool = False,
    accept_loss: bool = False,
    progress: Progress = silent,
) -> Extraction:
    """The cohort in raw data (`.cohort`), what was dropped and lost on the way, and the folder `out` if there is one.

    `config` is a TOML file of settings, instead of the source's own; `changes` are single ones by name;
    `as_published` starts from those of the paper's authors. Where more than 5 % of the measurements would be lost,
    nothing is written unless that is accepted.
    """
    if out is not None:
        require_new(Path(out))
    kind = lookup(name)
    settings = kind.resolve(config, changes, as_published=as_published)
    extraction = kind.extract(str(source), settings, progress)
    if not accept_loss:
        require_kept(extraction.losses, Path(str(source)).name)
    if out is not None:
        extraction.write(Path(out), kind.to_toml(settings))
    return extraction
