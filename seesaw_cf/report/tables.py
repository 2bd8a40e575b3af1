"""The tables of a report: eight CSV files, whose columns are names; each is a view of the frame or of the answers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import pandas as pd

from seesaw_cf.effects.means import ALL
from seesaw_cf.report.answers import most_moved, worst_edits
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.render import PageRow, PageTable
from seesaw_cf.report.rows import Row, rows_of
from seesaw_cf.report.words import percent

_KEYS = ["about", "editor", "control", "relation", "axis", "group", "true_answer", "scale"]
_TESTED = ["value", "low", "high", "stderr", "df", "p", "p_adjusted", "margin", "verdict", "note"]
_COUNTS = ["n", "n_edits", "n_people"]
_EDITS_ON_PAGE = 10  # of each editor
_NUMERIC = ("before", "after", "answers turned wrong", "other people", "other facts")
_LEVEL = ("before", "after", "change", "beyond")
ABOUT: Mapping[str, str] = {
    "levels": "What happened to everybody, before and after, beside the control.",
    "groups": "The same of every group of people, over all relations and within each.",
    "contrasts": "Every group beside everybody else under the same edits; below 0 the group came out worse.",
    "other_facts": "Other facts about the edited person, by pair of relations.",
    "efficacy": "Whether the edits worked, and how far they reach.",
    "edits": "Every edit, those first that turned most answers wrong.",
    "answers": "The answers whose right answer lost most.",
    "unscored": "Scores that are missing, and why.",
}
"""Table -> what it holds."""


def tables_of(frame: pd.DataFrame, run: RunResult, answers: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return every table of a run's report that has rows.

    Args:
        frame: Its numbers.
        run: The run.
        answers: Rows of `seesaw_cf.report.answers.answers_of`.
    """
    estimated = frame[frame["what"].isin(("change", "beyond")) & frame["about"].isin(("other_people", "other_facts"))]
    everybody = (estimated["relation"] == ALL) & (estimated["axis"] == ALL)
    tables = {
        "levels": _with_states(estimated[everybody], frame),
        "groups": _with_states(estimated[~everybody], frame).drop(columns=["p_adjusted", "verdict"]),
        "contrasts": _contrasts(frame),
        "other_facts": _other_facts(frame),
        "efficacy": _efficacy(frame),
        "edits": worst_edits(run, answers),
        "answers": most_moved(answers),
        "unscored": run.unscored,
    }
    return {name: table.reset_index(drop=True) for name, table in tables.items() if len(table)}


def _with_states(rows: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """Return changes with what there was before and after, and how many right answers turned wrong."""
    keys, names = ["about", "editor", "relation", "axis", "group", "true_answer"], ["before", "after", "turned_wrong"]
    states = frame[frame["what"].isin(names) & frame["about"].isin(rows["about"].unique())]
    wide = states.pivot_table(index=keys, columns="what", values="value", aggfunc="first", observed=True)
    out = rows.merge(wide.reset_index(), how="left", on=keys)
    share = out["half_edits"] / out["n_edits"].where(out["n_edits"] > 0)
    out = out.assign(edit_share_for_half=share.where(out["half_edits"] > 0))
    there = [name for name in names if name in out]
    return out[["what", *_KEYS, "decides", *there, *_TESTED, *_COUNTS, "edit_share_for_half"]]


def _contrasts(frame: pd.DataFrame) -> pd.DataFrame:
    rows = frame[frame["what"] == "contrast"]
    keys = ["editor", "relation", "axis", "group", "true_answer"]
    other = rows[~rows["decides"].astype(bool)][[*keys, "value"]].rename(columns={"value": "value_on_other_scale"})
    out = rows[rows["decides"].astype(bool)].merge(other, how="left", on=keys)
    rest = ["detectable", "value_on_other_scale", "mirror", *_COUNTS]
    return out[[*keys[:4], "reference", "true_answer", "scale", *_TESTED, *rest]]


def _other_facts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each editor and pair of relations, a column for each number."""
    rows = frame[(frame["about"] == "other_facts") & ~frame["what"].isin((*_LEVEL, "turned_wrong"))]
    if rows.empty:
        return rows
    keys = ["editor", "relation", "asked"]
    wide = rows.pivot(index=keys, columns="what", values=["value", "low", "high"])
    values = pd.DataFrame(wide["value"])
    for what in ("right_before", "right_after", "right_change", "right_share", "right_log_odds"):
        values = values.assign(**{f"{what}_{end}": wide[end, what] for end in ("low", "high")})
    change = rows[rows["what"] == "right_change"].set_index(keys)
    return values.join(change[["p", "note", "n", "n_people"]]).reset_index().rename_axis(columns=None)


def _efficacy(frame: pd.DataFrame) -> pd.DataFrame:
    rows = frame[frame["about"] == "edited_fact"]
    return rows[["what", "editor", "relation", "scale", "value", "low", "high", "note", "n", "n_edits"]]


def latex(table: pd.DataFrame) -> str:
    """Return a table in LaTeX (booktabs), numbers with three digits that matter, text escaped."""
    heads = [_ESCAPED.sub(r"\\\1", str(name)) for name in table]
    rows = [" & ".join(map(_latex_cell, row)) for row in table.itertuples(index=False, name=None)]
    spec = "".join("r" if pd.api.types.is_numeric_dtype(dtype) else "l" for dtype in table.dtypes)
    head, *body = (f"{line} \\\\\n" for line in (" & ".join(heads), *rows))
    return f"\\begin{{tabular}}{{{spec}}}\n\\toprule\n{head}\\midrule\n{''.join(body)}\\bottomrule\n\\end{{tabular}}\n"


_ESCAPED = re.compile(r"([&%$#_{}])")


def _latex_cell(value: object) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else f"{value:.3g}"
    text = str(value).replace("\\", r"\textbackslash ")
    return _ESCAPED.sub(r"\\\1", text).replace("~", r"\textasciitilde ").replace("^", r"\textasciicircum ")


# The same for a page: a few columns, in words.


def answer_table(answers: pd.DataFrame) -> PageTable:
    """Return the answers that moved most; a marked one is now wrong."""
    rows = rows_of(most_moved(answers))
    columns = {
        "edit": [row["edit"] for row in rows],
        "question": [row["prompt"] or row["person"] for row in rows],
        "right answer": [row["right"] for row in rows],
        **{when: [percent(row[f"right_{when}"]) for row in rows] for when in ("before", "after")},
        "wrong answer": [row["wrong"] for row in rows],
        **{f"{when} ": [percent(row[f"wrong_{when}"]) for row in rows] for when in ("before", "after")},
    }
    return _page_table(rows, columns, "turned_wrong")


def edit_table(edits: pd.DataFrame) -> PageTable:
    """Return the edits of each editor that turned most answers wrong."""
    rows = rows_of(edits.groupby("editor", sort=False).head(_EDITS_ON_PAGE))
    turned = [str(row["turned_wrong"]) for row in rows]
    columns = {"edit": [row["edit"] for row in rows], "answers turned wrong": turned}
    whom = {"other people": ("other_people_old", "other_people_new"), "other facts": ("other_facts",)}
    for head, names in whom.items():
        counts = [[sum(row[f"{name}_{of}"] for name in names) for of in ("turned_wrong", "asked")] for row in rows]
        columns[head] = [f"{turned:,} of {asked:,}" if asked else "\u2013" for turned, asked in counts]
    return _page_table(rows, columns)


def _page_table(rows: Sequence[Row], columns: Mapping[str, Sequence[str]], mark: str = "") -> PageTable:
    """Return a table of a page; the editor is its first column where there are several."""
    editors = [row["editor"] for row in rows]
    columns = {**({"editor": editors} if len(set(editors)) > 1 else {}), **columns}
    body = [PageRow(cells, bool(mark and row[mark])) for row, cells in zip(rows, zip(*columns.values()))]
    return PageTable(list(columns), [head.strip() in _NUMERIC for head in columns], body)
