"""The family of an editor's contrasts: pooled and by relation, both kinds of holders, corrected by permutation."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event, Timer
from typing import Any

import numpy as np
import pandas as pd
import pytest

from benchmarks.report_level import reports, sparse
from seesaw_cf.effects import AuditSettings, audit, toward_truth
from seesaw_cf.effects.audit import decide
from seesaw_cf.effects.permutations import LabelledContrasts, label_orders
from seesaw_cf.stats.multiple import adjust, step_down
from seesaw_cf.stats.verdicts import VERDICTS, equivalence_p

FLOORS: dict[str, Any] = {"noise_floor": 0.0, "noise_floor_log_odds": 0.0}


def both(effect: float = 0.0, seed: int = 0, edits: int = 20) -> pd.DataFrame:
    """Two relations, both kinds of holders, two editors of which the second lacks a prompt."""
    rng = np.random.default_rng(seed)
    one = sparse(rng, edits)
    women = one["gender"].map(lambda tags: "women" in tags)
    new = one.assign(D=one["D"] + effect * women, log_odds=10 * one["D"])
    old = new.assign(holds="target_true", D=-new["D"], log_odds=-new["log_odds"], prompt_id=new["prompt_id"] + 100)
    memit = pd.concat([new, old[old["person"] < "p40"]], ignore_index=True).assign(editor="memit")
    ft = memit.iloc[1:].assign(editor="ft", D=memit["D"] + rng.normal(0, 0.1, len(memit)))
    return pd.concat([memit, ft], ignore_index=True)


@pytest.mark.slow
def test_pooled_comes_first_and_holders_of_the_old_answer_are_turned() -> None:
    table = audit(both(-0.2), AuditSettings(**FLOORS, permutations=199))
    first = table[(table["editor"] == "memit") & (table["holds"] == "target_new")]
    assert first["relation"].iloc[0] == "all"
    assert list(dict.fromkeys(first["relation"])) == ["all", "P19", "P27"]
    women = table[(table["group"] == "women") & (table["editor"] == "memit") & (table["relation"] == "all")]
    assert women["holds"].tolist() == ["target_new", "target_true"]
    assert (women["value"] < -0.1).all()  # worse, whichever answer they hold
    assert set(women["verdict"]) == {"hit_harder"}
    assert women["p_adjusted"].tolist() == [1 / 200, 1 / 200]
    assert set(table["family"]) == {"memit", "ft"}
    assert set(table["verdict"]) <= set(VERDICTS)
    # edits weigh equally: the pooled contrast is the mean over edits of both relations, ten each
    for group in ("r16", "r30"):
        values = first[first["group"] == group].set_index("relation")["value"]
        assert values["all"] == pytest.approx((values["P19"] + values["P27"]) / 2)


def test_one_relation_is_not_told_twice() -> None:
    table = audit(both().query("edit_relation == 'P19'"), AuditSettings(**FLOORS, permutations=19))
    assert set(table["relation"]) == {"P19"}


@pytest.mark.slow
def test_labels_as_they_are_give_p_of_the_table() -> None:
    """Two editors with other prompts, two scales (log-odds decide where answers are unlikely)."""
    prompts = both(-0.02)
    prompts["likelier_pre"] = np.where(prompts["edit_relation"] == "P19", 0.01, 0.5)
    table = audit(prompts, AuditSettings(**FLOORS, permutations=0))
    assert set(table["scale"]) == {"probability", "log-odds"}
    contrasts = LabelledContrasts(toward_truth(prompts), table)
    found = contrasts.p(np.arange(contrasts.strata.size)[None])[0]
    tested = table["p"].notna() & ~table["mirror"]
    assert 10 < tested.sum() < len(table)
    assert np.array_equal(np.isfinite(found), tested)
    assert found[tested] == pytest.approx(table.loc[tested, "p_t"].to_numpy(), rel=1e-7)


@pytest.mark.slow
def test_without_permutations_the_family_is_the_same_and_holm_decides() -> None:
    settings = AuditSettings(**FLOORS, permutations=0)
    table = audit(both(-0.1), settings)
    assert settings.promise() == "at most 5 % per editor (holm)"
    tested = table[table["p"].notna() & ~table["mirror"]]
    for _, family in tested.groupby("family"):
        assert family["p_adjusted"].to_numpy() == pytest.approx(adjust(family["p_t"].to_numpy()))
    permuted = audit(both(-0.1), AuditSettings(**FLOORS, permutations=99))
    for name in ("value", "stderr", "df", "p_t", "family_size"):
        pd.testing.assert_series_equal(permuted[name], table[name])
    assert (permuted["low"] <= table["low"]).all() or (permuted["low"].isna() == table["low"].isna()).all()


@pytest.mark.slow
def test_one_family_of_all_editors_sees_the_same_permutations() -> None:
    settings = AuditSettings(**FLOORS, permutations=99, family=())
    assert settings.promise() == "at most 5 % per report (step-down min-p, 99 permutations)"
    prompts = both(-0.1)
    table = audit(prompts, settings)
    assert set(table["family"]) == {"all"}
    contrasts = LabelledContrasts(toward_truth(prompts), table)
    p = table["p_t"].mask(table["mirror"]).to_numpy()
    expected = step_down(p, contrasts.drawn(99, 0))
    tested = ~np.isnan(p)
    assert table["p_adjusted"].to_numpy()[tested] == pytest.approx(expected[tested])


@pytest.mark.slow
def test_a_permutation_is_the_same_on_any_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = both(-0.1)
    contrasts, drawn = LabelledContrasts(toward_truth(prompts), audit(prompts, AuditSettings(**FLOORS))), []
    for cores in (1, 3):
        pool = ThreadPoolExecutor(cores)
        monkeypatch.setattr("seesaw_cf.effects.permutations._threads", lambda _, pool=pool: pool)
        drawn.append(contrasts.drawn(600, 0))
    assert drawn[0].tobytes() == drawn[1].tobytes()


@pytest.mark.slow
def test_threads_draw_what_one_generator_draws_in_turn() -> None:
    prompts = both(-0.1)
    contrasts = LabelledContrasts(toward_truth(prompts), audit(prompts, AuditSettings(**FLOORS, permutations=0)))
    in_turn = label_orders(np.random.default_rng(3), contrasts.strata, 150)
    np.testing.assert_allclose(contrasts.drawn(150, 3), contrasts.p(in_turn), rtol=1e-9)


@pytest.mark.slow
def test_an_interrupt_ends_permutations_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    prompts = both(-0.1)
    contrasts = LabelledContrasts(toward_truth(prompts), audit(prompts, AuditSettings(**FLOORS, permutations=0)))
    begun, go_on, whole = Event(), Event(), contrasts.p
    computed: list[int] = []

    def p(orders: Any) -> Any:
        begun.set()
        go_on.wait(60)
        computed.append(len(orders))
        return whole(orders)

    pool = ThreadPoolExecutor(1)
    monkeypatch.setattr("seesaw_cf.effects.permutations._threads", lambda _: pool)
    monkeypatch.setattr(LabelledContrasts, "p", lambda _, orders: p(orders))

    def interrupted() -> None:
        with contrasts.drawing(6400, 0):
            assert begun.wait(60)
            Timer(0.2, go_on.set).start()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert len(computed) < 5  # of a hundred


@pytest.mark.slow
def test_an_interval_holds_what_its_permutations_do_not_reject() -> None:
    table = audit(both(-0.06), AuditSettings(**FLOORS, permutations=199))
    rows = table[table["p"].notna()]
    away = (rows["low"] > 0) | (rows["high"] < 0)
    assert away.any()
    assert (rows.loc[away, "p"] <= 0.05 + 1e-9).all()
    decided = rows["p_adjusted"] < 0.05
    odd = rows[(away != decided) & (rows["verdict"] != "too_few")]
    assert odd["rule"].str.contains("p over the family decides|and p decides").all()


@pytest.mark.slow
def test_labels_move_only_between_people_asked_as_the_same_holders() -> None:
    prompts = both()
    table = audit(prompts, AuditSettings(**FLOORS, permutations=0))
    strata = LabelledContrasts(prompts, table).strata
    assert np.bincount(strata).tolist() == [21, 40]
    orders = label_orders(np.random.default_rng(0), strata, 50)
    assert (strata[orders] == strata).all()
    assert all(sorted(order) == list(range(61)) for order in orders.tolist())
    assert len({tuple(order) for order in orders.tolist()}) == 50


@pytest.mark.slow
def test_an_audit_with_permutations_is_blind_to_row_order_and_obeys_its_seed() -> None:
    prompts = both(-0.03)
    settings = AuditSettings(**FLOORS, permutations=99)
    one, two = (audit(rows, settings) for rows in (prompts, prompts.sample(frac=1, random_state=1)))
    pd.testing.assert_frame_equal(one, two)
    assert not one["p"].equals(audit(prompts, AuditSettings(**FLOORS, permutations=99, seed=1))["p"])


@pytest.mark.slow(60)
def test_a_report_of_sparse_groups_without_an_effect_is_wrong_in_at_most_one_of_twenty() -> None:
    """20 edits, groups of 1 to 30 people. 300 reports: what a level of 5 % passes in 999 of 1,000."""
    prompts = sparse(np.random.default_rng(0))
    wrong = 0
    for table, drawn in reports(prompts, "sparse groups", 300, 99, 1):
        wrong += bool(np.nanmin(step_down(table["p_t"].to_numpy(), drawn)) <= 0.05)
    assert 2 < wrong <= 27


@pytest.mark.parametrize(("low", "high"), [(-1.0, 1.0), (-0.01, 0.01)])
def test_permutations_widen_an_interval_and_calibrate_equivalence(low: float, high: float) -> None:
    """p of t that is uniform under permutation: p of equivalence stays, and the interval is the outer of both."""
    drawn = np.arange(1, 1000)[:, None] / 1000
    row = {"editor": "ft", "value": 0.0, "stderr": 0.01, "df": 1e6, "margin": 0.02, "scale": "probability"}
    row |= {"low": low, "high": high, "p": 1.0, "p_t": 1.0, "clusters": {"edit": 100}, "mirror": False, "note": ""}
    found = decide(pd.DataFrame([row]), AuditSettings(**FLOORS), drawn).iloc[0]
    apart = decide(pd.DataFrame([row]), AuditSettings(**FLOORS), drawn[::2], drawn[1::2]).iloc[0]
    assert apart["p_equivalence"] == found["p_equivalence"]
    assert found["p_equivalence"] == pytest.approx(equivalence_p(0.0, 0.01, 1e6, 0.02), abs=0.002)
    assert (found["low"], found["high"]) == pytest.approx((min(low, -0.0196), max(high, 0.0196)), abs=1e-4)
