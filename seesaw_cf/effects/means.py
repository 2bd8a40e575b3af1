"""Means of edit means, of everybody and of every group of people: the numbers behind levels, effects and contrasts.

Editors that were asked the same questions share weights and clusters, so that each of them costs one column.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.estimands import sort_prompts
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
class _Asked:
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
    usable = sort_prompts(prompts[(held(prompts) == holds) & (prompts["status"] == "ok")])
    for asked in _asked_alike(usable, axes, clusters):
        yield from _means(asked, ALL, slice(None))
        names = sorted(set(asked.relation))
        for name in names:
            yield from _means(asked, name, np.flatnonzero(asked.relation == name))


def _asked_alike(usable: pd.DataFrame, axes: Sequence[str], clusters: Mapping[str, str]) -> Iterator[_Asked]:
    codes = np.column_stack([pd.factorize(usable[name])[0] for name in ("case_id", "person", "prompt_id")])
    alike: dict[bytes, list[tuple[str, NDArray[np.intp]]]] = {}
    for editor, at in usable.groupby("editor", sort=True, observed=True).indices.items():
        alike.setdefault(hashlib.sha256(codes[at].tobytes()).digest(), []).append((str(editor), np.asarray(at)))
    for members in alike.values():
        rows = usable.iloc[members[0][1]]
        shared = (
            pd.factorize(rows["case_id"], sort=True)[0],
            rows["edit_relation"].to_numpy(object),
            {name: pd.factorize(rows[column], sort=True)[0] for name, column in clusters.items()},
            {axis: tag_sets(rows[axis]) for axis in axes},
        )
        step = max(1, _MOST_ROWS // len(rows))
        for start in range(0, len(members), step):
            some = members[start : start + step]
            measured = [
                np.stack([usable[list(columns.values())].to_numpy(np.float64)[at] for _, at in some], axis=1)
                for columns in (CHANGES, STATES)
            ]
            yield _Asked([editor for editor, _ in some], *shared, *measured)


def _means(asked: _Asked, relation: str, at: slice | NDArray[np.intp]) -> Iterator[GroupMean]:
    """Yield the means of every editor, of everybody and each group, over some of the rows."""
    case = asked.case[at]
    clusters = {name: code[at] for name, code in asked.clusters.items()}
    changes, states = asked.changes[at], asked.states[at]
    n = len(case)
    sides: list[tuple[str, str, NDArray[np.bool_]]] = [(ALL, ALL, np.ones(n, bool))]
    for axis, (codes, sets) in asked.tags.items():
        sides += [(axis, group, mask(n, rows)) for group, rows in by_tag(codes[at], sets).items()]
    for axis, group, member in sides:
        weights = case_weights(case, member)
        flat = changes.reshape(n, -1)
        found = clustered_means(flat, [weights], clusters)
        half = half_clusters(flat[member] * weights[member, None], case[member])
        levels = np.tensordot(weights, states, 1)
        n_edits = int(np.count_nonzero(np.bincount(case[member])))
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
