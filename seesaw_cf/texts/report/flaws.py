"""Ratings of flaws as rows: what people see, how far they agree, and judges beside a constant answer."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import product

import numpy as np
import pandas as pd

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.instruments import FLAWS_BY_NAME
from seesaw_cf.effects.ratings import hits, mean_rating, middle_rating
from seesaw_cf.report.frame import Row
from seesaw_cf.stats.agreement import annotator_agreement
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.simple import proportion, share_estimate
from seesaw_cf.texts.report.rows import PEOPLE, adjusted, agreement_rows, text_row

ANSWERS = {-1: "more before", 0: "equal", 1: "more after"}
_NAMES = {"pair_id": "item", "case_id": "edit", "change": "rating", "flaw": "asked"}


def flaw_frame(flaws: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `seesaw_cf.texts.tables.FLAWS` with the names of the frame, flaws in the papers' order."""
    frame = flaws.rename(columns=_NAMES).astype({"rating": float})
    order = [name for name in FLAWS_BY_NAME if name in set(frame["asked"])]
    return frame.assign(asked=pd.Categorical(frame["asked"], order))


def flaw_rows(frame: pd.DataFrame, judges: Collection[str] = (), draws: int = 1000) -> Iterator[Row]:
    """Yield every number that ratings of flaws allow: SEESAW-CF Tables 6, 19, 20 and 21.

    "flaw" is the mean of all ratings of people (of judges where there are no people), for raters like these, clustered
    by edit and rater; "flaw_these_raters" has the same means for these raters only, clustered by edit; "flaw_more" and
    "flaw_less" are the shares of ratings on each side.

    Args:
        frame: See `flaw_frame`.
        judges: Which raters are models; the rest are people.
        draws: Bootstrap samples behind the intervals of agreement.

    Raises:
        UnknownNameError: A judge who has rated nothing.
        RecordError: A judge and nobody to compare with.
    """
    for name in judges:
        one_of("rater", name, list(dict.fromkeys(frame["rater"])))
    model = frame["rater"].isin(list(judges))
    people, rated = frame[~model], frame[~model] if (~model).any() else frame
    for rater, own in frame.groupby("rater", sort=False):
        given = own.dropna(subset="rating")
        more: Row = {"n_missing": len(own) - len(given), "n_pairs": own["item"].nunique(), "scale": "share"}
        yield text_row("equal_answers", share_estimate(given["rating"] == 0, given["edit"]), rater=rater, **more)
    by_rater = frame.assign(rated_by=frame["rater"].where(model, PEOPLE))
    yield from mean_flaws("flaw", rated, judges)
    yield from mean_flaws("flaw_these_raters", rated, set(rated["rater"]))
    yield from mean_flaws("flaw_by_editor", by_rater, judges, "rated_by")
    by = ["editor", "relation", "asked"]
    for (editor, relation, flaw), part in rated.dropna(subset="rating").groupby(by, sort=True, observed=True):
        for what, side in (("flaw_more", 1), ("flaw_less", -1)):
            found = share_of_rows(part["rating"] == side, part["edit"])
            yield text_row(what, found, editor=editor, relation=relation, asked=flaw, scale="share")
    answers = people.rename(columns={"rating": "value", "edit": "case_id"})
    yield from agreement_rows(answers, "flaws", people["asked"], draws)
    if len(people):
        yield from judge_rows(frame, judges, draws)


def share_of_rows(flags: pd.Series, cases: pd.Series) -> Estimate:
    """Return the share of rows, each of which counts once, clustered by case."""
    return share_estimate(flags, cases, np.full(len(flags), 1 / max(len(flags), 1)))


def mean_flaws(what: str, frame: pd.DataFrame, alone: Iterable[str], by: str = "relation") -> list[Row]:
    """Return mean ratings of every flaw; raters in `alone` stand for themselves only. p is adjusted over all rows."""
    rows = []
    for (editor, name, flaw), part in frame.groupby(["editor", by, "asked"], sort=True, observed=True):
        mean, p_paper = mean_rating(part, ("edit",) if set(part["rater"]) <= set(alone) else ("edit", "rater"))
        names = {"editor": editor, "rater" if by == "rated_by" else by: name, "asked": flaw}
        more = {"p_paper": p_paper, "n_missing": len(part) - mean.n, "n_people": part["rater"].nunique()}
        rows.append(text_row(what, mean, scale="rating", **names, **more))
    return adjusted(rows) if rows else []


def judge_rows(frame: pd.DataFrame, judges: Collection[str], draws: int) -> Iterator[Row]:
    """Yield Table 20 and what it hides: each judge beside one that answers "equal" to everything, beyond chance.

    "judge_right" is the share of pairs where the answer is that of any person (the published rule) or of the person in
    the middle; "judge_kappa" is Cohen's kappa with the person in the middle, with a verdict.

    Source: SEESAW-CF Table 20.
    Deviates: matched by pair instead of row position, with what a constant answer would get.
    """
    people = list(dict.fromkeys(frame.loc[~frame["rater"].isin(list(judges)), "rater"]))
    for judge, (flaw, part) in product(judges, frame.groupby("asked", sort=True, observed=True)):
        if judge not in set(part["rater"]):
            continue
        wide = part.pivot(index="item", columns="rater", values="rating").reindex(columns=[*people, judge])
        common = wide[wide[people].notna().any(axis=1) & wide[judge].notna()]
        edits = part.groupby("item")["edit"].first().loc[common.index]
        given, guess = common[people].to_numpy(float), common[judge].to_numpy(float)
        names = {"rater": judge, "asked": flaw}
        for answer, own in ((judge, guess), ("equal", np.zeros(len(guess)))) if len(guess) else ():
            for rule, hit in hits(given, own).items():
                clear = ~np.isnan(hit)
                found = share_of_rows(pd.Series(hit[clear]), edits[clear])
                reference = rule.removesuffix("_rater")
                yield text_row("judge_right", found, answer=answer, reference=reference, scale="share", **names)
        yield from _beyond_chance(middle_rating(given), guess, edits, names, draws)


def _beyond_chance(middle: Floats, guess: Floats, edits: pd.Series, names: Row, draws: int) -> Iterator[Row]:
    clear = ~np.isnan(middle)
    people, judge, n_split = middle[clear], guess[clear], int((~clear).sum())
    if not len(people):
        note = f"people are split evenly on all {n_split} pairs" if n_split else "no pair was rated by people and judge"
        yield text_row(
            "judge_kappa", Estimate(float("nan"), note=note), verdict="not_compared", n_split=n_split, **names
        )
        return
    pairs = np.column_stack([people, judge]).tolist()
    kappa = annotator_agreement(pairs, groups=edits[clear].tolist(), draws=draws).cohen["1/2"]
    right, flipped, constant = (float((people == own).mean()) for own in (judge, -judge, np.zeros(len(judge))))
    verdict = (
        "sign_in_doubt" if flipped > right
        else "no_better_than_equal" if right <= constant
        else "agrees" if kappa.low > 0
        else "not_shown"
    )  # fmt: skip
    more = {"verdict": verdict, "n_split": n_split, "flipped": flipped, "right": right, "constant": constant}
    yield text_row("judge_kappa", kappa, scale="kappa", **names, **more)
    for one, other in product(ANSWERS, ANSWERS):
        count = Estimate(int(((people == one) & (judge == other)).sum()))
        words = {"reference": f"people: {ANSWERS[one]}", "answer": f"judge: {ANSWERS[other]}"}
        yield text_row("judge_confusion", count, scale="count", **words, **names)


def repeat_rows(frame: pd.DataFrame, again: pd.DataFrame) -> Iterator[Row]:
    """Yield how raters answer pairs that they were shown a second time in the other order.

    "same_again" is the share of equal answers; of questions where either answer is not "equal", "order_turned" is the
    share where the answer turned round with the texts, and "order_stuck" where the rater named the same place twice,
    the opposite claim about the edit. "first_text" is the share of unequal answers for the text shown first (p against
    one half): about a half of those of a rater who reads.

    Args:
        frame, again: See `flaw_frame`.

    Raises:
        RecordError: A question was answered twice in the same order.
    """
    key = ["item", "asked", "rater"]
    both = frame.merge(again, on=key, suffixes=("", "_again"), validate="one_to_one")
    if (same := both["first"] == both["first_again"]).any():
        raise RecordError(
            f"pair {both.loc[same, 'item'].iloc[0]!r} was rated twice in the same order, so nothing can turn round. "
            "Give the second showing in the other order."
        )
    both = both.dropna(subset=["rating", "rating_again"])
    for (rater, flaw), own in both.groupby(["rater", "asked"], sort=False, observed=True):
        found = share_of_rows(own["rating"] == own["rating_again"], own["edit"])
        yield text_row("same_again", found, rater=rater, asked=flaw, scale="share")
    for rater, own in both.groupby("rater", sort=False):
        either = own[(own["rating"] != 0) | (own["rating_again"] != 0)]
        for what, sign in (("order_turned", 1), ("order_stuck", -1)):
            found = share_estimate(either["rating"] == sign * either["rating_again"], either["edit"])
            yield text_row(what, found, rater=rater, scale="share")
        unequal = frame[(frame["rater"] == rater) & frame["rating"].notna() & (frame["rating"] != 0)]
        in_order = unequal["rating"].where(unequal["first"] == "pre", -unequal["rating"])
        yield text_row(
            "first_text", share_estimate(in_order < 0, unequal["edit"], against=0.5), rater=rater, scale="share"
        )


def reflected_rows(reflected: pd.DataFrame) -> Iterator[Row]:
    """Yield the share of pairs in which a text says what the edit says, among those where a rater answers yes or no."""
    for rater, own in reflected.groupby("rater", sort=False):
        counts = own["reflected"].value_counts()
        yes, no, unsure = (int(counts.get(word, 0)) for word in ("yes", "no", "unsure"))
        more = {"n_unsure": unsure, "n_missing": int(own["reflected"].isna().sum())}
        yield text_row("reflected", proportion(yes, yes + no), rater=rater, scale="share", **more)
