"""Is a group effect named where only fame acts, and is a true one still found at equal fame?

    python -m benchmarks.adjusted RUN [--editor memit] [--draws 1000] [--permutations 99] [--part PART]

takes a finished run and keeps its edits, people and labels. Person effects are shuffled over people and the rest within
edits (`report_level.shuffled`), so that no group differs. People then get invented sitelinks, 20 on the average, by a
lognormal law. "fame": in each report one of five groups is 2.7 times as famous (a standard deviation), and an edit
moves people by `EFFECT` a standard deviation of log fame. "fame in bursts": edits do so by very different amounts.
"fame, bent": only fame above the average acts. "group": one group is moved by `EFFECT`, as famous as the others and
fame acts. "group and fame": that group is also more famous. "confidence" and "familiarity" are the first null where
not fame but the log-odds of the held answer before the edit act, which vary by question too, or whether the model knew
it; both are invented from the same law.
A report holds the pooled contrasts of holders of the new answer, corrected by min-p. Writes
benchmarks/results/adjusted.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit
from tqdm import tqdm

from benchmarks.report_level import EFFECTS, GROUPS, RESULTS, share_of, shuffled
from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.effects import prompt_effects
from seesaw_cf.effects.adjusted import ESTIMANDS, Estimand, covariates_of
from seesaw_cf.effects.groups import ALL, AXES, SCALES
from seesaw_cf.effects.permutations import label_orders
from seesaw_cf.stats import Crossing, case_weights
from seesaw_cf.stats.adjustment import adjust_parts, precision_parts, residuals
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.multiple import permutation_p, step_down
from seesaw_cf.stats.permuted import LabelledPeople
from seesaw_cf.stats.skew import outer_limits

__all__ = ["PARTS", "Labels", "cells", "invented", "measured"]

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
RAW_EACH = 5
_, EFFECT = EFFECTS["probability"]


@dataclass(frozen=True, slots=True)
class Part:
    """What acts, and which estimand is asked about it.

    Attributes:
        shift: How many standard deviations the group is more famous, or asked with more confidence.
        fame: Effect of a standard deviation of log fame, of log-odds before, or of half of known or not.
        group: Effect on the group.
        spread: Standard deviation of the logarithm of an edit's factor on fame, whose mean is 1.
        bent: Fame acts above the average only.
        estimand: Of `seesaw_cf.effects.adjusted.ESTIMANDS`.
    """

    shift: float = 0.0
    fame: float = 0.0
    group: float = 0.0
    spread: float = 0.0
    bent: bool = False
    estimand: str = "fame"


PARTS: Mapping[str, Part] = {
    "fame": Part(shift=1, fame=EFFECT),
    "fame in bursts": Part(shift=1, fame=EFFECT, spread=1.0),
    "fame, bent": Part(shift=1, fame=EFFECT, bent=True),
    "nothing": Part(),
    "group": Part(fame=EFFECT, group=EFFECT),
    "group and fame": Part(shift=1, fame=EFFECT, group=EFFECT),
    "confidence": Part(shift=1, fame=EFFECT, estimand="confidence"),
    "confidence, group": Part(fame=EFFECT, group=EFFECT, estimand="confidence"),
    "familiarity": Part(shift=1, fame=EFFECT, estimand="familiarity"),
    "familiarity, group": Part(fame=EFFECT, group=EFFECT, estimand="familiarity"),
    "precision, nothing": Part(estimand="precision"),
    "precision, group": Part(group=EFFECT, estimand="precision"),
}


def cells(prompts: pd.DataFrame) -> pd.DataFrame:
    """Return one row per person and edit with means over prompts: the same contrasts from fewer rows."""
    numbers = ["D_pre", "D_post", "D", *SCALES, "likelier_pre", "held_share_pre"]
    keys = ["editor", "holds", "case_id", "person"]
    first = prompts.drop_duplicates(keys).set_index(keys)
    means = prompts.groupby(keys, sort=True)[numbers].mean()
    out = first.drop(columns=numbers).join(means).reset_index()
    return out.assign(prompt_id=0, likelier_pre=0.5)


def invented(prompts: pd.DataFrame, part: Part, group: tuple[str, str], rng: np.random.Generator) -> pd.DataFrame:
    """Return prompts with an invented state before the edit, and a part's effects added to no difference of groups.

    Args:
        prompts: Rows of `cells`.
        part: What acts.
        group: Axis and label of the group that is more famous, or moved.
        rng: The generator.
    """
    made = shuffled(prompts, rng)
    person, people = pd.factorize(made["person"], sort=True)
    case, cases = pd.factorize(made["case_id"], sort=True)
    own = np.array([group[1] in tags for tags in made[group[0]]])
    member = np.bincount(person, own, people.size) > 0
    fame = rng.normal(size=people.size) + part.shift * member
    factor = rng.lognormal(-(part.spread**2) / 2, part.spread, cases.size)
    asked = fame[person] + (part.estimand == "confidence") * rng.normal(0, 0.5, person.size)
    acts = np.sign(asked) if part.estimand == "familiarity" else np.maximum(asked, 0) * 2 if part.bent else asked
    moved = part.fame * factor[case] * acts + part.group * own
    before = {"sitelinks": np.round(20 * np.exp(asked)).astype(int), "held_share_pre": expit(asked), "known": asked > 0}
    return made.assign(**before, edit_relation=ALL, D=made["D"] + moved)


class Labels:
    """Who is on the two sides of each pooled contrast; what `audit` makes of labels, without its other columns.

    Attributes:
        names: Axis and group of each contrast; of an axis with two labels the first alone.
        member, other: (people, contrasts) 1.0 on this side.
    """

    def __init__(self, prompts: pd.DataFrame) -> None:
        """Read the labels of every person."""
        people = prompts.drop_duplicates("person").sort_values("person")
        self.names: list[tuple[str, str]] = []
        sides: list[tuple[Floats, Floats]] = []
        for axis in AXES:
            tags = [set(own) for own in people[axis]]
            labels = sorted(set().union(*tags))
            for label in labels[: 1 if len(labels) == 2 else None]:
                own = np.array([label in one for one in tags])
                tagged = np.array([bool(one) for one in tags])
                self.names.append((axis, label))
                sides.append((own.astype(np.float64), (tagged & ~own).astype(np.float64)))
        self.member, self.other = (np.column_stack(side) for side in zip(*sides))

    def report(self, prompts: pd.DataFrame, estimand: str | None, permutations: int, seed: int) -> pd.DataFrame:
        """Return value, low and high by t, p and p_adjusted of each contrast.

        Args:
            prompts: Rows of `cells`, all people of `__init__`.
            estimand: See `seesaw_cf.effects.audit`.
            permutations, seed: Of labels.
        """
        case, person = (pd.factorize(prompts[name], sort=True)[0] for name in ("case_id", "person"))
        chosen = Estimand("") if estimand is None else ESTIMANDS[estimand]
        y, x = prompts[["D"]].to_numpy(np.float64), covariates_of(prompts, chosen)
        rows = [self._contrast(chosen, x, y, case, person, *both) for both in zip(self.member.T, self.other.T)]
        table = pd.DataFrame(rows, columns=["value", "low", "high", "p_t"])
        left = residuals(y, x, case) if x.shape[1] else y
        asked = LabelledPeople(case, person, np.zeros_like(case), left, len(self.member))
        orders = label_orders(np.random.default_rng(seed), np.zeros(len(self.member), np.intp), permutations)
        drawn = asked.p(orders, self.member, self.other)[0, 0]
        p = table["p_t"].to_numpy()
        return table.assign(p=permutation_p(p, drawn), p_adjusted=step_down(p, drawn))

    @staticmethod
    def _contrast(
        estimand: Estimand, x: Floats, y: Floats, case: Codes, person: Codes, member: Floats, other: Floats
    ) -> tuple[float, ...]:
        first, second = (side[person] > 0 for side in (member, other))
        n = int(case.max()) + 1
        both = ((np.bincount(case[first], minlength=n) > 0) & (np.bincount(case[second], minlength=n) > 0))[case]
        parts = [case_weights(case, side & both) for side in (first, second)]
        parts = precision_parts(parts, case, person) if estimand.precise else parts
        if x.shape[1]:
            adjusted = adjust_parts(parts, y, x, case)
            parts, y = adjusted.parts, adjusted.values
        crossing = Crossing(parts, {"edit": case, "person": person})
        value, stderr, df, skew = (float(number[0]) for number in crossing.errors(y))
        if min(crossing.effective.values()) < MIN_EFFECTIVE:
            return value, np.nan, np.nan, np.nan
        low, high = outer_limits(value, stderr, stats.t.isf(0.025, df), skew)
        return value, float(low), float(high), float(2 * stats.t.sf(abs(value) / stderr, df))


def measured(
    prompts: pd.DataFrame, part: Part, draws: int, permutations: int, seed: int
) -> Iterator[tuple[pd.DataFrame | None, pd.DataFrame, int]]:
    """Yield the raw and the adjusted contrasts of a report, and the row of the group that something was done to.

    Raw ones are made for one of `RAW_EACH` reports of each group.

    Args:
        prompts: Rows of `cells`.
        part: What acts.
        draws, permutations, seed: Reports, permutations of each, and of which generator.
    """
    labels = Labels(prompts)
    for draw in tqdm(range(draws), leave=False, mininterval=30):
        group = GROUPS[draw % len(GROUPS)]
        made = invented(prompts, part, group, np.random.default_rng([seed, draw]))
        raw = None if draw // len(GROUPS) % RAW_EACH else labels.report(made, None, permutations, draw)
        adjusted = labels.report(made, part.estimand, permutations, draw)
        own = labels.names.index(group) if group in labels.names else labels.names.index(("gender", "men"))
        yield raw, adjusted, own


def results(
    prompts: pd.DataFrame, part: Part, draws: int, permutations: int, seed: int = 0
) -> Iterator[dict[str, Any]]:
    """Yield how many reports name any group, and this group, raw and adjusted, and coverage of its adjusted interval.

    Again after every 50 reports. The interval is the outer of t and Hall, without the permuted one.

    Args:
        prompts, part, draws, permutations, seed: See `measured`.
    """
    counts: dict[str, list[bool]] = {name: [] for name in ("raw_any", "any", "raw_own", "own", "single", "covered")}
    errors: dict[str, list[float]] = {"raw": [], "adjusted": []}
    for draw, (raw, adjusted, place) in enumerate(measured(prompts, part, draws, permutations, seed)):
        sign = -1 if GROUPS[draw % len(GROUPS)] == ("gender", "women") else 1  # men are the row
        truth = sign * part.group
        for name, table in (("raw_", raw), ("", adjusted)):
            if table is None:
                continue
            own = table.iloc[place]
            counts[f"{name}any"].append(bool((table["p_adjusted"] < 0.05).any()))
            counts[f"{name}own"].append(bool(own["p_adjusted"] < 0.05))
            errors["adjusted" if name == "" else "raw"].append(sign * float(own["value"]) - part.group)
        if own["p"] == own["p"]:
            counts["single"].append(bool(own["p"] < 0.05))
            counts["covered"].append(bool(own["low"] <= truth <= own["high"]))
        if (draw + 1) % 50 == 0 or draw + 1 == draws:
            shares = {name: share_of(found) for name, found in counts.items()}
            yield {"shares": shares, "bias": {name: float(np.nanmean(error)) for name, error in errors.items()}}


def main() -> None:
    """Measure every part and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--editor", default="memit")
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--permutations", type=int, default=99)
    parser.add_argument("--part", choices=PARTS, action="append")
    given = parser.parse_args()
    prompts = prompt_effects(read_table(given.run / "scores.parquet", SCORES))
    chosen = (prompts["status"] == "ok") & (prompts["holds"] == "target_new") & (prompts["editor"] == given.editor)
    prompts = cells(prompts[chosen])
    file = RESULTS / "adjusted.json"
    made: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for name in given.part or PARTS:
        for found in results(prompts, PARTS[name], given.draws, given.permutations):
            made[name] = {"permutations": given.permutations, **found}
            write_text(file, json.dumps(made, indent=1) + "\n")
        print(name, made[name])


if __name__ == "__main__":
    main()
