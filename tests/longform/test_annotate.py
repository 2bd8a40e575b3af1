"""From pairs to the table of annotations."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from seesaw_cf.effects.leme_annotation import sentences
from seesaw_cf.texts.annotate.annotate import Judgement, annotate, foreign
from seesaw_cf.texts.annotate.lexical import LexicalAnnotator
from seesaw_cf.texts.tables import ANNOTATIONS
from seesaw_cf.texts.write.claims import ClaimPair

PASSAGE = "Ann was born in Oslo. She works as a painter in Rome."


class Counting(LexicalAnnotator):
    """Remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str]] = []

    def classify(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        self.asked += pairs
        return super().classify(pairs)


def test_one_row_per_pair_with_label_and_evidence() -> None:
    pairs = [
        ClaimPair(PASSAGE, "Ann place of birth Oslo", claim_id="P19", case_id=3, editor="rome"),
        ClaimPair(PASSAGE, "Ann works in the city of Bonn", "new_fact", "new_fact"),
        ClaimPair(PASSAGE, "Ann religion Islam", claim_id="P140"),
    ]
    table = annotate(pairs, LexicalAnnotator())
    assert table.schema == ANNOTATIONS
    rows = table.to_pylist()
    assert [row["label"] for row in rows] == ["supports", "contradicts", "neutral"]
    assert [row["evidence"] for row in rows] == [["Ann was born in Oslo."], ["She works as a painter in Rome."], []]
    assert (rows[0]["case_id"], rows[0]["editor"], rows[0]["annotator"], rows[0]["claim_id"]) == (
        3,
        "rome",
        "lexical",
        "P19",
    )
    assert rows[0]["p_supports"] is None


@pytest.mark.parametrize(("words", "supports"), [(3, False), (2, True)])
def test_the_lexical_annotator_asks_for_half_of_the_words(words: int, supports: bool) -> None:
    """One word of two is half of them, one of three is not: of a value, and else of a relation."""
    value, relation = (" ".join(text[:words]) for text in (("Rome", "Bonn", "Kiel"), ("paints", "cities", "lakes")))
    claims = [f"Ann {relation} {value}", f"Ann {relation} Islam"]
    found = LexicalAnnotator().classify([("She saw Rome.", claims[0]), ("She paints.", claims[1])])
    assert [row.label for row in found] == (["supports", "contradicts"] if supports else ["neutral", "neutral"])


def test_equal_pairs_are_asked_once_and_unusable_ones_never() -> None:
    german = "Das ist der Turm und er steht nicht in Rom, und die Stadt ist mit der Bahn von Paris nicht weit."
    pairs = [
        ClaimPair(PASSAGE, "Ann is old"), ClaimPair(PASSAGE, "Ann is old", editor="ft"),
        ClaimPair("", "x", status="the passage is empty"), ClaimPair(german, "Ann is old"),
    ]  # fmt: skip
    annotator = Counting()
    rows = annotate(pairs, annotator).to_pylist()
    assert annotator.asked == [(PASSAGE, "Ann is old")]
    assert [row["label"] is None for row in rows] == [False, False, True, True]
    assert rows[2]["status"] == "the passage is empty"
    assert rows[3]["status"].startswith("the passage is not English: ")


def test_what_is_foreign() -> None:
    assert foreign("Он родился в Москве.") == "most of its letters are not Latin"
    assert "common in other languages" in foreign("Il est né dans une ville de France et il est peintre pour le roi.")
    assert foreign(PASSAGE) == ""
    # What a broken edit makes a model say is no foreign language and stays in the count.
    assert foreign("Boston Boston Boston " * 30) == ""
    assert foreign("") == ""


def test_sentences() -> None:
    assert sentences('He said "No." Then he left!\nIt was 5 p.m. in Oslo. 7 people saw it.') == [
        'He said "No."', "Then he left!", "It was 5 p.m. in Oslo.", "7 people saw it.",
    ]  # fmt: skip
