"""What columns are usually called: a guess of what each one is, to be looked at by a person."""

import re
from collections.abc import Sequence

STAY = (
    "stayid", "icustayid", "patientunitstayid", "admissionid", "hadmid", "encounterid", "encounter", "visitid",
    "caseid", "episodeid", "fallid", "fallnummer", "recordid", "stay", "admission", "subjectid", "patientid",
    "personid", "patient", "mrn", "pid", "id",
)  # fmt: skip
PATIENT = ("patientid", "subjectid", "personid", "uniquepid", "patient", "mrn", "patientnummer", "pid")
TIME = (
    "charttime", "time", "datetime", "timestamp", "measuredat", "measurementtime", "chartoffset", "observationoffset",
    "offset", "when", "zeit", "zeitpunkt", "date", "datum", "hour", "hours", "iculos", "minute", "minutes", "stunde",
    "step", "t",
)  # fmt: skip
VARIABLE = ("variable", "parameter", "item", "feature", "measurement", "concept", "signal", "test", "labname", "code")
VALUE = ("value", "valuenum", "numericvalue", "result", "wert", "measurementvalue", "number")
UNIT = ("unit", "units", "uom", "valueuom", "einheit")
ORIGIN = ("intime", "icuintime", "admittime", "admissiontime", "aufnahme", "staystart", "admitted")
LENGTH = (
    "length", "lengthofstay", "los", "loshours", "losdays", "outtime", "icuouttime", "dischtime", "dischargetime",
    "discharge", "discharged", "dischargedat", "unitdischargeoffset", "entlassung", "stayend",
)  # fmt: skip
OUTCOME = ("died", "death", "dead", "mortality", "hospitalexpireflag", "inhospitaldeath", "outcome", "sepsislabel")
WORDS = {  # in a name, the unit in which it counts
    "h": ("h", "hour", "hours", "iculos", "stunde", "stunden"),
    "min": ("min", "minute", "minutes", "offset", "minuten"),
    "s": ("s", "sec", "second", "seconds", "sekunden"),
    "d": ("d", "day", "days", "los", "tag", "tage"),
    "step": ("step", "length"),
}


def short(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def first_named(columns: Sequence[str], names: Sequence[str]) -> str | None:
    """The column that has the first of these names that any has."""
    by_name = {short(column): column for column in reversed(columns)}
    return next((by_name[name] for name in names if name in by_name), None)


def is_identifier(name: str) -> bool:
    return short(name) in {*STAY, *PATIENT} or bool(re.search(r"(?:^|[_\s])id$|[a-z]I[Dd]$", name))


def unit_of_name(name: str) -> str | None:
    """The unit of time that a name says: minutes_since_admission, time_h, observationoffset."""
    words = re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    for unit, known in WORDS.items():
        if set(words) & set(known) or any(len(one) > 3 and short(name).endswith(one) for one in known):
            return unit
    return None


def with_unit(name: str) -> tuple[str, str | None]:
    """A name such as "Temp (°C)" or "HR [bpm]" in two."""
    found = re.fullmatch(r"\s*(.*?\S)\s*[\[(]([^\])]{1,20})[\])]\s*", name)
    return (found[1], found[2].strip()) if found else (name.strip(), None)
