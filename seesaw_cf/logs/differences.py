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

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.groups import ALL
from seesaw_cf.logs.log import number_of
from seesaw_cf.logs.pairing import KNOWN_GROUPS, SIDES, PairedItems, cluster_codes
from seesaw_cf.logs.settings import LOGLIK, MARGIN, CompareSettings
from seesaw_cf.report.frame import COLUMNS, Row, group_verdict, row
from seesaw_cf.stats import (
    adjust,
    agreeing,
    equivalence_p,
    mcnemar,
    minimum_detectable_effect,
    paired_change,
    verdict,
)
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.crossing import Codes
from seesaw_cf.stats.flips import ClusterFlips
from seesaw_cf.stats.simple import BOUNDS
from seesaw_cf.stats.verdicts import AFFECTED

FAMILIES = SCORES, LOGS, GROUPS = ("scores", "log-probabilities", "groups")
"""Families of tests: the first metric of every task; its margin and log-likelihood; every group beside the others."""
FURTHER = (
    *("family", "clusters", "before", "after", "lost", "gained", "p_mcnemar", "moved_most"),
    *("unscored_before", "unscored_after"),
)
"""Columns: family of tests ("" = no test), clusters, means before and after, right answers lost and gained with
McNemar's p, the largest change of an item, and items without a score."""
CORPUS = "of the whole task, not tested"
SUMS = "nats a word"
"""Scale of sums over documents, such as a perplexity: more is worse."""
VERDICTS = ("fell", "slightly_fell", "equal", "slightly_rose", "rose", "undecided", "too_few", "same")
"""Of a change; those of a contrast are `seesaw_cf.report.frame.GROUP_VERDICTS`."""
_UNDIRECTED = {"equivalent": "equal", "undetermined": "undecided", "not testable": "too_few"}
_LOST_SCORES = 0.1  # where shares of items without a score differ by this, a mean over the others says nothing
_MAX_GROUPS = 40  # a field with more values is no field of groups
_NAN = float("nan")
_Z = 1.959964


@dataclass(frozen=True, eq=False)
class PairedQuestion:
    """A mean over the rows of several tasks, or the difference of one between two sides.

    Attributes:
        family: One of `FAMILIES`; "" = no test.
        task, metric: Of what.
        members: (items,) rows of each task, or of each side of a contrast.
        field, group, rest: Whom it is about, and the other group where there are two.
        contrast: Whether it is a difference.
    """

    family: str
    task: str
    metric: str
    members: Sequence[NDArray[np.bool_]]
    field: str = ALL
    group: str = ALL
    rest: str = ""
    contrast: bool = False


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
    there: NDArray[np.bool_]
    scale: str
    weights: Floats

    @property
    def floor(self) -> float:
        """The largest change that is rounding."""
        return BOUNDS["float32"] if self.scale == "nats" else 0.0


def differences(pairs: PairedItems, settings: CompareSettings) -> tuple[pd.DataFrame, str, list[str]]:
    """Return every difference of two logs as a frame, in words what the clusters are, and what is not compared.

    Raises:
        RecordError: Nothing is scored in both logs, or they have none of `settings.metrics`.
    """
    frame = pairs.frame
    if settings.metrics and not set(settings.metrics) & set(pairs.metrics):
        raise RecordError(
            f"compare: none of the metrics {list(settings.metrics)} is in both logs, which have "
            f"{list(pairs.metrics)[:20]}. Name one of them."
        )
    codes, about = cluster_codes(frame, settings.clusters)
    size = max(int(code.max(initial=-1)) + 1 for code in codes.values())
    families = {family: ClusterFlips(size) for family in ("", *FAMILIES)}
    values = {metric: metric_values(frame, metric) for metric in pairs.metrics}
    asked = list(questions(pairs, values, settings))
    measured = [_measured(question, values[question.metric], codes, families[question.family]) for question in asked]
    finished = {family: flips.corrected(settings.permutations, settings.seed) for family, flips in families.items()}
    tests = {family: zip(*found) for family, found in finished.items()}
    rows = []
    for question, numbers in zip(asked, measured):
        estimate, corrected = next(tests[question.family])
        estimate = _finished(estimate, numbers)
        corrected = estimate.p if math.isnan(corrected) or math.isnan(estimate.value) else float(corrected)
        names: Row = {"editor": pairs.name, "relation": question.task, "asked": question.metric, "axis": question.field}
        names |= {"group": question.group, "reference": question.rest, "scale": values[question.metric].scale}
        names |= {"p_adjusted": corrected if question.family else _NAN, "decides": bool(question.family)}
        margin = settings.margin if names["scale"] == "share" else settings.margin_log_odds
        names |= {"family": question.family, "margin": margin, **numbers}
        rows.append(row("contrast" if question.contrast else "change", "log", estimate, **names))
    _decide(rows, {question.metric: values[question.metric].floor for question in asked}, settings)
    corpora, notes = _corpora(frame, pairs)
    if not np.isfinite([entry["before"] for entry in (*rows, *corpora) if "before" in entry]).any() and not any(
        entry["unscored_before"] != entry["unscored_after"] for entry in rows
    ):
        raise RecordError(
            f"compare: no item has a score in both logs of {pairs.name} and its base, expected numbers, C, I, P, yes, "
            f"no, true or false. {' '.join((*pairs.notes, *notes))}".strip()
        )
    return pd.DataFrame([*rows, *corpora], columns=[*COLUMNS, *FURTHER]), about, notes


def metric_values(frame: pd.DataFrame, metric: str) -> MetricValues:
    """Return a metric of paired items."""
    before, after = (frame[f"metric:{metric}/{side}"].to_numpy(np.float64) for side in SIDES)
    there = np.isfinite(before) & np.isfinite(after)
    every = np.concatenate([before[np.isfinite(before)], after[np.isfinite(after)]])
    is_share = every.size > 0 and bool((np.abs(every) <= 1).all())
    scale = "nats" if metric in (MARGIN, LOGLIK) else "share" if is_share else "score"
    if f"weight:{metric}/{SIDES[0]}" not in frame:
        return MetricValues(before, after, there, scale, np.ones(len(frame)))
    weights, others = (frame[f"weight:{metric}/{side}"].to_numpy(np.float64) for side in SIDES)
    return MetricValues(before, after, there & (weights == others), SUMS, weights)


def questions(
    pairs: PairedItems, values: Mapping[str, MetricValues], settings: CompareSettings
) -> Iterator[PairedQuestion]:
    """Yield what is asked: every metric of every task, means of tasks, and groups of what is tested."""
    frame = pairs.frame
    tasks = {str(name): np.asarray(frame["task"] == name) for name in frame["task"].unique()}
    scored = {name: np.isfinite(own.before) | np.isfinite(own.after) for name, own in values.items()}
    tested = {
        task: _tested_metrics([name for name in values if (scored[name] & rows).any()], values, settings)
        for task, rows in _first_looks(frame, tasks).items()
    }
    for task, rows in tasks.items():
        for metric in (metric for metric in values if (scored[metric] & rows).any()):
            yield PairedQuestion(_family(metric, tested.get(task, ())), task, metric, [rows])
    for first in dict.fromkeys(metrics[0] for metrics in tested.values() if metrics):
        alike = [task for task, metrics in tested.items() if metrics and metrics[0] == first]
        members = [tasks[task] for task in alike]
        for name in dict.fromkeys((*tested[alike[0]], MARGIN, LOGLIK)):
            if len(members) > 1 and name in values and all(values[name].there[rows].any() for rows in members):
                yield PairedQuestion(_family(name, tested[alike[0]]), f"mean of {len(members)} tasks", name, members)
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
    shares = [name for name in there if values[name].scale == "share"]
    others = [name for name in there if name not in (MARGIN, LOGLIK)]
    return tuple(name for name in settings.metrics if name in there) or tuple((shares or others or list(there))[:1])


def _groups(
    frame: pd.DataFrame,
    values: Mapping[str, MetricValues],
    tested: Mapping[str, tuple[Sequence[str], NDArray[np.bool_]]],
    settings: CompareSettings,
) -> Iterator[PairedQuestion]:
    """Yield each group of each field, and its contrast with the others: one of the two where a field has two groups."""
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
                    yield PairedQuestion("", task, metric, [member], field, group)
                    if len(groups) > 2 or not number:
                        rest = rows & np.asarray((column != group) & (column != ""))
                        name = groups[1] if len(groups) == 2 else ""
                        yield PairedQuestion(GROUPS, task, metric, [member, rest], field, group, name, contrast=True)


def _measured(question: PairedQuestion, own: MetricValues, codes: Mapping[str, Codes], flips: ClusterFlips) -> Row:
    """Return the numbers of a question that no correction changes, and add its test to the family's."""
    whole = np.any(question.members, axis=0)
    used = np.flatnonzero(whole & own.there)
    before, after = own.before[used], own.after[used]
    change = after - before
    members = [member[used] * own.weights[used] for member in question.members]
    weights = [mean_weights(each) for each in ([[member] for member in members] if question.contrast else [members])]
    clusters = {name: code[used] for name, code in codes.items()}
    numbers: Row = {"n": used.size, "clusters": min(np.unique(code).size for code in clusters.values())}
    for when, values in (("before", own.before), ("after", own.after)):
        numbers[f"unscored_{when}"] = int((whole & ~np.isfinite(values)).sum())
    if not all(weight.any() for weight in weights):
        flips.skip("no item is scored in both logs")
        return numbers
    flips.add(change, weights, clusters, float(change.mean()) if question.contrast else 0.0)
    net = weights[0] - (weights[1] if question.contrast else 0)
    numbers |= {"before": float(net @ before), "after": float(net @ after), "moved_most": float(np.abs(change).max())}
    if not question.contrast and np.isin(before, (0, 1)).all() and np.isin(after, (0, 1)).all():
        lost, gained = int((change < 0).sum()), int((change > 0).sum())
        numbers |= {"lost": lost, "gained": gained, "p_mcnemar": mcnemar(lost, gained)}
        numbers["limits"] = paired_change(before > 0.5, after > 0.5, numbers["clusters"])
    return numbers


def mean_weights(members: Sequence[Floats]) -> Floats:
    """Return the weights of the mean of the weighted means over members."""
    return np.asarray(np.sum([member / (member.sum() or 1) / len(members) for member in members], axis=0))


def _finished(estimate: Estimate, numbers: Row) -> Estimate:
    """Return the estimate of a row: of answers that all moved alike with the interval of paired shares.

    A mean over items that the change left a score has no value: which these are is its effect.
    """
    limits = numbers.pop("limits", None)
    if limits and not math.isfinite(estimate.stderr) and "no error" in estimate.note:
        p = estimate.p if math.isfinite(estimate.p) else 1.0
        low, high, p = agreeing(float(limits[0]), float(limits[1]), p)
        error, free = (high - low) / (2 * _Z), float(max(1, numbers["clusters"] - 1))
        estimate = replace(estimate, low=low, high=high, p=p, stderr=error, df=free, note="")
    unscored = [numbers["unscored_before"], numbers["unscored_after"]]
    if abs(unscored[1] - unscored[0]) >= max(1, _LOST_SCORES * (numbers["n"] + max(unscored))):
        numbers |= dict.fromkeys(("before", "after", "p_mcnemar"), _NAN)
        return Estimate(_NAN, note=f"{unscored[0]} before, {unscored[1]} after, have no score")
    return estimate


def _decide(rows: Sequence[Row], floors: Mapping[str, float], settings: CompareSettings) -> None:
    """Add verdict, the reason as note, and the smallest change that would be found, to every row of a family."""
    for family in FAMILIES:
        own = [entry for entry in rows if entry["family"] == family]
        tested = [entry for entry in own if math.isfinite(entry["p_adjusted"]) and math.isfinite(entry["stderr"])]
        same = adjust(
            [equivalence_p(*(entry[name] for name in ("value", "stderr", "df", "margin"))) for entry in tested]
        )
        sames = {id(entry): float(p) for entry, p in zip(tested, same)}
        tests = sum(math.isfinite(entry["p_adjusted"]) for entry in own)
        for entry in own:
            entry["verdict"], entry["note"] = _verdict(entry, floors[entry["asked"]], sames.get(id(entry)), settings)
            if math.isfinite(entry["stderr"]) and entry["stderr"]:
                error = float(entry["stderr"]), float(entry["df"])
                entry["detectable"] = minimum_detectable_effect(*error, alpha=settings.alpha / tests, power=0.8)


def _verdict(entry: Row, floor: float, same: float | None, settings: CompareSettings) -> tuple[str, str]:
    if math.isfinite(entry["value"]) and entry.get("moved_most", math.inf) <= floor:
        return "same", "no item moved by more than rounding"
    # A perplexity that rises is a loss.
    sign = -1 if entry["what"] == "contrast" and entry["scale"] == SUMS else 1
    estimate = Estimate(sign * entry["value"], stderr=entry["stderr"], df=entry["df"], p=entry["p_adjusted"])
    found = verdict(
        replace(estimate, note=entry["note"]),
        margin=entry["margin"],
        noise_floor=floor,
        alpha=settings.alpha,
        p_equivalence=same,
        scale="change",
    )
    if entry["what"] == "contrast":
        judged = {"verdict": found.label, "direction": found.direction, "rule": found.rule}
        return group_verdict(entry | judged | {"value": estimate.value})
    note = entry["note"] or found.rule
    if not found.direction:
        return _UNDIRECTED[found.label], note
    verb = "fell" if found.direction == "below 0" else "rose"
    return (verb if found.label in AFFECTED else f"slightly_{verb}"), note


# Metrics of a whole task.


def _corpora(frame: pd.DataFrame, pairs: PairedItems) -> tuple[list[Row], list[str]]:
    """Return metrics of a whole task before and after, recomputed and without a test, and what cannot be compared."""
    rows, notes = [], []
    for task, own in frame.groupby("task", observed=True, sort=False):
        sides = [own[f"others/{side}"].tolist() for side in SIDES]
        for metric, example in {name: value for side in sides for item in side for name, value in item.items()}.items():
            logged = [
                (first[metric], second[metric]) for first, second in zip(*sides) if metric in first and metric in second
            ]
            before, after = (corpus_metric(metric, side) for side in list(zip(*logged)) or ((), ()))
            if before is None or after is None:
                columns = [f"metric:{metric}/{side}" for side in SIDES]
                scored = metric in pairs.metrics and bool(own[columns].notna().to_numpy().any())
                left = "it counts as no score there" if scored else "it is left out"
                some = "some items" if scored else "an item"
                notes.append(f"{metric} of {task} is no number of {some} (such as {shown(example, 40)}), so {left}.")
                continue
            names = {"editor": pairs.name, "relation": str(task), "asked": metric, "scale": "score", "family": ""}
            names |= dict.fromkeys(("unscored_before", "unscored_after"), len(own) - len(logged))
            names |= {"before": before, "after": after, "moved_most": abs(after - before), "clusters": len(logged)}
            rows.append(row("change", "log", Estimate(after - before, n=len(logged), note=CORPUS), **names))
    return rows, notes


def corpus_metric(name: str, values: Sequence[object]) -> float | None:
    """Return mcc or f1 of a task, from pairs of the right and the given class; None where it cannot be computed."""
    pairs = [[number_of(part) for part in pair] if isinstance(pair, list) else [] for pair in values]
    if (
        name not in ("mcc", "f1")
        or not pairs
        or any(len(pair) != 2 or not all(map(math.isfinite, pair)) for pair in pairs)
    ):
        return None
    right, given = np.array(pairs).T
    if name == "mcc":
        return _mcc(right, given)
    if not np.isin(pairs, (0, 1)).all():  # of several classes there are several f1
        return None
    total = float(right.sum() + given.sum())
    return 2 * float(right @ given) / total if total else 0.0


def _mcc(right: Floats, given: Floats) -> float:
    """Return the correlation of two classifications. Source: Gorodkin (2004), R_K."""
    classes = np.unique(np.concatenate([right, given]))
    first, second = ((side[:, None] == classes).astype(float) for side in (right, given))
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    size = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum()) / size if size else 0.0
