"""Generators by name: what `--generator NAME` and `td.load` look up. Nothing is imported before it is asked for."""

from pathlib import Path

from timediff.errors import TimeDiffError
from timediff.generators.base import Generator
from timediff.runtime.progress import Say, unheard
from timediff.runtime.registry import Registry, add_plugin
from timediff.settings.resolve import generator_of

GENERATORS: Registry[type[Generator]] = Registry(
    "generator",
    "timediff.generators",
    {
        name: f"timediff.generators.{name.replace('-', '')}.generator:{kind}"
        for name, kind in {
            "timediff": "TimeDiff", "timegan": "TimeGAN", "rcgan": "RCGAN", "crnngan": "CRNNGAN",
            "tforcing": "TForcing", "pforcing": "PForcing", "latent-forcing": "LatentForcing", "rnn": "RNN",
            "ehrmgan": "EHRMGAN", "gtgan": "GTGAN", "halo": "HALO",
        }.items()
    }
    | {
        name: f"timediff.generators.spd.generator:{kind}"
        for name, kind in {
            "dspd-gp": "DSPDGP", "dspd-ou": "DSPDOU", "cspd-gp": "CSPDGP", "cspd-ou": "CSPDOU",
        }.items()
    },
    adopt=lambda part: part.name if _is_generator(part) else None,
)  # fmt: skip


def generator(name: str) -> type[Generator]:
    """The class of the generator `name`."""
    return GENERATORS(name)


def _is_generator(part: object) -> bool:
    return isinstance(part, type) and issubclass(part, Generator) and isinstance(getattr(part, "name", None), str)


def from_module(place: str) -> str:
    """The name of the generator that "module:Class" is, which is registered by it; also in workers."""
    part = add_plugin(place)
    if not _is_generator(part):
        raise TimeDiffError(
            f"{place!r} is no generator: expected module:Class, where the class has a name and is a SimpleGenerator, "
            "NeuralGenerator or Generator; see docs/extending.md."
        )
    if part.name not in GENERATORS or GENERATORS(part.name) is not part:
        GENERATORS.add(part.name, part)
    return str(part.name)


def choose(generator: str | None, preset: str | None) -> tuple[str, str | None]:
    """Generator and preset, where one or both are not given; a generator may have no preset.

    A generator is a name, or "module:Class" of whoever asks: never what a file says.
    """
    if generator is not None and ":" in generator:
        generator = from_module(generator)
    if preset is None:
        name = generator or "timediff"
        return name, GENERATORS(name).preset
    owner = generator_of(preset)
    if generator not in (None, owner):
        GENERATORS(generator)
        raise TimeDiffError(
            f"the preset {preset!r} is for the generator {owner}, not for {generator}: leave out one of the two."
        )
    return owner, preset


def load(path: str | Path, say: Say = unheard, *, allow_edited: bool = False) -> Generator:
    """The fitted generator of a run folder, whichever it is; `say` hears what is odd about the run.

    A folder that was edited since it was written is refused, unless that is allowed.
    """
    from timediff.generators.run import Run

    run = Run.open(Path(path), allow_edited=allow_edited, say=say)
    return GENERATORS(run.generator).from_run(run, say)
