"""GenTS's TimeVAE and DDPM: one model a run.

    git clone https://github.com/WillWang1113/GenTS    # not on PyPI: the package of that name is another one
    pip install torch==2.13.0 -r GenTS/requirements.txt -e GenTS pandas pyarrow
    python benchmarks/peers/run_gents.py DATA OUT.parquet --model timevae
    python benchmarks/peers/run_gents.py DATA OUT.parquet --model ddpm

Default settings of the models and the 100 epochs in batches of 64 of its quick start. A null in the data ends in an
AssertionError without a text, so nulls are filled first, and values are standardised; none come out. Static columns are
left out.
"""

import common
import numpy as np
import pandas as pd
import torch
from gents.dataset.base import TSDataset
from gents.model import TimeVAE, VanillaDDPM
from lightning import Trainer
from torch.utils.data import DataLoader

MODELS = {"timevae": ("GenTS TimeVAE", TimeVAE), "ddpm": ("GenTS DDPM", VanillaDDPM)}
BATCH = 64
AT_ONCE = 100  # stays that are sampled


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--model", choices=MODELS, required=True)
    parser.add_argument("--epochs", type=int, default=100, help="fewer, to see that the script works")
    arguments = parser.parse_args()
    common.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    train = common.read(arguments)
    values = train.filled
    mean, std = values.mean((0, 1)), values.std((0, 1))
    data = TSDataset(torch.tensor((values - mean) / std, dtype=torch.float32))
    name, kind = MODELS[arguments.model]

    def fit() -> torch.nn.Module:
        model = kind(seq_len=train.hours, seq_dim=len(train.vitals))
        trainer = Trainer(max_epochs=arguments.epochs, accelerator="cpu", logger=False, enable_checkpointing=False)
        trainer.fit(model, DataLoader(data, batch_size=BATCH, shuffle=True))
        return model

    def sample(model: torch.nn.Module) -> pd.DataFrame:
        counts = [min(AT_ONCE, len(values) - first) for first in range(0, len(values), AT_ONCE)]
        made = np.concatenate([model.sample(n_sample=count).cpu().numpy() for count in counts])
        return train.as_table(made * std + mean)

    common.run(name, arguments, train, fit, sample)


if __name__ == "__main__":
    main()
