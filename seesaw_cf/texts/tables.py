"""The tables of long form, and a finished run of `seesaw-cf texts write` with the records that its texts are about.

Everything after a model has written, or a rater has rated, is a function of these tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, UnknownNameError
from seesaw_cf.base.tables import read_table
from seesaw_cf.effects.free_answers import JUDGED
from seesaw_cf.effects.instruments import FAILURE_MODES, FLAWS_BY_NAME, ITEMS
from seesaw_cf.effects.texts import CLAIM_KINDS, LABELS
from seesaw_cf.records.relations import relation
from seesaw_cf.run.manifest import RunFolder
from seesaw_cf.texts.records import LongformRecord, read_records

_TEXT, _WHOLE, _SMALL, _NUMBER = pa.string(), pa.int64(), pa.int32(), pa.float64()

# Which text of which edit. editor: "memit", ...; "none" for the unedited model; "human" for written baselines.
# relation: relation_id of the edit. phase: "pre" or "post". sample: which of the n samples of a prompt.
_PLACE = {"editor": _TEXT, "case_id": _WHOLE, "relation": _TEXT, "phase": _TEXT, "sample": _SMALL}
PLACE = tuple(_PLACE)
"""Columns that tell which text of which edit a row is about."""

# passage: "subject" or "related" (LEME), "guided" or "free" (open-ended descriptions). status: "ok" or why there is no
# text; rows without text stay.
PASSAGES = pa.schema({
    **_PLACE, "passage": _TEXT, "prompt_id": _SMALL, "entity_id": _TEXT, "entity": _TEXT, "prompt": _TEXT,
    "seed": _WHOLE, "text": _TEXT, "finish": _TEXT, "new_tokens": _SMALL, "status": _TEXT,
})  # fmt: skip
# item: one of the nine of LEME's Appendix D. rating: 1-7, null when `status` is not "ok". reply: in the rater's words.
RATINGS = pa.schema({
    **_PLACE, "item": _TEXT, "rater": _TEXT, "rating": _NUMBER, "reply": _TEXT, "status": _TEXT, "tries": _SMALL,
    "prompt_tokens": _SMALL, "new_tokens": _SMALL,
})  # fmt: skip
# claim_kind: "new_fact", "old_fact" or "ground_truth". label: "supports", "neutral" or "contradicts", null unless
# `status` is "ok". evidence: stretches of the passage, mostly sentences, that carry the label.
ANNOTATIONS = pa.schema({
    **_PLACE, "passage": _TEXT, "claim_kind": _TEXT, "claim_id": _TEXT, "claim": _TEXT, "annotator": _TEXT,
    "label": _TEXT, "p_supports": _NUMBER, "p_neutral": _NUMBER, "p_contradicts": _NUMBER,
    "evidence": pa.list_(_TEXT), "reply": _TEXT, "status": _TEXT,
})  # fmt: skip
# Whether a rater finds a failure mode of LEME in the two passages of a sample. mode: one of
# `effects.instruments.FAILURE_MODES`. present: null when `status` is not "ok".
FAILURES = pa.schema({
    **_PLACE, "mode": _TEXT, "rater": _TEXT, "present": pa.bool_(), "comment": _TEXT, "status": _TEXT,
})  # fmt: skip
# One judgement of one flaw on one pair of texts. first: which text the rater saw first, "pre" or "post". change: -1 the
# flaw is less after the edit, 0 the same, 1 more; null when `status` is not "ok".
FLAWS = pa.schema({
    "pair_id": _TEXT, "editor": _TEXT, "case_id": _WHOLE, "relation": _TEXT, "entity_id": _TEXT, "entity": _TEXT,
    "pre": _TEXT, "post": _TEXT, "flaw": _TEXT, "rater": _TEXT, "first": _TEXT, "change": pa.int8(), "quote": _TEXT,
    "reply": _TEXT, "status": _TEXT,
})  # fmt: skip
# reflected: "yes", "no", "unsure" or null: whether a text states the edit. comment: in the rater's words.
REFLECTED = pa.schema({
    "pair_id": _TEXT, "editor": _TEXT, "case_id": _WHOLE, "relation": _TEXT, "entity": _TEXT, "rater": _TEXT,
    "reflected": _TEXT, "comment": _TEXT,
})  # fmt: skip
# What became of an edit. delta_norm: Frobenius norm of the change of all weights, null without one. demonstrations: how
# many in-context editing showed, null for other editors. dataset: format and kind of its record, such as "zsre
# factual"; "" without a related entity.
EDITS = pa.schema({
    "editor": _TEXT, "case_id": _WHOLE, "relation": _TEXT, "subject": _TEXT, "target_new": _TEXT, "target_true": _TEXT,
    "status": _TEXT, "delta_norm": _NUMBER, "demonstrations": _SMALL, "dataset": _TEXT,
})  # fmt: skip
# The whole request to a judge, and its reply. kind: one of `seesaw_cf.texts.RATED`. attempt: which try, from 1.
CALLS = pa.schema({
    "kind": _TEXT, "question": _TEXT, "rater": _TEXT, "attempt": _SMALL, "prompt": _TEXT, "temperature": _NUMBER,
    "seed": _WHOLE, "reply": _TEXT, "status": _TEXT, "prompt_tokens": _SMALL, "new_tokens": _SMALL,
})  # fmt: skip
TABLES = {
    "passages": PASSAGES, "edits": EDITS, "ratings": RATINGS, "annotations": ANNOTATIONS, "flaws": FLAWS,
    "swapped": FLAWS, "calls": CALLS, "failures": FAILURES, "reflected": REFLECTED, "judged": JUDGED,
}  # fmt: skip
"""Kind of table, which is the name of its Parquet file -> its columns."""
_SAMPLE = ("editor", "case_id", "phase", "sample")
QUESTIONS: Mapping[str, Sequence[str]] = {
    "flaws": ("change", "pair_id", "flaw", "rater"),
    "reflected": ("reflected", "pair_id", "rater"),
    "ratings": ("rating", *_SAMPLE, "item", "rater"),
    "annotations": ("label", *_SAMPLE, "passage", "claim_kind", "claim_id", "annotator"),
    "failures": ("present", *_SAMPLE, "mode", "rater"),
    "passages": ("text", *_SAMPLE, "passage", "prompt_id"),
    "swapped": ("change", "pair_id", "flaw", "rater"),
}
"""Kind of answers -> column of the answer, and what tells one question to one rater, the last, from another."""
BASELINE = "none"  # editor of the texts of the unedited model
HUMAN = "human"  # editor of texts that people wrote
_NAMES = {"annotator": "rater", "passage": "about"}
# Kind of answers -> what is asked, its column, its names and how they are shown; what answers are, and their ends.
_SCALES: Mapping[str, tuple[str, str, Mapping[str, str], str, int, int]] = {
    "ratings": ("survey item", "item", {item.name: item.name for item in ITEMS}, "1 to 7", 1, 7),
    "annotations": ("kind of claim", "claim_kind", {name: name for name in CLAIM_KINDS}, ", ".join(LABELS), 0, 2),
    "failures": ("failure mode", "mode", {name: title for name, (title, _) in FAILURE_MODES.items()}, "0 or 1", 0, 1),
    "flaws": ("flaw", "flaw", {name: name for name in FLAWS_BY_NAME}, "-1 to 1", -1, 1),
}


@dataclass(frozen=True)
class RunTexts:
    """A finished run, each part read when it is first asked for.

    Attributes:
        folder: Its folder.
    """

    folder: Path

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """`manifest.json`.

        Raises:
            RunFolderError: It is missing or damaged.
        """
        return RunFolder.open(self.folder, "texts write", ("passages.parquet",)).manifest

    @cached_property
    def passages(self) -> pa.Table:
        """`PASSAGES`."""
        return read_table(self.folder / "passages.parquet", PASSAGES)

    def table(self, name: str) -> pa.Table | None:
        """Return one of `TABLES`; None where the run has none, since nothing was rated."""
        file = self.folder / f"{name}.parquet"
        return read_table(file, TABLES[name]) if file.exists() else None

    @cached_property
    def records(self) -> Sequence[LongformRecord]:
        """The records that its texts were written for.

        Raises:
            RunFolderError: The manifest is missing or damaged.
            RecordError: The manifest is of no such run, or records are not there any more.
        """
        job, written = self.manifest.get("job") or {}, set(self.passages["case_id"].to_pylist())
        if not {"data", "configs"} <= job.keys():
            raise RecordError(
                "manifest: no job with data and configs in it. Give the folder of `seesaw-cf texts write`."
            )
        rows = [row for own in read_records(job["data"], job["configs"]).values() for row in own]
        records = [row for row in rows if row["case_id"] in written]
        if lost := written - {row["case_id"] for row in records}:
            raise RecordError(
                f"{job['data']} {job['configs']}: {len(lost)} of {len(written)} cases of the run are not there any "
                f"more, first {min(lost)}. Put the records back where they were."
            )
        return records

    @cached_property
    def coupled(self) -> Sequence[LongformRecord]:
        """Those of the records that couple a subject with a related entity."""
        return [record for record in self.records if "subject_entity" in record]

    @cached_property
    def couples(self) -> tuple[pa.Table, Sequence[LongformRecord]]:
        """The passages that are about `coupled` records, and those."""
        cases = pa.array([record["case_id"] for record in self.coupled], pa.int64())
        return self.passages.filter(pc.is_in(self.passages["case_id"], cases)), self.coupled


def edit_sentences(edits: pa.Table) -> dict[tuple[str, int], str]:
    """Return a sentence about each edit: (editor, case_id) -> "Ada Oak: gender was changed from female to male."

    Args:
        edits: `EDITS`.
    """
    names = ("subject", "relation", "target_true", "target_new")
    return {(row["editor"], row["case_id"]): edit_sentence(*(row[name] for name in names)) for row in edits.to_pylist()}


def edit_sentence(subject: str, relation_id: str, old: str, new: str) -> str:
    """Return what raters are told about an edit."""
    try:
        label = relation(relation_id).label
    except UnknownNameError:
        label = "one fact"
    return f"{subject}: {label} was changed from {old} to {new}."


def as_frame(table: pa.Table | pd.DataFrame, datasets: Mapping[int, str] | None = None) -> pd.DataFrame:
    """Return a table about texts with the names of the frame; `editor` is `BASELINE` before the edit.

    Args:
        table: Rows of `seesaw_cf.texts.tables`.
        datasets: case_id -> its data set, where there are several.
    """
    frame: pd.DataFrame = table.to_pandas() if isinstance(table, pa.Table) else table
    if "phase" in frame:
        unedited = (frame["phase"] == "pre") & (frame["editor"] != HUMAN)
        frame = frame.assign(editor=frame["editor"].mask(unedited, BASELINE))
    if datasets:
        frame = frame.assign(dataset=frame["case_id"].map(datasets).fillna("open-ended"))
    return frame.rename(columns=_NAMES)


def coded(kind: str, table: pa.Table | pd.DataFrame, datasets: Mapping[int, str] | None = None) -> pd.DataFrame:
    """Return answers as `as_frame` does, with `asked` in the papers' order, the answer as `value` and its `item`.

    Args:
        kind: "ratings", "annotations", "failures" or "flaws".
        table: Rows of that kind.
        datasets: See `as_frame`.

    Returns:
        `value` is a number, of a label its place in `LABELS`, and NaN where nothing was answered; `item` names what all
        raters were asked.

    Raises:
        UnknownNameError: Something else was asked.
        RecordError: An answer that is not on the scale.
    """
    frame, (value, *key) = as_frame(table, datasets), [_NAMES.get(name, name) for name in QUESTIONS[kind]]
    word, asked, names, expected, low, high = _SCALES[kind]
    for name in frame[asked].unique():
        one_of(word, name, names)
    values = frame[value].map({label: n for n, label in enumerate(LABELS)}) if kind == "annotations" else frame[value]
    outside = frame[frame[value].notna() & ~values.astype(float).between(low, high)]
    for _, first in outside.head(1).iterrows():
        raise RecordError(
            f"{kind}: {len(outside)} outside {expected}, first {first[value]!r} by {first['rater']!r} for "
            f"{first[asked]!r} of case {first['case_id']}. Recode them, or leave them empty."
        )
    item = ["|".join(map(str, own)) for own in zip(*(frame[name] for name in key if name != "rater"))]
    shown = pd.Categorical(frame[asked].map(names), list(names.values()))
    return frame.assign(value=values.astype(float), asked=shown, item=item)
