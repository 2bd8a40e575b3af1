"""Real logs of two harnesses with true answers by numpy and scipy, and how often a change is claimed where none is."""

import json
import math
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.compare_level import RESULTS, SCHEMES, exchanged, reseeded
from seesaw_cf.logs import CompareSettings, LogComparison, compare, read_log
from seesaw_cf.logs.log import Reader
from seesaw_cf.logs.pairing import PairedItems, pair_logs, wanted_fields
from tests.conftest import REFERENCE
from tests.logs.made import Made, items, write_log

LOGS = REFERENCE / "harness_logs"
# Fields of the items that are not known as groups.
GROUPS = {"q4row": ("label_type", "type"), "null": ("label_type", "type"), "inspect": ("label_type",)}
PAIRS = {
    "q4row": ("lm_eval/base", "lm_eval/q4row"),
    "null": ("lm_eval/base", "lm_eval/null"),
    "inspect": ("inspect/base.eval", "inspect/q4row.json"),
}


@cache
def _compared(name: str) -> LogComparison:
    base, changed = (LOGS / place for place in PAIRS[name])
    return compare(base, changed, CompareSettings(groups=GROUPS[name], permutations=499))


def _rows(name: str) -> list[dict[str, Any]]:
    truth = json.loads((LOGS / "truth.json").read_text())
    return list(truth["inspect"]["base_q4row"] if name == "inspect" else truth["pairs"][f"base_{name}"])


def _found(name: str, row: dict[str, Any]) -> pd.Series:
    frame = _compared(name).frame
    task = row["task"] if row.get("filter", "none") == "none" else f"{row['task']}/{row['filter']}"
    contrast = bool(row.get("contrast"))
    group = str(row["group"]).partition(" - ")[0] if contrast else row["group"]
    keys = {"relation": task, "asked": row["metric"], "axis": row["group_field"] or "all", "group": group}
    for key, value in {**keys, "what": "contrast" if contrast else "change"}.items():
        frame = frame[frame[key] == value]
    return frame.iloc[0] if len(frame) else pd.Series(dtype=float)


needs_logs = pytest.mark.skipif(not LOGS.is_dir(), reason="the reference logs are not here")


@needs_logs
@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("q4row", 81), ("null", 81), ("inspect", 11)])
def test_numbers_of_harnesses_are_the_true_ones(name: str, least: int) -> None:
    rows = [row for row in _rows(name) if name != "inspect" or row["metric"] != "margin"]
    assert sum(_agrees(_found(name, row), row) for row in rows) >= least


def _agrees(found: pd.Series, row: dict[str, Any]) -> int:
    """Whether there is such a row, which then has the true numbers; groups are asked of the first metric alone."""
    if found.empty:
        assert row["group"] != "all"
        return 0
    if row.get("contrast"):
        assert found["n"] == sum(row["n"])
        assert found["value"] == pytest.approx(row["did"], rel=1e-6, abs=1e-9)
    else:
        assert (found["n"], found["clusters"]) == (row["n"], row["clusters"])
        assert found["value"] == pytest.approx(row["diff"], rel=1e-6, abs=1e-9)
        assert [found["before"], found["after"]] == pytest.approx(
            [row["base_mean"], row["changed_mean"]], rel=1e-6, abs=1e-9
        )
    if "mcnemar_exact_p" in row:
        assert (found["lost"], found["gained"]) == (row["n10"], row["n01"])
        assert found["p_mcnemar"] == pytest.approx(row["mcnemar_exact_p"], rel=1e-6, abs=1e-9)
    # Ours corrects for unequal clusters (CR2), and has none where an interval is refused.
    if math.isfinite(found["stderr"]) and row["se_cluster"] and row["se_cluster"] > 1e-9:
        assert found["stderr"] == pytest.approx(row["se_cluster"], rel=0.03 if row.get("contrast") else 1e-6)
    return 1


@needs_logs
@pytest.mark.slow
def test_verdicts_are_those_of_a_good_answer() -> None:
    changed, same = _compared("q4row"), _compared("null")
    assert changed.screen.title.startswith(
        "No answer any more in bbq_letters/strict: 95.0 % of q4row's texts hold none"
    )
    open_tasks = changed.frame.query("relation in ['bbq_local', 'crows_local'] and family == 'scores'")
    assert set(open_tasks["verdict"]) == {"undecided"}
    assert same.screen.title.startswith("Nothing changed: null answers all items as base does")
    assert set(same.frame["verdict"]) <= {"", "same", "too_few", "undecided"}


@needs_logs
def test_a_mean_over_what_the_change_left_is_not_given() -> None:
    comparison = _compared("inspect")
    row = comparison.frame.query("asked == 'margin' and axis == 'all'").iloc[0]
    assert (row["n"], row["verdict"]) == (3, "too_few")
    assert math.isnan(row["value"])
    assert row["note"] == "0 before, 77 after, have no score"


@needs_logs
def test_zstandard_and_json_hold_the_same_samples() -> None:
    first, second = (
        read_log(LOGS / "inspect" / name).items.sort_values("item", ignore_index=True)
        for name in ("base.eval", "base.json")
    )
    pd.testing.assert_frame_equal(first, second)


def _pairs(tmp_path: Path) -> PairedItems:
    logs = [write_log(tmp_path / name, items(seed=at, shift=-at), Made(model=name)) for at, name in enumerate("ab")]
    base, changed = (read_log(log, Reader(wanted_fields(CompareSettings()))) for log in logs)
    return pair_logs(base, changed)


def test_committed_families_hold_their_level() -> None:
    made = json.loads((RESULTS / "compare_level.json").read_text(encoding="utf-8"))
    assert set(made) == set(SCHEMES)
    for scheme in made.values():
        for family in ("scores", "groups"):
            assert scheme[family]["n"] >= 1000
            assert 0.03 <= scheme[family]["value"] <= 0.065


def test_sides_are_exchanged_item_by_item_and_answers_drawn_anew(tmp_path: Path) -> None:
    pairs = _pairs(tmp_path)
    turned = exchanged(pairs, np.random.default_rng(0), "items")
    columns = [f"metric:margin_{side}" for side in ("before", "after")]
    assert (turned.frame[columns].sum(axis=1) - pairs.frame[columns].sum(axis=1)).abs().max() < 1e-12
    assert 0 < (turned.frame[columns[0]] == pairs.frame[columns[0]]).mean() < 1
    drawn = reseeded(pairs, np.random.default_rng(0))
    assert drawn.metrics == ("acc",)
    assert set(drawn.frame["metric:acc_before"]) == {0.0, 1.0}
