"""Accuracy on another property before and after an edit, of one set of cases or of every pair of relations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import stats as scipy_stats
from scipy.special import expit

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, unknown_name
from seesaw_cf.base.types import Estimate, JsonObject
from seesaw_cf.effects.groups import SCALES
from seesaw_cf.effects.knowledge import gold_odds, gold_rank
from seesaw_cf.effects.prompts import check_logprobs
from seesaw_cf.effects.scores import Scores, as_frame, by_editor, checked
from seesaw_cf.records.relations import FREE
from seesaw_cf.stats import agreeing, clustered_mean, mcnemar, paired_change, proportion
from seesaw_cf.stats.bootstrap import Floats, mean_interval
from seesaw_cf.stats.simple import BOUNDS

Mode = Literal["exact", "paper"]


_LEFT = {"n_no_candidate": "unanswerable", "n_no_gold": "no gold", "n_unscored": "unscored"}


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Accuracy on an effect property before and after the edit, of one set of cases.

    Attributes:
        pre, post: Shares of right answers (Wilson, 95 %).
        change: After minus before. Exact mode: Newcombe's paired interval, with as many cases as the errors clustered
            by person allow, and McNemar's exact test, the clustered one where a person is in several cases. They
            agree, see `seesaw_cf.stats.agreeing`; NaN
            below five effective people, with a `note`. Paper mode: bootstrap over cases, unpaired t-test.
        lost, gained: Answers that were right only before, and only after.
        ranks: "pre_mrr", "post_mrr" (mean reciprocal rank of the best gold candidate), "pre_top5", "post_top5" (gold
            among the five most likely; ties count against it).
        share: Change of the gold answers' share of the candidates' probability, in -1..1, clustered by person, no
            interval below five effective; of the cases in which some candidates are right and some are not.
        log_odds: The change of that share's log-odds, nats.
        chance: Accuracy of a uniform guess.
        majority: Accuracy of the best constant answer.
        n: Cases.
        left_out: "n_no_candidate" (unanswerable; among the `n` in the exact mode only), "n_no_gold", "n_unscored".
    """

    pre: Estimate
    post: Estimate
    change: Estimate
    lost: int
    gained: int
    ranks: Mapping[str, float]
    share: Estimate
    log_odds: Estimate
    chance: float
    majority: float
    n: int
    left_out: Mapping[str, int]

    def row(self) -> JsonObject:
        """Return the columns of a table row."""
        out: JsonObject = {**self.pre.limits("pre"), **self.post.limits("post")}
        out |= {"change": self.change.value, "lost": self.lost, "gained": self.gained}
        out |= self.change.columns("low", "high", "stderr", "p")
        if "person" in self.change.effective:
            out["effective"] = self.change.effective["person"]
        out |= {"note": self.change.note, **self.ranks, "n_odds": self.share.n}
        for name in SCALES:
            scale: Estimate = getattr(self, name)
            out |= scale.limits(name) | scale.columns("p", prefix=f"{name}_")
        out |= {"chance": self.chance, "majority": self.majority, "n": self.n}
        return out | dict(self.left_out)


def summarise_accuracy(marked: pd.DataFrame, *, mode: Mode = "exact", draws: int = 2000, seed: int = 0) -> Accuracy:
    """Return accuracy before and after, and its change, of one set of cases; see `cross_property` for the arguments."""
    counted = ("ok",) if mode == "paper" else ("ok", "unanswerable")
    rows = marked[marked["status"].isin(counted)].sort_values("case_id", kind="stable")
    n = len(rows)
    pre, post = (rows[f"{phase}_correct"].to_numpy(bool) for phase in ("pre", "post"))
    ranks = {}
    for phase in ("pre", "post"):
        rank = rows[f"{phase}_rank"].to_numpy(np.float64)
        rank[rank == 0] = np.inf  # no gold label is a candidate
        ranks[f"{phase}_mrr"] = float((1 / rank).mean()) if n else float("nan")
        ranks[f"{phase}_top5"] = float((rank <= 5).mean()) if n else float("nan")
    counts = marked["status"].value_counts()
    odds = rows.loc[np.isfinite(rows[["pre_odds", "post_odds"]].to_numpy(np.float64)).all(axis=1)]
    before, after = (odds[f"{phase}_odds"].to_numpy(np.float64) for phase in ("pre", "post"))
    share, log_odds = (_by_person(odds, values) for values in (expit(after) - expit(before), after - before))
    return Accuracy(
        pre=proportion(int(pre.sum()), n),
        post=proportion(int(post.sum()), n),
        change=_published(pre, post, draws, seed) if mode == "paper" else paired_shares(rows, pre, post),
        lost=int((pre & ~post).sum()),
        gained=int((post & ~pre).sum()),
        ranks=ranks,
        share=share,
        log_odds=log_odds,
        chance=_chance(rows),
        majority=_majority(rows["gold"]),
        n=n,
        left_out={name: int(counts.get(status, 0)) for name, status in _LEFT.items()},
    )


def _change(pre: NDArray[np.bool_], post: NDArray[np.bool_]) -> float:
    """Return the share of answers gained minus the share lost."""
    lost, gained = int((pre & ~post).sum()), int((post & ~pre).sum())
    return (gained - lost) / pre.size if pre.size else float("nan")


def paired_shares(rows: pd.DataFrame, pre: NDArray[np.bool_], post: NDArray[np.bool_]) -> Estimate:
    """Return the share `post` minus the share `pre` of the same cases; people who are in several cases lower the
    effective number of cases.

    Args:
        rows: One row per case, with `person` (or each case counts as one person: `case_id`).
        pre, post: (cases,) what is true of each case on either side.

    Returns:
        Newcombe's paired interval and McNemar's test, none below five effective people, with a `note`. They
        agree, see `agreeing`.
    """
    if not len(rows):
        return Estimate(float("nan"), effective={"person": 0.0}, note="no case")
    n, change = len(rows), post.astype(float) - pre
    estimate = _by_person(rows, change)
    if estimate.note.startswith("too few"):
        return replace(estimate, value=_change(pre, post))
    people = estimate.clusters["person"]
    alone = people == n
    independent = n if alone else people if estimate.note else min(n, float(change.var(ddof=1)) / estimate.stderr**2)
    low, high = paired_change(pre, post, independent)
    lost, gained = int((pre & ~post).sum()), int((post & ~pre).sum())
    p = estimate.p
    if alone or estimate.note:  # where all cases changed alike, a person counts once
        p = mcnemar(*(round(count * independent / n) for count in (lost, gained)))
    low, high, p = agreeing(low, high, p)
    return replace(estimate, value=_change(pre, post), low=low, high=high, p=p, note="")


def _by_person(rows: pd.DataFrame, values: Floats) -> Estimate:
    """Return the mean of one value per case, clustered by person."""
    if not len(rows):
        return Estimate(float("nan"), note="no case")
    person = pd.factorize(rows["person" if "person" in rows else "case_id"], sort=True)[0]
    return clustered_mean(values, [np.full(len(rows), 1 / len(rows))], {"person": person})


def _published(pre: NDArray[np.bool_], post: NDArray[np.bool_], draws: int, seed: int) -> Estimate:
    """Return the change with the papers' test, and a bootstrap over cases as interval."""
    low, high, stderr = (float("nan"),) * 3
    if pre.size > 1 and draws:
        low, high, stderr = mean_interval(post.astype(float) - pre, np.ones(pre.size), draws, seed)
    return Estimate(_change(pre, post), low, high, stderr, _unpaired(pre, post), n=pre.size)


def _unpaired(pre: NDArray[np.bool_], post: NDArray[np.bool_]) -> float:
    """Return p of the papers' test: a t-test that ignores that pre and post are the same cases."""
    if pre.size < 2 or (pre.std() == 0 and post.std() == 0):
        return float("nan")
    (m1, s1), (m2, s2) = ((float(side.mean()), float(side.std(ddof=1))) for side in (post, pre))
    return float(scipy_stats.ttest_ind_from_stats(m1, s1, post.size, m2, s2, pre.size).pvalue)


def _chance(rows: pd.DataFrame) -> float:
    shares = [len(set(g) & set(c)) / len(c) for g, c in zip(rows["gold"], rows["candidates"])]
    return float(np.mean(shares)) if shares else float("nan")


def _majority(gold: Iterable[Sequence[str]]) -> float:
    lists = [set(labels) for labels in gold]
    most = Counter(label for labels in lists for label in labels).most_common(1)
    return most[0][1] / len(lists) if most else float("nan")


def accuracy_table(marked: pd.DataFrame, *, mode: Mode = "exact", draws: int = 2000, seed: int = 0) -> pd.DataFrame:
    """Return `summarise_accuracy` of every editor and pair of relations, as `cross_property` gives it."""
    keys = ["editor", "edit_relation", "effect_relation"]
    return pd.DataFrame(
        dict(zip(keys, key)) | summarise_accuracy(rows, mode=mode, draws=draws, seed=seed).row()
        for key, rows in marked.groupby(keys, sort=True)
    )


# Cross-property accuracy: is the right answer about another property still the model's first choice?


def answers(scores: Scores, *, mode: Mode = "exact", prompt: str = "property") -> pd.DataFrame:
    """Return one row per (editor, case, effect relation): candidates, gold labels, log-probabilities pre and post.

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
    one_of("mode", mode, get_args(Mode))
    cases = []
    for editor, rows in by_editor(checked(scores), pc.field("kind") == "cross_property", _COLUMNS):
        frame = as_frame(rows)
        if mode == "exact":
            frame = _named(frame, prompt)
        keys = ["case_id", "effect_relation", "phase"]
        first = frame.groupby(keys, observed=True)["prompt_id"].transform("min")
        frame = frame[frame["prompt_id"] == first]
        cases += [{"editor": editor} | answer for answer in _answers_of(frame)]
    if not cases:
        raise RecordError("score table: no rows of kind 'cross_property'. Run the cross_property configuration.")
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


def _answers_of(frame: pd.DataFrame) -> Iterator[JsonObject]:
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


_EMPTY = {"pre_correct": False, "post_correct": False, "pre_rank": 0, "post_rank": 0, "status": "no gold"}
_EMPTY |= {"pre_odds": float("nan"), "post_odds": float("nan")}


def _mark(row: dict[Any, Any], mode: Mode, nats: float) -> JsonObject:
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
    scores: Scores, *, mode: Mode = "exact", prompt: str = "property", draws: int = 2000, seed: int = 0
) -> pd.DataFrame:
    """Return accuracy on the effect property before and after the edit, per (editor, edit relation, effect relation).

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
