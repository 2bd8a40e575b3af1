"""Which item of one log is which of another, what keeps two logs from being a pair, and which items belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pandas as pd

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.terminal import quantity
from seesaw_cf.logs import ALLOWED, LOGLIK, MARGIN, CompareSettings
from seesaw_cf.logs.log import ERRORED, INVALIDATED, EvalLog
from seesaw_cf.run.manifest import differences
from seesaw_cf.stats.crossing import Codes

SIDES = ("before", "after")
KNOWN_GROUPS = (
    *("category", "context_condition", "question_polarity"),  # BBQ
    *("bias_type", "stereo_antistereo"),  # CrowS-Pairs, StereoSet
    *("condition", "gender", "race", "religion", "region", "nationality"),  # WinoBias, Winogender and others
)
"""Fields of documents that are groups, beside those that are named."""
KNOWN_CLUSTERS = (("cluster",), ("pair_id",), ("category", "question_index"), ("occupation", "participant"))
"""Fields that together name what items share: a story (BBQ), a sentence in several forms. The first that are there."""
_OF_ONE = ("errored", "partial", "wrong")
_COUNTED = ["paired", "only_base", "only_changed", "invalidated", "renumbered", "other_content", "epochs_differ"]
_COUNTED += ["repeated", *(f"{name}_{side}" for name in _OF_ONE for side in SIDES)]


@dataclass(frozen=True, eq=False)
class PairedItems:
    """Items that are in both logs.

    Attributes:
        name: Of the changed model.
        frame: A row per item: `task`, `item`, `content`, `case`, "field:NAME" of the base, and ending with "_before"
            and "_after" `answer`, `invalid`, `others`, each "metric:NAME", the mean over epochs, and "weight:NAME".
        metrics: Names that both logs have.
        counts: One row per task: `task`, `paired`, `only_base`, `only_changed`, `invalidated`, of which none counts,
            `renumbered` (paired by content under another id), `other_content` (paired by id though the content
            differs), `epochs_differ`, `repeated`; and before and after `errored`, `partial` (scored in some of their
            epochs), `wrong` (without score and error, counted as wrong).
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
    settings, logs = settings or CompareSettings(), (base, changed)
    metrics = tuple(metric for metric in base.names("metric") if metric in changed.names("metric"))
    differ = (
        (*place.rpartition(".")[::2], f"{value[:80]} and {other[:80]}")
        for place, value, other in differences(base.settings, changed.settings)
        if isinstance(value, str) and isinstance(other, str)  # otherwise one log does not say
    )
    notes = [*base.notes, *changed.notes, *_allowed(logs, differ, settings)]
    for log in logs:
        alone = [metric for metric in log.names("metric") if metric not in metrics]
        notes += [f"{metric} is only in {log.name}, so it is not compared." for metric in alone]
    shares = _shares(logs, metrics) if settings.errors == "wrong" else None
    left, right = (_items(log, shares) for log in logs)
    rows = _matches(left, right)
    if rows.empty:
        tasks = [list(map(str, log.items["task"].cat.categories))[:5] for log in logs]
        raise RecordError(
            f"compare: no item is in both logs: {base.name} has tasks {tasks[0]}, {changed.name} has tasks {tasks[1]}. "
            "Give logs of the same tasks."
        )
    frame = _joined(left.loc[rows["before"]], right.loc[rows["after"]], rows["by"], base.names("field"), metrics)
    lists = [frame.assign(paired=~frame["invalidated"])]
    lists += [left.drop(rows["before"])[["task"]].assign(only_base=True)]
    lists += [right.drop(rows["after"])[["task"]].assign(only_changed=True)]
    flags = pd.concat([own.set_index("task").filter(_COUNTED).astype(float) for own in lists])
    counts = flags.groupby("task", sort=False).sum().reindex(columns=_COUNTED, fill_value=0).astype(int).reset_index()
    flags_of = {"content": "other_content", "epochs": "epochs_differ"}
    differ = (
        (row["task"], setting, quantity(row[flag], "item"))
        for row in counts.to_dict("records")
        for setting, flag in flags_of.items()
        if row[flag]
    )
    notes += _allowed(logs, differ, settings)
    frame = frame[~frame["invalidated"]].reset_index(drop=True).astype({"task": "category"})
    return PairedItems(changed.name, frame, metrics, counts, tuple(dict.fromkeys(notes)))


def _allowed(
    logs: Sequence[EvalLog], differ: Iterable[tuple[str, str, str]], settings: CompareSettings
) -> Iterator[str]:
    """Yield (task, setting, values) in which two logs differ and may, as sentences; RecordError: they may not."""
    for task, setting, values in differ:
        difference = f"{' and '.join(log.name for log in logs)} differ in {ALLOWED[setting]} of {task}: {values}"
        if setting not in settings.allow:
            raise RecordError(
                f"compare: {difference}. What differs is then not the model's alone. Give logs that were made alike, "
                f"or add --allow {setting}."
            )
        yield f"{difference}; this was allowed."


def _shares(logs: Sequence[EvalLog], metrics: Sequence[str]) -> pd.DataFrame:
    """Return task x "metric:NAME": whether the metric is one of the task's, between 0 and 1 in both logs."""
    items = pd.concat([log.items.astype({"task": "str"}) for log in logs])
    names = [f"metric:{name}" for name in metrics if name not in (MARGIN, LOGLIK) and f"weight:{name}" not in items]
    values, task = items[names], items["task"]
    return values.notna().groupby(task).any() & (values.isna() | ((values >= 0) & (values <= 1))).groupby(task).all()


def _items(log: EvalLog, shares: pd.DataFrame | None) -> pd.DataFrame:
    """Return items with the mean of their epochs; a row that repeats one of the same epoch replaces it.

    Units are items, not rows: epochs of an item are no independent ones. Items of one id and other contents are other
    items. Added: `epochs`, `repeated` (rows that were replaced), `errored`, `invalidated`, `partial`, whether an item
    is scored in some epochs of its task only, and `wrong`, whether it has no score and counts as wrong by `shares`.

    Raises:
        RecordError: An id has several scores, and nothing tells its items apart.
    """
    frame, values = _numbered(log), [f"metric:{name}" for name in log.names("metric")]
    frame = frame.assign(errored=frame["state"] == ERRORED, invalidated=frame["state"] == INVALIDATED, wrong=False)
    frame.loc[frame["state"] != "", values] = np.nan
    if shares is not None:
        own = list(map(str, shares))
        lacking = frame[own].isna() & shares.loc[frame["task"]].to_numpy() & ~frame[["invalidated"]].to_numpy()
        frame[own] = frame[own].mask(lacking, 0.0)
        frame["wrong"] = lacking.any(axis=1) & ~frame["errored"]
    keys = ["task", "item", "epoch"]
    frame = frame.assign(repeated=frame.groupby(keys).cumcount()).drop_duplicates(keys, keep="last")
    frame = frame.assign(epochs=1, partial=frame[values].notna().any(axis=1).astype(int))
    if frame.duplicated(keys[:2]).any():
        how = dict.fromkeys(frame.columns, "first") | dict.fromkeys([*values, "invalid"], "mean")
        how |= dict.fromkeys(("epochs", "partial", "repeated"), "sum")
        how |= {"wrong": "max", "errored": "max", "invalidated": "min"}
        frame = frame.groupby(keys[:2], sort=False, as_index=False).agg(how)
    most = frame.groupby("task")["epochs"].transform("max")
    return frame.assign(partial=frame["partial"].between(0, most, inclusive="neither")).reset_index(drop=True)


def _numbered(log: EvalLog) -> pd.DataFrame:
    """Return the items, those of one id and several contents under different names."""
    frame, keys = log.items.astype({"task": "str", "state": "str"}), ["task", "item", "epoch"]
    twice = frame[frame.duplicated(keys, keep=False)]
    unknown = twice[twice["content"] == 0].drop_duplicates([*keys, *(f"metric:{n}" for n in log.names("metric"))])
    if unknown.duplicated(keys).any():
        row = unknown[unknown.duplicated(keys)].iloc[0]
        raise RecordError(
            f"{log.name}: item {row['item']!r} of {row['task']} has several scores and no prompt that tells them "
            "apart. Give each item an id, or add a column prompt or epoch."
        )
    several = twice[twice.groupby(keys)["content"].transform("nunique") > 1]
    frame.loc[several.index, "item"] = several["item"] + "#" + several["content"].astype("str")
    return frame


def _matches(left: pd.DataFrame, right: pd.DataFrame) -> pd.DataFrame:
    """Return row numbers of pairs, `before` and `after`, and `by`: "id", "content" or "other"."""
    sides = [own[["task", "item", "content"]].assign(row=np.arange(len(own))) for own in (left, right)]
    pairs = sides[0].merge(sides[1], on=["task", "item"])
    is_equal = (pairs["content_x"] == pairs["content_y"]) | (pairs[["content_x", "content_y"]] == 0).any(axis=1)
    by_id = pairs[is_equal]
    rest = [own[~own["row"].isin(by_id[name]) & (own["content"] != 0)] for own, name in zip(sides, ("row_x", "row_y"))]
    rest = [own[~own.duplicated(["task", "content"], keep=False)] for own in rest]
    by_content = rest[0].merge(rest[1], on=["task", "content"])
    # Where items were numbered anew, an id that two contents share is no sign of another prompt.
    other = pairs[~is_equal & ~pairs["task"].isin(by_content["task"])]
    found = pd.concat([own.assign(by=by) for by, own in (("id", by_id), ("content", by_content), ("other", other))])
    found = found.rename(columns={"row_x": "before", "row_y": "after"})
    return found.sort_values("before", ignore_index=True, kind="stable")


def _joined(
    left: pd.DataFrame, right: pd.DataFrame, by: pd.Series, fields: Sequence[str], metrics: Sequence[str]
) -> pd.DataFrame:
    """Return paired rows side by side: the frame of `PairedItems`, with the flags that are counted."""
    left, right = left.reset_index(drop=True), right.reset_index(drop=True)
    columns = [f"{kind}:{name}" for kind in ("metric", "weight") for name in metrics]
    columns = [*("answer", "invalid", "others"), *_OF_ONE, *columns]
    names = [name for name in columns if name in left and name in right]
    shared = left[["task", "item", "content", "case", *(f"field:{name}" for name in fields)]].assign(
        invalidated=left["invalidated"] | right["invalidated"],
        renumbered=by == "content",
        other_content=by == "other",
        epochs_differ=left["epochs"] != right["epochs"],
        repeated=left["repeated"] + right["repeated"],
    )
    return pd.concat([shared, left[names].add_suffix("_before"), right[names].add_suffix("_after")], axis=1)


def left_out(pairs: PairedItems) -> Iterator[str]:
    """Yield which metrics are no number of an item, such as those of a whole task."""
    for task, own in pairs.frame.groupby("task", observed=True, sort=False):
        logged = pd.DataFrame([others for side in SIDES for others in own[f"others_{side}"]], dtype=object)
        for metric in map(str, logged):
            columns = [f"metric:{metric}_{side}" for side in SIDES]
            is_scored = metric in pairs.metrics and bool(own[columns].notna().to_numpy().any())
            example = shown(next(iter(logged[metric].dropna()), ""), 40)
            what = f"{metric} of {task} is no number of {'some items' if is_scored else 'an item'} (such as {example})"
            yield f"{what}, so {'it counts as no score there' if is_scored else 'it is not compared'}."


# Groups and clusters of items: fields that benchmarks are known by, or named ones.


def wanted_fields(settings: CompareSettings) -> tuple[str, ...]:
    """Return the fields that readers keep."""
    known = [name for names in KNOWN_CLUSTERS for name in names]
    return tuple(dict.fromkeys([*settings.groups, *KNOWN_GROUPS, *(settings.clusters or known)]))


def check_fields(log: EvalLog, settings: CompareSettings) -> None:
    """Raise RecordError where no item has a field that is named as groups or clusters."""
    for option, names in (("group", settings.groups), ("cluster", settings.clusters)):
        if missing := [name for name in names if name not in log.names("field")]:
            fields = ", ".join(sorted({*log.known, *log.names("field")})[:40]) or "none"
            raise RecordError(
                f"compare: no item of {log.name} has the {option} field {missing[0]!r}; fields are {fields}. Name one "
                "of them, or add it to the log or to a CSV file of its scores."
            )


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
    labels, known = alone, [names for names in KNOWN_CLUSTERS if all(f"field:{name}" in frame for name in names)]
    for names in known[::-1]:
        labels = _labels(frame, names, labels)
    kinds = set(labels.str.partition("\x1f")[0])
    return {"cluster": pd.factorize(labels)[0]}, ", ".join(kind for kind in map("/".join, known) if kind in kinds)


def _labels(frame: pd.DataFrame, names: Sequence[str], otherwise: pd.Series) -> pd.Series:
    """Return the values of fields as one text, where all are there: the same in every task."""
    columns = frame[[f"field:{name}" for name in names]].astype("str").fillna("")
    text = reduce(lambda first, second: first + "/" + second, (columns[name] for name in columns))
    return otherwise.where((columns == "").any(axis=1), "/".join(names) + "\x1f" + text)
