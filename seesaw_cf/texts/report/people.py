"""Answers of people and judges as rows: flaws, ratings, claims and failure modes, and how far raters agree."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.ratings import hits, mean_rating, middle_rating
from seesaw_cf.report.frame import Row
from seesaw_cf.stats.agreement import annotator_agreement
from seesaw_cf.stats.simple import t_test
from seesaw_cf.texts.report.leme import by_type, claim_rows, independent_share, survey_rows
from seesaw_cf.texts.report.rows import adjusted, case_share, cells, frame_of, row_share, share_rows, text_row
from seesaw_cf.texts.tables import TABLES, as_frame, coded
from seesaw_cf.texts.training import rating_scores

PEOPLE = "people"
"""The rater of rows about the answers of all people together."""
Answers = Mapping[str, pd.DataFrame]
"""Kind out of `QUESTIONS` -> rows of all files."""
_NAN = float("nan")
_TEXT = ["editor", "case_id", "phase", "sample"]


def people_frame(
    people: Answers, judged: Answers | None = None, judges: Collection[str] = (), draws: int = 1000
) -> pd.DataFrame:
    """Return every number that people's answers allow.

    Args:
        people: Answers of people, and of judges of flaws.
        judged: Those of a run: its raters and annotators are compared with people.
        judges: Which raters of flaws are models.
        draws: Bootstrap samples behind the intervals of agreement.

    Raises:
        RecordError: An answer outside its scale.
        UnknownNameError: An item, failure mode or judge that does not exist.
    """
    rows: list[Row] = []
    if "flaws" in people:
        frame, again = (coded("flaws", people.get(kind, TABLES[kind].empty_table())) for kind in ("flaws", "swapped"))
        rows += [*flaw_rows(frame, judges, draws), *repeat_rows(frame, again)]
    if "reflected" in people:
        rows += reflected_rows(people["reflected"])
    for kind, rows_about in (("ratings", _survey), ("annotations", _claims), ("failures", _failures)):
        if kind in people:
            rows += rows_about(coded(kind, people[kind]), draws)
    for kind, about in (("ratings", "survey"), ("annotations", "claims")):
        if judged and kind in people and kind in judged:
            rows += beside_people(about, coded(kind, people[kind]), coded(kind, judged[kind]), draws)
    return frame_of(rows)


def _survey(frame: pd.DataFrame, draws: int) -> Iterator[Row]:
    yield from survey_rows(frame.assign(rater=PEOPLE))
    yield from agreement_rows("survey", frame, draws, "all", by_type(frame)["asked"], frame["asked"])


def _claims(frame: pd.DataFrame, draws: int) -> Iterator[Row]:
    yield from claim_rows(frame.assign(person=frame["rater"], rater=PEOPLE))
    given = frame.dropna(subset="value")
    columns = {"label": given["label"], "kind": given["claim_kind"] + ", " + given["about"] + " passage"}
    for asked, column in columns.items():  # LEME Tables 2 and 3: of all labels
        for answer, count in column.value_counts().items():
            found = row_share(given.assign(value=column == answer))
            yield text_row("claim_share", found, asked=asked, answer=answer, scale="share", count=count)
    yield from agreement_rows("claims", frame, draws, "all", frame["asked"])


def _failures(frame: pd.DataFrame, draws: int) -> Iterator[Row]:
    yield from cells("failure", frame, ["asked", "editor"], case_share, scale="share")
    yield from agreement_rows("failures", frame, draws, frame["asked"])


def failure_examples(failures: pd.DataFrame, passages: pd.DataFrame) -> pd.DataFrame:
    """Return one text of each failure mode, the first by name of editor and case: LEME Table 20."""
    frame, texts = coded("failures", failures), as_frame(passages)
    firsts = frame[frame["value"] == 1].sort_values([*_TEXT, "rater"]).drop_duplicates("asked")
    texts = texts[texts["about"].isin(["subject", "related"])].sort_values("about", ascending=False)
    texts = texts.assign(texts=texts["about"] + ": " + texts["text"].fillna(""))
    words = texts.groupby(_TEXT, sort=False)["texts"].agg(" / ".join).reset_index()
    return firsts.merge(words, "left", _TEXT)[["asked", "editor", "case_id", "comment", "texts"]].fillna({"texts": ""})


# Agreement of raters, and of the raters of a run with people.


def agreement_rows(about: str, frame: pd.DataFrame, draws: int, *askings: str | pd.Series) -> Iterator[Row]:
    """Yield agreement in per cent and Cohen's kappa of pairs of raters, Krippendorff's alpha and Fleiss' kappa of all.

    Args:
        about: What was rated; "survey" is ordinal, the rest nominal.
        frame: See `seesaw_cf.texts.report.rows.coded`; intervals resample whole cases.
        draws: See `seesaw_cf.stats.agreement.annotator_agreement`.
        *askings: What was asked in each row, in one grouping after another.
    """
    level = "ordinal" if about == "survey" else "nominal"
    for asked, rows in (
        group for asking in askings for group in frame.assign(asked=asking).groupby("asked", observed=True)
    ):
        wide = rows.pivot(index="item", columns="rater", values="value")
        if wide.shape[1] < 2 or wide.isna().all(axis=None):
            continue
        cases = rows.drop_duplicates("item").set_index("item")["case_id"].loc[wide.index].tolist()
        found = annotator_agreement(wide.to_numpy().tolist(), names=[*map(str, wide)], groups=cases, draws=draws)
        alpha = replace(found.krippendorff[level], n=int((wide.notna().sum(axis=1) > 1).sum()))
        figures = {("alpha", "all"): alpha, ("fleiss", "all"): found.fleiss}
        figures |= {("percent", raters): own for raters, own in found.percent.items()}
        figures |= {("kappa", raters): own for raters, own in found.cohen.items()}
        names = {"about": about, "asked": str(asked), "n_items": found.n_items, "n_missing": found.n_missing}
        for (what, raters), own in figures.items():
            note = own.note if own.n else "nothing that all of them rated"
            yield text_row(what, own, rater=raters, scale=what, note=note, constant=found.majority_share, **names)


def beside_people(about: str, people: pd.DataFrame, judged: pd.DataFrame, draws: int) -> Iterator[Row]:
    """Yield how far each rater of a run is from people, on questions that both answered: LEME Table 9.

    "the commonest" always says what people say most; "another person" is how people do among themselves. Ratings:
    Krippendorff's alpha (ordinal), Spearman's rho, how often both are equal and at most one apart. Claims: how often
    both are equal, and alpha (nominal).

    Args:
        about: "survey" or "claims".
        people, judged: What they answered; see `seesaw_cf.texts.report.rows.coded`.
        draws: Bootstrap samples of cases.
    """
    answers, own = people.dropna(subset="value"), judged.dropna(subset="value")[["item", "rater", "value"]]
    common = answers[answers["item"].isin(own["item"])]
    two = common.merge(common[own.columns], on="item", suffixes=("", "_other"))
    two = two[two["rater"] < two["rater_other"]].assign(rater_other="another person")
    constant = common.assign(rater_other="the commonest", value_other=common["value"].mode().min())
    pairs = pd.concat([answers.merge(own, on="item", suffixes=("", "_other")), constant, two])
    left_out = judged[judged["status"].str.startswith("left out")]["rater"].value_counts()
    for rater in (*judged["rater"].unique(), "the commonest", "another person"):
        pair = pairs[pairs["rater_other"] == rater]
        names = {"about": about, "rater": rater, "n": len(pair), "n_edits": pair["case_id"].nunique()}
        nothing = {"alpha": Estimate(_NAN, note="nothing that both answered")}
        for figure, found in (_figures(about, pair, draws) if len(pair) else nothing).items():
            more = {"n_left_out": int(left_out.get(rater, 0))}
            yield text_row("beside_people", found, asked=figure, scale=figure, **names, **more)


def _figures(about: str, pair: pd.DataFrame, draws: int) -> dict[str, Estimate]:
    one, other, cases = (pair[name].tolist() for name in ("value", "value_other", "case_id"))
    table = np.column_stack([one, np.round(other)]).tolist()
    alphas = annotator_agreement(table, groups=cases, draws=draws).krippendorff
    if about == "claims":
        equal = pair.assign(value=pair["value"] == pair["value_other"])
        return {"alpha": alphas["nominal"], "accuracy": case_share(equal)}
    scores = rating_scores(one, other, cases, draws=draws)
    ends = {name: np.array([*scores[name].values()], float).tolist() for name in ("spearman", "exact", "within_one")}
    return {"alpha": alphas["ordinal"], **{name: Estimate(*own) for name, own in ends.items()}}


# Flaws: what people see, judges beside people and beside a constant answer, answers given twice.


def flaw_rows(frame: pd.DataFrame, judges: Collection[str] = (), draws: int = 1000) -> Iterator[Row]:
    """Yield every number that ratings of flaws allow: SEESAW-CF Tables 6, 19, 20 and 21.

    "flaw" is the mean of all ratings of people (of judges where there are no people), for raters like these, clustered
    by edit and rater; "flaw_these_raters" has the same means for these raters only, clustered by edit. `more` and
    `less` are the shares of ratings on each side.

    Args:
        frame: See `seesaw_cf.texts.report.rows.coded`.
        judges: Which raters are models; the rest are people.
        draws: Bootstrap samples behind the intervals of agreement.

    Raises:
        UnknownNameError: A judge who has rated nothing.
    """
    for name in judges:
        one_of("rater", name, sorted(set(frame["rater"])))
    model = frame["rater"].isin(list(judges))
    people, by = frame[~model], ["editor", "relation", "asked"]
    rated = people if len(people) else frame
    yield from share_rows("equal_answers", frame, ["rater"], frame["value"] == 0)
    yield from _flaw_means("flaw", rated, by, judges)
    yield from _flaw_means("flaw_these_raters", rated, by, set(rated["rater"]))
    by_editor = frame.assign(person=frame["rater"], rater=frame["rater"].where(model, PEOPLE))
    yield from _flaw_means("flaw_by_editor", by_editor, ["editor", "rater", "asked"], judges)
    yield from agreement_rows("flaws", people, draws, people["asked"])
    if len(people):
        yield from judge_rows(people, frame[model], draws)


def _flaw_means(what: str, frame: pd.DataFrame, by: Sequence[str], alone: Collection[str]) -> Iterator[Row]:
    """Yield mean ratings of every flaw; raters in `alone` stand for themselves only. p is adjusted over all rows."""
    frame = frame.assign(rated_by=frame.get("person", frame["rater"]), edit=frame["case_id"], rating=frame["value"])

    def estimate(rows: pd.DataFrame) -> Estimate:
        clusters = ("edit",) if set(rows["rated_by"]) <= set(alone) else ("edit", "rater")
        return mean_rating(rows.assign(rater=rows["rated_by"]), clusters)[0]

    def more(rows: pd.DataFrame) -> Row:
        sides = {name: (rows["value"] == side).mean() for name, side in (("more", 1), ("less", -1))}
        return sides | {"p_paper": t_test(rows["value"].to_numpy())[1], "n_people": rows["rated_by"].nunique()}

    return adjusted(cells(what, frame, by, estimate, more, scale="rating"))


def judge_rows(people: pd.DataFrame, judged: pd.DataFrame, draws: int) -> Iterator[Row]:
    """Yield Table 20 and what it hides: each judge beside one that answers "equal" to everything, beyond chance.

    "judge_right" is the share of pairs where the answer is that of any person (the published rule) or of the person in
    the middle; "judge_kappa" is Cohen's kappa with the person in the middle, with a verdict.

    Source: SEESAW-CF Table 20.
    Deviates: matched by pair instead of row position, with what a constant answer would get.
    """
    given = people.dropna(subset="value").pivot(index="item", columns="rater", values="value")
    for (judge, flaw), own in judged.groupby(["rater", "asked"], observed=True):
        own = own[own["item"].isin(given.index)].dropna(subset="value")
        answers, guess = given.loc[own["item"]].to_numpy(), own["value"].to_numpy()
        names = {"rater": judge, "asked": flaw}
        for answer, words in ((judge, guess), ("equal", np.zeros(len(guess)))) if len(guess) else ():
            for rule, hit in hits(answers, words).items():
                found = row_share(own.assign(value=hit).dropna(subset="value"))
                reference = rule.removesuffix("_rater")
                yield text_row("judge_right", found, answer=answer, reference=reference, scale="share", **names)
        yield _beyond_chance(own.assign(middle=middle_rating(answers)), draws, names)


def _beyond_chance(rows: pd.DataFrame, draws: int, names: Row) -> Row:
    n_split, rows = int(rows["middle"].isna().sum()), rows.dropna(subset="middle")
    names |= {"n_split": n_split, "scale": "kappa"}
    if rows.empty:
        note = f"people are split evenly on all {n_split} pairs" if n_split else "no pair was rated by people and judge"
        return text_row("judge_kappa", Estimate(_NAN, note=note), verdict="not_compared", **names)
    both = rows[["middle", "value"]].to_numpy()
    kappa = annotator_agreement(both.tolist(), groups=rows["case_id"].tolist(), draws=draws).cohen["1/2"]
    right, flipped, constant = (float((both[:, 0] == sign * both[:, 1]).mean()) for sign in (1, -1, 0))
    verdict = (
        "sign_in_doubt" if flipped > right
        else "no_better_than_equal" if right <= constant
        else "agrees" if kappa.low > 0
        else "not_shown"
    )  # fmt: skip
    more = {"verdict": verdict, "flipped": flipped, "right": right, "constant": constant}
    return text_row("judge_kappa", kappa, **more, **names)


def repeat_rows(frame: pd.DataFrame, again: pd.DataFrame) -> Iterator[Row]:
    """Yield how raters answer pairs that they were shown a second time in the other order.

    "same_again" is the share of equal answers; of questions where either answer is not "equal", "order_turned" is the
    share where the answer turned round with the texts, and "order_stuck" where the rater named the same place twice,
    the opposite claim about the edit. "first_text" is the share of unequal answers for the text shown first (p against
    one half): about a half of those of a rater who reads.

    Args:
        frame, again: See `seesaw_cf.texts.report.rows.coded`.

    Raises:
        RecordError: A question was answered twice in the same order.
    """
    both = frame.merge(again, on=["item", "asked", "rater"], suffixes=("", "_again"), validate="one_to_one")
    for item in both.loc[both["first"] == both["first_again"], "item"].head(1):
        raise RecordError(
            f"pair {item} was rated twice in the same order, so nothing can turn round. Give the second showing in the "
            "other order."
        )
    both = both.dropna(subset=["value", "value_again"])
    yield from share_rows("same_again", both, ["rater", "asked"], both["value"] == both["value_again"], row_share)
    either = both[(both["value"] != 0) | (both["value_again"] != 0)]
    for what, sign in (("order_turned", 1), ("order_stuck", -1)):
        yield from share_rows(what, either, ["rater"], either["value"] == sign * either["value_again"])
    unequal = frame[frame["rater"].isin(both["rater"]) & frame["value"].isin([-1, 1])]
    named_first = unequal["value"] == np.where(unequal["first"] == "pre", -1, 1)
    yield from share_rows("first_text", unequal, ["rater"], named_first, partial(case_share, against=0.5))


def reflected_rows(reflected: pd.DataFrame) -> Iterator[Row]:
    """Yield the share of pairs in which a text says what the edit says, among those where a rater answers yes or no."""
    own = reflected.assign(value=reflected["reflected"].map({"yes": 1.0, "no": 0.0}))
    return cells("reflected", own, ["rater"], independent_share, scale="share")
