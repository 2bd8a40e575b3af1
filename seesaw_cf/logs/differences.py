"""What changed between paired items: per task and pooled, per group, with corrected p and a verdict for each test."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.types import TableRow
from seesaw_cf.logs.fields import KNOWN_GROUPS, cluster_codes
from seesaw_cf.logs.judging import finished_row, judged
from seesaw_cf.logs.log import LOGLIK, MARGIN
from seesaw_cf.logs.pairing import BASE, CHANGED, PairedItems, corpus_metric
from seesaw_cf.logs.settings import CompareSettings
from seesaw_cf.stats import mcnemar, paired_change
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.crossing import Codes
from seesaw_cf.stats.flips import ClusterFlips

FAMILIES = SCORES, LOGS, GROUPS = ("scores", "log-probabilities", "groups")
"""Families of tests: the first metric of every task; its margin and log-likelihood; every group against the rest."""
CORPUS = "of the whole task, not tested"
_MAX_GROUPS = 40  # a field with more values is no field of groups
_NAN = float("nan")
_NAMES = ("family", "task", "metric", "field", "group", "rest", "contrast")  # of a test


@dataclass(frozen=True, eq=False)
class ChangeTest:
    """One row of the result: a mean over tasks, or the difference of one between a group and the rest."""

    family: str
    task: str
    metric: str
    members: Sequence[NDArray[np.bool_]]
    field: str = ""
    group: str = ""
    rest: str = ""
    contrast: bool = False


@dataclass(frozen=True, eq=False)
class MetricValues:
    """A metric before and after, both scored in the rows `there`; whether its values are from -1 to 1.

    `weights` are those of items in a mean, such as words of a document: 1 for all others.
    """

    before: Floats
    after: Floats
    there: NDArray[np.bool_]
    is_share: bool
    weights: Floats
    is_sum: bool = False

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Rows with a score on either side."""
        return np.isfinite(self.before) | np.isfinite(self.after)


def differences(pairs: PairedItems, settings: CompareSettings) -> tuple[pd.DataFrame, str]:
    """Return every difference of two logs, and in words what the clusters are.

    Returns:
        One row per task, metric and group. `task`, `metric`, `field`, `group` ("" = all), `family` ("" = no test),
        `contrast` (a group against the rest), `rest` (the other group where there are two); `n`, `clusters`, `before`,
        `after`, `value` (after minus before), `low`, `high`, `stderr`, `df`, `p`, `p_adjusted`, `note`; `lost`,
        `gained`, `p_mcnemar` of values 0 and 1; `unscored_before`, `unscored_after`; `moved` and `moved_most` (absolute
        change of an item: median, largest); `margin`, `verdict`, `rule`, `needed` (items that find the margin with
        power .8 at the family's first step).
    """
    frame = pairs.frame
    codes, about = cluster_codes(frame, settings.clusters)
    size = max(int(code.max(initial=-1)) + 1 for code in codes.values())
    families = {family: ClusterFlips(size) for family in ("", *FAMILIES)}
    values = {metric: metric_values(frame, metric) for metric in pairs.metrics}
    rows: list[TableRow] = []
    for question in questions(pairs, values, settings):
        own = values[question.metric]
        row = _row(question, own, codes, families[question.family])
        row["margin"], row["floor"] = settings.margin_of(question.metric, own.is_share)
        row["at"] = len(families[question.family].estimates) - 1
        row["is_share"], row["is_sum"] = own.is_share, own.is_sum
        rows.append(row)
    finished = {family: flips.corrected(settings.permutations, settings.seed) for family, flips in families.items()}
    table = pd.DataFrame([finished_row(row, *finished[str(row["family"])]) for row in rows])
    table = judged(table, settings)
    if corpora := list(_corpus_rows(frame)):
        table = pd.concat([table, pd.DataFrame(corpora)], ignore_index=True)
    return table, about


def metric_values(frame: pd.DataFrame, metric: str) -> MetricValues:
    """Return a metric of paired items."""
    before, after = (frame[f"metric:{metric}/{side}"].to_numpy(np.float64) for side in (BASE, CHANGED))
    there = np.isfinite(before) & np.isfinite(after)
    every = np.concatenate([before[np.isfinite(before)], after[np.isfinite(after)]])
    is_share = bool(every.size) and bool((np.abs(every) <= 1).all()) and metric not in (MARGIN, LOGLIK)
    if f"weight:{metric}/{BASE}" not in frame:
        return MetricValues(before, after, there, is_share, np.ones(len(frame)))
    weights, others = (frame[f"weight:{metric}/{side}"].to_numpy(np.float64) for side in (BASE, CHANGED))
    return MetricValues(before, after, there & (weights == others), False, weights, is_sum=True)


def questions(
    pairs: PairedItems, values: Mapping[str, MetricValues], settings: CompareSettings
) -> Iterator[ChangeTest]:
    """Yield what is asked: every metric of every task, pooled ones, and groups of what is tested."""
    frame = pairs.frame
    tasks = {str(name): np.asarray(frame["task"] == name) for name in frame["task"].unique()}
    tested: dict[str, tuple[str, ...]] = {}
    for task, rows in _first_looks(frame, tasks).items():
        there = [name for name in pairs.metrics if (values[name].scored & rows).any()]
        tested[task] = _tested_metrics(there, values, settings)
    for task, rows in tasks.items():
        for metric, own in values.items():
            if (own.scored & rows).any():
                yield ChangeTest(_family(metric, tested.get(task, ())), task, metric, [rows])
    for first in dict.fromkeys(metrics[0] for metrics in tested.values() if metrics):
        alike = [task for task, metrics in tested.items() if metrics and metrics[0] == first]
        members = [tasks[task] for task in alike]
        for name in dict.fromkeys((*tested[alike[0]], MARGIN, LOGLIK)):
            if len(members) > 1 and name in values and all(values[name].there[rows].any() for rows in members):
                yield ChangeTest(_family(name, tested[alike[0]]), f"mean of {len(members)} tasks", name, members)
    yield from _groups(frame, values, {task: (metrics, tasks[task]) for task, metrics in tested.items()}, settings)


def _family(metric: str, tested: Sequence[str]) -> str:
    if not tested or metric not in (*tested, MARGIN, LOGLIK):
        return ""
    return SCORES if metric in tested else LOGS


def _first_looks(frame: pd.DataFrame, tasks: Mapping[str, NDArray[np.bool_]]) -> dict[str, NDArray[np.bool_]]:
    """Return the tasks without those that score the same answers again, such as by another filter."""
    looks: dict[object, str] = {}
    content = frame["content"].to_numpy(np.uint64)
    for task, rows in tasks.items():
        unknown = not content[rows].any()
        looks.setdefault(task if unknown else (int(rows.sum()), int(content[rows].sum())), task)
    return {task: tasks[task] for task in looks.values()}


def _tested_metrics(
    there: Sequence[str], values: Mapping[str, MetricValues], settings: CompareSettings
) -> tuple[str, ...]:
    """Return the scores of a task that are tested: those that were named, else its first share, else its first."""
    wanted = tuple(name for name in settings.metrics if name in there)
    shares = [name for name in there if values[name].is_share]
    others = [name for name in there if name not in (MARGIN, LOGLIK)]
    return wanted or tuple((shares or others or list(there))[:1])


def _groups(
    frame: pd.DataFrame,
    values: Mapping[str, MetricValues],
    tested: Mapping[str, tuple[Sequence[str], NDArray[np.bool_]]],
    settings: CompareSettings,
) -> Iterator[ChangeTest]:
    """Yield each group of each field, and its contrast with the rest: one of the two where a field has two groups."""
    names = dict.fromkeys((*settings.groups, *KNOWN_GROUPS))
    for field in (name for name in names if f"field:{name}" in frame):
        column = frame[f"field:{field}"].astype("str").fillna("")
        for task, (metrics, rows) in tested.items():
            groups = sorted(set(column[rows]) - {""})
            if not 2 <= len(groups) <= _MAX_GROUPS:
                continue
            for metric in dict.fromkeys((*metrics, MARGIN)):
                if metric not in values or not values[metric].there[rows].any():
                    continue
                for number, group in enumerate(groups):
                    member = rows & np.asarray(column == group)
                    yield ChangeTest("", task, metric, [member], field, group)
                    if len(groups) > 2 or not number:
                        rest = rows & np.asarray((column != group) & (column != ""))
                        name = groups[1] if len(groups) == 2 else ""
                        yield ChangeTest(GROUPS, task, metric, [member, rest], field, group, name, contrast=True)


def _row(question: ChangeTest, own: MetricValues, codes: Mapping[str, Codes], flips: ClusterFlips) -> TableRow:
    """Return the row of a question, without what its family decides."""
    whole = np.any(question.members, axis=0)
    used = np.flatnonzero(whole & own.there)
    before, after = own.before[used], own.after[used]
    change = after - before
    members = [member[used] for member in question.members]
    own_weights = own.weights[used]
    means = [[member] for member in members] if question.contrast else [members]
    weights = [mean_weights([member * own_weights for member in each]) for each in means]
    row: TableRow = {name: getattr(question, name) for name in _NAMES} | {"n": used.size}
    for when, values in (("before", own.before), ("after", own.after)):
        row[f"unscored_{when}"] = int((whole & ~np.isfinite(values)).sum())
    clusters = {name: code[used] for name, code in codes.items()}
    row["clusters"] = n_clusters = min(np.unique(code).size for code in clusters.values())
    if not all(weight.any() for weight in weights):
        flips.skip("no item is scored in both logs")
        return row | {"before": _NAN, "after": _NAN}
    centre = float(change.mean()) if question.contrast else 0.0
    flips.add(change, weights, clusters, centre)
    net = weights[0] - (weights[1] if question.contrast else 0)
    row |= {"before": float(net @ before), "after": float(net @ after)}
    row |= {"moved": float(np.median(np.abs(change))), "moved_most": float(np.abs(change).max())}
    if not question.contrast and np.isin(before, (0, 1)).all() and np.isin(after, (0, 1)).all():
        lost, gained = int((change < 0).sum()), int((change > 0).sum())
        row |= {"lost": lost, "gained": gained, "p_mcnemar": mcnemar(lost, gained)}
        row["limits"] = paired_change(before > 0.5, after > 0.5, n_clusters)
    return row


def mean_weights(members: Sequence[Floats]) -> Floats:
    """Return the weights of the mean of the weighted means over members."""
    return np.asarray(np.sum([member / (member.sum() or 1) / len(members) for member in members], axis=0))


def _corpus_rows(frame: pd.DataFrame) -> Iterator[TableRow]:
    """Yield metrics of a whole task before and after, recomputed; they have no test."""
    for task, rows in frame.groupby("task", observed=True, sort=False):
        sides = [rows[f"others/{side}"] for side in (BASE, CHANGED)]
        for name in dict.fromkeys(name for others in sides[0] for name in others):
            both = [name in first and name in second for first, second in zip(*sides)]
            before, after = ([others[name] for others in side[both]] for side in sides)
            if any(both) and (found := corpus_metric(name, before, after)):
                yield dict.fromkeys(("family", "field", "group", "rest", "verdict", "rule"), "") | {
                    "task": str(task),
                    "metric": name,
                    "contrast": False,
                    "n": sum(both),
                    "clusters": sum(both),
                    "before": found[0],
                    "after": found[1],
                    "value": found[1] - found[0],
                    "is_share": False,
                    "is_sum": False,
                    "floor": 0.0,
                    "moved_most": abs(found[1] - found[0]),
                    **{f"unscored_{when}": len(both) - sum(both) for when in ("before", "after")},
                    "note": CORPUS,
                }
