"""Means of edit means, of everybody and of every group of people: the numbers behind levels, effects and contrasts."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import case_weights, clustered_mean, clustered_means, half_clusters
from seesaw_cf.stats.crossing import Codes

AXES = ("gender", "race", "region")
"""What groups are of."""
ALL = "all"
"""The group of everybody."""
UNKNOWN = "unknown"
"""The group of people without a tag on an axis."""
Names = Mapping[str, str]
"""Name -> name, such as dimension -> column, or axis -> group."""
# What a prompt belongs to: dimension -> column.
CLUSTERS: Names = {"edit": "case_id", "person": "person"}
SCALES = ("log_odds", "share")
"""Scales on which an effect is given beside D; columns of `seesaw_cf.effects.prompt_effects`."""
CHANGES: Names = {"probability": "D", "log-odds": "log_odds", "share": "share"}
"""Scale -> column of `seesaw_cf.effects.prompt_effects` that holds the change on it."""
STATES: Names = {"before": "D_pre", "after": "D_post", "likelier_before": "likelier_pre"}
"""What is averaged without an error -> its column."""
_ORDER = ["case_id", "person", "prompt_id"]


GroupMean = tuple[dict[str, str], dict[str, Estimate], dict[str, int], dict[str, float], int]
"""One effect on one group of people: its editor, relation (`ALL`: pooled), axis and group (`ALL`: everybody); of each
scale of `CHANGES` its estimate and the fewest edits that carry half of it; the means of `STATES`; and the edits: cases,
also where several are one cluster."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions that an editor was asked, sorted, and what was measured.

    Attributes:
        editor: Its name.
        case: (n,) codes of the edits, which weigh equally.
        relation: (n,) names.
        clusters: Dimension -> (n,) codes.
        tags: Axis -> (n,) codes and the tags that each code stands for.
        changes, states: (n, columns).
    """

    editor: str
    case: Codes
    relation: NDArray[np.object_]
    clusters: Mapping[str, Codes]
    tags: Mapping[str, tuple[Codes, list[set[str]]]]
    changes: Floats
    states: Floats

    def blocks(self) -> Iterator[tuple[str, Asked]]:
        """Yield all questions, then those of each relation."""
        yield ALL, self
        for name in sorted(set(self.relation)):
            at = np.flatnonzero(self.relation == name)
            own: dict[str, Any] = {key: getattr(self, key)[at] for key in ("case", "relation", "changes", "states")}
            own["clusters"] = {dimension: code[at] for dimension, code in self.clusters.items()}
            yield name, replace(self, **own, tags={axis: (code[at], sets) for axis, (code, sets) in self.tags.items()})

    def groups(self, axis: str) -> dict[str, NDArray[np.bool_]]:
        """Return group -> (n,) questions about its people."""
        return by_tag(*self.tags[axis])


def group_means(
    prompts: pd.DataFrame, *, axes: Sequence[str] = AXES, holds: str = "target_new", clusters: Names = CLUSTERS
) -> Iterator[GroupMean]:
    """Estimate what edits did to everybody and to each group, over all relations and within each.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`, or of `excess_over_control`.
        axes: Which axes.
        holds: Which answer the people hold; "" where it is not recorded.
        clusters: Dimension -> column that errors are clustered by.

    Yields:
        Everybody first, then the groups of each axis, over all relations and then within each relation; none without
        a scored prompt.

    Source: estimand: SEESAW-CF section 4.1, D_{d,g}, a mean of case means. Inference: `seesaw_cf.stats.clustered_mean`.
    """
    states = list(STATES.values())
    for asked in questions(scored(prompts, holds, axes, clusters, states), axes, clusters, states):
        for relation, block in asked.blocks():
            yield from _means(block, relation)


def _means(asked: Asked, relation: str) -> Iterator[GroupMean]:
    """Yield the means of everybody and each group."""
    sides = [(ALL, ALL, np.ones(len(asked.case), bool))]
    sides += [(axis, group, member) for axis in asked.tags for group, member in asked.groups(axis).items()]
    for axis, group, member in sides:
        weights = case_weights(asked.case, member)
        found = clustered_means(asked.changes, [weights], asked.clusters)
        half = half_clusters(asked.changes[member] * weights[member, None], asked.case[member]).tolist()
        names = {"editor": asked.editor, "relation": relation, "axis": axis, "group": group}
        n_edits = int(np.count_nonzero(np.bincount(asked.case[member])))
        states = dict(zip(STATES, (weights @ asked.states).tolist()))
        yield names, dict(zip(CHANGES, found)), dict(zip(CHANGES, half)), states, n_edits


def plain_mean(values: Floats, clusters: Mapping[str, Codes], member: NDArray[np.bool_] | None = None) -> Estimate:
    """Return the mean of rows that weigh alike, or what that of the member rows is more than that of the others.

    Args:
        values, clusters: See `seesaw_cf.stats.clustered_mean`.
        member: (n,) with rows on both sides.
    """
    sides = [np.ones(len(values), bool)] if member is None else [member, ~member]
    return clustered_mean(values, [side / side.sum() for side in sides], clusters)


# Who is in a group.


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


def clusters_of(*protocols: str | None) -> Names:
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
    return {group: np.flatnonzero(own) for group, own in by_tag(*tag_sets(tags)).items()}


def by_tag(codes: NDArray[np.intp], sets: Sequence[set[str]]) -> dict[str, NDArray[np.bool_]]:
    """Return which rows with such codes are of each group: few people have tags that nobody else has."""
    kinds: dict[str, list[bool]] = {tag: [tag in own for own in sets] for tag in sorted(set[str]().union(*sets))}
    kinds[UNKNOWN] = [not own for own in sets]
    rows = {group: np.array(among)[codes] for group, among in kinds.items()}
    return {group: own for group, own in rows.items() if own.any()}


def tag_sets(tags: pd.Series | Sequence[Sequence[str] | None]) -> tuple[NDArray[np.intp], list[set[str]]]:
    """Return a code for each row, and the tags that each code stands for; none behind the last, the code -1."""
    if isinstance(tags, pd.Series) and isinstance(tags.dtype, pd.CategoricalDtype):
        return np.asarray(tags.cat.codes, np.intp), [*(set(tags_of(own)) for own in tags.cat.categories), set()]
    places: dict[tuple[object, ...], int] = {}
    keys = (tuple(own) if isinstance(own, Sequence | np.ndarray) else () for own in tags)
    codes = np.array([places.setdefault(key, len(places)) for key in keys], np.intp)
    return codes, [*(set(tags_of(own)) for own in places), set()]


# Who was asked what: sorted rows, and editors that were asked the same together.


def sort_prompts(prompts: pd.DataFrame) -> pd.DataFrame:
    """Return rows by case, person and prompt, in which sums have the same last digits however rows came.

    Rows that are sorted are not copied.
    """
    in_order = pd.MultiIndex.from_frame(prompts[_ORDER]).is_monotonic_increasing
    return prompts if in_order else prompts.sort_values(_ORDER, kind="stable")


def asked_alike(rows: pd.DataFrame, tags: Sequence[Codes] = ()) -> Iterator[list[tuple[str, NDArray[np.intp]]]]:
    """Yield editors that were asked the same, each with the places of its rows, which are sorted."""
    codes = np.column_stack([*(pd.factorize(rows[name])[0] for name in _ORDER), *tags])
    alike: dict[bytes, list[tuple[str, NDArray[np.intp]]]] = {}
    for editor, at in rows.groupby("editor", sort=True, observed=True).indices.items():
        alike.setdefault(hashlib.sha256(codes[at].tobytes()).digest(), []).append((str(editor), np.asarray(at)))
    yield from alike.values()


def scored(
    prompts: pd.DataFrame, holds: str, axes: Sequence[str], clusters: Names, states: Sequence[str]
) -> pd.DataFrame:
    """Return the scored prompts about people who hold an answer, without columns that `questions` does not read."""
    read = ["editor", "edit_relation", *_ORDER, *axes, *clusters.values(), *CHANGES.values(), *states]
    return prompts.loc[(held(prompts) == holds) & (prompts["status"] == "ok"), list(dict.fromkeys(read))]


def questions(prompts: pd.DataFrame, axes: Sequence[str], clusters: Names, states: Sequence[str]) -> Iterator[Asked]:
    """Yield the questions of scored prompts, editor by editor."""
    usable = sort_prompts(prompts)
    tags = {axis: tag_sets(usable[axis]) for axis in axes}
    for editor, at in usable.groupby("editor", sort=True, observed=True).indices.items():
        rows = usable.iloc[at]
        case, relation = pd.factorize(rows["case_id"], sort=True)[0], rows["edit_relation"].to_numpy(object)
        codes = {name: pd.factorize(rows[column], sort=True)[0] for name, column in clusters.items()}
        own_tags = {axis: (own[at], sets) for axis, (own, sets) in tags.items()}
        changes, levels = (rows[list(columns)].to_numpy(np.float64) for columns in (CHANGES.values(), states))
        yield Asked(str(editor), case, relation, codes, own_tags, changes, levels)
