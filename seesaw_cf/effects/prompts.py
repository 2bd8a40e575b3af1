"""From four log-probabilities per prompt to D_pre, D_post and their difference."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.effects.tables import Scores, as_codes, as_frame, by_editor, refuse_rows, stack

# The score table, paired: one row per prompt with its four log-probabilities (pre and post, new and true target).

SIDES = ("pre_new", "pre_true", "post_new", "post_true")
# A sum of float32 log-probabilities may be above 0 by rounding.
_ROUNDING = 1e-6


def check_logprobs(name: str, values: NDArray[np.float64]) -> None:
    """Refuse numbers that cannot be log-probabilities.

    Raises:
        RecordError: A value is above 0, as probabilities and negative log-likelihoods are.
    """
    bad = np.flatnonzero(values > _ROUNDING)
    if bad.size:
        got = f"{bad.size} of {values.size} values are above 0 (first: {values[bad[0]]:g} in row {bad[0]})"
        expected = "log-probabilities in nats, which are never positive. Take the logarithm, or change the sign of a"
        raise RecordError(f"{name}: {got}, expected {expected} negative log-likelihood.")


def pair_targets(rows: pa.Table) -> pd.DataFrame:
    """Pair the rows of one editor: one output row per (kind, case, prompt).

    Args:
        rows: Rows of one editor (`by_editor`) with roles target_new and target_true.

    Returns:
        Descriptive columns of the prompt, `person` (subject id or name), `target_new`, `target_true`, the four
        log-probabilities `SIDES` in nats, `n_new` and `n_true` tokens, and `status`: "ok", or why the prompt cannot be
        compared. Sorted by (kind, case_id, prompt_id).

    Raises:
        RecordError: A (case, prompt, target, phase) occurs twice, or a log-probability is above 0.
    """
    keys = as_frame(rows.select(_KEYS))
    code = keys.groupby(_KEYS, sort=True, dropna=False).ngroup().to_numpy()
    first = np.unique(code, return_index=True)[1]
    n, true = first.size, pc.equal(rows["role"], "target_true").to_numpy()
    cell = code * 4 + pc.equal(rows["phase"], "post").to_numpy() * 2 + true
    once = "each (case, prompt, target, phase) once: drop copies, or give merged runs different editor names"
    refuse_rows(keys, pd.Series(np.bincount(cell)[cell] > 1), _KEYS, once)
    usable = pc.equal(rows["status"], "ok").to_numpy()
    cells = np.full((3, 4 * n), np.nan)  # where a cell is empty
    cells[0, cell] = np.where(usable, rows["logprob"].to_numpy(), np.nan)
    cells[1, cell] = rows["n_tokens"].cast(pa.float64()).to_numpy()
    cells[2, cell] = np.arange(cell.size)
    logprob, tokens, row_of = cells.reshape(3, n, 4)
    check_logprobs("logprob", logprob[np.isfinite(logprob)])

    of_prompt = rows.select(_DESCRIBES).take(pa.array(first))
    frame = as_frame(of_prompt.drop("holds"))
    frame["holds"] = of_prompt["holds"].cast(pa.string()).to_pandas()
    named = pc.not_equal(pc.fill_null(of_prompt["subject_id"].cast(pa.string()), ""), "")
    frame["person"] = as_codes(pc.if_else(named, *(of_prompt[name].cast(pa.string()) for name in _PERSON)))
    for side, name in ((0, "target_new"), (1, "target_true")):
        asked = np.full(n, -1)
        of_side = true == bool(side)
        asked[code[of_side]] = np.flatnonzero(of_side)
        frame[name] = as_codes(rows["target"].take(pa.array(asked, mask=asked < 0)))
    frame[list(SIDES)] = logprob
    frame["n_new"], frame["n_true"] = np.fmax(tokens[:, :2], tokens[:, 2:]).T
    status = ["ok"] * n
    for prompt, side in np.argwhere(~np.isfinite(logprob))[::-1]:  # the first of a prompt's reasons comes last
        row = row_of[prompt, side]
        reason = "missing" if np.isnan(row) else rows["status"][int(row)].as_py()
        status[prompt] = f"{SIDES[side]}: {'not finite' if reason == 'ok' else reason}"
    return frame.assign(status=status)


_KEYS = ["kind", "case_id", "prompt_id"]
_PERSON = ["subject_id", "subject"]
_DESCRIBES = [*_KEYS, "edit_relation", "effect_relation", "template_id", "prompt", *_PERSON]
_DESCRIBES += ["gender", "race", "region", "holds"]
PAIRED = [*_DESCRIBES, "target", "role", "phase", "logprob", "n_tokens", "status"]
"""Columns of a score table that pairs are made of."""


Counts = ArrayLike | None
ScoreForm = Literal["summed", "normalised", "log_odds"]


def difference(
    new: ArrayLike, true: ArrayLike, score: ScoreForm = "summed", n_new: Counts = None, n_true: Counts = None
) -> NDArray[np.float64]:
    """Return D = confidence in the new target minus confidence in the true one.

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
    one_of("score", score, get_args(ScoreForm))
    new, true = np.asarray(new, dtype=np.float64), np.asarray(true, dtype=np.float64)
    if new.shape != true.shape:
        raise RecordError(f"difference: new has shape {new.shape}, true {true.shape}; expected the same.")
    if score == "log_odds":
        return np.asarray(new - true)
    if score == "normalised":
        new, true = new / _tokens("n_tokens_new", n_new), true / _tokens("n_tokens_true", n_true)
    with np.errstate(under="ignore"):
        return np.asarray(np.exp(new) - np.exp(true))


def _tokens(name: str, counts: Counts) -> NDArray[np.float64]:
    if counts is None:
        raise RecordError(f'score="normalised" divides by the number of target tokens, but {name} is missing. Give it.')
    array = np.asarray(counts, dtype=np.float64)
    if (array < 1).any():
        raise RecordError(f"{name}: smallest value is {np.nanmin(array):g}, expected at least one token per target.")
    return array


def add_differences(pairs: pd.DataFrame, score: ScoreForm = "summed") -> pd.DataFrame:
    """Add what an edit did to each prompt to paired log-probabilities; NaN unless status is "ok".

    Columns: D_pre, D_post and D = D_post - D_pre in the chosen form; in any form, from summed log-probabilities:
    `log_odds`, the change of log p(new) - log p(true) in nats, and `share`, that of p(new) / (p(new) + p(true));
    `likelier_pre`, the probability of the likelier of the two answers before the edit: how far D can move when one of
    them loses all of it.
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
    sides = [pairs["pre_new"], pairs["pre_true"]]
    if score == "normalised":
        sides = [side / n for side, n in zip(sides, tokens) if n is not None]
    out["likelier_pre"] = np.where(ok, np.exp(np.maximum(sides[0], sides[1])), np.nan)
    out["status"] = pairs["status"].mask(ok & ~np.isfinite(out["D"]), "token counts: missing")
    return out


def prompt_effects(scores: Scores, *, score: ScoreForm = "summed", kind: str = "cross_subject") -> pd.DataFrame:
    """Return one row per (editor, case, prompt) with D_pre, D_post and D.

    Args:
        scores: A score table (`seesaw_cf.base.tables.SCORES`), also in a file; pre-edit rows carry the editor's name
            or, shared by all, "none".
        score: The form of confidence, see `difference`.
        kind: Which prompts: "cross_subject", "efficacy", "paraphrase" or "neighborhood".

    Returns:
        `editor`, the columns of `pair_targets` and those of `add_differences`. Prompts that cannot be compared stay
        as rows with NaN and the reason in `status`, so that every later stage can count them.

    Raises:
        RecordError: Columns missing, duplicates, values above 0, no post-edit rows, or no prompt of this kind.
        UnknownNameError: `score` is unknown.

    Source: SEESAW-CF section 4.1.
    """
    targets = pc.field("role").isin(["target_new", "target_true"]) & (pc.field("kind") == kind)
    tables = by_editor(scores, targets, PAIRED, f"kind {kind!r} with target_new and target_true", parts=True)
    return stack([add_differences(pair_targets(rows), score).assign(editor=editor) for editor, rows in tables])
