"""MOSTLY AI in local mode: a table of stays and, linked to it, one of their hours.

    pip install torch==2.13.0 'mostlyai[local]==6.2.0' mostlyai-engine==2.7.3 mostlyai-qa==1.10.11
    pip uninstall torchvision torchaudio    # where PyTorch is a CPU build: theirs are not, and then nothing imports
    python benchmarks/peers/run_mostlyai.py DATA OUT.parquet [--flexible-generation-off] [--home FOLDER]

Default settings, as its documentation shows for a sequential data set. It recommends flexible generation off for
accuracy, so both are measured. Reports are left out of the time; --reports makes them.
Nulls go in and come out. Infinite values end in "invalid literal for int()" without a column's name, and training does
not raise; rows of an unknown stay vanish without a word; eight stays train silently.
"""

import tempfile
from pathlib import Path
from typing import Any

import common
import pandas as pd
import torch
from mostlyai.sdk import MostlyAI


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--flexible-generation-off", action="store_true")
    parser.add_argument("--reports", action="store_true")
    parser.add_argument("--home", type=Path, help="where the tool keeps its models; a temporary folder unless given")
    parser.add_argument("--epochs", type=int, help="at most, to see that the script works")
    arguments = parser.parse_args()
    common.seed(arguments.seed)
    torch.manual_seed(arguments.seed)
    train = common.read(arguments)
    stays, hours = train.first.reset_index(), train.table[["RecordID", "hour", *train.vitals]]
    settings: dict[str, Any] = {"enable_model_report": arguments.reports}
    if arguments.flexible_generation_off:
        settings["enable_flexible_generation"] = False
    if arguments.epochs:
        settings["max_epochs"] = arguments.epochs
    link = {"column": "RecordID", "referenced_table": "stays", "is_context": True}
    tables = [
        {"name": "stays", "data": stays, "primary_key": "RecordID", "tabular_model_configuration": settings},
        {"name": "hours", "data": hours, "foreign_keys": [link], "tabular_model_configuration": settings},
    ]
    with tempfile.TemporaryDirectory() as scratch:
        tool = MostlyAI(local=True, local_dir=arguments.home or scratch, quiet=True)

        def fit() -> Any:
            return tool.train(config={"name": "peers", "tables": tables}, progress_bar=False)

        def sample(model: Any) -> pd.DataFrame:
            made = tool.generate(model, size=len(stays), progress_bar=False).data()["hours"]
            return made.sort_values(["RecordID", "hour"], kind="stable")

        name = "MOSTLY AI, flexible generation off" if arguments.flexible_generation_off else "MOSTLY AI"
        common.run(name, arguments, train, fit, sample)


if __name__ == "__main__":
    main()
