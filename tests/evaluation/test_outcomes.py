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


def test_distances_of_the_paper_see_it_as_they_see_the_label_and_its_classifiers_see_neither() -> None:
    view = View.fit(COHORT, "paper")
    assert {"died", "died_at"} <= {channel.feature for channel in view.channels}
    assert not {"died", "died_at"} & {channel.feature for channel in view.unlabelled.channels}
