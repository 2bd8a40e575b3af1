"""Means of edit means, of everybody and of every group of people: the numbers behind levels, effects and contrasts.

Editors that were asked the same questions share weights and clusters, so that each of them costs one column.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.groups import ALL, AXES, CLUSTERS, by_tag, held, mask, tag_sets
from seesaw_cf.stats import case_weights, clustered_means
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import half_clusters
from seesaw_cf.stats.crossing import Codes

CHANGES: Mapping[str, str] = {"probability": "D", "log-odds": "log_odds", "share": "share"}
"""Scale -> column of `seesaw_cf.effects.prompt_effects` that holds the change on it."""
STATES: Mapping[str, str] = {"before": "D_pre", "after": "D_post", "likelier_before": "likelier_pre"}
"""What is averaged without an error -> its column."""
_MOST_ROWS = 1 << 20  # of all editors whose means are made together: more take too much memory
_ORDER = ("case_id", "person", "prompt_id")


@dataclass(frozen=True, slots=True)
class GroupMean:
    """One effect on one group of people.

    Attributes:
        editor, relation, axis, group: Whose edits, of which relation (`ALL`: pooled), on whom (`ALL`: everybody).
        changes: Scale of `CHANGES` -> its estimate.
        half: Scale -> the fewest edits that carry half of it.
        states: Name in `STATES` -> mean.
        n_edits: Cases, also where several are one cluster.
    """

    editor: str
    relation: str
    axis: str
    group: str
    changes: Mapping[str, Estimate]
    half: Mapping[str, int]
    states: Mapping[str, float]
    n_edits: int


@dataclass(frozen=True, slots=True)
class Asked:
    """Questions that some editors were all asked, sorted, and what was measured of each editor.

    Attributes:
        editors: Their names.
        case: (n,) codes of the edits, which weigh equally.
        relation: (n,) names.
        clusters: Dimension -> (n,) codes.
        tags: Axis -> (n,) codes and the tags that each code stands for.
        changes, states: (n, editors, columns).
    """

    editors: Sequence[str]
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
            yield (
                name,
                replace(
                    self,
                    case=self.case[at],
                    relation=self.relation[at],
                    clusters={dimension: code[at] for dimension, code in self.clusters.items()},
                    tags={axis: (codes[at], sets) for axis, (codes, sets) in self.tags.items()},
                    changes=self.changes[at],
                    states=self.states[at],
                ),
            )

    def groups(self, axis: str) -> dict[str, NDArray[np.bool_]]:
        """Return group -> (n,) questions about its people."""
        return {group: mask(len(self.case), rows) for group, rows in by_tag(*self.tags[axis]).items()}


def group_means(
    prompts: pd.DataFrame,
    *,
    axes: Sequence[str] = AXES,
    holds: str = "target_new",
    clusters: Mapping[str, str] = CLUSTERS,
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
    for asked in questions(prompts[(held(prompts) == holds) & (prompts["status"] == "ok")], axes, clusters):
        for relation, block in asked.blocks():
            yield from _means(block, relation)


def _means(asked: Asked, relation: str) -> Iterator[GroupMean]:
    """Yield the means of every editor, of everybody and each group."""
    sides = [(ALL, ALL, np.ones(len(asked.case), bool))]
    sides += [(axis, group, member) for axis in asked.tags for group, member in asked.groups(axis).items()]
    flat = asked.changes.reshape(len(asked.case), -1)
    for axis, group, member in sides:
        weights = case_weights(asked.case, member)
        found = clustered_means(flat, [weights], asked.clusters)
        half = half_clusters(flat[member] * weights[member, None], asked.case[member])
        levels = np.tensordot(weights, asked.states, 1)
        n_edits = int(np.count_nonzero(np.bincount(asked.case[member])))
        for number, editor in enumerate(asked.editors):
            own = slice(number * len(CHANGES), (number + 1) * len(CHANGES))
            yield GroupMean(
                editor,
                relation,
                axis,
                group,
                dict(zip(CHANGES, found[own], strict=True)),
                dict(zip(CHANGES, half[own].tolist(), strict=True)),
                dict(zip(STATES, levels[number].tolist(), strict=True)),
                n_edits,
            )


# Who was asked what: sorted rows, and editors that were asked the same together.


def sort_prompts(prompts: pd.DataFrame) -> pd.DataFrame:
    """Return rows by case, person and prompt, in which sums have the same last digits however rows came.

    Rows that are sorted are not copied.
    """
    return prompts if _in_order(prompts) else prompts.sort_values(list(_ORDER), kind="stable")


def _in_order(prompts: pd.DataFrame) -> bool:
    same, later = np.ones(max(len(prompts) - 1, 0), bool), np.zeros(max(len(prompts) - 1, 0), bool)
    for name in _ORDER:
        column = prompts[name]
        values = (column.cat.codes if isinstance(column.dtype, pd.CategoricalDtype) else column).to_numpy()
        if column.isna().any():  # missing keys have no order
            return False
        later |= same & (values[:-1] > values[1:])
        same &= values[:-1] == values[1:]
    return not later.any()


def asked_alike(rows: pd.DataFrame, tags: Sequence[Codes] = ()) -> Iterator[list[tuple[str, NDArray[np.intp]]]]:
    """Yield editors that were asked the same, each with the places of its rows, which are sorted."""
    codes = np.column_stack([*(pd.factorize(rows[name])[0] for name in _ORDER), *tags])
    alike: dict[bytes, list[tuple[str, NDArray[np.intp]]]] = {}
    for editor, at in rows.groupby("editor", sort=True, observed=True).indices.items():
        alike.setdefault(hashlib.sha256(codes[at].tobytes()).digest(), []).append((str(editor), np.asarray(at)))
    yield from alike.values()


def questions(
    prompts: pd.DataFrame,
    axes: Sequence[str],
    clusters: Mapping[str, str],
    states: Sequence[str] = tuple(STATES.values()),
) -> Iterator[Asked]:
    """Yield the questions of scored prompts, with the editors that were asked them."""
    usable = sort_prompts(prompts)
    tags = {axis: tag_sets(usable[axis]) for axis in axes}
    for alike in asked_alike(usable, [codes for codes, _ in tags.values()]):
        rows = usable.iloc[alike[0][1]]
        shared = (
            pd.factorize(rows["case_id"], sort=True)[0],
            rows["edit_relation"].to_numpy(object),
            {name: pd.factorize(rows[column], sort=True)[0] for name, column in clusters.items()},
            {axis: (codes[alike[0][1]], sets) for axis, (codes, sets) in tags.items()},
        )
        step = max(1, _MOST_ROWS // len(rows))
        for start in range(0, len(alike), step):
            some = alike[start : start + step]
            measured = [
                np.stack([usable[list(columns)].to_numpy(np.float64)[at] for _, at in some], axis=1)
                for columns in (CHANGES.values(), states)
            ]
            yield Asked([editor for editor, _ in some], *shared, *measured)
