"""Metadata of a dataset folder in Croissant (mlcommons.org/croissant/1.1), responsible-AI fields included."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
from pathlib import Path
from typing import TypedDict

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.builder_scripts.dataset.columns import COLUMNS
from seesaw_cf.builder_scripts.dataset.rai import RAI
from seesaw_cf.checks import shown
from seesaw_cf.citations import bibtex
from seesaw_cf.errors import RecordError
from seesaw_cf.io.text import read_json

_CONTEXT = {
    "@language": "en", "@vocab": "https://schema.org/", "sc": "https://schema.org/", "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/", "dct": "http://purl.org/dc/terms/", "conformsTo": "dct:conformsTo",
    "citeAs": "cr:citeAs", "column": "cr:column", "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"}, "examples": {"@id": "cr:examples", "@type": "@json"},
    "extract": "cr:extract", "field": "cr:field", "fileObject": "cr:fileObject", "fileProperty": "cr:fileProperty",
    "fileSet": "cr:fileSet", "format": "cr:format", "includes": "cr:includes", "isLiveDataset": "cr:isLiveDataset",
    "jsonPath": "cr:jsonPath", "key": "cr:key", "md5": "cr:md5", "parentField": "cr:parentField", "path": "cr:path",
    "recordSet": "cr:recordSet", "references": "cr:references", "regex": "cr:regex", "repeated": "cr:repeated",
    "replace": "cr:replace", "separator": "cr:separator", "source": "cr:source", "subField": "cr:subField",
    "transform": "cr:transform",
}  # fmt: skip
_TYPES = {pa.types.is_string: "sc:Text", pa.types.is_boolean: "sc:Boolean", pa.types.is_floating: "sc:Float"}


class CardData(TypedDict, total=False):
    """What is read of the YAML of a data set's card."""

    pretty_name: str
    license: str
    tags: list[str]
    configs: list[dict[str, str]]


def _field(config: str, parent: str, field: pa.Field, meaning: str) -> dict[str, object]:
    """One column; records become sub-fields, lists are repeated."""
    kind, repeated = field.type, pa.types.is_list(field.type)
    kind = kind.value_type if repeated else kind
    name = f"{parent}/{field.name}"
    entry: dict[str, object] = {"@type": "cr:Field", "@id": name, "name": name, "description": meaning}
    entry |= {"repeated": True} if repeated else {}
    if pa.types.is_struct(kind):
        inner = (kind.field(index) for index in range(kind.num_fields))
        return entry | {"subField": [_field(config, name, part, f"{part.name} of {field.name}") for part in inner]}
    data_type = next((word for test, word in _TYPES.items() if test(kind)), "sc:Integer")
    if parent != config:  # a column inside a record: readers find it by the path in the parent's column
        return entry | {"dataType": data_type}
    source = {"fileSet": {"@id": f"{config}-files"}, "extract": {"column": field.name}}
    return entry | {"dataType": data_type, "source": source}


def _file(root: Path, file: Path, base: str) -> dict[str, object]:
    name = file.relative_to(root).as_posix()
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": f"{base}/{name}",
        "encodingFormat": "application/x-parquet",
        "contentSize": f"{file.stat().st_size} B",
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
    }


def _set(root: Path, config: str, files: list[Path]) -> dict[str, object]:
    """Return all files of one config."""
    return {
        "@type": "cr:FileSet",
        "@id": f"{config}-files",
        "containedIn": [{"@id": file.relative_to(root).as_posix()} for file in files],
        "encodingFormat": "application/x-parquet",
        "includes": f"data/{config}/*.parquet",
    }


def _records(config: str, schema: pa.Schema) -> dict[str, object]:
    meanings = COLUMNS.get(config, {})
    fields = [_field(config, config, field, meanings.get(field.name, field.name)) for field in schema]
    return {"@type": "cr:RecordSet", "@id": config, "name": config, "field": fields}


def _published(record: Path) -> dict[str, str]:
    day = read_json(record, error=RecordError).get("date") if record.exists() else None
    if day is None:
        return {}
    try:
        return {"datePublished": datetime.date.fromisoformat(day).isoformat()}
    except (TypeError, ValueError) as error:
        raise RecordError(f"{record}: date is {shown(day)}, expected YYYY-MM-DD. Build the folder again.") from error


def croissant(folder: str | os.PathLike[str], repo: str, version: str, metadata: CardData) -> str:
    """Describe every file and column of a dataset folder.

    Args:
        folder: With `data/<config>/*.parquet`.
        repo: ORG/NAME on the Hub.
        version: "major.minor.patch".
        metadata: Of the card: pretty_name, license, tags.

    Returns:
        JSON-LD; the same for the same folder. `datePublished` is the date in its `build.json`, the day on which the
        source had these facts; left out where that is not known.

    Raises:
        RecordError: `build.json` is damaged, or its date is none.
    """
    root, base = Path(folder), f"https://huggingface.co/datasets/{repo}"
    configs: dict[str, list[Path]] = {}
    for file in sorted((root / "data").glob("*/*.parquet")):
        configs.setdefault(file.parent.name, []).append(file)
    files = [_file(root, file, f"{base}/resolve/v{version}") for paths in configs.values() for file in paths]
    sets = [_set(root, name, paths) for name, paths in configs.items()]
    records = [_records(name, pq.read_schema(paths[0])) for name, paths in configs.items()]
    described = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.1",
        "name": repo.split("/")[-1],
        "description": metadata.get("pretty_name", repo),
        "citeAs": bibtex("seesaw_cf"),
        "license": metadata.get("license", ""),
        "keywords": list(metadata.get("tags") or []),
        "url": base,
        "version": version,
        **_published(root / "build.json"),
        "distribution": [*files, *sets],
        "recordSet": records,
        **{f"rai:{name}": text for name, text in RAI.items()},
    }
    return json.dumps(described, indent=1, ensure_ascii=False) + "\n"
