"""Items of the MIMIC charting systems: what each measures, and how it is listed."""

from dataclasses import dataclass

import numpy as np

ROUTINE, RESPIRATORY, NEURO = "Routine Vital Signs", "Respiratory", "Neurological"


@dataclass(frozen=True)
class ChartedVariable:
    bounds: tuple[float, float]
    typical: float
    extremes: tuple[float, float]  # odd, but within the limits of every item
    artefacts: tuple[float, ...]  # charted, but outside the limits or just on them
    step: float = 1  # by multiples of which a value differs from another one close by


# The limits are those of the MIMIC code repository: below the upper one, except that saturation may be 100.
VARIABLES = {
    "heart_rate": ChartedVariable((0, 300), 85, (1, 299), (0, 300, -1, 999999)),
    "sbp": ChartedVariable((0, 400), 120, (1, 399), (0, 400, -12, 1172)),
    "dbp": ChartedVariable((0, 300), 62, (1, 299), (0, 300, -9, 88130)),
    "mbp": ChartedVariable((0, 300), 80, (1, 299), (0, 300, -37, 1124)),
    "resp_rate": ChartedVariable((0, 70), 18, (1, 69), (0, 70, -3, 2355555)),
    "temperature": ChartedVariable((10, 50), 37, (22, 48.5), (10, 50, 0, 98.6), 0.1),
    "spo2": ChartedVariable((0, 100), 97, (1, 100), (0, 101, -4, 9790)),
}
FAHRENHEIT_ARTEFACTS = (70, 120, 0, 37)


@dataclass(frozen=True)
class Item:
    id: int
    variable: str | None  # what it measures; None = something else
    label: str
    unit: str | None = None
    abbreviation: str | None = None
    category: str | None = None
    text: str | None = None  # what is charted instead of a number, or beside one
    number: float = np.nan
    line: bool | None = None  # a pressure of an arterial line, or of a cuff; None = no pressure

    @property
    def fahrenheit(self) -> bool:
        return self.unit in ("Deg. F", "?F")

    @property
    def param_type(self) -> str:
        return "Text" if self.text else "Numeric"

    @property
    def artefacts(self) -> tuple[float, ...]:
        if self.variable is None:
            return (np.nan,) * 4
        return FAHRENHEIT_ARTEFACTS if self.fahrenheit else VARIABLES[self.variable].artefacts


CAREVUE = (
    Item(211, "heart_rate", "Heart Rate", "BPM"),
    Item(51, "sbp", "Arterial BP [Systolic]", "mmHg", line=True),
    Item(442, "sbp", "Manual BP [Systolic]", "mmHg", line=False),
    Item(455, "sbp", "NBP [Systolic]", "mmHg", line=False),
    Item(6701, "sbp", "Arterial BP #2 [Systolic]", "mmHg", line=True),
    Item(8368, "dbp", "Arterial BP [Diastolic]", "mmHg", line=True),
    Item(8440, "dbp", "Manual BP [Diastolic]", "mmHg", line=False),
    Item(8441, "dbp", "NBP [Diastolic]", "mmHg", line=False),
    Item(8555, "dbp", "Arterial BP #2 [Diastolic]", "mmHg", line=True),
    Item(52, "mbp", "Arterial BP Mean", "mmHg", line=True),
    Item(443, "mbp", "Manual BP Mean(calc)", "mmHg", line=False),
    Item(456, "mbp", "NBP Mean", "mmHg", line=False),
    Item(6702, "mbp", "Arterial BP Mean #2", "mmHg", line=True),
    Item(615, "resp_rate", "Resp Rate (Total)", "BPM"),
    Item(618, "resp_rate", "Respiratory Rate", "BPM"),
    Item(676, "temperature", "Temperature C", "Deg. C"),
    Item(678, "temperature", "Temperature F", "Deg. F"),
    Item(646, "spo2", "SpO2", "%"),
    Item(128, None, "Code Status", text="Full Code"),
    Item(161, None, "Ectopy Type", text="None"),
    Item(198, None, "GCS Total", "points", number=15),
)
METAVISION = (
    Item(220045, "heart_rate", "Heart Rate", "bpm", "HR", ROUTINE),
    Item(220050, "sbp", "Arterial Blood Pressure systolic", "mmHg", "ABPs", ROUTINE, line=True),
    Item(220179, "sbp", "Non Invasive Blood Pressure systolic", "mmHg", "NBPs", ROUTINE, line=False),
    Item(225309, "sbp", "ART BP Systolic", "mmHg", "ART BP Systolic", ROUTINE, line=True),
    Item(220051, "dbp", "Arterial Blood Pressure diastolic", "mmHg", "ABPd", ROUTINE, line=True),
    Item(220180, "dbp", "Non Invasive Blood Pressure diastolic", "mmHg", "NBPd", ROUTINE, line=False),
    Item(225310, "dbp", "ART BP Diastolic", "mmHg", "ART BP Diastolic", ROUTINE, line=True),
    Item(220052, "mbp", "Arterial Blood Pressure mean", "mmHg", "ABPm", ROUTINE, line=True),
    Item(220181, "mbp", "Non Invasive Blood Pressure mean", "mmHg", "NBPm", ROUTINE, line=False),
    Item(225312, "mbp", "ART BP mean", "mmHg", "ART BP mean", ROUTINE, line=True),
    Item(220210, "resp_rate", "Respiratory Rate", "insp/min", "RR", RESPIRATORY),
    Item(224690, "resp_rate", "Respiratory Rate (Total)", "insp/min", "Respiratory Rate (Total)", RESPIRATORY),
    Item(223761, "temperature", "Temperature Fahrenheit", "?F", "Temperature F", ROUTINE),
    Item(223762, "temperature", "Temperature Celsius", "?C", "Temperature C", ROUTINE),
    Item(220277, "spo2", "O2 saturation pulseoxymetry", "%", "SpO2", RESPIRATORY),
    Item(220048, None, "Heart Rhythm", None, "Heart Rhythm", ROUTINE, text="SR (Sinus Rhythm)"),
    Item(223901, None, "GCS - Motor Response", None, "Motor Response", NEURO, text="Obeys Commands", number=6),
)
