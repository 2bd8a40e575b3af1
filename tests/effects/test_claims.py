"""Shares of claims, measures of passages and surveys: by hand, and laws of renaming, copying and turning."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.effects.leme_auto import correlations
from seesaw_cf.effects.ratings import survey_of_columns
from seesaw_cf.effects.tables import Id, floats, ids, labels, optional_labels, read_columns, text_lists, wholes
from seesaw_cf.effects.texts import LABELS, leme_annotation, sentences
from seesaw_cf.errors import RecordError, UnknownNameError

few = settings(derandomize=True, deadline=None, max_examples=10)
CLAIMS = st.lists(st.tuples(st.integers(1, 6), st.sampled_from(LABELS)), min_size=1, max_size=20)
Claims = Sequence[tuple[Id, str | None]]


def annotated(rows: Claims, reference: Sequence[str | None] | None = None, draws: int = 20) -> Any:
    case, label = (list(column) for column in zip(*rows, strict=True))
    one = ["x"] * len(rows)
    columns = {"case_id": case, "group": one, "passage": one, "claim_kind": ["new_fact"] * len(rows), "label": label}
    return leme_annotation(columns | {"reference": reference}, draws=draws)


def cell_of(rows: Claims) -> Any:
    return annotated(rows)["shares"]["x"]["x"]["new_fact"]


def shares(rows: Claims) -> dict[str, Any]:
    return {label: cell for label, cell in cell_of(rows).items() if label in LABELS}


def with_people(rows: Sequence[tuple[str, str]]) -> Any:
    """(label, label of people) of one claim each."""
    return annotated([(n, label) for n, (label, _) in enumerate(rows)], [other for _, other in rows])["agreement"]


def numbers(found: Mapping[str, Any]) -> list[float]:
    return [float(found[name]) for name in ("value", "mean", "spearman", "low", "high", "stderr", "p") if name in found]


@few
@given(CLAIMS, st.permutations(LABELS), st.integers(1, 4))
def test_labels_copies_and_missing_labels(rows: Claims, names: list[str], more: int) -> None:
    # shares of labels add up
    own = shares(rows).values()
    for name in ("value", "pooled"):
        assert sum(one[name] for one in own) == pytest.approx(1)
    assert (cell_of(rows)["n"], cell_of(rows)["n_cases"]) == (len(rows), len({case for case, _ in rows}))
    # labels are treated alike
    new = dict(zip(LABELS, names))
    found, renamed = shares(rows), shares([(case, new[str(label)]) for case, label in rows])
    for label, one in found.items():
        assert numbers(renamed[new[label]]) == pytest.approx(numbers(one), nan_ok=True)
    # copies of a cases claims are no evidence
    found, copied = shares(rows), shares([*rows, *rows])
    text = shares([(f"case {case}", label) for case, label in rows])
    for label, one in found.items():
        assert numbers(copied[label]) == pytest.approx(numbers(one), nan_ok=True)
        assert numbers(text[label]) == pytest.approx(numbers(one), nan_ok=True)
    # claims without label are counted and change nothing
    found = cell_of([*rows, *[(1, None)] * more])
    assert (found["n"], found["n_missing"]) == (len(rows), more)
    assert {label: found[label]["pooled"] for label in LABELS} == {
        label: one["pooled"] for label, one in shares(rows).items()
    }
    assert cell_of([(1, None)]) == {"n": 0, "n_cases": 0, "n_missing": 1}


def test_agreement_with_people_by_hand() -> None:
    """Label, people: s s, s s, c c, s c. Right 3/4; chance 3/4 * 1/2 + 1/4 * 1/2 = 1/2, kappa 1/2.

    F1: supports 2 * 2 / (2 + 3), contradicts 2 * 1 / (2 + 1). Alpha: two unequal ordered pairs of 8, expected
    2 * 5 * 3 of 56: 1 - (1/4) / (15/28) = 8/15. The commonest label of people is right twice.
    """
    s, c = "supports", "contradicts"
    found = with_people([(s, s), (s, s), (c, c), (s, c)])
    assert found["accuracy"]["value"] == 0.75
    assert found["macro_f1"]["value"] == pytest.approx((0.8 + 2 / 3) / 2)
    assert (found["cohen_kappa"], found["krippendorff_alpha"]) == pytest.approx((0.5, 8 / 15))
    assert (found["constant"], found["n"], found["n_cases"]) == (0.5, 4, 4)
    assert found["confusion"] == [[2, 0, 0], [0, 0, 0], [1, 0, 1]]


@few
@given(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=15))
def test_agreement_is_the_same_from_either_side(rows: list[tuple[str, str]]) -> None:
    one, other = with_people(rows), with_people([(people, label) for label, people in rows])
    assert other["accuracy"]["value"] == one["accuracy"]["value"]
    for name in ("cohen_kappa", "krippendorff_alpha"):
        assert other[name] == pytest.approx(one[name], nan_ok=True)
    assert other["confusion"] == [list(row) for row in zip(*one["confusion"])]
    assert with_people([(people, people) for _, people in rows])["macro_f1"]["value"] == 1
    assert one["constant"] >= 1 / 3


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("He said 3.5 metres. then left", ["He said 3.5 metres. then left"]),
        ('"Yes." "No." 7 left', ['"Yes."', '"No."', "7 left"]),
        ("a\n\n b \nc", ["a", "b", "c"]),
        (" \n ", []),
        ('He said "No." Then he left!\nIt was 5 p.m.', ['He said "No."', "Then he left!", "It was 5 p.m."]),
    ],
)
def test_sentences_end_before_a_capital_a_digit_or_a_line(text: str, parts: list[str]) -> None:
    assert sentences(text) == parts


def related(rows: Sequence[tuple[float, float]], draws: int = 15) -> Any:
    measure, rating = zip(*rows, strict=True)
    found = correlations(list(range(len(rows))), {"perplexity": measure}, {"fluency": rating}, draws=draws)
    return found["perplexity"]


@few
@given(st.lists(st.tuples(st.integers(-20, 20), st.integers(1, 7)), min_size=3, max_size=12))
def test_rank_correlation_knows_only_the_order(rows: list[tuple[int, int]]) -> None:
    found = related(rows)
    bent = related([(math.exp(x / 10), 1 + (y - 1) ** 2 / 6) for x, y in rows])
    assert numbers(bent) == pytest.approx(numbers(found), nan_ok=True)
    turned = related([(-x, y) for x, y in rows])
    expected = [-found["spearman"], -found["high"], -found["low"], found["p"]]
    assert numbers(turned) == pytest.approx(expected, nan_ok=True)
    assert math.isnan(found["spearman"]) or -1 <= found["spearman"] <= 1


Row = tuple[int, str, str, float | None]


def survey(rows: list[Row], reference: str | None = None) -> Any:
    columns = pd.DataFrame(rows, columns=["case_id", "method", "item", "rating"])
    return survey_of_columns(columns, reference=reference)["methods"]


RATED = st.lists(st.tuples(st.integers(1, 7), st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=14)


@few
@given(RATED, st.integers(0, 3))
def test_a_constant_and_a_reversed_scale_in_a_survey(rows: list[tuple[int, int, int]], shift: int) -> None:
    def both(change: float, sign: int = 1) -> Any:
        flat: list[Row] = []
        for case, *pair in rows:
            flat += [(case, name, "fluency", change + sign * own) for name, own in zip(("none", "ft"), pair)]
        return survey(flat, "none")

    def cell(found: Any, method: str) -> Any:
        return found[method]["items"]["fluency"]["mean"]

    def gap(found: Any) -> Any:
        return found["ft"]["items"]["fluency"]["difference"]

    plain, moved, turned = both(0), both(shift), both(7, -1)
    assert cell(moved, "ft") == pytest.approx(cell(plain, "ft") + shift)
    assert cell(turned, "ft") == pytest.approx(7 - cell(plain, "ft"))
    assert gap(plain)["mean"] == pytest.approx(cell(plain, "ft") - cell(plain, "none"))
    assert numbers(gap(moved)) == pytest.approx(numbers(gap(plain)), nan_ok=True, abs=1e-9)
    value, low, high, stderr, p = numbers(gap(plain))
    assert numbers(gap(turned)) == pytest.approx([-value, -high, -low, stderr, p], nan_ok=True, abs=1e-9)
    assert "difference" not in plain["none"]["items"]["fluency"]
    assert plain["ft"]["types"]["naturalness"]["mean"] == cell(plain, "ft")


@pytest.mark.parametrize(
    ("kind", "column", "message"),
    [
        (ids, [1, "a"], r"x\[0\] is 1, expected text"),
        (ids, [1, None], r"x\[1\] is None, expected a whole number"),
        (ids, [1, 2**63], r"x\[1\] is 9223372036854775808, expected a whole number"),
        (wholes, [0.5, 1], r"x\[0\] is 0\.5, expected a whole number"),
        (floats, [1.0, "2"], r"x\[1\] is '2', expected a number or None"),
        (floats, [1, 10**400], r"x\[1\] is 1000.* \.\.\., expected a number or None"),
        (floats, [True, None], r"x\[0\] is True, expected a number or None"),
        (labels, ["a", None], r"x\[1\] is None, expected text"),
        (labels, ["a", "\udcff"], r"x\[1\] is .*half a surrogate pair"),
        (optional_labels, ["a", 3.0], r"x\[1\] is 3\.0, expected text"),
        (text_lists, [["a"], "b"], r"x\[1\] is 'b', expected a list"),
        (text_lists, [["a"], ["b", None]], r"x\[1\]\[1\] is None, expected text"),
        (labels, "ab", r"x is 'ab', expected a list with one value per row"),
        (labels, [], r"no rows in \['x'\]"),
    ],
)
def test_a_value_of_another_kind_is_named_with_its_row(kind: object, column: Sequence[object], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        read_columns({"x": kind}, {"x": column})  # type: ignore[dict-item]


def test_columns_are_read_as_they_are_declared() -> None:
    kinds = {"id": ids, "n": wholes, "value": floats, "name": labels, "label": optional_labels, "texts": text_lists}
    columns: dict[str, Sequence[Any]] = {
        "id": ["a", "b"],
        "n": [1, -1],
        "value": [None, 1],
        "name": ["x", ""],
        "label": [math.nan, "y"],
    }
    frame = read_columns(kinds, columns | {"texts": [(), ("z",)]})
    assert frame["id"].tolist() == ["a", "b"]
    assert frame["n"].tolist() == [1, -1]
    assert math.isnan(frame["value"][0])
    assert frame["value"][1] == 1.0
    assert frame["label"].tolist() == [None, "y"]
    assert frame["texts"].tolist() == [(), ("z",)]
    with pytest.raises(RecordError, match=r"columns have unequal lengths \{'id': 1, 'n': 2\}"):
        read_columns({"id": ids, "n": wholes}, {"id": [1], "n": [1, 2]})
    with pytest.raises(RecordError, match=r"columns \['n'\] are missing"):
        read_columns({"id": ids, "n": wholes}, {"id": [1]})
    with pytest.raises(UnknownNameError, match="unknown column 'i'"):
        read_columns({"id": ids}, {"i": [1]})


MAIN = "new_fact_main_passage"


def test_cases_weigh_alike_and_missing_ratings_are_counted() -> None:
    """Case 1 has ratings 1, 1, 4 (mean 2), case 2 has 6, case 3 none: mean of case means 4."""
    rows: list[Row] = [(1, "ft", MAIN, 1), (1, "ft", MAIN, 1), (1, "ft", MAIN, 4), (2, "ft", MAIN, 6)]
    rows += [(3, "ft", MAIN, None), (3, "ft", MAIN, math.nan)]
    cell = survey(rows)["ft"]["items"][MAIN]
    assert (cell["mean"], cell["n"], cell["n_cases"], cell["n_missing"]) == (4.0, 4, 2, 2)
    assert math.isnan(cell["low"])
    assert "too few " in cell["note"]
    assert math.isnan(survey([(1, "ft", MAIN, None)])["ft"]["items"][MAIN]["mean"])


def test_differences_use_the_edits_that_both_have() -> None:
    """Cases 1 and 2 have both: (7 + 5)/2 - (1 + 2)/2 = 4.5; case 3 has no reference and does not count."""
    rows: list[Row] = [(1, "none", MAIN, 1), (2, "none", MAIN, 2), (1, "ft", MAIN, 7), (2, "ft", MAIN, 5)]
    found = survey([*rows, (3, "ft", MAIN, 1), (4, "none", MAIN, None)], "none")
    cell = found["ft"]["items"][MAIN]["difference"]
    assert (cell["mean"], cell["n_cases"]) == (4.5, 2)
    assert "difference" not in found["none"]["items"][MAIN]
    apart = survey([(1, "none", MAIN, 1), (2, "ft", MAIN, 7)], "none")["ft"]["items"][MAIN]["difference"]
    assert apart["note"] == "no edit in common"


@pytest.mark.parametrize(
    ("rows", "error", "text"),
    [
        ([(1, "ft", "fluently", 3.0)], UnknownNameError, "fluency"),
        ([(1, "ft", MAIN, 8.0)], RecordError, "rating 8.0"),
        ([(1, "ft", MAIN, 0.0)], RecordError, "rating 0.0"),
        ([(1, "ft", MAIN, 3.0)], UnknownNameError, "method 'none'"),
    ],
)
def test_bad_input(rows: list[Row], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        survey(rows, "none")
