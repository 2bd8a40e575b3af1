"""What pages about long texts say of ratings and claims: titles, sentences, and dumbbells from before to after."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from seesaw_cf.base.terminal import listed
from seesaw_cf.effects.survey_items import ITEMS
from seesaw_cf.report import text
from seesaw_cf.report.html.findings import Legend, Panels, Part, TitleRules
from seesaw_cf.report.html.forest import Axis, ForestColumn, ForestRow, Mark, Panel
from seesaw_cf.texts.report.values import BASELINE

_BY_NAME = {item.name: item.statement for item in ITEMS}
_LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class TextSummary:
    """What a title is made of.

    Attributes:
        written: Texts that there are.
        asked: Something was rated or annotated.
        drift: Changes of the share of untouched facts that are contradicted, by one annotator, the surest first; None
            where no claims were annotated.
        lower: Tests of whether ratings by one rater are lower than before, the surest first; None without ratings.
    """

    written: int
    asked: bool
    drift: Sequence[Mapping[Any, Any]] | None
    lower: Sequence[Mapping[Any, Any]] | None

    @property
    def drifted(self) -> str:
        """Changes of contradicted facts that stand after Holm, in words; "" where there is none."""
        rows = [row for row in self.drift or () if row["p_adjusted"] < _LEVEL]
        return listed([f"{row['method']} {_points(row)} (texts about the {row['passage']})" for row in rows])

    @property
    def drifts_up(self) -> bool:
        """The surest change is for the worse."""
        return bool(self.drift) and self.drift[0]["value"] > 0  # type: ignore[index]

    @property
    def fallen(self) -> str:
        """Ratings that fell after Holm, in words; "" where there is none."""
        rows = [row for row in self.lower or () if row["p_adjusted"] < _LEVEL]
        return listed([f"{_item(row['metric'])} {_fall(row)} ({row['method']})" for row in rows])


TITLE: Sequence[TitleRules[TextSummary]] = (
    (
        (lambda texts: not texts.written, "No text was written."),
        (
            lambda texts: not texts.asked,
            "{0.written:,} texts were written. What the edits did to them is not known: nobody rated them, and no "
            "claim was annotated.",
        ),
        (lambda texts: texts.drift is None, ""),
        (
            lambda texts: texts.drifted and texts.drifts_up,
            "Texts after edits contradict facts that no edit touches more often: {0.drifted}.",
        ),
        (lambda texts: texts.drifted, "How often texts contradict facts that no edit touches changes: {0.drifted}."),
        (
            lambda texts: not any(math.isfinite(row["low"]) for row in texts.drift or ()),
            "Whether texts contradict facts that no edit touches more often cannot be told from so few cases.",
        ),
        (lambda texts: True, "No editor is shown to change how often texts contradict facts that no edit touches."),
    ),
    (
        (lambda texts: texts.lower is None or not texts.written, ""),
        (lambda texts: texts.fallen, "Ratings are lower than before the edit: {0.fallen}."),
        (lambda texts: True, "No rating is shown to be lower than before the edit."),
    ),
)


def text_summary(written: int, frames: Mapping[str, pd.DataFrame | None]) -> TextSummary:
    """Return what a title is made of.

    Args:
        written: Texts that there are.
        frames: "drift" and "survey_tests" of `longform_sections`, where there are such; "labels" and "survey".
    """
    parts = []
    for name, who in (("drift", "annotator"), ("survey_tests", "rater")):
        frame = frames.get(name)
        surest = None if frame is None or frame.empty else frame.sort_values("p_adjusted", kind="stable")
        parts.append(None if surest is None else _of_one(surest, who)[1])
    return TextSummary(written, any(frames.get(name) is not None for name in ("labels", "survey")), *parts)


def _points(row: Mapping[Any, Any]) -> str:
    return text.minus(text.points(row["value"], row["low"], row["high"], " points"))


def _fall(row: Mapping[Any, Any]) -> str:
    return text.minus(text.estimate(row["difference"], row["low"], row["high"], "+.2f"))


def took(frames: Mapping[str, pd.DataFrame | None]) -> str:
    """Return whether texts about the subject say the new fact; "" where nobody was asked.

    Args:
        frames: "labels", shares of claims, or "survey", means of ratings.
    """
    labels = frames.get("labels")
    if labels is not None:
        chosen = labels.query("passage == 'subject' and claim_kind == 'new_fact' and label == 'supports'")
        who, rows = _of_one(chosen, "annotator")
        if shares := [f"{row['method']} {share_said(row)}" for row in rows]:
            return f"Texts about the subject that say the new fact, annotated by {who}: {', '.join(shares)}."
    survey = frames.get("survey")
    if survey is not None:
        chosen = survey[survey["metric"] == "new_fact_main_passage"]
        who, rows = _of_one(chosen.dropna(subset="value"), "rater")
        if shares := [f"{row['method']} {_rating(row)}" for row in rows]:
            return f"“{_BY_NAME['new_fact_main_passage']}”, 1 to 7, rated by {who}: {', '.join(shares)}."
    return ""


def _of_one(frame: pd.DataFrame, column: str) -> tuple[str, list[dict[Any, Any]]]:
    """Return name and rows of one rater, the first that is not a baseline: all methods are compared on one scale."""
    names = sorted(map(str, frame[column].unique()), key=lambda name: ("baseline" in name, name))
    return (names[0], methods(frame[frame[column].astype(str) == names[0]])) if names else ("", [])


def methods(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return rows for sentences, the unedited model first and named so."""
    rows = sorted(frame.to_dict("records"), key=lambda row: str(row["method"]) != BASELINE)
    return [row | {"method": _method(row)} for row in rows]


def _method(row: Mapping[Any, Any]) -> str:
    name = "before the edit" if row["method"] == BASELINE else str(row["method"])
    return f"{name} ({row['dataset']})" if "dataset" in row else name


def share_said(row: Mapping[Any, Any]) -> str:
    """Return a share in per cent with its interval, and n."""
    if not math.isfinite(row["value"]):
        return "–"
    return f"{text.percent_interval(row['value'], row['low'], row['high'])} of {row['n']}"


def _rating(row: Mapping[Any, Any]) -> str:
    return f"{text.estimate(row['value'], row['low'], row['high'])} (n = {row['n']})"


def measure_plots(
    labels: pd.DataFrame | None, survey: pd.DataFrame | None, colours: Mapping[str, int], quality: str = ""
) -> list[Part]:
    """Return claims and ratings from before to after each editor, and what the marks mean; nothing without either.

    Args:
        labels: Of `label_shares`.
        survey: Means of ratings.
        colours: Editor -> number of its colour.
        quality: How often the annotator is right, said where its labels are shown.
    """
    plots = [*_claims_plot(labels, colours, quality), *_survey_plot(survey, colours)]
    names = [(colour, 0, name) for name, colour in colours.items() if name != BASELINE]
    about = "Hollow: before any edit. Dot and line: after it, with its 95 % interval (open: no interval)."
    return [Legend(names, about), *plots] if plots else []


def _survey_plot(frame: pd.DataFrame | None, colours: Mapping[str, int]) -> list[Part]:
    """Return means of every statement by rater, from before to after each editor; nothing without ratings."""
    if frame is None or frame.empty:
        return []
    axis, order = Axis(1.0, 7.0), list(_BY_NAME)
    panels: list[Panel] = []
    for rater, own in _raters_first(frame, "rater"):
        cells = {(row["metric"], row["method"]): row for row in own.to_dict("records")}
        rows = []
        for metric, method in sorted(_edited(cells), key=lambda key: order.index(str(key[0]))):
            row, before = cells[metric, method], cells.get((metric, BASELINE)) if method != BASELINE else None
            words = f"{_item(metric)}, {method}: {_rating(row)}" + (f"; before: {_rating(before)}" if before else "")
            mark = _dumbbell(row, before, axis, colours, words)
            rows.append(ForestRow(f"{_item(metric)} · {method}", _ends(row, before, ".1f"), [mark]))
        about = "Means of case means, 1 to 7, 95 % intervals clustered by case; right is better"
        column = ForestColumn("rating", axis)
        heads = ("statement", "before → after")
        panels.append(Panel(f"Ratings by {rater}", about, heads, [column], "1 to 7", rows, opened=not panels))
    return [Panels(panels)]


def _claims_plot(labels: pd.DataFrame | None, colours: Mapping[str, int], quality: str) -> list[Part]:
    """Return shares of claims by annotator, passage and kind, before and after each editor; nothing without claims."""
    if labels is None or labels.empty:
        return []
    axis, sides = Axis(0.0, 1.0), ("supports", "contradicts")
    panels: list[Panel] = []
    for annotator, marked in _raters_first(labels, "annotator"):
        for passage, own in marked.groupby("passage", sort=False):
            cells = {(row["claim_kind"], row["method"], row["label"]): row for row in own.to_dict("records")}
            rows = []
            for kind, method in sorted(_edited((kind, name) for kind, name, _ in cells), key=lambda key: str(key[0])):
                marks = []
                for side in sides:
                    row = cells[kind, method, side]
                    before = cells.get((kind, BASELINE, side)) if method != BASELINE else None
                    words = f"{method}, {_item(kind)}, {side}: {share_said(row)} claims"
                    words += f"; before: {share_said(before)}" if before else ""
                    marks.append(_dumbbell(row, before, axis, colours, words))
                count = cells[kind, method, "supports"]
                rows.append(ForestRow(f"{_item(kind)} · {method}", f"{count['n']}, {count['n_cases']}", marks))
            title = f"Claims that texts about the {passage} support and contradict, marked by {annotator}"
            about = " ".join(filter(None, ["Share of claims, means over cases with 95 % intervals.", quality]))
            columns = [ForestColumn(side, axis) for side in sides]
            panels.append(
                Panel(title, about, ("claim", "claims, cases"), columns, "share of claims", rows, opened=not panels)
            )
    return [Panels(panels)]


def _raters_first(frame: pd.DataFrame, column: str) -> list[tuple[str, pd.DataFrame]]:
    """Return who rated what, baselines last: each data set by itself where there are several."""
    by = [name for name in (column, "dataset") if name in frame]
    groups = [(", ".join(map(str, names)), own) for names, own in frame.groupby(by, sort=True, observed=True)]
    return sorted(groups, key=lambda group: "baseline" in group[0])


def _edited(keys: Iterable[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return what is shown in a line: every method but the unedited model, which is alone where nothing was edited."""
    every = list(dict.fromkeys(keys))
    edited = [key for key in every if key[1] != BASELINE]
    return edited or every


def _item(name: object) -> str:
    return "untouched fact" if name == "ground_truth" else str(name).replace("_", " ")


def _ends(row: Mapping[Any, Any], before: Mapping[Any, Any] | None, spec: str) -> str:
    return " → ".join(text.estimate(end["value"], None, None, spec) for end in (before, row) if end is not None)


def _dumbbell(
    row: Mapping[Any, Any], before: Mapping[Any, Any] | None, axis: Axis, colours: Mapping[str, int], words: str
) -> Mark | None:
    if not math.isfinite(row["value"]):
        return None
    start = axis.at(before["value"]) if before is not None and math.isfinite(before["value"]) else None
    span = axis.span(row["low"], row["high"])
    return Mark(axis.at(row["value"]), span, colours.get(str(row["method"]), 6), text.minus(words), before=start)
