"""Answers that a model wrote: which known answer a text names, and the gap to teacher-forced numbers."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from seesaw_cf.effects.free_answers import mark_answers, named_first, summarise_answers


@pytest.mark.parametrize(
    ("text", "right", "wrong", "side"),
    [
        ("She was born in London.", ["London"], ["Paris"], "right"),
        ("Paris, not London", ["London"], ["Paris"], "wrong"),
        ("LONDON", ["London"], [], "right"),
        ("Nigeria", ["Niger"], [], ""),
        ("Nigeria", ["Niger"], ["Nigeria"], "wrong"),
        ("in Equatorial Guinea", ["Guinea"], ["Equatorial Guinea"], "wrong"),
        ("in Equatorial Guinea", ["Equatorial Guinea"], ["Guinea"], "right"),
        ("Guinea-Bissau", ["Guinea"], [], ""),
        ("the United States of America", ["United States"], ["United States of America"], "wrong"),
        ("the USA", ["United States of America", "USA"], ["USA!"], "right"),
        ("America", ["America", "USA"], ["America", "Canada"], ""),
        ("Sao Paulo", ["São Paulo"], [], "right"),
        ("Cote d\u2019Ivoire", ["Côte d'Ivoire"], [], "right"),
        ("C++ (2nd)", ["C++"], [], "right"),
        ("", ["London"], ["Paris"], ""),
        ("London", [], [], ""),
    ],
)
def test_the_first_known_answer_counts_and_the_longest_of_one_place(
    text: str, right: list[str], wrong: list[str], side: str
) -> None:
    assert named_first(text, right, wrong) == side


@given(st.lists(st.sampled_from(["Niger", "Nigeria", "Guinea", "New Guinea", "Mali"]), min_size=1, max_size=6))
def test_the_first_of_a_list_of_answers_is_found(names: list[str]) -> None:
    every = ["Niger", "Nigeria", "Guinea", "New Guinea", "Mali"]
    others = [name for name in every if name != names[0]]
    assert named_first(", ".join(names), names[:1], others) == "right"
    assert named_first(", ".join(names), others, names[:1]) == "wrong"


def rows(*texts: str, phase: str = "post", finish: str = "stop", status: str = "ok") -> pd.DataFrame:
    made = [
        {"text": text, "right": ["London"], "wrong": ["Paris"], "edit": at // 2, "likelier": True, "first_choice": 0.5}
        for at, text in enumerate(texts)
    ]
    return pd.DataFrame(made).assign(prompt="She was born in", phase=phase, finish=finish, status=status)


def test_every_text_has_one_outcome() -> None:
    texts = (
        "London!",
        "It is Paris",
        "I'm sorry, I cannot say.",
        "I do not know",
        "As an AI, I say London",
        " \n",
        "Oslo",
    )
    marked = mark_answers(rows(*texts))
    assert marked["outcome"].tolist() == ["right", "wrong", "refused", "refused", "right", "empty", "other"]
    assert marked["exact"].tolist() == [True] + [False] * 6
    assert mark_answers(rows("", status="refused: too long"))["outcome"].tolist() == ["failed"]
    assert mark_answers(rows("London and so on", finish="length"))["unfinished"].all()


def test_the_gap_is_a_paired_mean_over_edits() -> None:
    texts = ["London", "Oslo", "Paris", "London", "", "London", "Oslo", "Oslo", "London", "London", "x", "London"]
    after = rows(*texts).assign(likelier=pd.Series([True] * 11, range(11), object))
    every = pd.concat([mark_answers(after), mark_answers(rows(*["Oslo"] * 12, phase="pre"))])
    found = {name: number for name, _, number in summarise_answers(every)}
    written = np.array([text == "London" for text in texts], float)
    assert found["written"].value == pytest.approx(written.reshape(-1, 2).mean())
    assert found["written_before"].value == 0
    gaps = (1 - written)[:11]
    means = np.array([gaps[2 * at : 2 * at + 2].mean() for at in range(6)])
    assert found["gap"].value == pytest.approx(means.mean())
    assert found["gap"].low < means.mean() < found["gap"].high
    reach = stats.t.ppf(0.975, 5) * means.std(ddof=1) / 6**0.5
    assert found["gap"].high - found["gap"].value >= 0.9 * reach
    assert found["gap_tokens"].value == pytest.approx((0.5 - written).mean())
    assert (found["empty"].value, found["wrong"].value, found["other"].value, found["empty"].n) == (1, 1, 4, 12)


def test_a_judge_has_a_share_and_is_measured_where_the_answer_is_certain() -> None:
    said = {"London": True, "England's capital": True, "Paris!": True, "Oslo": None, " london.": False, "Rome": False}
    judged = rows(*said).assign(gives_it=pd.Series([*said.values()], dtype=object))
    found = {name: number for name, _, number in summarise_answers(mark_answers(rows(*said), judged))}
    assert found["judged"].value == pytest.approx((1 + 1 + 0) / 3), "every edit weighs equally; no verdict is no text"
    wrong = found["judge_error"]
    assert wrong.value == pytest.approx((0 + 1 + 1) / 3)
    assert wrong.n == 3
    assert 0 < wrong.low < wrong.value < wrong.high < 1
    assert "judged" not in {name for name, _, _ in summarise_answers(mark_answers(rows(*said)))}
