"""Odd command lines and settings: every option of every command, as the command line itself lists them."""

import functools
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Annotated, get_args, get_origin, get_type_hints

from fault_campaign.case import Case
from fault_campaign.mutations import HOSTILE, MARK, SECRETS, TOML_VALUES, copied, toml_text
from fault_campaign.sound import TINY_ARGUMENTS, Sound

# Either small or absurd: what lies between is a long job that was asked for.
INTEGERS = (
    "0", "1", "2", "3", "5", "-1", "x", "", "1.5", "nan", "1e9", "0x10", "1_0", "9223372036854775807",
    "9223372036854775808", "18446744073709551616", "1" + "0" * 30, "-1000000000000000000", "9" * 5000, "٣",
)  # fmt: skip
FLOATS = ("0", "1", "0.5", "-1", "nan", "inf", "-inf", "1e308", "5e-324", "1e999", "x", "", "0.999999999999")
TEXTS = (
    *HOSTILE[:-1], "sex", "pulse", "died", "patient", "copies", "ddim", "heun", "multistep", "ancestral", "float32",
    "random", "time", "paper", "strict", "timegan", "fast", "mimic3", "stocks", "\udcff",
)  # fmt: skip
NEW = (
    "out", "out/in/deep", "out/../out", "./out", "out/", "o ut", "[bold]out[/]", "it's", "-out", "ö", "\udcff", "~",
    "cohort", "run", "results", "cohort/out", "cohort/schema.toml/x", "", ".", "..", "../out", "/dev/null/x", "out\nx",
    "x" * 300, "out.html", "out.pdf",
)  # fmt: skip
GIVEN = (
    "cohort", "run", "results", "missing", "cohort/schema.toml", "", ".", "/dev/null", "./cohort/../cohort", "it's",
    "x" * 300, "\udcff", "link", "loop", "file",
)  # fmt: skip
LONG = {("demo", "seed"), ("simulate", "raw")}  # minutes, however small


@dataclass(frozen=True)
class Parameter:
    """An option, or an argument at its place."""

    name: str
    kind: type
    option: str | None
    place: int = 0


@functools.cache
def commands() -> dict[str, list[Parameter]]:
    """Every command's parameters, as its signature has them."""
    from typer.models import OptionInfo

    from timediff.cli import app

    found = {}
    for command in app.registered_commands:
        assert command.callback is not None
        parameters, arguments = [], 0
        for name, hint in get_type_hints(command.callback, include_extras=True).items():
            if name == "return":
                continue
            inner, *notes = get_args(hint) if get_origin(hint) is Annotated else (hint,)
            kinds = [kind for kind in get_args(inner) if kind is not type(None)] or [inner]
            kind = next((k for k in kinds if k in (bool, int, float, Path)), str)
            options = [note for note in notes if isinstance(note, OptionInfo)]
            if options:
                names = (
                    options[0].default,
                    *(options[0].param_decls or ()),
                )  # a first name is in its place
                declared = [text for text in names if isinstance(text, str) and text.startswith("-")]
                parameters.append(Parameter(name, kind, declared[-1] if declared else f"--{name.replace('_', '-')}"))
            else:
                arguments += 1
                parameters.append(Parameter(name, kind, None, arguments))
        found[command.name or command.callback.__name__] = parameters
    return found


def _surroundings(work: Path, sound: Sound) -> None:
    for name in ("cohort", "run", "results"):
        if (sound / name).exists():
            copied(sound / name, work / name)
    (work / "link").symlink_to("cohort")
    (work / "loop").symlink_to("loop")
    (work / "file").write_text(MARK)


def command_line(rng: Random, work: Path, sound: Sound) -> Case:
    """A command with the arguments that it needs and some odd ones."""
    _surroundings(work, sound)
    name = rng.choices(["describe", "split", "fit", "sample", "simulate", "extract", "evaluate", "report", "other"],
                       [3, 6, 6, 6, 5, 4, 5, 2, 3])[0]  # fmt: skip
    if name == "other":
        name = rng.choice([n for n in commands() if n != "demo"])
    usual = {
        "describe": ["cohort"],
        "split": ["cohort", "a", "b"],
        "fit": ["cohort", "new", "--dry-run"],
        "sample": ["run", "new", "-n", "3"],
        "simulate": ["new", "--stays", "3", "--steps", "2"],
        "extract": [rng.choice(("stocks", "energy", "meds", "table", "mimic4", "eicu")), "file", "new"],
        "evaluate": [
            "--train",
            "cohort",
            "--test",
            "cohort",
            "--synthetic",
            "cohort",
            "--out",
            "new",
            "--only",
            "copies",
        ],
        "report": ["results", "--out", "new.html"],
    }.get(name, [])
    argv = [name, *usual]
    if name in commands():
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            argv = _with_odd_value(rng, argv, commands()[name])
    if rng.random() < 0.04 and name != "fit":  # which would train for minutes without its --dry-run
        argv = [*argv[: rng.randrange(len(argv))], rng.choice(("--unknown", "-z", "--", "--help", "x"))]
    return _case("command line", argv, work)


def _with_odd_value(rng: Random, argv: list[str], parameters: list[Parameter]) -> list[str]:
    command, parameter = argv[0], rng.choice(parameters)
    if (command, parameter.name) in LONG:
        return argv
    if parameter.kind is bool:
        return [*argv, str(parameter.option)]
    if parameter.name == "assignments":
        value = _assignment(rng)
    elif parameter.kind is Path:
        new = parameter.name in ("out", "train", "test", "html") and command not in ("fit", "evaluate")
        value = rng.choice(NEW if new or rng.random() < 0.3 else GIVEN)
    else:
        value = rng.choice({int: INTEGERS, float: FLOATS}.get(parameter.kind, TEXTS))
    if parameter.option is not None:
        return [*argv, parameter.option, value]
    at = parameter.place
    return [*argv[:at], value, *argv[at + 1 :]] if at < len(argv) else argv


@functools.cache
def _keys() -> list[str]:
    from timediff.settings.resolve import resolve

    keys = []
    for preset in ("fast", "paper", "timegan", "latent-forcing", "rcgan-published"):
        section = ""
        for line in resolve(preset).to_toml().splitlines():
            if line.startswith("["):
                section = line.strip("[] ")
            elif "=" in line:
                keys.append(f"{section}.{line.partition('=')[0].strip()}")
    return sorted(set(keys))


def _assignment(rng: Random) -> str:
    key = rng.choice((*_keys(), *_keys(), "unknown", "model.unknown", "", "a.b.c.d", "model", "training.", ".steps"))
    value = rng.choice((*TOML_VALUES, *HOSTILE, *INTEGERS[:6], "0.5", "adam", "gru"))
    return rng.choice((f"{key}={value}",) * 12 + (key, f"{key}==", f"={value}", f"{key} = {value}"))


def settings(rng: Random, work: Path, sound: Sound) -> Case:
    """Odd settings for a fit: most only checked, some trained for six updates."""
    copied(sound / "cohort", work / "cohort")
    argv = ["fit", "cohort", "new", "--dry-run"] if rng.random() < 0.85 else ["fit", "cohort", "new"]
    if rng.random() < 0.4:
        preset = rng.choice(
            (
                "fast",
                "paper",
                "timegan",
                "rcgan",
                "crnngan-published",
                "tforcing",
                "pforcing",
                "latent-forcing",
                "gtgan",
            )
        )
        (work / "settings.toml").write_text(_preset(preset), errors="replace")
        text, what = toml_text(rng, _preset(preset))
        (work / "settings.toml").write_text(text, errors="replace")
        argv += (
            ["--config", "settings.toml", "--preset", preset] if rng.random() < 0.7 else ["--config", "settings.toml"]
        )
        argv += TINY_ARGUMENTS if preset in ("fast", "paper") else ["--set", "training.steps=2"]
        return _case("settings", argv, work, f"{preset}: {what}")
    argv += TINY_ARGUMENTS
    for _ in range(rng.choice((1, 1, 2))):
        argv += ["--set", _assignment(rng)]
    return _case("settings", argv, work)


@functools.cache
def _preset(name: str) -> str:
    from timediff.settings.resolve import resolve

    return str(resolve(name).to_toml())


def passwords(rng: Random, work: Path, sound: Sound) -> Case:
    """A database that is not there, and a password that nobody may read."""
    url = rng.choice(
        (
            f"postgresql://bob:{MARK}@127.0.0.1:1/mimic", f"postgresql://bob@127.0.0.1:1/mimic?password={MARK}",
            f"postgresql://127.0.0.1:1/mimic?user=bob&password={MARK}", f"postgresql://bob:{MARK}",
            f"postgres://bob:{MARK}@127.0.0.1:1/", f"postgresql://bob:{MARK}@127.0.0.1:x/mimic",
            f"postgresql://bob:a@{MARK}@127.0.0.1:1/mimic", f"postgresql://:{MARK}@/", f"POSTGRESQL://bob:{MARK}@127.0.0.1:1/m",
            f"postgresql://bob:{MARK}%ZZ@127.0.0.1:1/mimic", f"postgresql://bob@127.0.0.1:1/mimic?sslpassword={MARK}",
            f"mysql://bob:{MARK}@127.0.0.1:1/mimic", f"postgresql+psycopg://bob:{MARK}@127.0.0.1:1/x",
            f"postgresql://bob:{MARK}/x@127.0.0.1:1/mimic", f"postgresql://bob:{MARK}@[::1/mimic",
            f"postgresql://bob@127.0.0.1:1/mimic?options=-c%20x&PASSWORD={MARK}",
        )
    )  # fmt: skip
    name = rng.choice(("mimic3", "mimic4", "eicu", "stocks", "meds", "table", "physionet2012", "physionet2019"))
    return _case("password", ["extract", name, url, "out"], work, secrets=(MARK,))


def _case(door: str, argv: list[str], work: Path, did: str = "", secrets: tuple[str, ...] = SECRETS) -> Case:
    """What is given by name may be made; what was there before stays."""
    tops = {part.split("/")[0] for word in argv for part in (word, word.rstrip("/"), word.removeprefix("./")) if part}
    before = {path.name for path in work.iterdir()}
    outputs = (*sorted((tops | {"demo", "a", "b", "..", "~"}) - before), "results", "cohort", "run")
    shown = " ".join(word if len(word) < 60 else f"{word[:60]}…" for word in argv)
    return Case(door, did or shown, argv, outputs, secrets=() if "--show-values" in argv else secrets)
