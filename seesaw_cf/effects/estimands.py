"""Estimands beyond the papers' D: contrasts between groups, excess over a control, the candidates' distribution.

Each takes the rows of `prompt_effects` (or a score table) and gives rows of the same kind or a table of estimates, so
they can be combined: the excess over a control of the contrast between two groups is one call inside another.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, unknown_name
from seesaw_cf.base.types import Estimate, TableRow
from seesaw_cf.effects.groups import (
    ALL,
    CLUSTERS,
    SCALES,
    UNKNOWN,
    by_tag,
    check_axes,
    held,
    mask,
    members,
    need_columns,
    tag_sets,
)
from seesaw_cf.stats import case_weights, clustered_means
from seesaw_cf.stats.bootstrap import Floats

Side = NDArray[np.bool_]
_Placed = tuple[int, TableRow]
_MOST_ROWS = 1 << 20  # of all editors whose estimates are made together: more take too much memory


_ORDER = ("case_id", "person", "prompt_id")


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


def _usable(prompts: pd.DataFrame, holds: str) -> pd.DataFrame:
    need_columns("prompts", prompts, ("editor", "edit_relation", "holds", "status", "D", *_ORDER))
    there = (held(prompts) == holds) & (prompts["status"] == "ok")
    if not there.any():
        raise RecordError(f"no scored prompts about people with holds={holds!r}; nothing to estimate.")
    return sort_prompts(prompts if there.all() else prompts[there]).reset_index(drop=True)


def group_contrasts(
    prompts: pd.DataFrame,
    axis: str,
    reference: str | None = None,
    *,
    holds: str = "target_new",
    clusters: Mapping[str, str] = CLUSTERS,
) -> pd.DataFrame:
    """Estimate the difference in differences: D_{d,g} minus that of a reference group, within the same edits.

    Only edits that were scored on people of both groups count, so what an edit does to all people cancels. A person in
    both groups counts in neither.

    Args:
        prompts: Rows of `seesaw_cf.effects.prompt_effects`.
        axis: The axis of the groups.
        reference: The group compared with; None = everyone tagged on the axis and not in the group.
        holds: Which answer the people hold.
        clusters: Dimension -> column.

    Returns:
        One row per editor, relation and group, with `reference`, the fields of `seesaw_cf.types.Estimate`, the same
        contrast in log-odds and share (as `estimate_groups`), and `likelier_pre`, the mean probability of the likelier
        answer before the edit, of the side where it is lower. Below 0: the group lost more confidence than the
        reference. `mirror` marks a contrast that compares the same rows as the row before it with the sides exchanged:
        signs are turned, and it is not another test.

    Raises:
        UnknownNameError: Unknown axis, or a reference that no person has.
        RecordError: No scored prompt about people who hold `holds`.
    """
    check_axes([axis])
    contrasts = []
    usable = _usable(prompts, holds)
    names = sorted(set(members(usable[axis])) - {UNKNOWN})
    if reference is not None:
        one_of(f"{axis} group", reference, names)
    needed = ("editor", "edit_relation", "case_id", "D", *SCALES, "likelier_pre", axis, *clusters.values())
    usable = usable[list(dict.fromkeys(needed))]  # for want of memory: the rows of each group are copied
    for prepared in _prepare(usable, [axis], clusters):
        groups, n = prepared.groups[axis], len(prepared.case)
        tagged = ~groups.get(UNKNOWN, np.zeros(n, bool))
        found: list[tuple[int, list[_Placed]]] = []
        alone: dict[tuple[bytes, ...], int] = {}  # sides of a contrast without a mirror -> its place
        for number, (group, own) in enumerate(groups.items()):
            if group in (reference, UNKNOWN):
                continue
            other = tagged & ~own if reference is None else groups.get(reference, np.zeros(n, bool))
            sides = _Sides.of((group, reference or "others"), own & ~other, other & ~own, prepared.case)
            key = {"axis": axis, "group": group, "reference": sides.names[1]}
            packed = sides.pack()
            place = alone.pop(packed[::-1], None)
            if place is None:
                alone[packed] = number
                found.append((number, _contrast(prepared, sides, key | {"mirror": False})))
            else:
                turned = replace(prepared, values=-prepared.values)
                found.append((place, _contrast(turned, sides.exchanged(), key | {"mirror": True})))
        for _, rows in sorted(found, key=itemgetter(0)):
            contrasts += rows
    return _in_places(contrasts)


@dataclass(frozen=True, slots=True)
class _Prepared:
    """The rows of a relation, of every editor that was asked the same: only what was measured differs.

    Attributes:
        places: Of the editors' rows in a table.
        editors, relation: Whose they are.
        groups: Axis -> group -> (n,) its rows.
        case: (n,) codes.
        values: (n, editors x scales).
        likelier_pre: (n, editors).
        clusters: Dimension -> (n,) codes.
    """

    places: Sequence[int]
    editors: Sequence[str]
    relation: str
    groups: Mapping[str, Mapping[str, Side]]
    case: NDArray[np.intp]
    values: Floats
    likelier_pre: Floats
    clusters: Mapping[str, NDArray[np.intp]]

    def by_editor(self, estimates: Sequence[Estimate], key: TableRow) -> list[_Placed]:
        """Return a row for each editor, of estimates for the columns of `values`."""
        width = 1 + len(SCALES)
        return [
            (place, {"editor": editor, "relation": self.relation} | key | _scales(estimates[at : at + width]))
            for place, editor, at in zip(self.places, self.editors, range(0, len(estimates), width), strict=True)
        ]


def _in_places(rows: list[_Placed]) -> pd.DataFrame:
    return pd.DataFrame([row for _, row in sorted(rows, key=itemgetter(0))])


def _prepare(usable: pd.DataFrame, axes: Sequence[str], clusters: Mapping[str, str]) -> Iterator[_Prepared]:
    """Group editors by the questions that they were asked: weights and clusters are the same, and made once."""
    case, *others = (pd.factorize(usable[name], sort=True)[0] for name in ("case_id", *clusters.values()))
    everybody = np.zeros(len(usable), np.intp), [{ALL}]
    tags = {axis: everybody if axis == ALL else tag_sets(usable[axis]) for axis in axes}
    values, likelier = _values(usable), usable.reindex(columns=["likelier_pre"]).to_numpy(np.float64)[:, 0]
    alike: dict[tuple[str, bytes], list[tuple[int, str, NDArray[np.intp]]]] = {}
    indices: dict[Any, NDArray[np.intp]] = usable.groupby(["editor", "edit_relation"], sort=True).indices  # type: ignore[assignment]
    for place, ((editor, relation), at) in enumerate(indices.items()):
        asked = [code[at] for code in (case, *others, *(codes for codes, _ in tags.values()))]
        key = hashlib.sha256(b"".join(column.tobytes() for column in asked)).digest()
        alike.setdefault((relation, key), []).append((place, editor, at))
    for (relation, _), members_of in alike.items():
        at = members_of[0][2]
        groups = {
            axis: {group: mask(at.size, rows) for group, rows in by_tag(codes[at], sets).items()}
            for axis, (codes, sets) in tags.items()
        }
        step = max(1, _MOST_ROWS // at.size)
        for start in range(0, len(members_of), step):
            places, editors, of_editor = zip(*members_of[start : start + step])
            yield _Prepared(
                places,
                editors,
                relation,
                groups,
                case[at],
                np.hstack([values[rows] for rows in of_editor]),
                likelier[np.column_stack(of_editor)],
                {name: code[at] for name, code in zip(clusters, others)},
            )


@dataclass(frozen=True, slots=True)
class _Sides:
    """(n,) rows of a group and of what it is compared with, and those of them under edits that were scored on both."""

    names: tuple[str, str]
    rows: tuple[Side, Side]
    compared: tuple[Side, Side]

    @classmethod
    def of(cls, names: tuple[str, str], first: Side, second: Side, case: NDArray[np.intp]) -> _Sides:
        cases = [np.bincount(case[side], minlength=int(case.max()) + 1) > 0 for side in (first, second)]
        both = np.logical_and(*cases)[case]
        return cls(names, (first, second), (first & both, second & both))

    def pack(self) -> tuple[bytes, ...]:
        """Return what tells sides apart: the rows that are compared, or all where none are."""
        return tuple(np.packbits(side).tobytes() for side in (self.compared if self.compared[0].any() else self.rows))

    def exchanged(self) -> _Sides:
        """Return the same sides in the other order."""
        return _Sides(self.names[::-1], self.rows[::-1], self.compared[::-1])


def _contrast(rows: _Prepared, sides: _Sides, key: TableRow) -> list[_Placed]:
    """Return a row for each editor."""
    parts = [case_weights(rows.case, side) for side in sides.compared if side.any()]
    least = np.min([part @ rows.likelier_pre for part in parts], axis=0) if parts else [np.nan] * len(rows.editors)
    found = rows.by_editor(_estimates(rows, sides, parts), key)
    return [(place, row | {"likelier_pre": float(pre)}) for (place, row), pre in zip(found, least, strict=True)]


def _estimates(rows: _Prepared, sides: _Sides, parts: list[Floats]) -> list[Estimate]:
    """Return one estimate for each column of values."""
    names = sides.names
    if not sides.compared[0].any():
        empty = [name for name, side in zip(names, sides.rows) if not side.any()]
        none = Estimate(np.nan, note=f"nobody is among {empty[0]}" if empty else "no edit was scored on both groups")
        return [none] * rows.values.shape[1]
    return clustered_means(rows.values, parts, rows.clusters, names)


def _values(rows: pd.DataFrame) -> Floats:
    return np.asarray(rows[["D", *SCALES]].to_numpy(np.float64))


def _scales(estimates: Sequence[Estimate]) -> TableRow:
    """Return D's inference, and that of the other scales under separate names."""
    out = asdict(estimates[0])
    for scale, estimate in zip(SCALES, estimates[1:], strict=True):
        out |= {scale: estimate.value} | estimate.columns("low", "high", "stderr", "p", "df", prefix=f"{scale}_")
    return out


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


_MOVED = ("D", "D_post", *SCALES)


def toward_truth(prompts: pd.DataFrame) -> pd.DataFrame:
    """Turn D around for people who hold the true target, so that above 0 always means "surer of the right answer".

    Without it, a model that answers p_j for all people looks better on people who hold p_j and the loss on people who
    hold p_i is not seen.
    """
    changed = ("D_pre", "D_post", "D", *SCALES)
    need_columns("prompts", prompts, ("holds", *changed))
    sign = np.where(prompts["holds"] == "target_true", -1.0, 1.0)
    return prompts.assign(**{name: prompts[name] * sign for name in changed})
