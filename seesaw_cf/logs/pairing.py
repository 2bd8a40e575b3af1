"""Which item of one log is which of another, and what keeps two logs from being a pair."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.terminal import quantity
from seesaw_cf.logs.log import ERRORED, INVALIDATED, EvalLog, number_of
from seesaw_cf.stats.bootstrap import Floats

# Difference that can be allowed -> what differs, in words.
ALLOWED = {
    "version": "the version of the task",
    "shots": "the number of few-shot examples",
    "seeds": "random seeds",
    "template": "the chat template or system instruction",
    "generation": "how answers are generated",
    "arguments": "the arguments of the task",
    "epochs": "the number of epochs",
    "content": "what is asked under one id",
    "cut": "where a log ends",
}
BASE, CHANGED = "base", "changed"
_SIDES = (BASE, CHANGED)


@dataclass(frozen=True, eq=False)
class PairedItems:
    """Items that are in both logs.

    Attributes:
        name: Of the changed model.
        frame: A row per item: `task`, `item`, `content`, `case`, "field:NAME" of the base, and with the suffixes
            "/base" and "/changed" `answer`, `invalid`, `others` and each "metric:NAME", the mean over epochs, and
            "weight:NAME".
        metrics: Names that both logs have.
        counts: One row per task: `task`, `paired`, `renumbered` (paired by content under another id), `other_content`
            (paired by id though the content differs), `only_base`, `only_changed`, `epochs_differ`, `repeated`,
            `invalidated`, of which none counts, and `errored_before`, `errored_after`.
        notes: Sentences about the logs.
    """

    name: str
    frame: pd.DataFrame
    metrics: tuple[str, ...]
    counts: pd.DataFrame
    notes: tuple[str, ...] = ()


def pair_logs(base: EvalLog, changed: EvalLog, allow: Collection[str] = (), errors: str = "left-out") -> PairedItems:
    """Pair the items of two logs by task and id where the content is equal, and by content where ids differ.

    Args:
        base: The model before the change.
        changed: The model after it.
        allow: Keys of `ALLOWED` that may differ.
        errors: "left-out", or "wrong": an item with an error or without a score has 0 of what is at most 1.

    Raises:
        RecordError: The logs were not made alike, or no item or no metric is in both.
    """
    notes = [*base.notes, *changed.notes, *_check_settings(base, changed, allow)]
    metrics = tuple(metric for metric in base.metrics if metric in changed.metrics)
    notes += [
        f"{metric} is only in {log.name}, so it is not compared."
        for log in (base, changed)
        for metric in log.metrics
        if metric not in metrics
    ]
    (left, repeated), (right, again) = _items(base, errors), _items(changed, errors)
    rows = _matches(left, right)
    name = changed.name
    _check_content(rows, base, name, allow)
    if rows.empty or not metrics:
        what = "item" if rows.empty else "metric"
        raise RecordError(
            f"compare: no {what} is in both logs: {base.name} has {_has(base)}, {name} has {_has(changed)}. Give logs "
            "of the same tasks."
        )
    frame = _joined(base, left, right, rows, metrics)
    counts = _counts(rows, left, right, repeated.add(again, fill_value=0), frame)
    frame = frame[~_has_state(frame, INVALIDATED).any(axis=1)].reset_index(drop=True)
    notes += _left_out(frame)
    scored = [frame[f"metric:{metric}/{side}"].notna().any() for metric in metrics for side in _SIDES]
    if not any(scored):
        raise RecordError(
            f"compare: no item has a score in {base.name} or {name}, expected numbers, C, I, P, yes, no, true or "
            f"false. {' '.join(notes)}".rstrip()
        )
    if counts["epochs_differ"].any() and "epochs" not in allow:
        row = counts[counts["epochs_differ"] > 0].iloc[0]
        raise RecordError(
            f"compare: {base.name} and {name} differ in the number of epochs of {row['epochs_differ']} items of "
            f"{row['task']}. Give logs with the same epochs, or add --allow epochs to compare means over unequal ones."
        )
    return PairedItems(name, frame, metrics, counts, tuple(dict.fromkeys(notes)))


def _has(log: EvalLog) -> str:
    tasks = list(map(str, log.items["task"].cat.categories))
    others = {name: value for row in log.items["others"] for name, value in row.items()}
    none = f" and {shown(others, 200)}, which are no numbers" if others else ""
    return f"tasks {tasks[:5]} with metrics {list(log.metrics)[:5]}{none}"


def _check_settings(base: EvalLog, changed: EvalLog, allow: Collection[str]) -> list[str]:
    """Return the settings in which two logs differ and may."""
    notes = []
    for (task, setting), value in base.settings.items():
        other = changed.settings.get((task, setting), value)
        if other == value:
            continue
        difference = (
            f"{base.name} and {changed.name} differ in {ALLOWED[setting]} of {task}: {value[:80]} and {other[:80]}"
        )
        if setting not in allow:
            raise RecordError(
                f"compare: {difference}. What differs is then not the model's alone. Give logs that were made alike, "
                f"or add --allow {setting}."
            )
        notes.append(f"{difference}; this was allowed.")
    return notes


def _items(log: EvalLog, errors: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return items with the mean of their epochs, and per task how many rows repeat an earlier one, which they replace.

    Units are items, not rows: epochs of an item are no independent ones. Items of one id and other contents are other
    items.

    Raises:
        RecordError: An id has several scores, and nothing tells its items apart.
    """
    frame = _numbered(log).astype({"state": "str"})
    values = [f"metric:{name}" for name in log.metrics]
    frame.loc[frame["state"] != "", values] = np.nan
    if errors == "wrong":
        shares = [name for name in values if frame[name].between(0, 1).sum() == frame[name].notna().sum() > 0]
        shares = [name for name in shares if name.replace("metric:", "weight:") not in frame]
        valid = frame["state"] != INVALIDATED
        frame.loc[valid, shares] = frame.loc[valid, shares].fillna(0.0)
    again = frame.duplicated(["task", "item", "epoch"], keep="last")
    repeated = again.groupby(frame["task"]).sum()
    frame = frame[~again]
    frame = frame.assign(epochs=np.int32(1))
    if frame.duplicated(["task", "item"]).any():
        frame = frame.sort_values("state", kind="stable")  # an item is invalidated where all its epochs are
        how = dict.fromkeys(frame.columns, "first") | dict.fromkeys([*values, "invalid"], "mean") | {"epochs": "sum"}
        frame = frame.groupby(["task", "item"], sort=False, as_index=False, observed=True).agg(how)
    return frame.reset_index(drop=True), repeated


def _numbered(log: EvalLog) -> pd.DataFrame:
    """Return the items, those of one id and several contents under names of their own."""
    frame = log.items.astype({"task": "str"})
    keys = ["task", "item", "epoch"]
    twice = frame.duplicated(keys, keep=False)
    if not twice.any():
        return frame
    contents = frame[twice].groupby(keys)["content"].transform("nunique").reindex(frame.index, fill_value=1)
    item = frame["item"].where(contents < 2, frame["item"] + "#" + frame["content"].astype("str"))
    scores = [f"metric:{name}" for name in log.metrics]
    unknown = frame[twice & (frame["content"] == 0)]
    other = unknown.drop_duplicates([*keys, *scores])
    if other.duplicated(keys).any():
        row = other[other.duplicated(keys)].iloc[0]
        raise RecordError(
            f"{log.name}: item {row['item']!r} of {row['task']} has several scores and no prompt that tells them "
            "apart. Give each item an id of its own, or add a column prompt or epoch."
        )
    return frame.assign(item=item)


def _has_state(frame: pd.DataFrame, state: str) -> pd.DataFrame:
    return pd.concat([frame[f"state/{side}"] == state for side in _SIDES], axis=1, keys=_SIDES)


def _left_out(frame: pd.DataFrame) -> list[str]:
    """Return which scores are no numbers, with a value of each."""
    found: dict[tuple[str, str], object] = {}
    for side in _SIDES:
        for task, others in zip(frame["task"], frame[f"others/{side}"]):
            for name, value in others.items():
                found.setdefault((str(task), name), value)
    return [
        f"{name} of {task} is no number of an item (such as {shown(value, 40)}), so it is left out."
        for (task, name), value in found.items()
        if corpus_metric(name, [value], [value]) is None
    ]


def corpus_metric(name: str, before: Sequence[object], after: Sequence[object]) -> tuple[float, float] | None:
    """Return a metric of all items before and after: mcc or f1 of pairs of the right and the given class; else None."""
    sides = []
    for values in (before, after):
        if name not in ("mcc", "f1") or not all(isinstance(pair, list) and len(pair) == 2 for pair in values):
            return None
        right, given = (np.array([number_of(pair[at]) for pair in values]) for at in (0, 1))  # type: ignore[index]
        if not (np.isfinite(right).all() and np.isfinite(given).all()):
            return None
        sides.append(_mcc(right, given) if name == "mcc" else _f1(right, given))
    return sides[0], sides[1]


def _mcc(right: Floats, given: Floats) -> float:
    """Return the correlation of two classifications. Source: Gorodkin (2004), R_K."""
    classes = np.unique(np.concatenate([right, given]))
    first, second = ((side[:, None] == classes).astype(float) for side in (right, given))
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    size = float(np.sqrt((first**2).sum() * (second**2).sum()))
    return float((first * second).sum()) / size if size else 0.0


def _f1(right: Floats, given: Floats) -> float:
    both = float(((right == 1) & (given == 1)).sum())
    return 2 * both / total if (total := float((right == 1).sum() + (given == 1).sum())) else 0.0


def _matches(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    """Return `left` and `right` row numbers of pairs, `by` ("id", "content" or "other") and `task`."""
    sides = [frame[["task", "item", "content"]].assign(row=np.arange(len(frame))) for frame in (left, right)]
    pairs = sides[0].merge(sides[1], on=["task", "item"], suffixes=_SIDES)
    contents = [pairs[f"content{side}"] for side in _SIDES]
    equal = (contents[0] == contents[1]) | (contents[0] == 0) | (contents[1] == 0)
    by_id, differing = pairs[equal], pairs[~equal]
    rest = [side[~side["row"].isin(by_id[f"row{name}"])] for side, name in zip(sides, _SIDES)]
    rest = [side[(side["content"] != 0) & ~side.duplicated(["task", "content"], keep=False)] for side in rest]
    by_content = rest[0].merge(rest[1], on=["task", "content"], suffixes=_SIDES)
    # Where items were numbered anew, an id that two contents share is no sign of another prompt.
    renumbered = set(by_content["task"])
    other = differing[~differing["task"].isin(renumbered)]
    found = {"id": by_id, "content": by_content, "other": other}
    return pd.concat(
        [
            pd.DataFrame({"task": rows["task"], "left": rows["rowbase"], "right": rows["rowchanged"], "by": by})
            for by, rows in found.items()
        ],
        ignore_index=True,
    ).sort_values("left", ignore_index=True)


def _check_content(rows: pd.DataFrame, base: EvalLog, name: str, allow: Collection[str]) -> None:
    other = rows[rows["by"] == "other"]
    if len(other) and "content" not in allow:
        raise RecordError(
            f"compare: {quantity(len(other), 'item')} of {base.name} and {name} have the same id and another content, "
            f"such as in {other['task'].iloc[0]}: other prompts, choices or right answers. Give logs of one version of "
            "the task, or add --allow content to pair by id."
        )


def _joined(
    base: EvalLog, left: pd.DataFrame, right: pd.DataFrame, rows: pd.DataFrame, metrics: tuple[str, ...]
) -> pd.DataFrame:
    """Return the frame of `PairedItems`."""
    weights = [f"weight:{metric}" for metric in metrics if f"weight:{metric}" in left and f"weight:{metric}" in right]
    names = ["answer", "invalid", "state", "others", *(f"metric:{metric}" for metric in metrics), *weights]
    keys = ["task", "item", "content", "case", *(f"field:{name}" for name in base.fields)]
    first = left.loc[rows["left"], [*keys, *names]].reset_index(drop=True)
    second = right.loc[rows["right"], names].reset_index(drop=True)
    first = first.rename(columns={name: f"{name}/{BASE}" for name in names})
    return pd.concat([first, second.add_suffix(f"/{CHANGED}")], axis=1).astype({"task": "category"})


def _counts(
    rows: pd.DataFrame, left: pd.DataFrame, right: pd.DataFrame, repeated: pd.Series, frame: pd.DataFrame
) -> pd.DataFrame:
    tasks = list(dict.fromkeys([*left["task"], *right["task"]]))
    epochs = left["epochs"].to_numpy()[rows["left"]] != right["epochs"].to_numpy()[rows["right"]]
    paired = rows.groupby("task").size()
    task, invalidated = frame["task"].astype("str"), _has_state(frame, INVALIDATED).any(axis=1)
    errored = _has_state(frame, ERRORED)
    columns = {
        "paired": (~invalidated).groupby(task).sum(),
        "invalidated": invalidated.groupby(task).sum(),
        "errored_before": errored[BASE].groupby(task).sum(),
        "errored_after": errored[CHANGED].groupby(task).sum(),
        "renumbered": rows[rows["by"] == "content"].groupby("task").size(),
        "other_content": rows[rows["by"] == "other"].groupby("task").size(),
        "only_base": left.groupby("task").size().sub(paired, fill_value=0),
        "only_changed": right.groupby("task").size().sub(paired, fill_value=0),
        "epochs_differ": pd.Series(epochs, dtype=int).groupby(rows["task"]).sum(),
        "repeated": repeated,
    }
    counts = pd.DataFrame({name: column.reindex(tasks) for name, column in columns.items()}, index=tasks)
    return counts.fillna(0).astype(int).rename_axis("task").reset_index()
