"""Croissant 1.1 metadata of the synthetic cohort, with the vocabulary for responsible AI (RAI 1.0), as JSON-LD.

Files are named as they lie in the cohort's folder: who publishes it puts croissant.json beside them.
"""

from typing import Any
from urllib.parse import quote

import pyarrow as pa

from timediff.data.schema import Feature, Schema
from timediff.documents.answers import NO_USES, RESIDUAL, USES, answers, described, limits
from timediff.documents.known import Known, ReleasedFile

CORE, RAI = "http://mlcommons.org/croissant/1.1", "http://mlcommons.org/croissant/RAI/1.0"
TERMS = (
    "arrayShape citeAs column containedIn equivalentProperty extract field fileProperty fileObject fileSet format "
    "includes isArray isLiveDataset jsonPath key md5 parentField path recordSet references regex repeated replace "
    "samplingRate separator source subField transform"
)  # of Croissant itself
CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "name": {"@container": "@language"},
    "description": {"@container": "@language"},
} | {term: f"cr:{term}" for term in TERMS.split()}
COLUMNS = {"stay_id": "Which stay.", "step": "Which step of the grid, from 0.", "length": "Steps of the stay."}
ABOUT = {"series": "One row a stay and step.", "static": "One row a stay."}


def croissant(known: Known) -> dict[str, Any]:
    about, made = known.about, known.provenance
    series, static = known.synthetic.tables()
    tables = {f.name: f for f in known.files}
    found: dict[str, Any] = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": [CORE, RAI],
        "name": known.title,
        "description": described(known),
        "version": about.version,
        "keywords": ["synthetic data", "intensive care", "electronic health records", "time series"],
        "dateCreated": made.date or known.date,
        "datePublished": known.date,
        "inLanguage": "en",
        "isLiveDataset": False,
        "distribution": [_file(one) for one in known.files],
        "recordSet": [
            _record_set(name, table.schema, known.synthetic.schema)
            for name, table in (("series", series), ("static", static))
            if f"{name}.parquet" in tables
        ],
    }
    given = {"license": about.license, "url": about.url, "citeAs": about.citation}
    found |= {name: said for name, said in given.items() if said}
    who = [("sc:Person", about.maker), ("sc:Organization", about.organisation)]
    if creators := [{"@type": kind, "name": name} for kind, name in who if name]:
        found["creator"] = creators
    return found | _responsible(known)


def _responsible(known: Known) -> dict[str, Any]:
    """How it was made, what it is good for, and whom it could expose."""
    about = known.about
    source = f" Source of the real stays: {about.source}." if about.source else ""
    answered = [f"{one.question} {one.sentence}" for one in answers(known)]
    return {
        "rai:dataCollection": f"Sampled from a model, not collected from patients. {described(known)}{source}",
        "rai:dataCollectionType": ["Others"],
        "rai:dataCollectionMissingData": "Missing values are generated too: null is a measurement that was not taken.",
        "rai:dataPreprocessingProtocol": [
            f"Real stays on a grid of {known.train.schema.steps} steps of {known.train.schema.step}; {known.split}.",
        ],
        "rai:dataUseCases": [about.uses] if about.uses else list(USES),
        "rai:dataLimitations": [*limits(known), *(f"Not for: {one}." for one in NO_USES)],
        "rai:dataBiases": [
            f"It repeats the biases of the real stays that the model was trained on.{source}",
            "Seldom kinds of patients may be missing or wrong.",
        ],
        "rai:personalSensitiveInformation": [
            "Health data, made by a model from what it learned of real patients.",
            *answered[2:],
            *RESIDUAL,
        ],
        "rai:dataSocialImpact": " ".join(answered[:2]),
        "rai:dataReleaseMaintenancePlan": about.expires or "Not stated.",
    }


def _file(one: ReleasedFile) -> dict[str, Any]:
    return {
        "@type": "cr:FileObject",
        "@id": one.name,
        "name": one.name,
        "contentUrl": one.name,
        "contentSize": f"{one.size} B",
        "encodingFormat": list(one.kinds),
        "sha256": one.sha256,
    }


def _record_set(name: str, columns: pa.Schema, schema: Schema) -> dict[str, Any]:
    keys = ["stay_id", "step"] if name == "series" else ["stay_id"]
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": ABOUT[name],
        "key": [{"@id": f"{name}/{key}"} for key in keys],
        "field": [_field(name, column, schema) for column in columns],
    }


def _field(name: str, column: pa.Field, schema: Schema) -> dict[str, Any]:
    """A column; its id is quoted, since a feature's name may be any text."""
    features = {feature.name: feature for feature in schema.features}
    about = _described(features[column.name]) if column.name in features else COLUMNS.get(column.name, "")
    return {
        "@type": "cr:Field",
        "@id": f"{name}/{quote(column.name, safe='')}",
        "name": column.name,
        "description": about,
        "dataType": _type(column.type),
        "source": {"fileObject": {"@id": f"{name}.parquet"}, "extract": {"column": column.name}},
    }


def _described(feature: Feature) -> str:
    classes = f": {', '.join(map(str, feature.classes))}" if feature.discrete else ""
    unit = f", in {feature.unit}" if feature.unit else ""
    role = f", the {feature.role}" if feature.role else ""
    return f"{feature.kind}{role}{unit}{classes}"


def _type(kind: pa.DataType) -> str:
    if pa.types.is_boolean(kind):
        return "sc:Boolean"
    if pa.types.is_integer(kind):
        return "sc:Integer"
    return "sc:Float" if pa.types.is_floating(kind) else "sc:Text"
