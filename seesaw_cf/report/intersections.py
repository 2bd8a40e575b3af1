"""Effects on people of a gender and a race at once."""

from __future__ import annotations

import pandas as pd

from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.groups import ALL, CLUSTERS, UNKNOWN, group_effects, tags_of
from seesaw_cf.report.results import HOLDER, Results

CROSSED = "gender · race"
"""The name of the axis."""

_FEWEST = 5  # people below which an intersection is left out: nothing could be said of it, and it might name somebody


def intersections(results: Results) -> pd.DataFrame:
    """Rows of `seesaw_cf.effects.group_effects` with groups such as "women · Black", of people who hold the new target.

    Args:
        results: What the run found.

    Returns:
        One row per editor, relation and intersection of at least five people; empty where a run has no groups, or
        edited in batches. Controls are left out.
    """
    prompts = results.prompts
    if prompts is None or results.manifest.get("protocol") == "batch":
        return pd.DataFrame()
    chosen = prompts[~prompts["editor"].map(is_control) & (prompts["holds"].fillna("") == HOLDER)]
    pairs = [crossed(*tags) for tags in zip(chosen["gender"], chosen["race"], strict=True)]
    if not any(pairs):
        return pd.DataFrame()
    effects = group_effects(
        chosen.assign(race=pd.Series(pairs, chosen.index, dtype=object)), axes=("race",), clusters=CLUSTERS
    )
    return effects[~effects["group"].isin((ALL, UNKNOWN)) & (effects["n_subjects"] >= _FEWEST)].reset_index(drop=True)


def crossed(genders: object, races: object) -> list[str]:
    """The groups of a person with these tags: "women · Black"."""
    return [f"{gender} · {race}" for gender in tags_of(genders) for race in tags_of(races)]
