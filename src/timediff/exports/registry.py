"""Exports by name: what `timediff export --to NAME` looks up."""

from timediff.exports.base import Export
from timediff.runtime.registry import Registry

EXPORTS: Registry[type[Export]] = Registry(
    "export",
    "timediff.exports",
    {
        "csv": "timediff.exports.csv:CSV",
        "csv.gz": "timediff.exports.csv:GzippedCSV",
        "parquet-wide": "timediff.exports.wide:WideParquet",
        "parquet-long": "timediff.exports.long:LongParquet",
        "meds": "timediff.exports.meds:MEDSEvents",
        "xlsx": "timediff.exports.xlsx:XLSX",
    },
)
