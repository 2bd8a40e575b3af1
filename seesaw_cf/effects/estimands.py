"""Estimands beyond the papers' D: contrasts between groups, excess over a control, effects turned toward the truth.

Each takes rows of `prompt_effects` and gives rows of the same kind or a table of estimates, so that they combine: the
excess over a control of the contrast between two groups is one call inside another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, unknown_name
from seesaw_cf.base.types import Estimate, TableRow
from seesaw_cf.effects.means import (
    ALL,
    CHANGES,
    CLUSTERS,
    SCALES,
    UNKNOWN,
    Asked,
    Names,
    check_axes,
    members,
    need_columns,
    questions,
    scored,
)
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import case_weights, clustered_means

OTHERS = "others"
"""What a group is compared with where no reference is named: everyone else who is tagged."""
_MOVED = ("D", "D_post", *SCALES)
Side = NDArray[np.bool_]


def group_contrasts(
    prompts: pd.DataFrame,
    axes: Sequence[str],
    reference: Names | None = None,
    *,
    holds: str = "target_new",
    clusters: Names = CLUSTERS,
) -> pd.DataFrame:
    """Estimate the difference in differences: D_{d,g} minus that of a reference group, within the same edits.

    Only edits that were scored on people of both groups count, so what an edit does to all people cancels. A person in
    both groups counts in neither.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`.
        axes: The axes of the groups.
        reference: Axis -> the group compared with; without one everyone tagged on the axis and not in the group.
        holds: Which answer the people hold.
        clusters: Dimension -> column.

    Returns:
        One row per editor, relation and group, with `reference`, the fields of `seesaw_cf.types.Estimate`, the same
        contrast in log-odds and share, and `likelier_pre`, the mean probability of the likelier answer before the edit,
        of the side where it is lower. First those over all relations (`ALL`), where there are several. Below 0: the
        group lost more confidence than the reference. `mirror` marks a contrast that compares the same rows as the row
        before it with the sides exchanged: signs are turned, and it is not another test.

    Raises:
        UnknownNameError: Unknown axis, or a reference that no person has.
        RecordError: No scored prompt about people who hold `holds`.
    """
    check_axes(axes)
    need_columns("prompts", prompts, ("editor", "edit_relation", "holds", "status", "D", *SCALES))
    states = ["likelier_pre"]
    usable = scored(prompts, holds, axes, clusters, states)
    if usable.empty:
        raise RecordError(f"no scored prompts about people with holds={holds!r}; nothing to estimate.")
    for axis, group in (reference or {}).items():
        one_of(f"{axis} group", group, sorted(set(members(usable[axis])) - {UNKNOWN}))
    # in a batch a relation is one edit: relations together would be as few edits as relations
    pooled = usable["edit_relation"].nunique() > 1 and clusters.get("edit") != "edit_relation"
    return pd.DataFrame(
        {"editor": asked.editor, "relation": relation} | row
        for asked in questions(usable, axes, clusters, states)
        for relation, block in asked.blocks()
        if pooled or relation != ALL
        for axis in axes
        for row in _contrasts(block, axis, (reference or {}).get(axis))
    )


def _contrasts(asked: Asked, axis: str, reference: str | None) -> Iterator[TableRow]:
    """Yield the contrast of each group; a mirror follows what it repeats."""
    groups, nobody = asked.groups(axis), np.zeros(len(asked.case), bool)
    tagged = ~groups.pop(UNKNOWN, nobody)
    contrasts: list[tuple[int, TableRow]] = []
    alone: dict[tuple[bytes, ...], int] = {}  # sides of a contrast without a mirror -> its place
    for number, (group, own) in enumerate(groups.items()):
        if group == reference:
            continue
        other = tagged & ~own if reference is None else groups.get(reference, nobody)
        rows = [own & ~other, other & ~own]
        compared = _within_edits(asked.case, rows)
        packed = tuple(np.packbits(side).tobytes() for side in (compared if compared[0].any() else rows))
        place = alone.pop(packed[::-1], None)
        mirror = place is not None
        if not mirror:
            alone[packed] = number
        key = {"axis": axis, "group": group, "reference": reference or OTHERS, "mirror": mirror}
        names, order = (group, reference or OTHERS), slice(None, None, -1 if mirror else 1)
        changes = -asked.changes if mirror else asked.changes
        found = _estimates(asked, changes, names[order], rows[order], compared[order])
        contrasts.append((number if place is None else place, key | found))
    yield from (row for _, row in sorted(contrasts, key=lambda contrast: contrast[0]))


def _within_edits(case: NDArray[np.intp], sides: Sequence[Side]) -> list[Side]:
    """Return the rows of both sides under edits that were scored on both."""
    asked = [np.bincount(case[side], minlength=int(case.max()) + 1) > 0 for side in sides]
    both = np.logical_and(*asked)[case]
    return [side & both for side in sides]


def _estimates(
    asked: Asked, changes: Floats, names: Sequence[str], rows: Sequence[Side], compared: Sequence[Side]
) -> TableRow:
    """Return D's inference, that of the other scales under separate names, and `likelier_pre`."""
    parts = [case_weights(asked.case, side) for side in compared if side.any()]
    if parts:
        found = clustered_means(changes, parts, asked.clusters, names)
    else:
        empty = [name for name, side in zip(names, rows) if not side.any()]
        none = Estimate(np.nan, note=f"nobody is among {empty[0]}" if empty else "no edit was scored on both groups")
        found = [none] * len(CHANGES)
    row = asdict(found[0])
    for scale, estimate in zip(SCALES, found[1:], strict=True):
        row |= {scale: estimate.value} | estimate.columns("low", "high", "stderr", "p", "df", prefix=f"{scale}_")
    return row | {"likelier_pre": min((float(part @ asked.states[:, 0]) for part in parts), default=np.nan)}


def excess_over_control(prompts: pd.DataFrame, control: str) -> pd.DataFrame:
    """Return D of every editor minus D of a control editor on the same prompt.

    The control is an edit that should do nothing to these people: the identity, an unrelated edit or a random update of
    the same norm. What it moves is not the fact that was edited.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects` with the control among the editors.
        control: Name of the control editor.

    Returns:
        Rows like `prompts`, editor "name - control", with D, D_post, log_odds and share replaced by the excess.
        Prompts the control was not scored on stay, with status "control: missing" or the control's own reason.

    Raises:
        UnknownNameError: No rows of the control.
    """
    need_columns("prompts", prompts, ("editor", "case_id", "prompt_id", "status", *_MOVED))
    editors = sorted(prompts["editor"].unique())
    if control not in editors or len(editors) < 2:
        raise unknown_name("control editor", control, editors)
    keys = ["kind", "case_id", "prompt_id", "edit_relation"]
    base = prompts.loc[prompts["editor"] == control, [*keys, *_MOVED, "status"]]
    out = prompts[prompts["editor"] != control].merge(base, on=keys, how="left", suffixes=("", "_control"))
    for name in _MOVED:
        out[name] -= out[f"{name}_control"]
    editor, status, of_control = (out[name].astype(object) for name in ("editor", "status", "status_control"))
    reason = "control: " + of_control.fillna("missing")
    out["status"] = status.mask((status == "ok") & (of_control != "ok"), reason)
    out["editor"] = editor + " - " + control
    return out.drop(columns=[f"{name}_control" for name in (*_MOVED, "status")])


def toward_truth(prompts: pd.DataFrame) -> pd.DataFrame:
    """Turn D around for people who hold the true target, so that above 0 always means "surer of the right answer".

    Without it, a model that answers p_j for all people looks better on people who hold p_j and the loss on people who
    hold p_i is not seen.
    """
    need_columns("prompts", prompts, ("holds", "D", *SCALES))
    changed = [name for name in ("D_pre", "D_post", "D", *SCALES) if name in prompts]
    sign = np.where(prompts["holds"] == "target_true", -1.0, 1.0)
    return prompts.assign(**{name: prompts[name] * sign for name in changed})
