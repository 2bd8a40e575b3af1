"""What counts as noise, what must hold before a claim, and how claims are counted: each number by hand."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.effects.locality import Locality
from seesaw_cf.report import AuditSettings
from seesaw_cf.report.audit import AuditTables, gates
from seesaw_cf.report.floor import floor_of
from seesaw_cf.report.results import sort_groups, sort_pairs, sort_relations
from seesaw_cf.report.rows import EffectRow, Manifest, number_of, records, with_limits
from seesaw_cf.report.verdicts import ordered_claims, verdict_counts
from seesaw_cf.stats import proportion


def measured(**noise: object) -> Manifest:
    return {"machine": {"noise": dict(noise)}, "model": {"dtype": "float32"}}


def test_a_measured_floor_is_twice_the_spread_of_one_score() -> None:
    floor = floor_of(measured(p99=1e-6, p99_probability=1e-7), None, None)
    assert (floor.probability, floor.log_odds) == (2e-7, 2e-6)
    assert floor.source == "from the run: 99 % of scores move by < 1e-06 nats when only the batch changes"
    assert str(floor) == "2e-07 in probability, 2e-06 in log-odds"
    assert (floor.zero_limit("summed"), floor.zero_limit("log_odds")) == (2e-7, 2e-6)


def test_without_a_spread_in_probability_the_largest_that_the_nats_allow_counts() -> None:
    # p(1 + e) - p = p e with e = exp(nats) - 1, largest at p = 1; a difference of two scores doubles it.
    floor = floor_of(measured(p99=0.1), None, None)
    assert floor.probability == pytest.approx(2 * (math.e**0.1 - 1))


@given(st.floats(-20, 20), st.floats(1e-6, 1))
def test_a_share_of_two_answers_moves_by_a_quarter_of_their_log_odds_at_most(odds: float, nats: float) -> None:
    floor = floor_of(measured(p99=nats / 2, p99_probability=0.0), None, None)
    moved = 1 / (1 + math.exp(-odds - nats)) - 1 / (1 + math.exp(-odds))
    assert moved <= floor.zero_limit_share + 4 * sys.float_info.epsilon
    # The largest move is around even odds, and is nearly the limit where it is small.
    assert floor.zero_limit_share == pytest.approx(nats / 4)


@pytest.mark.parametrize("bad", [None, "0.1", math.nan, math.inf])
def test_a_spread_that_is_no_number_is_not_measured(bad: object) -> None:
    floor = floor_of(measured(p99=bad), None, None)
    assert (floor.probability, floor.log_odds, floor.source) == (None, None, "not measured")
    assert str(floor) == "not measured"
    # What prints as 0 is then the rounding of float32, 1e-4 nats a score.
    assert floor.zero_limit_log_odds == 2e-4
    assert floor.zero_limit("normalised") == pytest.approx(2 * (math.e**1e-4 - 1))


def test_a_stated_floor_is_taken_as_it_is_and_named() -> None:
    both = floor_of(measured(p99=1e-6, p99_probability=1e-7), 0.01, 0.2)
    assert (both.probability, both.log_odds, both.source) == (0.01, 0.2, "stated")
    one = floor_of(measured(p99=1e-6, p99_probability=1e-7), 0.01, None)
    assert (one.probability, one.log_odds) == (0.01, 2e-6)
    assert one.source.startswith("from the run: ")
    assert one.source.endswith("; probability: stated")
    alone = floor_of({}, None, 0.5)
    assert (alone.probability, alone.log_odds, alone.source) == (None, 0.5, "log_odds: stated")
    assert str(alone) == "not measured in probability, 0.5 in log-odds"
    assert alone.record() == {"value": None, "log_odds": 0.5, "source": "log_odds: stated"}


def test_the_short_types_round_more() -> None:
    limits = [floor_of({"model": {"dtype": name}}, None, None).zero_limit_log_odds for name in ("float64", "bfloat16")]
    assert limits == [2e-9, 0.4]
    assert floor_of({"model": {"dtype": "int3"}}, None, None).zero_limit_log_odds == 2e-4, "an unknown type is float32"


def efficacy(**more: Any) -> dict[str, Any]:
    usual = {"editor": "memit", "relation": "all", "post_low": 0.7, "n_zero": 0, "n_non_finite": 0, "n_refused": 0}
    return usual | more


def checked(
    *rows: dict[str, Any],
    local: dict[str, Locality] | None = None,
    missing: int = 0,
    n_rows: int = 100,
    protocol: str = "single",
) -> dict[Any, Any]:
    unscored = pd.DataFrame({"n_rows": [missing]}) if missing else pd.DataFrame({"n_rows": []})
    found = gates(pd.DataFrame(list(rows)), local or {}, unscored, n_rows, {"protocol": protocol})
    return {(gate["editor"], gate["gate"]): (gate["value"], gate["passed"]) for gate in found}


def test_edits_take_when_the_lower_end_is_above_one_half() -> None:
    rows = [efficacy(post_low=0.5), efficacy(editor="ft", post_low=0.51), efficacy(editor="rome", post_low=math.nan)]
    found = checked(*rows)
    assert found["memit", "edits took"] == (0.5, False)
    assert found["ft", "edits took"] == (0.51, True)
    assert not found["rome", "edits took"][1]
    assert not checked({name: value for name, value in efficacy().items() if name != "post_low"})[
        "memit", "edits took"
    ][1]


def test_every_failed_edit_counts_and_controls_are_not_asked() -> None:
    found = checked(efficacy(n_zero=1, n_non_finite=2, n_refused=4), efficacy(editor="identity(memit)", n_zero=9))
    assert found["memit", "edits made"] == (7, False)
    assert {editor for editor, _ in found} == {"memit", ""}, "a control is supposed to do nothing"
    assert checked(efficacy(), efficacy(relation="P27", n_zero=3))["memit", "edits made"] == (0, True)


def test_edits_are_local_until_most_are_shown_not_to_be() -> None:
    counts = {n: Locality("neighbours", 0.8, 0.3, 40, proportion(n, 8)) for n in (1, 2)}
    found = checked(local={"ft": counts[1], "rome": counts[2], "identity(ft)": counts[1]})
    assert found["ft", "edits are local"] == (counts[1].local.high, False)
    assert found["rome", "edits are local"] == (counts[2].local.high, True)
    assert ("identity(ft)", "edits are local") not in found


def test_scores_and_protocol() -> None:
    assert checked(efficacy(), missing=5)["", "scored"] == (0.95, True)
    assert checked(efficacy(), missing=6)["", "scored"] == (0.94, False)
    assert checked(efficacy())["", "scored"] == (1.0, True)
    assert checked(efficacy(), protocol="batch")["", "protocol"] == ("batch", False)
    assert set(checked()) == {("", "scored"), ("", "protocol")}, "a run without edits"


def made(rows: list[dict[str, Any]]) -> AuditTables:
    nothing = pd.DataFrame()
    return AuditTables(AuditSettings(), floor_of({}, None, None), pd.DataFrame(rows), *[nothing] * 3)


def test_claims_come_by_verdict_and_then_by_size() -> None:
    found = [("equivalent", 0.01), ("worse off", -0.2), ("undetermined", 0.9), ("worse off", -0.5), ("better off", 0.1)]
    audit = made([{"verdict": verdict, "value": value} for verdict, value in found])
    claims = ordered_claims(audit)
    assert list(zip(claims["verdict"], claims["value"], strict=True)) == [
        ("worse off", -0.5), ("worse off", -0.2), ("better off", 0.1), ("equivalent", 0.01),
    ]  # fmt: skip
    assert verdict_counts(audit.contrasts) == {
        "worse off": 2, "better off": 1, "equivalent": 1, "undetermined": 1, "not testable": 0,
    }  # fmt: skip
    none = replace(audit, verdicts=pd.DataFrame())
    assert ordered_claims(none).empty
    assert set(verdict_counts(none.contrasts).values()) == {0}


def test_rows_of_a_table_and_their_intervals() -> None:
    frame = pd.DataFrame({"group": ["women"], "D": [0.5], "D_low": [0.25]})
    (row,) = records(frame, EffectRow)
    assert row["group"] == "women"
    value, low, high = with_limits(row, "D")
    assert (value, low) == (0.5, 0.25)
    assert math.isnan(high)
    assert math.isnan(number_of(row, "p"))
    assert records(frame.iloc[:0], EffectRow) == []


NAMES = st.lists(st.sampled_from(["all", "P27", "P101", "P21", "Q1", "unknown", "women", "men", "Ω"]), max_size=12)


@given(NAMES, st.randoms(use_true_random=False))
def test_orders_do_not_depend_on_the_order_of_rows(found: list[str], random: Any) -> None:
    mixed = list(found)
    random.shuffle(mixed)
    for order in (sort_relations, lambda names: sort_groups("gender", names)):
        once = order(found)
        assert once == order(mixed) == order(once)
        assert sorted(once) == sorted(set(found))
    assert "all" not in sort_relations(found)[:-1]
    assert "all" not in sort_groups("gender", found)[1:], "everybody comes first among groups"
    assert "unknown" not in sort_groups("gender", found)[:-1]


@given(st.lists(st.tuples(st.sampled_from(["P27", "P21", "all", "x"]), st.sampled_from(["P21", "P27", "all"]))))
def test_pairs_are_in_the_papers_order_and_all_of_them_last(found: list[tuple[str, str]]) -> None:
    once = sort_pairs(found)
    assert sort_pairs(reversed(once)) == once
    assert sorted(once) == sorted(set(found))
    assert ("all", "all") not in once[:-1]
