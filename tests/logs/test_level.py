"""How often a comparison claims a change where nothing changed: the committed figures, and how they are made."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from benchmarks.compare_level import RESULTS, SCHEMES, exchanged, measured, reseeded
from seesaw_cf.logs import CompareSettings, read_log
from seesaw_cf.logs.log import Reader
from seesaw_cf.logs.pairing import PairedItems, pair_logs, wanted_fields
from tests.logs.made import Made, items, write_log


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


def test_a_few_draws_give_shares_with_intervals(tmp_path: Path) -> None:
    found = measured(_pairs(tmp_path), "clusters", 4, seed=1)
    scores = found["scores"]
    assert isinstance(scores, dict)
    assert scores["n"] == 4
    assert found["tests"] == 5
