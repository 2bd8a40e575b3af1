"""How often does a whole report hold a false claim, and how often does it see what is there?

    python -m benchmarks.report_level RUN [--editor memit] [--draws 300] [--permutations 499]

takes a finished run, makes tables from it and corrects all contrasts of an editor (both kinds of holders, pooled and by
relation) as a report does. "labels permuted": people swap their whole label vectors (gender, race, region), an exact
null whose tables share one reference. "real labels": labels and design stay, with their sparse and uneven groups;
person effects are shuffled over people, and what is left of a person under an edit is shuffled within the edit.
"sparse groups": an invented crossing of 20 edits and 61 people, groups of 1, 2, 4, 8, 16 and 30. Power is that of an
effect of -0.05 on one group under real labels, mean over five groups, a tenth of the draws each. Writes
benchmarks/results/report_level.json.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.effects import AuditSettings, audit, prompt_effects
from seesaw_cf.effects.groups import ALL, SCALES
from seesaw_cf.effects.permutations import LabelledContrasts
from seesaw_cf.stats import proportion
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.multiple import adjust, permutation_p, step_down

__all__ = ["NULLS", "level", "reports", "shuffled", "sparse"]

RESULTS = Path(__file__).parent / "results"
GROUPS = (
    ("gender", "women"), ("race", "Black"), ("race", "white"), ("region", "Western Europe"), ("region", "North America")
)  # fmt: skip
EFFECT = -0.05
_VALUES = ["D", *SCALES]
Null = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]


def shuffled(prompts: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return the prompts with person effects shuffled over people, and the rest of each person within edits.

    Prompts of one person under one edit keep their differences, which cancel within every group. Each editor, and each
    kind of holder, has effects of its own; people are shuffled alike in all.
    """
    people = pd.factorize(prompts["person"], sort=True)[0]
    order = rng.permutation(int(people.max()) + 1)
    own = prompts.groupby(["editor", "holds"], sort=True).indices
    seed = int(rng.integers(2**32))
    moved = prompts[_VALUES].to_numpy().copy()
    for rows in own.values():
        part = prompts.iloc[rows]
        moved[rows] = _shuffled(part, people[rows], order, np.random.default_rng(seed))
    return prompts.assign(**dict(zip(_VALUES, moved.T)))


def _shuffled(
    prompts: pd.DataFrame, people: NDArray[np.intp], order: NDArray[np.intp], rng: np.random.Generator
) -> Floats:
    edit = np.asarray(prompts.groupby(["edit_relation", "case_id"]).ngroup(), np.intp)
    there, person = np.unique(people, return_inverse=True)
    cell = np.unique(edit * (int(person.max()) + 1) + person, return_inverse=True)[1]
    y = prompts[_VALUES].to_numpy()
    centred = y - _means(edit, y)[edit]
    own = _means(person, centred)
    rest = _means(cell, centred - own[person])
    edit_of = np.zeros(len(rest), np.intp)
    edit_of[cell] = edit
    swapped = np.empty_like(rest)
    swapped[np.argsort(edit_of, kind="stable")] = rest[np.lexsort((rng.random(len(rest)), edit_of))]
    moved = own[np.argsort(np.argsort(order[there]))]
    return np.asarray(y + (moved - own)[person] + (swapped - rest)[cell])


def _means(code: NDArray[np.intp], values: Floats) -> Floats:
    """Return the mean of each column in each cluster, (clusters, columns)."""
    sums = np.array([np.bincount(code, column) for column in values.T])
    return np.asarray((sums / np.bincount(code)).T)


def sparse(rng: np.random.Generator, edits: int = 20) -> pd.DataFrame:
    """Return prompts about 61 people of uneven groups, each asked under two thirds of the edits; no group differs."""
    race = np.repeat([f"r{n}" for n in (1, 2, 4, 8, 16, 30)], [1, 2, 4, 8, 16, 30])
    edit, person = (code.ravel() for code in np.indices((edits, 61)))
    chosen = np.random.default_rng(0).random(edit.size) < 2 / 3
    edit, person = edit[chosen], person[chosen]
    of_edit, of_person = rng.normal(0, 0.05, edits), rng.normal(0, 0.05, 61)
    values = of_edit[edit] + of_person[person] + rng.normal(0, 0.1, edit.size)
    return pd.DataFrame(
        {
            "editor": "invented",
            "case_id": edit,
            "edit_relation": np.where(edit % 2, "P19", "P27"),
            "prompt_id": person,
            "person": [f"p{number:02}" for number in person],
            "gender": [[("men", "women")[number % 2]] for number in person],
            "race": [[race[number]] for number in person],
            "region": [[] for _ in person],
            "holds": "target_new",
            "status": "ok",
            "likelier_pre": 0.5,
            **dict.fromkeys(("D_pre", "D_post", *_VALUES), values),
        }
    )


NULLS: dict[str, Null] = {
    "labels permuted": lambda prompts, _: prompts,
    "real labels": shuffled,
    "sparse groups": lambda _, rng: sparse(rng),
}


def reports(
    prompts: pd.DataFrame,
    null: str,
    draws: int,
    permutations: int,
    seed: int,
    planted: tuple[str, str, str] | None = None,
) -> Iterator[tuple[pd.DataFrame, Floats]]:
    """Yield the contrasts of tables from a null, and the p of t after permutations.

    Args:
        prompts: Scored rows of `prompt_effects` about holders.
        null: A name of `NULLS`.
        draws, permutations, seed: How many tables, how many permutations of each, and of which generator; draw k is the
            same whatever the number of draws.
        planted: Axis, group and relation ("all") that `EFFECT` is added to.
    """
    template = sparse(np.random.default_rng(0)) if null == "sparse groups" else prompts
    table = audit(template, AuditSettings(permutations=0, noise_floor=0.0, noise_floor_log_odds=0.0))
    table = table[["editor", "relation", "holds", "axis", "group", "reference", "mirror", "scale"]].assign(p=0.0)
    if null == "labels permuted":  # permuted labels have the same permutations, so that one reference serves all
        pool = LabelledContrasts(prompts, table).drawn(draws + permutations, seed)
        yield from ((table.assign(p_t=row), pool[draws:]) for row in pool[:draws])
        return
    for draw in tqdm(range(draws), desc=null, leave=False):
        rng = np.random.default_rng([seed, list(NULLS).index(null), draw])
        made = NULLS[null](prompts, rng)
        if planted:
            axis, group, relation = planted
            hit = np.array([group in own for own in made[axis]])
            hit &= (made["edit_relation"] == relation).to_numpy() | (relation == ALL)
            made = made.assign(D=made["D"] + EFFECT * hit)
        contrasts = LabelledContrasts(made, table)
        people = np.arange(contrasts.strata.size)[None]
        yield table.assign(p_t=contrasts.p(people)[0]), contrasts.drawn(permutations, draw)


def level(prompts: pd.DataFrame, null: str, draws: int, permutations: int, seed: int = 0) -> dict[str, Any]:
    """Return how many tables without an effect hold a significant contrast, with Wilson's interval.

    Args:
        prompts, null, draws, permutations, seed: See `reports`.
    """
    by_editor, together, holm, single = [], [], [], []
    for table, drawn in reports(prompts, null, draws, permutations, seed):
        p = table["p_t"].to_numpy()
        first = np.flatnonzero(table["editor"] == table["editor"].iloc[0])
        by_editor.append(np.nanmin(step_down(p[first], drawn[:, first])) < 0.05)
        together.append(np.nanmin(step_down(p, drawn)) < 0.05)
        holm.append(np.nanmin(adjust(p[first])) < 0.05)
        single.append(permutation_p(p[first], drawn[:, first]))
    alone = np.concatenate(single)
    alone = alone[~np.isnan(alone)]
    return {
        "one_editor": _share(by_editor),
        "all_editors_one_family": _share(together),
        "holm": _share(holm),
        "tests_per_report": alone.size / draws,
        "single_tests": {str(at): float((alone < at).mean()) for at in (0.05, 0.01)} | {"n": alone.size},
    }


def power(prompts: pd.DataFrame, relation: str, draws: int, permutations: int, seed: int = 0) -> dict[str, Any]:
    """Return how often `EFFECT` on a group is found where it is, mean over `GROUPS`, beside Holm over the same family.

    Args:
        prompts, draws, permutations, seed: See `reports`.
        relation: Where it is planted; "all": everywhere, and found is the pooled contrast.
    """
    hits, weak = [], []
    for axis, group in GROUPS:
        planted = (axis, group, relation)
        for table, drawn in reports(prompts, "real labels", draws, permutations, seed, planted):
            own = (table[["axis", "group", "relation", "holds"]] == [*planted, "target_new"]).all(axis=1)
            place = np.flatnonzero(own & ~table["mirror"])
            if not place.size:  # the mirror stands for it
                place = np.flatnonzero(own) - 1
            p = table["p_t"].to_numpy()
            hits.append(bool((step_down(p, drawn)[place] < 0.05).any()))
            weak.append(bool((adjust(np.where(table["mirror"], np.nan, p))[place] < 0.05).any()))
    return {"found": _share(hits), "holm": _share(weak)}


def _share(found: list[Any]) -> dict[str, float]:
    share = proportion(int(np.sum(found)), len(found))
    return {"value": share.value, "low": share.low, "high": share.high, "n": len(found)}


def main() -> None:
    """Measure every part and write what was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--editor", default="memit")
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--permutations", type=int, default=499)
    parser.add_argument("--part", choices=[*NULLS, "power"], action="append")
    given = parser.parse_args()
    prompts = prompt_effects(read_table(given.run / "scores.parquet", SCORES))
    prompts = prompts[(prompts["status"] == "ok") & (prompts["holds"] != "")].reset_index(drop=True)
    own = prompts[prompts["editor"] == given.editor].reset_index(drop=True)
    manifest = json.loads((given.run / "manifest.json").read_text(encoding="utf-8"))
    file = RESULTS / "report_level.json"
    made: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    made |= {
        "model": manifest["model"]["id"],
        "editor": given.editor,
        "edits": int(own["case_id"].nunique()),
        "people": int(own["person"].nunique()),
        "prompts": len(own),
    }
    for part in given.part or [*NULLS, "power"]:
        if part == "power":
            where = (ALL, "P101", "P21")
            made[part] = {name: power(own, name, given.draws // 10, given.permutations) for name in where}
        else:
            made[part] = level(prompts if part == "real labels" else own, part, given.draws, given.permutations)
        made[part]["permutations"] = given.permutations
        write_text(file, json.dumps(made, indent=1) + "\n")


if __name__ == "__main__":
    main()
