"""Checks of ranges that several settings share; each returns what is wrong."""

from collections.abc import Mapping


def at_least_one(values: Mapping[str, int | None]) -> list[str]:
    return [
        f"{path} is {value}; expected at least 1" for path, value in values.items() if value is not None and value < 1
    ]


def above_zero(values: Mapping[str, float | None]) -> list[str]:
    wrong = {path: value for path, value in values.items() if value is not None and value <= 0}
    return [f"{path} is {value}; expected a number above 0" for path, value in wrong.items()]


def fractions(values: Mapping[str, float]) -> list[str]:
    return [f"{path} is {value}; expected 0 to 1" for path, value in values.items() if not 0 <= value <= 1]
