"""Did the edit take? The efficacy gate."""

from __future__ import annotations

import pandas as pd

from seesaw_cf.effects.prompts import SIDES, ScoreForm, prompt_effects
from seesaw_cf.effects.scores import Scores
from seesaw_cf.stats import proportion
from seesaw_cf.stats.simple import BOUNDS, above, tied


def efficacy(scores: Scores, *, score: ScoreForm = "summed", nats: float = BOUNDS["float32"]) -> pd.DataFrame:
    """Return the share of edits after (and before) which the new target is more likely than the true one; ties fail.

    Args:
        scores: A score table with rows of kind "efficacy".
        score: The form of confidence that is compared, see `seesaw_cf.effects.difference`.

        nats: Log-probabilities no further apart than this are a tie; a run's own is
            `seesaw_cf.stats.simple.tolerance` of its manifest.

    Returns:
        One row per (editor, relation): `pre` and `post` shares with `pre_low`, `pre_high`, `post_low`, `post_high`
        (Wilson, 95 %), `n` edits, `n_tied` of them with a tie after the edit, and `n_unscored` edits that could not be
        scored. Relation "all" comes last for each
        editor.

    Raises:
        RecordError: As `seesaw_cf.effects.prompt_effects`.

    Source: MEMIT appendix C.2, equation 24 (Efficacy Success).
    Deviates: summed log-probabilities by default, where the reference compares means over tokens.
    """
    prompts = prompt_effects(scores, score=score, kind="efficacy")
    everything = prompts.assign(edit_relation="all")
    shares = []
    for editor in sorted(prompts["editor"].unique()):
        for frame in (prompts, everything):
            for relation, rows in frame[frame["editor"] == editor].groupby("edit_relation", sort=True):
                shares.append({"editor": editor, "relation": relation} | _shares(rows, score, nats))
    return pd.DataFrame(shares)


def _shares(rows: pd.DataFrame, score: ScoreForm, nats: float) -> dict[str, float | int]:
    usable = rows[rows["status"] == "ok"]
    tokens = [usable[name] if score == "normalised" else 1.0 for name in ("n_new", "n_true")]
    sides = {name: usable[name] / tokens[name.endswith("true")] for name in SIDES}
    out: dict[str, float | int] = {}
    for phase in ("pre", "post"):
        estimate = proportion(int(above(sides[f"{phase}_new"], sides[f"{phase}_true"], nats).sum()), len(usable))
        out |= {phase: estimate.value, f"{phase}_low": estimate.low, f"{phase}_high": estimate.high}
    ties = int(tied(sides["post_new"], sides["post_true"], nats).sum())
    return out | {"n": len(usable), "n_tied": ties, "n_unscored": len(rows) - len(usable)}
