"""Rows to train on, from a CSV file or from people's answers, grouped so that no text is on both sides of a split."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.sparse import lil_array
from scipy.sparse.csgraph import connected_components

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.tables import read_table
from seesaw_cf.effects.instruments import DEFAULT, Shown
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.texts.claims import answered_claims, claim_pairs
from seesaw_cf.texts.classify import Pair, rater_texts
from seesaw_cf.texts.released import read_csv
from seesaw_cf.texts.runs import RunTexts
from seesaw_cf.texts.survey import answered_questions
from seesaw_cf.texts.tables import ANNOTATIONS, RATINGS

_RATING = r"[1-6](\.\d+)?|7(\.0*)?"
_CONTENT = re.compile(r"\s*Passage:(?P<premise>.*?)(?P<gap>\s*)Claim:(?P<claim>(?:(?!Claim:).)*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TrainingRow:
    """A row to train on.

    Attributes:
        pair: Two texts, of which the second is never cut.
        target: Index into `LABELS`, or a rating from 1 to 7.
        part: What figures are given for apart: "paragraph" or "sentence" of a claim, or the survey item.
        sample: Rows of one sample are on one side of a split; so are those that share a passage.
        passages: Texts that the row is about.
    """

    pair: Pair
    target: float
    part: str
    sample: str
    passages: tuple[str, ...]


@dataclass(frozen=True)
class TrainingData:
    """Rows, and what is told apart: `LABELS`, or () for ratings."""

    rows: Sequence[TrainingRow]
    classes: tuple[str, ...] = ()

    def take(self, numbers: Sequence[int]) -> TrainingData:
        """Return the rows of these numbers."""
        return TrainingData([self.rows[number] for number in numbers], self.classes)

    @property
    def pairs(self) -> list[Pair]:
        """The texts of every row."""
        return [row.pair for row in self.rows]

    def groups(self) -> list[int]:
        """Number the rows, equal where a chain of shared samples and passages leads from one to the other.

        White space and case do not tell passages apart; those of one or two words are slips of highlighting and join
        nothing.
        """
        first: dict[str, int] = {}
        graph = lil_array((len(self.rows), len(self.rows)), dtype=np.int8)
        for number, row in enumerate(self.rows):
            texts = [" ".join(text.casefold().split()) for text in row.passages if len(text.split()) > 2]
            for key in [f"sample {row.sample}", *(f"text {text}" for text in texts)]:
                graph[number, first.setdefault(key, number)] = 1
        return [int(group) for group in connected_components(graph, directed=False)[1]] if self.rows else []


def read_training(path: str | os.PathLike[str]) -> TrainingData:
    """Read a CSV file of labelled claims or of ratings.

    Claims: `classification` (one of `LABELS`), `sample_id`, and either `content` ("Passage: ... Claim: ...", as the
    annotated data of LEME; an empty line before "Claim:" marks a whole passage, anything else a highlighted sentence)
    or `premise` and `claim`. Other columns (method, kind of claim) are never read: they would tell the label.

    Ratings, one row per (sample, item, rater): `sample_id`, `item`, `rating` (1 to 7), and what the items show: `main`,
    `related`, `new_fact`, `old_facts` (of the entity that the item asks about, joined by " | "), `subject`,
    `related_entity`. The ratings as their authors keep them are read too: `sample_id`, `label` (the item), `score` and
    `content` (all that the item shows).

    Raises:
        StorageError: The file cannot be read.
        RecordError: Columns are missing, or a cell cannot be used; the message has the row.
        UnknownNameError: A label or an item that there is not.
    """
    frame = read_csv(path)
    if {"content", "score", "label"} <= set(frame):
        return _released_ratings(path, frame)
    claims = "classification" in frame
    needed = ("content",) if "content" in frame else ("premise", "claim") if claims else ("item", "rating")
    items = set(frame["item"]) & DEFAULT.items.keys() if "item" in frame and not claims else ()
    needed = (*needed, "sample_id", *sorted({field for item in items for field in DEFAULT.items[item].fields}))
    if missing := [name for name in needed if name not in frame]:
        raise RecordError(
            f"{path}: columns {missing} are missing; it has {list(frame.columns)}. Expected sample_id, classification "
            "and content, or premise and claim; or sample_id, item, rating and what the items show."
        )
    rows = []
    cells: list[dict[str, str]] = frame.to_dict("records")  # type: ignore[assignment]
    for number, row in enumerate(cells):
        where = f"{path}, row {number}"
        if not row["sample_id"].strip():
            raise RecordError(f"{where}: no sample_id. Splits need to know which rows belong together; restore it.")
        rows.append((_claim_row if claims else _rating_row)(where, row))
    examples = frame[frame["example_id"] != ""] if "example_id" in frame else frame.iloc[:0]
    if len(examples) and examples.groupby("example_id")["sample_id"].nunique().max() > 1:
        raise RecordError(f"{path}: an example_id belongs to two samples. Restore the ids, or leave example_id out.")
    return TrainingData(rows, LABELS if claims else ())


def _released_ratings(path: str | os.PathLike[str], frame: pd.DataFrame) -> TrainingData:
    """Return ratings with the columns of the authors' `survey_ratings_dataset`: `content` is shown whole.

    Source: LEME, `train_rater_model.py`.
    """
    if "sample_id" not in frame:
        raise RecordError(f"{path}: no column sample_id. Splits need to know which rows belong together; restore it.")
    rows = []
    for number, (sample, label, score, content) in enumerate(
        frame[["sample_id", "label", "score", "content"]].itertuples(index=False)
    ):
        where = f"{path}, row {number}"
        item = DEFAULT.items[one_of(f"survey item in {where}:", label.strip().replace("-", "_"), DEFAULT.items)]
        if not re.fullmatch(_RATING, score.strip()) or not content.strip() or not sample.strip():
            raise RecordError(f"{where}: expected sample_id, a score from 1 to 7 and content. Drop the row.")
        text = content.strip()
        rows.append(TrainingRow((text, f"{item.statement}."), float(score), item.name, sample, (text,)))
    return TrainingData(rows)


def _claim_row(where: str, row: Mapping[str, str]) -> TrainingRow:
    unit, parts = "paragraph", row
    if "content" in row:
        match = _CONTENT.fullmatch(row["content"])
        if match is None:
            raise RecordError(f"{where}: content {row['content'][:60]!r} ... is not 'Passage: ... Claim: ...'.")
        parts, unit = match.groupdict(), "paragraph" if match["gap"].count("\n") > 1 else "sentence"
    premise, claim = parts["premise"].strip(), parts["claim"].strip()
    if not premise or not claim:
        raise RecordError(f"{where}: {'the claim' if premise else 'the passage'} is empty. Fill it in or drop the row.")
    label = one_of(f"classification in {where}:", row["classification"], LABELS)
    return TrainingRow((premise, claim), LABELS.index(label), unit, row["sample_id"], (premise,))


def _rating_row(where: str, row: Mapping[str, str]) -> TrainingRow:
    item = DEFAULT.items[one_of(f"survey item in {where}:", row["item"], DEFAULT.items)]
    rating = row["rating"].strip()
    if not re.fullmatch(_RATING, rating):
        raise RecordError(f"{where}: rating {rating!r}, expected a number from 1 to 7.")
    texts = {name: row[name].strip() for name in item.fields}
    passages = tuple(texts[name] for name in ("main", "related") if name in texts)
    if not all(passages):
        raise RecordError(f"{where}: item {item.name} shows a passage that is empty. Drop the row.")
    facts = {"old_facts": tuple(texts["old_facts"].split(" | "))} if "old_facts" in texts else {}
    everything: dict[str, Any] = {**texts, **facts}
    shown = Shown(**everything)
    return TrainingRow(rater_texts(item.name, shown), float(rating), item.name, row["sample_id"], passages)


def people_training(file: Path, run: RunTexts) -> TrainingData:
    """Return people's answers about the texts of a run, as `people import` writes them.

    Args:
        file: Labels of claims (a row for the passage, one for each stretch marked as evidence), or ratings.
        run: The run.

    Raises:
        RecordError: No answer is about a text of the run.
    """
    table, rows = read_table(file), list[TrainingRow]()
    claims = "claim" in table.column_names
    if claims:
        pairs = claim_pairs(run.coupled_passages, run.coupled)
        for pair, judgement in answered_claims(pairs, read_table(file, ANNOTATIONS)):
            units = [(pair.premise, "paragraph"), *((part, "sentence") for part in judgement.evidence if part.strip())]
            label, sample, passages = LABELS.index(judgement.label), str(pair.case_id), (pair.premise,)
            rows += [TrainingRow((part, pair.claim), label, unit, sample, passages) for part, unit in units]
    else:
        for question, rating in answered_questions(run.samples, read_table(file, RATINGS)):
            item, shown = question.item.name, question.shown
            texts, sample = tuple(filter(None, (shown.main, shown.related))), str(question.sample.case_id)
            rows.append(TrainingRow(rater_texts(item, shown), float(rating), item, sample, texts))
    if not rows:
        raise RecordError(
            f"{file}: none of {table.num_rows} answers is about a text of {run.folder}. Give the run that people were "
            "asked about."
        )
    return TrainingData(rows, LABELS if claims else ())
