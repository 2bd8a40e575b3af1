"""Dose-response: what happened as more and more facts were edited together. Reads the units of a dose run, no model."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from seesaw_cf.errors import RunFolderError

__all__ = ["BAND", "KINDS", "MEASURES", "Curves", "diversity", "read_curves", "summarise_curves"]

BAND = 0.90
# Measures that are averaged over repeated samples.
MEASURES = ("ES", "PS", "NS", "S", "D", "perplexity", "entropy")
# Relation -> (type of its subjects, type of its objects), for the four kinds of pairs of MEMIT appendix D.
KINDS: Mapping[str, tuple[str, str]] = {
    "P17": ("place", "place"),
    "P19": ("person", "place"),
    "P21": ("person", "gender"),
    "P27": ("person", "place"),
    "P37": ("place", "language"),
    "P101": ("person", "field"),
    "P103": ("person", "language"),
    "P413": ("person", "position"),
    "P495": ("product", "place"),
    "P937": ("person", "place"),
    "P1412": ("person", "language"),
}
_PERPLEXITY, _ENTROPY = 2.0, 0.5


def diversity(mix: str) -> str:
    """What kind of pair "P27+P101" is: subject same or different, object same or different; "" for one relation.

    Source: MEMIT appendix D.
    """
    types = [KINDS.get(relation) for relation in mix.split("+")]
    if len(types) != 2 or None in types:
        return ""
    first, second = (kind for kind in types if kind)
    same = [a == b for a, b in zip(first, second)]
    return ", ".join(f"{what} {'same' if one else 'different'}" for what, one in zip(("subject", "object"), same))


@dataclass(frozen=True, slots=True)
class Curves:
    """A finished dose run.

    Attributes:
        manifest: Its `manifest.json`.
        units: One row per editor, mix of relations, dose and repeated sample, with every measure.
        baseline: `perplexity` and `entropy` of the unedited model, per mix.
    """

    manifest: dict[str, Any]
    units: pd.DataFrame
    baseline: dict[str, dict[str, float | None]]


def read_curves(folder: str | os.PathLike[str]) -> Curves:
    """Reads a dose run.

    Raises:
        RunFolderError: Not the folder of a dose run, unfinished, or damaged.
    """
    path = Path(folder)
    files = {name: path / name for name in ("manifest.json", "dose.json")}
    missing = [name for name, file in files.items() if not file.exists()]
    if missing:
        raise RunFolderError(
            f"{path}: {' and '.join(missing)} missing, so this is no finished dose run. "
            "Repeat the `seesaw-cf dose` command that began it; it continues where it was."
        )
    try:
        manifest, found = (json.loads(file.read_text(encoding="utf-8")) for file in files.values())
        units = pd.DataFrame(found["units"])
        units[list(MEASURES)] = units[list(MEASURES)].astype(np.float64)
        return Curves(manifest, units, found["baseline"])
    except (ValueError, KeyError, TypeError) as error:
        raise RunFolderError(f"{files['dose.json']} is damaged ({error!r}). Run again into a new folder.") from error


def summarise_curves(curves: Curves) -> pd.DataFrame:
    """Means over repeated samples with 90 % bands, and the collapse alarm.

    Returns:
        One row per editor, mix and dose: `edits` (mean number really edited), `repeats`, per measure its mean, `_low`
        and `_high` (t over repeated samples, 90 %; NaN with fewer than two), `kind` of pair, `collapsed` and `alarm`,
        the rule that fired: mean perplexity above twice, or mean entropy of answers below half of the unedited model's.

    Source: MEMIT appendix D (mean of repeated samples, 90 % bands).
    """
    found = []
    for (editor, mix, dose), rows in curves.units.groupby(["editor", "mix", "dose"], sort=False):
        out: dict[str, Any] = {"editor": editor, "mix": mix, "kind": diversity(str(mix)), "dose": dose}
        out |= {"edits": float(rows["n_edits"].mean()), "refused": int(rows["n_refused"].sum()), "repeats": len(rows)}
        for name in MEASURES:
            out |= _band(name, rows[name].dropna().to_numpy())
        before = curves.baseline.get(str(mix), {})
        out["alarm"] = "; ".join(_alarms(out, before))
        found.append(out | {"collapsed": bool(out["alarm"])})
    return pd.DataFrame(found)


def _band(name: str, values: Any) -> dict[str, float]:
    nan = float("nan")
    if not values.size:
        return {name: nan, f"{name}_low": nan, f"{name}_high": nan}
    mean = float(values.mean())
    half = float(stats.t.ppf((1 + BAND) / 2, values.size - 1) * stats.sem(values)) if values.size > 1 else nan
    return {name: mean, f"{name}_low": mean - half, f"{name}_high": mean + half}


def _alarms(row: Mapping[str, Any], before: Mapping[str, float | None]) -> list[str]:
    perplexity, entropy = before.get("perplexity"), before.get("entropy")
    found = []
    if perplexity and row["perplexity"] > _PERPLEXITY * perplexity:
        found.append(f"perplexity {row['perplexity']:.3g} is above {_PERPLEXITY:g} times the unedited {perplexity:.3g}")
    if entropy and row["entropy"] < _ENTROPY * entropy:
        found.append(f"entropy of answers {row['entropy']:.2f} is below {_ENTROPY:g} times the unedited {entropy:.2f}")
    return found
