"""TimeDiff: the preset `fast`, or another one.

    pip install --constraint constraints.txt '.[evaluate]'    # from the repository
    python benchmarks/peers/run_timediff.py DATA OUT.parquet [--preset fast] [--set KEY=VALUE …]

Nulls go in and come out. Infinite values and every other mistake in a cohort are refused by name before training.
"""

import common
import numpy as np
import pandas as pd
import torch

from timediff import Cohort, Feature, Schema, TimeDiff, __version__
from timediff.settings.resolve import parse_assignment

RESOLUTIONS = {"GCS": 1.0}


def as_cohort(stays: common.Stays) -> Cohort:
    first, label = stays.first, stays.static[-1]
    features = [Feature(name, "continuous", "temporal", resolution=RESOLUTIONS.get(name)) for name in stays.vitals]
    features += [
        Feature("Age", "continuous", "static", resolution=None if (first.Age % 1).any() else 1.0),
        Feature("Gender", "binary", "static", classes=("F", "M")),
        Feature(label, "binary", "static", role="label", classes=(0, 1)),
    ]
    static = {"Age": first.Age, "Gender": first.Gender == "M", label: first[label]}
    return Cohort(
        Schema(tuple(features), stays.hours),
        np.arange(len(first)),
        dict(zip(stays.vitals, np.moveaxis(stays.series, -1, 0), strict=True)),
        {name: column.to_numpy(np.float64) for name, column in static.items()},
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--preset", default="fast")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    stays = common.read(arguments)
    train = as_cohort(stays)
    model = TimeDiff(arguments.preset, assignments=dict(map(parse_assignment, arguments.set)))

    def sample(fitted: TimeDiff) -> pd.DataFrame:
        made = fitted.sample(len(train), seed=arguments.seed + 1)
        return stays.as_table(np.stack([made.series[name] for name in stays.vitals], axis=-1))

    facts = {"version": __version__, "seed": arguments.seed, "threads": arguments.threads}
    common.run("TimeDiff", arguments, stays, lambda: model.fit(train, seed=arguments.seed), sample, **facts)


if __name__ == "__main__":
    main()
