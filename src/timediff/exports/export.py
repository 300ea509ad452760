"""export: a cohort in a form that another tool reads."""

from pathlib import Path

from timediff.data.cohort import Cohort
from timediff.data.parts import parts_of
from timediff.errors import TimeDiffError
from timediff.exports.registry import EXPORTS
from timediff.runtime.files import new_file, new_folder, refuse_existing
from timediff.runtime.progress import Progress, silent


def export(cohort: Cohort | str | Path, path: str | Path, *, to: str, progress: Progress = silent) -> None:
    """Writes a cohort, or a cohort folder, to `path`, which must not exist yet.

    `to` is csv, csv.gz, parquet-wide, parquet-long, meds or xlsx. Of a folder only a part is in memory at a time.
    """
    writer, out = EXPORTS(to)(), Path(path)
    refuse_existing(out)
    if writer.suffix is not None and out.suffix.lower() != writer.suffix:
        raise TimeDiffError(
            f"{out} would not be what its name says: {to} is one file, such as {out.name}{writer.suffix}."
        )
    parts = parts_of(cohort)
    writer.check(parts)
    with (new_folder if writer.suffix is None else new_file)(out) as partial:
        writer.write(parts, partial, progress)
