"""Every number of edit success by hand, from columns and from score tables, and laws of it."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.base.tables import LATER
from seesaw_cf.effects.prompts import SIDES
from seesaw_cf.effects.success import TESTS, edit_success, success_of_scores
from seesaw_cf.errors import RecordError
from seesaw_cf.stats.plain import as_json, plain
from seesaw_cf.stats.simple import proportion
from seesaw_cf.types import Phase
from tests.effects.rows import four, table

few = settings(derandomize=True, deadline=None, max_examples=8)


def tokens(rows: Sequence[tuple[int, str, int, int, int, int]]) -> dict[str, Any]:
    """(case, test, tokens right, tokens kept, tokens, generated)."""
    case, test, right, kept, n, generated = (list(column) for column in zip(*rows, strict=True))
    empty: list[float | None] = [None] * len(rows)
    given = {"case_id": case, "test": test, "tokens_right": right, "tokens_kept": kept, "n_tokens": n}
    return given | {"generated": generated} | dict.fromkeys(SIDES, empty)


def test_every_number_of_the_token_protocols_by_hand() -> None:
    rows = [
        (1, "rewrite", 1, 0, 2, 0),
        (2, "rewrite", 3, 0, 3, 1),
        (1, "paraphrase", 1, 0, 4, 1),
        (1, "paraphrase", 3, 0, 4, 0),
        (2, "paraphrase", 0, 0, 2, 1),
        (1, "neighborhood", 2, 1, 2, 1),
        (2, "neighborhood", 1, 4, 4, 0),
        (2, "portability", 1, 0, 5, 1),
    ]
    found = edit_success(tokens(rows))
    values = {protocol: {name: one.value for name, one in own.items()} for protocol, own in found.numbers.items()}
    # rewrite (1/2 + 3/3)/2; paraphrase ((1/4 + 3/4)/2 + 0)/2; neighbourhood (2/2 + 1/4)/2;
    # score 3/(4/3 + 4 + 8/5) = 45/104
    expected = {"efficacy": 0.75, "paraphrase": 0.25, "specificity": 0.625, "score": 45 / 104}
    assert values["zsre"] == pytest.approx(expected)
    # locality (1/2 + 4/4)/2; portability: case 2 alone, 1/5
    expected = {"rewrite": 0.75, "rephrase": 0.25, "locality": 0.75, "portability": 0.2}
    assert values["easyedit"] == pytest.approx(expected)
    # (0 + 1)/2; ((1 + 0)/2 + 1)/2; (1 + 0)/2; 1
    expected = {"rewrite": 0.5, "paraphrase": 0.75, "neighborhood": 0.5, "portability": 1.0}
    assert values["generation"] == pytest.approx(expected)
    assert all(math.isnan(value) for value in values["counterfact"].values())
    paraphrase = found.numbers["zsre"]["paraphrase"]
    assert (paraphrase.n, paraphrase.clusters) == (3, {"case": 2})
    assert found.numbers["zsre"]["score"].clusters == {"case": 2}


# Whole nats: their sums and differences are exact.
NATS = st.integers(-9, 0).map(float)
ROWS = st.lists(
    st.tuples(st.integers(1, 6), st.sampled_from(TESTS[:3]), NATS, NATS, NATS, NATS), min_size=1, max_size=16
)
Row = tuple[int, str, float, float, float, float]


def of_answers(rows: Sequence[Row]) -> dict[str, Any]:
    """(case, test, pre new, pre true, post new, post true)."""
    empty: list[float | None] = [None] * len(rows)
    given = dict(zip(("case_id", "test", *SIDES), (list(column) for column in zip(*rows, strict=True))))
    return given | dict.fromkeys(("tokens_right", "tokens_kept", "n_tokens", "generated"), empty)


def counterfact(rows: Sequence[Row], nats: float = 0.0) -> dict[str, float]:
    found = edit_success(of_answers(rows), nats=nats).numbers["counterfact"]
    return {name: one.value for name, one in found.items()}


def same(found: float, expected: float) -> bool:
    return found == pytest.approx(expected, abs=1e-12, nan_ok=True)


@few
@given(ROWS)
def test_what_no_name_order_or_copy_changes(rows: list[Row]) -> None:
    # swapping the two answers turns winning into losing
    found = counterfact(rows)
    turned = counterfact([(case, test, a, b, true, new) for case, test, a, b, new, true in rows])
    assert same(turned["ES"], found["still_true"])
    assert same(turned["still_true"], found["ES"])
    for name in ("EM", "PM", "NM"):
        assert same(turned[name], -found[name])
    # copies weigh nothing within a case and alike as cases
    found = counterfact(rows)
    assert counterfact(rows * 3) == pytest.approx(found, abs=1e-12, nan_ok=True)
    assert counterfact([*rows, *((row[0] + 10, *row[1:]) for row in rows)]) == pytest.approx(
        found, abs=1e-12, nan_ok=True
    )
    # the score lies between its parts and is nothing without one
    found = counterfact(rows)
    parts = [found[name] for name in ("ES", "PS", "NS")]
    if any(math.isnan(part) for part in parts):
        assert math.isnan(found["S"])
    elif min(parts) == 0:
        assert found["S"] == 0
    else:
        assert min(parts) - 1e-12 <= found["S"] <= max(parts) + 1e-12


@few
@given(ROWS, st.integers(0, 5))
def test_a_likelier_new_answer_never_harms_the_edit_and_never_helps_locality(rows: list[Row], rise: int) -> None:
    found = counterfact(rows)
    raised = counterfact([(*row[:4], min(0.0, row[4] + rise), row[5]) for row in rows])
    for name in ("ES", "PS", "EM", "PM"):
        assert math.isnan(found[name]) or raised[name] >= found[name] - 1e-12
    for name in ("NS", "NM", "still_true"):
        assert math.isnan(found[name]) or raised[name] <= found[name] + 1e-12
    assert same(raised["already_true"], found["already_true"])


@few
@given(ROWS, st.integers(-5, 0))
def test_a_constant_in_both_answers_keeps_who_wins_and_scales_margins(rows: list[Row], shift: int) -> None:
    found = counterfact(rows)
    moved = counterfact([(*row[:4], row[4] + shift, row[5] + shift) for row in rows])
    for name in ("ES", "PS", "NS", "S", "already_true", "still_true"):
        assert same(moved[name], found[name])
    for name in ("EM", "PM", "NM"):
        assert moved[name] == pytest.approx(found[name] * math.exp(shift), abs=1e-12, nan_ok=True)


@few
@given(ROWS, st.floats(0, 3), st.floats(0, 3), st.permutations(range(1, 7)))
def test_names_ties_and_constants(rows: list[Row], one: float, other: float, names: list[int]) -> None:
    # a wider tie never lets more edits succeed
    narrow, wide = (counterfact(rows, nats) for nats in sorted((one, other)))
    for name in ("ES", "PS", "NS", "still_true", "already_true"):
        assert math.isnan(narrow[name]) or wide[name] <= narrow[name] + 1e-12
    for name in ("EM", "PM", "NM"):
        assert same(wide[name], narrow[name])
    assert math.isnan(wide["ES"]) or wide["ES"] + wide["still_true"] <= 1 + 1e-12
    # names of cases carry no information
    renamed = [(names[row[0] - 1], *row[1:]) for row in rows]
    assert counterfact(renamed) == pytest.approx(counterfact(rows), abs=1e-12, nan_ok=True)


def test_rows_without_measurement_are_counted_and_change_nothing() -> None:
    rows: list[Row] = [(case, "rewrite", -2, -1, -1 - case % 2, -1.5) for case in range(1, 7)]
    alone = edit_success(of_answers(rows))
    more = of_answers([*rows, (1, "rewrite", math.nan, math.nan, math.nan, math.nan)])
    found = edit_success(more)
    assert (alone.n_empty, found.n_empty, found.n_rows) == (0, 1, 7)
    assert found.numbers["counterfact"]["ES"] == alone.numbers["counterfact"]["ES"]


@pytest.mark.parametrize("cases", [1, 4, 5, 160])
def test_share_of_edits_has_the_interval_of_a_proportion_and_margins_need_five(cases: int) -> None:
    rows: list[Row] = [(case, "rewrite", -2, -1, -1 - case % 2, -1.5) for case in range(cases)]
    found = edit_success(of_answers(rows)).numbers["counterfact"]
    share = proportion(math.ceil(cases / 2), cases)  # even cases win: -1 against -1.5
    assert [found["ES"].value, found["ES"].low, found["ES"].high] == pytest.approx([share.value, share.low, share.high])
    assert bool(found["EM"].note) is (cases < 5) is math.isnan(found["EM"].low)


PHASES: tuple[Phase, Phase] = ("pre", "post")

# Two records. Probabilities after the edit (new, true):
#   1: rewrite (.8, .1); paraphrases (.6, .2), (.1, .3); neighbours (.1, .5), (.4, .3)
#   2: rewrite (.2, .2), a tie; paraphrase (.5, .1); neighbours (.2, .6)
AFTER = [
    *((1, t, n, o) for t, n, o in (("rewrite", 0.8, 0.1), ("paraphrase", 0.6, 0.2), ("paraphrase", 0.1, 0.3))),
    *((1, t, n, o) for t, n, o in (("neighborhood", 0.1, 0.5), ("neighborhood", 0.4, 0.3))),
    *((2, t, n, o) for t, n, o in (("rewrite", 0.2, 0.2), ("paraphrase", 0.5, 0.1), ("neighborhood", 0.2, 0.6))),
]


def test_counterfact_score_by_hand() -> None:
    rows: list[Row] = [(c, t, -1.0, c - 2.0, math.log(n), math.log(o)) for c, t, n, o in AFTER]
    result = as_json(edit_success)(of_answers(rows))
    numbers = result["counterfact"]
    # ES: 1 and 0 (a tie fails) -> .5; PS: mean(.5, 1) = .75; NS: mean(.5, 1) = .75
    found = [numbers[name]["value"] for name in ("ES", "PS", "NS", "S")]
    assert found == pytest.approx([0.5, 0.75, 0.75, 3 / (1 / 0.5 + 2 / 0.75)])
    # EM: (.7 + 0) / 2; PM: ((.4 - .2) / 2 + .4) / 2 = .25; NM: ((.4 - .1) / 2 + .4) / 2 = .275
    assert [numbers[name]["value"] for name in ("EM", "PM", "NM")] == pytest.approx([0.35, 0.25, 0.275])
    # before: -1 > -1 is false, -1 > 0 is false; the true target wins after the edit in neither
    assert numbers["already_true"]["value"] == numbers["still_true"]["value"] == 0
    assert numbers["ES"]["n_cases"] == 2
    assert result["zsre"]["efficacy"]["value"] is result["zsre"]["score"]["value"] is None


def test_success_of_a_score_table_is_that_of_its_columns() -> None:
    """Three prompts of one edit, worked by hand: ES 1, PS 0, NS 1, so S = 0."""
    rows: list[dict[str, Any]] = []
    for kind, number, values, greedy in (
        ("efficacy", 0, (-3, -1, -0.5, -2), True),
        ("paraphrase", 0, (-3, -1, -2, -1), False),
        ("neighborhood", 0, (-3, -1, -3, -1), True),
    ):
        four_rows = four(*values, kind=kind, prompt_id=number)
        for row in four_rows:
            wanted = "target_true" if kind == "neighborhood" else "target_new"
            row["greedy"] = greedy and row["phase"] == "post" and row["role"] == wanted
        rows += four_rows
    found = plain(success_of_scores(table(rows))["memit"])
    counterfact = {name: found["counterfact"][name]["value"] for name in ("ES", "PS", "NS", "S", "already_true")}
    assert counterfact == {"ES": 1, "PS": 0, "NS": 1, "S": 0, "already_true": 0}
    # EM = exp(-.5) - exp(-2); NM = exp(-1) - exp(-3)
    assert found["counterfact"]["EM"]["value"] == pytest.approx(math.exp(-0.5) - math.exp(-2))
    assert found["counterfact"]["NM"]["value"] == pytest.approx(math.exp(-1) - math.exp(-3))
    generated = {name: found["generation"][name]["value"] for name in ("rewrite", "paraphrase", "neighborhood")}
    assert generated == {"rewrite": 1, "paraphrase": 0, "neighborhood": 1}
    assert found["zsre"]["efficacy"]["value"] is None  # as in a table of an older version
    for name in LATER:
        assert plain(success_of_scores(table(rows).drop_columns(name))["memit"]) == found
        assert plain(success_of_scores(table(rows).to_pandas().drop(columns=name))["memit"]) == found
    with pytest.raises(RecordError, match=r"no rows of kinds \['efficacy', .*'portability'\]; kinds there"):
        success_of_scores(table([row | {"kind": "cross_subject"} for row in rows]))


def test_token_shares_of_a_score_table() -> None:
    """Two edits; shares of the expected answer's tokens: 2/2 and 1/2, 0/2 once, 0/4 and 0/1, 1/3 once.

    EasyEdit's locality: of the neighbour's tokens 3/4 have the first choice of before, then 0/1; no other row counts.
    """
    rows: list[dict[str, Any]] = []
    for case, kind, wanted, right, kept, tokens in (
        (1, "efficacy", "target_new", 2, 0, 2),
        (2, "efficacy", "target_new", 1, 1, 2),
        (1, "paraphrase", "target_new", 0, 2, 2),
        (1, "neighborhood", "target_true", 0, 3, 4),
        (2, "neighborhood", "target_true", 0, 0, 1),
        (1, "portability", "target_new", 1, 0, 3),
    ):
        for row in four(-3, -1, -2, -1, kind=kind, case_id=case, n_tokens=tokens):
            expected = row["phase"] == "post" and row["role"] == wanted
            rows += [row | {"n_greedy": right if expected else 0, "n_kept": kept if expected else 1}]
    found = plain(success_of_scores(table(rows))["memit"])
    zsre = {name: found["zsre"][name]["value"] for name in ("efficacy", "paraphrase", "specificity", "score")}
    assert zsre == {"efficacy": 0.75, "paraphrase": 0, "specificity": 0, "score": 0}
    assert found["easyedit"]["portability"]["value"] == pytest.approx(1 / 3)
    assert found["easyedit"]["locality"]["value"] == pytest.approx((3 / 4 + 0 / 1) / 2)


def test_before_the_edit_the_wanted_answers_are_counted_in_the_unedited_model() -> None:
    """Before: log-probabilities of new and true -3 and -1, then -1 and -3; 1 of 2 tokens of the wanted answer right.

    ES = (0 + 1) / 2, tokens 1/2 each, whole answer in neither; after the edit all of it is otherwise.
    """
    rows: list[dict[str, Any]] = []
    for case, before in ((1, (-3, -1)), (2, (-1, -3))):
        for row in four(*before, -0.5, -2, kind="efficacy", case_id=case, n_tokens=2):
            after, wanted = row["phase"] == "post", row["role"] == "target_new"
            kept = {"n_kept": 2} if after else {}
            rows.append(row | kept | {"greedy": after and wanted, "n_greedy": wanted + (after and wanted)})
    unedited, edited = (plain(success_of_scores(table(rows), phase=at)["memit"]) for at in PHASES)
    places = (("counterfact", "ES"), ("counterfact", "already_true"), ("zsre", "efficacy"), ("generation", "rewrite"))
    assert [unedited[protocol][name]["value"] for protocol, name in places] == [0.5, 0.5, 0.5, 0]
    assert [edited[protocol][name]["value"] for protocol, name in places] == [1, 0.5, 1, 1]
