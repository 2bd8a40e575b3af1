"""Levels of tests: the committed figures keep their bands, and small live runs agree."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks import simulation
from benchmarks.control_level import RESULTS as CONTROLS
from benchmarks.control_level import invented, judged_levels, measured
from benchmarks.report_level import EFFECTS, NULLS, RESULTS, permuted, shuffled, sparse, variances
from benchmarks.simulation_report import pooled
from tests.effects.test_groups import crossed


def made() -> list[tuple[str, str, dict[str, Any]]]:
    """Committed figures: design of the run, part, and what was found on each scale."""
    whole = json.loads((RESULTS / "report_level.json").read_text(encoding="utf-8"))
    return [(design, part, own) for design, parts in whole.items() for part, own in parts.items()]


@pytest.mark.parametrize("null", NULLS)
@pytest.mark.parametrize("scale", EFFECTS)
def test_reports_of_nothing_hold_a_false_rejection_at_their_level(null: str, scale: str) -> None:
    """The committed figures of either design: 5 % is not below what their intervals hold."""
    tables = [own[scale] for _, part, own in made() if part == null]
    assert tables
    for found in tables:
        for family in ("one_editor", "all_editors_one_family"):
            assert found[family]["low"] <= 0.05
            assert found[family]["value"] <= 0.08
        assert found["holm"]["value"] <= found["one_editor"]["value"]
        assert 0.02 <= found["single_tests"]["0.05"] <= 0.06
    assert null != "labels permuted" or max(found["one_editor"]["n"] for found in tables) >= 1000


def test_permutations_find_what_is_planted_and_more_than_holm() -> None:
    """Of -.05 under exchangeable people the table of the specification has 1.00, .24 and .86."""
    found = {design: own["labels permuted"] for design, part, own in made() if part == "power"}
    least = {"all": 0.9, "P101": 0.1, "P21": 0.6}
    for where, power in least.items():
        assert found["paper"][where]["probability"]["found"]["value"] >= power
    for own in found.values():
        assert all(one[scale]["found"]["value"] >= one[scale]["holm"]["value"] for one in own.values() for scale in one)


@pytest.mark.slow
def test_shuffled_people_differ_no_more_than_people_do() -> None:
    """Half of the people are asked once, so that the mean of each is mostly chance. It must not become their effect."""
    rng = np.random.default_rng(0)
    edit, person = (code.ravel() for code in np.indices((40, 80)))
    asked = (person < 40) | (person - 40 == edit)
    edit, person = edit[asked], person[asked]
    values = rng.normal(0, 0.03, 80)[person] + rng.normal(0, 0.1, edit.size)
    keys = {"editor": "memit", "holds": "target_new", "edit_relation": "P27", "case_id": edit, "person": person}
    frame = pd.DataFrame(keys | dict.fromkeys(("D", "log_odds", "share"), values))
    before = variances(values, edit, person)
    after = [
        variances(shuffled(frame, np.random.default_rng(seed))["D"].to_numpy(), edit, person) for seed in range(20)
    ]
    assert before == pytest.approx((0.03**2, 0.1**2), rel=0.3)
    for was, became in zip(before, zip(*after, strict=True), strict=True):
        assert np.mean(became) == pytest.approx(was, rel=0.35)


def test_permuted_people_keep_their_vectors_and_their_kind_of_holder() -> None:
    frame = sparse(np.random.default_rng(0))
    frame = frame.assign(holds=np.where(frame["person"] < "p30", "target_new", "target_true"))
    moved = permuted(frame, np.random.default_rng(1))
    assert not moved["race"].equals(frame["race"])
    for own in (moved, frame):
        own["vector"] = own["gender"].map("".join) + own["race"].map("".join)
    people = [own.groupby("person").agg({"holds": "first", "vector": "first"}) for own in (moved, frame)]
    assert moved.groupby("person")["vector"].nunique().max() == 1
    assert people[0].value_counts().to_dict() == people[1].value_counts().to_dict()


def test_shuffled_effects_leave_labels_edits_and_repeats() -> None:
    """Of two prompts for a person under an edit the difference stays; means of edits do where each asks everybody."""
    frame = pd.concat([crossed(0.2), crossed(0.2, seed=0).assign(D=lambda rows: rows["D"] + 0.01)], ignore_index=True)
    moved = shuffled(frame, np.random.default_rng(1))
    assert moved["race"].equals(frame["race"])
    half = len(frame) // 2
    assert moved["D"][half:].to_numpy() - moved["D"][:half].to_numpy() == pytest.approx(np.full(half, 0.01))
    means = [rows.groupby("case_id")["D"].mean().to_numpy() for rows in (frame, moved)]
    assert means[1] == pytest.approx(means[0])
    black = frame["race"].map(lambda tags: "Black" in tags).astype(bool)
    gaps = [rows["D"][black].mean() - rows["D"][~black].mean() for rows in (frame, moved)]
    assert gaps[0] < -0.15 < gaps[1]


@pytest.mark.slow(10)
def test_a_control_is_rarely_said_to_do_more_than_another() -> None:
    """New values in each of 75 draws: 6 of them are three standard errors above a level of 2.6 %."""
    assert measured(invented, 75)["any"]["value"] <= 0.08


def test_harm_to_holders_of_the_old_answer_is_named_and_no_other() -> None:
    for seed in range(3):
        table = judged_levels(*invented(np.random.default_rng(seed), harm=0.08)).set_index("level")
        assert table.loc["target_true", "verdict"] == "worse"
        assert table.loc["target_true", "difference"] == pytest.approx(0.08, abs=0.03)
        assert (table["p_adjusted"].drop("target_true") > 0.05).all()


def test_committed_controls_differ_from_each_other_at_most_at_the_level() -> None:
    made = json.loads((CONTROLS / "control_level.json").read_text(encoding="utf-8"))
    pairs = [own for name, own in made.items() if " and " in name]
    assert len(pairs) == 3
    for found in (made["invented"], *(own for pair in pairs for own in pair.values())):
        assert found["any"]["low"] <= 0.05
        assert found["any"]["n"] >= 25


SIMULATED = Path(simulation.__file__).parent / "results" / "simulation.json"
CLAIMED = ("null", "heterogeneous")


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    return pooled(json.loads(SIMULATED.read_text(encoding="utf-8")))


def test_the_default_method_keeps_its_level_and_coverage(table: pd.DataFrame) -> None:
    ours = table[(table["method"] == "default") & table["scenario"].isin(CLAIMED)]
    assert len(ours) == 3 * 2 * 2  # crossings, estimands, scenarios
    assert ours["fpr"].between(0.02, 0.06).all()  # plain degrees of freedom are careful where few people carry a side
    # every single group, too: 2,000 draws have a Monte-Carlo error of half a point
    assert ours["fpr_high"].max() <= 0.065
    assert ours["coverage_low"].min() >= 0.93


def test_the_published_test_does_not(table: pd.DataFrame) -> None:
    theirs = table[(table["method"] == "published") & table["scenario"].isin(CLAIMED)]
    assert (theirs["fpr"] > 0.065).all()
    assert theirs["fpr"].max() > 0.5


def test_tables_and_power() -> None:
    results = json.loads(SIMULATED.read_text(encoding="utf-8"))
    assert results["draws"] >= 2000
    for row in results["tables"]:
        assert row["holm"] <= 0.065
        assert row["uncorrected"] > 0.15
    power = pd.DataFrame(results["power"]).groupby(["crossing", "effect"])["power"].mean().unstack()
    assert (power.diff(axis=1).iloc[:, 1:] > 0).all(axis=None) or (power.iloc[:, -1] > 0.99).all()
    assert (power[0.08] > 0.9).all()


@pytest.mark.slow
def test_a_small_live_run_agrees(reference: Callable[..., Path]) -> None:
    path = reference("seesaw", "seesaw_cf_P21_P101.json")
    s = simulation.structure(path, seed=0)
    assert (int(s.edit.max()) + 1, s.edit.size) == (290, 29000)
    made = [design for design in simulation.designs(s) if design.group in (0, 3)]
    found = simulation.simulate(s, made, "null", draws=100, seed=1)
    rates = {
        m: np.mean([(simulation.p_values(d) < 0.05).mean() for (_, k), d in found.items() if k == m])
        for m in ("default", "published")
    }
    assert 0.01 <= rates["default"] <= 0.10  # 400 tests, correlated within draws
    assert rates["published"] > 0.3
