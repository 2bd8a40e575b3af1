"""What edited models wrote and what they wrote before, with claims and ratings, for the page of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd
import pyarrow as pa

from seesaw_cf.effects.survey_items import ITEMS
from seesaw_cf.report.html.texts import MARKS, Found, Pair, TextPair, compared
from seesaw_cf.report.table import Column, Row, Table
from seesaw_cf.texts.write.pairs import PassagePair, passage_pairs

_KEPT = 60  # edits with their texts
_MOST = 1_500_000  # characters of texts on a page
_PASSAGES = ("subject", "related", "guided", "free")
_TITLES = {"subject": "about the subject", "related": "about a related entity"}
_LOST = {("supports", "contradicts"): 2, ("supports", "neutral"): 1, ("neutral", "contradicts"): 1}

Labels = Mapping[str, Row]
"""Phase -> row of `ANNOTATIONS`."""


@dataclass
class EditTexts:
    """Everything that was written, claimed and rated about one edit in one sample.

    Attributes:
        editor, case_id, sample: Which.
        texts: Pairs of texts, with the kind of passage.
        claims: (kind of passage, claim) -> its labels.
        ratings: (rater, item) -> phase -> rating.
    """

    editor: str
    case_id: int
    sample: int
    texts: list[tuple[str, PassagePair]] = field(default_factory=list)
    claims: dict[tuple[str, str], dict[str, Row]] = field(default_factory=dict)
    ratings: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)

    @property
    def lost(self) -> int:
        """How far labels of untouched facts moved away from support."""
        pairs = [labels for labels in self.claims.values() if len(labels) == 2]
        facts = [labels for labels in pairs if labels["pre"]["claim_kind"] == "ground_truth"]
        return sum(_LOST.get((labels["pre"]["label"], labels["post"]["label"]), 0) for labels in facts)

    @property
    def size(self) -> int:
        """Characters."""
        return sum(len(pair.pre) + len(pair.post) for _, pair in self.texts)


def written_pairs(
    passages: pa.Table, annotations: pa.Table | None, ratings: pa.Table | None, edits: pd.DataFrame
) -> tuple[list[Pair], int]:
    """Return the texts that a page shows, and out of how many they were chosen.

    Args:
        passages, annotations, ratings: Tables of a run.
        edits: Its edits.

    Returns:
        Of each editor equally many edits, at most 60 in all, those in which most facts lost their support first; fewer
        where their texts would be too long for a page.
    """
    everything = _collected(passages, annotations, ratings)
    titles = {
        (row["editor"], row["case_id"]): f"{row['subject']}: {row['target_true']} \u2192 {row['target_new']}"
        for row in edits.to_dict("records")
    }
    pairs = [_pair(edit, titles.get((edit.editor, edit.case_id), f"case {edit.case_id}")) for edit in _kept(everything)]
    return pairs, len(everything)


def _collected(passages: pa.Table, annotations: pa.Table | None, ratings: pa.Table | None) -> list[EditTexts]:
    by_edit: dict[tuple[str, int, int], EditTexts] = {}
    before: defaultdict[tuple[int, int], list[Row]] = defaultdict(list)
    pairs, _ = passage_pairs(passages, _PASSAGES)
    for pair in pairs:
        passage, _, sample = pair.pair_id.rsplit("-", 3)[1:]
        key = (pair.editor, pair.case_id, int(sample))
        by_edit.setdefault(key, EditTexts(*key)).texts.append((passage, pair))
    for row in (*_rows(annotations), *_rows(ratings)):
        if row["phase"] == "pre":
            before[row["case_id"], row["sample"]].append(row)
        elif (key := (row["editor"], row["case_id"], row["sample"])) in by_edit:
            _put(by_edit[key], row)
    for edit in by_edit.values():
        for row in before[edit.case_id, edit.sample]:
            _put(edit, row)
    return list(by_edit.values())


def _rows(table: pa.Table | None) -> list[Row]:
    return [] if table is None else [row for row in table.to_pylist() if row["status"] == "ok"]


def _put(edit: EditTexts, row: Row) -> None:
    if "claim" in row:
        edit.claims.setdefault((row["passage"], row["claim"]), {})[row["phase"]] = row
    else:
        edit.ratings.setdefault((row["rater"], row["item"]), {})[row["phase"]] = row["rating"]


def _kept(everything: Sequence[EditTexts]) -> list[EditTexts]:
    by_editor: defaultdict[str, list[EditTexts]] = defaultdict(list)
    for edit in everything:
        by_editor[edit.editor].append(edit)
    each = max(1, _KEPT // max(1, len(by_editor)))
    ordered = [sorted(own, key=lambda edit: -edit.lost)[:each] for own in by_editor.values()]
    selection, size = [], 0
    for place in range(each):
        for own in ordered:
            if place < len(own) and size + own[place].size <= _MOST:
                selection.append(own[place])
                size += own[place].size
    return selection


def _pair(edit: EditTexts, title: str) -> Pair:
    claims = list(edit.claims.items())
    numbers = {key: number for number, (key, _) in enumerate(claims, 1)}
    texts = [_texts(passage, pair, edit, numbers) for passage, pair in edit.texts]
    tables = [table for table in (_claims(claims), _ratings(edit)) if len(table.frame)]
    sample = f", text {edit.sample + 1}" if edit.sample else ""
    return Pair(f"{title} ({edit.editor}{sample})", "", texts, tables)


def _texts(passage: str, pair: PassagePair, edit: EditTexts, numbers: Mapping[tuple[str, str], int]) -> TextPair:
    def marks(phase: str) -> list[Found]:
        return [
            Found(sentence, labels[phase]["label"], str(numbers[key]))
            for key, labels in edit.claims.items()
            if key[0] == passage and phase in labels and labels[phase]["label"] in MARKS
            for sentence in labels[phase]["evidence"] or ()
        ]

    title = f"{pair.entity or 'unnamed'}, {_TITLES.get(passage, f'{passage} description')}"
    return compared(title, pair.pre, pair.post, (marks("pre"), marks("post")))


def _claims(claims: Sequence[tuple[tuple[str, str], Labels]]) -> Table:
    def label(labels: Labels, phase: str) -> str | None:
        return f"{MARKS.get(name := labels[phase]['label'], '')} {name}".strip() if phase in labels else None

    rows = [
        {"no.": number, "claim": claim, "before": label(labels, "pre"), "after": label(labels, "post")}
        | {"text": passage, "kind": next(iter(labels.values()))["claim_kind"].replace("_", " ")}
        for number, ((passage, claim), labels) in enumerate(claims, 1)
    ]
    about = "What the texts support and contradict; the numbers stand behind the sentences"
    return Table("", "Claims", about, _CLAIM_COLUMNS, pd.DataFrame(rows))


def _ratings(edit: EditTexts) -> Table:
    statements = {item.name: item.statement for item in ITEMS}
    order = list(statements)
    keys = sorted(edit.ratings, key=lambda key: (key[0], order.index(key[1]) if key[1] in order else len(order)))
    rows = [
        {"statement": statements.get(item, item), "rater": rater, **edit.ratings[rater, item]} for rater, item in keys
    ]
    return Table("", "Ratings", "Ratings of the texts, 1 to 7", _RATING_COLUMNS, pd.DataFrame(rows))


def _rating(value: float | None) -> str | None:
    return None if value is None or pd.isna(value) else f"{value:g}"


_CLAIM_COLUMNS = [Column(name, words=True) for name in ("no.", "claim", "before", "after", "text", "kind")]
_RATING_COLUMNS = [
    Column("statement", words=True),
    Column("rater", words=True),
    Column("before", lambda row: _rating(row.get("pre"))),
    Column("after", lambda row: _rating(row.get("post"))),
]
