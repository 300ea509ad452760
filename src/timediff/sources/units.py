"""Units of measurements, and what brings one to another.

Between mg/dL and mmol/L stands the molar mass of the substance: 1 mmol/L is M / 10 mg/dL. Pressures: 1 mmHg is 133.322
Pa. The plausible ranges only tell units apart, and are wide.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

NAMES: Mapping[str, tuple[str, ...]] = {  # how units are written, in lower case, without spaces, with u for µ
    "°C": ("°c", "c", "degc", "celsius", "deg.c", "degreescelsius"),
    "°F": ("°f", "f", "degf", "fahrenheit", "deg.f", "degreesfahrenheit"),
    "K": ("k", "kelvin"),
    "mmHg": ("mmhg", "torr", "mm[hg]", "mm(hg)"),
    "kPa": ("kpa",),
    "cmH2O": ("cmh2o", "cmh20", "cm[h2o]"),
    "%": ("%", "percent", "pct", "prozent"),
    "fraction": ("fraction", "1", "ratio"),
    "mg/dL": ("mg/dl", "mg/100ml", "mg%"),
    "g/dL": ("g/dl", "gm/dl", "g%"),
    "g/L": ("g/l",),
    "mg/L": ("mg/l",),
    "mmol/L": ("mmol/l", "mm/l", "mmol", "mm"),
    "µmol/L": ("umol/l", "mcmol/l", "umol"),
    "mEq/L": ("meq/l", "mval/l"),
    "kg": ("kg", "kilogram", "kilograms", "kgs"),
    "g": ("g", "gram", "grams"),
    "lb": ("lb", "lbs", "pound", "pounds"),
    "cm": ("cm", "centimeter", "centimetre"),
    "m": ("m", "meter", "metre"),
    "in": ("in", "inch", "inches"),
    "mL": ("ml", "cc", "milliliter", "millilitre"),
    "L": ("l", "liter", "litre"),
    "bpm": ("bpm", "beats/min", "/min", "1/min", "insp/min", "breaths/min", "min-1"),
}
SPELT = {spelling: unit for unit, spellings in NAMES.items() for spelling in (unit, *spellings)}
LINEAR: tuple[Mapping[str, tuple[float, float]], ...] = (  # unit: (factor, offset) to the first of its group
    {"°C": (1.0, 0.0), "°F": (5 / 9, -160 / 9), "K": (1.0, -273.15)},
    {"mmHg": (1.0, 0.0), "kPa": (1000 / 133.322, 0.0), "cmH2O": (98.0665 / 133.322, 0.0)},
    {"%": (1.0, 0.0), "fraction": (100.0, 0.0)},
    {"kg": (1.0, 0.0), "g": (0.001, 0.0), "lb": (0.45359237, 0.0)},
    {"cm": (1.0, 0.0), "m": (100.0, 0.0), "in": (2.54, 0.0)},
    {"mL": (1.0, 0.0), "L": (1000.0, 0.0)},
    {"mmol/L": (1.0, 0.0), "mEq/L": (1.0, 0.0)},  # of ions with one charge
)
MASSES = {"mg/dL": 1.0, "g/dL": 1000.0, "g/L": 100.0, "mg/L": 0.1}  # in mg/dL
AMOUNTS = {"mmol/L": 1.0, "µmol/L": 0.001}  # in mmol/L


@dataclass(frozen=True)
class Quantity:
    """Something that is measured in several units."""

    words: tuple[str, ...]  # of its name
    unit: str
    low: float  # plausible, in `unit`
    high: float
    others: tuple[str, ...]  # units that it may be mistaken for
    molar_mass: float | None = None  # g/mol


QUANTITIES = (
    Quantity(("temp", "temperature", "temperatur", "bodytemperature"), "°C", 25, 45, ("°F", "K")),
    Quantity(("sbp", "dbp", "map", "mbp", "abp", "nibp", "systolic", "diastolic", "bp"), "mmHg", 15, 320, ("kPa",)),
    Quantity(("paco2", "pco2", "etco2"), "mmHg", 12, 200, ("kPa",)),
    Quantity(("spo2", "sao2", "o2sat", "fio2"), "%", 15, 100, ("fraction",)),
    Quantity(("weight", "gewicht"), "kg", 20, 400, ()),
    Quantity(("height", "groesse"), "cm", 60, 250, ("m",)),
    Quantity(("glucose", "glukose", "glu"), "mg/dL", 19, 1500, ("mmol/L",), 180.156),
    Quantity(("creatinine", "kreatinin", "crea"), "mg/dL", 0.1, 25, ("µmol/L",), 113.12),
    Quantity(("bilirubin", "bili"), "mg/dL", 0.1, 60, ("µmol/L",), 584.67),
    Quantity(("bun",), "mg/dL", 1, 300, (), 28.014),  # the nitrogen in a mmol of urea
    Quantity(("urea", "harnstoff"), "mg/dL", 2, 600, (), 60.056),
    Quantity(("lactate", "laktat"), "mmol/L", 0.1, 35, ("mg/dL",), 90.08),
    Quantity(("calcium", "kalzium"), "mg/dL", 3, 20, ("mmol/L",), 40.078),
    Quantity(("magnesium",), "mg/dL", 0.5, 12, (), 24.305),
    Quantity(("cholesterol", "cholesterin"), "mg/dL", 25, 1000, ("mmol/L",), 386.65),
    Quantity(("hemoglobin", "haemoglobin", "hgb", "hb"), "g/dL", 2, 25, ("g/L",), 16114.5),  # of a quarter, with a haem
    Quantity(("albumin",), "g/dL", 0.5, 7, ("g/L",)),
)


@dataclass(frozen=True)
class Conversion:
    factor: float
    offset: float


def named(text: str) -> str:
    """A unit by the name that it has here; as it is written where none is known."""
    short = re.sub(r"\s+", "", text)
    return SPELT.get(short) or SPELT.get(re.sub("[µμ]", "u", short).lower().replace("º", "°")) or text.strip()


def quantity(name: str) -> Quantity | None:
    """What a feature of this name measures, if it is one of those known here."""
    words = re.split(r"[^a-z0-9]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower())
    return next((one for one in QUANTITIES if set(words) & set(one.words)), None)


def conversion(recorded: str, wanted: str, substance: str = "") -> Conversion | None:
    """From a recorded unit to another; None where nothing is known."""
    first, second = named(recorded), named(wanted)
    if first == second:
        return Conversion(1.0, 0.0)
    for group in LINEAR:
        if first in group and second in group:
            (a, b), (c, d) = group[first], group[second]
            return Conversion(a / c, (b - d) / c)
    factor = _per_litre(first, substance), _per_litre(second, substance)
    return None if factor[0] is None or factor[1] is None else Conversion(factor[0] / factor[1], 0.0)


def _per_litre(unit: str, substance: str) -> float | None:
    """How many mg/dL a unit of concentration is; of an amount only where the molar mass is known."""
    if unit in MASSES:
        return MASSES[unit]
    known = quantity(substance)
    if unit not in AMOUNTS or known is None or known.molar_mass is None:
        return None
    return AMOUNTS[unit] * known.molar_mass / 10


def known_units(wanted: str, substance: str = "") -> list[str]:
    """What can be brought to a unit."""
    return [unit for unit in NAMES if unit != named(wanted) and conversion(unit, wanted, substance) is not None]


@dataclass(frozen=True)
class Suspicion:
    """Values of a feature that are implausible in its unit, and plausible in another."""

    unit: str
    other: str
    low: float  # plausible, in the feature's unit
    high: float
    other_low: float  # what the plausible range is in the other unit
    other_high: float


def suspicions(name: str, unit: str | None) -> list[Suspicion]:
    """Which other units values of a feature might be in; without a unit it is taken to be in the usual one."""
    known = quantity(name)
    if known is None:
        return []
    stated = named(unit) if unit else known.unit
    own = conversion(known.unit, stated, name)
    if own is None:
        return []
    low, high = (own.factor * end + own.offset for end in (known.low, known.high))
    found = []
    for other in (known.unit, *known.others):
        there = conversion(known.unit, other, name)
        if other != stated and there is not None:
            ends = (there.factor * end + there.offset for end in (known.low, known.high))
            found.append(Suspicion(stated, other, low, high, *ends))
    return found
