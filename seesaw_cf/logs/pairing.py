"""Which item of one log is which of another, what keeps two logs from being a pair, and which items belong together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.terminal import quantity
from seesaw_cf.logs.log import ERRORED, INVALIDATED, EvalLog, read_table_file
from seesaw_cf.logs.settings import ALLOWED, LOGLIK, MARGIN, CompareSettings
from seesaw_cf.run.manifest import differences
from seesaw_cf.stats.crossing import Codes

BASE, CHANGED = "base", "changed"
SIDES = (BASE, CHANGED)
KNOWN_GROUPS = (
    *("category", "context_condition", "question_polarity"),  # BBQ
    *("bias_type", "stereo_antistereo"),  # CrowS-Pairs, StereoSet
    *("condition", "gender", "race", "religion", "region", "nationality"),  # WinoBias, Winogender and others
)
"""Fields of documents that are groups, beside those that are named."""
KNOWN_CLUSTERS = (("cluster",), ("pair_id",), ("category", "question_index"), ("occupation", "participant"))
"""Fields that together name what items share: a story (BBQ), a sentence in several forms. The first that are there."""


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
            `invalidated`, of which none counts, and `errored_before`, `errored_after`, `partial_before`,
            `partial_after` (scored in some of their epochs), `wrong_before`, `wrong_after` (without score and error,
            counted as wrong).
        notes: Sentences about the logs.
    """

    name: str
    frame: pd.DataFrame
    metrics: tuple[str, ...]
    counts: pd.DataFrame
    notes: tuple[str, ...] = ()


def pair_logs(base: EvalLog, changed: EvalLog, settings: CompareSettings | None = None) -> PairedItems:
    """Pair the items of two logs by task and id where the content is equal, and by content where ids differ.

    Args:
        base: The model before the change.
        changed: The model after it.
        settings: For `allow` and `errors`: an item with an error or without a score has 0 of what is at most 1.

    Raises:
        RecordError: The logs were not made alike, or no item is in both.
    """
    settings = settings or CompareSettings()
    notes = [*base.notes, *changed.notes, *_allowed_differences(base, changed, settings.allow)]
    metrics = tuple(metric for metric in base.metrics if metric in changed.metrics)
    for log in (base, changed):
        alone = (metric for metric in log.metrics if metric not in metrics)
        notes += [f"{metric} is only in {log.name}, so it is not compared." for metric in alone]
    shares = _shares(base, changed, metrics) if settings.errors == "wrong" else None
    (left, repeated), (right, again) = (_items(log, shares) for log in (base, changed))
    rows = _matches(left, right)
    _check_content(rows, base, changed.name, settings.allow)
    if rows.empty:
        tasks = [list(map(str, log.items["task"].cat.categories))[:5] for log in (base, changed)]
        raise RecordError(
            f"compare: no item is in both logs: {base.name} has tasks {tasks[0]}, {changed.name} has tasks {tasks[1]}. "
            "Give logs of the same tasks."
        )
    frame = _joined(base, left, right, rows, metrics)
    counts = _counts(rows, left, right, repeated.add(again, fill_value=0), frame)
    frame = frame[~(_states(frame) == INVALIDATED).any(axis=1)].reset_index(drop=True)
    if counts["epochs_differ"].any() and "epochs" not in settings.allow:
        row = counts[counts["epochs_differ"] > 0].iloc[0]
        raise RecordError(
            f"compare: {base.name} and {changed.name} differ in the number of epochs of {row['epochs_differ']} items "
            f"of {row['task']}. Give logs with the same epochs, or add --allow epochs to compare means over unequal "
            "ones."
        )
    return PairedItems(changed.name, frame, metrics, counts, tuple(dict.fromkeys(notes)))


def _allowed_differences(base: EvalLog, changed: EvalLog, allow: Collection[str]) -> list[str]:
    """Return the settings in which two logs differ and may, as sentences."""
    notes = []
    for place, value, other in differences(base.settings, changed.settings):
        task, _, setting = place.rpartition(".")
        if not isinstance(value, str) or not isinstance(other, str):  # one log does not say
            continue
        difference = f"{base.name} and {changed.name} differ in {ALLOWED[setting]} of {task}: {value[:80]} and"
        if setting not in allow:
            raise RecordError(
                f"compare: {difference} {other[:80]}. What differs is then not the model's alone. Give logs that were "
                f"made alike, or add --allow {setting}."
            )
        notes.append(f"{difference} {other[:80]}; this was allowed.")
    return notes


def _shares(base: EvalLog, changed: EvalLog, metrics: Sequence[str]) -> pd.DataFrame:
    """Return task x "metric:NAME": whether the metric is one of the task's, between 0 and 1 in both logs."""
    items = pd.concat([log.items.astype({"task": "str"}) for log in (base, changed)])
    names = [f"metric:{name}" for name in metrics if name not in (MARGIN, LOGLIK) and f"weight:{name}" not in items]
    values, task = items[names], items["task"]
    return values.notna().groupby(task).any() & ((values.ge(0) & values.le(1)) | values.isna()).groupby(task).all()


def _items(log: EvalLog, shares: pd.DataFrame | None) -> tuple[pd.DataFrame, pd.Series]:
    """Return items with the mean of their epochs, and per task how many rows repeat an earlier one, which they replace.

    Units are items, not rows: epochs of an item are no independent ones. Items of one id and other contents are other
    items. Added: `epochs`, `partial`, whether an item is scored in some epochs of its task only, and `wrong`, whether
    it has no score and counts as wrong by `shares`.

    Raises:
        RecordError: An id has several scores, and nothing tells its items apart.
    """
    frame = _numbered(log).astype({"state": "str"})
    values = [f"metric:{name}" for name in log.metrics]
    frame.loc[frame["state"] != "", values] = np.nan
    frame["wrong"] = False
    if shares is not None:
        own = list(map(str, shares))
        lacking = frame[own].isna() & shares.loc[frame["task"]].to_numpy()
        lacking = lacking.mul(frame["state"] != INVALIDATED, axis=0)
        frame[own] = frame[own].mask(lacking, 0.0)
        frame["wrong"] = lacking.any(axis=1) & (frame["state"] != ERRORED)
    again = frame.duplicated(["task", "item", "epoch"], keep="last")
    repeated = again.groupby(frame["task"]).sum()
    frame = frame[~again]
    frame = frame.assign(epochs=np.int32(1), partial=frame[values].notna().any(axis=1).astype(float))
    if frame.duplicated(["task", "item"]).any():
        frame = frame.sort_values("state", kind="stable")  # an item is invalidated where all its epochs are
        how = dict.fromkeys(frame.columns, "first") | dict.fromkeys([*values, "invalid"], "mean") | {"wrong": "max"}
        how |= {"epochs": "sum", "partial": "sum"}
        frame = frame.groupby(["task", "item"], sort=False, as_index=False, observed=True).agg(how)
    most = frame.groupby("task")["epochs"].transform("max")
    return frame.assign(partial=frame["partial"].between(0, most, inclusive="neither")).reset_index(drop=True), repeated


def _numbered(log: EvalLog) -> pd.DataFrame:
    """Return the items, those of one id and several contents under different names."""
    frame = log.items.astype({"task": "str"})
    keys = ["task", "item", "epoch"]
    twice = frame.duplicated(keys, keep=False)
    if not twice.any():
        return frame
    contents = frame[twice].groupby(keys)["content"].transform("nunique").reindex(frame.index, fill_value=1)
    unknown = frame[twice & (frame["content"] == 0)]
    other = unknown.drop_duplicates([*keys, *(f"metric:{name}" for name in log.metrics)])
    if other.duplicated(keys).any():
        row = other[other.duplicated(keys)].iloc[0]
        raise RecordError(
            f"{log.name}: item {row['item']!r} of {row['task']} has several scores and no prompt that tells them "
            "apart. Give each item an id, or add a column prompt or epoch."
        )
    return frame.assign(item=frame["item"].where(contents < 2, frame["item"] + "#" + frame["content"].astype("str")))


def _matches(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    """Return `left` and `right` row numbers of pairs, `by` ("id", "content" or "other") and `task`."""
    sides = [frame[["task", "item", "content"]].assign(row=np.arange(len(frame))) for frame in (left, right)]
    pairs = sides[0].merge(sides[1], on=["task", "item"], suffixes=SIDES)
    contents = [pairs[f"content{side}"] for side in SIDES]
    equal = (contents[0] == contents[1]) | (contents[0] == 0) | (contents[1] == 0)
    by_id, differing = pairs[equal], pairs[~equal]
    rest = [side[~side["row"].isin(by_id[f"row{name}"])] for side, name in zip(sides, SIDES)]
    rest = [side[(side["content"] != 0) & ~side.duplicated(["task", "content"], keep=False)] for side in rest]
    by_content = rest[0].merge(rest[1], on=["task", "content"], suffixes=SIDES)
    # Where items were numbered anew, an id that two contents share is no sign of another prompt.
    other = differing[~differing["task"].isin(set(by_content["task"]))]
    found = pd.concat([own.assign(by=by) for by, own in (("id", by_id), ("content", by_content), ("other", other))])
    found = found.rename(columns={"rowbase": "left", "rowchanged": "right"})
    return found[["task", "left", "right", "by"]].sort_values("left", ignore_index=True, kind="stable")


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
    names = [
        "answer",
        "invalid",
        "state",
        "others",
        "partial",
        "wrong",
        *(f"metric:{metric}" for metric in metrics),
        *weights,
    ]
    keys = ["task", "item", "content", "case", *(f"field:{name}" for name in base.fields)]
    first = left.loc[rows["left"], [*keys, *names]].reset_index(drop=True)
    second = right.loc[rows["right"], names].reset_index(drop=True)
    first = first.rename(columns={name: f"{name}/{BASE}" for name in names})
    return pd.concat([first, second.add_suffix(f"/{CHANGED}")], axis=1).astype({"task": "category"})


def _states(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[[f"state/{side}" for side in SIDES]]


def _counts(
    rows: pd.DataFrame, left: pd.DataFrame, right: pd.DataFrame, repeated: pd.Series, frame: pd.DataFrame
) -> pd.DataFrame:
    tasks = list(dict.fromkeys([*left["task"], *right["task"]]))
    epochs = left["epochs"].to_numpy()[rows["left"]] != right["epochs"].to_numpy()[rows["right"]]
    paired, task = rows.groupby("task").size(), frame["task"].astype("str")
    invalidated, errored = (_states(frame) == INVALIDATED).any(axis=1), _states(frame) == ERRORED
    columns = {
        "paired": (~invalidated).groupby(task).sum(),
        "invalidated": invalidated.groupby(task).sum(),
        "errored_before": errored[f"state/{BASE}"].groupby(task).sum(),
        "errored_after": errored[f"state/{CHANGED}"].groupby(task).sum(),
        "partial_before": frame[f"partial/{BASE}"].groupby(task).sum(),
        "partial_after": frame[f"partial/{CHANGED}"].groupby(task).sum(),
        "wrong_before": frame[f"wrong/{BASE}"].groupby(task).sum(),
        "wrong_after": frame[f"wrong/{CHANGED}"].groupby(task).sum(),
        "renumbered": rows[rows["by"] == "content"].groupby("task").size(),
        "other_content": rows[rows["by"] == "other"].groupby("task").size(),
        "only_base": left.groupby("task").size().sub(paired, fill_value=0),
        "only_changed": right.groupby("task").size().sub(paired, fill_value=0),
        "epochs_differ": pd.Series(epochs, dtype=int).groupby(rows["task"]).sum(),
        "repeated": repeated,
    }
    counts = pd.DataFrame({name: column.reindex(tasks) for name, column in columns.items()}, index=tasks)
    return counts.fillna(0).astype(int).rename_axis("task").reset_index()


# Groups and clusters of items: fields that benchmarks are known by, named columns, or a file.


def wanted_fields(settings: CompareSettings) -> tuple[str, ...]:
    """Return the fields that readers keep."""
    known = [name for names in KNOWN_CLUSTERS for name in names]
    return tuple(dict.fromkeys([*settings.groups, *KNOWN_GROUPS, *(settings.clusters or known)]))


def check_fields(log: EvalLog, settings: CompareSettings) -> None:
    """Raise RecordError for a field that no item has; it names the fields there are."""
    for option, names in (("group", settings.groups), ("cluster", settings.clusters)):
        if missing := [name for name in names if name not in log.fields]:
            fields = ", ".join(sorted({*log.known, *log.fields})[:40]) or "none"
            raise RecordError(
                f"compare: no item of {log.name} has the {option} field {missing[0]!r}; fields are {fields}. Name one "
                "of them, or give it with --mapping FILE."
            )


def add_mapping(log: EvalLog, file: Path) -> EvalLog:
    """Return a log with the columns of a table as fields, joined by item, and by task where the table has one.

    Raises:
        RecordError: The table names an item twice, or none of the log's items.
    """
    table, key = read_table_file(file)
    keys = ["task", "item"] if "task" in table else ["item"]
    table = table.rename(columns={key: "item"}).astype(dict.fromkeys(keys, "str"))
    names = [str(name) for name in table if name not in keys]
    if table.duplicated(keys).any():
        row = table.loc[table.duplicated(keys), keys].iloc[0].tolist()
        raise RecordError(f"{file}: two rows of {' '.join(map(str, row))}, expected one row per item. Remove one.")
    columns = [f"field:{name}" for name in names]
    items = log.items.drop(columns=columns, errors="ignore").astype({"task": "str"})
    joined = items.merge(table.rename(columns=dict(zip(names, columns))), on=keys, how="left")
    if joined[columns].isna().all(axis=None):
        raise RecordError(
            f"{file}: none of its items is in the log of {log.name}, which has such as {log.items['item'].iloc[0]!r}. "
            "Name items as the log does."
        )
    joined = joined.astype(dict.fromkeys(columns, "str")).astype(dict.fromkeys(["task", *columns], "category"))
    return replace(log, items=joined, fields=tuple(dict.fromkeys([*log.fields, *names])))


def cluster_codes(frame: pd.DataFrame, clusters: Sequence[str]) -> tuple[dict[str, Codes], str]:
    """Return the clusters of items by dimension, and in words what they are.

    Args:
        frame: Items with columns "field:NAME", `case`, `content`, `task` and `item`.
        clusters: Fields, each of which is a dimension; () = the first of `KNOWN_CLUSTERS` that an item has.

    Returns:
        Dimension -> (n,) codes. An item without a value shares a cluster with the same document of other tasks only.
    """
    alone = frame["task"].astype("str") + "\x1f" + frame["item"].astype("str")
    alone = alone.where(frame["case"] == 0, frame["case"].astype("str"))
    if clusters:
        codes = {name: pd.factorize(_labels(frame, (name,), alone))[0] for name in clusters}
        return codes, " and ".join(clusters)
    labels, used = alone, list[str]()
    for names in KNOWN_CLUSTERS[::-1]:
        if all(f"field:{name}" in frame for name in names):
            labels = _labels(frame, names, labels)
            used.insert(0, "/".join(names))
    kinds = set(labels.str.partition("\x1f")[0])
    return {"cluster": pd.factorize(labels)[0]}, ", ".join(name for name in used if name in kinds)


def _labels(frame: pd.DataFrame, names: Sequence[str], otherwise: pd.Series) -> pd.Series:
    """Return the values of fields as one text, where all are there: the same in every task."""
    columns = [frame[f"field:{name}"] for name in names]
    there = pd.concat([column.notna() & (column != "") for column in columns], axis=1).all(axis=1)
    text = columns[0].astype("str")
    for column in columns[1:]:
        text = text + "/" + column.astype("str")
    return otherwise.where(~there, "/".join(names) + "\x1f" + text)
