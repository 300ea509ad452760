"""What is known only at the end of a stay is not shown to what predicts the label."""

from dataclasses import replace

import numpy as np
import pytest

from timediff.data.schema import Feature
from timediff.evaluation.inputs.summaries import Inputs, static_columns
from timediff.evaluation.inputs.view import Protocol, View
from timediff.sources.simulated import simulate

plain = simulate(60, steps=4, seed=0)
TIME = Feature("died_at", "continuous", "static", role="event_time")
times = np.where(plain.label == 1, 3.0, np.nan)
COHORT = replace(
    plain,
    schema=replace(plain.schema, features=(*plain.schema.features, TIME)),
    static={**plain.static, "died_at": times},
)


@pytest.mark.parametrize("protocol", ["paper", "strict"])
def test_a_classifier_of_the_label_does_not_see_when_the_event_came(protocol: Protocol) -> None:
    for kind in ("flattened", "summary"):
        rows = Inputs.fit(COHORT, kind, protocol).of(COHORT)
        np.testing.assert_array_equal(rows, Inputs.fit(plain, kind, protocol).of(plain))
    assert "died_at" not in static_columns(COHORT, COHORT.schema)[1]


def test_the_paper_s_discriminator_sees_it_as_it_sees_the_label() -> None:
    seen = {channel.feature for channel in View.fit(COHORT, "paper").channels}
    assert {"died", "died_at"} <= seen
