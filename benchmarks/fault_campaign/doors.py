"""The doors by which something comes in from outside, each with the ways in which it can be wrong."""

import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from fault_campaign.case import Case
from fault_campaign.command_lines import command_line, commands, passwords, settings
from fault_campaign.mutations import (
    GONE,
    HOSTILE,
    TOML_VALUES,
    Done,
    copied,
    csv_text,
    damage,
    json_text,
    odd_table,
    odd_zip,
    toml_text,
    write_parquet,
)
from fault_campaign.sound import RAW, TINY_ARGUMENTS, Sound, page, tables, weights

Door = Callable[[Random, Path, Sound], Case]


def retyped(path: Path, mutate: Callable[[Random, str], tuple[str, str]], rng: Random) -> Done:
    """A mutation of a text file."""
    text, what = mutate(rng, path.read_text())
    path.write_text(text, errors="surrogatepass")
    return Done(f"{path.name}: {what}")


def cohort(rng: Random, work: Path, sound: Sound) -> Case:
    folder = copied(sound / "cohort", work / "cohort")
    kind = rng.randrange(10)
    file = folder / f"{rng.choice(('series', 'static'))}.parquet"
    if kind <= 3:
        done = retyped(folder / "schema.toml", toml_text, rng)
    elif kind <= 7:
        done = _retabled(rng, file, ("stay_id", "step", "length"))
    elif kind == 8:
        done = damage(rng, file)
    else:
        done = damage(rng, folder / "schema.toml", ("cut", "flip", *GONE), sure=False)
    argv, truth, measure, outputs = rng.choice(
        (
            *[(["describe", "cohort"], "describe", None, ())] * 6,
            *[(["split", "cohort", "train", "test", "--test", "0.4"], "split", _halves, ("train", "test"))] * 2,
            (["fit", "cohort", "run", "--dry-run", *TINY_ARGUMENTS], None, None, ()),
            (["fit", "cohort", "run", *TINY_ARGUMENTS], "fit", lambda printed: weights("run"), ("run",)),
        )
    )
    case = Case("cohort", done.what, argv, outputs, mend=_mended(sound / "cohort", folder))
    if truth is not None:
        case.measure = measure or (lambda printed: printed)
        case.truth = sound.truth(truth) if done.sure else None
    return case


def _halves(printed: str) -> str:
    return tables("train") + tables("test")


def _mended(source: Path, target: Path) -> Callable[[], None]:
    import shutil

    def mend() -> None:
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        copied(source, target)

    return mend


def _retabled(rng: Random, file: Path, keys: tuple[str, ...]) -> Done:
    try:
        table, what = odd_table(rng, pq.ParquetFile(file).read(), keys)
        write_parquet(table, file)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # Parquet has no such type
        return damage(rng, file, ("cut",))
    return Done(f"{file.name}: {what}")


def run(rng: Random, work: Path, sound: Sound) -> Case:
    folder = copied(sound / "run", work / "run")
    done, argv = _damaged_run(rng, folder), ["sample", "run", "out", "-n", "5"]
    done, argv = _allowed(rng, done, argv)
    return Case(
        "run", done.what, argv, ("out",), truth=sound.truth("sample") if done.sure else None,
        measure=lambda printed: tables("out"), mend=_mended(sound / "run", folder),
    )  # fmt: skip


def resume(rng: Random, work: Path, sound: Sound) -> Case:
    """A run that was stopped, with damaged checkpoints or files, is fitted to its end."""
    copied(sound / "cohort", work / "cohort")
    folder = copied(sound / "stopped", work / "run")
    files = sorted(p for p in (folder / "checkpoints").rglob("*") if p.is_file())
    done = _damaged_run(rng, folder, files if rng.random() < 0.6 else None)
    done, argv = _allowed(rng, done, ["fit", "cohort", "run", "--resume"])
    return Case(
        "resume", done.what, argv, changes=("run",),
        truth=sound.truth("fit") if done.sure else None, measure=lambda printed: weights("run"),
        mend=_mended(sound / "stopped", folder),
    )  # fmt: skip


def _allowed(rng: Random, done: Done, argv: list[str]) -> tuple[Done, list[str]]:
    """Sometimes with the option that takes an edited folder as it is: then nobody knows the right outcome."""
    options = [parameter.option for parameter in commands().get(argv[0], [])]
    if "--allow-edited" not in options or rng.random() < 0.7:
        return done, argv
    return Done(done.what), [*argv, "--allow-edited"]


def _damaged_run(rng: Random, folder: Path, files: list[Path] | None = None) -> Done:
    """One file damaged; or edited in a way that its hash is right again, which makes it another run."""
    if files is None:
        files = sorted(p for p in folder.iterdir() if p.is_file())
    file = rng.choice(files)
    text = file.suffix in (".toml", ".json")
    if rng.random() < 0.4 or not text:
        return damage(rng, file)
    old = file.read_bytes()
    done = retyped(file, toml_text if file.suffix == ".toml" else json_text, rng)
    if rng.random() < 0.5:
        return Done(done.what, sure=True)
    return _rehashed(folder, file, old, done)


def _rehashed(folder: Path, file: Path, old: bytes, done: Done) -> Done:
    """With the file's new hash wherever the old one stood."""
    before, after = (hashlib.sha256(content).hexdigest() for content in (old, file.read_bytes()))
    for other in (p for p in folder.rglob("*.json") if p != file and p.is_file()):
        other.write_text(other.read_text().replace(before, after))
    _resealed(folder / "provenance.json")
    return Done(f"{done.what}, with its hash")


def _resealed(path: Path) -> None:
    """The hash that a provenance carries of itself."""
    try:
        table = json.loads(path.read_text())
        content = {key: value for key, value in table.items() if key != "sha256"}
        seal = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    except (OSError, ValueError, AttributeError, RecursionError):  # it was itself what was mutated
        return
    if "sha256" in table:
        path.write_text(json.dumps({**content, "sha256": seal}))


def parts(rng: Random, work: Path, sound: Sound) -> Case:
    """A sampling that was stopped, with damaged parts, is continued."""
    copied(sound / "run", work / "run")
    folder = copied(sound / ".waiting.parts", work / ".waiting.parts")
    file = rng.choice(sorted(p for p in folder.iterdir() if p.is_file()))
    retold = file.suffix == ".json" and rng.random() < 0.6
    done = retyped(file, json_text, rng) if retold else damage(rng, file)
    return Case(
        "parts", done.what, ["sample", "run", "waiting", "-n", "1100", "--resume"], ("waiting",), (".waiting.parts",),
        truth=sound.truth("blocks"), measure=lambda printed: tables("waiting"),
        mend=_mended(sound / ".waiting.parts", folder),
    )  # fmt: skip


def results(rng: Random, work: Path, sound: Sound) -> Case:
    folder = copied(sound / "results", work / "results")
    file = rng.choice([folder / "results.json", *sorted((folder / "figures").glob("*.json"))[:: 1 + rng.randrange(4)]])
    old, hashed = file.read_bytes(), (folder / "manifest.json").exists()
    if rng.random() < 0.75:
        done = _rehashed(folder, file, old, retyped(file, json_text, rng))
    else:
        done = damage(rng, file, sure=hashed)
    done, argv = _allowed(rng, done, ["report", "results", "--out", "page.html"])
    return Case(
        "results", done.what, argv, ("page.html",),
        truth=sound.truth("report") if done.sure else None, measure=lambda printed: page("page.html"),
        mend=_mended(sound / "results", folder),
    )  # fmt: skip


def check(rng: Random, work: Path, sound: Sound) -> Case:
    """A folder of which one hashed file is damaged is not as it was written."""
    name = rng.choice(("cohort", "run", "results"))
    folder = copied(sound / name, work / name)
    hashed = {"cohort": ("series.parquet", "static.parquet", "schema.toml"),
              "run": ("weights.safetensors", "settings.toml", "schema.toml", "codec.json"),
              "results": ("results.json", "figures/*.json")}[name]  # fmt: skip
    done = damage(rng, rng.choice(sorted(folder.glob(rng.choice(hashed)))))
    return Case("check", done.what, ["check", name], truth="refused", measure=lambda printed: "accepted")


def _extraction(door: str, done: Done, argv: list[str], sound: Sound, given: str, truth: str, work: Path) -> Case:
    return Case(
        door, done.what, ["extract", *argv, "out"], ("out",), truth=sound.truth(truth) if done.sure else None,
        measure=lambda printed: tables("out"), mend=_mended(sound / given, work / given),
    )  # fmt: skip


def _odd_gzip(rng: Random, file: Path) -> Done:
    """Damaged as bytes, which its checksum tells; or another table with a right one."""
    if rng.random() < 0.5:
        return damage(rng, file)
    text, what = csv_text(rng, gzip.decompress(file.read_bytes()).decode())
    file.write_bytes(gzip.compress(text.encode(errors="replace"), mtime=0))
    return Done(f"{file.name}: {what}")


def _raw(name: str) -> Door:
    def door(rng: Random, work: Path, sound: Sound) -> Case:
        given = f"raw-{name}"
        folder = copied(sound / given, work / given) / "raw"
        done = _odd_gzip(rng, folder / f"{rng.choice(RAW[name])}.csv.gz")
        return _extraction(name, done, [name, f"{given}/raw"], sound, given, name, work)

    return door


def stocks(rng: Random, work: Path, sound: Sound) -> Case:
    file = copied(sound / "stock_data.csv", work / "stock_data.csv")
    done = retyped(file, csv_text, rng) if rng.random() < 0.8 else damage(rng, file, sure=False)
    return _extraction("stocks", done, ["stocks", file.name], sound, file.name, "stocks", work)


def energy(rng: Random, work: Path, sound: Sound) -> Case:
    file = copied(sound / "energydata_complete.csv.gz", work / "energydata_complete.csv.gz")
    return _extraction("energy", _odd_gzip(rng, file), ["energy", file.name], sound, file.name, "energy", work)


def physionet2012(rng: Random, work: Path, sound: Sound) -> Case:
    match rng.randrange(5):
        case 0 | 1:
            given = "challenge2012.zip"
            done = odd_zip(rng, copied(sound / given, work / given))
            truth = "zip2012"
        case 2:
            given, truth = "parquet2012", "parquet2012"
            file = copied(sound / given, work / given) / "set-a.parquet"
            done = damage(rng, file, ("cut", *GONE)) if rng.random() < 0.3 else _retabled(rng, file, ("RecordID",))
        case _:
            given, truth = "challenge2012", "folder2012"
            folder = copied(sound / given, work / given)
            file = rng.choice([folder / "Outcomes-a.txt", *sorted((folder / "set-a").iterdir())])
            done = damage(rng, file, sure=False) if rng.random() < 0.3 else retyped(file, csv_text, rng)
    return _extraction("physionet2012", done, ["physionet2012", given], sound, given, truth, work)


def physionet2019(rng: Random, work: Path, sound: Sound) -> Case:
    given = rng.choice(("challenge2019", "challenge2019", "parquet2019"))
    folder = copied(sound / given, work / given)
    file = rng.choice(sorted(folder.iterdir()))
    if given == "parquet2019":
        done = (
            damage(rng, file, ("cut", *GONE)) if rng.random() < 0.2 else _retabled(rng, file, ("patient_id", "ICULOS"))
        )
    elif rng.random() < 0.25:
        done = damage(rng, file, sure=False)
    else:
        done = retyped(file, lambda rng, text: csv_text(rng, text, "|"), rng)
    return _extraction("physionet2019", done, ["physionet2019", given], sound, given, given, work)


def meds(rng: Random, work: Path, sound: Sound) -> Case:
    file, config = (
        copied(sound / "meds.parquet", work / "meds.parquet"),
        copied(sound / "meds.toml", work / "meds.toml"),
    )
    kind = rng.randrange(10)
    if kind <= 1:
        done = damage(rng, file, ("cut", *GONE))
    elif kind <= 6:
        done = _retabled(rng, file, ("subject_id", "time"))
    else:
        done = retyped(config, toml_text, rng)
    case = _extraction("meds", done, ["meds", file.name, "--config", config.name], sound, file.name, "meds", work)
    return _with_config(case, sound, config)


def table(rng: Random, work: Path, sound: Sound) -> Case:
    file = copied(sound / "table.csv.gz", work / "table.csv.gz")
    config = copied(sound / "table.toml", work / "table.toml")
    if rng.random() < 0.35:
        done = retyped(config, toml_text, rng)
    elif rng.random() < 0.7:
        done = _odd_gzip(rng, file)
    else:
        file = copied(sound / "table.parquet", work / "table.parquet")
        done = _retabled(rng, file, ("stay_id", "time"))
    case = _extraction("table", done, ["table", file.name, "--config", config.name], sound, file.name, "table", work)
    return _with_config(case, sound, config)


SOURCES = {
    "mimic3": "raw-mimic3/raw", "mimic4": "raw-mimic4/raw", "eicu": "raw-eicu/raw", "stocks": "stock_data.csv",
    "energy": "energydata_complete.csv.gz", "physionet2012": "challenge2012.zip", "physionet2019": "challenge2019",
    "meds": "meds.parquet", "table": "table.csv.gz",
}  # fmt: skip


def source_settings(rng: Random, work: Path, sound: Sound) -> Case:
    """Odd settings of a source, in a file or on the command line."""
    from timediff.sources.registry import source

    name = rng.choice([*SOURCES, "stocks", "energy", "stocks", "energy"])
    given = SOURCES[name].split("/")[0]
    copied(sound / given, work / given)
    own = (sound / f"{name}.toml").read_text() if name in ("meds", "table") else source(name).default_toml()
    (work / "sound.toml").write_text(own)
    text, what = toml_text(rng, own)
    argv = ["extract", name, SOURCES[name], "out", "--config"]
    again = [*argv, "sound.toml"]
    if rng.random() < 0.6:
        (work / "odd.toml").write_text(text, errors="replace")
        argv.append("odd.toml")
    else:
        key = rng.choice(
            [line.partition("=")[0].strip() for line in own.splitlines() if "=" in line and line[0] != "#"]
        )
        what = f"{key}={rng.choice((*TOML_VALUES, *HOSTILE))}"
        argv += ["sound.toml", "--set", what]
    return Case("source settings", f"{name}: {what[:100]}", argv, ("out",), mend=lambda: None, again=again)


def _with_config(case: Case, sound: Sound, config: Path) -> Case:
    mend = case.mend
    assert mend is not None

    def both() -> None:
        mend()
        _mended(sound / config.name, config)()

    case.mend = both
    return case


# How often each is chosen, and the sound inputs that it needs. What takes long is rarer.
DOORS: dict[str, tuple[Door, int, tuple[str, ...]]] = {
    "command line": (command_line, 24, ("cohort", "run", "results")),
    "password": (passwords, 2, ()),
    "settings": (settings, 16, ("cohort", "run")),
    "cohort": (cohort, 22, ("cohort", "run")),
    "run": (run, 14, ("run",)),
    "resume": (resume, 5, ("stopped",)),
    "parts": (parts, 2, ("parts",)),
    "results": (results, 3, ("results",)),
    "check": (check, 3, ("cohort", "run", "results")),
    "stocks": (stocks, 4, ("stocks",)),
    "energy": (energy, 4, ("energy",)),
    "physionet2012": (physionet2012, 4, ("physionet2012",)),
    "physionet2019": (physionet2019, 3, ("physionet2019",)),
    "meds": (meds, 2, ("meds",)),
    "table": (table, 4, ("table",)),
    "source settings": (source_settings, 5, tuple(SOURCES)),
    "mimic3": (_raw("mimic3"), 2, ("mimic3",)),
    "mimic4": (_raw("mimic4"), 2, ("mimic4",)),
    "eicu": (_raw("eicu"), 2, ("eicu",)),
}


def chosen(seed: int, number: int) -> tuple[str, Random]:
    """The door of a case, and the random numbers that the rest of it follows from."""
    rng = Random(f"{seed} {number}")
    return rng.choices(list(DOORS), [weight for _, weight, _ in DOORS.values()])[0], rng


def prepared(seed: int, number: int, work: Path, sound: Sound) -> Case:
    door, rng = chosen(seed, number)
    case = DOORS[door][0](rng, work, sound)
    case.repeated = number % 4 == 0
    return case


def described(case: Case) -> str:
    return json.dumps({"door": case.door, "did": case.did, "command": ["timediff", *case.argv]}, ensure_ascii=True)
