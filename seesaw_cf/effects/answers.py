"""Answers about other facts and other people: what the model knew, which answers are right, are they left alone?

Known means: the right answer is first among the candidates that were asked, by more than rounding. That is less than
knowledge in general: another wording, or an answer that was not asked, may come before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import NDArray

from seesaw_cf.base.checks import one_of, shown
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.terminal import interval
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.effects.prompts import SIDES, check_logprobs, prompt_effects
from seesaw_cf.effects.success import EditNumbers
from seesaw_cf.effects.tables import Scores, as_frame, by_editor, checked, count_rows, refuse_rows
from seesaw_cf.records.relations import FREE
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.simple import BOUNDS, above, proportion

_NATS = BOUNDS["float32"]
Mode = Literal["exact", "paper"]
_COLUMNS = ["case_id", "edit_relation", "effect_relation", "phase", "prompt_id", "template_id", "prompt"]
_COLUMNS += ["subject", "subject_id", "target", "gold", "logprob", "status"]


def answers(scores: Scores, *, mode: Mode = "exact") -> pd.DataFrame:
    """Return one row per (editor, case, effect relation): candidates, gold labels, log-probabilities pre and post.

    Args:
        scores: A score table with rows of kind "cross_property".
        mode: "exact" takes the first prompt that names the property in each phase; "paper" takes the first stored one,
            which may be "X is".

    Returns:
        Columns editor, case_id, person, edit_relation, effect_relation, prompt_pre, prompt_post, candidates, gold
        (labels), pre and post (arrays of nats in the order of `candidates`, NaN where a candidate could not be scored).

    Raises:
        RecordError: No rows of this kind, or a candidate twice.
    """
    cases = []
    for editor, rows in by_editor(scores, pc.field("kind") == "cross_property", _COLUMNS, "kind 'cross_property'"):
        frame = as_frame(rows)
        if mode == "exact":
            names = frame["subject"].dropna().unique()
            free = {FREE.fill(name, living=living) for name in names for living in (True, False)}
            frame = frame[(frame["template_id"] != FREE.id) & ~frame["prompt"].isin(free)]
        keys = ["case_id", "effect_relation", "phase"]
        first = frame.groupby(keys, observed=True)["prompt_id"].transform("min")
        frame = frame[frame["prompt_id"] == first]
        once = "every candidate once: drop copies, or give merged runs different editor names"
        refuse_rows(frame, frame.duplicated([*keys, "target"]), [*keys, "target"], once)
        cases += [{"editor": editor} | answer for answer in _answers_of(frame)]
    return pd.DataFrame(cases)


def _answers_of(frame: pd.DataFrame) -> Iterator[JsonObject]:
    post = (frame["phase"] == "post").to_numpy()
    columns = {name: frame[name].to_numpy() for name in ("edit_relation", "prompt", "target", "subject", "subject_id")}
    gold = frame["gold"].fillna(False).to_numpy(bool)
    logprob = np.where(frame["status"] == "ok", frame["logprob"], np.nan)
    groups: dict[Any, NDArray[np.intp]] = frame.groupby(["case_id", "effect_relation"], observed=True).indices  # type: ignore[assignment]
    for (case_id, effect_relation), rows in groups.items():
        sides = {"pre": rows[~post[rows]], "post": rows[post[rows]]}
        stored = sides["pre"] if sides["pre"].size else sides["post"]
        names, scores = columns["target"][stored].tolist(), {}
        for phase, side in sides.items():
            by_name = dict(zip(columns["target"][side].tolist(), logprob[side].tolist()))
            scores[phase] = np.array([by_name.get(name, np.nan) for name in names], dtype=np.float64)
        yield {
            "case_id": int(case_id),
            "person": columns["subject_id"][rows[0]] or columns["subject"][rows[0]],
            "edit_relation": columns["edit_relation"][rows[0]],
            "effect_relation": effect_relation,
            **{f"prompt_{phase}": columns["prompt"][side[0]] if side.size else "" for phase, side in sides.items()},
            "candidates": names,
            "gold": columns["target"][stored[gold[stored]]].tolist(),
            **scores,
        }


def mark(frame: pd.DataFrame, mode: Mode = "exact", nats: float = _NATS) -> pd.DataFrame:
    """Add `pre_correct`, `post_correct`, `pre_rank`, `post_rank`, `pre_odds`, `post_odds` (`gold_odds`) and `status`
    to rows of `answers`.

    Exact: the gold candidate beats every other by more than `nats`, the run's rounding (ties fail). Paper: the first
    best candidate's whole string, prompt included, contains a gold label, which makes "male" right whenever the model
    answers "female".

    Status is "ok", "no gold" (no gold label at all), "unscored" (a candidate without a finite score) or "unanswerable"
    (no gold label is a candidate). An unanswerable case counts as wrong in the exact mode, with rank 0; the paper mode
    leaves it out, as the authors did.

    Raises:
        RecordError: Columns of unequal length, or a log-probability above 0.
    """
    one_of("mode", mode, get_args(Mode))
    marks = [_mark(dict(row), mode, nats) for row in frame.to_dict("records")]
    return frame.reset_index(drop=True).join(pd.DataFrame(marks, columns=list(_EMPTY)))


_EMPTY: JsonObject = {"pre_correct": False, "post_correct": False, "pre_rank": 0, "post_rank": 0, "status": ""}
_EMPTY |= {"pre_odds": float("nan"), "post_odds": float("nan")}


def _mark(row: dict[Any, Any], mode: Mode, nats: float) -> JsonObject:
    names, right, where = list(row["candidates"]), set(row["gold"]), f"case {row['case_id']}"
    gold = np.array([name in right for name in names], dtype=bool)
    values = {phase: np.asarray(row[phase], dtype=np.float64) for phase in ("pre", "post")}
    for phase, logprobs in values.items():
        if len(logprobs) != len(names):
            got = f"{len(names)} candidates but {len(logprobs)} {phase} values"
            raise RecordError(f"{where}: {got}; give one per candidate.")
        check_logprobs(f"{where}, {phase}", logprobs)
    if len(set(names)) < len(names):
        raise RecordError(f"{where}: a candidate occurs more than once in {shown(names)}. Drop the copies.")
    if not right or not all(own.size and np.isfinite(own).all() for own in values.values()):
        return _EMPTY | {"status": "unscored" if right else "no gold"}
    out: JsonObject = {"status": "ok" if gold.any() else "unanswerable"}
    for phase, logprobs in values.items():
        rank = gold_rank(logprobs, gold, nats) if gold.any() else 0
        text = f"{row[f'prompt_{phase}']} {names[int(logprobs.argmax())]}"
        correct = rank == 1 if mode == "exact" else any(label in text for label in right)
        out |= {f"{phase}_correct": correct, f"{phase}_rank": rank, f"{phase}_odds": gold_odds(logprobs, gold)}
    return out


# What the unedited model knew.


def gold_rank(logprobs: Floats, gold: NDArray[np.bool_], nats: float = _NATS) -> int:
    """Return the rank of the best gold candidate: 1 when it beats every other candidate; ties count against it.

    Args:
        logprobs: (candidates,), nats.
        gold: (candidates,), which of them are true; at least one.
        nats: Log-probabilities no further apart than this are a tie, see `seesaw_cf.stats.simple`.
    """
    return 1 + int((~above(logprobs[gold].max(), logprobs[~gold], nats)).sum())


def gold_odds(logprobs: Floats, gold: NDArray[np.bool_]) -> float:
    """Return log of the gold candidates' probability over that of the rest, nats: the log-odds of their share.

    Args:
        logprobs: (candidates,), nats.
        gold: (candidates,), which of them are true.
    """
    if gold.all() or not gold.any():
        return np.nan
    return float(np.logaddexp.reduce(logprobs[gold]) - np.logaddexp.reduce(logprobs[~gold]))


def knowledge(logprobs: Floats, true: NDArray[np.bool_], nats: float = _NATS) -> dict[str, Any]:
    """Return what a model knew of one fact; a common factor of probabilities changes nothing of it.

    Args:
        logprobs: (candidates,), nats, summed over target tokens; NaN where a candidate has no score, it is left out.
        true: (candidates,), which is right; exactly one.
        nats: See `gold_rank`.

    Returns:
        `n_candidates`, answers with a score; `true_rank` of the right one, 1 = first, ties count against it;
        `true_share`, p(right) over the sum of the candidates' probabilities; `known`, whether the rank is 1. All None
        when the right answer or every other one has no score.
    """
    scored = np.isfinite(logprobs)
    values, own = logprobs[scored], true[scored]
    if not own.any() or own.all():
        return dict.fromkeys(("n_candidates", "true_rank", "true_share", "known"))
    rank, share = gold_rank(values, own, nats), float(np.exp(values[own][0] - np.logaddexp.reduce(values)))
    return {"n_candidates": len(values), "true_rank": rank, "true_share": share, "known": rank == 1}


# Do edits leave other facts alone? The locality gate.

LEAST_LOCAL = 0.5
"""An edit is local while at least this share of the others' answers that were right before it are right after it.

An editor's edits collapse once the interval of the share of local edits lies below the same number: most of its edits
spoil most of what they were not about, and numbers about other people then describe a broken model. One half is the
majority, twice; no data were used to choose it.
"""
_OTHERS = {"neighborhood": "neighbours", "cross_subject": "people who hold the old answer"}
"""Kind of prompts -> who they are about; the first kind that a table has."""


@dataclass(frozen=True, slots=True)
class Locality:
    """What an editor's edits leave of the right answers about other people and facts.

    Attributes:
        others: Description of the prompts that were counted.
        before, after: Shares of the prompts about them that are right before and after the edits.
        n_prompts: Number of those prompts.
        local: Share of the edits that are local (Wilson, 95 %).
    """

    others: str
    before: float
    after: float
    n_prompts: int
    local: Estimate

    @property
    def collapsed(self) -> bool:
        """Whether most edits are shown not to be local."""
        return self.local.high < LEAST_LOCAL

    def __str__(self) -> str:
        return (
            f"{self.others} right {self.before:.0%} before, {self.after:.0%} after (n = {self.n_prompts}); "
            f"{self.local.value:.0%} {interval(self.local.low, self.local.high, spec='.0%')} of {self.local.n} edits "
            "leave at least half of those right"
        )


def locality(
    scores: Scores, edits: EditNumbers | None = None, nats: float = _NATS, people: pd.DataFrame | None = None
) -> dict[str, Locality]:
    """Count the edits after which most of the other right answers are still right; a tie is wrong.

    These are the neighbourhood prompts, or without any the people of the cross-subject prompts who hold the true
    target. An edit without an answer that was right before is left out.

    Args:
        scores: A score table.
        edits: See `seesaw_cf.effects.success.edit_numbers`; None: every case is an edit.
        nats: Log-probabilities no further apart than this are a tie.
        people: Rows of `seesaw_cf.effects.prompt_effects` of the kind "cross_subject", where they are at hand.

    Returns:
        Editor -> what was counted; an editor without such edits is left out.

    Raises:
        RecordError: As `seesaw_cf.effects.prompt_effects`.
    """
    table = checked(scores)
    kinds = count_rows(table, ["kind"], pc.field("role") == "target_new")["kind"].to_pylist()
    kind = next((name for name in _OTHERS if name in kinds), None)
    if kind is None:
        return {}
    prompts = people if kind == "cross_subject" and people is not None else prompt_effects(table, kind=kind)
    right = prompts["holds"] == "target_true" if kind == "cross_subject" else True
    prompts = prompts.loc[(prompts["status"] == "ok") & right, ["editor", "case_id", *SIDES]]
    keys = zip(prompts["editor"], prompts["case_id"])
    prompts["edit"] = [key[1] if edits is None else edits[key] for key in keys]
    for name in ("pre", "post"):
        prompts[name] = above(prompts[f"{name}_true"], prompts[f"{name}_new"], nats)
    counts = {}
    for editor, own in prompts.groupby("editor", sort=False):
        local = own[own["pre"]].groupby("edit")["post"].mean() >= LEAST_LOCAL
        if len(local):
            shares = own["pre"].mean(), own["post"].mean(), len(own)
            counts[str(editor)] = Locality(_OTHERS[kind], *shares, proportion(int(local.sum()), len(local)))
    return counts
