"""What would decide the contrasts of a finished run: how many edits and people more, from the run's own spread."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.audit import MARGIN, independent_tests
from seesaw_cf.effects.groups import ALL, AXES, UNKNOWN, check_axes, held, mask, members
from seesaw_cf.effects.prompts import SCALE_COLUMNS, ScoreForm, prompt_effects
from seesaw_cf.effects.scores import ScoreFile
from seesaw_cf.stats import Components, contrast_components, minimum_detectable_effect, variance_components
from seesaw_cf.stats.crossing import Codes
from seesaw_cf.stats.planning import Precision, contrast_precision

_KEYS = ["editor", "holds", "relation"]
_ASKED = ["editor", "holds", "edit_relation", "case_id", "person", *AXES]
_NAMES = (*_KEYS, "axis", "group", "reference", "scale", "mirror", "verdict", "note")
_NEEDS = ("detectable", "edits_needed", "people_needed", "cheapest_edits", "cheapest_people", "times")
_RANGES = ("edits_least", "edits_most", "people_least", "people_most")
SPREAD = (0.7, 1.75)
"""The standard error of a run, as a part of what half of its edits or people predicted, in 8 of 10 contrasts."""
Row = Mapping[Hashable, Any]


@dataclass(frozen=True, slots=True)
class Aim:
    """What is to be found.

    Attributes:
        effect: In probability. A contrast in log-odds is planned for the same number of its margins.
        alpha: Level of a family, of which each test has its part, as in the first step of Holm's correction.
        power: Chance to find the effect.
    """

    effect: float = MARGIN
    alpha: float = 0.05
    power: float = 0.8


def needs(
    prompts: pd.DataFrame,
    contrasts: pd.DataFrame,
    aim: Aim = Aim(),
    margin: float = MARGIN,
    family: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Return how many edits and people each contrast of a run takes.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`.
        contrasts: Rows of `seesaw_cf.effects.audit`.
        aim: What is to be found.
        margin: The declared one, in probability.
        family: All contrasts of the families; None: `contrasts` are all.

    Returns:
        One row per contrast: what names it, `scale`, `verdict`, `note` (why there is no test); `effect`; `edits` and
        `people` there are, `stderr`, `detectable`; `edits_needed` with these people and `people_needed` with these
        edits (NaN when no number is enough), with the ends that `SPREAD` gives them (`edits_least`, `edits_most`,
        `people_least`, `people_most`); `cheapest_edits` and `cheapest_people`, the fewest prompts, and `times` as
        many prompts as now.
    """
    if "holds" not in contrasts:
        contrasts = contrasts.assign(holds="target_new")
    usable = prompts.loc[prompts["status"] == "ok", [*_ASKED, *SCALE_COLUMNS.values()]]
    tests = {
        name: independent_tests(rows) for name, rows in (contrasts if family is None else family).groupby("family")
    }
    rows = [
        {name: row[name] for name in _NAMES} | _need(row, precision, tests[row["family"]], aim, margin)
        for _, own in contrasts.groupby(_KEYS, sort=False)
        for row, precision in _precisions(usable, own)
    ]
    return pd.DataFrame(rows)


def _precisions(prompts: pd.DataFrame, contrasts: pd.DataFrame) -> Iterator[tuple[Row, Precision | None]]:
    """Yield each contrast of one editor and relation with its precision, its variance divided as in all tests."""
    rows = contrasts.to_dict("records")
    first = rows[0]
    own = (prompts["editor"] == first["editor"]) & (held(prompts) == first["holds"])
    asked = prompts[own if first["relation"] == ALL else own & (prompts["edit_relation"] == first["relation"])]
    edit, person = (pd.factorize(asked[name])[0] for name in ("case_id", "person"))
    masks = {
        axis: {group: mask(len(asked), at) for group, at in members(asked[axis]).items()}
        for axis in {str(row["axis"]) for row in rows}
    }
    found = [
        _precision(asked, edit, person, masks[str(row["axis"])], row) if row["stderr"] > 0 else None for row in rows
    ]
    tests = [p for row, p in zip(rows, found, strict=True) if p is not None and not row["mirror"]]
    parts = np.array([(p.edits, p.people, p.both) for p in tests])
    shares = parts.sum(axis=0) / parts.sum() if parts.size else parts
    for row, precision in zip(rows, found, strict=True):
        pooled = dict(zip(("edits", "people", "both"), shares * precision.variance)) if precision else {}
        yield row, precision and replace(precision, **pooled)


def _precision(
    asked: pd.DataFrame, edit: Codes, person: Codes, masks: Mapping[str, NDArray[np.bool_]], row: Row
) -> Precision:
    own, nobody = masks[row["group"]], np.zeros(len(asked), bool)
    other = masks.get(row["reference"], ~own & ~masks.get(UNKNOWN, nobody))
    first, second = own & ~other, other & ~own
    both = [np.bincount(edit[side], minlength=edit.max() + 1) > 0 for side in (first, second)]
    used = (first | second) & (both[0] & both[1])[edit]
    values = asked[SCALE_COLUMNS[row["scale"]]].to_numpy(np.float64)[used]
    sizes = (row["effective"].get("edit", 1.0), row["effective"].get("person", 1.0))
    return contrast_precision(values, edit[used], person[used], first[used], row["stderr"], sizes)


def _need(row: Row, precision: Precision | None, tests: float, aim: Aim, margin: float) -> TableRow:
    effect = float(row["margin"] / margin * aim.effect)
    edits, people = (int(row["clusters"].get(name, 0)) for name in ("edit", "person"))
    out = {"effect": effect, "edits": edits, "people": people, "stderr": row["stderr"]}
    if precision is None:
        return out | dict.fromkeys(_NEEDS + _RANGES, float("nan"))
    level = aim.alpha / max(1.0, tests)
    more_edits, more_people, (few_edits, few_people) = precision.factors(effect, level, aim.power)
    # an error k times as large is that of an effect k times as small
    least, most = (precision.factors(effect / spread, level, aim.power)[:2] for spread in SPREAD)
    ranges = [_times(factor, there) for pair, there in zip(zip(least, most), (edits, people)) for factor in pair]
    return (
        out
        | dict(zip(_RANGES, ranges))
        | {
            "detectable": minimum_detectable_effect(row["stderr"], row["df"], alpha=level, power=aim.power),
            "edits_needed": _times(more_edits, edits),
            "people_needed": _times(more_people, people),
            "cheapest_edits": _times(few_edits, edits),
            "cheapest_people": _times(few_people, people),
            "times": few_edits * few_people if np.isfinite(few_edits * few_people) else float("nan"),
        }
    )


def _times(factor: float, there: int) -> float:
    """Return `factor` times the number there is, rounded up; NaN where no factor is enough."""
    return float(np.ceil(factor * there - 1e-9)) if np.isfinite(factor) else float("nan")


def components(prompts: pd.DataFrame) -> pd.DataFrame:
    """Return what D is made of in a run: standard deviations for each editor and relation.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`; those about people who hold the new target count.

    Returns:
        `editor`, `relation`, the fields of `Components`, numbers of `edits`, `people`, `prompts`; a relation with one
        edit or one person has no row.
    """
    chosen = (prompts["status"] == "ok") & (held(prompts) == "target_new")
    usable = prompts.loc[chosen, [*_ASKED, "template_id", "D"]]
    rows = []
    for (editor, relation), own in usable.groupby(["editor", "edit_relation"], sort=True):
        edit, person, template = (pd.factorize(own[name])[0] for name in ("case_id", "person", "template_id"))
        counts = {"edits": edit.max() + 1, "people": person.max() + 1, "prompts": len(own)}
        if min(counts.values()) > 1:
            spread = variance_components(own["D"].to_numpy(np.float64), edit, person, template)
            rows.append({"editor": editor, "relation": relation} | asdict(spread) | counts)
    return pd.DataFrame(rows)


def run_components(
    folder: str | os.PathLike[str],
    *,
    axis: str | None = None,
    group: str | None = None,
    holds: str = "target_new",
    score: ScoreForm = "summed",
) -> tuple[Components, float, int]:
    """Return the variance components of D in a finished run, over all its relations.

    Args:
        folder: A run folder.
        axis, group: Plan the contrast of this group with the rest; None: the mean over all people.
        holds: Which answer the people hold.
        score: The form of confidence.

    Returns:
        Components; the share of prompts about the group (NaN without one); the number of prompts. With several editors
        the components are those of the one that varies most.

    Raises:
        RecordError: The run has too few edits or people, or no prompts of this kind.
        UnknownNameError: Unknown axis or group.
    """
    check_axes([axis] if axis is not None else [])
    prompts = prompt_effects(ScoreFile(Path(folder) / "scores.parquet"), score=score)
    usable = prompts[(held(prompts) == holds) & (prompts["status"] == "ok")]
    if usable.empty:
        raise RecordError(f"{folder}: no scored prompts about people with holds={holds!r}; nothing to estimate.")
    candidates: list[tuple[Components, float, int]] = []
    for _, rows in usable.groupby("editor", sort=True):
        values = rows["D"].to_numpy()
        edit, person, template = (pd.factorize(rows[name])[0] for name in ("case_id", "person", "template_id"))
        if axis is None:
            candidates.append((variance_components(values, edit, person, template), float("nan"), values.size))
            continue
        groups = members(rows[axis])
        member = mask(values.size, groups[one_of(f"{axis} group", str(group), groups)])
        found = contrast_components(values, edit, person, member, template)
        candidates.append((found, float(member.mean()), values.size))
    return max(candidates, key=lambda candidate: sum(value**2 for value in asdict(candidate[0]).values()))
