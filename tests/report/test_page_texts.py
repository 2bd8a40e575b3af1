"""Texts side by side: every character is shown once, and only what differs or is pointed at is marked."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.report.html.findings import Findings, FirstScreen, Folded, PageSection, findings_page
from seesaw_cf.report.html.look import Found, Pair, Piece, TextPair, Texts, compared
from tests.page_reader import HOSTILE, Read, check_alone

WORDS = st.lists(st.sampled_from(["She", "is", "a", "nun.", "judge", "in", "Paris"]), max_size=12).map(" ".join)
TEXT = st.text(st.characters(codec="utf-8"), max_size=60)


def whole(pieces: tuple[Piece, ...] | list[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


def page(pair: TextPair) -> Read:
    """The page that shows one pair."""
    texts = Folded("Open to read.", [Texts([Pair("who", "", [pair])])], warning=True)
    made = Findings(FirstScreen("", "title", {}), [PageSection("texts", "Texts", [texts])], (), "", (), ())
    return check_alone(findings_page(made))


@given(TEXT, TEXT)
def test_pieces_add_up_to_the_texts(before: str, after: str) -> None:
    pair = compared("", before, after, ([Found(before[3:9], "quote")], [Found(after, "supports", "1")]))
    control = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
    assert whole(list(pair.before)) == control.sub(" ", before)
    assert whole(list(pair.after)) == control.sub(" ", after)


@given(WORDS, WORDS)
def test_what_is_not_marked_is_the_same_on_both_sides(before: str, after: str) -> None:
    pair = compared("", before, after)
    same = ["".join(p.text for p in side if not p.changed).split() for side in (pair.before, pair.after)]
    assert same[0] == same[1]
    assert any(p.changed for p in [*pair.before, *pair.after]) == (before.split() != after.split())


def test_marks_cross_changes_and_the_stronger_sign_shows() -> None:
    found = [Found("a nun. In", "supports", "1"), Found("In Rome", "contradicts", "2"), Found("not there", "quote")]
    pair = compared("", "She is a judge. In Rome", "She is a nun. In Rome", ((), found))
    assert [(p.text, p.changed, p.mark) for p in pair.after] == [
        ("She is ", False, ""),
        ("a ", False, "supports"),
        ("nun.", True, "supports"),
        (" ", False, "supports"),
        ("In", False, "contradicts"),
        (" Rome", False, "contradicts"),
    ]
    assert [p.notes for p in pair.after][-2:] == [["✓1"], ["✗2"]]
    assert [(p.text, p.changed) for p in pair.before] == [("She is a ", False), ("judge.", True), (" In Rome", False)]


def test_a_page_says_what_is_cut_missing_or_too_long() -> None:
    cut = compared("", "w" * 12_001, "x")
    assert len(whole(list(cut.before))) == 12_001  # and an ellipsis
    assert cut.note == "1 characters at the end of the text before the edit are not shown."
    gone = compared("", None, "x")
    assert gone.note == "There is no text before the edit."
    assert "nothing" in page(gone).text
    assert "too long to be compared" in compared("", "a " * 3_000, "b").note


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_text_stays_a_text_and_is_folded_below_a_warning(kind: str) -> None:
    said = f"She {HOSTILE[kind]}\nis"
    shown = page(compared(HOSTILE[kind], said, f"{said} not", ((), [Found("is not", "contradicts", "3")])))
    assert [tag for tag, _ in shown.tags if tag in ("ins", "mark", "del", "sup")].count("ins") == 1
    [warning] = [attrs for attrs in shown.all("details") if attrs.get("class") == "warning"]
    assert "open" not in warning
    assert "Content warning." in shown.text
    assert max(re.findall(r"\w+|\S", HOSTILE[kind]), key=len) in shown.text


def test_spaces_and_line_ends_are_those_of_the_text() -> None:
    html = findings_page(
        Findings(
            FirstScreen("", "t", {}),
            [PageSection("a", "A", [Texts([Pair("w", "", [compared("", "a\n b", "a\n c")])])])],
            (),
            "",
            (),
            (),
        )
    )
    assert '<p class="written" dir="auto">a\n <del>b</del></p>' in html
    assert '<p class="written" dir="auto">a\n <ins>c</ins></p>' in html
