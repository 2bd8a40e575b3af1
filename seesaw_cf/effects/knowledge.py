"""What the unedited model knew: rank and share of an answer among candidates, and tables of the known facts alone.

Known means: the right answer is first among the candidates that were asked, by more than rounding. That is less than
knowledge in general: another wording, or an answer that was not asked, may come before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypedDict

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logsumexp

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.stats import clustered_mean, proportion, share_interval
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.simple import BOUNDS, above

FACTS: Mapping[str, str] = {"edited fact known": "edit_known", "asked fact known": "known"}
"""Which facts a table is about -> the column that says whether a row's fact was known."""
_PEOPLE = {
    "target_new": "questions on holders of the new target",
    "target_true": "questions on holders of the true target",
}


class Knowledge(TypedDict):
    """What a model knew of one fact; None where it is unknown.

    Attributes:
        n_candidates: Answers with a score.
        true_rank: Rank of the right answer, 1 = first; ties count against it.
        true_share: p(right) over the sum of the candidates' probabilities, in 0..1.
        known: The rank is 1.
    """

    n_candidates: int | None
    true_rank: int | None
    true_share: float | None
    known: bool | None


def gold_rank(logprobs: Floats, gold: NDArray[np.bool_], nats: float = BOUNDS["float32"]) -> int:
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
    return float(logsumexp(logprobs[gold]) - logsumexp(logprobs[~gold])) if gold.any() and not gold.all() else np.nan


def knowledge(logprobs: Floats, true: NDArray[np.bool_], nats: float = BOUNDS["float32"]) -> Knowledge:
    """Return rank and share of the right answer among candidates; a common factor of probabilities changes neither.

    Args:
        logprobs: (candidates,), nats, summed over target tokens; NaN where a candidate has no score, it is left out.
        true: (candidates,), which is right; exactly one.
        nats: See `gold_rank`.

    Returns:
        The numbers; all None when the right answer or every other one has no score.

    Raises:
        RecordError: Unequal lengths, or not exactly one right answer.
    """
    if len(logprobs) != len(true) or np.count_nonzero(true) != 1:
        raise RecordError(
            f"knowledge: {len(logprobs)} log-probabilities and right answers {shown(true.tolist())}; expected equal "
            "lengths and exactly one right answer."
        )
    scored = np.isfinite(logprobs)
    values, own = logprobs[scored], true[scored]
    if not own.any() or own.all():
        return {"n_candidates": None, "true_rank": None, "true_share": None, "known": None}
    rank = gold_rank(values, own, nats)
    share = float(np.exp(values[own][0] - logsumexp(values)))
    return {"n_candidates": len(values), "true_rank": rank, "true_share": share, "known": rank == 1}


def with_edit_known(rows: pd.DataFrame, edits: pd.DataFrame) -> pd.DataFrame:
    """Add `edit_known`: whether the fact that each row's edit changes was known before.

    Args:
        rows: Columns editor and case_id.
        edits: Rows of `seesaw_cf.run.edit_table.EDITS`.
    """
    by_edit = edits.drop_duplicates(["editor", "case_id"]).set_index(["editor", "case_id"])["known"].astype("boolean")
    keys = pd.MultiIndex.from_frame(rows[["editor", "case_id"]])
    return rows.assign(edit_known=by_edit.reindex(keys).array)


def among_known(rows: pd.DataFrame, table: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
    """Return the rows with a fact known before, once for each entry of `FACTS`, under the column `facts`.

    Args:
        rows: With the columns of `FACTS`; missing values count as not known.
        table: What is made of them; a `RecordError` of it means that there is nothing to compute.
    """
    tables = []
    for facts, column in FACTS.items():
        chosen = rows[rows[column].astype("boolean").fillna(value=False).to_numpy(bool)]
        try:
            part = table(chosen) if len(chosen) else chosen.iloc[:0]
        except RecordError:
            continue
        if len(part):
            part.insert(0, "facts", facts)
            tables.append(part)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


class KnowledgeRow(TypedDict):
    """A row of `knowledge_table`: how many facts of one kind and relation the unedited model knew."""

    facts: str
    relation: str
    n: int
    n_without: int
    known: float
    known_low: float
    known_high: float
    median_rank: float
    median_candidates: float
    median_share: float
    note: str


def knowledge_table(edits: pd.DataFrame, prompts: pd.DataFrame | None) -> pd.DataFrame:
    """Return how many of the edited and asked facts the unedited model knew; each fact counts once for all editors.

    Limits of shares are cut at 0 and 1.

    Args:
        edits: Rows of `seesaw_cf.run.edit_table.EDITS`.
        prompts: Rows of `seesaw_cf.effects.prompt_effects`; None without any.

    Returns:
        Rows of `KnowledgeRow`, relation "all" last: the edited facts (Wilson intervals), then the asked ones of people
        who hold the new and the true target (clustered by edit and person, none below five of either).
    """
    facts = edits.drop_duplicates("case_id").rename(columns={"relation_id": "relation"})
    rows = _rows("edited facts", facts, lambda values, _: proportion(int(values.sum()), len(values)))
    if prompts is not None:
        questions = prompts.drop_duplicates(["case_id", "prompt_id"]).rename(columns={"edit_relation": "relation"})
        questions = questions.assign(
            true_rank=2.0 - questions["known"].astype("Float64"), n_candidates=2, true_share=questions["held_share_pre"]
        )
        for holds, about in _PEOPLE.items():
            rows += _rows(about, questions[questions["holds"] == holds], _clustered)
    return pd.DataFrame(rows, columns=list(KnowledgeRow.__annotations__))


def _rows(about: str, facts: pd.DataFrame, share: Callable[[Floats, pd.DataFrame], Estimate]) -> list[KnowledgeRow]:
    if facts.empty:
        return []
    joined = pd.concat([facts, facts.assign(relation="all")])
    return [_row(about, str(name), rows, share) for name, rows in joined.groupby("relation", sort=False)]


def _row(
    about: str, relation: str, rows: pd.DataFrame, share: Callable[[Floats, pd.DataFrame], Estimate]
) -> KnowledgeRow:
    there = rows[rows["known"].notna()]
    values = there["known"].to_numpy(np.float64)
    estimate = share(values, there) if len(there) else Estimate(np.nan, note="not recorded, or not scored")
    rank, candidates, probability = (
        float(there[name].astype(np.float64).median()) for name in ("true_rank", "n_candidates", "true_share")
    )
    return {
        "facts": about,
        "relation": relation,
        "n": len(there),
        "n_without": len(rows) - len(there),
        "known": estimate.value,
        "known_low": float(np.clip(estimate.low, 0, 1)),
        "known_high": float(np.clip(estimate.high, 0, 1)),
        "median_rank": rank,
        "median_candidates": candidates,
        "median_share": probability,
        "note": estimate.note,
    }


def _clustered(values: Floats, rows: pd.DataFrame) -> Estimate:
    clusters = {"edit": pd.factorize(rows["case_id"])[0], "person": pd.factorize(rows["person"])[0]}
    estimate = clustered_mean(values, [np.full(len(values), 1 / len(values))], clusters)
    if estimate.note.startswith("too few"):
        return estimate
    value, n = float(np.clip(estimate.value, 0, 1)), min(estimate.effective.values())  # all known, or none: once each
    if not math.isnan(estimate.stderr):
        n = min(len(values), value * (1 - value) / estimate.stderr**2)
    low, high = share_interval(value, n)
    return replace(estimate, value=value, low=low, high=high, note="")
