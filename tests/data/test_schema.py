"""A schema means what its text says, and says all that is wrong with a text at once."""

from dataclasses import replace

import pytest
from hypothesis import given

from helpers.strategies import schemas
from timediff.data.schema import Feature, Relation, Schema, Split
from timediff.errors import Problems, TimeDiffError

GOOD = """
format = 1
[grid]
step = "1h"
steps = 48
[split]
test = 0.25
stratify = "died"
[[feature]]
name = "hr"
kind = "continuous"
scope = "temporal"
unit = "bpm"
bounds = [0, 300]
resolution = 1
[[feature]]
name = "died"
kind = "binary"
scope = "static"
role = "label"
"""


@given(schemas())
def test_text_round_trip(schema: Schema) -> None:
    assert Schema.from_toml(schema.to_toml()) == schema


def test_reads_the_documented_layout() -> None:
    schema = Schema.from_toml(GOOD)
    assert schema.temporal == (Feature("hr", "continuous", unit="bpm", bounds=(0, 300), resolution=1),)
    assert schema.label == Feature("died", "binary", "static", role="label", classes=(0, 1))
    assert (schema.step, schema.steps, schema.split) == ("1h", 48, Split(0.25, "died"))


def test_everything_wrong_is_said_at_once() -> None:
    text = GOOD.replace("steps = 48", 'steps = "many"').replace('kind = "binary"', 'kind = "boolean"')
    text = text.replace("bounds = [0, 300]", "bounds = [300]\nwidth = 3")
    with pytest.raises(Problems) as caught:
        Schema.from_toml(text)
    said = "\n".join(caught.value.problems)
    for word in ("grid", "'boolean'", "bounds", "'width'"):
        assert word in said


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (("format = 1", "format = 2"), "newer"),
        (("format = 1", ""), "format"),
        (('name = "hr"', 'name = "stay_id"'), "taken"),
        (('name = "died"', 'name = "hr"'), "twice"),
        (("bounds = [0, 300]", "bounds = [300, 0]"), "lower < upper"),
        (("resolution = 1", "resolution = 0"), "positive"),
        (("bounds = [0, 300]", "bounds = [0.1, 0.9]"), "no multiple of its resolution 1"),
        (('scope = "static"', 'scope = "temporal"'), "static"),
        (('stratify = "died"', 'stratify = "dead"'), "'dead'"),
        (("test = 0.25", "test = 2"), "split.test"),
        (('kind = "binary"', 'kind = "categorical"'), "classes"),
        (('kind = "binary"', 'kind = "binary"\nclasses = ["a", "b", "c"]'), "two classes"),
        (('kind = "binary"', 'kind = "binary"\nclasses = ["a", "a"]'), "named twice"),
        (('scope = "temporal"', 'scope = "static"'), "no temporal"),
        (('kind = "binary"', 'kind = "binary"\nclasses = [["a"], ["b"]]'), "all text or all whole"),
        (("bounds = [0, 300]", f"bounds = [0, 1{'0' * 400}]"), "not valid TOML|64 bits"),
        (("resolution = 1", "resolution = 5e-324"), "positive"),
        (("steps = 48", f"steps = {10**18}"), "from 1 to 1,000,000"),
        (('unit = "bpm"', "unit = 3"), "unit is 3"),
        (("format = 1", "format = true"), "format"),
        (('stratify = "died"', 'stratify = "hr"'), "'hr'"),
        (("[grid]", "[gird]"), "gird"),
        (("[grid]", "[grid"), "TOML"),
        (("steps = 48", f"steps = 1{'0' * 5000}"), "not valid TOML|64 bits"),
        (("steps = 48", f"steps = {'[' * 5000}{']' * 5000}"), "nested more than"),
        (('name = "died"', 'name = "died"\nbounds = [nan, inf]'), "two numbers"),
        (('role = "label"', 'role = "order"'), "an order is a number"),
    ],
)  # fmt: skip
def test_each_mistake_is_named(change: tuple[str, str], word: str) -> None:
    assert change[0] in GOOD
    with pytest.raises(TimeDiffError, match=word):
        Schema.from_toml(GOOD.replace(*change))


PRESSURES = GOOD.replace('name = "hr"', 'name = "SBP"') + (
    '[[feature]]\nname = "MAP"\nkind = "continuous"\n'
    '[[feature]]\nname = "age"\nkind = "continuous"\nscope = "static"\n'
    '[[feature]]\nname = "first"\nscope = "static"\nrole = "order"\n'
    '[[relation]]\nhigh = "SBP"\nlow = "MAP"\n'
)


def test_relations_are_read_and_written() -> None:
    schema = Schema.from_toml(PRESSURES)
    assert schema.relations == (Relation("SBP", "MAP"),)
    assert str(schema.relations[0]) == "SBP ≥ MAP"
    assert Schema.from_toml(schema.to_toml()) == schema


def test_a_schema_without_relations_has_the_text_it_always_had() -> None:
    text = Schema.from_toml(GOOD).to_toml()
    assert "relation" not in text
    with_one = Schema.from_toml(PRESSURES)
    assert with_one.to_toml().startswith(replace(with_one, relations=()).to_toml().rstrip("\n"))


def test_a_synthetic_cohort_keeps_the_relations() -> None:
    assert Schema.from_toml(PRESSURES).generated().relations == (Relation("SBP", "MAP"),)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (('low = "MAP"', 'low = "MBP"'), "no feature 'MBP'"),
        (('low = "MAP"', 'low = "SBP"'), "compared with itself"),
        (('low = "MAP"', 'low = "died"'), "'died' is binary; only continuous"),
        (('low = "MAP"', 'low = "age"'), "one is temporal and the other static"),
        (('high = "SBP"\nlow = "MAP"', 'high = "age"\nlow = "first"'), "'first' is the order, which is no measurement"),
        (('low = "MAP"', 'low = "MAP"\nby = 10'), "unknown key 'by'; expected high and low"),
        (('low = "MAP"', ""), "low must be the name of a feature"),
        (('low = "MAP"', "low = 3"), "low must be the name of a feature"),
        (('[[relation]]\nhigh = "SBP"\nlow = "MAP"\n', '[relation]\nhigh = "SBP"\n'), r"\[\[relation\]\] with high"),
        (('low = "MAP"', 'low = "MAP"\n[[relation]]\nhigh = "SBP"\nlow = "MAP"'), "'SBP ≥ MAP' is listed twice"),
    ],
)
def test_each_mistake_of_a_relation_is_named(change: tuple[str, str], words: str) -> None:
    assert change[0] in PRESSURES
    with pytest.raises(TimeDiffError, match=words):
        Schema.from_toml(PRESSURES.replace(*change))


def test_the_time_of_the_event_is_generated_like_any_static_feature() -> None:
    text = GOOD + '[[feature]]\nname = "died_at"\nscope = "static"\nrole = "event_time"\n'
    schema = Schema.from_toml(text)
    assert schema.event_time == Feature("died_at", "continuous", "static", role="event_time")
    assert schema["died_at"].generated
    assert schema.generated().event_time == schema.event_time
    assert Schema.from_toml(schema.to_toml()) == schema
    assert [feature.name for feature in schema.outcomes] == ["died", "died_at"]
    with pytest.raises(TimeDiffError, match="a number of steps"):
        Schema.from_toml(text.replace('role = "event_time"', 'role = "event_time"\nkind = "binary"'))
    with pytest.raises(TimeDiffError, match="only one feature can be the event_time"):
        Schema.from_toml(text + '[[feature]]\nname = "left_at"\nscope = "static"\nrole = "event_time"\n')


def test_a_channel_says_what_its_steps_stand_for() -> None:
    codes = Feature("codes", "binary", step_names=("icd9_4019", "icd10_I10 "))
    schema = Schema((codes,), 3)
    assert Schema.from_toml(schema.to_toml()) == schema
    assert schema.generated()["codes"].step_names == codes.step_names
    assert "step_names" not in Schema((Feature("hr", "continuous"),), 3).to_toml()


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ('step_names = "a"', "step_names must be a list"),
        ("step_names = [1, [2]]", "step_names are texts"),
        ('step_names = ["a", "a"]', "a step is named twice"),
        ('scope = "static"\nstep_names = ["a"]', "step_names are for temporal features"),
    ],
)
def test_each_mistake_of_step_names_is_named(line: str, word: str) -> None:
    text = f'format = 1\ngrid = {{step = "1h", steps = 2}}\n[[feature]]\nname = "c"\nkind = "binary"\n{line}\n'
    with pytest.raises(Problems, match=word):
        Schema.from_toml(text)
