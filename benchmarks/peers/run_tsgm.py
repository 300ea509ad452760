"""tsgm's BetaVAE with the convolutional encoder and decoder of its zoo.

    pip install torch==2.13.0 'tsgm[torch]==0.1.0' 'pandas<3' pyarrow
    KERAS_BACKEND=torch python benchmarks/peers/run_tsgm.py DATA OUT.parquet

As its tutorial does: each feature scaled, vae_conv5 with ten latent dimensions, Adam, 100 epochs in batches of 64. A
null in the data makes all that it generates NaN, without an error, so nulls are filled first; none come out. Static
columns are left out.
"""

import os

os.environ.setdefault("KERAS_BACKEND", "torch")

import common
import keras
import numpy as np
import pandas as pd
import tsgm

LATENT, BATCH = 10, 64


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--epochs", type=int, default=100, help="fewer, to see that the script works")
    arguments = parser.parse_args()
    common.seed(arguments.seed)
    keras.utils.set_random_seed(arguments.seed)
    train = common.read(arguments)
    values = train.filled
    scaler = tsgm.utils.TSFeatureWiseScaler()
    scaled = scaler.fit_transform(values).astype(np.float32)

    def fit() -> keras.Model:
        parts = tsgm.models.zoo["vae_conv5"](train.hours, len(train.vitals), LATENT)
        model = tsgm.models.cvae.BetaVAE(parts.encoder, parts.decoder)
        model.compile(optimizer=keras.optimizers.Adam())
        model.fit(scaled, epochs=arguments.epochs, batch_size=BATCH, verbose=0)
        return model

    def sample(model: keras.Model) -> pd.DataFrame:
        made = keras.ops.convert_to_numpy(model.generate(len(values)))
        return train.as_table(scaler.inverse_transform(made))

    common.run("tsgm BetaVAE", arguments, train, fit, sample)


if __name__ == "__main__":
    main()
