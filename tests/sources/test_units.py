"""Units by any name; conversions there and back; what makes values look like another unit."""

import pytest

from timediff.sources.units import LINEAR, conversion, known_units, named, quantity, suspicions


@pytest.mark.parametrize(
    ("texts", "unit"),
    [
        (("°C", "C", "deg C", "Celsius", "degC"), "°C"),
        (("°F", "F", "Deg. F", "fahrenheit"), "°F"),
        (("mmHg", "mm Hg", "MMHG"), "mmHg"),
        (("µmol/L", "umol/L", "μmol/l"), "µmol/L"),
        (("mg/dl", "MG/DL"), "mg/dL"),
        (("furlong",), "furlong"),
    ],
)
def test_a_unit_has_many_spellings(texts: tuple[str, ...], unit: str) -> None:
    assert {named(text) for text in texts} == {unit}


@pytest.mark.parametrize(
    ("value", "recorded", "wanted", "substance", "expected"),
    [
        (98.6, "°F", "°C", "", 37.0),
        (310.15, "K", "°C", "", 37.0),
        (13.3322, "kPa", "mmHg", "", 100.0),
        (0.4, "fraction", "%", "", 40.0),
        (5.5, "mmol/L", "mg/dL", "glucose", 99.09),
        (88.4, "umol/L", "mg/dL", "serum_creatinine", 1.0),
        (17.1, "µmol/L", "mg/dL", "Bilirubin", 1.0),
        (18.0, "mg/dL", "mmol/L", "lactate", 1.998),
        (140.0, "g/L", "g/dL", "Hb", 14.0),
        (8.7, "mmol/L", "g/dL", "hemoglobin", 14.02),
        (2.8, "mmol/L", "mg/dL", "BUN", 7.84),
        (154.3, "lb", "kg", "", 69.99),
        (4.0, "mEq/L", "mmol/L", "potassium", 4.0),
    ],
)
def test_conversions_are_those_of_the_textbooks(
    value: float, recorded: str, wanted: str, substance: str, expected: float
) -> None:
    there, back = conversion(recorded, wanted, substance), conversion(wanted, recorded, substance)
    assert there is not None
    assert back is not None
    converted = value * there.factor + there.offset
    assert converted == pytest.approx(expected, rel=2e-3)
    assert converted * back.factor + back.offset == pytest.approx(value)


@pytest.mark.parametrize("units", [list(group) for group in LINEAR])
def test_every_unit_of_a_group_can_be_brought_to_every_other(units: list[str]) -> None:
    for one in units:
        assert set(known_units(one)) >= set(units) - {one}


def test_nothing_is_made_up_for_a_substance_or_a_unit_that_is_not_known() -> None:
    assert conversion("mmol/L", "mg/dL", "kryptonite") is None
    assert conversion("mmHg", "°C") is None
    assert conversion("furlong", "m") is None
    assert quantity("template") is None  # temp is no word of it


def test_a_fever_in_fahrenheit_is_suspected_and_one_in_celsius_is_not() -> None:
    (fahrenheit, *_) = suspicions("Temp", "°C")
    assert fahrenheit.other == "°F"
    assert fahrenheit.high < 100.4 <= fahrenheit.other_high
    assert fahrenheit.low < 41 < fahrenheit.high
    assert not suspicions("heart_rate", "bpm")
    assert [one.other for one in suspicions("glucose", None)] == ["mmol/L"]  # taken for mg/dL
    assert [one.other for one in suspicions("glucose", "mmol/L")] == ["mg/dL"]
