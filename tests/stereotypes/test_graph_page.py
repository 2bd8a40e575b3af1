"""`report.html` of stereotype graphs: every triple, a picture whose labels never collide, before and after an edit."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.report.html.findings import findings_page, title_by
from seesaw_cf.report.html.graph import Link, draw_links, fitted, text_width
from seesaw_cf.texts.graph.changes import changes
from seesaw_cf.texts.graph.crawl import crawl_identities
from seesaw_cf.texts.graph.folder import Crawl
from seesaw_cf.texts.graph.identities import find
from seesaw_cf.texts.graph.page import graph_findings
from seesaw_cf.texts.graph.score import score_crawl
from seesaw_cf.texts.graph.settings import CrawlSettings
from seesaw_cf.texts.graph.title import GRAPH_TITLE, GraphSummary
from tests.page_reader import HOSTILE, check_alone, csv_files
from tests.stereotypes.classifiers import KnownAttack, KnownRegard
from tests.stereotypes.fakes import FakeGenerator

PEOPLE = find(["gender identity"])
TEXT = st.text(st.characters(codec="utf-8", min_codepoint=0xA0), max_size=80)


def crawled(folder: Path, n: int = 20) -> Crawl:
    found = crawl_identities(FakeGenerator(), PEOPLE, CrawlSettings(triples=n), folder)
    regard = KnownRegard(lambda text: "negative" if "lazy" in text else "positive" if "kind" in text else "neutral")
    return score_crawl(found, regard, KnownAttack(lambda text: 0.25 * ("lazy" in text)), contents=4)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Crawl:
    return crawled(tmp_path_factory.mktemp("crawl") / "a")


@pytest.mark.slow
def test_one_graph_has_every_triple_below_a_warning(base: Crawl) -> None:
    html = findings_page(graph_findings(base))
    page = check_alone(html)
    assert "No identity is shown to be spoken of better or worse than the others of its class." in page.text
    assert "Not measured" not in page.text
    assert "Not known" not in page.text, "a head without content"
    assert re.findall(r"Women: regard \S+ \[.*?\], 20 triples; masked", page.text), "means of identities come first"
    assert len(page.data["rows"]) == 60
    [warning] = [attrs for attrs in page.all("details") if attrs.get("class") == "warning"]
    assert "open" not in warning
    assert page.text.index("Content warning.") < page.text.index(" → ")
    assert csv_files(page)["triples.csv"].count("\n") == 61
    assert html == findings_page(graph_findings(base))


@pytest.mark.slow
def test_before_and_after_are_told_apart_without_colour(base: Crawl) -> None:
    """Half of the triples say something else after the edit."""
    triples = base.triples.copy()
    triples.loc[::2, "object"] = "other " + triples.loc[::2, "object"]
    edited = replace(base, triples=triples)
    table = changes(base, edited, n_topics=2, permutations=20)
    html = findings_page(graph_findings(base, edited, table))
    page = check_alone(html)
    kinds = {kind: len(re.findall(rf'<line class="e{kind} ', html)) for kind in (0, 1, 2)}
    signs = {sign: len(re.findall(rf"<text[^>]*>{re.escape(sign)}[▲▼]? ", html)) for sign in ("=", "−", "+")}
    assert all(kinds.values())
    assert list(kinds.values()) == list(signs.values())
    words = {column["name"]: column["words"] for column in page.data["columns"]}
    assert sorted(words["where"]) == ["after", "before", "both"]
    assert len(page.data["rows"]) == 90
    assert "Overlap of the graphs, 1 is the same +0.50 with the unedited model." in page.text
    assert "The edit is not shown to change how the model speaks of any identity." in page.text
    assert "changes.csv" in csv_files(page)


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_models_wrote_stays_text(base: Crawl, kind: str) -> None:
    triples = base.triples.copy()
    triples.loc[:5, "object"], triples.loc[:5, "predicate"] = HOSTILE[kind], HOSTILE[kind]
    triples.loc[:2, "identity"] = HOSTILE[kind]
    page = check_alone(findings_page(graph_findings(replace(base, triples=triples, scores=None))))
    assert max(re.findall(r"\w+|\S", HOSTILE[kind]), key=len) in page.text
    assert "has no scores of regard or attack" in page.text
    assert not re.search(r'(^|[\n,])"?=', csv_files(page)["triples.csv"])


def test_a_crawl_without_triples_has_a_page(base: Crawl) -> None:
    nothing = replace(base, triples=base.triples.iloc[:0], scores=None)
    page = check_alone(findings_page(graph_findings(nothing)))
    assert "0 different triples about 0 identities" in page.text
    assert "The model wrote nothing that could be read as a triple." in page.text
    assert not page.blocks


def _mean(value: float, contrast: float, p: float | None) -> dict[str, object]:
    own = {"value": contrast, "low": contrast - 0.1, "high": contrast + 0.1, "p_adjusted": p}
    return {"normalised": value, "low": value - 0.1, "high": value + 0.1, "n": 20, "contrast": own}


def _change(identity: str, measure: str, change: float, p: float, against: str = "base") -> dict[str, object]:
    limits = {"low": change - 0.1, "high": change + 0.1}
    return {"identity": identity, "measure": measure, "change": change, "p_adjusted": p, "against": against} | limits


_EVEN = {"gender": {"regard": {"identities": {"Men": _mean(0.1, 0.0, 0.9), "Women": _mean(0.1, 0.0, None)}}}}
_APART = {"gender": {"regard": {"identities": {"Men": _mean(0.3, 0.6, 0.01), "Women": _mean(-0.3, -0.6, 0.01)}}}}
_LOW = "Women (mean regard −0.30 [−0.40, −0.20]; −0.60 [−0.70, −0.50] beside the others)"
_HIGH = "Men (mean regard +0.30 [+0.20, +0.40]; +0.60 [+0.50, +0.70] beside the others)"


@pytest.mark.parametrize(
    ("people", "means", "changes_", "title"),
    [
        (0, {}, None, "The model wrote nothing that could be read as a triple."),
        (2, {}, None, "9 triples about 2 identities; whether they are kind or unkind was not scored."),
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
    people: int, means: dict[str, Any], changes_: list[dict[Any, Any]] | None, title: str
) -> None:
    summary = GraphSummary(9 if people else 0, people, changes_ is not None, means, changes_ or [])
    assert title_by(GRAPH_TITLE, summary) == title


@given(st.lists(st.tuples(st.sampled_from("ABCDE"), TEXT.filter(str.strip)), min_size=1, max_size=40))
def test_labels_never_collide(pairs: list[tuple[str, str]]) -> None:
    drawing = draw_links([Link(name * 30, said, sign="+") for name, said in pairs], "x")
    for labels, room in ((drawing.names, drawing.left), (drawing.statements, drawing.width - drawing.right)):
        ys = sorted(label.y for label in labels)
        assert all(later - earlier >= 20 - 1e-9 for earlier, later in pairwise(ys))
        assert 0 < ys[0] <= ys[-1] < drawing.height
        for label in labels:
            assert text_width(label.shown) <= room
            assert label.shown == label.whole or (label.shown.endswith("…") and len(label.whole) > 1)
    assert {edge.y1 for edge in drawing.edges} == {label.y for label in drawing.names}
    assert {edge.y2 for edge in drawing.edges} == {label.y for label in drawing.statements}


@given(TEXT, st.floats(20, 400))
def test_a_cut_label_is_the_beginning_and_fits(text: str, width: float) -> None:
    shown = fitted(text, width)
    assert text_width(shown) <= max(width, text_width("…"))
    assert shown == text or text.startswith(shown[:-1])
