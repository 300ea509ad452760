"""Sound inputs for every door, made once, and what each command makes of them."""

import gzip
import hashlib
import json
import os
import random
import signal
from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fault_campaign.children import call, outcome_of
from fault_campaign.mutations import write_parquet, zipped

TINY = (
    "model.hidden=4", "training.steps=6", "training.batch=8", "training.checkpoint_every=2", "training.log_every=1",
    "training.validate_every=2", "training.warmup=1", "training.lr=0.001", "sampling.steps=2",
)  # fmt: skip
TINY_ARGUMENTS = [part for setting in TINY for part in ("--set", setting)]
PASSING = ("stays_per_second", "seconds", "resumed_from")  # of a line of the log
RAW = {
    "mimic3": ("ADMISSIONS", "CHARTEVENTS", "D_ITEMS", "ICUSTAYS", "PATIENTS"),
    "mimic4": ("hosp/admissions", "hosp/patients", "icu/chartevents", "icu/d_items", "icu/icustays"),
    "eicu": ("hospital", "patient", "vitalPeriodic"),
}
TABLE_CONFIG = """layout = "long"
stay = "stay_id"
time = "time"
time_unit = "h"
variable = "variable"
value = "value"
step = "1h"
steps = 4
origin = "zero"
rule = "last"
[[feature]]
name = "heart_rate"
bounds = [0, 300]
[[feature]]
name = "sex"
kind = "binary"
scope = "static"
classes = ["F", "M"]
"""
MEDS_CONFIG = """start = ["IN//*"]
end = ["OUT"]
death = ["DEATH"]
step = "1h"
steps = 4
hours = 1
[[variable]]
name = "heart_rate"
[[variable.events]]
codes = ["HR"]
above = 0
"""


class Sound:
    """A folder of sound inputs; each is built in a child, so that this process starts no thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def __truediv__(self, name: str) -> Path:
        return self.folder / name

    def truth(self, name: str) -> str:
        return (self.folder / f"{name}.truth").read_text()

    def build(self, names: Iterable[str]) -> None:
        for name in names:
            if not (self.folder / f".{name}").exists():
                self.build(NEEDED.get(name, ()))
                ended = outcome_of(lambda name=name: getattr(self, f"_{name}")())
                if ended:
                    raise RuntimeError(f"the sound input {name} could not be made (wait status {ended})")
                (self.folder / f".{name}").touch()

    def _call(self, *argv: str) -> str:
        os.chdir(self.folder)
        os.environ["TMPDIR"] = str(self.folder)
        outcome = call(argv, self.folder / "printed")
        if outcome.code != 0:
            raise RuntimeError(f"{' '.join(argv)}: {outcome.printed}")
        return outcome.printed

    def _note(self, name: str, truth: str) -> None:
        (self.folder / f"{name}.truth").write_text(truth)

    # Cohorts and what is made of them

    def _cohort(self) -> None:
        write_cohort(self / "cohort", 20, seed=0)
        os.chdir(self.folder)
        self._note("describe", self._call("describe", "cohort"))
        self._call("split", "cohort", "train", "test", "--test", "0.4")
        self._note("split", tables("train") + tables("test"))

    def _run(self) -> None:
        self._call("fit", "cohort", "run", *TINY_ARGUMENTS)
        self._call("sample", "run", "sampled", "-n", "5")
        self._note("sample", tables("sampled"))
        self._note("fit", weights("run"))

    def _stopped(self) -> None:
        """A run that was interrupted after four of six updates."""
        from timediff.data.cohort import read_cohort
        from timediff.errors import Stopped
        from timediff.generators.timediff.generator import TimeDiff
        from timediff.settings.resolve import parse_assignment, resolve

        def interrupt(done: int, total: int, **values: float) -> None:
            if done == 4:
                os.kill(os.getpid(), signal.SIGINT)

        settings = resolve("fast", None, dict(parse_assignment(text) for text in TINY))
        try:
            cohort = read_cohort(self / "cohort")
            TimeDiff(settings=settings).fit(cohort, run=self / "stopped", progress=interrupt)
        except Stopped:
            return
        raise RuntimeError("the fit was not interrupted")

    def _parts(self) -> None:
        """A sampling that was killed when its second block was there."""
        os.chdir(self.folder)
        self._call("sample", "run", "blocks", "-n", "1100")
        self._note("blocks", tables("blocks"))
        argv, replace, moments = ["sample", "run", "waiting", "-n", "1100"], os.replace, 0

        def interrupted(source: str, target: str) -> None:
            nonlocal moments
            moments += str(source).endswith(".partial") and "parquet" in str(target)
            if moments == 6:
                raise KeyboardInterrupt
            replace(source, target)

        os.replace = interrupted
        call(argv, self.folder / "printed")
        if not (self / ".waiting.parts").is_dir():
            raise RuntimeError("the sampling was not interrupted")

    def _pair(self) -> None:
        write_cohort(self / "all", 120, seed=0)
        self._call("split", "all", "seen", "unseen", "--test", "0.5")  # no patient is on both sides
        write_cohort(self / "made", 60, seed=1)

    def _results(self) -> None:
        self._call("evaluate", "--train", "seen", "--test", "unseen", "--synthetic", "made", "--out", "results",
                   "--only", "copies")  # fmt: skip
        self._call("report", "results", "--out", "page.html")
        self._note("report", page("page.html"))
        (self / "results" / "report.html").unlink()  # five megabytes that no command reads

    # Sources

    def _extracted(self, name: str, *arguments: str) -> None:
        self._call("extract", *arguments, f"from-{name}")
        self._note(name, tables(self / f"from-{name}"))

    def _raw(self, name: str) -> None:
        self._call("simulate", f"raw-{name}", "--raw", name, "--stays", "10")
        self._extracted(name, name, f"raw-{name}/raw")

    def _mimic3(self) -> None:
        self._raw("mimic3")

    def _mimic4(self) -> None:
        self._raw("mimic4")

    def _eicu(self) -> None:
        self._raw("eicu")

    def _stocks(self) -> None:
        rng = random.Random(0)
        rows = [",".join(f"{rng.uniform(10, 20):.4f}" for _ in range(3)) for _ in range(40)]
        (self / "stock_data.csv").write_text("\n".join(["Open,High,Low", *rows, ""]))
        self._extracted("stocks", "stocks", "stock_data.csv")

    def _energy(self) -> None:
        rng = random.Random(1)
        rows = [f"2016-01-11 17:00:00,{rng.uniform(10, 20):.4f},{rng.random():.5f}" for _ in range(40)]
        write_gzip(self / "energydata_complete.csv.gz", "\n".join(["date,Appliances,T1", *rows, ""]))
        self._extracted("energy", "energy", "energydata_complete.csv.gz")

    def _physionet2012(self) -> None:
        folder, rng, rows = self / "challenge2012", random.Random(2), []
        (folder / "set-a").mkdir(parents=True)
        outcomes = ["RecordID,SAPS-I,SOFA,Length_of_stay,Survival,In-hospital_death"]
        for stay in range(132539, 132549):
            lines = [("00:00", "RecordID", stay), ("00:00", "Age", 70), ("00:00", "Gender", 1), ("00:00", "ICUType", 3)]
            lines += [(f"{h:02d}:{rng.randrange(60):02d}", "HR", rng.randrange(60, 120)) for h in range(6)]
            text = ["Time,Parameter,Value", *(",".join(map(str, line)) for line in lines), ""]
            (folder / "set-a" / f"{stay}.txt").write_text("\n".join(text))
            outcomes.append(f"{stay},1,1,5,-1,{stay % 2}")
            for clock, parameter, value in lines:
                minute = int(clock[:2]) * 60 + int(clock[3:])
                rows.append({"RecordID": stay, "minute": minute, "Parameter": parameter, "Value": float(value)})
        (folder / "Outcomes-a.txt").write_text("\n".join([*outcomes, ""]))
        zipped(folder, self / "challenge2012.zip")
        (self / "parquet2012").mkdir()
        write_parquet(pa.Table.from_pylist(rows), self / "parquet2012" / "set-a.parquet")
        (self / "parquet2012" / "Outcomes-a.txt").write_text("\n".join([*outcomes, ""]))
        for name, path in (("folder2012", folder), ("zip2012", self / "challenge2012.zip"), ("parquet2012", None)):
            self._extracted(name, "physionet2012", str(path or self / "parquet2012"))

    def _physionet2019(self) -> None:
        rng, names, everyone = random.Random(3), ["HR", "O2Sat", "Temp", "SBP", "MAP", "DBP", "Resp"], []
        (self / "challenge2019").mkdir()
        (self / "parquet2019").mkdir()
        for stay in range(1, 9):
            rows = [[*names, "Age", "Gender", "ICULOS", "SepsisLabel"]]
            for hour in range(1, 27):
                rows.append([f"{rng.uniform(30, 90):.1f}" for _ in names] + ["70.5", "1", str(hour), str(stay % 2)])
            everyone += [{"patient_id": stay} | dict(zip(rows[0], map(float, row), strict=True)) for row in rows[1:]]
            text = "\n".join("|".join(row) for row in rows) + "\n"
            (self / "challenge2019" / f"p{stay:06d}.psv").write_text(text)
        write_parquet(pa.Table.from_pylist(everyone), self / "parquet2019" / "set.parquet")
        for name in ("challenge2019", "parquet2019"):
            self._extracted(name, "physionet2019", name)

    def _meds(self) -> None:
        rng, noon, rows = random.Random(4), datetime(2150, 1, 1, 12), []
        for subject in range(1, 9):
            events = [(0.0, "IN//A", None), (9.0, "OUT", None)]
            events += [(h + 0.5, "HR", float(rng.randrange(60, 120))) for h in range(8)]
            events += [(9.0, "DEATH", None)] if subject % 2 else []
            for hours, code, value in events:
                moment = noon + timedelta(hours=hours)
                rows.append({"subject_id": subject, "time": moment, "code": code, "numeric_value": value})
        schema = pa.schema(
            {"subject_id": pa.int64(), "time": pa.timestamp("us"), "code": pa.string(), "numeric_value": pa.float32()}
        )
        write_parquet(pa.Table.from_pylist(rows, schema), self / "meds.parquet")
        (self / "meds.toml").write_text(MEDS_CONFIG)
        self._extracted("meds", "meds", "meds.parquet", "--config", "meds.toml")

    def _table(self) -> None:
        rng, rows = random.Random(5), ["stay_id,time,variable,value"]
        for stay in range(1, 13):
            rows += [f"{stay},{h}.5,heart_rate,{rng.randrange(60, 120)}" for h in range(4)]
            rows.append(f"{stay},0,sex,{'FM'[stay % 2]}")
        write_gzip(self / "table.csv.gz", "\n".join([*rows, ""]))
        (self / "table.toml").write_text(TABLE_CONFIG)
        names, *cells = (row.split(",") for row in rows)
        write_parquet(pa.table(dict(zip(names, zip(*cells, strict=True), strict=True))), self / "table.parquet")
        self._extracted("table", "table", "table.csv.gz", "--config", "table.toml")


NEEDED = {"run": ("cohort",), "stopped": ("cohort", "run"), "parts": ("cohort", "run"), "results": ("pair",)}


def write_cohort(path: Path, stays: int, seed: int) -> None:
    """A cohort with every kind of feature."""
    from timediff.data.cohort import Cohort
    from timediff.data.schema import Feature, Schema

    rng, steps = np.random.default_rng(seed), 4
    schema = Schema(
        (
            Feature("pulse", "continuous", bounds=(20, 250), resolution=1, unit="bpm"),
            Feature("rhythm", "categorical", classes=("sinus", "af", "paced")),
            Feature("lactate", "continuous"),
            Feature("sex", "binary", "static", classes=("F", "M")),
            Feature("patient", "categorical", "static", role="patient"),
            Feature("died", "binary", "static", role="label"),
        ),
        steps,
    )
    holes = rng.random((stays, steps)) < 0.2
    series = {
        "pulse": np.where(holes, np.nan, np.round(rng.normal(85, 15, (stays, steps)))),
        "rhythm": rng.integers(0, 3, (stays, steps)).astype(float),
        "lactate": rng.lognormal(0.5, 0.5, (stays, steps)),
    }
    static = {
        "sex": (np.arange(stays) % 2).astype(float),
        "patient": 1000 + np.arange(stays) // 2,
        "died": (np.arange(stays) % 3 == 0).astype(float),
    }
    Cohort(schema, np.arange(100, 100 + stays), series, static).write(path)


def write_gzip(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


# What is compared


def tables(path: Path | str) -> str:
    """The schema and every value of a cohort folder, whatever wrote it."""
    state = hashlib.sha256((Path(path) / "schema.toml").read_bytes())
    for name in ("series", "static"):
        table = pq.ParquetFile(Path(path) / f"{name}.parquet").read()
        state.update(repr((table.column_names, [column.to_pylist() for column in table.columns])).encode())
    return state.hexdigest()


def weights(path: Path | str) -> str:
    return hashlib.sha256((Path(path) / "weights.safetensors").read_bytes()).hexdigest()


def page(path: Path | str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def log(path: Path | str) -> list[dict[str, float]]:
    """The log of a run, each update as it was last written, without what the clock and a resumption decide."""
    lines = [json.loads(line) for line in (Path(path) / "log.jsonl").read_text().splitlines()]
    last = {line["step"]: line for line in lines}
    return [{k: v for k, v in line.items() if k not in PASSING} for _, line in sorted(last.items())]
