"""The phases of TimeGAN and of latent forcing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.small_baselines import baseline
from timediff.data.codec import Codec
from timediff.data.cohort import Cohort


@pytest.mark.parametrize("name", ["timegan", "latent-forcing"])
@given(updates=st.integers(1, 300), embedding=st.floats(0, 0.99), fraction=st.floats(0, 1))
def test_in_the_last_updates_all_are_trained(
    name: str, updates: int, embedding: float, fraction: float, mixed: Cohort
) -> None:
    supervised = (0.999 - embedding) * fraction
    model = baseline(name, training__steps=updates, phases__embedding=embedding, phases__supervised=supervised)
    objectives = model.objectives(Codec.fit(mixed, model.settings.codec))
    assert [one.name for one in objectives if one.active(updates - 1)] == ["generator", "embedder", "discriminator"]
    assert all(any(one.active(step) for one in objectives) for step in range(updates))
    initialising = [one for one in objectives if one.initialise and any(one.active(step) for step in range(updates))]
    assert len(initialising) == (name == "latent-forcing")
