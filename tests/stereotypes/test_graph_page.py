"""`report.html` of stereotype graphs: every triple, a picture whose labels never collide, before and after an edit."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.report.html.findings import HEADS, findings_page
from seesaw_cf.report.html.graph import Link, draw_links, fitted, text_width
from seesaw_cf.texts.graph.changes import changes
from seesaw_cf.texts.graph.crawl import crawl_identities
from seesaw_cf.texts.graph.folder import Crawl
from seesaw_cf.texts.graph.identities import find
from seesaw_cf.texts.graph.page import graph_findings
from seesaw_cf.texts.graph.score import score_crawl
from seesaw_cf.texts.graph.settings import CrawlSettings
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


def test_one_graph_has_every_triple_below_a_warning(base: Crawl) -> None:
    html = findings_page(graph_findings(base))
    page = check_alone(html)
    assert [one for one in HEADS if f" {one}" in page.text] == ["Edited", "Not known", "How sure"]
    assert "Not measured" not in page.text
    assert len(page.data["rows"]) == 60
    [warning] = [attrs for attrs in page.all("details") if attrs.get("class") == "warning"]
    assert "open" not in warning
    assert page.text.index("Content warning.") < page.text.index("Women")
    assert csv_files(page)["triples.csv"].count("\n") == 61
    assert html == findings_page(graph_findings(base))


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
    assert "Overlap of the graph after the edit (1 = the same): with base +0.50" in page.text
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
    assert not page.blocks


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
