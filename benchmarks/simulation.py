"""Do the intervals keep their promise? Planted effects on the real crossing of prompts, people, targets and edits.

    python -m benchmarks.simulation ../shared/reference/seesaw [--draws 2000] [--only gender]

takes from each released file which people are asked about under which edit and target (nothing else), gives people
group labels, plants effects and counts how often each method errs. Writes benchmarks/results/simulation.{json,md} and
docs/assets/{level,power}.png, one crossing at a time, so that a stopped run goes on with `--only`.

    python -m benchmarks.simulation --shares [--draws 2000]

prints how often intervals of shares of edits hold the true share.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse, stats
from tqdm import tqdm

from benchmarks.simulation_report import markdown, pictures
from seesaw_cf.base.files import write_text
from seesaw_cf.stats.clustered import MIN_EFFECTIVE, case_weights
from seesaw_cf.stats.crossing import Crossing
from seesaw_cf.stats.multiple import adjust
from seesaw_cf.stats.simple import clustered_share

RESULTS = Path(__file__).parent / "results"
FILES = {"gender": "P21_P101", "citizenship": "P27_P101", "birth": "P19_P101"}
SCENARIOS = ("null", "heterogeneous", "targets", "skewed")
EFFECTS = (0.0, 0.005, 0.01, 0.02, 0.04, 0.08)
GROUPS = 6
BATCH = 100
ICC = 0.3  # of the prompts of one edit, where shares are simulated
# Standard deviations of D, in probability: what an edit does to everybody, what a person adds, each prompt.
SD_EDIT, SD_PERSON, SD_PROMPT = 0.05, 0.05, 0.10
Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
Draws = dict[str, Floats]


@dataclass(frozen=True)
class Structure:
    """Which person is asked about under which edit and target: codes per prompt, and people's labels.

    Attributes:
        edit, person, target: (prompts,).
        labels: (people, groups); the chance of a label depends on the target a person holds.
        person_target: (people,).
    """

    edit: Codes
    person: Codes
    target: Codes
    labels: NDArray[np.bool_]
    person_target: Codes


def structure(path: Path, seed: int) -> Structure:
    """Reads the crossing of one released file and labels its people."""
    cases = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        (case["case_id"], person, case["requested_rewrite"]["target_new"]["id"])
        for case in cases
        for person in sorted(set(case["attribute_aux_info"]))
    ]
    edit, person, target = (pd.factorize(np.array(column), sort=True)[0] for column in zip(*rows))
    person_target = np.zeros(int(person.max()) + 1, np.intp)
    person_target[person] = target
    rng = np.random.default_rng(seed)
    shares = rng.beta(1, 4, size=(int(target.max()) + 1, GROUPS))
    return Structure(
        edit, person, target, rng.random((person_target.size, GROUPS)) < shares[person_target], person_target
    )


@dataclass(frozen=True)
class Design:
    """One estimand of one group: its weights, prepared for every method."""

    estimand: str
    group: int
    weight: Floats
    default: Crossing
    target: Crossing
    cases: sparse.csr_array

    @property
    def refused(self) -> bool:
        """`clustered_mean` would give no interval."""
        return min(self.default.effective.values()) < MIN_EFFECTIVE


def designs(s: Structure) -> list[Design]:
    """The mean of every group, and its contrast within edits against everybody else."""
    found = []
    n = int(s.edit.max()) + 1
    for group in range(GROUPS):
        member = s.labels[s.person, group]
        both = (np.bincount(s.edit[member], minlength=n) > 0) & (np.bincount(s.edit[~member], minlength=n) > 0)
        first, second = (case_weights(s.edit, side & both[s.edit]) for side in (member, ~member))
        for estimand, parts in (("mean", [case_weights(s.edit, member)]), ("contrast", [first, second])):
            weight = parts[0] - (parts[1] if len(parts) > 1 else 0.0)
            default = Crossing(parts, {"edit": s.edit, "person": s.person})
            cases = sparse.csr_array((weight, (s.edit, np.arange(s.edit.size))), shape=(n, s.edit.size))
            kept = np.bincount(s.edit, parts[0], n) > 0
            cases = sparse.csr_array(cases[np.flatnonzero(kept)] * int(kept.sum()))
            found.append(Design(estimand, group, weight, default, Crossing(parts, {"target": s.target}), cases))
    return found


def values(s: Structure, scenario: str, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Simulated tables of D, (prompts, draws), with crossed random effects and no group effect; target effects.

    "heterogeneous": every group is shifted at random by every edit, and the spread of prompts differs between edits.
    "targets": each target has an effect of its own. "skewed": all effects are exponential instead of normal.
    """

    def effects(sd: float, size: int) -> Floats:
        return sd * (
            rng.exponential(size=(size, draws)) - 1 if scenario == "skewed" else rng.normal(size=(size, draws))
        )

    n_edits, n_targets = int(s.edit.max()) + 1, int(s.target.max()) + 1
    noise = effects(SD_PROMPT, s.edit.size)
    if scenario == "heterogeneous":
        noise *= rng.gamma(2, 0.5, n_edits)[s.edit][:, None]
        for group in range(GROUPS):
            rows = s.labels[s.person, group]
            noise[rows] += effects(SD_EDIT, n_edits)[s.edit[rows]]
    of_target = effects(SD_EDIT, n_targets) if scenario == "targets" else np.zeros((n_targets, draws))
    y = noise + effects(SD_EDIT, n_edits)[s.edit] + effects(SD_PERSON, s.person_target.size)[s.person]
    return y + of_target[s.target], of_target


def published(design: Design, y: Floats) -> Draws:
    """A one-sample t-test over case-level values."""
    cases = design.cases @ y
    stderr = cases.std(axis=0, ddof=1) / np.sqrt(len(cases))
    return {"estimate": cases.mean(axis=0), "stderr": stderr, "df": np.full(y.shape[1], len(cases) - 1.0)}


def simulate(s: Structure, made: list[Design], scenario: str, draws: int, seed: int) -> dict[tuple[int, str], Draws]:
    """Estimates, errors and true values of every design and method, (draws,) each."""
    found: dict[tuple[int, str], list[Draws]] = {}
    for batch in tqdm(range(0, draws, BATCH), desc=scenario, leave=False):
        rng = np.random.default_rng([seed, SCENARIOS.index(scenario), batch])
        y, of_target = values(s, scenario, min(BATCH, draws - batch), rng)
        for number, design in enumerate(made):
            truth = np.bincount(s.target, design.weight, len(of_target)) @ of_target
            for method, crossing in (("default", design.default), ("target", design.target)):
                if method == "default" or scenario == "targets":
                    one = dict(zip(("estimate", "stderr", "df"), crossing.errors(y)))
                    one["truth"] = truth if method == "default" else np.zeros_like(truth)
                    found.setdefault((number, method), []).append(one)
            found.setdefault((number, "published"), []).append(published(design, y) | {"truth": truth})
    return {
        key: {name: np.concatenate([one[name] for one in parts]) for name in parts[0]} for key, parts in found.items()
    }


def p_values(d: Draws, effect: float = 0.0) -> Floats:
    """p-values of "the effect is 0" when the group is shifted by `effect`, which moves the estimate alone."""
    return np.asarray(2 * stats.t.sf(np.abs(d["estimate"] - d["truth"] + effect) / d["stderr"], d["df"]))


def coverage(d: Draws) -> float:
    """Share of 95 % intervals that hold the truth."""
    half = stats.t.ppf(0.975, d["df"]) * d["stderr"]
    return float((np.abs(d["estimate"] - d["truth"]) <= half).mean())


def single_rows(label: str, scenario: str, made: list[Design], found: dict[tuple[int, str], Draws]) -> Iterator[Any]:
    """False positives and coverage, one row per design and method."""
    for (number, method), d in found.items():
        design = made[number]
        crossing = design.target if method == "target" else design.default
        refused = method != "published" and min(crossing.effective.values()) < MIN_EFFECTIVE
        yield {
            "crossing": label,
            "estimand": design.estimand,
            "scenario": scenario,
            "group": design.group,
            "method": method,
            "false_positive_rate": None if refused else float((p_values(d) < 0.05).mean()),
            "coverage": None if refused else coverage(d),
            "error_ratio": round(float(np.sqrt((d["stderr"] ** 2).mean()) / (d["estimate"] - d["truth"]).std()), 4),
            "effective": {name: round(n, 1) for name, n in crossing.effective.items()},
            "n_prompts": int(design.default.used.sum()),
        }


def power_rows(label: str, made: list[Design], found: dict[tuple[int, str], Draws]) -> Iterator[Any]:
    """Share of rejections of the default method on contrasts, by planted effect."""
    for number, design in enumerate(made):
        if design.estimand == "contrast" and not design.refused:
            d = found[number, "default"]
            for effect in EFFECTS:
                power = float((p_values(d, effect) < 0.05).mean())
                yield {"crossing": label, "group": design.group, "effect": effect, "power": power}


def table_rows(label: str, made: list[Design], found: dict[tuple[int, str], Draws]) -> dict[str, Any]:
    """Family-wise error of a table of contrasts without any effect, uncorrected and after Holm.

    What permutations make of whole reports: `benchmarks.report_level`.
    """
    chosen = [n for n, design in enumerate(made) if design.estimand == "contrast" and not design.refused]
    p = np.array([p_values(found[number, "default"]) for number in chosen])
    holm = np.array([adjust(column).min() for column in p.T])
    rates = {"uncorrected": float((p < 0.05).any(axis=0).mean()), "holm": float((holm < 0.05).mean())}
    return {"crossing": label, "contrasts": len(chosen)} | rates


def crossing_results(path: Path, label: str, draws: int, seed: int) -> dict[str, Any]:
    """Everything about one crossing."""
    s = structure(path, seed)
    made = designs(s)
    result: dict[str, Any] = {"single": []}
    for scenario in SCENARIOS:
        found = simulate(s, made, scenario, draws, seed)
        result["single"] += single_rows(label, scenario, made, found)
        if scenario == "null":
            result["tables"] = [table_rows(label, made, found)]
        if scenario == "heterogeneous":
            result["power"] = list(power_rows(label, made, found))
    return result


def save(result: dict[str, Any], label: str, draws: int, seed: int) -> None:
    """Puts one crossing's results into the files, beside those of the others made with the same draws and seed."""
    file = RESULTS / "simulation.json"
    old = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    merged: dict[str, Any] = {"draws": draws, "seed": seed, "min_effective": MIN_EFFECTIVE}
    merged["sd"] = {"edit": SD_EDIT, "person": SD_PERSON, "prompt": SD_PROMPT}
    same = all(old.get(name) == value for name, value in merged.items())
    for part in ("single", "power", "tables"):
        kept = [row for row in old.get(part, []) if same and row["crossing"] != label]
        merged[part] = sorted(kept + result[part], key=lambda row: list(FILES).index(row["crossing"]))
    write_text(file, json.dumps(merged, indent=None, separators=(",", ":")).replace("},{", "},\n{") + "\n")
    write_text(RESULTS / "simulation.md", markdown(merged))
    pictures(merged)


def correlated_shares(rng: np.random.Generator, edits: int, prompts: int, share: float) -> Floats:
    """Shares of right answers of each edit, (edits,), whose prompts have the intraclass correlation `ICC`."""
    odds = 1 / ICC - 1
    return rng.binomial(prompts, rng.beta(share * odds, (1 - share) * odds, edits)) / prompts


def share_rows(draws: int, seed: int) -> Iterator[dict[str, Any]]:
    """Coverage of the interval of a share of edits, by edits, prompts of each and true share."""
    for number, (edits, prompts, share) in enumerate(product((18, 36, 160), (1, 2, 10), (0.97, 0.99))):
        rng = np.random.default_rng([seed, number])
        case = np.repeat(np.arange(edits), prompts)
        weights = np.full(case.size, 1 / case.size)
        found = [
            clustered_share(np.repeat(correlated_shares(rng, edits, prompts, share), prompts), weights, case)
            for _ in range(draws)
        ]
        yield {
            "edits": edits,
            "prompts": prompts,
            "share": share,
            "coverage": float(np.mean([one.low <= share <= one.high for one in found])),
            "narrowest": min(one.high - one.low for one in found),
            "width": float(np.mean([one.high - one.low for one in found])),
        }


def main() -> None:
    """Runs everything and writes the results, one crossing at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--shares", action="store_true")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(FILES), action="append")
    given = parser.parse_args()
    if given.shares:
        print(pd.DataFrame(share_rows(given.draws, given.seed)).round(3).to_string(index=False))
        return
    for label in given.only or list(FILES):
        path = given.folder / f"seesaw_cf_{FILES[label]}.json"
        save(crossing_results(path, label, given.draws, given.seed), label, given.draws, given.seed)


if __name__ == "__main__":
    main()
