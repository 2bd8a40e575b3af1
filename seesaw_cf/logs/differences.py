"""What changed between paired items, as rows of the one frame: tasks, means of tasks, and groups beside the others.

A row is "change" (after minus before) or "contrast" (the change of a group minus that of the others): `editor` is the
changed model, `relation` the task, `asked` the metric, `axis` and `group` whom it is about, `reference` the other group
where there are two. Columns beside those of the frame: `FURTHER`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.means import ALL
from seesaw_cf.logs import LOGLIK, MARGIN, CompareSettings
from seesaw_cf.logs.pairing import KNOWN_GROUPS, SIDES, PairedItems, cluster_codes, left_out
from seesaw_cf.report.frame import COLUMNS, Row, row
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.crossing import Codes
from seesaw_cf.stats.multiple import ClusterFlips, adjust
from seesaw_cf.stats.simple import BOUNDS, agreeing, mcnemar, paired_change
from seesaw_cf.stats.verdicts import AFFECTED, equivalence_p, minimum_detectable_effect, verdict

FAMILIES = SCORES, LOGS, GROUPS = ("scores", "log-probabilities", "groups")
"""Families of tests: the first metric of every task; its margin and log-likelihood; every group beside the others."""
FURTHER = (
    *("family", "clusters", "before", "after", "lost", "gained", "p_mcnemar", "moved_most"),
    *("unscored_before", "unscored_after"),
)
"""Columns: family of tests ("" = no test), clusters, means before and after, right answers lost and gained with
McNemar's p, the largest change of an item, and items without a score."""
SUMS = "nats a word"
"""Scale of sums over documents, such as a perplexity: more is worse."""
POOLED = "mean of "
VERDICTS = ("fell", "slightly_fell", "equal", "slightly_rose", "rose", "undecided", "too_few", "same")
"""Of a change; those of a contrast are `seesaw_cf.stats.verdicts.VERDICTS`."""
_LOST_SCORES = 0.1  # where shares of items without a score differ by this, a mean over the others says nothing
_MAX_GROUPS = 40  # a field with more values is no field of groups
_NAN = float("nan")
_Z = 1.959964
_Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class PairedQuestion:
    """A mean over the rows of several tasks, or the difference of one between two sides.

    Attributes:
        family: One of `FAMILIES`, the difference of two sides in the last; "" = no test.
        task, metric: Of what.
        members: (items,) rows of each task, or of each side of a contrast.
        field, group, rest: Whom it is about, and the other group where there are two.
    """

    family: str
    task: str
    metric: str
    members: Sequence[_Mask]
    field: str = ALL
    group: str = ALL
    rest: str = ""

    def parts(self, weights: Floats | float = 1.0) -> list[Floats]:
        """Return the weights of items in a mean of means over members, or those of each side of a contrast."""
        shares = [member * weights / ((member * weights).sum() or 1) for member in self.members]
        return shares if self.family == GROUPS else [np.asarray(np.mean(shares, axis=0))]


@dataclass(frozen=True, eq=False)
class MetricValues:
    """A metric before and after.

    Attributes:
        before, after: (items,) values.
        there: Items that are scored on both sides.
        scale: "share" of values from -1 to 1, "nats", `SUMS` of sums such as a perplexity, else "score".
        weights: Of items in a mean: words of a document, 1 for other metrics.
    """

    before: Floats
    after: Floats
    there: _Mask
    scale: str
    weights: Floats


def metric_values(frame: pd.DataFrame, metric: str) -> MetricValues:
    """Return a metric of paired items."""
    before, after = (frame[f"metric:{metric}_{side}"].to_numpy(np.float64) for side in SIDES)
    there, sizes = np.isfinite(before) & np.isfinite(after), np.abs([before, after])
    is_share = np.isfinite(sizes).any() and not (sizes > 1).any()
    scale = "nats" if metric in (MARGIN, LOGLIK) else "share" if is_share else "score"
    if f"weight:{metric}_{SIDES[0]}" not in frame:
        return MetricValues(before, after, there, scale, np.ones(len(frame)))
    weights, others = (frame[f"weight:{metric}_{side}"].to_numpy(np.float64) for side in SIDES)
    return MetricValues(before, after, there & (weights == others), SUMS, weights)


def differences(pairs: PairedItems, settings: CompareSettings) -> tuple[pd.DataFrame, str, list[str]]:
    """Return every difference of two logs as a frame, in words what the clusters are, and what is not compared.

    Raises:
        RecordError: Nothing is scored in both logs, or they have none of `settings.metrics`.
    """
    if settings.metrics and not set(settings.metrics) & set(pairs.metrics):
        raise RecordError(
            f"compare: none of the metrics {list(settings.metrics)} is in both logs, which have "
            f"{list(pairs.metrics)[:20]}. Name one of them."
        )
    codes, about = cluster_codes(pairs.frame, settings.clusters)
    values = {metric: metric_values(pairs.frame, metric) for metric in pairs.metrics}
    asked = list(questions(pairs, values, settings))
    rows, notes = list[Row](), list(left_out(pairs))
    for family in ("", *FAMILIES):
        own = [question for question in asked if question.family == family]
        rows = [*_rows(own, values, codes, settings), *rows]
    if not any(math.isfinite(entry.get("before", _NAN)) for entry in rows) and not any(
        entry["unscored_before"] != entry["unscored_after"] for entry in rows
    ):
        raise RecordError(
            f"compare: no item has a score in both logs of {pairs.name} and its base, expected numbers, C, I, P, yes, "
            f"no, true or false. {' '.join((*pairs.notes, *notes))}".strip()
        )
    return pd.DataFrame(rows, columns=[*COLUMNS, *FURTHER]).assign(editor=pairs.name), about, notes


# What is asked.


def questions(
    pairs: PairedItems, values: Mapping[str, MetricValues], settings: CompareSettings
) -> Iterator[PairedQuestion]:
    """Yield what is asked: every metric of every task, means of tasks, and groups of what is tested."""
    frame, tested, looks = pairs.frame, dict[str, tuple[str, ...]](), set[object]()
    tasks = {str(name): np.asarray(frame["task"] == name) for name in frame["task"].unique()}
    scored = {name: np.isfinite(own.before) | np.isfinite(own.after) for name, own in values.items()}
    for task, rows in tasks.items():
        there = [name for name in values if (scored[name] & rows).any()]
        content = frame.loc[rows, "content"].to_numpy(np.uint64)
        look = (len(content), int(content.sum())) if content.any() else task
        if look not in looks:  # others score the same answers again, such as by another filter
            tested[task] = _tested_metrics(there, values, settings)
        looks.add(look)
        for metric in there:
            yield PairedQuestion(_family(metric, tested.get(task, ())), task, metric, [rows])
    for first in dict.fromkeys(metrics[0] for metrics in tested.values() if metrics):
        alike = [task for task, metrics in tested.items() if metrics[:1] == (first,)]
        members = [tasks[task] for task in alike]
        for name in dict.fromkeys((*tested[alike[0]], MARGIN, LOGLIK)):
            if len(members) > 1 and name in values and all(values[name].there[rows].any() for rows in members):
                family = _family(name, tested[alike[0]])
                yield PairedQuestion(family, f"{POOLED}{len(members)} tasks", name, members)
    for field in dict.fromkeys((*settings.groups, *KNOWN_GROUPS)):
        column = frame.get(f"field:{field}", pd.Series("", frame.index)).astype("str").fillna("")
        for task, metrics in tested.items():
            yield from _group_questions(tasks[task], task, metrics, values, field, column)


def _tested_metrics(
    there: Sequence[str], values: Mapping[str, MetricValues], settings: CompareSettings
) -> tuple[str, ...]:
    """Return the scores of a task that are tested: those that were named, else its first share, else its first."""
    shares = [name for name in there if values[name].scale == "share"]
    others = [name for name in there if name not in (MARGIN, LOGLIK)]
    return tuple(name for name in settings.metrics if name in there) or tuple((shares or others or list(there))[:1])


def _family(metric: str, tested: Sequence[str]) -> str:
    return SCORES if metric in tested else LOGS if tested and metric in (MARGIN, LOGLIK) else ""


def _group_questions(
    rows: _Mask, task: str, metrics: Sequence[str], values: Mapping[str, MetricValues], field: str, column: pd.Series
) -> Iterator[PairedQuestion]:
    """Yield each group of a field, and its contrast with the others: one of the two where a field has two groups."""
    groups = sorted(set(column[rows]) - {""})
    if not 2 <= len(groups) <= _MAX_GROUPS:
        return
    for metric in dict.fromkeys((*metrics, MARGIN)):
        if metric not in values or not values[metric].there[rows].any():
            continue
        for number, group in enumerate(groups):
            member = rows & np.asarray(column == group)
            yield PairedQuestion("", task, metric, [member], field, group)
            if len(groups) > 2 or not number:
                sides = [member, rows & ~member & np.asarray(column != "")]
                yield PairedQuestion(GROUPS, task, metric, sides, field, group, groups[1] if len(groups) == 2 else "")


# What is measured and decided.


def _rows(
    asked: Sequence[PairedQuestion],
    values: Mapping[str, MetricValues],
    codes: Mapping[str, Codes],
    settings: CompareSettings,
) -> list[Row]:
    """Return the rows of the questions of a family, with corrected p, verdicts, and what would be found."""
    flips, rows = ClusterFlips(max(int(code.max(initial=-1)) + 1 for code in codes.values())), list[Row]()
    measured = [_measured(question, values[question.metric], codes, flips) for question in asked]
    for question, numbers, found, p in zip(asked, measured, *flips.corrected(settings.permutations, settings.seed)):
        estimate, scale, family = _finished(found, numbers), values[question.metric].scale, question.family
        p = estimate.p if math.isnan(p) or math.isnan(estimate.value) else float(p)
        names: Row = {"relation": question.task, "asked": question.metric, "axis": question.field}
        names |= {"group": question.group, "reference": question.rest, "scale": scale}
        names |= {"family": family, "decides": bool(family), "p_adjusted": p if family else _NAN}
        names |= {"margin": settings.margin if scale == "share" else settings.margin_log_odds}
        rows.append(row("contrast" if family == GROUPS else "change", "log", estimate, **names, **numbers))
    decided = [entry for entry in rows if entry["family"]]
    tested = [entry for entry in decided if math.isfinite(entry["p_adjusted"])]
    inside = [entry for entry in tested if math.isfinite(entry["stderr"])]
    same = adjust([equivalence_p(*(entry[name] for name in ("value", "stderr", "df", "margin"))) for entry in inside])
    sames = {id(entry): float(p) for entry, p in zip(inside, same)}
    for entry in decided:
        entry["verdict"], entry["note"] = _verdict(entry, sames.get(id(entry)), settings)
        if math.isfinite(entry["stderr"]) and entry["stderr"]:
            alpha = settings.alpha / len(tested)
            entry["detectable"] = minimum_detectable_effect(entry["stderr"], entry["df"], alpha=alpha, power=0.8)
    return rows


def _measured(question: PairedQuestion, own: MetricValues, codes: Mapping[str, Codes], flips: ClusterFlips) -> Row:
    """Return the numbers of a question that no correction changes, and add its test to the family's."""
    whole = np.any(question.members, axis=0)
    used = np.flatnonzero(whole & own.there)
    before, after = own.before[used], own.after[used]
    change, is_contrast = after - before, question.family == GROUPS
    parts = [part[used] for part in question.parts(np.where(own.there, own.weights, 0.0))]
    clusters = {name: code[used] for name, code in codes.items()}
    numbers: Row = {"n": used.size, "clusters": min(np.unique(code).size for code in clusters.values())}
    for when, values in zip(SIDES, (own.before, own.after)):
        numbers[f"unscored_{when}"] = int((whole & ~np.isfinite(values)).sum())
    if not all(part.any() for part in parts):
        flips.skip("no item is scored in both logs")
        return numbers
    flips.add(change, parts, clusters, float(change.mean()) if is_contrast else 0.0)
    net = parts[0] - (parts[1] if is_contrast else 0)
    numbers |= {"before": float(net @ before), "after": float(net @ after), "moved_most": float(np.abs(change).max())}
    if not is_contrast and np.isin([before, after], (0, 1)).all():
        lost, gained = int((change < 0).sum()), int((change > 0).sum())
        numbers |= {"lost": lost, "gained": gained, "p_mcnemar": mcnemar(lost, gained)}
        numbers["limits"] = paired_change(before > 0.5, after > 0.5, numbers["clusters"])
    return numbers


def _finished(estimate: Estimate, numbers: Row) -> Estimate:
    """Return the estimate of a row: of answers that all moved alike with the interval of paired shares.

    A mean over items that the change left a score has no value: which these are is its effect.
    """
    limits = numbers.pop("limits", None)
    if limits and not math.isfinite(estimate.stderr) and "no error" in estimate.note:
        low, high, p = agreeing(limits[0], limits[1], estimate.p if math.isfinite(estimate.p) else 1.0)
        error, free = (high - low) / (2 * _Z), float(max(1, numbers["clusters"] - 1))
        estimate = replace(estimate, low=low, high=high, p=p, stderr=error, df=free, note="")
    before, after = numbers["unscored_before"], numbers["unscored_after"]
    if abs(after - before) >= max(1, _LOST_SCORES * (numbers["n"] + max(before, after))):
        numbers |= dict.fromkeys((*SIDES, "p_mcnemar"), _NAN)
        return Estimate(_NAN, note=f"{before} before, {after} after, have no score")
    return estimate


def _verdict(entry: Row, same: float | None, settings: CompareSettings) -> tuple[str, str]:
    floor = BOUNDS["float32"] if entry["scale"] == "nats" else 0.0
    if math.isfinite(entry["value"]) and entry.get("moved_most", math.inf) <= floor:
        return "same", "no item moved by more than rounding"
    is_contrast = entry["what"] == "contrast"
    value = -entry["value"] if is_contrast and entry["scale"] == SUMS else entry["value"]  # more of a sum is a loss
    p = entry["p_adjusted"] if math.isfinite(entry["stderr"]) else _NAN  # without an interval nothing is claimed
    estimate = Estimate(value, stderr=entry["stderr"], df=entry["df"], p=p, note=entry["note"])
    limits = {"margin": entry["margin"], "noise_floor": floor, "alpha": settings.alpha}
    found = verdict(estimate, **limits, p_equivalence=same)
    if is_contrast or not found.direction:
        return found.label, entry["note"] or found.rule
    verb = "fell" if found.direction == "below 0" else "rose"
    return verb if found.label in AFFECTED else f"slightly_{verb}", entry["note"] or found.rule
