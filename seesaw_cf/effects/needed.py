"""What would decide the contrasts of a finished run: how many edits and people more, from the run's own spread."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from seesaw_cf.effects.audit import MARGIN, hypotheses
from seesaw_cf.effects.groups import ALL, UNKNOWN, mask, members
from seesaw_cf.stats import minimum_detectable_effect
from seesaw_cf.stats.planning import Precision, contrast_precision

_VALUES = {"probability": "D", "log-odds": "log_odds"}
_KEYS = ["editor", "holds", "relation"]
_NAMES = (*_KEYS, "axis", "group", "reference", "scale")
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


def needs(prompts: pd.DataFrame, contrasts: pd.DataFrame, aim: Aim = Aim(), margin: float = MARGIN) -> pd.DataFrame:
    """How many edits and people each contrast of a run takes.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`.
        contrasts: Rows of `seesaw_cf.effects.audit`; a mirror is left out.
        aim: What is to be found.
        margin: The declared one, in probability.

    Returns:
        One row per contrast: what names it, `scale`, `effect`; `edits` and `people` there are, `stderr`, `detectable`;
        `edits_needed` with these people and `people_needed` with these edits (NaN when no number is enough);
        `cheapest_edits` and `cheapest_people`, the fewest prompts, and `times` as many prompts as now; `note`, why
        there is no test.
    """
    contrasts = hypotheses(contrasts)
    if "holds" not in contrasts:
        contrasts = contrasts.assign(holds="target_new")
    usable = prompts[prompts["status"] == "ok"]
    rows = [
        {name: row[name] for name in _NAMES} | _need(row, precision, aim, margin)
        for _, own in contrasts.groupby(_KEYS, sort=False)
        for row, precision in _precisions(usable, own)
    ]
    return pd.DataFrame(rows)


def _precisions(prompts: pd.DataFrame, contrasts: pd.DataFrame) -> Iterator[tuple[Row, Precision | None]]:
    """Each contrast of one editor and relation with its precision; how variance divides is taken from all of them."""
    rows = contrasts.to_dict("records")
    first = rows[0]
    own = (prompts["editor"] == first["editor"]) & (prompts["holds"].fillna("") == first["holds"])
    asked = prompts[own if first["relation"] == ALL else own & (prompts["edit_relation"] == first["relation"])]
    found = [_precision(asked, row) if row["stderr"] > 0 else None for row in rows]
    parts = np.array([(p.edits, p.people, p.both) for p in found if p is not None])
    shares = parts.sum(axis=0) / parts.sum() if parts.size else parts
    for row, precision in zip(rows, found, strict=True):
        pooled = dict(zip(("edits", "people", "both"), shares * precision.variance)) if precision else {}
        yield row, precision and replace(precision, **pooled)


def _precision(asked: pd.DataFrame, row: Row) -> Precision:
    masks = {group: mask(len(asked), at) for group, at in members(asked[str(row["axis"])].tolist()).items()}
    own, nobody = masks[row["group"]], np.zeros(len(asked), bool)
    other = masks.get(row["reference"], ~own & ~masks.get(UNKNOWN, nobody))
    first, second = own & ~other, other & ~own
    edit, person = (pd.factorize(asked[name])[0] for name in ("case_id", "person"))
    both = [np.bincount(edit[side], minlength=edit.max() + 1) > 0 for side in (first, second)]
    used = (first | second) & (both[0] & both[1])[edit]
    values = asked[_VALUES[row["scale"]]].to_numpy(np.float64)[used]
    sizes = (row["effective"].get("edit", 1.0), row["effective"].get("person", 1.0))
    return contrast_precision(values, edit[used], person[used], first[used], row["stderr"], sizes)


def _need(row: Row, precision: Precision | None, aim: Aim, margin: float) -> dict[str, Any]:
    effect = float(row["margin"] / margin * aim.effect)
    edits, people = (int(row["clusters"].get(name, 0)) for name in ("edit", "person"))
    out = {"effect": effect, "edits": edits, "people": people, "stderr": row["stderr"], "note": row["note"]}
    if precision is None:
        return out
    level = aim.alpha / max(1, int(row["family_size"]))
    more_edits, more_people, (few_edits, few_people) = precision.factors(effect, level, aim.power)
    return out | {
        "detectable": minimum_detectable_effect(row["stderr"], row["df"], alpha=level, power=aim.power),
        "edits_needed": _times(more_edits, edits),
        "people_needed": _times(more_people, people),
        "cheapest_edits": _times(few_edits, edits),
        "cheapest_people": _times(few_people, people),
        "times": few_edits * few_people,
    }


def _times(factor: float, there: int) -> float:
    """A number of that many times as many; NaN where none is enough."""
    return float(np.ceil(factor * there - 1e-9)) if np.isfinite(factor) else float("nan")
