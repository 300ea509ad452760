"""Simulated databases read with the standard library alone, for plain readings of extraction's rules."""

import csv
import gzip
from collections import defaultdict
from datetime import datetime

# variable, items, lower limit, upper limit; a value lies strictly between them, but saturation may be 100
MIMIC4_ITEMS = (
    ("heart_rate", {220045}, 0, 300),
    ("sbp", {220179, 220050, 225309}, 0, 400),
    ("dbp", {220180, 220051, 225310}, 0, 300),
    ("resp_rate", {220210, 224690}, 0, 70),
    ("spo2", {220277}, 0, 100.001),
)
EICU_COLUMNS = {"heartrate": "heart_rate", "respiration": "resp_rate", "sao2": "spo2", "systemicmean": "mbp"}


class Tables:
    """One simulated database, read with the standard library."""

    def __init__(self, folder):
        self.folder, self.read = folder, {}

    def __getitem__(self, name):
        if name not in self.read:
            with gzip.open(self.folder / "raw" / f"{name}.csv.gz", "rt", newline="") as file:
                self.read[name] = list(csv.DictReader(file))
        return self.read[name]


def charted(rows, stay, rules, forget):
    """The valid measurements of each stay: (time, variable, value)."""
    found = defaultdict(list)
    for row in rows:
        item = int(row["itemid"])
        if item == 225309 and forget == "items":
            item = 220179
        for variable, items, low, high in rules:
            if item not in items or row["valuenum"] == "" or (row.get("error") == "1" and forget != "errors"):
                continue
            value = float(row["valuenum"])
            if low < value < high or forget == "limits":
                if variable == "fahrenheit" and forget != "conversion":
                    value = (value - 32) / 1.8
                name = "temperature" if variable == "fahrenheit" else variable
                found[row[stay]].append((datetime.fromisoformat(row["charttime"]), name, value))
    return found
