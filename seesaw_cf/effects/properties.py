"""Cross-property accuracy: is the right answer about another property still the model's first choice?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from seesaw_cf.effects.accuracy import Mode, accuracy_table, check_mode
from seesaw_cf.effects.knowledge import gold_odds, gold_rank
from seesaw_cf.effects.pairs import as_table, by_editor, check_logprobs
from seesaw_cf.errors import RecordError, unknown_name
from seesaw_cf.records.relations import FREE
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.tolerance import BOUNDS


def answers(scores: pa.Table | pd.DataFrame, *, mode: Mode = "exact", prompt: str = "property") -> pd.DataFrame:
    """One row per (editor, case, effect relation): candidates, gold labels, log-probabilities pre and post.

    Args:
        scores: A score table with rows of kind "cross_property".
        mode: "exact" takes the prompt named by `prompt` in both phases; "paper" takes the first stored prompt of each
            phase.
        prompt: "property" (the prompt that names the property), "free" ("X is"), or a template id.

    Returns:
        Columns editor, case_id, person, edit_relation, effect_relation, prompt_pre, prompt_post, candidates, gold
        (labels), pre and post (arrays of nats in the order of `candidates`, NaN where a candidate could not be scored).

    Raises:
        RecordError: No rows of this kind, no such prompt, or a candidate twice.
        UnknownNameError: `mode` is unknown.
    """
    check_mode(mode)
    table = as_table(scores)
    chosen = table.filter(pc.equal(table["kind"], "cross_property"))
    if not chosen.num_rows:
        raise RecordError("score table: no rows of kind 'cross_property'. Run the cross_property configuration.")
    cases = []
    for editor, rows in by_editor(chosen):
        frame = rows.select(_COLUMNS).to_pandas(strings_to_categorical=True)
        if mode == "exact":
            frame = _named(frame, prompt)
        keys = ["case_id", "effect_relation", "phase"]
        first = frame.groupby(keys, observed=True)["prompt_id"].transform("min")
        frame = frame[frame["prompt_id"] == first]
        cases += [{"editor": editor} | answer for answer in _answers_of(frame)]
    return pd.DataFrame(cases)


_COLUMNS = [
    *("case_id", "edit_relation", "effect_relation", "phase", "prompt_id", "template_id", "prompt", "subject"),
    *("subject_id", "target", "gold", "logprob", "status"),
]


def _named(frame: pd.DataFrame, prompt: str) -> pd.DataFrame:
    subjects = frame["subject"].dropna().unique()
    free_texts = {FREE.fill(name, living=living) for name in subjects for living in (True, False)}
    free = (frame["template_id"] == FREE.id) | frame["prompt"].isin(free_texts)
    keep = {"property": ~free, "free": free}.get(prompt, frame["template_id"] == prompt)
    if not keep.any():
        there = ["property", "free", *frame["template_id"].dropna().unique()]
        raise unknown_name("prompt", prompt, [name for name in there if name])
    return frame[keep]


def _answers_of(frame: pd.DataFrame) -> Iterator[dict[str, Any]]:
    post = (frame["phase"] == "post").to_numpy()
    columns = {name: frame[name].to_numpy() for name in ("edit_relation", "prompt", "target", "subject", "subject_id")}
    gold = frame["gold"].fillna(False).to_numpy(bool)
    logprob = np.where(frame["status"] == "ok", frame["logprob"], np.nan)
    groups: dict[Any, NDArray[np.intp]] = frame.groupby(["case_id", "effect_relation"], observed=True).indices  # type: ignore[assignment]
    for (case_id, effect_relation), rows in groups.items():
        where = f"case {case_id}, effect relation {effect_relation}"
        sides = {"pre": rows[~post[rows]], "post": rows[post[rows]]}
        stored = sides["pre"] if sides["pre"].size else sides["post"]
        names = columns["target"][stored].tolist()
        yield {
            "case_id": int(case_id),
            "person": columns["subject_id"][rows[0]] or columns["subject"][rows[0]],
            "edit_relation": columns["edit_relation"][rows[0]],
            "effect_relation": effect_relation,
            **{f"prompt_{phase}": columns["prompt"][side[0]] if side.size else "" for phase, side in sides.items()},
            "candidates": names,
            "gold": columns["target"][stored[gold[stored]]].tolist(),
            **{phase: _in_order(where, names, columns["target"][side], logprob[side]) for phase, side in sides.items()},
        }


def _in_order(where: str, names: list[str], candidates: NDArray[Any], logprobs: Floats) -> Floats:
    by_name = dict(zip(candidates.tolist(), logprobs.tolist()))
    if len(by_name) < len(candidates):
        twice = Counter(candidates.tolist()).most_common(1)[0][0]
        raise RecordError(
            f"{where}: candidate {twice!r} occurs more than once. Drop the copies, or give "
            "merged runs different editor names."
        )
    return np.array([by_name.get(name, np.nan) for name in names], dtype=np.float64)


def mark(frame: pd.DataFrame, mode: Mode = "exact", nats: float = BOUNDS["float32"]) -> pd.DataFrame:
    """Add `pre_correct`, `post_correct`, `pre_rank`, `post_rank`, `pre_odds`, `post_odds` (`gold_odds`) and `status`
    to rows of `answers`.

    Exact: the gold candidate beats all others by more than `nats`, the run's rounding (ties fail). Paper: the first
    best candidate's whole string, prompt included, contains a gold label, which makes "male" right whenever the model
    says "female".

    Status is "ok", "no gold" (no gold label at all), "unscored" (a candidate without a finite score) or "unanswerable"
    (no gold label is a candidate). An unanswerable case counts as wrong in the exact mode, with rank 0; the paper mode
    leaves it out, as the authors did.

    Raises:
        RecordError: Columns of unequal length, or a log-probability above 0.
    """
    check_mode(mode)
    marks = [_mark(dict(row), mode, nats) for row in frame.to_dict("records")]
    return frame.reset_index(drop=True).join(pd.DataFrame(marks, columns=list(_EMPTY)))


_EMPTY = {"pre_correct": False, "post_correct": False, "pre_rank": 0, "post_rank": 0, "status": "no gold"}
_EMPTY |= {"pre_odds": float("nan"), "post_odds": float("nan")}


def _mark(row: dict[Any, Any], mode: Mode, nats: float) -> dict[str, Any]:
    names, gold_names = list(row["candidates"]), set(row["gold"])
    gold = np.array([name in gold_names for name in names], dtype=bool)
    out = dict(_EMPTY)
    values = {phase: np.asarray(row[phase], dtype=np.float64) for phase in ("pre", "post")}
    for phase, logprobs in values.items():
        if len(logprobs) != len(names):
            raise RecordError(
                f"case {row['case_id']}: {len(names)} candidates but {len(logprobs)} {phase} "
                "values; give one per candidate."
            )
        check_logprobs(f"case {row['case_id']}, {phase}", logprobs)
    if len(set(names)) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise RecordError(f"case {row['case_id']}: candidate {twice!r} occurs more than once. Drop the copies.")
    if not gold_names:
        return out
    if not all(v.size and np.isfinite(v).all() for v in values.values()):
        return out | {"status": "unscored"}
    for phase, logprobs in values.items():
        rank = gold_rank(logprobs, gold, nats) if gold.any() else 0
        text = f"{row[f'prompt_{phase}']} {names[int(logprobs.argmax())]}"
        correct = rank == 1 if mode == "exact" else any(label in text for label in gold_names)
        out |= {f"{phase}_correct": correct, f"{phase}_rank": rank, f"{phase}_odds": gold_odds(logprobs, gold)}
    return out | {"status": "ok" if gold.any() else "unanswerable"}


def cross_property(
    scores: pa.Table | pd.DataFrame,
    *,
    mode: Mode = "exact",
    prompt: str = "property",
    draws: int = 2000,
    seed: int = 0,
) -> pd.DataFrame:
    """Accuracy on the effect property before and after the edit, per (editor, edit relation, effect relation).

    Args:
        scores: A score table with rows of kind "cross_property".
        mode: "exact": the named prompt, exact labels, ties fail. "paper": the first stored prompt of each phase,
            substring match, unanswerable cases left out, unpaired t-test, to reproduce the published tables.
        prompt: Which prompt the exact mode uses, see `answers`.
        draws, seed: Bootstrap over cases for the change in the paper mode.

    Returns:
        The columns of `Accuracy.row`.

    Raises:
        RecordError: As `answers`.
        UnknownNameError: Unknown `mode` or `prompt`.

    Source: SEESAW-CF section 4.2, Tables 4 and 5.
    Deviates: the exact mode; see `mark` for what the published rule counts as correct.
    """
    return accuracy_table(mark(answers(scores, mode=mode, prompt=prompt), mode), mode=mode, draws=draws, seed=seed)
