"""One prompt of a run in words: the model's answers before and after the edit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import logsumexp

from seesaw_cf.base.terminal import printable
from seesaw_cf.report.html.findings import AnswerExample
from seesaw_cf.report.levels import LevelChange
from seesaw_cf.report.page_cases import edited_facts
from seesaw_cf.report.results import Results, relation_name

_SAYS = 0.5  # a model "says" an answer that it gives more than half of the probability

_MEDIAN = "Of each edit the one with the median change of log-odds was taken, of these edits that in the middle."
# Whether the model says the wrong answer now -> the answer, its probability after and before, the right one, its own.
_WORDS = {True: "now says {0} ({1}; before, {2})", False: "now finds {0} ({1}; before, {2}) likelier than {3} ({4})"}


def example_of(results: Results, changes: Sequence[LevelChange]) -> AnswerExample | None:
    """Return an example of the largest change for the worse; None where no level is worse, or nothing turned.

    It is typical, not extreme: each edit that turned answers stands with the median of them, and of these edits that
    in the middle is shown, so that one edit which turned hundreds does not choose itself.
    """
    worse = [change for change in changes if change.is_harm]
    for change in sorted(worse, key=lambda change: -change.size):
        example = _MAKERS[change.level](results, change.editor)
        if example is not None:
            return example
    return None


def _holder(results: Results, editor: str, holds: str) -> AnswerExample | None:
    rows = results.prompts
    if rows is None:
        return None
    right, wrong, who = ("true", "new", "old") if holds == "target_true" else ("new", "true", "new")
    own = rows[(rows["editor"] == editor) & (rows["holds"] == holds) & (rows["status"] == "ok")]
    before, after = (own[f"{phase}_{right}"] > own[f"{phase}_{wrong}"] for phase in ("pre", "post"))
    turned = own[before & ~after]
    if turned.empty:
        return None
    row = _median(turned, turned["log_odds"].abs())
    then, now, other = (float(np.exp(row[name])) for name in (f"pre_{wrong}", f"post_{wrong}", f"post_{right}"))
    words = _WORDS[now > _SAYS].format(
        *(row["target_" + wrong], chance(now), chance(then), row["target_" + right], chance(other))
    )
    rule = (
        f"Chosen by rule: after {editor} the likelier answer turned from right to wrong for {len(turned):,} of "
        f"{len(own):,} prompts about people who hold the {who} answer. {_MEDIAN}"
    )
    about, prompt = printable(row["subject"] or row["person"]), printable(row["prompt"])
    sentence = f"{_edit(results, row)}: asked about {about}{_quoted(prompt)}, the model {words}."
    return AnswerExample(sentence, results.words(rule))


def _other_fact(results: Results, editor: str) -> AnswerExample | None:
    rows = results.answers
    if rows is None:
        return None
    own = rows[(rows["editor"] == editor) & (rows["status"] == "ok")]
    lost = own[own["pre_correct"].astype(bool) & ~own["post_correct"].astype(bool)]
    if lost.empty:
        return None
    row = _median(lost, (lost["post_odds"] - lost["pre_odds"]).astype(float).abs())
    names = list(row["candidates"])
    top = int(np.argmax(row["post"]))
    shares = {phase: np.exp(np.asarray(row[phase], float) - logsumexp(row[phase])) for phase in ("pre", "post")}
    prompt = printable(row["prompt_post"] or row["prompt_pre"])
    rule = (
        f"Chosen by rule: {len(lost):,} of {len(own):,} answers about other facts were right before and wrong after "
        f"{editor}. {_MEDIAN} Per cents are of the candidates."
    )
    then, now = (chance(float(shares[phase][top])) for phase in ("pre", "post"))
    sentence = (
        f"{_edit(results, row)}: asked about {relation_name(row['effect_relation'])}{_quoted(prompt)}, the model now "
        f"says {printable(names[top])} ({now}; before, {then}); right is {printable(row['gold'][0])}."
    )
    return AnswerExample(sentence, results.words(rule))


_MAKERS: Mapping[str, Callable[[Results, str], AnswerExample | None]] = {
    "other_facts": _other_fact,
    **{holds: partial(_holder, holds=holds) for holds in ("target_true", "target_new")},
}


def _quoted(prompt: str) -> str:
    """Return a prompt in brackets; "" where the table was kept without wording."""
    return f" (“{prompt}”)" if prompt else ""


def _median(rows: pd.DataFrame, sizes: pd.Series) -> Mapping[Any, Any]:
    """Return the median row of the edit in the middle; edits are sorted by their median rows, ties by id."""
    names = [name for name in ("case_id", "prompt_id") if name in rows]
    order = rows.assign(size=sizes.fillna(0.0)).sort_values(["size", *names], kind="stable")
    edits = order.groupby(["edit_relation", "case_id"], sort=False)
    middle = order[edits.cumcount() == (edits["size"].transform("size") - 1) // 2]
    row: Mapping[Any, Any] = middle.iloc[(len(middle) - 1) // 2].to_dict()
    return row


def _edit(results: Results, row: Mapping[Any, Any]) -> str:
    if results.asked_only:
        return str(row["editor"])
    fact = edited_facts(results.edits).get((row["edit_relation"], row["case_id"]), f"case {row['case_id']}")
    return f"“{fact}” by {row['editor']}"


def chance(probability: float) -> str:
    """Return a probability in per cent, with as many digits as matter."""
    percent = 100 * probability
    if percent < 0.0005:
        return "under 0.001 %"
    return f"{percent:.{3 if percent > 99 else 2}g} %"
