"""What was measured about a shared edit: the numbers a model card shows, each with its interval and n."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seesaw_cf.errors import RecordError, StorageError, unknown_name
from seesaw_cf.sharing.deltas import read_json
from seesaw_cf.tables import SCORES, read_table
from seesaw_cf.types import Estimate

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Evidence", "run_evidence"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Results that go onto a model card.

    Attributes:
        results: Name of a number -> its estimate. Names start with "efficacy" or "bias".
        data: What it was measured on: "sample", a Hub data set such as "org/seesaw_cf", or a file name.
        config: Which config(s) of it, e.g. "cross_subject".
        protocol: "single" (each case edited alone) or "batch"; "" when unknown.
    """

    results: dict[str, Estimate]
    data: str = ""
    config: str = ""
    protocol: str = ""


def run_evidence(run: str | os.PathLike[str], editor: str, *, draws: int = 2000, seed: int = 0) -> Evidence:
    """Efficacy and bias of one editor from a finished run folder.

    Args:
        run: A run folder with `manifest.json` and `scores.parquet`.
        editor: Which of its editors.
        draws: Bootstrap samples of whole cases.
        seed: Seed of the bootstrap.

    Returns:
        Efficacy before and after (share of edits whose new target is more likely than the true one) and D (change of
        p(new) - p(true) of other people, in probability) for everybody and each group of each axis, per relation.

    Raises:
        UnknownNameError: The run has no such editor.
        StorageError: The run is not finished or the folder is something else.
        RecordError: Its files are damaged.
    """
    folder = Path(run)
    manifest = read_json(folder / "manifest.json")
    file = folder / "scores.parquet"
    if not file.exists():
        raise StorageError(f"{file}: no such file; the run is not finished. Run the same command again to continue it.")
    scores = read_table(file, SCORES).to_pandas()
    names = scores["editor"].unique().tolist()
    if editor not in names:
        raise unknown_name(f"editor of the run {folder}", editor, names)
    own = scores[scores["editor"] == editor]
    results = {**_efficacy(own), **_bias(own, draws, seed)}
    data = manifest.get("data", {})
    source = str(data.get("source", ""))
    name = Path(source).name if Path(source).exists() else source  # a local path says nothing elsewhere
    return Evidence(results, name, ",".join(data.get("configs", [])), str(manifest.get("protocol", "")))


def _efficacy(scores: pd.DataFrame) -> dict[str, Estimate]:
    from seesaw_cf.effects import efficacy  # lazily: statistics are not needed to save a delta

    if not (scores["kind"] == "efficacy").any():
        return {}
    rows = efficacy(scores)
    every = rows[rows["relation"] == "all"].iloc[0]
    n = int(every["n"])
    nan = float("nan")
    return {
        f"efficacy {phase} edit": Estimate(
            float(every[phase]), float(every[f"{phase}_low"]), float(every[f"{phase}_high"]), nan, n, n, "Wilson, 95 %"
        )
        for phase in ("pre", "post")
    }


def _bias(scores: pd.DataFrame, draws: int, seed: int) -> dict[str, Estimate]:
    from seesaw_cf.effects import ALL, group_effects, prompt_effects

    if not (scores["kind"] == "cross_subject").any():
        return {}
    try:
        rows = group_effects(prompt_effects(scores), draws=draws, seed=seed)
    except RecordError:  # no prompts about people who hold the new target
        return {}
    method = f"bootstrap over cases, {draws} draws, seed {seed}, 95 %"
    found = {}
    for row in rows.to_dict("records"):
        group = "everybody" if row["axis"] == ALL else f"{row['axis']} {row['group']}"
        value, low, high, stderr = (float(row[key]) for key in ("D", "low", "high", "stderr"))
        counts = int(row["n_prompts"]), int(row["n_cases"])
        found[f"bias D {row['relation']}, {group}"] = Estimate(value, low, high, stderr, *counts, method)
    return found
