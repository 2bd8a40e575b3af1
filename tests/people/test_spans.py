"""Stretches of a passage: what a form says is checked against its words, and is exported by its characters."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.base.tables import read_table
from seesaw_cf.effects.leme_annotation import sentences
from seesaw_cf.texts.people.export import export_study
from seesaw_cf.texts.people.spans import marked, read_spans, sentence_spans, word_spans
from seesaw_cf.texts.people.store import Entry, StudyStore
from seesaw_cf.texts.report.collected import collect
from seesaw_cf.texts.tables import SPANS

from .studies import R1, R2, raters, study

TEXTS = st.text(st.sampled_from("ab.A \n\t\u00e9\U0001f600"), max_size=60)


@given(TEXTS)
def test_sentences_and_words_are_where_they_stand(text: str) -> None:
    spans = sentence_spans(text)
    assert [text[start:end] for start, end in spans] == sentences(text)
    words = [text[start:end] for span in spans for start, end in word_spans(text, span)]
    assert words == text.split()


@given(TEXTS, st.lists(st.tuples(st.integers(-1, 61), st.integers(-1, 61)), max_size=5))
def test_what_is_read_begins_and_ends_with_words_and_never_overlaps(text: str, said: list[tuple[int, int]]) -> None:
    found = read_spans(text, [f"{start}-{end}" for start, end in said])
    words = word_spans(text, (0, len(text)))
    assert {start for start, _ in found} <= {start for start, _ in words}
    assert {end for _, end in found} <= {end for _, end in words}
    assert all(one[1] <= other[0] for one, other in pairwise(found))
    assert read_spans(text, [f"{start}-{end}" for start, end in found]) == found
    good = {pair for pair in said if read_spans(text, ["{}-{}".format(*pair)]) == [pair]}
    assert {at for pair in good for at in range(*pair)} == {at for pair in found for at in range(*pair)}


def test_words_that_are_no_stretch_are_left_out() -> None:
    text = "He lived in Ghent. He died there."
    for wrong in ("", "3", "3-", "8-3", "3-3", "4-8", "3-7", "3-999", "-1-8", "3-8 ", "\u0663-8", "9" * 40 + "-1"):
        assert read_spans(text, [wrong]) == [], wrong
    assert read_spans(text, ["19-33", "3-11", "9-18", "3-8"]) == [(3, 18), (19, 33)]
    said = marked(text, {"sentences": [2], "spans": [[3, 8]]})
    assert [text[slice(*span)] for span in said] == ["lived", "He died there."]
    assert marked(text, {"sentences": [1]}) == [(0, 18)], "as answers were before words could be marked"


def test_words_are_kept_shown_again_and_exported_by_their_characters(tmp_path: Path) -> None:
    file = study(tmp_path, "claims", training=False, sample=1, deal={"duplicates": 0.0, "attention": 0})
    with StudyStore(file) as store, StudyStore(file, readonly=True) as look:
        (one, _) = raters(store, look)
        one.enter()
        names = [name for name in one.page.choices if "." not in name]
        body = store.items[store.tasks[R1][0].item].texts[0].body
        start, end = word_spans(body, (0, len(body)))[1][0], word_spans(body, (0, len(body)))[2][1]
        one.send(**{name: ["supports"] for name in names})
        assert one.status == 422
        assert "mark at least one sentence, or the words, that say so" in one.page.texts
        said = {name: ["supports"] for name in names} | {f"{name}.spans": [f"{start}-{end}", "x"] for name in names}
        one.send("", **said, **{f"{names[0]}.sentences": ["2"]})
        assert one.status == 200
        one.open("/task/1")
        assert one.page.fields[f"{names[0]}.spans"] == [f"{start}-{end}"], "without a script it can be taken away"
        one.send("", **{f"{names[0]}.spans": [], f"{names[0]}.sentences": ["2"]})
        answer = store.entries(R1)[-1].content
        assert answer[names[0]] == {"choice": "supports", "sentences": [2], "spans": []}
        assert answer[names[1]] == {"choice": "supports", "sentences": [], "spans": [[start, end]]}
        one.open("/task/1")
        one.send("", **{names[1]: ["neutral"]})
        assert store.entries(R1)[-1].content[names[1]] == {"choice": "neutral", "sentences": [], "spans": []}
        old = {name: {"choice": "contradicts", "sentences": [1]} for name in names}
        store.add(Entry(R2, "consent"))
        store.add(Entry(R2, "answer", 1, old, "f"))
        export_study(store, tmp_path / "out")
    table = read_table(tmp_path / "out" / "annotations.spans.parquet")
    assert table.schema.equals(SPANS)
    rows = table.to_pylist()
    known = sentence_spans(body)
    assert {row["text"] for row in rows} == {body[slice(*span)] for span in (known[0], known[1], (start, end))}
    passages = read_table(tmp_path / "run" / "passages.parquet").to_pylist()
    place = ("editor", "case_id", "phase", "sample", "passage")
    texts = {tuple(row[name] for name in place): row["text"] for row in passages}
    assert all(texts[tuple(row[name] for name in place)][row["start"] : row["end"]] == row["text"] for row in rows)
    found = collect([tmp_path / "out"], ["annotations"]).get("annotations").to_pylist()
    marks = {tuple(row["evidence"]) for row in found if row["annotator"] == R1}
    assert marks == {(), (body[slice(*known[1])],), (body[start:end],)}
