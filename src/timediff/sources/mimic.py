"""The layouts of MIMIC-III (1.4) and MIMIC-IV (2.2): table and column names as published."""

from dataclasses import replace

from timediff.errors import TimeDiffError
from timediff.runtime.progress import Progress, silent
from timediff.sources import charted_events
from timediff.sources.base import Source, bundled
from timediff.sources.charted_events import MIMICSettings, MIMICTables
from timediff.sources.engines import Table, connect
from timediff.sources.extraction import Extraction
from timediff.sources.mimic4_extended import DEFAULTS, extend, extended_settings, require_room

TABLES3 = MIMICTables(
    stays=Table(
        "ICUSTAYS",
        {
            "icustay_id": "int64",
            "subject_id": "int64",
            "hadm_id": "int64",
            "intime": "timestamp",
            "outtime": "timestamp",
        },
        "mimiciii",
    ),
    admissions=Table("ADMISSIONS", {"hadm_id": "int64", "hospital_expire_flag": "int64"}, "mimiciii"),
    patients=Table("PATIENTS", {"subject_id": "int64", "dob": "timestamp"}, "mimiciii"),
    events=Table(
        "CHARTEVENTS",
        {"icustay_id": "int64", "itemid": "int64", "charttime": "timestamp", "valuenum": "float64", "error": "int64"},
        "mimiciii",
    ),
    stay="icustay_id",
    marks_errors=True,
)
TABLES4 = MIMICTables(
    stays=Table(
        "icustays",
        {"stay_id": "int64", "subject_id": "int64", "hadm_id": "int64", "intime": "timestamp", "outtime": "timestamp"},
        "mimiciv_icu",
    ),
    admissions=Table("admissions", {"hadm_id": "int64", "hospital_expire_flag": "int64"}, "mimiciv_hosp"),
    patients=Table("patients", {"subject_id": "int64", "anchor_age": "int64", "anchor_year": "int64"}, "mimiciv_hosp"),
    events=Table(
        "chartevents",
        {"stay_id": "int64", "itemid": "int64", "charttime": "timestamp", "valuenum": "float64"},
        "mimiciv_icu",
    ),
    stay="stay_id",
    marks_errors=False,
)


class MIMIC3(Source[MIMICSettings]):
    settings = MIMICSettings
    defaults = bundled("mimic3")
    published = bundled("mimic3_published")

    def extract(self, source: str, settings: MIMICSettings, progress: Progress = silent) -> Extraction:
        if settings.extended:
            raise TimeDiffError("only mimic4 has extended channels.")
        with connect(source, progress) as engine:
            return charted_events.extract(engine, TABLES3, settings)


class MIMIC4(Source[MIMICSettings]):
    settings = MIMICSettings
    defaults = bundled("mimic4")
    published = bundled("mimic4_published")

    def extract(self, source: str, settings: MIMICSettings, progress: Progress = silent) -> Extraction:
        if settings.extended and settings.origin != "intime":
            raise TimeDiffError("the extended channels begin with the admission to the unit: set origin = 'intime'.")
        supplement = extended_settings()
        if settings.extended:
            supplement = replace(supplement, packed=settings.packed, merge_names=settings.merge_names)
            require_room(supplement, settings.steps)
        with connect(source, progress) as engine:
            found = charted_events.extract(engine, TABLES4, settings)
            if not settings.extended:
                return found
            cohort = extend(engine, found.cohort, supplement, by_clock=settings.rule == "at")
            return replace(found, cohort=cohort, facts=engine.facts())

    def to_toml(self, settings: MIMICSettings) -> str:
        supplement = f"\n# with --extended:\n{DEFAULTS}" if settings.extended else ""
        return super().to_toml(settings) + supplement
