"""Generators and presets by name."""

import re
from importlib import resources

import pytest

from helpers.small_baselines import BASELINES, PUBLISHED
from helpers.small_generators import OURS
from timediff.errors import TimeDiffError
from timediff.generators.registry import GENERATORS, choose, generator
from timediff.settings.resolve import generator_of, presets


def test_an_unknown_generator_lists_the_known() -> None:
    with pytest.raises(TimeDiffError, match=r"did you mean timegan\? The generators are timediff, timegan"):
        generator("timegan2")


def test_every_generator_is_found_by_its_own_name() -> None:
    assert set(OURS) == {"timediff", "halo", *BASELINES}
    for name in OURS:
        assert GENERATORS(name).name == name
        assert generator(name) is GENERATORS(name)


def test_every_generator_has_a_preset_of_its_own() -> None:
    for name in OURS:
        preset = GENERATORS(name).preset
        assert preset is not None
        assert generator_of(preset) == name
        assert choose(name, None) == (name, preset)
        assert choose(None, preset) == (name, preset)
    assert choose(None, None) == ("timediff", "fast")
    assert set(presets()) >= {*BASELINES, *PUBLISHED}


@pytest.mark.parametrize("name", [*BASELINES, *PUBLISHED])
def test_the_preset_of_a_baseline_names_its_source_and_what_to_expect(name: str) -> None:
    text = (resources.files("timediff.settings") / "presets" / f"{name}.toml").read_text()
    heading = text.partition("generator =")[0]
    assert re.search(r"^# .*(20\d\d|from)", heading, re.MULTILINE)
    assert "To expect, discriminative score of Stocks and Energy: " in heading


def test_a_preset_of_another_generator_is_refused() -> None:
    with pytest.raises(TimeDiffError, match="'fast' is for the generator timediff, not for timegan"):
        choose("timegan", "fast")
    with pytest.raises(TimeDiffError, match="another generator"):
        generator("timegan")("fast")
