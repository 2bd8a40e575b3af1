"""What the negative controls move: an edit's effect on others against two floors, and what an audit claims of it.

The scoring floor is what scoring alone moves (pre against pre). The weight floor is what random changes of MEMIT's norm
at MEMIT's place move, over several seeds: no change of the weights, however unconnected, can be expected below it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from seesaw_cf.effects import AuditSettings, audit, prompt_effects
from seesaw_cf.effects.audit import FAMILY
from seesaw_cf.effects.means import group_means
from seesaw_cf.stats.plain import plain
from seesaw_cf.stats.verdicts import VERDICTS

__all__ = ["COMPARED", "MARGIN", "SEEDS", "claims", "controls", "kinds_of_identity", "moved"]

SEEDS = range(5)
MARGIN = 0.02
_EDITORS = ("identity", "unrelated", "memit", "rome")
COMPARED = (*_EDITORS, *(f"random-{seed}" for seed in SEEDS))
"""The rows that `controls` needs."""
HOLDS = ("target_new", "target_true")
_KEPT = ("value", "low", "high", "n")


def moved(prompts: pd.DataFrame) -> dict[str, Any]:
    """D with its interval over all relations, for people who hold the new and the true target; all fields."""
    found = {}
    for holds in HOLDS:
        first = next(iter(group_means(prompts, axes=(), holds=holds)))
        found[f"D_{holds}"] = asdict(first.changes["probability"])
    return found


def claims(prompts: pd.DataFrame, scoring_floor: float) -> dict[str, int]:
    """Number of contrasts and verdicts of the audit with its defaults: by relation, all axes, Holm per editor."""
    table = audit(prompts, AuditSettings(margin=MARGIN, noise_floor=scoring_floor))
    verdicts = table.loc[~table["mirror"], "verdict"]
    return {"contrasts": len(verdicts), **{label: int((verdicts == label).sum()) for label in VERDICTS}}


def kinds_of_identity(scores: pa.Table, edits: pd.DataFrame) -> dict[str, Any]:
    """D of the identity by what it did.

    Args:
        scores, edits: Tables of a run of the identity alone.

    Returns:
        "no-op" (the loss is below `stop_below` before the first step), "held" (the model gives the true answer more
        than half of the probability and is still edited), "not held" (it does not: a new fact to it): edits and D.
    """
    held = np.exp(edits["true_pre"]) > 0.5
    kind = np.where(edits["status"] == "zero delta", "no-op", np.where(held, "held", "not held"))
    prompts = prompt_effects(scores)
    found = {}
    for name in ("no-op", "held", "not held"):
        cases = edits["case_id"][kind == name]
        effects = moved(prompts[prompts["case_id"].isin(cases)])
        norms = edits["delta_norm"][kind == name]
        found[name] = {"edits": len(cases), "delta_norm": float(norms.median()), **_short(effects)}
    return found


def controls(record: Mapping[str, Any]) -> dict[str, Any]:
    """The comparison with both floors, from the rows of a record of `benchmarks.editors_tiny`."""
    rows = record["editors"]
    seeds = {seed: rows[f"random-{seed}"] for seed in SEEDS}
    floors = {f"D_{h}": max(abs(row[f"D_{h}"]["value"]) for row in seeds.values()) for h in HOLDS}
    spread = {f"D_{h}": float(np.std([row[f"D_{h}"]["value"] for row in seeds.values()], ddof=1)) for h in HOLDS}
    compared = {
        name: {
            **_short(rows[name]),
            "share_of_weight_floor": {key: abs(rows[name][key]["value"]) / floor for key, floor in floors.items()},
            "below_scoring_floor": {key: abs(rows[name][key]["value"]) < record["noise_floor_D"] for key in floors},
            "delta_norm": rows[name]["delta_norm"],
            "audit": rows[name]["audit"],
        }
        for name in _EDITORS
    }
    random = {
        "seeds": {str(seed): {**_short(row), "audit": row["audit"]} for seed, row in seeds.items()},
        "standard_deviation": spread,
    }
    settings = {"margin": MARGIN, "family": list(FAMILY), "correction": "holm", "alpha": 0.05}
    return dict(
        plain(
            {
                "scoring_floor": record["noise_floor_D"],
                "weight_floor": floors,
                "random": random,
                "audit_settings": settings,
                **compared,
            }
        )
    )


def _short(effects: Mapping[str, Any]) -> dict[str, Any]:
    return {f"D_{holds}": {key: effects[f"D_{holds}"][key] for key in _KEPT} for holds in HOLDS}
