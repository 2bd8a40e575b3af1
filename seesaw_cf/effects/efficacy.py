"""Did the edit take? The efficacy gate."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa

from seesaw_cf.effects.prompts import ScoreForm, prompt_effects
from seesaw_cf.stats import share

__all__ = ["efficacy"]


def efficacy(scores: pa.Table | pd.DataFrame, *, score: ScoreForm = "summed") -> pd.DataFrame:
    """Share of edits after (and before) which the new target is more likely than the true one; ties fail.

    Args:
        scores: A score table with rows of kind "efficacy".
        score: The form of confidence that is compared, see `seesaw_cf.effects.difference`.

    Returns:
        One row per (editor, relation): `pre` and `post` shares with `pre_low`, `pre_high`, `post_low`, `post_high`
        (Wilson, 95 %), `n` edits and `n_unscored` edits that could not be scored. Relation "all" comes last for each
        editor.

    Raises:
        RecordError: As `seesaw_cf.effects.prompt_effects`.

    Source: MEMIT appendix C.2, equation 24 (Efficacy Success).
    Deviates: summed log-probabilities by default, where the reference compares means over tokens.
    """
    prompts = prompt_effects(scores, score=score, kind="efficacy")
    everything = prompts.assign(edit_relation="all")
    found = []
    for editor in sorted(prompts["editor"].unique()):
        for frame in (prompts, everything):
            for relation, rows in frame[frame["editor"] == editor].groupby("edit_relation", sort=True):
                found.append({"editor": editor, "relation": relation} | _shares(rows))
    return pd.DataFrame(found)


def _shares(rows: pd.DataFrame) -> dict[str, float | int]:
    usable = rows[rows["status"] == "ok"]
    out: dict[str, float | int] = {}
    for phase in ("pre", "post"):
        estimate = share(int((usable[f"D_{phase}"] > 0).sum()), len(usable))
        out |= {phase: estimate.value, f"{phase}_low": estimate.low, f"{phase}_high": estimate.high}
    return out | {"n": len(usable), "n_unscored": len(rows) - len(usable)}
