"""The score table, paired: one row per prompt with its four log-probabilities (pre and post, new and true target)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from seesaw_cf.errors import RecordError
from seesaw_cf.tables import LATER, SCORES

SIDES = ("pre_new", "pre_true", "post_new", "post_true")
# Pre-edit rows may be stored once for all editors, under one of these names.
UNEDITED = ("", "none")
# A sum of float32 log-probabilities may be above 0 by rounding.
_ROUNDING = 1e-6


def as_table(scores: pa.Table | pd.DataFrame) -> pa.Table:
    """Bring a score table to the schema `seesaw_cf.tables.SCORES`.

    Raises:
        RecordError: Columns are missing or hold other types.
    """
    for name in LATER:
        if isinstance(scores, pd.DataFrame) and name not in scores:
            scores = scores.assign(**{name: None})
        elif isinstance(scores, pa.Table) and name not in scores.column_names:
            scores = scores.append_column(name, pa.nulls(len(scores), SCORES.field(name).type))
    names = scores.column_names if isinstance(scores, pa.Table) else list(scores.columns)
    missing = [name for name in SCORES.names if name not in names]
    if missing:
        raise RecordError(f"score table: columns {missing} are missing, got {names}. See seesaw_cf.tables.SCORES.")
    try:
        if isinstance(scores, pa.Table):
            return scores.select(SCORES.names).cast(SCORES)
        return pa.Table.from_pandas(scores[SCORES.names], schema=SCORES, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError) as error:
        raise RecordError(f"score table: a column has another type than SCORES says ({error}).") from error


def by_editor(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each editor that has post-edit rows, with its pre-edit rows or, when it has none, the shared ones.

    Raises:
        RecordError: There are no post-edit rows, or a phase other than "pre" and "post".
    """
    phases = set(pc.unique(table["phase"]).to_pylist())
    if phases - {"pre", "post"}:
        raise RecordError(f"score table: phases {sorted(map(str, phases))}, expected only 'pre' and 'post'.")
    named = pc.fill_null(table["editor"], "")
    is_pre = pc.equal(table["phase"], "pre")
    shared = pc.and_(is_pre, pc.is_in(named, pa.array(UNEDITED)))
    editors = sorted(pc.unique(named.filter(pc.invert(is_pre))).to_pylist())
    if not editors and table.num_rows:
        raise RecordError("score table: no post-edit rows, so there is no effect to compute. Score after the edit too.")
    for editor in editors:
        own = pc.equal(named, editor)
        has_pre = pc.any(pc.and_(own, is_pre)).as_py()
        yield editor, table.filter(own if has_pre else pc.or_(own, shared))


def check_logprobs(name: str, values: NDArray[np.float64]) -> None:
    """Refuse numbers that cannot be log-probabilities.

    Raises:
        RecordError: A value is above 0, as probabilities and negative log-likelihoods are.
    """
    bad = np.flatnonzero(values > _ROUNDING)
    if bad.size:
        raise RecordError(
            f"{name}: {bad.size} of {values.size} values are above 0 (first: {values[bad[0]]:g} in row {bad[0]}), "
            "expected log-probabilities in nats, which are never positive. Take the logarithm, or change the sign of a "
            "negative log-likelihood."
        )


def pair_targets(rows: pa.Table) -> pd.DataFrame:
    """Pairs the rows of one editor: one output row per (kind, case, prompt).

    Args:
        rows: Rows of one editor (`by_editor`) with roles target_new and target_true.

    Returns:
        Descriptive columns of the prompt, `person` (subject id or name), `target_new`, `target_true`, the four
        log-probabilities `SIDES` in nats, `n_new` and `n_true` tokens, and `status`: "ok", or why the prompt cannot be
        compared. Sorted by (kind, case_id, prompt_id), whatever the order of the input.

    Raises:
        RecordError: A (case, prompt, target, phase) occurs twice, or a log-probability is above 0.
    """
    keys = rows.select(["kind", "case_id", "prompt_id"]).to_pandas()
    code = keys.groupby(["kind", "case_id", "prompt_id"], sort=True, dropna=False).ngroup().to_numpy()
    n = int(code.max()) + 1 if code.size else 0
    post = pc.equal(rows["phase"], "post").to_numpy()
    true = pc.equal(rows["role"], "target_true").to_numpy()
    cell = code * 4 + post * 2 + true
    _refuse_duplicates(keys, cell)
    usable = pc.equal(rows["status"], "ok").to_numpy()
    logprob = _scatter(cell, np.where(usable, rows["logprob"].to_numpy(), np.nan), 4 * n).reshape(n, 4)
    check_logprobs("logprob", logprob[np.isfinite(logprob)])
    tokens = _scatter(cell, rows["n_tokens"].cast(pa.float64()).to_numpy(), 4 * n).reshape(n, 4)

    first = np.full(n, -1)
    first[code[::-1]] = np.arange(code.size)[::-1]
    frame: pd.DataFrame = rows.select(_DESCRIBES).take(pa.array(first)).to_pandas()
    frame["person"] = frame["subject_id"].where(frame["subject_id"].fillna("") != "", frame["subject"])
    for side, name in ((0, "target_new"), (1, "target_true")):
        labels = np.full(n, None, dtype=object)
        of_side = true == bool(side)
        labels[code[of_side]] = rows["target"].filter(pa.array(of_side)).to_pandas().to_numpy(dtype=object)
        frame[name] = labels
    frame[list(SIDES)] = logprob
    frame["n_new"] = np.fmax(tokens[:, 0], tokens[:, 2])
    frame["n_true"] = np.fmax(tokens[:, 1], tokens[:, 3])
    frame["status"] = _statuses(cell, rows["status"], logprob)
    return frame


_DESCRIBES = [
    *("kind", "case_id", "prompt_id", "edit_relation", "effect_relation", "template_id", "prompt"),
    *("subject_id", "subject", "gender", "race", "region", "holds"),
]


def _scatter(cell: NDArray[np.int64], values: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    out = np.full(size, np.nan)
    out[cell] = values
    return out


def _refuse_duplicates(keys: pd.DataFrame, cell: NDArray[np.int64]) -> None:
    counts = np.bincount(cell) if cell.size else np.zeros(0, int)
    if counts.size and counts.max() > 1:
        row = keys.iloc[int(np.flatnonzero(cell == counts.argmax())[0])]
        raise RecordError(
            f"score table: {int((counts > 1).sum())} (case, prompt, target, phase) occur more than once, first: case "
            f"{row['case_id']}, prompt {row['prompt_id']}, {SIDES[int(counts.argmax()) % 4]}. Drop the copies, or give "
            "merged runs different editor names."
        )


def _statuses(cell: NDArray[np.int64], statuses: pa.ChunkedArray, logprob: NDArray[np.float64]) -> list[str]:
    """One status per prompt; only prompts with something wrong are looked at one by one."""
    out = ["ok"] * len(logprob)
    row_of = np.full(logprob.size, -1)
    row_of[cell] = np.arange(cell.size)
    for prompt, column in np.argwhere(~np.isfinite(logprob)):
        row = row_of[prompt * 4 + column]
        if out[prompt] == "ok":
            reason = "missing" if row < 0 else statuses[row].as_py()
            out[prompt] = f"{SIDES[column]}: {'not finite' if reason == 'ok' else reason}"
    return out
