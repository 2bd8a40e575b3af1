"""Tables of ratings of flaws: what people see, and judges compared with people who rated the same pairs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from seesaw_cf.base.checks import one_of
from seesaw_cf.effects.flaws import hits, mean_rating
from seesaw_cf.report.table import Table, table_of
from seesaw_cf.stats.case_means import case_share, row_share, with_adjusted
from seesaw_cf.texts.flaws.edits import property_label
from seesaw_cf.texts.flaws.people import HumanWork, intra_rater, share_reflected
from seesaw_cf.texts.flaws.validity import validate_judge
from seesaw_cf.texts.report.agreement import Agreeing, agreement_sections, plan_section
from seesaw_cf.texts.report.collected import Collected
from seesaw_cf.texts.wording import FLAWS_BY_NAME

_ABOUT = {
    "raters": "Ratings given and left out, and how often each says 'equal'.",
    "flaws": "Mean of all ratings of all people, as published; above 0 is more after the edit. Intervals are of other "
    "edits and raters like these, clustered by both, and take five of each. The CSV has the pooled t-test (`p_paper`).",
    "flaws_these_raters": "The same means, clustered by edit alone: they speak of these raters only.",
    "flaws_editors": "People, and every judge apart, over all edited properties. A judge is clustered by edit alone.",
    "judges": "Share of all pairs where the answer is that of at least one person (`any`, the published rule) or of "
    'people\'s `median`. "equal" is a judge that always answers so: no better than it is no evidence of skill. Pairs '
    "on which an even number of people are split have no median; they count under `any` alone.",
    "judges_beyond_chance": "Cohen's kappa with people's median; `flipped`: the share that agrees when the judge's "
    "sign is turned round; `n_split`: pairs left out since people are split evenly.",
    "repeats": "Pairs that a rater was shown again in the other order: in how many the second rating is the first.",
    "reflected": "Pairs where a text says what the edit says. Wilson intervals.",
}


def flaw_sections(
    collected: Collected,
    judges: Sequence[str] = (),
    *,
    effects: Sequence[float] = (0.1,),
    per_rater: int | None = None,
    draws: int = 1000,
) -> list[Table]:
    """Return every table that ratings of flaws allow.

    Args:
        collected: Tables of raters.
        judges: Which raters are models; the rest are people. Where all are models, the means are theirs.
        effects: Mean ratings that a study should find, for the plan.
        per_rater: Edits that one rater takes, for the plan; None = as here.
        draws: Bootstrap samples behind the intervals of agreement.

    Raises:
        UnknownNameError: A judge who has rated nothing.
        RecordError: An effect of 0.
    """
    table = collected.get("flaws")
    names = {"pair_id": "item", "case_id": "edit", "change": "rating"}
    frame = table.to_pandas().rename(columns=names).astype({"rating": float})
    frame["flaw"] = pd.Categorical(frame["flaw"], [name for name in FLAWS_BY_NAME if name in set(frame["flaw"])])
    for name in judges:
        one_of("rater", name, list(dict.fromkeys(frame["rater"])))
    people = frame[~frame["rater"].isin(list(judges))]
    rated = people if len(people) else frame
    answers = people.rename(columns={"rating": "value", "edit": "group"})
    how = Agreeing("flaw", "nominal", "pairs", "agreement", "Agreement of people", " (SEESAW-CF Table 21)", draws=draws)
    rated_by = frame["rater"].where(frame["rater"].isin(list(judges)), "people")
    editors = _means(frame.assign(rated_by=rated_by), judges, "rated_by")

    def section(name: str, title: str, rows: pd.DataFrame, *layout: Any) -> Table:
        return table_of(name, title, _ABOUT[name], rows, *layout)

    sections = [
        section("raters", "Who rated", _raters(frame, judges), "", 3),
        section("flaws", "Flaws by edited property (SEESAW-CF Table 6)", _means(rated, judges), "flaw", 3),
        section("flaws_these_raters", "These raters alone", _means(people, people["rater"]), "flaw", 3),
        section("flaws_editors", "Flaws by editor (SEESAW-CF Table 19)", editors, "flaw", 3),
        *agreement_sections(answers, how),
        section("judges", "Judges against people (SEESAW-CF Table 20)", _judges(frame, people, judges), "flaw", 3),
        section("judges_beyond_chance", "Judges beyond chance", _beyond_chance(table, judges, draws), "", 3),
        section("repeats", "Rated twice", _repeats(collected, draws), "flaw", 1, "pairs"),
        section("reflected", "Edit reflected?", _reflected(collected), "", 3),
        plan_section(answers.dropna(subset="value"), "flaw", effects, per_rater),
    ]
    return [table_of_rows for table_of_rows in sections if len(table_of_rows.frame)]


def edits_reflected(collected: Collected) -> str:
    """Return the share of pairs that reflect their edit, rater by rater, as a sentence; "" without answers."""
    shares = _reflected(collected).to_dict("records")
    by_rater = [f"{row['rater']}: {100 * row['value']:.0f} % of {row['n']} pairs" for row in shares if row["n"]]
    return f"A text says what the edit says – {', '.join(by_rater)}." if by_rater else ""


def _raters(frame: pd.DataFrame, judges: Sequence[str]) -> pd.DataFrame:
    rows = []
    for name, own in frame.groupby("rater", sort=False):
        rated = own.dropna(subset="rating")
        equal = case_share(rated["rating"] == 0, rated["edit"])
        about = {"rater": name, "is a": "judge" if name in judges else "person", "pairs": own["item"].nunique()}
        counts = {"n": len(rated), "n_missing": len(own) - len(rated)}
        rows.append(about | counts | {"equal": equal["value"], "low": equal["low"], "high": equal["high"]})
    return pd.DataFrame(rows)


def _means(frame: pd.DataFrame, alone: Sequence[str] | pd.Series, by: str = "relation") -> pd.DataFrame:
    """Return mean ratings of every flaw; raters in `alone` stand for themselves only. p is adjusted over all rows."""
    rows = []
    for (editor, name, flaw), part in frame.groupby(["editor", by, "flaw"], sort=True, observed=True):
        about = {"editor": editor, by: name} | ({"property": property_label(str(name))} if by == "relation" else {})
        own = mean_rating(part, ("edit",) if set(part["rater"]) <= set(alone) else ("edit", "rater"))
        counts = {"n": own.mean.n, "n_cases": own.mean.clusters["edit"], "n_missing": own.n_missing}
        numbers = own.mean.columns("value", "low", "high", "p", "note") | {"p_paper": own.p_paper}
        rows.append({**about, "flaw": flaw} | numbers | counts)
    return pd.DataFrame(with_adjusted(rows) if rows else [])


def _judges(frame: pd.DataFrame, people: pd.DataFrame, judges: Sequence[str]) -> pd.DataFrame:
    """Return Table 20, and what it hides: each judge next to one that answers "equal" to everything."""
    raters, rows = list(dict.fromkeys(people["rater"])), []
    for judge, (flaw, part) in product(judges, frame.groupby("flaw", sort=True, observed=True)):
        wide = part.pivot(index="item", columns="rater", values="rating").reindex(columns=[*raters, judge])
        common = wide[wide[raters].notna().any(axis=1) & wide[judge].notna()]
        edits = part.groupby("item")["edit"].first().loc[common.index].reset_index(drop=True)
        guesses = {judge: common[judge].to_numpy(float), "equal": np.zeros(len(common))}
        for answer, guess in guesses.items() if len(common) else ():
            for rule, hit in hits(common[raters].to_numpy(float), guess).items():
                about = {"judge": judge, "answer": answer, "rule": rule.removesuffix("_rater"), "flaw": flaw}
                clear = pd.Series(hit).dropna()
                rows.append({**about, **row_share(clear, edits[clear.index])})
    return pd.DataFrame(rows)


def _beyond_chance(table: pa.Table, judges: Sequence[str], draws: int) -> pd.DataFrame:
    people = set(table["rater"].to_pylist()) - set(judges)
    rows = []
    for name in judges if people else ():
        own = table.filter(pc.is_in(table["rater"], pa.array([name, *people])))
        for flaw, validity in validate_judge(own, name, draws=draws).items():
            kappa = validity["agreement"]["cohen"]["people/judge"] if validity["agreement"] else {}
            numbers = {"kappa": kappa.get("value"), "low": kappa.get("low"), "high": kappa.get("high")}
            more = {"n_split": validity["n_split"], "flipped": validity["flipped"], "verdict": validity["verdict"]}
            rows.append({"judge": name, "flaw": flaw, "n": validity["n"]} | numbers | more)
    return pd.DataFrame(rows)


def _repeats(collected: Collected, draws: int) -> pd.DataFrame:
    table, again = collected.get("flaws"), collected.again("flaws")
    rows = []
    for name in dict.fromkeys(again.column("rater").to_pylist()):
        first, second = (part.filter(pc.equal(part["rater"], name)) for part in (table, again))
        work = HumanWork(first, second, collected.get("reflected"))
        for flaw, agreement in intra_rater(work, draws=draws).items():
            if "percent" in agreement:
                same = agreement["percent"]["first/second"]
                rows.append({"rater": name, "flaw": flaw, **same, "n_cases": agreement["n_items"], "note": ""})
    return pd.DataFrame(rows)


def _reflected(collected: Collected) -> pd.DataFrame:
    table = collected.get("reflected")
    names = dict.fromkeys(table.column("rater").to_pylist())
    parts = {name: share_reflected(table.filter(pc.equal(table["rater"], name))) for name in names}
    return pd.DataFrame([{"rater": name} | dict(part) for name, part in parts.items()])
