"""What the rows of a report claim: one vocabulary for levels and one for groups, the same in files and on screens."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from seesaw_cf.stats.clustered import FEW_EDITS

LEVEL_VERDICTS = ("worse", "slightly_worse", "no_worse", "better", "undecided", "too_few", "no_control")
GROUP_VERDICTS = ("hit_harder", "slightly_harder", "equal", "hit_less", "undecided", "too_few")
RARE = "can miss rare harm"
"""What is said of few edits that all do nothing."""
BATCH_NOTE = "the cases of a relation are one edit"
_GROUP_WORDS: Mapping[str, str] = {
    "worse off": "hit_harder",
    "better off": "hit_less",
    "equivalent": "equal",
    "undetermined": "undecided",
    "not testable": "too_few",
}


def level_verdict(row: pd.Series, sign: int, floor: float, alpha: float) -> tuple[str, str]:
    """Return the verdict on a level beside its control, and the reason.

    Args:
        row: A row "beyond" of the frame: `value`, `p_adjusted`, `reach`, `margin`, `scale`, `n_edits`, `note`.
        sign: Of a change for the worse.
        floor: Largest difference that is noise.
        alpha: Level of the tests of an editor.
    """
    value, margin, p = row["value"], row["margin"], row["p_adjusted"]
    if not np.isfinite([value, p]).all():
        return "too_few", row["note"] or "not estimable"
    size = f"{row['scale']} {value:+.3g}, margin {margin:g}, corrected p {p:.3g}"
    real, harmful, inside = p < alpha and abs(value) > floor, value * sign > 0, row["reach"] < margin and floor < margin
    if real and abs(value) > margin:
        return ("worse" if harmful else "better"), size
    if real and harmful:
        return "slightly_worse", f"{size}: decided, and inside the margin"
    if inside and row["n_edits"] < FEW_EDITS:  # of ten edits none may be among the few that do harm
        return "undecided", f"{size}: inside the margin, but {row['n_edits']} edits {RARE} ({FEW_EDITS} needed)"
    if inside:
        return "no_worse", f"{size}: 90 % interval inside the margin"
    noise = f": within the noise floor {floor:.2g}" if p < alpha and not real else ""
    return "undecided", f"{size}{noise}"


def group_verdict(contrast: Mapping[Any, Any]) -> tuple[str, str]:
    """Return the verdict on a contrast of `seesaw_cf.effects.audit`, and the reason."""
    label = _GROUP_WORDS[contrast["verdict"]]
    decided_lower = contrast["direction"] == "below 0" and label in ("equal", "undecided")
    if decided_lower and abs(contrast["value"]) <= contrast["margin"]:
        label = "slightly_harder"
    return label, (contrast["note"] if label == "too_few" and contrast["note"] else contrast["rule"])
