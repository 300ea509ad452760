"""Model card, datasheet and Croissant metadata: what machines and hubs read, checked by their own tools."""

import json
import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from helpers.released import Released
from timediff.data.cohort import Cohort, read_cohort
from timediff.data.schema import Feature, Schema
from timediff.documents import markdown
from timediff.documents.about import About
from timediff.documents.croissant import CORE, RAI, _record_set
from timediff.documents.dossier import dossier
from timediff.runtime.files import sha256

ABOUT = About(
    title='Synthetic stays: "a test"', maker="A. Researcher", organisation="A hospital", license="CC-BY-4.0",
    url="https://example.org/stays", citation="A. Researcher, 2026", source="A ward, 2020 to 2024",
)  # fmt: skip
GEBRU = [
    "Motivation",
    "Composition",
    "Collection process",
    "Preprocessing, cleaning, labelling",
    "Uses",
    "Distribution",
    "Maintenance",
]


@pytest.fixture(scope="module")
def written(release: Released, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("documents") / "out"
    dossier(out, **release.given(results="results"), audit=release.home / "audit", about=ABOUT)
    return out


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the libraries it stands on
def test_mlcroissant_validates_the_metadata_and_reads_the_stays_by_it(
    written: Path, release: Released, tmp_path: Path
) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    shutil.copytree(release.home / "synthetic", tmp_path / "published")
    shutil.copy(written / "croissant.json", tmp_path / "published")
    read = mlcroissant.Dataset(tmp_path / "published" / "croissant.json")
    assert list(read.metadata.ctx.issues.errors) == list(read.metadata.ctx.issues.warnings) == []
    cohort = read_cohort(release.home / "synthetic")
    first = list(islice(read.records("series"), cohort.schema.steps))
    rates = [np.nan if row["series/heart_rate"] is None else row["series/heart_rate"] for row in first]
    assert np.array_equal(rates, cohort.series["heart_rate"][0], equal_nan=True)
    assert sum(1 for _ in read.records("static")) == len(cohort)


def test_the_metadata_name_every_file_and_column_by_its_hash(written: Path, release: Released) -> None:
    table = json.loads((written / "croissant.json").read_text())
    assert table["conformsTo"] == [CORE, RAI]
    folder = release.home / "synthetic"
    assert {one["name"]: one["sha256"] for one in table["distribution"]} == {
        name: sha256(folder / name) for name in ("series.parquet", "static.parquet", "schema.toml", "provenance.json")
    }
    series, static = table["recordSet"]
    schema = read_cohort(folder).schema
    assert [one["name"] for one in series["field"]] == ["stay_id", "step", *(f.name for f in schema.temporal)]
    assert [one["name"] for one in static["field"]] == ["stay_id", *(f.name for f in schema.static)]
    for one, keys in ((series, ["stay_id", "step"]), (static, ["stay_id"])):
        ids = {field["@id"]: field["name"] for field in one["field"]}
        assert [ids[key["@id"]] for key in one["key"]] == keys
    assert table["creator"] == [
        {"@type": "sc:Person", "name": ABOUT.maker},
        {"@type": "sc:Organization", "name": ABOUT.organisation},
    ]
    responsible = {key for key in table if key.startswith("rai:")}
    assert {"rai:dataLimitations", "rai:personalSensitiveInformation", "rai:dataUseCases"} <= responsible


def test_ids_of_columns_are_one_of_a_kind_whatever_their_names() -> None:
    names = ("a/b", "a b", "a%2Fb", "ä", "#", '"')
    schema = Schema(tuple(Feature(name, "continuous") for name in names), 2)
    cohort = Cohort(schema, np.arange(2), {name: np.zeros((2, 2)) for name in names}, {})
    found = _record_set("series", cohort.tables()[0].schema, schema)
    ids = [one["@id"] for one in found["field"]]
    assert len(set(ids)) == len(names) + 2
    assert all(part.isascii() and not set(part) & set('/ #"') for part in (one.partition("/")[2] for one in ids))
    assert [one["source"]["extract"]["column"] for one in found["field"]][2:] == list(names)


def test_the_card_s_head_is_yaml_and_says_what_the_json_says(written: Path) -> None:
    text, table = (written / "model_card.md").read_text(), json.loads((written / "model_card.json").read_text())
    _, head, body = text.split("---\n", 2)
    assert yaml.safe_load(head) == table["head"]
    assert table["head"]["library_name"] == "timediff"
    metrics: list[dict[str, Any]] = table["head"]["model-index"][0]["results"][0]["metrics"]
    assert {one["type"] for one in metrics} == {"copies", "near_copies", "fidelity"}
    assert len(table["evaluation"]["scores"]) == len(metrics)
    for sentence in (one["sentence"] for one in table["evaluation"]["answers"].values()):
        assert markdown.escaped(sentence) in body


def test_the_datasheet_has_the_headings_of_its_paper(written: Path) -> None:
    lines = (written / "datasheet.md").read_text().splitlines()
    assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == GEBRU
    assert "- **By whom**: A. Researcher" in lines
    assert f"- **Funded by**: {markdown.BLANK}" in lines


@pytest.mark.parametrize("text", ["# a", "a|b", "*b*", "<i>", "[a](b)", "`a`", "a\n\nb", "\\", "_a_", "&lt;", "$x$"])
def test_no_text_is_markup(text: str) -> None:
    found = markdown.escaped(text)
    assert "\n" not in found
    assert "<" not in found
    for mark in "#|*[`_$":
        assert found.count(mark) == found.count(f"\\{mark}")
