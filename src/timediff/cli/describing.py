"""What `timediff describe` shows of what is no cohort: runs, results, audits and comparisons."""

from pathlib import Path

from timediff.cli.check import kind_of
from timediff.cli.console import console, say, waiting
from timediff.errors import TimeDiffError

SAID = ("version", "created", "stays", "updates", "seconds", "python", "torch", "device", "cpus")  # of a run


def described(path: Path, html: Path | None) -> bool:
    """Shows the folder, if it is one of these."""
    show = {"a run": _run, "results": _results, "an audit": _audit, "a comparison": _comparison}.get(
        kind_of(path) or ""
    )
    if show is None:
        return False
    if html is not None:
        raise TimeDiffError(
            f"{path} is {kind_of(path)}; --html draws a page of a cohort. Results, audits and comparisons have a page "
            "of their own in their folder."
        )
    show(path)
    return True


def _run(path: Path) -> None:
    with waiting(f"loading {path}"):
        from timediff.generators.registry import GENERATORS
        from timediff.generators.run import Run
        from timediff.training.checkpoints import Checkpoints

        said: list[str] = []
        run = Run.open(path, say=said.append)
        whole = run.finished or Checkpoints(path / "checkpoints").newest(said.append) is not None
        model = GENERATORS(run.generator).from_run(run, said.append) if whole else None
    say(f"{path}: a run" + ("" if run.finished else ", not finished: timediff fit … --resume goes on"))
    facts = model.facts() if model else {"generator": run.generator}
    facts |= {name: str(run.provenance[name]) for name in SAID if run.provenance.get(name) is not None}
    for name, value in facts.items():
        say(f"  {name}: {value}")
    for line in said:
        say(line)
    say(run.settings.to_toml().strip())


def _results(path: Path) -> None:
    with waiting(f"reading {path}"):
        from timediff.evaluation.results import Results
        from timediff.report.summary import scores_table

        results = Results.read(path, say=say)
    console.print(scores_table(results))
    say(repr(results))
    for name, value in results.facts.items():
        say(f"  {name}: {value}")


def _audit(path: Path) -> None:
    with waiting(f"reading {path}"):
        from timediff.evaluation.audit_results import Audit

        audit = Audit.read(path)
    say(repr(audit))
    for name, value in audit.facts.items():
        say(f"  {name}: {value}")


def _comparison(path: Path) -> None:
    with waiting(f"reading {path}"):
        from timediff.comparison.folder import Folder

        rows = Folder(path).request().rows
    say(f"{path}: a comparison of {', '.join(row.name for row in rows)}")
    if (path / "results").is_dir():
        _results(path / "results")
    else:
        say("there are no results yet: the same command with --resume goes on")
