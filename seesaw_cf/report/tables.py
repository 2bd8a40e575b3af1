"""The tables of a report: eight CSV files, whose columns are names; each is a view of the frame or of the answers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import pandas as pd

from seesaw_cf.effects.groups import ALL
from seesaw_cf.report.answers import most_moved, worst_edits
from seesaw_cf.report.pairs import Run

_KEYS = ["about", "editor", "control", "relation", "axis", "group", "true_answer", "scale"]
_TESTED = ["value", "low", "high", "stderr", "df", "p", "p_adjusted", "margin", "verdict", "note"]
_COUNTS = ["n", "n_edits", "n_people"]
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


def tables_of(frame: pd.DataFrame, run: Run, answers: pd.DataFrame) -> dict[str, pd.DataFrame]:
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
    keys = ["about", "editor", "relation", "axis", "group", "true_answer"]
    states = frame[
        frame["what"].isin(("before", "after", "turned_wrong")) & frame["about"].isin(rows["about"].unique())
    ]
    wide = states.pivot_table(index=keys, columns="what", values="value", aggfunc="first", observed=True)
    out = rows.merge(wide.reset_index(), how="left", on=keys)
    share = out["half_edits"] / out["n_edits"].where(out["n_edits"] > 0)
    out = out.assign(edit_share_for_half=share.where(out["half_edits"] > 0))
    states_there = [name for name in ("before", "after", "turned_wrong") if name in out]
    return out[["what", *_KEYS, "decides", *states_there, *_TESTED, *_COUNTS, "edit_share_for_half"]]


def _contrasts(frame: pd.DataFrame) -> pd.DataFrame:
    rows = frame[frame["what"] == "contrast"]
    keys = ["editor", "relation", "axis", "group", "true_answer"]
    other = rows[~rows["decides"].astype(bool)][[*keys, "value"]].rename(columns={"value": "value_on_other_scale"})
    out = rows[rows["decides"].astype(bool)].merge(other, how="left", on=keys)
    return out[
        [
            *keys[:4],
            "reference",
            "true_answer",
            "scale",
            *_TESTED,
            "detectable",
            "value_on_other_scale",
            "mirror",
            *_COUNTS,
        ]
    ]


def _other_facts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each editor and pair of relations, a column for each number."""
    rows = frame[
        (frame["about"] == "other_facts") & ~frame["what"].isin(("before", "after", "change", "beyond", "turned_wrong"))
    ]
    if rows.empty:
        return rows
    keys = ["editor", "relation", "asked"]
    values = rows.pivot(index=keys, columns="what", values="value")
    for what in ("right_before", "right_after", "right_change", "right_share", "right_log_odds"):
        own = rows[rows["what"] == what].set_index(keys)
        for end in ("low", "high"):
            values[f"{what}_{end}"] = own[end]
    change = rows[rows["what"] == "right_change"].set_index(keys)
    values = values.assign(p=change["p"], note=change["note"], n=change["n"], n_people=change["n_people"])
    return values.reset_index().rename_axis(columns=None)


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
