"""Do the intervals keep their promise? Planted effects on the real crossing of prompts, people, targets and edits.

    python benchmarks/simulation.py ../shared/reference/seesaw [--draws 1000]

takes from each released file which people are asked about under which edit and target (nothing else), gives people
group labels, plants effects and counts how often each method errs. Writes benchmarks/results/simulation.{json,md,png}.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from seesaw_cf.files import write_text
from seesaw_cf.stats import Inference, adjust, case_weights, clustered_mean, label_permutation, t_test

RESULTS = Path(__file__).parent / "results"
FILES = {"gender": "P21_P101", "citizenship": "P27_P101", "birth": "P19_P101"}
Floats = NDArray[np.float64]
Codes = NDArray[np.intp]
METHODS = ("published", "default", "target")
GROUPS = 6
PEOPLE_PER_EDIT = 60
# Standard deviations of D, in probability: what an edit does to everybody, what a person adds, each prompt.
SD_EDIT, SD_PERSON, SD_PROMPT = 0.05, 0.05, 0.10


@dataclass(frozen=True)
class Structure:
    """Which person (column) is asked about under which edit (row): codes per prompt, and people's labels."""

    edit: Codes
    person: Codes
    target: Codes
    labels: NDArray[np.bool_]  # (people, groups)
    person_target: Codes


def structure(path: Path, seed: int) -> Structure:
    """Reads the crossing of one released file and gives people labels that depend on the target they hold.

    At most `PEOPLE_PER_EDIT` people of each edit are kept, drawn once, to save time.
    """
    cases = json.loads(path.read_text(encoding="utf-8"))
    draw = np.random.default_rng([seed, 5])
    rows = []
    for case in cases:
        people = draw.permutation(sorted(set(case["attribute_aux_info"])))[:PEOPLE_PER_EDIT]
        rows += [(case["case_id"], person, case["requested_rewrite"]["target_new"]["id"]) for person in people]
    edit, person, target = (pd.factorize(np.array(column), sort=True)[0] for column in zip(*rows))
    n_people = int(person.max()) + 1
    person_target = np.zeros(n_people, np.intp)
    person_target[person] = target
    rng = np.random.default_rng(seed)
    shares = rng.beta(1, 4, size=(int(target.max()) + 1, GROUPS))
    return Structure(edit, person, target, rng.random((n_people, GROUPS)) < shares[person_target], person_target)


def values(s: Structure, rng: np.random.Generator, effect: float, scenario: str) -> Floats:
    """One simulated table of D: crossed random effects; group 0 is shifted by `effect`.

    "heterogeneous" adds group shifts that vary by edit and errors that vary by edit; "targets" adds target effects.
    """
    edit = rng.normal(0, SD_EDIT, int(s.edit.max()) + 1)[s.edit]
    person = rng.normal(0, SD_PERSON, len(s.labels))[s.person]
    noise = rng.normal(0, SD_PROMPT, s.edit.size)
    member = s.labels[s.person, 0]
    y: Floats = edit + person + noise + effect * member
    if scenario == "heterogeneous":
        y += rng.normal(0, SD_EDIT, int(s.edit.max()) + 1)[s.edit] * member
        y += noise * (rng.gamma(2, 0.5, int(s.edit.max()) + 1)[s.edit] - 1)
    if scenario == "targets":
        y += rng.normal(0, SD_EDIT, int(s.target.max()) + 1)[s.target]
    return y


def parts_of(s: Structure, estimand: str) -> tuple[NDArray[np.intp], list[Floats]]:
    """The rows that count and the weights of the group mean, or of the contrast within edits against all others."""
    member = s.labels[s.person, 0]
    if estimand == "mean":
        rows = np.flatnonzero(member)
        return rows, [case_weights(s.edit[rows], np.ones(rows.size, bool))]
    n = int(s.edit.max()) + 1
    both = (np.bincount(s.edit[member], minlength=n) > 0) & (np.bincount(s.edit[~member], minlength=n) > 0)
    rows = np.flatnonzero(both[s.edit])
    return rows, [case_weights(s.edit[rows], member[rows]), case_weights(s.edit[rows], ~member[rows])]


def infer(s: Structure, y: Floats, rows: NDArray[np.intp], parts: list[Floats], method: str) -> Inference:
    """The estimate by one method; "published" is a one-sample t-test over case-level values."""
    clusters = {"edit": s.edit[rows], "person": s.person[rows], "target": s.target[rows]}
    names = {"default": ["edit", "person"], "target": ["target"], "published": ["edit"]}[method]
    found = clustered_mean(y[rows], parts, {name: clusters[name] for name in names})
    if method != "published":
        return found
    per_case = sum(sign * np.bincount(s.edit[rows], part * y[rows]) for sign, part in zip((1, -1), parts))
    counts = np.bincount(s.edit[rows], parts[0]) > 0
    cases = np.asarray(per_case)[counts] * counts.sum()
    p = t_test(cases)[1]
    half = 1.96 * cases.std(ddof=1) / np.sqrt(cases.size)
    return Inference(found.value, found.value - half, found.value + half, half / 1.96, p, cases.size - 1, cases.size)


def single_tests(s: Structure, draws: int, seed: int, label: str) -> Iterator[dict[str, Any]]:
    """False positives at nominal 5 % and coverage of 95 % intervals, per estimand, scenario and method."""
    for estimand in ("mean", "contrast"):
        rows, parts = parts_of(s, estimand)
        for scenario in ("null", "heterogeneous", "targets"):
            rejected, covered = (dict.fromkeys(METHODS, 0) for _ in range(2))
            found: dict[str, Inference] = {}
            rng = np.random.default_rng([seed, len(scenario), len(estimand)])
            for _ in tqdm(range(draws), desc=f"{label} {estimand} {scenario}", leave=False):
                y = values(s, rng, 0.0, scenario)
                for method in METHODS:
                    found[method] = infer(s, y, rows, parts, method)
                    rejected[method] += found[method].p < 0.05
                    covered[method] += found[method].low <= 0 <= found[method].high
            for method in METHODS:
                refused = found[method].note
                yield {
                    "structure": label,
                    "estimand": estimand,
                    "scenario": scenario,
                    "method": method,
                    "false_positive_rate": None if refused else rejected[method] / draws,
                    "coverage": None if refused else covered[method] / draws,
                    "effective": found[method].effective,
                    "note": refused,
                    "n_prompts": int(rows.size),
                }


def power_curve(s: Structure, draws: int, seed: int, label: str) -> Iterator[dict[str, Any]]:
    """Share of rejections and coverage of the default method on the contrast, by planted effect."""
    rows, parts = parts_of(s, "contrast")
    for effect in (0.0, 0.005, 0.01, 0.02, 0.04):
        rng = np.random.default_rng([seed, int(effect * 1000)])
        tests = [infer(s, values(s, rng, effect, "heterogeneous"), rows, parts, "default") for _ in range(draws)]
        yield {
            "structure": label,
            "effect": effect,
            "power": float(np.mean([t.p < 0.05 for t in tests])),
            "coverage": float(np.mean([t.low <= effect <= t.high for t in tests])),
        }


def table_errors(s: Structure, draws: int, seed: int, label: str) -> dict[str, Any]:
    """Family-wise error of a table of six groups without any effect: uncorrected, Holm, and permutation with max-T."""
    rng = np.random.default_rng([seed, 99])
    wrong = {"uncorrected": 0, "holm": 0, "max_t": 0}
    sets = []
    for group in range(GROUPS):
        swapped = Structure(s.edit, s.person, s.target, np.roll(s.labels, -group, axis=1), s.person_target)
        sets.append((swapped, *parts_of(swapped, "contrast")))
    for draw in tqdm(range(draws), desc=f"{label} tables", leave=False):
        y = values(s, rng, 0.0, "null")
        p = [infer(one, y, rows, parts, "default").p for one, rows, parts in sets]
        wrong["uncorrected"] += bool(np.nanmin(p) < 0.05)
        wrong["holm"] += bool(np.nanmin(adjust(p)) < 0.05)
        centred = y - (np.bincount(s.edit, y) / np.bincount(s.edit))[s.edit]
        person = np.bincount(s.person, centred) / np.bincount(s.person)
        p_max = label_permutation(person, s.labels, s.person_target, permutations=99, seed=draw)[2]
        wrong["max_t"] += bool(np.nanmin(p_max) <= 0.05)
    return {"structure": label, **{name: count / draws for name, count in wrong.items()}}


def markdown(results: dict[str, Any]) -> str:
    """The tables of the results."""
    lines = ["| crossing | estimand | planted | method | false positives | coverage | effective clusters |"]
    lines.append("|---|---|---|---|---|---|---|")
    for r in results["single"]:
        rates = [f"{100 * r[k]:.1f} %" if r[k] is not None else "refused" for k in ("false_positive_rate", "coverage")]
        effective = ", ".join(f"{name} {n:.0f}" for name, n in r["effective"].items())
        head = f"{r['structure']} | {r['estimand']} | {r['scenario']} | {r['method']}"
        lines.append(f"| {head} | {rates[0]} | {rates[1]} | {effective} |")
    lines += ["", "| crossing | planted effect | power | coverage |", "|---|---|---|---|"]
    for r in results["power"]:
        lines.append(f"| {r['structure']} | {r['effect']:g} | {100 * r['power']:.1f} % | {100 * r['coverage']:.1f} % |")
    lines += ["", "| crossing | uncorrected | Holm | max-T |", "|---|---|---|---|"]
    for r in results["tables"]:
        rates = [f"{100 * r[k]:.1f} %" for k in ("uncorrected", "holm", "max_t")]
        lines.append(f"| {r['structure']} | " + " | ".join(rates) + " |")
    return "\n".join(lines) + "\n"


def picture(results: dict[str, Any], path: Path) -> None:
    """False-positive rates per method, and power."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4))
    shown = [r for r in results["single"] if r["scenario"] != "targets" and r["false_positive_rate"] is not None]
    for method in METHODS:
        rates = [100 * r["false_positive_rate"] for r in shown if r["method"] == method]
        left.plot(rates, [method] * len(rates), "o", alpha=0.7)
    left.axvspan(3.5, 6.5, alpha=0.2)
    left.set(xlabel="false positives at nominal 5 % (%)", xscale="log")
    for label in FILES:
        rows = [r for r in results["power"] if r["structure"] == label]
        right.plot([r["effect"] for r in rows], [r["power"] for r in rows], "o-", label=label)
    right.set(xlabel="planted group effect (probability)", ylabel="power, default method", ylim=(0, 1))
    right.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def save(found: dict[str, Any], label: str) -> None:
    """Puts one crossing's results into the files, beside those of the others made with the same draws and seed."""
    file = RESULTS / "simulation.json"
    old = json.loads(file.read_text()) if file.exists() else {}
    results = {name: found[name] for name in ("draws", "seed")}
    same = all(old.get(name) == value for name, value in results.items())
    for part in ("single", "power", "tables"):
        kept = [row for row in old.get(part, []) if same and row["structure"] != label]
        results[part] = sorted(kept + found[part], key=lambda row: list(FILES).index(row["structure"]))
    write_text(file, json.dumps(results, indent=1) + "\n")
    write_text(RESULTS / "simulation.md", markdown(results))
    picture(results, RESULTS / "simulation.png")


def main() -> None:
    """Runs everything and writes the results, one crossing at a time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(FILES), action="append")
    given = parser.parse_args()
    for label in given.only or list(FILES):
        s = structure(given.folder / f"seesaw_cf_{FILES[label]}.json", given.seed)
        found: dict[str, Any] = {"draws": given.draws, "seed": given.seed}
        found["tables"] = [table_errors(s, given.draws // 5, given.seed, label)]
        found["single"] = list(single_tests(s, given.draws, given.seed, label))
        found["power"] = list(power_curve(s, given.draws // 4, given.seed, label))
        save(found, label)


if __name__ == "__main__":
    main()
