"""Dose-response: what happened as more and more facts were edited together, from score tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.bias import group_effects
from seesaw_cf.effects.means import AXES, UNKNOWN
from seesaw_cf.effects.prompts import prompt_effects
from seesaw_cf.effects.success import KINDS as SUCCESS
from seesaw_cf.effects.success import success_of_scores

BAND = 0.90
MOST_SHARED = 0.5
"""Share of facts that two draws have in common, above which repeated draws say nothing about other facts: no band."""
# The columns of a dose run's score table that are not among `seesaw_cf.base.tables.SCORES`: which sample a row is of.
SAMPLE: pa.Schema = pa.schema([("mix", pa.string()), ("checkpoint", pa.int64()), ("order", pa.int64())])
# Measures that are averaged over orders.
MEASURES = ("ES", "PS", "NS", "S", "D", "perplexity", "entropy")
_RANGES = {"D": (-1.0, 1.0), "perplexity": (0.0, np.inf), "entropy": (0.0, np.inf)}  # of the others 0 to 1
_PERPLEXITY, _ENTROPY = 2.0, 0.5
AVERAGE = "average of {} and {}"
"""Name of the line that stands for two relations edited apart, beside that of their mix."""


@dataclass(frozen=True, slots=True)
class Curves:
    """A finished dose run.

    Attributes:
        manifest: Its `manifest.json`.
        units: One row per editor, mix of relations, form, checkpoint and order, with every measure and `overlap`, the
            expected share of its facts that another order also has by then.
        baseline: `perplexity` and `entropy` of the unedited model, per mix.
    """

    manifest: TableRow
    units: pd.DataFrame
    baseline: dict[str, dict[str, float | None]]


def sample_effects(scores: pa.Table, edits: Sequence[Mapping[str, Any]], nats: float) -> TableRow:
    """Return what editing one sample of facts together did.

    Args:
        scores: Score table of one sample: its edits' prompts, people, and what is watched.
        edits: Rows of `seesaw_cf.run.store.EDITS` of its cases.
        nats: Log-probabilities no further apart than this are a tie.

    Returns:
        `n_edits` that were made, `n_refused`, `n_zero` of those made that change nothing, `refused` (the reasons); of
        the edits that were made `ES`, `PS`, `NS` and `S` as `seesaw_cf.effects.edit_success`, `D` as `group_effects`,
        `n_people` prompts and `D_by` (axis -> group -> D pooled over prompts, and n); `perplexity` and `entropy` of
        `health` after the edit. Numbers without data are None.
    """
    case_ids = [row["case_id"] for row in edits if row["status"] in _MADE]
    refused = {row["status"] for row in edits} - set(_MADE)
    out: TableRow = {"n_edits": len(case_ids), "n_refused": len(edits) - len(case_ids)}
    out["n_zero"] = sum(row["status"] == "zero delta" for row in edits)
    out["refused"] = sorted({status[:200] for status in refused})
    rows = scores.filter(pc.is_in(scores["case_id"], pa.array(case_ids, pa.int64())))
    kinds = set(pc.unique(rows["kind"]).to_pylist())
    out |= dict.fromkeys(("ES", "PS", "NS", "S", "D")) | {"n_people": 0}
    if kinds & set(SUCCESS):
        (success,) = success_of_scores(rows, nats=nats).values()
        out |= {name: _number(success.numbers["counterfact"][name].value) for name in ("ES", "PS", "NS", "S")}
    groups: dict[str, dict[str, TableRow]] = {axis: {} for axis in AXES}
    prompts = prompt_effects(rows).query("status == 'ok'") if "cross_subject" in kinds else pd.DataFrame()
    if len(prompts):
        table = group_effects(prompts.assign(editor="", edit_relation="", holds=""), holds="", mode="paper", draws=0)
        whole, *others = table.to_dict("records")
        out |= {"D": _number(whole["D"]), "n_people": int(whole["n_prompts"])}
        for row in others:
            groups[row["axis"]][row["group"]] = {"D": row["pooled_D"], "n": row["n_prompts"]}
    return out | {"D_by": groups} | health(scores, "post")


_MADE = ("ok", "zero delta")


def health(scores: pa.Table, phase: str) -> dict[str, float | None]:
    """Measure whether a model still works from the watched rows of a score table.

    Args:
        scores: With rows of kind "text" (fixed texts) and "panel" (fixed prompts with candidate answers).
        phase: "pre" or "post".

    Returns:
        `perplexity` of the texts per token, and `entropy` (nats) of the answers that come first on the panel, by mean
        log-probability of their tokens; None without scored rows. A prompt counts when all its answers are scored.
    """
    selection = pc.and_(pc.equal(scores["phase"], phase), pc.is_in(scores["kind"], pa.array(["text", "panel"])))
    rows = scores.filter(selection).select(["kind", "prompt_id", "target", "logprob", "n_tokens", "status"]).to_pandas()
    rows["ok"] = rows["status"] == "ok"
    texts = rows[rows["ok"] & (rows["kind"] == "text")]
    tokens = int(texts["n_tokens"].sum())
    perplexity = float(np.exp(min(-texts["logprob"].sum() / tokens, 700))) if tokens else float("nan")
    panel = rows[rows["kind"] == "panel"]
    panel = panel[panel.groupby("prompt_id")["ok"].transform("all")]
    first = (panel["logprob"] / panel["n_tokens"]).groupby(panel["prompt_id"]).idxmax()
    counts = panel.loc[first, "target"].value_counts()
    entropy = float(stats.entropy(counts)) if len(counts) else float("nan")
    return {"perplexity": _number(perplexity), "entropy": _number(entropy)}


def _number(value: float) -> float | None:
    return value if np.isfinite(value) else None


def read_curves(folder: str | os.PathLike[str]) -> Curves:
    """Read a dose run.

    Raises:
        RunFolderError: Not the folder of a dose run, unfinished, or damaged.
    """
    path = Path(folder)
    files = [path / name for name in ("manifest.json", "dose.json")]
    if missing := [file.name for file in files if not file.exists()]:
        again = "Repeat the `seesaw-cf audit` command that began it; it continues where it was."
        raise RunFolderError(f"{path}: {' and '.join(missing)} missing, so this is no finished dose run. {again}")
    try:
        manifest, document = (read_json(file, any_number=True) for file in files)
        units = pd.DataFrame(document["units"])
        units[list(MEASURES)] = units[list(MEASURES)].astype(np.float64)
        units["overlap"] = units.get("overlap", 1.0)  # of an older run nobody knows it
        units["form"] = units.get("form", manifest.get("settings", {}).get("forms", ["plain"])[0])
        return Curves(manifest, units, document["baseline"])
    except (ValueError, KeyError, TypeError) as error:
        raise RunFolderError(f"{files[1]} is damaged ({error!r}). Run again into a new folder.") from error


def summarise_curves(curves: Curves) -> pd.DataFrame:
    """Return means over orders with 90 % bands, and the collapse alarm.

    Returns:
        One row per editor, mix, form and checkpoint: `edits` (mean number really edited), `orders`, per measure its
        mean, `_low` and `_high` (see `_band`; NaN with fewer than two samples, or with too many facts in common),
        `collapsed` and `alarm`, the rule that fired: mean perplexity above twice, or mean entropy of answers below half
        of the unedited model's, both in the first form.
        Every mix of two relations is followed by `AVERAGE`: their measures when each is edited alone, as many facts of
        it as of the mix, averaged sample by sample.

    Source: MEMIT appendix D, Figure 10 (mean of repeated samples, 90 % bands, line "avg").
    """
    summaries = []
    units, first = curves.units, next(iter(curves.units["form"]), "")
    averages = [_average(units, mix) for mix in dict.fromkeys(units["mix"]) if "+" in str(mix)]
    units = pd.concat([units, *averages], ignore_index=True)
    for (editor, mix, form, count), rows in units.groupby(["editor", "mix", "form", "checkpoint"], sort=False):
        out: TableRow = {"editor": editor, "mix": mix, "checkpoint": count, "form": form}
        out |= {"edits": float(rows["n_edits"].mean()), "refused": int(rows["n_refused"].sum()), "orders": len(rows)}
        for name in MEASURES:
            out |= _band(name, rows[name].dropna().to_numpy(), rows["overlap"].max())
        baseline = curves.baseline.get(str(mix), {}) if form == first else {}
        summaries.append(out | {"alarm": "; ".join(alarms(out, baseline))})
    if not (table := pd.DataFrame(summaries)).empty:
        # What its first form says holds for all; an average of two relations has collapsed where either of them has.
        keys, first_rows = ["editor", "mix", "checkpoint"], table[table["form"] == first]
        known = first_rows.set_index(keys)["alarm"].to_dict()
        apart = {AVERAGE.format(*mix.split("+")): mix.split("+") for mix in table["mix"] if "+" in mix}
        table["alarm"] = [
            next(filter(None, (known[editor, part, count] for part in apart.get(mix, [mix]))), "")
            for editor, mix, count in table[keys].itertuples(index=False)
        ]
        table["collapsed"] = table["alarm"] != ""
    return table


def group_doses(curves: Curves) -> pd.DataFrame:
    """Return D of every group of other people by checkpoint, as the mean over orders with 90 % bands.

    Returns:
        Columns editor, mix, form, checkpoint, axis, group, D, D_low, D_high, orders (those with a number), n (their
        prompts); no rows without people of a recorded group.
    """
    effects = [
        {name: unit[name] for name in ("editor", "mix", "form", "checkpoint", "overlap")}
        | {"axis": axis, "group": group, **own}
        for unit in curves.units.to_dict("records")
        for axis, groups in (unit.get("D_by") or {}).items()
        for group, own in groups.items()
        if group != UNKNOWN and own["D"] is not None
    ]
    keys = ["editor", "mix", "form", "checkpoint", "axis", "group"]
    rows = [
        dict(zip(keys, key, strict=True))
        | _band("D", own["D"].to_numpy(np.float64), own["overlap"].max())
        | {"orders": len(own), "n": int(own["n"].sum())}
        for key, own in (pd.DataFrame(effects).groupby(keys, sort=False) if effects else ())
    ]
    return pd.DataFrame(rows, columns=[*keys, "D", "D_low", "D_high", "orders", "n"])


def _average(units: pd.DataFrame, mix: str) -> pd.DataFrame:
    """Average the two relations of a mix edited apart: one row per editor, checkpoint and order that both have."""
    parts = mix.split("+")
    own = units[units["mix"].isin(parts)]
    at = ["editor", "form", "checkpoint", "order"]
    own = own[own.groupby(at)["mix"].transform("nunique") == len(parts)]
    grouped = own.groupby(at, sort=False)
    # A measure that one of them lacks has no average.
    means = grouped[[*MEASURES, "n_edits"]].mean().where(grouped[[*MEASURES, "n_edits"]].count() == len(parts))
    facts = grouped.agg({"n_refused": "sum", "overlap": "max"})
    return means.join(facts).reset_index().assign(mix=AVERAGE.format(*parts))


def _band(name: str, values: NDArray[np.float64], overlap: float) -> dict[str, float]:
    """Return the mean and its t interval at the level `BAND`, inside the measure's range, for facts like the pool's.

    Draws of n from a pool of N vary by S²(1 - f)/n with f = n/N, the overlap. What the pool itself is off by, S²/N, is
    f/(1 - f) of that; more draws do not lessen it.
    """
    nan = float("nan")
    if not values.size:
        return {name: nan, f"{name}_low": nan, f"{name}_high": nan}
    mean = float(values.mean())
    half = nan
    if values.size > 1 and overlap <= MOST_SHARED:
        spread = values.std(ddof=1) * np.sqrt(1 / values.size + overlap / (1 - overlap))
        half = float(stats.t.ppf((1 + BAND) / 2, values.size - 1) * spread)
    low, high = np.clip([mean - half, mean + half], *_RANGES.get(name, (0.0, 1.0)))
    return {name: mean, f"{name}_low": float(low), f"{name}_high": float(high)}


def alarms(row: Mapping[str, Any], before: Mapping[str, float | None]) -> list[str]:
    """Return the rules by which a model has collapsed: none where it stands.

    Args:
        row: `perplexity` and `entropy` now, NaN where nothing has a score.
        before: The same of the unedited model.
    """
    perplexity, entropy = before.get("perplexity"), before.get("entropy")
    found = []
    if perplexity and not row["perplexity"] <= _PERPLEXITY * perplexity:
        found.append(f"perplexity {row['perplexity']:.3g} is above {_PERPLEXITY:g} times the unedited {perplexity:.3g}")
    if entropy and not row["entropy"] >= _ENTROPY * entropy:
        found.append(f"entropy of answers {row['entropy']:.2f} is below {_ENTROPY:g} times the unedited {entropy:.2f}")
    return found
