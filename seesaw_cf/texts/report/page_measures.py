"""What pages about long texts say of ratings and claims: sentences and forest plots."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from seesaw_cf.effects.survey_items import ITEMS
from seesaw_cf.report import text
from seesaw_cf.report.html.findings import Legend, PageSection, Panels
from seesaw_cf.report.html.forest import Axis, ForestColumn, ForestRow, Mark, Panel
from seesaw_cf.texts.report.values import BASELINE

_BY_NAME = {item.name: item.statement for item in ITEMS}


def took(frames: Mapping[str, pd.DataFrame | None]) -> str:
    """Whether texts about the subject say the new fact.

    Args:
        frames: "labels", shares of claims, or "survey", means of ratings; without either the sentence tells so.
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
    return "Not measured: nothing was claimed or rated about these texts."


def _of_one(frame: pd.DataFrame, column: str) -> tuple[str, list[dict[Any, Any]]]:
    """Name and rows of one rater: the first that is not a baseline. Each method must be compared on the same scale."""
    names = sorted(map(str, frame[column].unique()), key=lambda name: ("baseline" in name, name))
    return (names[0], methods(frame[frame[column].astype(str) == names[0]])) if names else ("", [])


def methods(frame: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return rows for sentences, the unedited model first and named so."""
    rows = sorted(frame.to_dict("records"), key=lambda row: str(row["method"]) != BASELINE)
    return [row | {"method": "before the edit"} if row["method"] == BASELINE else row for row in rows]


def share_said(row: Mapping[Any, Any]) -> str:
    """A share with its interval and n, in per cent."""
    if not math.isfinite(row["value"]):
        return "–"
    return f"{text.percent_interval(row['value'], row['low'], row['high'])} of {row['n']}"


def _rating(row: Mapping[Any, Any]) -> str:
    return f"{text.estimate(row['value'], row['low'], row['high'])} (n = {row['n']})"


def survey_plot(frame: pd.DataFrame | None, colours: Mapping[str, int]) -> PageSection | None:
    """Means of every statement by rater and method; None without ratings."""
    if frame is None or frame.empty:
        return None
    axis = Axis(1.0, 7.0)
    panels = []
    for rater, own in frame.groupby("rater", sort=True):
        rows = [
            ForestRow(
                f"{_item(row['metric'])} · {row['method']}",
                f"{row['n']}, {row['n_cases']}",
                [_mark(row, axis, colours, f"{_item(row['metric'])}, {row['method']}: {_rating(row)}")],
            )
            for row in sorted(own.to_dict("records"), key=lambda row: list(_BY_NAME).index(str(row["metric"])))
        ]
        about = "Means of case means, 95 % intervals clustered by case; right is better"
        panels.append(
            Panel(
                f"rated by {rater}",
                about,
                ("statement", "ratings, cases"),
                [ForestColumn("rating", axis)],
                "1 to 7",
                rows,
            )
        )
    return PageSection("survey-plot", "Ratings", [_keys(colours), Panels(panels)])


def _item(name: object) -> str:
    return str(name).replace("_", " ")


def _mark(row: Mapping[Any, Any], axis: Axis, colours: Mapping[str, int], label: str) -> Mark | None:
    if not math.isfinite(row["value"]):
        return None
    span = axis.span(row["low"], row["high"])
    return Mark(axis.at(row["value"]), span, colours.get(str(row["method"]), 6), text.minus(label))


def _keys(colours: Mapping[str, int]) -> Legend:
    note = "Dot and line: mean and 95 % interval (open: no interval); none: before any edit. Tables have the numbers."
    return Legend([(colour, 0, name) for name, colour in colours.items()], note)


def claims_plot(labels: pd.DataFrame | None, colours: Mapping[str, int]) -> PageSection | None:
    """Shares of claims by passage, kind and method; None without claims."""
    if labels is None or labels.empty:
        return None
    axis, sides = Axis(0.0, 1.0), ("supports", "contradicts")
    panels = []
    for passage, own in labels.groupby("passage", sort=False):
        cells = {(row["claim_kind"], row["method"], row["label"]): row for row in own.to_dict("records")}
        keys = dict.fromkeys((kind, method) for kind, method, _ in cells)
        rows = []
        for kind, method in sorted(keys, key=lambda key: (str(key[0]), list(colours).index(str(key[1])))):
            support = cells[kind, method, "supports"]
            marks = [
                _mark(cells[kind, method, side], axis, colours, f"{method}, {_item(kind)}, {side}: "
                      f"{share_said(cells[kind, method, side])} claims")
                for side in sides
            ]  # fmt: skip
            rows.append(ForestRow(f"{_item(kind)} · {method}", f"{support['n']}, {support['n_cases']}", marks))
        title, heads = f"texts about the {passage}", ("claim", "claims, cases")
        about = "Share of claims, means over cases with 95 % intervals"
        panels.append(Panel(title, about, heads, [ForestColumn(side, axis) for side in sides], "share of claims", rows))
    return PageSection("claims-plot", "Claims that the texts support and contradict", [_keys(colours), Panels(panels)])
