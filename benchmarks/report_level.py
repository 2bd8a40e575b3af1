"""How often does a whole report hold a false claim, and how often does it see what is there?

    python -m benchmarks.report_level RUN [--editor memit] [--draws 300] [--permutations 199] [--part power]

takes a finished run, makes tables from it and corrects all contrasts of an editor (both kinds of holders, pooled and by
relation) as a report does, on either scale. "labels permuted": people swap their whole label vectors (gender, race,
region), an exact null; its tables share one reference, so give it --permutations 1999. "real labels": labels and
design stay, with their sparse and uneven groups; person effects are shuffled over people, and what is left of a person
under an edit is shuffled within the edit. "sparse groups": an invented crossing of 20 edits and 61 people, groups of 1,
2, 4, 8, 16 and 30. Power is that of `EFFECTS` on one group, five groups by turns, in tables of the first two kinds; a
group that the design cannot test counts as not found. "speed" are CPU seconds, of the run and of its edits repeated to
1,500. Writes benchmarks/results/report_level.json, by design of the run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import optimize
from scipy.sparse import csr_array
from tqdm import tqdm

from seesaw_cf.base.files import write_text
from seesaw_cf.base.tables import SCORES, read_table
from seesaw_cf.effects import AuditSettings, audit, prompt_effects
from seesaw_cf.effects.audit import LEAST
from seesaw_cf.effects.means import ALL, AXES, SCALES
from seesaw_cf.effects.permutations import LabelledContrasts
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.multiple import adjust, permutation_p, step_down
from seesaw_cf.stats.simple import proportion

__all__ = ["NULLS", "level", "permuted", "reports", "share_of", "shuffled", "sparse"]

RESULTS = Path(__file__).parent / "results"
GROUPS = (
    ("gender", "women"), ("race", "Black"), ("race", "white"), ("region", "Western Europe"), ("region", "North America")
)  # fmt: skip
EFFECTS = {"probability": ("D", -0.05), "log-odds": ("log_odds", -0.4)}
"""Scale -> its column, and the effect that is planted: both are five to eight standard errors of a pooled contrast."""
LEVEL = 0.05 + 1e-9  # 3 of 60 are the level, whatever their last digit
_LARGE = 1500
WHERE = (ALL, "P101", "P21")
_VALUES = ["D", *SCALES]
Null = Callable[[pd.DataFrame, np.random.Generator], pd.DataFrame]


def permuted(prompts: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return the prompts with people's label vectors swapped among people who are asked as holders of the same."""
    how: dict[str, Any] = {"holds": lambda answers: "/".join(sorted(set(answers))), **_FIRST}
    people = prompts.groupby("person").agg(how)
    moved = people.copy()
    for own in people.groupby("holds").indices.values():
        moved.iloc[own] = people.iloc[rng.permutation(own)]
    return prompts.assign(**{axis: moved[axis].reindex(prompts["person"]).to_numpy() for axis in AXES})


_FIRST = dict.fromkeys(AXES, "first")


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
    cells, cell = np.unique(edit * there.size + person, return_inverse=True)
    edit_of, person_of = np.divmod(cells, there.size)
    y = prompts[_VALUES].to_numpy()
    gaps = _means(cell, y - _means(edit, y)[edit])
    own, rest = _effects(gaps, edit_of, person_of)
    swapped = np.empty_like(rest)
    swapped[np.argsort(edit_of, kind="stable")] = rest[np.lexsort((rng.random(len(rest)), edit_of))]
    moved = own[np.argsort(np.argsort(order[there]))]
    return np.asarray(y + (moved[person_of] + swapped - gaps)[cell])


def _effects(gaps: Floats, edit: NDArray[np.intp], person: NDArray[np.intp]) -> tuple[Floats, Floats]:
    """Return effects of people and what is left, each with the variance that it is estimated to have.

    The mean of a person who was asked once is mostly chance: carried to a person who was asked often, it would make
    people differ more than they do. So means are shrunk, and both parts scaled back to their variance.

    Source: Carpenter, Goldstein and Rasbash (2003), "A novel bootstrap procedure for assessing the relationship between
        class size and achievement", JRSS C 52, 431-443.
    """
    between, within = np.array([variances(column, edit, person) for column in gaps.T]).T
    noise = within / np.bincount(person)[:, None]
    own = _means(person, gaps) * between / np.maximum(between + noise, 1e-300)
    return _scaled(own, between), _scaled(gaps - own[person], within)


def variances(values: Floats, edit: NDArray[np.intp], person: NDArray[np.intp]) -> tuple[float, float]:
    """Return the variance between people, and that of what neither an edit nor a person has, by moments.

    Squared sums of residuals from the mean are set equal to what they are on average: with Z the indicators of a
    dimension and M the projection off the mean, |Z' M Z_k|^2 times the variance of dimension k.

    Source: Henderson (1953), method 1, with the grand mean taken out; no component is below 0.
    """
    n, residual, codes = values.size, values - values.mean(), (edit, person, np.arange(edit.size))
    counts, matrix = [np.bincount(code).astype(np.float64) for code in codes], np.zeros((3, 3))
    for row, code in enumerate(codes):
        for column, other in enumerate(codes):
            shared = csr_array((np.ones(n), (code, other)))
            crossed = counts[row] @ np.asarray(shared @ counts[column]) / n
            squares = (counts[row] @ counts[row]) * (counts[column] @ counts[column]) / n**2
            matrix[row, column] = shared.power(2).sum() - 2 * crossed + squares
    scale = 1 / np.maximum(np.diag(matrix), 1e-300)
    sums = np.array([float((np.bincount(code, residual) ** 2).sum()) for code in codes])
    found, _ = optimize.nnls(matrix * scale[:, None], sums * scale)
    return float(found[1]), float(found[2])


def _scaled(values: Floats, variance: Floats) -> Floats:
    """Return the columns with these mean squares."""
    return np.asarray(values * np.sqrt(variance / np.maximum((values**2).mean(axis=0), 1e-300)))


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
    "labels permuted": permuted,
    "real labels": shuffled,
    "sparse groups": lambda _, rng: sparse(rng),
}


def reports(
    prompts: pd.DataFrame,
    null: str,
    draws: int,
    permutations: int,
    seed: int,
    planted: Sequence[tuple[str, str, str]] = (),
) -> Iterator[tuple[pd.DataFrame, Floats]]:
    """Yield the contrasts of tables from a null on both scales, and the p of t after permutations.

    Args:
        prompts: Scored rows of `prompt_effects` about holders.
        null: A name of `NULLS`.
        draws, permutations, seed: How many tables, how many permutations of each, and of which generator; draw k is the
            same whatever the number of draws.
        planted: Axis, group and relation ("all") that `EFFECTS` are added to, taken by turns.
    """
    template = sparse(np.random.default_rng(0)) if null == "sparse groups" else prompts
    table = audit(template, AuditSettings(permutations=0, noise_floor=0.0, noise_floor_log_odds=0.0))
    table = table[["editor", "relation", "holds", "axis", "group", "reference", "mirror"]].assign(p=0.0)
    table = pd.concat([table.assign(scale=scale) for scale in EFFECTS], ignore_index=True)
    if null == "labels permuted" and not planted:  # the same permutations for all, so that one reference serves all
        pool = LabelledContrasts(prompts, table).drawn(draws + permutations, seed)
        yield from ((table.assign(p_t=row), pool[draws:]) for row in pool[:draws])
        return
    for draw in tqdm(range(draws), desc=null, leave=False):
        rng = np.random.default_rng([seed, list(NULLS).index(null), draw])
        made = NULLS[null](prompts, rng)
        if planted:
            axis, group, relation = planted[draw % len(planted)]
            hit = np.array([group in own for own in made[axis]])
            hit &= (made["edit_relation"] == relation).to_numpy() | (relation == ALL)
            made = made.assign(**{column: made[column] + effect * hit for column, effect in EFFECTS.values()})
        contrasts = LabelledContrasts(made, table)
        people = np.arange(contrasts.strata.size)[None]
        yield table.assign(p_t=contrasts.p(people)[0]), contrasts.drawn(permutations, draw)


def level(prompts: pd.DataFrame, null: str, draws: int, permutations: int, seed: int = 0) -> dict[str, Any]:
    """Return how many tables without an effect hold a significant contrast, with Wilson's interval, on each scale.

    Args:
        prompts, null, draws, permutations, seed: See `reports`.
    """
    claims: dict[str, list[tuple[bool, bool, bool]]] = {scale: [] for scale in EFFECTS}
    single: dict[str, list[Floats]] = {scale: [] for scale in EFFECTS}
    for table, drawn in reports(prompts, null, draws, permutations, seed):
        p, first = table["p_t"].to_numpy(), (table["editor"] == table["editor"].iloc[0]).to_numpy()
        for scale in EFFECTS:
            every = (table["scale"] == scale).to_numpy()
            own = np.flatnonzero(every & first)
            found = [np.nanmin(step_down(p[rows], drawn[:, rows])) <= LEVEL for rows in (own, np.flatnonzero(every))]
            claims[scale].append((bool(found[0]), bool(found[1]), bool(np.nanmin(adjust(p[own])) <= LEVEL)))
            single[scale].append(permutation_p(p[own], drawn[:, own]))
    return {scale: _false(claims[scale], np.concatenate(single[scale])) for scale in EFFECTS}


def _false(claims: list[tuple[bool, bool, bool]], single: Floats) -> dict[str, Any]:
    names = ("one_editor", "all_editors_one_family", "holm")
    tested = single[~np.isnan(single)]
    return {name: share_of(column) for name, column in zip(names, zip(*claims))} | {
        "tests_per_report": tested.size / len(claims),
        "single_tests": {str(at): float((tested <= at + 1e-9).mean()) for at in (0.05, 0.01)} | {"n": tested.size},
    }


def power(
    prompts: pd.DataFrame, null: str, relation: str, draws: int, permutations: int, seed: int = 0
) -> dict[str, Any]:
    """Return how often `EFFECTS` on a group are found where they are, mean over `GROUPS`, on each scale.

    Beside it: Holm over the same family, and how often the contrast had a p at all.

    Args:
        prompts, null, draws, permutations, seed: See `reports`.
        relation: Where it is planted; "all": everywhere, and found is the pooled contrast.
    """
    hits: dict[str, list[tuple[bool, bool, bool]]] = {scale: [] for scale in EFFECTS}
    planted = [(axis, group, relation) for axis, group in GROUPS]
    for where, (table, drawn) in zip(cycle(planted), reports(prompts, null, draws, permutations, seed, planted)):
        own = (table[["axis", "group", "relation", "holds"]] == [*where, "target_new"]).all(axis=1).to_numpy()
        p = table["p_t"].mask(table["mirror"]).to_numpy()
        for scale in EFFECTS:
            rows = np.flatnonzero(table["scale"] == scale)
            place = int(np.flatnonzero(own[rows])[0])
            place -= int(table["mirror"].to_numpy()[rows[place]])  # the row before it is the same test
            found = [values[place] <= LEVEL for values in (step_down(p[rows], drawn[:, rows]), adjust(p[rows]))]
            hits[scale].append((*found, not np.isnan(p[rows[place]])))
    names = ("found", "holm", "testable")
    return {scale: {name: share_of(column) for name, column in zip(names, zip(*own))} for scale, own in hits.items()}


def enlarged(prompts: pd.DataFrame, edits: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return as many edits as wanted: those of the prompts again, each about other people."""
    people = prompts.drop_duplicates("person").set_index("person")[list(AXES)]
    own = list(prompts.groupby(["edit_relation", "case_id"]).indices.values())
    rows = [own[number % len(own)] for number in range(edits)]
    moved = [
        rng.permutation(len(people))[people.index.get_indexer(pd.Index(prompts["person"].iloc[at]))] for at in rows
    ]
    frame = prompts.iloc[np.concatenate(rows)].assign(
        case_id=np.repeat(np.arange(edits), [len(at) for at in rows]), person=people.index[np.concatenate(moved)]
    )
    return frame.assign(**{axis: people[axis].reindex(frame["person"]).to_numpy() for axis in AXES})


def speed(prompts: pd.DataFrame, permutations: int) -> dict[str, Any]:
    """Return CPU seconds of one core that the permutations of a report take, and of as many as a report makes."""
    table = audit(prompts, AuditSettings(permutations=0, noise_floor=0.0, noise_floor_log_odds=0.0))
    start = process_time()
    contrasts = LabelledContrasts(prompts, table)
    prepared = process_time()
    contrasts.drawn(permutations, 0)
    each = (process_time() - prepared) / permutations
    whole = prepared - start + each * LEAST
    return {"prompts": len(prompts), "contrasts": len(table), "milliseconds": 1000 * each, "seconds_of_1999": whole}


def share_of(found: Sequence[bool]) -> dict[str, float]:
    """Return a share with its interval and n."""
    share = proportion(int(np.sum(found)), len(found))
    return {"value": share.value, "low": share.low, "high": share.high, "n": len(found)}


def main() -> None:
    """Measure every part and write what was made."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--editor", default="memit")
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--permutations", type=int, default=199)
    parser.add_argument("--part", choices=[*NULLS, "power", "speed"], action="append")
    given = parser.parse_args()
    prompts = prompt_effects(read_table(given.run / "scores.parquet", SCORES))
    prompts = prompts[(prompts["status"] == "ok") & (prompts["holds"] != "")].reset_index(drop=True)
    own = prompts[prompts["editor"] == given.editor].reset_index(drop=True)
    manifest = json.loads((given.run / "manifest.json").read_text(encoding="utf-8"))
    file = RESULTS / "report_level.json"
    whole: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    made = whole.setdefault(manifest["job"]["prompts"], {})
    made |= {"model": manifest["model"]["id"], "editor": given.editor, "edits": int(own["case_id"].nunique())}
    made |= {"people": int(own["person"].nunique()), "prompts": len(own)}
    for part in given.part or [*NULLS, "power", "speed"]:
        if part == "power":
            made[part] = {
                null: {where: power(own, null, where, given.draws, given.permutations) for where in WHERE}
                for null in ("labels permuted", "real labels")
            }
        elif part == "speed":
            larger = enlarged(own, _LARGE, np.random.default_rng(0))
            made[part] = {
                name: speed(rows, given.permutations) for name, rows in (("run", own), ("1,500 edits", larger))
            }
        else:
            made[part] = level(prompts if part == "labels permuted" else own, part, given.draws, given.permutations)
        made[part]["permutations"] = given.permutations
        write_text(file, json.dumps(whole, indent=1) + "\n")


if __name__ == "__main__":
    main()
