"""D per demographic group: case means, pooled means and errors clustered by edit and person; the papers' test apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.stats import case_weights, clustered_means, t_test
from seesaw_cf.stats.bootstrap import Floats, mean_interval
from seesaw_cf.stats.clustered import half_clusters

AXES = ("gender", "race", "region")
"""What groups are of."""
ALL = "all"
"""The group of everybody."""
UNKNOWN = "unknown"
"""The group of people without a tag on an axis."""


def need_columns(where: str, frame: pd.DataFrame, names: Iterable[str]) -> None:
    """Refuse a table without columns that are needed.

    Raises:
        RecordError: The missing ones, and those there are.
    """
    if missing := [name for name in names if name not in frame]:
        raise RecordError(f"{where}: columns {missing} are missing; it has {list(frame)}.")


# What a prompt belongs to: dimension -> column.
CLUSTERS: Mapping[str, str] = {"edit": "case_id", "person": "person"}
SCALES = ("log_odds", "share")
"""Scales on which an effect is given beside D; columns of `seesaw_cf.effects.prompt_effects`."""
BiasMode = Literal["crossed", "paper"]
NAN = float("nan")
_MEANS = ("D_pre", "D_post", "D", *SCALES, "likelier_pre")
_D = _MEANS.index("D")
_CHANGES = [_D, *map(_MEANS.index, SCALES)]
_HOLDS = ("target_new", "target_true", "")


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


@dataclass(frozen=True, slots=True)
class GroupEffect:
    """D of one group of people.

    Attributes:
        group: Its name.
        D: The effect, a mean of case means, with its inference.
        log_odds: The change of log p(new) - log p(true), nats; in the paper mode without inference.
        share: The change of p(new) / (p(new) + p(true)), in -1..1; in the paper mode without inference.
        means: "D_pre", "D_post" and "likelier_pre" (probability of the likelier answer before the edit) as means of
            case means.
        pooled: "D_pre", "D_post" and "D", unweighted over prompts.
        n_prompts, n_subjects, n_cases: What was scored.
        n_unscored: Prompts left out because they could not be scored.
        half_edits: "D" and `SCALES` -> the least number of edits that carry half of the effect; empty in the paper
            mode.
        t: The papers' statistic; None in the crossed mode.
    """

    group: str
    D: Estimate
    log_odds: Estimate
    share: Estimate
    means: Mapping[str, float]
    pooled: Mapping[str, float]
    n_prompts: int
    n_subjects: int
    n_cases: int
    n_unscored: int
    half_edits: Mapping[str, int] = field(default_factory=dict)
    t: float | None = None

    def row(self) -> JsonObject:
        """Return the columns of a table row."""
        out: JsonObject = {"group": self.group} | {name: self.means[name] for name in ("D_pre", "D_post")}
        out |= {"D": self.D.value} | {scale: getattr(self, scale).value for scale in SCALES}
        out |= {"likelier_pre": self.means["likelier_pre"]}
        out |= {f"pooled_{name}": value for name, value in self.pooled.items()}
        out |= {name: getattr(self, name) for name in ("n_prompts", "n_subjects", "n_cases", "n_unscored")}
        if self.t is not None:
            return out | self.D.columns("low", "high", "stderr") | {"t": self.t} | self.D.columns("p", "note")
        names = ("low", "high", "stderr", "p", "df")
        out |= self.D.columns(*names, "effective", "note") | {"half_edits": self.half_edits.get("D", 0)}
        for scale in SCALES:
            out |= getattr(self, scale).columns(*names, prefix=f"{scale}_")
            out |= {f"{scale}_half_edits": self.half_edits.get(scale, 0)}
        return out


def summarise(
    prompts: pd.DataFrame,
    groups: Mapping[str, NDArray[np.intp]],
    *,
    mode: BiasMode = "crossed",
    draws: int = 2000,
    seed: int = 0,
) -> list[GroupEffect]:
    """Estimate D for groups of rows that share one set of cases.

    Args:
        prompts: Columns case_id, person, D_pre, D_post, D, `SCALES`, likelier_pre and status, one row per prompt.
        groups: Row positions of every group.
        mode: See `group_effects`.
        draws, seed: Bootstrap samples of whole cases for the paper mode; 0 leaves the intervals out.

    Returns:
        One effect per group.
    """
    return _effects(_prepare(prompts, CLUSTERS), groups, mode, draws, seed)


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows in an order that does not depend on the table's, so that sums do not.

    Attributes:
        rank: (n,) Row of the table -> row here.
        case, n_cases: (n,) codes of the cases, and how many there are.
        person: (n,) codes of the people.
        usable: (n,) which have a score.
        values: (n, columns of `_MEANS`).
        clusters: Dimension -> (n,) cluster codes.
    """

    rank: NDArray[np.intp]
    case: NDArray[np.intp]
    n_cases: int
    person: NDArray[np.intp]
    usable: NDArray[np.bool_]
    values: Floats
    clusters: Mapping[str, NDArray[np.intp]]


def _prepare(prompts: pd.DataFrame, clusters: Mapping[str, str]) -> _Rows:
    person = pd.factorize(prompts["person"], sort=True)[0]
    case, case_ids = pd.factorize(prompts["case_id"], sort=True)
    order = np.lexsort((*(prompts[name].to_numpy(np.float64) for name in ("log_odds", "D")), person, case))
    rank = np.empty(len(order), np.intp)
    rank[order] = np.arange(len(order))
    values = prompts[list(_MEANS)].to_numpy(np.float64)[order]
    codes = {name: pd.factorize(prompts[column].iloc[order], sort=True)[0] for name, column in clusters.items()}
    usable = (prompts["status"] == "ok").to_numpy(bool)[order]
    return _Rows(rank, case[order], len(case_ids), person[order], usable, values, codes)


def _effects(
    rows: _Rows, groups: Mapping[str, NDArray[np.intp]], mode: BiasMode, draws: int, seed: int
) -> list[GroupEffect]:
    effects = []
    for group, positions in groups.items():
        every = np.sort(rows.rank[positions])
        scored = every[rows.usable[every]]
        means, pooled, n_cases = _means(rows.values[scored], rows.case[scored])
        t, half = None, dict[str, int]()
        if mode == "paper":
            effect, t = _published(rows.values[scored, _D], rows.case[scored], rows.n_cases, draws, seed)
            others = [Estimate(NAN) for _ in SCALES]
        else:
            effect, *others = _clustered(rows, scored)
            half = _half(rows, scored) if scored.size else {}
        effects.append(
            GroupEffect(
                group,
                D=replace(effect, value=means.pop("D")),
                **{scale: replace(own, value=means.pop(scale)) for scale, own in zip(SCALES, others, strict=True)},
                means=means,
                pooled=pooled,
                n_prompts=len(scored),
                n_subjects=len(np.unique(rows.person[scored])),
                n_cases=n_cases,
                n_unscored=int(every.size - scored.size),
                half_edits=half,
                t=t,
            )
        )
    return effects


def mask(n: int, positions: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return a mask, (n,), that is True at `positions`."""
    chosen = np.zeros(n, dtype=bool)
    chosen[positions] = True
    return chosen


def _means(values: Floats, case: NDArray[np.intp]) -> tuple[dict[str, float], dict[str, float], int]:
    """Return means of case means, pooled means, and the number of cases."""
    if not len(values):
        return dict.fromkeys(_MEANS, NAN), dict.fromkeys(_MEANS[:3], NAN), 0
    n_prompts = np.bincount(case)
    has = n_prompts > 0
    by_name = dict(zip(_MEANS, values.T, strict=True))
    means = {name: float((np.bincount(case, v)[has] / n_prompts[has]).mean()) for name, v in by_name.items()}
    return means, {name: float(by_name[name].mean()) for name in _MEANS[:3]}, int(has.sum())


def _clustered(rows: _Rows, scored: NDArray[np.intp]) -> list[Estimate]:
    """Estimate D and the same change on each of `SCALES` from the scored rows."""
    if not scored.size:
        return [Estimate(NAN, note="nothing could be scored")] * (1 + len(SCALES))
    used = mask(len(rows.case), scored)
    values = np.where(used[:, None], rows.values[:, _CHANGES], 0.0)
    return clustered_means(values, [case_weights(rows.case, used)], rows.clusters)


def _half(rows: _Rows, scored: NDArray[np.intp]) -> dict[str, int]:
    weights = case_weights(rows.case, mask(len(rows.case), scored))[scored]
    half = half_clusters(rows.values[scored][:, _CHANGES] * weights[:, None], rows.case[scored])
    return dict(zip(("D", *SCALES), half.tolist(), strict=True))


def _published(changes: Floats, case: NDArray[np.intp], n_cases: int, draws: int, seed: int) -> tuple[Estimate, float]:
    """Return the papers' t-test over case means, with the bootstrap over cases as interval, and its statistic."""
    n_prompts = np.bincount(case, minlength=n_cases)
    has = n_prompts > 0
    means = np.bincount(case, changes, n_cases) / np.maximum(n_prompts, 1)
    t, p, note = t_test(means[has])
    low, high, stderr = NAN, NAN, NAN
    if draws and has.sum() > 1:
        low, high, stderr = mean_interval(means, has.astype(np.float64), draws, seed)
    return Estimate(NAN, low, high, stderr, p, note=note), t


def group_effects(
    prompts: pd.DataFrame,
    *,
    axes: Sequence[str] = AXES,
    holds: str = "target_new",
    mode: BiasMode = "crossed",
    clusters: Mapping[str, str] = CLUSTERS,
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Return D per (editor, edited relation, axis, group), with an overall row per editor and relation.

    Args:
        prompts: The result of `seesaw_cf.effects.prompt_effects`.
        axes: Which axes, of "gender", "race" and "region".
        holds: Which answer the people hold: "target_new" (the papers' D), "target_true", or "" where it is
            unknown.
        mode: "crossed": errors clustered along edit and person at once. "paper": the published t-test over case means,
            with a bootstrap over cases; it takes cases that share people for independent.
        clusters: Dimension -> column, for the crossed mode.
        draws, seed: Bootstrap samples of whole cases, for the paper mode.

    Returns:
        One row per editor, relation, axis and group (axis and group `ALL` for all people, group `UNKNOWN` for people
        without a tag), with the columns of `GroupEffect.row`. The unit is the form of score that `prompts` was made
        with.

    Raises:
        UnknownNameError: An axis or the mode is unknown.
        RecordError: No prompt is about people who hold `holds`.

    Source: SEESAW-CF section 4.1 and Tables 10-15, D_{d,g}; averaging order as in the authors' evaluation. Errors:
        `seesaw_cf.stats.clustered_mean`.
    """
    check_axes(axes)
    one_of("mode", mode, get_args(BiasMode))
    need_columns("prompts", prompts, ("editor", "edit_relation", "case_id", "holds", "status", *axes))
    needed = ("editor", "edit_relation", "case_id", "person", "status", *_MEANS, *axes, *clusters.values())
    chosen = prompts.loc[held(prompts) == holds, list(dict.fromkeys(needed))]  # no more: rows are many
    if chosen.empty:
        there = held(prompts).value_counts().to_dict()
        raise RecordError(f"no prompts about people with holds={holds!r}; prompts per value: {there}. Known: {_HOLDS}.")
    table = []
    for (editor, relation), rows in chosen.groupby(["editor", "edit_relation"], sort=True):
        prepared = _prepare(rows, clusters)
        for axis in (ALL, *axes):
            groups = {ALL: np.arange(len(rows))} if axis == ALL else members(rows[axis])
            key = {"editor": editor, "relation": relation, "axis": axis}
            table += [key | effect.row() for effect in _effects(prepared, groups, mode, draws, seed)]
    return pd.DataFrame(table)
