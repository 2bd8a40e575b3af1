"""Edits one after another: a run at each of its checkpoints, and the curves of every measure beside the control.

A number is a mean over the orders of the same facts, and its interval is over facts and people: orders share both, so
that their range says nothing about others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.tables import SCORES, column_names, read_table, table_of
from seesaw_cf.effects.dose import SAMPLE, alarms, read_curves
from seesaw_cf.effects.means import ALL
from seesaw_cf.effects.success import KINDS, edit_numbers, once_each, success_of_scores
from seesaw_cf.effects.tables import ScoreFile, count_rows
from seesaw_cf.report.figures import CONTROL_COLOUR, WIDTH
from seesaw_cf.report.pairs import (
    COUNTED,
    RunResult,
    efficacy_of,
    facts_of,
    mean_over_seeds,
    mean_success,
    people_of,
    read_answers,
    unscored_of,
)
from seesaw_cf.report.rows import Manifest, floor_of, forms_of, rows_of
from seesaw_cf.run.manifest import RunFolder
from seesaw_cf.run.store import ASKED_ONLY, EDITS, MADE
from seesaw_cf.stats.simple import above, tolerance

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MADE = tuple(status for status in MADE if status != ASKED_ONLY)
_FAILED_FIRST = {ASKED_ONLY: 2, **dict.fromkeys(_MADE, 1)}
_CURVE = ["editor", "checkpoint", "order"]
CURVES: Mapping[str, str] = {
    "D_new": "people who hold the new answer: D_d, points",
    "right_new": "of them still answered right, %",
    "D_old": "people who hold the old answer: D_d, points",
    "ES": "edits so far that hold, %",
    "perplexity": "perplexity of plain texts",
    "norm": "norm of the whole change",
}
"""Column of the table curve -> what it is."""
SCALED = ("D_new", "D_old", "right_new", "ES")


class State(NamedTuple):
    """A run of edits one after another at one of its checkpoints.

    Attributes:
        checkpoint: How many edits were made.
        run: The run there.
        effects: What each editor did to other people in each order.
        held: How many of its edits hold in each order.
    """

    checkpoint: int
    run: RunResult
    effects: list[dict[str, Any]]
    held: pd.DataFrame


def read_states(path: Path, floors: tuple[float | None, float | None], form: str = "") -> Iterator[State]:
    """Yield the states of a finished run of edits one after another, in the form of its main tables or another one.

    Raises:
        RunFolderError: Not a run folder, or the run is not finished.
        RecordError: Its tables are damaged.
    """
    manifest: Manifest = RunFolder.open(path).manifest
    edits = read_table(path / "edits.parquet", pa.schema([*EDITS, *SAMPLE])).to_pandas()
    edits = edits.astype(dict.fromkeys(("n_candidates", "true_rank"), "Int32"))
    file = path / table_of("scores.parquet", form)
    if missing := {*SAMPLE.names} - {*column_names(file)}:
        raise RecordError(f"{file}: columns {sorted(missing)} are missing. Run again into a new folder.")
    for count in manifest["settings"]["checkpoints"]:
        where = pc.field("checkpoint") == count
        own = edits[edits["checkpoint"] == count]
        orders = [
            (ScoreFile(file, where & (pc.field("order") == order)), own[own["order"] == order])
            for order in sorted(set(own["order"]))
        ]
        state, effects = _read_state(path, manifest, orders, floors)
        asked = form or forms_of(manifest)[0]
        run = replace(state, form=asked, written=read_answers(path, asked, where))
        held = _held(state, sorted(set(own["order"]))).assign(checkpoint=count)
        yield State(count, run, [row | {"checkpoint": count} for row in effects], held)


def read_alarms(path: Path) -> pd.DataFrame:
    """Return what was measured of every editor at every checkpoint of each order, with the `alarm` of a collapse or "".

    Raises:
        RunFolderError: The run is not finished.
    """
    curves = read_curves(path)
    units = curves.units.assign(overlap=0.0)  # of its main tables
    return units.assign(alarm=["; ".join(alarms(row, curves.baseline.get("", {}))) for row in rows_of(units)])


def curve_of(units: pd.DataFrame, states: Sequence[State]) -> pd.DataFrame:
    """Return the table curve, a row for each editor, checkpoint and order.

    Args:
        units: See `read_alarms`.
        states: In the form of the run's main tables.
    """
    kept = [*_CURVE, "form", "PS", "NS", "perplexity", "entropy", "norm", "alarm"]
    curve = units[kept].merge(pd.concat([state.held for state in states]), how="left", on=_CURVE)
    return curve.merge(pd.DataFrame([row for state in states for row in state.effects]), how="left", on=_CURVE)


def _read_state(
    path: Path, manifest: Manifest, orders: Sequence[tuple[ScoreFile, pd.DataFrame]], floors: tuple[float | None, ...]
) -> tuple[RunResult, list[dict[str, Any]]]:
    """Return a run at a checkpoint, and what each editor did in each order."""
    nats, _ = tolerance(manifest)
    tables = [table for table, _ in orders]
    counts = pa.concat_tables([count_rows(table, COUNTED) for table in tables])
    kinds = set(counts["kind"].to_pylist())
    edits = pd.concat([own for _, own in orders])
    first = edits["status"].map(lambda status: _FAILED_FIRST.get(status, 0))
    edits = edits.iloc[np.argsort(first, kind="stable")]  # a fact that was refused in some order counts as refused
    editors, numbers = list(dict.fromkeys(edits["editor"])), edit_numbers(edits)
    people, facts, efficacy, success = list[pd.DataFrame](), list[pd.DataFrame](), list[pd.DataFrame](), []
    for number, (table, own) in enumerate(orders, 1):
        made = own[own["status"].isin(_MADE)]
        if "cross_subject" in kinds:
            people.append(people_of([table], {*editors}))
        if "cross_property" in kinds:
            facts.append(facts_of([table], nats, numbers, {*editors}).assign(seed=number))
        if "efficacy" in kinds and len(made):
            asked = table.rows(SCORES.names, pc.field("kind").isin(list(KINDS)))
            efficacy.append(efficacy_of([asked], once_each(made)).assign(seed=number))
            keys = pd.MultiIndex.from_frame(made[["editor", "case_id"]])
            of = pd.MultiIndex.from_arrays([asked["editor"].to_pylist(), asked["case_id"].to_pylist()])
            success.append(success_of_scores(asked.filter(pa.array(of.isin(keys))), numbers, nats=nats))
    counts = counts.group_by(COUNTED).aggregate([("count_all", "sum")]).rename_columns([*COUNTED, "count_all"])
    run = RunResult(
        folder=path,
        manifest=manifest,
        edits=edits.sort_values("editor", key=lambda names: names.map(editors.index), kind="stable"),
        people=mean_over_seeds(people) if people else None,
        facts=pd.concat(facts, ignore_index=True) if facts else None,
        efficacy=pd.concat(efficacy, ignore_index=True) if efficacy else None,
        success={name: mean_success([own[name] for own in success if name in own]) for name in {**success[0]}}
        if success
        else {},
        local={},
        unscored=unscored_of(counts),
        n_rows=pc.sum(counts["count_all"]).as_py() or 0,
        floor=floor_of(manifest, *floors),
    )
    asked = people or [_NOBODY] * len(orders)
    return run, [row for own, (_, made) in zip(asked, orders, strict=True) for row in _of_order(own, made)]


def _held(state: RunResult, orders: Sequence[int]) -> pd.DataFrame:
    """Return the share of edits of each order that hold (ES), each edit once, as in the rows about efficacy."""
    if state.efficacy is None:
        return pd.DataFrame({"editor": [""], "order": [0], "ES": [np.nan]})[:0]
    nats, _ = tolerance(state.manifest)
    scored = state.efficacy[state.efficacy["status"] == "ok"]
    holds = above(scored["post_new"], scored["post_true"], nats)
    found = scored.assign(ES=holds, order=[orders[number - 1] for number in scored["seed"]])
    return found.groupby(["editor", "order"], sort=False)["ES"].mean().reset_index()


def _of_order(people: pd.DataFrame, edits: pd.DataFrame) -> Iterator[dict[str, Any]]:
    """Yield what an order did to people who hold either answer: means of edit means, as everywhere."""
    # people whom several facts ask the same stand under the first of these
    keys = zip(edits["relation_id"], edits["target_new"], edits["target_true"])
    order, facts = int(edits["order"].iloc[0]), dict(zip(edits["case_id"], keys))
    done = {facts[case] for case in edits.loc[edits["status"].isin(_MADE), "case_id"]}
    scored = people[people["status"] == "ok"]
    for editor, made in edits.groupby("editor", sort=False):
        own, status = scored[scored["editor"] == editor], once_each(made)["status"]
        row: dict[str, Any] = {"editor": str(editor), "order": order, "n_edits": int(status.isin(_MADE).sum())}
        row["n_refused"] = int((~status.isin((*_MADE, ASKED_ONLY))).sum())
        row["n_zero"] = int((status == "zero delta").sum())
        for word, holds, right, wrong in (("new", "target_new", "new", "true"), ("old", "target_true", "true", "new")):
            held = own[own["holds"] == holds]
            before, after = (held[f"{phase}_{right}"] > held[f"{phase}_{wrong}"] for phase in ("pre", "post"))
            of_edited = held["case_id"].map(facts).isin(done)
            row |= {
                f"D_{word}": _mean(held, held["D"]),
                f"D_{word}_edited": _mean(held[of_edited], held["D"][of_edited]),
                f"D_{word}_later": _mean(held[~of_edited], held["D"][~of_edited]),
                f"right_{word}": float(after[before].mean()),
                **{f"p_{side}_{word}": _mean(held, np.exp(held[f"post_{name}"])) for side, name in _SIDES.items()},
            }
        yield row


_SIDES = {"new": "new", "old": "true"}
_SCORED = [f"{phase}_{side}" for phase in ("pre", "post") for side in _SIDES.values()]
_NOBODY = pd.DataFrame(columns=["editor", "case_id", "holds", "status", "D", *_SCORED], dtype=object)
_NOBODY = _NOBODY.astype(dict.fromkeys(("D", *_SCORED), np.float64))


def _mean(rows: pd.DataFrame, values: pd.Series) -> float:
    return float(values.groupby(rows["case_id"]).mean().mean()) if len(values) else float("nan")


def first_collapse(curve: pd.DataFrame, editor: str) -> Mapping[str, Any] | None:
    """Return the first state of an editor that has collapsed, in any order; None where none has."""
    own = curve[(curve["editor"] == editor) & (curve["alarm"] != "")].sort_values("checkpoint", kind="stable")
    return rows_of(own)[0] if len(own) else None


def has_collapsed(curve: pd.DataFrame, editor: str, count: int) -> bool:
    """Return whether an editor has collapsed by this checkpoint in any order."""
    fallen = first_collapse(curve, editor)
    return fallen is not None and bool(fallen["checkpoint"] <= count)


def standing_rows(curve: pd.DataFrame, editor: str) -> pd.DataFrame:
    """Return the rows of an editor before it collapses in any order: from there on there is no mean."""
    own, fallen = curve[curve["editor"] == editor], first_collapse(curve, editor)
    return own if fallen is None else own[own["checkpoint"] < fallen["checkpoint"]]


def curve_figure(frame: pd.DataFrame, curve: pd.DataFrame, editor: str, control: str, colour: str) -> Figure:
    """Return every measure against the number of edits, on the same axes for all editors.

    Args:
        frame: Rows of the report's frame at every checkpoint, for the intervals.
        curve: The table curve.
        editor: Drawn in `colour`; orders in which its model has collapsed have hollow marks, and no mean.
        control: Dashed in grey; "" for none.
        colour: Of the editor.
    """
    from matplotlib.figure import Figure as Canvas

    names, counts = [name for name in CURVES if curve[name].notna().any()], sorted(set(curve["checkpoint"]))
    figure = Canvas(figsize=(WIDTH, 1.6 * len(names)), layout="constrained")
    axes = figure.subplots(len(names), 1, squeeze=False, sharex=True)[:, 0]
    for ax, name in zip(axes, names, strict=True):
        factor = 100 if name in SCALED else 1
        for own, ink, line in ((control, CONTROL_COLOUR, "--"), (editor, colour, "-")):
            rows = curve[curve["editor"] == own]
            for _, order in rows.groupby("order"):
                ax.plot(order["checkpoint"], factor * order[name], color=ink, linewidth=0.5, alpha=0.5)
            means, fallen = standing_rows(curve, own).groupby("checkpoint")[name].mean(), rows[rows["alarm"] != ""]
            ax.plot(means.index, factor * means, f"{line}o", markersize=4.5, color=ink)
            hollow = {"color": ink, "markerfacecolor": "white", "markersize": 4.5}
            ax.plot(fallen["checkpoint"], factor * fallen[name], "o", **hollow)
            low, high = (factor * band for band in _band(frame, own, name))
            ax.fill_between(low.index, low, high, color=ink, alpha=0.2, linewidth=0)
        ax.set_title(CURVES[name])
        values = factor * curve[name][np.isfinite(curve[name])]
        room = 0.05 * (values.max() - values.min()) or 1.0
        ax.set_ylim(values.min() - room, values.max() + room)
    axes[-1].set_xlabel("edits made, one after another")
    axes[-1].set_xscale("log" if counts[-1] > 20 * counts[0] else "linear")
    axes[-1].set_xticks(counts, [f"{count:,}" for count in counts], minor=False)
    axes[-1].minorticks_off()
    return figure


def _band(frame: pd.DataFrame, editor: str, name: str) -> tuple[pd.Series, pd.Series]:
    """Return the ends of the 95 % intervals over facts and people of a measure by checkpoint, where there are any."""
    what, answer = {"D_new": ("change", "new"), "D_old": ("change", "old")}.get(name, ("efficacy_after", ""))
    own = frame[(frame["what"] == what) & (frame["editor"] == editor) & (frame["true_answer"] == answer)]
    own = own[(own["relation"] == ALL) & (own["axis"] == ALL) & own["scale"].isin(("probability", "share"))]
    own = own[(own["scale"] == "probability") == (what == "change")].dropna(subset=["low"])
    own = own.set_index("checkpoint") if name in ("D_new", "D_old", "ES") else own.iloc[:0]
    return own["low"], own["high"]
