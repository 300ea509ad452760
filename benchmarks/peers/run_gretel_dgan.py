"""gretel-synthetics' DGAN: a GAN of series, with age, sex and death as attributes.

    pip install torch==2.13.0 numpy==1.26.4 'pandas<3' 'pyarrow<21' scikit-learn category_encoders
    pip install --no-deps gretel-synthetics==0.22.20
    python benchmarks/peers/run_gretel_dgan.py DATA OUT.parquet

Its own requirements pin a SDV and a sentencepiece of 2023, which its DGAN does not need, hence --no-deps. It
interpolates nulls, and refuses a series of which more than half are nulls: so nulls are filled first, and none come
out. Settings are its defaults (400 epochs), but for batches of 100 and six hours a step of its RNN.
"""

import common
import numpy as np
import pandas as pd
import torch
from gretel_synthetics.timeseries_dgan.config import DGANConfig, OutputType
from gretel_synthetics.timeseries_dgan.dgan import DGAN


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--epochs", type=int, default=400, help="fewer, to see that the script works")
    arguments = parser.parse_args()
    common.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    train = common.read(arguments)
    features, first = train.filled, train.first
    attributes = np.column_stack([first.Age, first.Gender == "M", first.iloc[:, -1]]).astype(np.float64)
    config = DGANConfig(
        max_sequence_len=train.hours,
        sample_len=6,
        batch_size=min(100, len(features)),
        epochs=arguments.epochs,
        cuda=False,
    )

    def fit() -> DGAN:
        model = DGAN(config)
        kinds = [OutputType.CONTINUOUS, OutputType.DISCRETE, OutputType.DISCRETE]
        model.train_numpy(features=features, attributes=attributes, attribute_types=kinds)
        return model

    def sample(model: DGAN) -> pd.DataFrame:
        return train.as_table(np.asarray(model.generate_numpy(len(features))[1]))

    common.run("gretel DGAN", arguments, train, fit, sample)


if __name__ == "__main__":
    main()
