"""Flaws rated by people: the papers' tables without any judge, and judges compared with people where both rated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import UnknownNameError
from seesaw_cf.records.relations import relation
from seesaw_cf.report.table import Table, table_of
from seesaw_cf.stats import adjust, clustered_mean, t_test
from seesaw_cf.stats.case_means import case_share
from seesaw_cf.texts.flaws.people import HumanWork, intra_rater, share_reflected
from seesaw_cf.texts.report.agreement import Agreeing, agreement_sections, plan_section
from seesaw_cf.texts.report.collected import Collected
from seesaw_cf.texts.report.flaw_page import flaw_findings
from seesaw_cf.texts.report.tables import write_report
from seesaw_cf.texts.report.validity_page import judge_sections
from seesaw_cf.texts.wording import FLAWS_BY_NAME

_PEOPLE = "people"
_HEAD = """# Flaws in pairs of texts, as people rate them

A rating is 1 where a flaw is more present after the edit, -1 where it is more present before it, 0 where it is equal.
Intervals are 95 %, clustered by edit. An empty interval has its reason beside it. \\* marks p < 0.05 after Holm's
correction over the table."""
_ABOUT = {
    "raters": "Ratings given and left out, and how often each says 'equal'.",
    "flaws": "Mean of all ratings of all people, as published; above 0 is more after the edit. The CSV has the "
    "pooled t-test, too (`p_paper`).",
    "flaws_raters": "The same means with an interval for raters like these, clustered by edit and by rater. It takes "
    "five raters; with fewer, Table 6 speaks of these raters only.",
    "flaws_editors": "People, and every judge apart, over all edited properties.",
    "repeats": "Pairs that a rater was shown again in the other order: in how many the second rating is the first.",
    "reflected": "Pairs where a text says what the edit says. Wilson intervals.",
}


def flaw_sections(
    found: Collected,
    judges: Sequence[str] = (),
    *,
    effects: Sequence[float] = (0.1,),
    per_rater: int | None = None,
    draws: int = 1000,
) -> list[Table]:
    """Every table that ratings of flaws allow.

    Args:
        found: Tables of raters.
        judges: Which raters are models; the rest are people.
        effects: Mean ratings that a study should find, for the plan.
        per_rater: Edits that one rater takes, for the plan; None = as here.
        draws: Bootstrap samples behind the intervals of agreement.

    Raises:
        UnknownNameError: A judge who has rated nothing.
        RecordError: An effect of 0.
    """
    table = found.get("flaws")
    frame = table.to_pandas()
    frame["flaw"] = pd.Categorical(frame["flaw"], [name for name in FLAWS_BY_NAME if name in set(frame["flaw"])])
    for name in judges:
        one_of("rater", name, list(dict.fromkeys(frame["rater"])))
    people = frame[~frame["rater"].isin(list(judges))]
    named = people.rename(columns={"pair_id": "item", "change": "value", "case_id": "group"})
    how = Agreeing("flaw", "nominal", "pairs", "agreement", "Agreement of people", " (SEESAW-CF Table 21)", draws=draws)
    sections = [
        table_of("raters", "Who rated", _ABOUT["raters"], _raters(frame, judges), digits=3),
        table_of("flaws", "Flaws by edited property (SEESAW-CF Table 6)", _ABOUT["flaws"], _means(people), "flaw", 3),
        table_of("flaws_raters", "With other raters", _ABOUT["flaws_raters"], _across_raters(people), digits=3),
        table_of(
            "flaws_editors",
            "Flaws by editor (SEESAW-CF Table 19)",
            _ABOUT["flaws_editors"],
            _by_editor(frame, judges),
            "flaw",
            3,
        ),
        *agreement_sections(named, how),
        *judge_sections(table, judges, draws),
        table_of("repeats", "Rated twice", _ABOUT["repeats"], _repeats(found, draws), "flaw", 1, "pairs"),
        table_of("reflected", "Edit reflected?", _ABOUT["reflected"], _reflected(found), digits=3),
        plan_section(named.dropna(subset="value"), "flaw", effects, per_rater),
    ]
    return [table_of_rows for table_of_rows in sections if len(table_of_rows.frame)]


def write_flaw_report(folder: Path, found: Collected, judges: Sequence[str] = (), **options: Any) -> Path:
    """Write `report.html`, `people.md`, `people.json` and one CSV per table; see `flaw_sections` for the arguments.

    Returns:
        The Markdown file.

    Raises:
        UnknownNameError, RecordError: See `flaw_sections`.
        StorageError: A file cannot be written.
    """
    sections = flaw_sections(found, judges, **options)
    facts = {"judges": list(judges), **{name: str(value) for name, value in options.items()}}
    page = flaw_findings(found.get("flaws"), sections, facts, _took(found))
    write_report(folder, "people", _HEAD, sections, page)
    return folder / "people.md"


def _took(found: Collected) -> str:
    shares = _reflected(found).to_dict("records")
    shares_by_rater = [f"{row['rater']}: {100 * row['value']:.0f} % of {row['n']} pairs" for row in shares if row["n"]]
    return f"A text says what the edit says – {', '.join(shares_by_rater)}." if shares_by_rater else ""


def _raters(frame: pd.DataFrame, judges: Sequence[str]) -> pd.DataFrame:
    rows = []
    for name, own in frame.groupby("rater", sort=False):
        rated = own.dropna(subset="change")
        equal = case_share(rated["change"] == 0, rated["case_id"])
        about = {"rater": name, "is a": "judge" if name in judges else "person", "pairs": own["pair_id"].nunique()}
        counts = {"n": len(rated), "n_missing": len(own) - len(rated)}
        rows.append(about | counts | {"equal": equal["value"], "low": equal["low"], "high": equal["high"]})
    return pd.DataFrame(rows)


def _means(frame: pd.DataFrame, by: str = "relation") -> pd.DataFrame:
    """Mean rating of every flaw, clustered by edit; p adjusted over all rows."""
    rows: list[dict[str, Any]] = []
    for (editor, name, flaw), part in frame.groupby(["editor", by, "flaw"], sort=True, observed=True):
        rated = part.dropna(subset="change")
        about = {"editor": editor, by: name} | ({"property": _property(str(name))} if by == "relation" else {})
        rows.append({**about, "flaw": flaw, **_mean(rated, "edit"), "n_missing": len(part) - len(rated)})
    for row, p in zip(rows, adjust([row["p"] for row in rows], "holm") if rows else (), strict=True):
        row["p_adjusted"] = float(p)
    return pd.DataFrame(rows)


def _mean(rated: pd.DataFrame, *clusters: str) -> dict[str, Any]:
    """Over all ratings, as published, with the interval of these clusters."""
    if rated.empty:
        numbers = dict.fromkeys(("value", "low", "high", "p", "p_paper"), float("nan"))
        return numbers | {"n": 0, "n_cases": 0, "note": "no ratings"}
    values = rated["change"].to_numpy(np.float64)
    codes = {"edit": pd.factorize(rated["case_id"])[0], "rater": pd.factorize(rated["rater"])[0]}
    estimate = clustered_mean(values, [np.full(len(values), 1 / len(values))], {name: codes[name] for name in clusters})
    counts = {"n": len(values), "n_cases": estimate.clusters["edit"], "note": estimate.note}
    return estimate.columns("value", "low", "high", "p") | {"p_paper": t_test(values)[1]} | counts


def _property(name: str) -> str:
    try:
        return relation(name).label
    except UnknownNameError:
        return ""


def _across_raters(people: pd.DataFrame) -> pd.DataFrame:
    rated = people.dropna(subset="change")
    rows = [
        {"editor": editor, "relation": name, "flaw": flaw, "raters": part["rater"].nunique()}
        | _mean(part, "edit", "rater")
        for (editor, name, flaw), part in rated.groupby(["editor", "relation", "flaw"], sort=True, observed=True)
    ]
    return pd.DataFrame(rows).drop(columns=["p_paper", "n_cases"], errors="ignore")


def _by_editor(frame: pd.DataFrame, judges: Sequence[str]) -> pd.DataFrame:
    is_judge = frame["rater"].isin(list(judges))
    rated = frame.assign(rated_by=frame["rater"].where(is_judge, _PEOPLE))
    return _means(rated, "rated_by")


def _repeats(found: Collected, draws: int) -> pd.DataFrame:
    table, again = found.get("flaws"), found.again("flaws")
    rows = []
    for name in dict.fromkeys(again.column("rater").to_pylist()):
        first, second = (part.filter(pc.equal(part["rater"], name)) for part in (table, again))
        for flaw, agreement in intra_rater(HumanWork(first, second, found.get("reflected")), draws=draws).items():
            if "percent" in agreement:
                same = agreement["percent"]["first/second"]
                rows.append({"rater": name, "flaw": flaw, **same, "n_cases": agreement["n_items"], "note": ""})
    return pd.DataFrame(rows)


def _reflected(found: Collected) -> pd.DataFrame:
    table = found.get("reflected")
    names = dict.fromkeys(table.column("rater").to_pylist())
    parts = {name: share_reflected(table.filter(pc.equal(table["rater"], name))) for name in names}
    return pd.DataFrame([{"rater": name} | dict(part) for name, part in parts.items()])
