"""What edited models wrote beside what they wrote before, with claims and ratings, for the page of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa

from seesaw_cf.effects.survey_items import ITEMS
from seesaw_cf.longform.write.pairs import PassagePair, passage_pairs
from seesaw_cf.page.table import Table, TableRow
from seesaw_cf.page.texts import MARKS, Found, Pair, TextPair, compared

_KEPT = 60  # edits with their texts
_MOST = 1_500_000  # characters of texts on a page
_PASSAGES = ("subject", "related", "guided", "free")
_TITLES = {"subject": "about the subject", "related": "about a related entity"}
_LOST = {("supports", "contradicts"): 2, ("supports", "neutral"): 1, ("neutral", "contradicts"): 1}

Labels = Mapping[str, Mapping[str, Any]]
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
    claims: dict[tuple[str, str], dict[str, Mapping[str, Any]]] = field(default_factory=dict)
    ratings: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)

    @property
    def lost(self) -> int:
        """How far labels of untouched facts moved away from support."""
        both = [found for found in self.claims.values() if len(found) == 2]
        facts = [found for found in both if found["pre"]["claim_kind"] == "ground_truth"]
        return sum(_LOST.get((found["pre"]["label"], found["post"]["label"]), 0) for found in facts)

    @property
    def size(self) -> int:
        """Characters."""
        return sum(len(pair.pre) + len(pair.post) for _, pair in self.texts)


def written_pairs(
    passages: pa.Table, annotations: pa.Table | None, ratings: pa.Table | None, edits: pd.DataFrame
) -> tuple[list[Pair], int]:
    """The texts that a page shows, and of how many.

    Args:
        passages, annotations, ratings: Tables of a run.
        edits: Its edits.

    Returns:
        Of each editor equally many edits, at most 60 in all, those in which most facts lost their support first; fewer
        where their texts would be too long for a page.
    """
    everything = _collected(passages, annotations, ratings)
    said = {
        (row["editor"], row["case_id"]): f"{row['subject']}: {row['target_true']} \u2192 {row['target_new']}"
        for row in edits.to_dict("records")
    }
    kept = _kept(everything)
    return [_pair(one, said.get((one.editor, one.case_id), f"case {one.case_id}")) for one in kept], len(everything)


def _collected(passages: pa.Table, annotations: pa.Table | None, ratings: pa.Table | None) -> list[EditTexts]:
    found: dict[tuple[str, int, int], EditTexts] = {}
    before: defaultdict[tuple[int, int], list[Mapping[str, Any]]] = defaultdict(list)
    pairs, _ = passage_pairs(passages, _PASSAGES)
    for pair in pairs:
        passage, _, sample = pair.pair_id.rsplit("-", 3)[1:]
        key = (pair.editor, pair.case_id, int(sample))
        found.setdefault(key, EditTexts(*key)).texts.append((passage, pair))
    rows = [*_rows(annotations), *_rows(ratings)]
    for row in rows:
        if row["phase"] == "pre":
            before[row["case_id"], row["sample"]].append(row)
        elif (key := (row["editor"], row["case_id"], row["sample"])) in found:
            _put(found[key], row)
    for one in found.values():
        for row in before[one.case_id, one.sample]:
            _put(one, row)
    return list(found.values())


def _rows(table: pa.Table | None) -> Iterator[Mapping[str, Any]]:
    if table is not None:
        yield from (row for row in table.to_pylist() if row["status"] == "ok")


def _put(one: EditTexts, row: Mapping[str, Any]) -> None:
    if "claim" in row:
        one.claims.setdefault((row["passage"], row["claim"]), {})[row["phase"]] = row
    else:
        one.ratings.setdefault((row["rater"], row["item"]), {})[row["phase"]] = row["rating"]


def _kept(everything: Sequence[EditTexts]) -> list[EditTexts]:
    by_editor: defaultdict[str, list[EditTexts]] = defaultdict(list)
    for one in everything:
        by_editor[one.editor].append(one)
    each = max(1, _KEPT // max(1, len(by_editor)))
    ordered = [sorted(own, key=lambda one: -one.lost)[:each] for own in by_editor.values()]
    kept, size = [], 0
    for place in range(each):
        for own in ordered:
            if place < len(own) and size + own[place].size <= _MOST:
                kept.append(own[place])
                size += own[place].size
    return kept


def _pair(one: EditTexts, said: str) -> Pair:
    claims = list(one.claims.items())
    numbers = {key: number for number, (key, _) in enumerate(claims, 1)}
    texts = [_texts(passage, pair, one, numbers) for passage, pair in one.texts]
    tables = [found for found in (_claims(claims), _ratings(one)) if found.rows]
    sample = f", text {one.sample + 1}" if one.sample else ""
    return Pair(f"{said} ({one.editor}{sample})", "", texts, tables)


def _texts(passage: str, pair: PassagePair, one: EditTexts, numbers: Mapping[tuple[str, str], int]) -> TextPair:
    def marks(phase: str) -> list[Found]:
        return [
            Found(sentence, found[phase]["label"], str(numbers[key]))
            for key, found in one.claims.items()
            if key[0] == passage and phase in found and found[phase]["label"] in MARKS
            for sentence in found[phase]["evidence"] or ()
        ]

    title = f"{pair.entity or 'unnamed'}, {_TITLES.get(passage, f'{passage} description')}"
    return compared(title, pair.pre, pair.post, (marks("pre"), marks("post")))


def _claims(claims: Sequence[tuple[tuple[str, str], Labels]]) -> Table:
    def label(found: Labels, phase: str) -> str:
        said = found[phase]["label"] if phase in found else "\u2013"
        return f"{MARKS.get(said, '')} {said}".strip()

    rows = [
        TableRow(
            (
                *(str(number), claim, *(label(found, phase) for phase in ("pre", "post"))),
                *(passage, next(iter(found.values()))["claim_kind"].replace("_", " ")),
            )
        )
        for number, ((passage, claim), found) in enumerate(claims, 1)
    ]
    about = "What the texts support and contradict; the numbers stand behind the sentences"
    return Table("", "Claims", about, ("no.", "claim", "before", "after", "text", "kind"), 6, rows)


def _ratings(one: EditTexts) -> Table:
    order = {item.name: number for number, item in enumerate(ITEMS)}
    statements = {item.name: item.statement for item in ITEMS}
    keys = sorted(one.ratings, key=lambda key: (key[0], order.get(key[1], len(order))))

    def rating(key: tuple[str, str], phase: str) -> str:
        value = one.ratings[key].get(phase)
        return "\u2013" if value is None or value != value else f"{value:g}"

    rows = [
        TableRow((statements.get(item, item), rater, *(rating((rater, item), phase) for phase in ("pre", "post"))))
        for rater, item in keys
    ]
    return Table("", "Ratings", "Ratings of the texts, 1 to 7", ("statement", "rater", "before", "after"), 2, rows)
