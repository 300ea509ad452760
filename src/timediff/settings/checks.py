"""Checks of ranges that several settings share; each returns what is wrong."""

from collections.abc import Mapping

from timediff.settings.typed import shown

MOST = 10**12  # of anything that is counted: more would only run for ever
MOST_UNITS, MOST_LAYERS, MOST_STEPS = 2**16, 64, 10**6  # of a network, of a process


def at_least_one(values: Mapping[str, int | None], most: int = MOST) -> list[str]:
    given = {path: value for path, value in values.items() if value is not None}
    few = [f"{path} is {shown(value)}; expected at least 1" for path, value in given.items() if value < 1]
    many = [f"{path} is {shown(value)}; expected at most {most:,}" for path, value in given.items() if value > most]
    return few + many


def above_zero(values: Mapping[str, float | None]) -> list[str]:
    wrong = {path: value for path, value in values.items() if value is not None and value <= 0}
    return [f"{path} is {value}; expected a number above 0" for path, value in wrong.items()]


def fractions(values: Mapping[str, float]) -> list[str]:
    return [f"{path} is {value}; expected 0 to 1" for path, value in values.items() if not 0 <= value <= 1]
