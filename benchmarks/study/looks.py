"""The declared looks at an editor: which of its finished parts are taken together, at which level."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.study.keep import kept_scores, unpack
from seesaw_cf.base.files import write_text


@dataclass(frozen=True, slots=True)
class Look:
    """Parts of an editor that are analysed as one (docs/study_declared.md, What is tested).

    Attributes:
        records: The files of edits.
        words: What the page calls it.
        alpha: Level of the contrasts of groups; 0: nothing is tested (docs/study_declared_more.md).
    """

    records: tuple[str, ...]
    words: str
    alpha: float

    @property
    def name(self) -> str:
        """Name of the look in the tables."""
        return "+".join(self.records)


MODEL = "smollm2"
"""The model that has several looks."""
LOOKS = (
    Look(("edits1",), "first look, 40 edits at 1 %", 0.01),
    Look(("edits1", "edits2"), "second look, 80 edits at 1.5 %", 0.015),
    Look(("edits1", "edits2", "edits3"), "third look, 400 edits at 2.5 %", 0.025),
)
ONE_LOOK = (Look(("edits1", "edits2"), "the only look, 80 edits at 5 %", 0.05),)
WITH_MORE_EDITS = (
    *ONE_LOOK,
    Look(("edits1", "edits2", "edits4"), "the only look, 80 edits at 5 %, and 20 more edits that test nothing", 0.0),
)
OF_MODEL = {
    MODEL: LOOKS,
    "gemma3-270m": WITH_MORE_EDITS,
    "qwen2.5-0.5b": WITH_MORE_EDITS,
    "smollm2-released": (Look(("released",), "not declared, 40 edits at 5 %", 0.05),),
}
_ORDER = tuple(dict.fromkeys(look.name for looks in (*OF_MODEL.values(), ONE_LOOK) for look in looks))


def looks_at(model: str) -> tuple[Look, ...]:
    """Return the looks at editors of a model."""
    return OF_MODEL.get(model, ONE_LOOK)


def finished_looks(kept: Path) -> Iterator[tuple[str, Look, str, list[Path]]]:
    """Return model, look, editor and kept cells of every look that has all of its parts.

    Args:
        kept: Folder of kept cells, MODEL/RECORDS/EDITOR.
    """
    folders = {file.parent for file in kept.glob("*/*/*/edits.parquet")}
    editors = sorted({(folder.parts[-3], folder.name) for folder in folders})
    for model, editor in editors:
        for look in looks_at(model):
            parts = [kept / model / records / editor for records in look.records]
            if folders.issuperset(parts):
                yield model, look, editor, parts


# What the parts of a look have in common. Libraries may differ: the third files ran on another machine.
_SAME: Mapping[str, Callable[[dict[str, Any]], object]] = {
    "model": lambda manifest: {name: value for name, value in manifest["model"].items() if name != "libraries"},
    "editors": lambda manifest: manifest["editors"],
}

_FLOORS = ("p99", "p99_probability")  # of scoring noise: parts may be of several machines


def join(parts: Sequence[Path], folder: Path) -> Path:
    """Write kept cells of one editor as one run folder, and return it.

    The noise floor is the largest of the parts.

    Args:
        parts: Kept cells that have no edit in common.
        folder: Where to write.

    Raises:
        ValueError: Two parts have an edit in common, or another model or settings.
    """
    if len(parts) == 1:
        return unpack(parts[0], folder)
    manifests = [json.loads((part / "manifest.json").read_text(encoding="utf-8")) for part in parts]
    where = ", ".join(map(str, parts))
    for name, what in _SAME.items():
        if any(what(manifest) != what(manifests[0]) for manifest in manifests):
            raise ValueError(f"{where}: got another {name!r}, expected the same in all parts. Join other parts.")
    read: dict[str, list[pa.Table]] = {
        "scores": [kept_scores(part) for part in parts],
        "edits": [pq.read_table(part / "edits.parquet") for part in parts],
    }
    for name, tables in read.items():
        ids = [set(table["case_id"].to_pylist()) for table in tables]
        if len(set().union(*ids)) < sum(map(len, ids)):
            raise ValueError(f"{where}: got an edit in two parts, expected each in one. Join other parts.")
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.concat_tables(tables, promote_options="permissive"), folder / f"{name}.parquet")
    data = manifests[0]["data"] | {"cases": sum(manifest["data"]["cases"] for manifest in manifests)}
    noises = [manifest["machine"]["noise"] for manifest in manifests]
    noise = noises[0] | {name: max(own[name] for own in noises) for name in _FLOORS}
    machine = manifests[0]["machine"] | {"noise": noise}
    write_text(folder / "manifest.json", json.dumps(manifests[0] | {"data": data, "machine": machine}))
    return folder


def first(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each editor's first look, where damage to everybody is tested once."""
    place = _places(table)
    return table[place == place.groupby([table["model"], table["part"]]).transform("min")]


def newest(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of each editor's newest look."""
    place = _places(table)
    return table[place == place.groupby([table["model"], table["part"]]).transform("max")]


def _places(table: pd.DataFrame) -> pd.Series[int]:
    return table["records"].map(_ORDER.index)
