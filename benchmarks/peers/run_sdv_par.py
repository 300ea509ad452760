"""SDV's PAR: one table of sequences, with age, sex and death as context columns.

    pip install torch==2.13.0 sdv==2.0.0 pyarrow
    python benchmarks/peers/run_sdv_par.py DATA OUT.parquet

Default settings (128 epochs); 48 hours are asked for. Nulls go in and come out. PAR has no seed of its own: --seed
sets those of PyTorch and NumPy.
"""

import common
import pandas as pd
import torch
from sdv.metadata import Metadata
from sdv.sequential import PARSynthesizer


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--epochs", type=int, default=128, help="fewer, to see that the script works")
    arguments = parser.parse_args()
    common.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    train = common.read(arguments)
    numbers = [*train.vitals, "Age"]
    kinds = {name: {"sdtype": "numerical"} for name in [*numbers, "hour"]}
    kinds |= {name: {"sdtype": "categorical"} for name in train.static if name != "Age"} | {
        "RecordID": {"sdtype": "id"}
    }
    metadata = Metadata.load_from_dict(
        {"tables": {"hours": {"columns": kinds, "sequence_key": "RecordID", "sequence_index": "hour"}}}
    )
    table = train.table[list(kinds)].astype(dict.fromkeys(numbers, "float64"))

    def fit() -> PARSynthesizer:
        model = PARSynthesizer(metadata, context_columns=train.static, epochs=arguments.epochs, cuda=False)
        model.fit({"hours": table})
        return model

    def sample(model: PARSynthesizer) -> pd.DataFrame:
        made = model.sample_sequences(num_sequences=len(train), sequence_length=train.hours)
        return next(iter(made.values())) if isinstance(made, dict) else made

    common.run("SDV PAR", arguments, train, fit, sample)


if __name__ == "__main__":
    main()
