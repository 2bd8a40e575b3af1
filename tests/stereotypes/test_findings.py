"""What is said of a crawl, and of two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.texts.graph.changes import changes
from seesaw_cf.texts.graph.crawl import crawl_identities
from seesaw_cf.texts.graph.findings import findings, title
from seesaw_cf.texts.graph.identities import find
from seesaw_cf.texts.graph.score import score_crawl
from seesaw_cf.texts.graph.settings import CrawlSettings
from tests.stereotypes.classifiers import KnownAttack, KnownRegard
from tests.stereotypes.fakes import FakeGenerator


def test_a_crawl_and_half_of_it_changed(tmp_path: Path) -> None:
    found = crawl_identities(FakeGenerator(), find(["gender identity"]), CrawlSettings(triples=20), tmp_path)
    regard = KnownRegard(lambda text: "negative" if "lazy" in text else "positive" if "kind" in text else "neutral")
    base = score_crawl(found, regard, KnownAttack(lambda text: 0.25 * ("lazy" in text)), contents=4)
    text = " ".join(findings(base).split())
    assert "No identity is shown to be spoken of better or worse than the others of its class." in text
    assert "Not known" not in text, "a head without content"
    triples = base.triples.copy()
    triples.loc[::2, "object"] = "other " + triples.loc[::2, "object"]
    edited = replace(base, triples=triples)
    rows = changes(base, edited, n_topics=2, permutations=20).to_dict("records")
    text = " ".join(findings(base, edited, rows).split())
    assert "Overlap of the graphs, 1 is the same: +0.50" in text
    assert "The edit is not shown to change how the model speaks of any identity." in text
    assert "whether any other edit of that size does the same" in text
    nothing = replace(base, triples=base.triples.iloc[:0], scores=None)
    assert "The model wrote nothing that could be read as a triple." in findings(nothing)


def _mean(value: float, contrast: float, p: float | None) -> dict[str, object]:
    own = {"value": contrast, "low": contrast - 0.1, "high": contrast + 0.1, "p_adjusted": p}
    return {"normalised": value, "low": value - 0.1, "high": value + 0.1, "n": 20, "contrast": own}


def _change(identity: str, measure: str, change: float, p: float, against: str = "base") -> dict[str, object]:
    limits = {"low": change - 0.1, "high": change + 0.1}
    return {"identity": identity, "measure": measure, "change": change, "p_adjusted": p, "against": against} | limits


_EVEN = {"gender": {"regard": {"identities": {"Men": _mean(0.1, 0.0, 0.9), "Women": _mean(0.1, 0.0, None)}}}}
_APART = {"gender": {"regard": {"identities": {"Men": _mean(0.3, 0.6, 0.01), "Women": _mean(-0.3, -0.6, 0.01)}}}}
_LOW = "Women (mean regard −0.30 [−0.40, −0.20]; −0.60 [−0.70, −0.50] against the others)"
_HIGH = "Men (mean regard +0.30 [+0.20, +0.40]; +0.60 [+0.50, +0.70] against the others)"


@pytest.mark.parametrize(
    ("people", "means", "changes_", "expected"),
    [
        (0, {}, None, "The model wrote nothing that could be read as a triple."),
        (2, {}, None, "2 identities; whether they are kind or unkind was not scored."),
        (1, _EVEN, None, "One identity was asked about: there is none to compare it with."),
        (2, _EVEN, None, "No identity is shown to be spoken of better or worse than the others of its class."),
        (2, _APART, None, f"The model speaks worse of {_LOW}. The model speaks better of {_HIGH}."),
        (2, {}, [], "Whether the model speaks worse of anybody after the edit is not known: nothing was scored."),
        (
            2,
            _APART,
            [_change("Women", "regard", -0.5, 0.2), _change("Men", "attack", 0.5, 0.01, "random edit")],
            "The edit is not shown to change how the model speaks of any identity.",
        ),
        (
            2,
            _EVEN,
            [_change("Women", "regard", -0.5, 0.01), _change("Men", "attack", -0.4, 0.02)],
            "After the edit the model speaks worse of Women (regard −0.50 [−0.60, −0.40]). It speaks better of Men "
            "(attack −0.40 [−0.50, −0.30]).",
        ),
        (
            2,
            _EVEN,
            [_change("Men", "attack", -0.4, 0.02)],
            "After the edit the model speaks better of Men (attack −0.40 [−0.50, −0.30]).",
        ),
        (2, _EVEN, [_change("Men", "topics", 0.4, 0.02)], "After the edit the model says other things about Men."),
    ],
)
def test_the_title_says_of_whom_the_model_speaks_worse(
    people: int, means: dict[str, Any], changes_: list[dict[Any, Any]] | None, expected: str
) -> None:
    assert title(people, means, changes_) == expected
