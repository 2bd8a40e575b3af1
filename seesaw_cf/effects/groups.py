"""Groups of people by their tags: the axes, who is in a group, and what errors are clustered by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError

AXES = ("gender", "race", "region")
"""What groups are of."""
ALL = "all"
"""The group of everybody."""
UNKNOWN = "unknown"
"""The group of people without a tag on an axis."""
# What a prompt belongs to: dimension -> column.
CLUSTERS: Mapping[str, str] = {"edit": "case_id", "person": "person"}
SCALES = ("log_odds", "share")
"""Scales on which an effect is given beside D; columns of `seesaw_cf.effects.prompt_effects`."""


def need_columns(where: str, frame: pd.DataFrame, names: Iterable[str]) -> None:
    """Refuse a table without columns that are needed.

    Raises:
        RecordError: The missing ones, and those there are.
    """
    if missing := [name for name in names if name not in frame]:
        raise RecordError(f"{where}: columns {missing} are missing; it has {list(frame)}.")


def check_axes(axes: Iterable[str]) -> None:
    """Refuse an axis that the score table does not have.

    Raises:
        UnknownNameError: Not "gender", "race" or "region"; near names are suggested.
    """
    for axis in axes:
        one_of("axis", axis, AXES)


def clusters_of(*protocols: str | None) -> Mapping[str, str]:
    """Return dimension -> column of what errors are clustered by: a batch is one edit."""
    return {"edit": "edit_relation", "person": "person"} if "batch" in protocols else CLUSTERS


def held(prompts: pd.DataFrame) -> pd.Series:
    """Return which answer the person of each prompt holds, "" where that is not recorded."""
    return prompts["holds"].fillna("") if prompts["holds"].hasnans else prompts["holds"]


def tags_of(own: object) -> list[str]:
    """Return a person's tags on an axis; none where nothing is recorded."""
    return [str(tag) for tag in own if tag] if isinstance(own, Sequence | np.ndarray) else []


def members(tags: pd.Series | Sequence[Sequence[str] | None]) -> dict[str, NDArray[np.intp]]:
    """Return the row numbers of each group, in alphabetical order, `UNKNOWN` last.

    A person with several tags counts in each of those groups, once; a person without any counts as unknown.
    """
    return by_tag(*tag_sets(tags))


def by_tag(codes: NDArray[np.intp], sets: Sequence[set[str]]) -> dict[str, NDArray[np.intp]]:
    """Return `members` of rows with such codes: few people have tags that nobody else has."""
    kinds: dict[str, list[bool]] = {tag: [tag in own for own in sets] for tag in sorted(set[str]().union(*sets))}
    kinds[UNKNOWN] = [not own for own in sets]
    rows = {group: np.flatnonzero(np.array(among)[codes]) for group, among in kinds.items()}
    return {group: own for group, own in rows.items() if own.size}


def tag_sets(tags: pd.Series | Sequence[Sequence[str] | None]) -> tuple[NDArray[np.intp], list[set[str]]]:
    """Return a code for each row, and the tags that each code stands for; none behind the last, the code -1."""
    if isinstance(tags, pd.Series) and isinstance(tags.dtype, pd.CategoricalDtype):
        return np.asarray(tags.cat.codes, np.intp), [*(set(tags_of(own)) for own in tags.cat.categories), set()]
    places: dict[tuple[object, ...], int] = {}
    keys = (tuple(own) if isinstance(own, Sequence | np.ndarray) else () for own in tags)
    codes = np.array([places.setdefault(key, len(places)) for key in keys], np.intp)
    return codes, [*(set(tags_of(own)) for own in places), set()]


def mask(n: int, positions: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return a mask, (n,), that is True at `positions`."""
    chosen = np.zeros(n, dtype=bool)
    chosen[positions] = True
    return chosen
