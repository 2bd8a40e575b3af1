"""Validity of a judge of flaws. Position bias, sign check, and agreement with people against a constant answer."""

from __future__ import annotations

from typing import Any, TypedDict

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.effects.flaws import middle_rating, open_ended_flaws
from seesaw_cf.report.table import Row
from seesaw_cf.stats.case_means import CaseMeanRecord, case_share
from seesaw_cf.stats.plain import plain
from seesaw_cf.texts.flaws.people import agreement_of_two, edits_of_pairs
from seesaw_cf.texts.write.pairs import PHASES


class PositionBias(TypedDict):
    """The result of `position_bias`."""

    first: CaseMeanRecord
    shown_pre_first: float | None
    equal: float | None
    n: int


class SignCheck(TypedDict):
    """The result of `sign_check`."""

    same: CaseMeanRecord
    turned: CaseMeanRecord
    stuck: CaseMeanRecord
    n_unanswered: int


class JudgeValidity(TypedDict):
    """The result of `validate_judge` for one flaw."""

    n: int
    n_split: int
    accuracy: dict[str, dict[str, float | None] | None]
    flipped: float | None
    agreement: dict[str, Any] | None
    among_people: dict[str, Any]
    confusion: dict[str, dict[str, int]]
    verdict: str


def position_bias(table: pa.Table) -> PositionBias:
    """Return how often a rater who sees a difference answers "the first text".

    With the order drawn at random a rater who reads gives this answer half of the time, with any edit.

    Args:
        table: Rows of `FLAWS` of one rater.

    Returns:
        `first`: share of unequal answers for the text shown first (`case_share`, p against 1/2), `shown_pre_first`:
        share of rows where the text before the edit was shown first, `equal`: share of answers "equal".
    """
    frame = _answered(table)
    change_in_order = pd.Series(np.where(frame["first"] == "pre", frame["change"], -frame["change"]), index=frame.index)
    unequal = frame["change"] != 0
    first = (change_in_order[unequal] < 0).astype(float)
    bias: PositionBias = plain(
        {
            "first": case_share(first, frame.loc[unequal, "case_id"], against=0.5),
            "shown_pre_first": float((frame["first"] == "pre").mean()) if len(frame) else None,
            "equal": float((~unequal).mean()) if len(frame) else None,
            "n": len(frame),
        }
    )
    return bias


def sign_check(table: pa.Table, swapped: pa.Table) -> SignCheck:
    """Check whether answers turn round when the texts do: after un-blinding, both answers must then be the same.

    Args:
        table, swapped: `Judged.table` and `Judged.swapped`, or `HumanWork.table` and `.repeats`.

    Returns:
        `same`: share of questions with the same answer in both orders; `turned`: the same among questions where either
        answer is not "equal" (`case_share` each); `stuck`: share of those where the rater named the same position
        twice, which is the opposite claim about the edit; `n_unanswered` in either order.

    Raises:
        RecordError: A question was judged twice in the same order.
    """
    key = ["pair_id", "flaw", "rater"]
    pairs = table.to_pandas().merge(swapped.to_pandas(), on=key, suffixes=("", "_again"), validate="one_to_one")
    if (pairs["first"] == pairs["first_again"]).any():
        bad = pairs.loc[pairs["first"] == pairs["first_again"], "pair_id"].iloc[0]
        raise RecordError(f"sign check: pair {bad!r} was judged twice in the same order; nothing can turn round.")
    rated = pairs.dropna(subset=["change", "change_again"])
    same = (rated["change"] == rated["change_again"]).astype(float)
    either = (rated["change"] != 0) | (rated["change_again"] != 0)
    stuck = (rated["change"] == -rated["change_again"]).astype(float)
    check: SignCheck = plain(
        {
            "same": case_share(same, rated["case_id"]),
            "turned": case_share(same[either], rated.loc[either, "case_id"]),
            "stuck": case_share(stuck[either], rated.loc[either, "case_id"]),
            "n_unanswered": len(pairs) - len(rated),
        }
    )
    return check


def flaw_results(table: pa.Table, judge: str | None = None) -> dict[str, Any]:
    """Run `seesaw_cf.effects.flaws.open_ended_flaws` on rows of `FLAWS`, by edited relation (Tables 6, 19-21)."""
    frame = table.to_pandas()
    rating = [None if pd.isna(value) else float(value) for value in frame["change"]]
    names = ("pair_id", "relation", "flaw", "rater", "case_id")
    item, group, flaw, rater, edit = (frame[name].astype(str).tolist() for name in names)
    return dict(plain(open_ended_flaws(item, group, flaw, rater, rating, edit=edit, judge=judge)))


def validate_judge(table: pa.Table, judge: str, *, draws: int = 1000) -> dict[str, JudgeValidity]:
    """Compare a judge with people on the pairs and flaws that both rated, matched by pair, never by row.

    Args:
        table: Rows of `FLAWS` of people and judge together.
        judge: The rater who is the judge; the remaining raters are people.
        draws: Bootstrap samples of edits behind the intervals of agreement.

    Returns:
        Flaw -> `n`, pairs with an answer of the judge and a middle answer of people; `n_split`, pairs where people have
        none (`seesaw_cf.effects.flaws.middle_rating`: an even number, half on each side); `accuracy` (judge and
        `constant`, by the published rule "any_rater" on all of these, and against the middle answer, "median", on
        `n`); `agreement` of judge and people's median (`annotator_agreement`: per cent, Cohen, Krippendorff with
        intervals), None without such a pair; `among_people`: their own (`krippendorff`, ...); `flipped`: accuracy
        against the median if the judge's sign were turned round; `confusion`: people's median -> judge's answer ->
        count; `verdict`, one line.

    Raises:
        UnknownNameError: `judge` is not a rater.
        RecordError: No people to compare with, or a rating is repeated.

    Source: SEESAW-CF Table 20.
    Deviates: matched by pair instead of row position; chance-corrected, compared with the constant answer: "equal" to
    everything beats the published judge on every flaw.
    """
    frame = table.to_pandas()
    raters = sorted(set(frame["rater"]))
    one_of("rater", judge, raters)
    if len(raters) < 2:
        raise RecordError(
            f"judge {judge!r}: nobody else rated; a judge is validated against people. Add their ratings."
        )
    judged = set(frame.loc[frame["rater"] == judge, "flaw"])
    frame = frame[frame["flaw"].isin(judged)]
    overall = flaw_results(table.filter(pc.is_in(table["flaw"], pa.array(judged))), judge)
    validity: dict[str, JudgeValidity] = {}
    for flaw, rows in frame.groupby("flaw", sort=False):
        wide = rows.pivot(index="pair_id", columns="rater", values="change")
        middle = middle_rating(wide.drop(columns=judge).to_numpy(float))
        pairs = pd.DataFrame({"people": middle, "judge": wide[judge]}, index=wide.index).dropna()
        accuracy = overall["judge"][flaw]
        agreement = agreement_of_two(pairs, edits_of_pairs(rows), draws)
        flipped = float((pairs["people"] == -pairs["judge"]).mean()) if len(pairs) else None
        validity[str(flaw)] = {
            "n": len(pairs),
            "n_split": accuracy["n_split"],
            "accuracy": {name: accuracy.get(name) for name in ("judge", "constant")},
            "flipped": flipped,
            "agreement": agreement,
            "among_people": overall["agreement"][flaw],
            "confusion": _confusion(pairs),
            "verdict": _verdict(accuracy, agreement, flipped),
        }
    result: dict[str, JudgeValidity] = plain(validity)
    return result


def _confusion(pairs: pd.DataFrame) -> dict[str, dict[str, int]]:
    scale = (-1, 0, 1)
    return {
        str(true): {
            str(answer): int(((pairs["people"] == true) & (pairs["judge"] == answer)).sum()) for answer in scale
        }
        for true in scale
    }


def _verdict(accuracy: Row, agreement: Row | None, flipped: float | None) -> str:
    if agreement is None:
        split = accuracy["n_split"]
        why = f"people are split evenly on all {split} pairs" if split else "no pair was rated by people and judge"
        return f"not compared: {why}"
    straight, constant = accuracy["judge"]["median"], accuracy["constant"]["median"]
    kappa = agreement["cohen"]["people/judge"]
    if flipped is not None and flipped > straight:
        return f"sign in doubt: turned round it agrees with people more often ({flipped:.3f} against {straight:.3f})"
    if straight <= constant:
        return f'tells nothing: "equal" to everything is right as often or more ({constant:.3f} against {straight:.3f})'
    if kappa["low"] is None or kappa["low"] <= 0:
        return "not shown to agree with people beyond chance"
    return f"agrees with people beyond chance (kappa {kappa['value']:.2f}, {kappa['low']:.2f} to {kappa['high']:.2f})"


def _answered(table: pa.Table) -> pd.DataFrame:
    frame: pd.DataFrame = table.to_pandas()
    if not set(frame["first"]) <= set(PHASES):
        raise RecordError(f"flaws: `first` holds {sorted(set(frame['first']))}, expected {PHASES}.")
    return frame.dropna(subset="change")
