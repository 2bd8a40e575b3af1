"""How often does a whole report hold a false claim? The package's own audit on tables where no group differs.

    python -m benchmarks.report_level RUN [--editor memit] [--draws 300]

takes a finished run and makes two kinds of tables from it. "labels permuted": people swap their whole label vectors
(gender, race, region), an exact null. "real labels": labels and design stay, with their sparse and uneven groups;
person effects are shuffled over people, and what is left of a person under an edit is shuffled within the edit.
Writes benchmarks/results/report_level.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.effects import AuditSettings, audit, prompt_effects
from seesaw_cf.effects.audit import hypotheses
from seesaw_cf.effects.groups import AXES, SCALES
from seesaw_cf.stats import proportion
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.verdicts import AFFECTED

__all__ = ["NULLS", "level", "permuted", "shuffled"]

RESULTS = Path(__file__).parent / "results"
_VALUES = ["D", *SCALES]


def permuted(prompts: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return the prompts with people's label vectors permuted jointly."""
    people = prompts.drop_duplicates("person").set_index("person")[list(AXES)]
    moved = people.iloc[rng.permutation(len(people))].set_axis(people.index)
    return prompts.assign(**{axis: moved.loc[prompts["person"], axis].to_numpy() for axis in AXES})


def shuffled(prompts: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return the prompts with person effects shuffled over people, and the rest of each person within edits.

    Prompts of one person under one edit keep their differences, which cancel within every group.
    """
    edit = np.asarray(prompts.groupby(["edit_relation", "case_id"]).ngroup(), np.intp)
    person = pd.factorize(prompts["person"])[0]
    cell = pd.factorize(edit * (int(person.max()) + 1) + person)[0]
    y = prompts[_VALUES].to_numpy()
    centred = y - _means(edit, y)[edit]
    own = _means(person, centred)
    rest = _means(cell, centred - own[person])
    edit_of = np.zeros(len(rest), np.intp)
    edit_of[cell] = edit
    swapped = np.empty_like(rest)
    swapped[np.argsort(edit_of, kind="stable")] = rest[np.lexsort((rng.random(len(rest)), edit_of))]
    moved = y + (own[rng.permutation(len(own))] - own)[person] + (swapped - rest)[cell]
    return prompts.assign(**dict(zip(_VALUES, moved.T)))


def _means(code: NDArray[np.intp], values: Floats) -> Floats:
    """Return the mean of each column in each cluster, (clusters, columns)."""
    sums = np.array([np.bincount(code, column) for column in values.T])
    return np.asarray((sums / np.bincount(code)).T)


NULLS: dict[str, Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]] = {
    "labels permuted": permuted,
    "real labels": shuffled,
}


def level(prompts: pd.DataFrame, null: str, draws: int, seed: int, settings: AuditSettings) -> dict[str, Any]:
    """Return how many audits of null tables claim that a group is affected, with Wilson's interval.

    Args:
        prompts: Rows of `prompt_effects` of one editor.
        null: A name of `NULLS`.
        draws: Number of tables.
        seed: Of the shuffles; draw k is the same whatever the number of draws.
        settings: What is declared, noise floors too.
    """
    tables = []
    for draw in tqdm(range(draws), desc=null, leave=False):
        rng = np.random.default_rng([seed, list(NULLS).index(null), draw])
        found = hypotheses(audit(NULLS[null](prompts, rng), settings))
        tables.append(found[found["p"].notna()])
    reports = pd.DataFrame({"any": bool(one["verdict"].isin(AFFECTED).any()), "tested": len(one)} for one in tables)
    p = pd.concat(tables)["p"]
    share = proportion(int(reports["any"].sum()), draws)
    return {
        "any_false_claim": {"value": share.value, "low": share.low, "high": share.high, "n": draws},
        "tests_per_report": float(reports["tested"].mean()),
        "single_tests": {str(at): float((p < at).mean()) for at in (0.05, 0.01, 0.001)} | {"n": len(p)},
    }


def main() -> None:
    """Measure both nulls and write the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--editor", default="memit")
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    scores = read_table(given.run / "scores.parquet", SCORES, filters=[("editor", "==", given.editor)])
    prompts = prompt_effects(scores).query("holds == 'target_new' and status == 'ok'").reset_index(drop=True)
    manifest = json.loads((given.run / "manifest.json").read_text(encoding="utf-8"))
    settings = AuditSettings(noise_floor=0.0, noise_floor_log_odds=0.0)
    made: dict[str, Any] = {
        "model": manifest["model"]["id"],
        "editor": given.editor,
        "edits": int(prompts["case_id"].nunique()),
        "people": int(prompts["person"].nunique()),
        "prompts": len(prompts),
        "alpha": settings.alpha,
        "family": settings.family,
        "seed": given.seed,
    }
    made |= {null: level(prompts, null, given.draws, given.seed, settings) for null in NULLS}
    write_text(RESULTS / "report_level.json", json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
