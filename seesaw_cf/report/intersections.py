"""Effects on people of a gender and a race at once."""

from __future__ import annotations

import numpy as np
import pandas as pd

from seesaw_cf.effects.groups import ALL, UNKNOWN, group_effects, held, tag_sets
from seesaw_cf.effects.scores import categorical
from seesaw_cf.report.results import HOLDER, Results
from seesaw_cf.report.rows import of_controls

CROSSED = "gender · race"
"""The name of the axis."""

_FEWEST = 5  # people below which an intersection is left out: nothing could be said of it, and it might name somebody


def intersections(results: Results) -> pd.DataFrame:
    """Return `seesaw_cf.effects.group_effects` by groups such as "women · Black", of people who hold the new target.

    Args:
        results: What the run found.

    Returns:
        One row per editor, relation and intersection of at least five people; empty where a run has no groups, or
        edited in batches. Controls are left out.
    """
    prompts = results.prompts
    if prompts is None or results.manifest.get("protocol") == "batch":
        return pd.DataFrame()
    chosen = prompts[~of_controls(prompts) & (held(prompts) == HOLDER)]
    people = crossings(chosen)
    if not any(people.cat.categories):
        return pd.DataFrame()
    effects = group_effects(chosen.assign(race=people), axes=("race",))
    return effects[~effects["group"].isin((ALL, UNKNOWN)) & (effects["n_subjects"] >= _FEWEST)].reset_index(drop=True)


def crossings(people: pd.DataFrame) -> pd.Series:
    """Return the groups of each person's gender and race at once, such as ("women · Black",)."""
    (gender, genders), (race, races) = (tag_sets(people[axis]) for axis in ("gender", "race"))
    pairs, code = np.unique(gender % len(genders) * len(races) + race % len(races), return_inverse=True)
    names = [
        tuple(
            f"{one} · {other}"
            for one in sorted(genders[pair // len(races)])
            for other in sorted(races[pair % len(races)])
        )
        for pair in pairs
    ]
    return pd.Series(categorical(names, code), people.index)
