"""From four log-probabilities per prompt to D_pre, D_post and their difference."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from seesaw_cf.checks import one_of
from seesaw_cf.effects.pairs import as_table, by_editor, pair_targets
from seesaw_cf.errors import RecordError
from seesaw_cf.stats.tolerance import BOUNDS, above

ScoreForm = Literal["summed", "normalised", "log_odds"]


def check_form(score: str) -> None:
    """Refuse an unknown form of score.

    Raises:
        UnknownNameError: Not "summed", "normalised" or "log_odds".
    """
    one_of("score", score, get_args(ScoreForm))


def difference(
    new: ArrayLike,
    true: ArrayLike,
    score: ScoreForm = "summed",
    n_new: ArrayLike | None = None,
    n_true: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """D = confidence in the new target minus confidence in the true one.

    Args:
        new, true: Log-probabilities summed over target tokens, nats.
        score: "summed": p(new) - p(true), in -1..1. "normalised": the same with p = exp(log-probability / tokens), the
            papers' value. "log_odds": log p(new) - log p(true), in nats, which does not saturate near 0 and 1.
        n_new, n_true: Target tokens; needed for "normalised".

    Returns:
        Array of the inputs' shape.

    Raises:
        UnknownNameError: `score` is unknown.
        RecordError: Unequal shapes; "normalised" without token counts, or with counts below 1.

    Source: SEESAW-CF section 4.1, D = prob(p_j | t, s') - prob(p_i | t, s'), with p_j = target_new.
    Deviates: the default sums log-probabilities over tokens; the papers' mean over tokens favours long targets.
    """
    check_form(score)
    new, true = np.asarray(new, dtype=np.float64), np.asarray(true, dtype=np.float64)
    if new.shape != true.shape:
        raise RecordError(f"difference: new has shape {new.shape}, true {true.shape}; expected the same.")
    if score == "log_odds":
        return np.asarray(new - true)
    if score == "normalised":
        new, true = new / _tokens("n_tokens_new", n_new), true / _tokens("n_tokens_true", n_true)
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(new) - np.exp(true))


def _tokens(name: str, counts: ArrayLike | None) -> NDArray[np.float64]:
    if counts is None:
        raise RecordError(f'score="normalised" divides by the number of target tokens, but {name} is missing. Give it.')
    array = np.asarray(counts, dtype=np.float64)
    if (array < 1).any():
        raise RecordError(f"{name}: smallest value is {np.nanmin(array):g}, expected at least one token per target.")
    return array


def add_differences(pairs: pd.DataFrame, score: ScoreForm = "summed", nats: float = BOUNDS["float32"]) -> pd.DataFrame:
    """Add what an edit did to each prompt to paired log-probabilities; NaN unless status is "ok".

    Columns: D_pre, D_post and D = D_post - D_pre in the chosen form; whatever the form, from summed log-probabilities:
    `log_odds`, the change of log p(new) - log p(true) in nats, and `share`, that of p(new) / (p(new) + p(true));
    `likelier_pre`, the probability of the likelier of the two answers before the edit: how far D can move when one of
    them loses all of it. Where `holds` says which answer is right: `held_share_pre`, its share of the two before the
    edit, and `known`, whether it was ahead by more than `nats` (missing where it cannot be said).
    """
    out = pairs.copy(deep=False)
    ok = (pairs["status"] == "ok").to_numpy()
    tokens = [pairs[name].where(ok, 1) if name in pairs else None for name in ("n_new", "n_true")]
    for phase in ("pre", "post"):
        value = difference(pairs[f"{phase}_new"], pairs[f"{phase}_true"], score, *tokens)
        out[f"D_{phase}"] = np.where(ok, value, np.nan)
    out["D"] = out["D_post"] - out["D_pre"]
    new, true = (pairs[f"post_{side}"] - pairs[f"pre_{side}"] for side in ("new", "true"))
    out["log_odds"] = np.where(ok, new - true, np.nan)
    before, after = (pairs[f"{phase}_new"] - pairs[f"{phase}_true"] for phase in ("pre", "post"))
    out["share"] = np.where(ok, expit(after) - expit(before), np.nan)
    if "holds" in pairs:
        ahead = before * pairs["holds"].map({"target_new": 1.0, "target_true": -1.0})
        out["held_share_pre"] = expit(ahead)
        out["known"] = pd.Series(above(ahead, 0.0, nats), pairs.index, "boolean").mask(ahead.isna())
    sides = [pairs["pre_new"], pairs["pre_true"]]
    if score == "normalised":
        sides = [side / n for side, n in zip(sides, tokens) if n is not None]
    out["likelier_pre"] = np.where(ok, np.exp(np.maximum(sides[0], sides[1])), np.nan)
    out["status"] = pairs["status"].mask(ok & ~np.isfinite(out["D"]), "token counts: missing")
    return out


def prompt_effects(
    scores: pa.Table | pd.DataFrame,
    *,
    score: ScoreForm = "summed",
    kind: str = "cross_subject",
    nats: float = BOUNDS["float32"],
) -> pd.DataFrame:
    """One row per (editor, case, prompt) with D_pre, D_post and D.

    Args:
        scores: A score table (`seesaw_cf.tables.SCORES`); pre-edit rows carry the editor's name or, shared by all,
            "none".
        score: The form of confidence, see `difference`.
        kind: Which prompts: "cross_subject", "efficacy", "paraphrase" or "neighborhood".
        nats: Log-probabilities no further apart than this are a tie; a run's own is
            `seesaw_cf.stats.tolerance.tolerance` of its manifest.

    Returns:
        `editor`, the columns of `pair_targets` and those of `add_differences`. Prompts that cannot be compared stay
        as rows with NaN and a `status` that says why, so that every later stage can count them.

    Raises:
        RecordError: Columns missing, duplicates, values above 0, no post-edit rows, or no prompt of this kind.
        UnknownNameError: `score` is unknown.

    Source: SEESAW-CF section 4.1.
    """
    check_form(score)
    table = as_table(scores)
    targets = pc.is_in(table["role"], pa.array(["target_new", "target_true"]))
    chosen = table.filter(pc.and_(targets, pc.equal(table["kind"], kind)))
    if not chosen.num_rows:
        kinds = sorted({str(k) for k in pc.unique(table["kind"]).to_pylist()})
        raise RecordError(
            f"score table: no rows of kind {kind!r} with target_new and target_true; kinds there: {kinds}."
        )
    pairs = ((editor, pair_targets(rows)) for editor, rows in by_editor(chosen))
    frames = [add_differences(rows, score, nats).assign(editor=editor) for editor, rows in pairs]
    return pd.concat(frames, ignore_index=True)
