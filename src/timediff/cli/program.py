"""The program `timediff`: its exit codes, what becomes of an error, and options that commands share."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from timediff.data.schema import MOST_STEPS
from timediff.runtime import devices
from timediff.runtime.seeding import MAX_SEED

app = typer.Typer(
    help="Synthetic intensive-care records: vital signs, missingness and outcome together.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

LEAK = 3  # the exit code of an evaluation that found copies or a leak
STOPPED = 130  # the exit code of what was interrupted
MOST_STAYS = MOST_LENGTH = 10**15  # that are read as numbers; memory and disk say no long before
MOST_REPETITIONS = 10_000

CohortPath = Annotated[Path, typer.Argument(metavar="COHORT", help="A cohort folder.", show_default=False)]
AllowEdited = Annotated[
    bool, typer.Option("--allow-edited", help="Go on with a folder that was edited since it was written.")
]
NewPath = Annotated[Path, typer.Argument(metavar="OUT", help="A folder that does not exist yet.", show_default=False)]
Seed = Annotated[int, typer.Option(min=0, max=MAX_SEED, help="The same seed gives the same numbers.")]
Horizon = Annotated[
    int | None, typer.Option(min=1, max=MOST_STEPS, help="Use the first N steps; shorter stays are dropped.")
]
ShowValues = Annotated[
    bool, typer.Option("--show-values", help="Messages show cell values, which are patient data, on the screen.")
]


def main() -> None:
    """The entry point: every mistake that a user can put right is one sentence and exit code 2."""
    from timediff.errors import Stopped, TimeDiffError

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a file's name may hold what no encoding can show
    try:
        app()
    except BrokenPipeError:  # whoever was reading, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(1) from None
    except Stopped as stop:
        _complain(str(stop), STOPPED)
    except TimeDiffError as error:
        _complain(f"error: {error}", 2)
    except KeyboardInterrupt:
        _complain("stopped", STOPPED)
    except RecursionError:
        _complain("error: something in what was given is nested too deeply to be read.", 2)
    except UnicodeError as error:
        _complain(f"error: a text or a name could not be read or written as {_encoding(error)}.", 2)
    except (MemoryError, RuntimeError) as error:
        if not _out_of_memory(error):
            raise
        _complain(
            "error: there is not enough memory for this: lower training.batch or model.hidden when fitting, "
            "--batch when sampling, or use fewer stays.",
            2,
        )
    except OSError as error:
        _complain(f"error: {error.filename or 'a file'}: {error.strerror or error}", 2)


def _out_of_memory(error: Exception) -> bool:
    """Python's, the GPU's (torch.OutOfMemoryError) and that of PyTorch's CPU allocator, a plain RuntimeError."""
    return isinstance(error, MemoryError) or "memory" in f"{type(error).__name__} {error}".lower()


def _encoding(error: UnicodeError) -> str:
    return str(getattr(error, "encoding", "text"))  # and not the text itself, which may be a patient's


def _complain(message: str, code: int) -> None:
    who = f"process {devices.rank()}: " if devices.rank() else ""  # of many; each may have a reason of its own
    if not who or code != STOPPED:
        print(who + message, file=sys.stderr)
    raise SystemExit(code)


def _version(show: bool) -> None:
    if show:
        from timediff import __version__

        typer.echo(f"timediff {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...
