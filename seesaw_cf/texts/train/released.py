"""Annotations as LEME's authors released them, as the table that people and judges give."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.seeds import seed_of
from seesaw_cf.effects.leme_annotation import LABELS
from seesaw_cf.texts.tables import ANNOTATIONS, AnnotationRow
from seesaw_cf.texts.train.annotations import label_index, pair_of
from seesaw_cf.texts.train.rows import read_csv

_NEEDED = ("content", "sample_id", "example_id", "classification", "method", "label")
_EDITORS = {"no_edit": ("none", "pre"), "human": ("human", "post")}  # every other method is an editor
_PASSAGES = {"main": "subject", "related": "related"}
_KINDS = ("new_fact", "old_fact", "ground_truth")


def released_annotations(path: str | os.PathLike[str], annotator: str = "LEME") -> tuple[pa.Table, Counter[str]]:
    """Read a CSV file in the layout of LEME's annotated data.

    A row there is a passage or a highlighted stretch of it with a claim and a label; here a passage with a claim is one
    row. Its evidence are the stretches with its own label.

    Args:
        path: CSV with content ("Passage: ... Claim: ...", an empty line before "Claim:" where it is the whole
            passage), sample_id, example_id, classification, method ("no_edit", "human", or an editor) and label
            (such as "new_fact_and_main_passage").
        annotator: Who annotated.

    Returns:
        Rows of `ANNOTATIONS`, `case_id` made of the sample's id, no relation; and why -> claims that are left out.

    Raises:
        StorageError: The file cannot be read.
        RecordError: Columns are missing, or a cell is not as it should be; the message has the row.
        UnknownNameError: A classification is not a label.
    """
    frame = read_csv(path)
    if missing := [name for name in _NEEDED if name not in frame]:
        raise RecordError(f"{path}: columns {missing} are missing; it has {list(frame)}. Expected {list(_NEEDED)}.")
    parsed = [pair_of(path, row, text) for row, text in enumerate(frame["content"])]
    frame["premise"], frame["claim"], frame["unit"] = zip(*parsed, strict=True) if parsed else ((), (), ())
    frame["said"] = [LABELS[label_index(path, row, text)] for row, text in enumerate(frame["classification"])]
    rows, left_out = [], Counter[str]()
    for _, part in frame.groupby(["example_id", "claim"], sort=False):
        whole = part[part["unit"] == "paragraph"]
        if whole.empty:
            left_out["stretches of a passage that has no row of its own"] += 1
            continue
        longest = max(whole.index.tolist(), key=lambda row: len(parsed[row][0]))
        rows.append(_row(path, longest, part.loc[longest], part.drop(longest), annotator))
    if not rows:
        raise RecordError(f"{path}: no row is about a whole passage. Expected an empty line before 'Claim:' in those.")
    return pa.Table.from_pylist(rows, schema=ANNOTATIONS), left_out


def _row(
    path: str | os.PathLike[str], number: int, row: pd.Series, others: pd.DataFrame, annotator: str
) -> AnnotationRow:
    kind, _, place = row["label"].partition("_and_")
    passage = place.removesuffix("_passage")
    if kind not in _KINDS or passage not in _PASSAGES or place == passage:
        raise RecordError(
            f"{path}, row {number}: label {row['label']!r}, expected {' or '.join(_KINDS)}, followed by "
            "'_and_main_passage' or '_and_related_passage'."
        )
    editor, phase = _EDITORS.get(row["method"], (row["method"], "post"))
    sentences: Sequence[str] = others["premise"][others["said"] == row["said"]]
    return {
        "editor": editor,
        "case_id": seed_of(row["sample_id"]),
        "relation": "",
        "phase": phase,
        "sample": 0,
        "passage": _PASSAGES[passage],
        "claim_kind": kind,
        "claim_id": hashlib.sha256(row["claim"].encode()).hexdigest()[:16],
        "claim": row["claim"],
        "annotator": annotator,
        "label": row["said"],
        "p_supports": None,
        "p_neutral": None,
        "p_contradicts": None,
        "evidence": [text for text in dict.fromkeys(sentences) if text in row["premise"]],
        "reply": "",
        "status": "ok",
    }
