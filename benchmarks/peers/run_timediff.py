"""TimeDiff: the preset `fast`.

    pip install --constraint constraints.txt '.[evaluate]'    # from the repository
    python benchmarks/peers/run_timediff.py DATA OUT.parquet [--set KEY=VALUE …]

Nulls go in and come out. Infinite values and every other mistake in a cohort are refused by name before training.
"""

import common
import numpy as np
import pandas as pd
import torch

from timediff import Cohort, Feature, Schema, TimeDiff, __version__
from timediff.settings.resolve import parse_assignment


def as_cohort(table: pd.DataFrame) -> Cohort:
    first = table.groupby("RecordID").first()
    features = [
        Feature(name, "continuous", "temporal", resolution=1.0 if name == "GCS" else None) for name in common.VITALS
    ]
    features += [
        Feature("Age", "continuous", "static", resolution=1.0),
        Feature("Gender", "binary", "static", classes=("F", "M")),
        Feature("died", "binary", "static", role="label", classes=(0, 1)),
    ]
    static = {"Age": first.Age, "Gender": first.Gender == "M", "died": first.died}
    return Cohort(
        Schema(tuple(features), common.HOURS),
        np.arange(len(first)),
        {name: table[name].to_numpy(np.float64).reshape(-1, common.HOURS) for name in common.VITALS},
        {name: column.to_numpy(np.float64) for name, column in static.items()},
    )


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    train = as_cohort(common.read(arguments))
    model = TimeDiff("fast", assignments=dict(map(parse_assignment, arguments.set)))

    def sample(fitted: TimeDiff) -> pd.DataFrame:
        made = fitted.sample(len(train), seed=arguments.seed + 1)
        return common.as_table(np.stack([made.series[name] for name in common.VITALS], axis=-1))

    facts = {"version": __version__, "seed": arguments.seed, "threads": arguments.threads}
    common.run("TimeDiff", arguments, len(train), lambda: model.fit(train, seed=arguments.seed), sample, **facts)


if __name__ == "__main__":
    main()
