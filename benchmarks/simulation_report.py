"""Tables and pictures of `benchmarks/simulation.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

__all__ = ["markdown", "pictures", "pooled"]

METHODS = ("default", "published", "target")


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
    """Draw false-positive rates per method, level.png, and power, power.png, in docs/assets."""
    level, axes = _figure()
    frame = pd.DataFrame(results["single"]).dropna(subset=["false_positive_rate"])
    crossings = list(dict.fromkeys(frame["crossing"]))
    names = [f"{crossing}, {estimand}" for crossing in crossings for estimand in ("mean", "contrast")]
    for method, colour, marker in zip(METHODS[:2], ("#0072B2", "#D55E00"), "os"):
        rows = frame[(frame["method"] == method) & frame["scenario"].isin(["null", "heterogeneous"])]
        y = [names.index(f"{c}, {e}") for c, e in zip(rows["crossing"], rows["estimand"])]
        rates = 100 * rows["false_positive_rate"].clip(lower=1e-3)
        label = "published t-test" if method == "published" else method
        axes.plot(rates, y, marker, color=colour, alpha=0.6, label=label)
    axes.axvspan(3.5, 6.5, alpha=0.2, color="#009E73")
    axes.set_xscale("log")
    axes.set_xticks([1, 2, 5, 10, 20, 50, 100], ["1", "2", "5", "10", "20", "50", "100"])
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("false positives at nominal 5 %, per cent; one mark per group")
    axes.legend(frameon=False)
    _save(level, "level")
    power, axes = _figure()
    for label in crossings:
        rows = pd.DataFrame([r for r in results["power"] if r["crossing"] == label])
        curve = rows.groupby("effect")["power"].mean()
        axes.plot(curve.index, 100 * curve, "o-", label=label)
    axes.axhline(80, color="black", linestyle=":", linewidth=1)
    axes.set(xlabel="planted effect on a group (probability)", ylabel="power, per cent", ylim=(0, 102))
    axes.legend(frameon=False)
    _save(power, "power")


def _figure() -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    return figure, figure.subplots()


def _save(figure: Any, name: str) -> None:
    from docs.tools.first_page import ASSETS, small_picture

    figure.savefig(ASSETS / f"{name}.png", dpi=140, metadata={"Software": None})
    small_picture(ASSETS / f"{name}.png")
