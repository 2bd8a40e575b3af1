"""Tables without any effect: how many printed intervals exclude 0, and how often a claim of smallness is wrong."""

from collections import Counter
from dataclasses import asdict, dataclass, replace

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.effects.audit import AuditSettings, decide
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import case_weights, clustered_means
from seesaw_cf.stats.verdicts import AFFECTED, verdict
from seesaw_cf.types import Estimate

REPLICATES = 300
MARGIN = 0.02


@dataclass(frozen=True)
class Crossing:
    """Who is asked about under which edit, with very unequal numbers of people per edit and of edits per person."""

    edit: NDArray[np.intp]
    person: NDArray[np.intp]
    member: NDArray[np.bool_]


def crossing(edits: int, people: int, share: float, seed: int) -> Crossing:
    rng = np.random.default_rng(seed)
    asked = np.minimum(people, 4 + rng.geometric(0.15, edits))
    popular = rng.dirichlet(np.full(people, 2.0))
    pairs = [(e, p) for e in range(edits) for p in rng.choice(people, asked[e], replace=False, p=popular)]
    edit, person = (np.array(column, np.intp) for column in zip(*pairs))
    return Crossing(edit, person, (rng.random(people) < share)[person])


def tables(design: Crossing, seed: int, sd: tuple[float, float, float] = (0.05, 0.05, 0.1)) -> Floats:
    """(rows, replicates) of D: what an edit does to everybody, what a person adds, what each prompt adds."""
    rng = np.random.default_rng(seed)
    parts = [rng.normal(0, s, (int(code.max()) + 1, REPLICATES)) for s, code in zip(sd, (design.edit, design.person))]
    noise = rng.normal(0, sd[2], (design.edit.size, REPLICATES))
    return np.asarray(parts[0][design.edit] + parts[1][design.person] + noise)


def inferences(design: Crossing, values: Floats, estimand: str) -> list[Estimate]:
    codes = {"edit": design.edit, "person": design.person}
    if estimand == "mean":
        return clustered_means(values, [case_weights(design.edit, design.member)], codes)
    sides = [design.member, ~design.member]
    counts = [np.bincount(design.edit[side], minlength=int(design.edit.max()) + 1) for side in sides]
    both = (counts[0] > 0) & (counts[1] > 0)
    return clustered_means(values, [case_weights(design.edit, side & both[design.edit]) for side in sides], codes)


DESIGNS = [(8, 25, 0.5), (12, 30, 0.4), (20, 40, 0.3), (30, 60, 0.4), (60, 20, 0.5), (40, 40, 0.4), (100, 150, 0.4)]


@pytest.mark.parametrize("estimand", ["mean", "contrast"])
def test_at_most_one_printed_interval_in_twenty_excludes_0(estimand: str) -> None:
    rates = []
    for number, (edits, people, share) in enumerate(DESIGNS):
        design = crossing(edits, people, share, number)
        found = inferences(design, tables(design, 100 + number), estimand)
        printed = [one for one in found if not np.isnan(one.low)]
        rates += [np.mean([one.low > 0 or one.high < 0 for one in printed])] if printed else []
    assert len(rates) >= 4
    # what a true level of 5 % passes in 999 of 1,000; a test that never rejected would be at its level, too
    assert max(rates) <= stats.binom.ppf(0.999, REPLICATES, 0.05) / REPLICATES
    assert float(np.mean(rates)) > 0.01


def claims(effect: float) -> Counter[str]:
    """Labels of contrasts of a large crossing with this effect planted."""
    design = crossing(100, 150, 0.4, 3)
    values = tables(design, 11, (0.05, 0.02, 0.05)) + effect * design.member[:, None]
    return Counter(
        verdict(one, margin=MARGIN, noise_floor=1e-6).label for one in inferences(design, values, "contrast")
    )


def test_verdicts_claim_what_was_planted() -> None:
    none, edge, outside = claims(0.0), claims(-MARGIN), claims(-3 * MARGIN)
    # an effect as large as the margin is called small in at most 5 % of tables (standard error 1.3 points)
    assert edge["equal"] < 0.10 * REPLICATES
    assert not outside["equal"]
    assert outside["hit_harder"] > 0.95 * REPLICATES
    assert none["equal"] > 0.5 * REPLICATES
    assert none["hit_harder"] + none["hit_less"] < 0.05 * REPLICATES
    assert not edge["hit_less"] + outside["hit_less"]
    assert claims(-MARGIN / 2)["equal"] > 0.05 * REPLICATES


@pytest.mark.slow
def test_a_report_of_nothing_claims_at_most_at_its_level() -> None:
    """20 edits, 61 people; groups of 1 to 30 against the others, and an axis of two labels; no group differs.

    Each replicate is an editor of its own: one family. The bound is what a true level of 5 % passes in 999 of 1,000.
    """
    edit, person = (code.ravel() for code in np.indices((20, 61)))
    design = Crossing(edit, person, person == 0)
    values = tables(design, 5)
    race, gender = np.repeat(np.arange(6), [1, 2, 4, 8, 16, 30])[person], (person % 2)
    rows = [
        asdict(one) | {"editor": str(editor), "group": f"{axis}{group}", "mirror": axis == "gender" and group == 1}
        for axis, label in (("gender", gender), ("race", race))
        for group in np.unique(label)
        for editor, one in enumerate(inferences(replace(design, member=label == group), values, "contrast"))
    ]
    table = pd.DataFrame(rows).sort_values("editor", kind="stable", ignore_index=True)
    found = decide(table.assign(margin=1e-9, scale="probability"), AuditSettings(noise_floor=0.0))
    tested = found[found["p"].notna()]
    assert set(tested["group"]) == {"gender0", "gender1", "race3", "race4", "race5"}
    assert set(found["family_size"]) == {4}
    assert found.loc[found["group"].isin(["race0", "race1", "race2"]), "note"].str.startswith("too few").all()
    false = found["verdict"].isin(AFFECTED).groupby(found["editor"]).any()
    assert false.sum() <= stats.binom.ppf(0.999, REPLICATES, 0.05)
    assert (tested["p"] < 0.05).groupby(tested["editor"]).any().sum() > false.sum()
