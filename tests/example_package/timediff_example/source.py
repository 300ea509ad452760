"""A source: a CSV file with one row a step (stay, step, value)."""

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from timediff.data.cohort import Cohort
from timediff.data.schema import Feature, Schema
from timediff.runtime.progress import Progress, silent
from timediff.sources.base import Source
from timediff.sources.extraction import Extraction


@dataclass(frozen=True)
class ExampleCSVSettings:
    feature: str = "pulse"
    steps: int = 4


class ExampleCSV(Source[ExampleCSVSettings]):
    settings = ExampleCSVSettings

    def extract(self, source: str, settings: ExampleCSVSettings, progress: Progress = silent) -> Extraction:
        with Path(source).open() as file:
            rows = list(csv.DictReader(file))
        stays = sorted({int(row["stay"]) for row in rows})
        values = np.full((len(stays), settings.steps), np.nan)
        for row in rows:
            if int(row["step"]) < settings.steps:
                values[stays.index(int(row["stay"])), int(row["step"])] = float(row["value"])
        schema = Schema((Feature(settings.feature, "continuous"),), settings.steps)
        return Extraction(Cohort(schema, np.array(stays), {settings.feature: values}, {}), len(stays), {})
