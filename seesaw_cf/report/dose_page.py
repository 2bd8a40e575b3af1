"""`report.html` of a dose run: what happened as more and more facts were edited together."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import pandas as pd

from seesaw_cf.effects.dose import BAND, MOST_SHARED, Curves, group_doses, no_band, summarise_curves
from seesaw_cf.report import text
from seesaw_cf.report.html.findings import Findings, Legend, PageSection, Panels
from seesaw_cf.report.html.forest import (
    Axis,
    Charts,
    Curve,
    ForestColumn,
    ForestRow,
    Mark,
    Panel,
    Point,
    draw_chart,
    key_colours,
)
from seesaw_cf.report.provenance import recorded, repeat_command
from seesaw_cf.report.results import relation_name, sort_groups
from seesaw_cf.report.rows import DoseRow, Manifest, number_of, records, with_limits
from seesaw_cf.report.table import Column, Row, Table

_NAMED = 2  # lines that a sentence spells out
_MEASURES: Mapping[str, tuple[str, str]] = {
    "S": ("Score", "harmonic mean of the three below; 1 is best"),
    "ES": ("Efficacy", "edits after which the new target is likelier"),
    "PS": ("Generalisation", "the same after paraphrases"),
    "NS": ("Specificity", "neighbours whose true target is likelier"),
    "D": ("D_d of other people", "0 is best; below 0: less confident in what is right about them"),
    "perplexity": ("Perplexity", "of fixed texts; dashed: the unedited model"),
    "entropy": ("Entropy of answers", "nats, to fixed questions; dashed: the unedited model"),
}
POSSIBLE: Mapping[str, tuple[float, float]] = dict.fromkeys(("S", "ES", "PS", "NS"), (0.0, 1.0)) | {
    "D": (-1.0, 1.0),
    "perplexity": (1.0, math.inf),
    "entropy": (0.0, math.inf),
}
"""Values of the measures that there can be."""
_METHOD = (
    f"Facts are edited together, on samples that are drawn again for every repeat; a number is the mean over samples "
    f"with a {BAND:.0%} band for facts like these (t over samples, widened by what they share). There is none for one "
    f"sample, nor where two samples have more than {MOST_SHARED:.0%} of their facts in common. Shown bands end where "
    "values do, those of dose.csv do not.",
    "Score: harmonic mean of the shares of edits, paraphrases and neighbourhood prompts that come out as wanted.",
    "D_d is the change of p(new) − p(true) after prompts about other people who hold the new target.",
    "The collapse alarm is raised when the perplexity of fixed texts doubles or the entropy of the answers to fixed "
    "questions halves: scores of a collapsed model say nothing about bias.",
    "“Average of” two relations is both edited apart, as many facts of each as of both in the mix.",
)


def dose_findings(curves: Curves) -> Findings:
    """Return what the page shows."""
    table = summarise_curves(curves)
    groups = group_doses(curves)
    rows = records(table, DoseRow) if len(table) else []
    manifest = cast(Manifest, curves.manifest)
    numbers = PageSection("numbers", "The numbers", [dose_table(table)]) if rows else None
    settings = dict(curves.manifest.get("settings") or {})  # type: ignore[call-overload]
    model = manifest.get("model", {}).get("id", "a model")
    return Findings(
        title=f"Editing many facts of {model} together",
        said=(_edited(rows, str(model)), _took(rows), _affected(rows), _not_known(rows, groups), _sure(rows)),
        sections=[section for section in (_charts(rows, curves), numbers, _groups(groups)) if section],
        method=_METHOD,
        command=repeat_command(manifest, "dose", _options(settings)),
        facts=recorded(manifest),
        tables={name: frame for name, frame in (("dose", table), ("dose_groups", groups)) if len(frame)},
    )


def mix_name(mix: str) -> str:
    """The papers' words for the relations of a mix, or of the average of two."""
    return " + ".join(" ".join(map(relation_name, part.split())) for part in mix.split("+"))


def _options(settings: Mapping[str, Any]) -> dict[str, object]:
    pairs = [",".join(map(str, pair)) for pair in settings.get("pairs", ())]
    options = {"dose": list(settings.get("doses", ())), "pair": pairs}
    return options | {name: settings[name] for name in ("repeats", "people") if name in settings}


def _lines(rows: Sequence[DoseRow]) -> Iterator[tuple[str, list[DoseRow]]]:
    """Each editor and mix with its doses, by name."""
    keys = dict.fromkeys((row["editor"], row["mix"]) for row in rows)
    for editor, mix in keys:
        yield f"{editor}, {mix_name(mix)}", [row for row in rows if (row["editor"], row["mix"]) == (editor, mix)]


def _edited(rows: Sequence[DoseRow], model: str) -> str:
    if not rows:
        return f"Nothing was edited in {model}."
    doses = sorted({row["dose"] for row in rows})
    mixes = list(dict.fromkeys(mix_name(row["mix"]) for row in rows if "average of" not in row["mix"]))
    samples = sorted({row["repeats"] for row in rows})
    between = " to ".join(map(str, dict.fromkeys((samples[0], samples[-1]))))
    editors = ", ".join(dict.fromkeys(row["editor"] for row in rows))
    return (
        f"{', '.join(f'{dose:,}' for dose in doses)} facts together, about {', '.join(mixes)}, by {editors} in "
        f"{model}; {between} sample{'s' if samples[-1] > 1 else ''} of each."
    )


def _spelled(rows: Sequence[DoseRow], name: str, best: float) -> str:
    """A measure at the smallest and at the largest dose, of the lines that end furthest from the best value."""
    lines = [(who, line_rows) for who, line_rows in _lines(rows) if math.isfinite(number_of(line_rows[-1], name))]
    lines.sort(key=lambda line: -abs(number_of(line[1][-1], name) - best))
    sentences = [
        f"{who}: {_value(line_rows[0], name)} with {line_rows[0]['dose']:,}, {_value(line_rows[-1], name)} with "
        f"{line_rows[-1]['dose']:,} facts"
        for who, line_rows in lines[:_NAMED]
    ]
    return "; ".join(sentences) + (f"; {len(lines) - _NAMED} lines are better" if len(lines) > _NAMED else "")


def _took(rows: Sequence[DoseRow]) -> str:
    alarms = [f"{row['editor']}, {mix_name(row['mix'])}, {row['dose']:,} facts" for row in rows if row["collapsed"]]
    scores = _spelled(rows, "S", 1.0)
    if not scores:
        return "Not measured: no edit was made, or nothing was asked about the edits."
    raised = f" COLLAPSE ALARM for {'; '.join(alarms[:_NAMED])}{' and more' if len(alarms) > _NAMED else ''}."
    return f"Worst score (1 is best) – {scores}.{raised if alarms else ' No collapse alarm.'}"


def _affected(rows: Sequence[DoseRow]) -> str:
    scores = _spelled(rows, "D", 0.0)
    return f"Largest D_d of other people (0 is best) – {scores}." if scores else "Nobody was asked about."


def _not_known(rows: Sequence[DoseRow], groups: pd.DataFrame) -> str:
    parts = []
    if refused := sum(int(dict(row).get("refused", 0)) for row in rows if "average of" not in row["mix"]):  # type: ignore[call-overload]
        parts.append(f"{refused:,} edits were refused")
    bare = sum(all(math.isnan(number_of(row, f"{name}_low")) for name in _MEASURES) for row in rows)
    parts += [f"{bare} of {len(rows)} cells have no band: one sample, or samples that share facts"] if bare else []
    if groups.empty:
        parts.append("no prompt was about a person with a recorded group")
    return f"{'; '.join(parts)}." if parts else "Every cell has a band. No test was made: bands are no verdicts."


def _sure(rows: Sequence[DoseRow]) -> str:
    n = sum(row["repeats"] for row in rows if "average of" not in row["mix"])
    return f"{n} samples in {len(rows)} cells; {BAND:.0%} bands over samples, without correction for many of them."


def _band(row: Row, name: str) -> tuple[float, float, float]:
    """A mean and its band, cut to what there can be: bands of few samples are wide."""
    value, low, high = with_limits(row, name)
    least, most = POSSIBLE[name]
    return value, max(low, least) if math.isfinite(low) else low, min(high, most) if math.isfinite(high) else high


def _value(row: Row, name: str) -> str:
    return text.minus(text.estimate(*_band(row, name), ".3g", missing=f"({no_band(row['repeats'])})"))


def _charts(rows: Sequence[DoseRow], curves: Curves) -> PageSection | None:
    if not rows:
        return None
    doses = sorted({row["dose"] for row in rows})
    colours = key_colours(row["editor"] for row in rows)
    dashes = {mix: number % 4 for number, mix in enumerate(dict.fromkeys(row["mix"] for row in rows))}
    groups = list(_lines(rows))

    def curve(lines: Sequence[DoseRow], name: str, who: str) -> Curve:
        points = [
            Point(
                doses.index(row["dose"]), *_band(row, name), f"{who}, {row['dose']:,} facts: {_value(row, name)}",
                row["collapsed"],
            )
            for row in lines
        ]  # fmt: skip
        return Curve(colours[lines[0]["editor"]], dashes[lines[0]["mix"]], points)

    def levels(name: str) -> list[float]:
        before = {baseline.get(name) for baseline in curves.baseline.values() if isinstance(baseline, dict)}
        return sorted(value for value in before if value is not None)[:3]

    measures = [name for name in _MEASURES if any(math.isfinite(number_of(row, name)) for row in rows)]
    charts = [
        draw_chart(
            *_MEASURES[name], [f"{dose:,}" for dose in doses], [curve(own, name, who) for who, own in groups],
            levels(name) if name in ("perplexity", "entropy") else (),
        )
        for name in measures
    ]  # fmt: skip
    names = [(colours[own[0]["editor"]], dashes[own[0]["mix"]], who) for who, own in groups]
    note = f"Dot and upright line: mean and {BAND:.0%} band over samples (open: no band). ✕: collapse alarm."
    return PageSection("curves", "By number of facts", [Legend(names, note), Charts("facts edited together", charts)])


def dose_table(frame: pd.DataFrame) -> Table:
    """Return every measure of each editor, mix and dose; `frame` is that of `summarise_curves`."""
    columns = [
        Column("editor", words=True),
        Column("properties", lambda row: ": ".join(filter(None, (mix_name(row["mix"]), row["kind"]))), words=True),
        Column("facts", lambda row: f"{row['dose']:,}"),
        Column("edits / samples", lambda row: f"{row['edits']:.4g} / {row['repeats']}"),
        *(Column(head, partial(_value, name=name)) for name, (head, _) in _MEASURES.items()),
        Column("alarm", lambda row: row["alarm"] or None),
    ]
    about = f"Mean of samples with {BAND:.0%} bands"
    return Table("dose", "Dose and response", about, columns, frame, lines=_METHOD)


def _groups(groups: pd.DataFrame) -> PageSection | None:
    """Who was affected at the largest dose of every mix."""
    if groups.empty:
        return None
    colours = key_colours(groups["editor"])
    axis = Axis.around(groups["D"], [*groups["D_low"], *groups["D_high"]])

    def row(group_row: Mapping[Any, Any], several: bool) -> ForestRow:
        limits = (float(group_row["D_low"]), float(group_row["D_high"]))
        effect = text.estimate(group_row["D"], *limits, ".3g", missing=f"({no_band(group_row['repeats'])})")
        label = f"{group_row['editor']}, {group_row['group']}: {effect}; {group_row['n']} prompts"
        mark = Mark(axis.at(group_row["D"]), axis.span(*limits), colours[group_row["editor"]], text.minus(label))
        name = f"{group_row['group']} · {group_row['editor']}" if several else str(group_row["group"])
        return ForestRow(name, f"{group_row['repeats']}, {group_row['n']:,}", [mark])

    panels: list[Panel] = []
    for (mix, by), own in groups.groupby(["mix", "axis"], sort=False):
        largest = own[own["dose"] == own["dose"].max()]
        order = {name: number for number, name in enumerate(sort_groups(str(by), largest["group"]))}
        largest = largest.assign(order=largest["group"].map(order)).sort_values(["order", "editor"], kind="stable")
        lines = [row(record, len(colours) > 1) for record in largest.to_dict("records") if np.isfinite(record["D"])]
        title = f"{mix_name(str(mix))}, {int(largest['dose'].iloc[0]):,} facts together, by {by}"
        about = f"D_d, probability, mean of samples with {BAND:.0%} bands"
        unit = "D, probability"
        heads = ("group", "samples, prompts")
        panels.append(
            Panel(title, about, heads, [ForestColumn("hold the new target", axis)], unit, lines, opened=not panels)
        )
    names = [(colour, 0, name) for name, colour in colours.items()]
    note = (
        "Each line is a group of people who were not edited; 0 means that the edits left the answers about them alone."
    )
    return PageSection("groups", "Who was affected", [Legend(names, note), Panels(panels)])
