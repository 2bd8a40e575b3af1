"""Tables and pictures of `benchmarks/simulation.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from seesaw_cf.report.figures import COLOURS, CONTROL_COLOUR, INK, WIDTH, save_figure, style

__all__ = ["markdown", "pictures", "pooled"]


def pooled(results: dict[str, Any]) -> pd.DataFrame:
    """Rates over the groups of each (crossing, estimand, scenario, method): mean, smallest, largest, refused groups."""
    frame = pd.DataFrame(results["single"])
    keys = ["crossing", "estimand", "scenario", "method"]
    frame["refused"] = frame["false_positive_rate"].isna()
    table = frame.groupby(keys, sort=False).agg(
        groups=("refused", "size"),
        refused=("refused", "sum"),
        fpr=("false_positive_rate", "mean"),
        fpr_low=("false_positive_rate", "min"),
        fpr_high=("false_positive_rate", "max"),
        coverage=("coverage", "mean"),
        coverage_low=("coverage", "min"),
        coverage_high=("coverage", "max"),
    )
    return table.reset_index()


def _range(mean: float, low: float, high: float) -> str:
    return "refused" if np.isnan(mean) else f"{100 * mean:.1f} ({100 * low:.1f}–{100 * high:.1f})"


def markdown(results: dict[str, Any]) -> str:
    """The tables of the results."""
    lines = [
        f"{results['draws']:,} draws per cell, seed {results['seed']}; per cent, mean over groups (smallest–largest).",
        "",
        "| crossing | estimand | planted | method | groups | refused | false positives | coverage |",
        "|---|---|---|---|---:|---:|---|---|",
    ]
    for row in pooled(results).to_dict("records"):
        rates = [_range(row[name], row[f"{name}_low"], row[f"{name}_high"]) for name in ("fpr", "coverage")]
        names = [row[name] for name in ("crossing", "estimand", "scenario", "method")]
        lines.append(f"| {' | '.join([*names, str(row['groups']), str(row['refused']), *rates])} |")
    power = pd.DataFrame(results["power"]).groupby(["crossing", "effect"], sort=False)["power"].mean().unstack()
    lines += ["", "Power of the default method, mean over the groups' contrasts, heterogeneous effects:", ""]
    lines += ["| crossing | " + " | ".join(f"{effect:g}" for effect in power.columns) + " |"]
    lines += ["|---|" + "---:|" * len(power.columns)]
    lines += [f"| {name} | " + " | ".join(f"{100 * p:.0f}" for p in row) + " |" for name, row in power.iterrows()]
    lines += ["", "Tables of contrasts without any effect: share with at least one false positive.", ""]
    lines += ["| crossing | contrasts | uncorrected | Holm |", "|---|---:|---:|---:|"]
    for row in results["tables"]:
        rates = [f"{100 * row[k]:.1f}" for k in ("uncorrected", "holm")]
        lines.append(f"| {row['crossing']} | {row['contrasts']} | " + " | ".join(rates) + " |")
    return "\n".join(lines) + "\n"


def pictures(results: dict[str, Any]) -> None:
    """Draw false-positive rates per method, level.png, and power, power.png, in docs/assets, in the reports' style."""
    with style():
        _picture("level", partial(_draw_level, pd.DataFrame(results["single"])))
        _picture("power", partial(_draw_power, pd.DataFrame(results["power"])))


def _draw_level(frame: pd.DataFrame, axes: Axes) -> None:
    frame = frame.dropna(subset=["false_positive_rate"])
    names = [f"{crossing}, {estimand}" for crossing in frame["crossing"].unique() for estimand in ("mean", "contrast")]
    labels = {"default": (COLOURS[0], "o", "here"), "published": (CONTROL_COLOUR, "s", "published t-test")}
    for method, (colour, marker, label) in labels.items():
        rows = frame[(frame["method"] == method) & frame["scenario"].isin(["null", "heterogeneous"])]
        y = [names.index(f"{c}, {e}") for c, e in zip(rows["crossing"], rows["estimand"])]
        rates = 100 * rows["false_positive_rate"].clip(lower=1e-3)
        axes.plot(rates, y, marker, color=colour, alpha=0.6, markersize=5, label=label)
    axes.axvspan(3.5, 6.5, color=INK, alpha=0.08, linewidth=0)
    axes.set_xscale("log")
    axes.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    axes.set_xticks([], minor=True)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_title("False positives at 5 %, by group")
    axes.set_xlabel("per cent \u2192")


def _draw_power(frame: pd.DataFrame, axes: Axes) -> None:
    for colour, (label, rows) in zip(COLOURS, frame.groupby("crossing", sort=False)):
        curve = 100 * rows.groupby("effect")["power"].mean()
        axes.plot(100 * curve.index, curve, "o-", color=colour, markersize=5, label=label)
    axes.axhline(80, color=CONTROL_COLOUR, linestyle=":", linewidth=1)
    axes.set_title("How often an effect on a group is found, %")
    axes.set(xlabel="planted effect, points \u2192", ylim=(0, 103))


def _picture(name: str, draw: Callable[[Axes], None]) -> None:
    from docs.tools.first_page import ASSETS, small_picture

    figure = Figure(figsize=(WIDTH, 3.2), layout="constrained")
    axes = figure.subplots()
    draw(axes)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    (file,) = save_figure(figure, ASSETS, name)
    small_picture(file)
