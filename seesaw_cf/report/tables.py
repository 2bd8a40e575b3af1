"""The tables of a report: eight CSV files, whose columns are names; each is a view of the frame or of single answers.

Single answers are those that moved most, the edits that turned most answers, and one example in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit, softmax

from seesaw_cf.base.terminal import printable
from seesaw_cf.effects.means import ALL
from seesaw_cf.report.frame import TRUE_ANSWERS
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.rows import Row
from seesaw_cf.report.screen import ScreenRow
from seesaw_cf.report.words import FORM_WORDS, amount, capital, percent, relation_name, with_interval

ABOUT: Mapping[str, str] = {
    "curve": "Of edits one after another: every measure of each editor, checkpoint and order.",
    "levels": "What happened to everybody, before and after, beside the control.",
    "groups": "The same of every group of people, over all relations and within each.",
    "contrasts": "Every group beside everybody else under the same edits; below 0 the group came out worse.",
    "other_facts": "Other facts about the edited person, by pair of relations.",
    "efficacy": "Whether the edits worked, how far they reach, and what the models wrote.",
    "edits": "Every edit, those first that turned most answers wrong.",
    "answers": "The answers whose right answer lost most.",
    "unscored": "Scores that are missing, and why.",
}
"""Table -> what it holds."""
_STATES = ["before", "after", "turned_wrong"]
_GROUP = ["relation", "axis", "group"]
_TESTED = ["value", "low", "high", "stderr", "df", "p", "p_adjusted", "margin", "verdict", "note"]
_COUNTS = ["n", "n_edits", "n_people"]
_LEVELS = ["what", "about", "editor", "control", *_GROUP, "true_answer", "scale", "decides", *_STATES, *_TESTED]
_LEVELS += [*_COUNTS, "edit_share_for_half"]
_CONTRASTS = ["editor", *_GROUP, "reference", "true_answer", "scale", *_TESTED]
_CONTRASTS += ["detectable", "value_on_other_scale", "mirror", *_COUNTS]
_EFFICACY = ["what", "about", "editor", "relation", "asked", "scale", "value", "low", "high", "note", "n", "n_edits"]
_EDITS_ON_PAGE = 10  # of each editor


def tables_of(frame: pd.DataFrame, run: RunResult, answers: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return every table of a run's report that has rows.

    Args:
        frame: Its numbers.
        run: The run.
        answers: Rows of `seesaw_cf.report.tables.answers_of`.
    """
    estimated = _with_states(frame)
    everybody = (estimated["relation"] == ALL) & (estimated["axis"] == ALL)
    contrasts = frame[frame["what"] == "contrast"]
    decide = contrasts["decides"].astype(bool)  # each is followed by its value on the other scale
    contrasts = contrasts[decide].assign(value_on_other_scale=contrasts.loc[~decide, "value"].to_numpy())
    tables = {
        "levels": estimated.loc[everybody, _LEVELS],
        "groups": estimated.loc[~everybody, _LEVELS].drop(columns=["p_adjusted", "verdict"]),
        "contrasts": contrasts[_CONTRASTS],
        "other_facts": _other_facts(frame),
        "efficacy": frame.loc[frame["about"].isin(("edited_fact", "answers")), _EFFICACY],
        "edits": worst_edits(run, answers),
        "answers": most_moved(answers),
        "unscored": run.unscored,
    }
    return {name: table.reset_index(drop=True) for name, table in tables.items() if len(table)}


def _with_states(frame: pd.DataFrame) -> pd.DataFrame:
    """Return changes with what there was before and after, and how many right answers turned wrong."""
    keys = ["about", "editor", *_GROUP, "true_answer"]
    states = frame[frame["what"].isin(_STATES)].pivot_table("value", keys, "what", aggfunc="first", observed=True)
    rows = frame[frame["what"].isin(("change", "beyond"))]
    rows = rows.merge(states.reindex(columns=_STATES).reset_index(), how="left", on=keys)
    share = rows["half_edits"] / rows["n_edits"].where(rows["n_edits"] > 0)
    return rows.assign(edit_share_for_half=share.where(rows["half_edits"] > 0))


def _other_facts(frame: pd.DataFrame) -> pd.DataFrame:
    """Return one row for each editor and pair of relations, a column for each number."""
    rows = frame[(frame["about"] == "other_facts") & ~frame["what"].isin(("change", "beyond", *_STATES))]
    keys = ["editor", "relation", "asked"]
    wide = rows.pivot(index=keys, columns="what", values=["value", "low", "high"]).dropna(axis=1, how="all")
    parts, whats = (wide.columns.get_level_values(at) for at in (0, 1))
    wide.columns = pd.Index([what if part == "value" else f"{what}_{part}" for part, what in zip(parts, whats)])
    change = rows[rows["what"] == "right_change"].set_index(keys)
    return wide.join(change[["p", "note", "n", "n_people"]]).reset_index()


# The same for a page: a few columns, in words.


def answer_table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return answers for a page: the edit, the question, the right and the wrong answer before and after."""
    columns = {"edit": rows["edit"], "question": rows["prompt"].where(rows["prompt"].astype(bool), rows["person"])}
    for side, space in (("right", ""), ("wrong", " ")):  # no two columns have one name
        columns[f"{side} answer"] = rows[side]
        columns |= {when + space: rows[f"{side}_{when}"].map(percent) for when in ("before", "after")}
    return _by_editor(rows, columns)


def edit_table(edits: pd.DataFrame) -> pd.DataFrame:
    """Return the edits of each editor that turned most answers wrong, for a page."""
    rows = edits.groupby("editor", sort=False).head(_EDITS_ON_PAGE)
    columns = {"edit": rows["edit"], "answers turned wrong": rows["turned_wrong"]}
    whom = {"other people": ("other_people_old", "other_people_new"), "other facts": ("other_facts",)}
    for head, names in whom.items():
        turned, asked = (rows[[f"{name}_{of}" for name in names]].sum(axis=1) for of in ("turned_wrong", "asked"))
        columns[head] = (turned.map("{:,} of ".format) + asked.map("{:,}".format)).where(asked > 0, "\u2013")
    return _by_editor(rows, columns)


def _by_editor(rows: pd.DataFrame, columns: Mapping[str, pd.Series]) -> pd.DataFrame:
    """Return columns as a table; the editor is the first where there are several."""
    editor = {"editor": rows["editor"]} if rows["editor"].nunique() > 1 else {}
    return pd.DataFrame({**editor, **columns})


# What the models wrote.

_ASKED: Mapping[str, str] = {
    "efficacy": "the edit",
    "paraphrase": "the edit in other words",
    "cross_property": "other facts about the edited person",
    "cross_subject": "other people",
}
_NO_ANSWER = {"refused": "refused", "empty": "empty", "failed": "failed", "unfinished": "cut at the token limit"}


def answer_lines(frame: pd.DataFrame, run: RunResult) -> Iterator[ScreenRow]:
    """Yield what every audited editor's model wrote to each kind of questions, and what texts held no answer."""
    own = frame[(frame["about"] == "answers") & frame["editor"].isin(run.audited)]
    for (editor, asked), rows in own.groupby(["editor", "asked"], sort=False):
        row = {str(own["what"]): own for _, own in rows.iterrows()}
        shares = {what: percent(row[what]["value"]) for what in ("written", "written_before", "exact", "likelier")}
        gap, n = row["gap"], row["written"]["n"]
        words = f"{editor}, {_ASKED[str(asked)]}, {FORM_WORDS[run.form]}: right in {shares['written']} of {n:,} texts "
        words += f"({shares['written_before']} before; {shares['exact']} with nothing else)"
        if np.isfinite(gap["value"]):
            words += f", likelier in {shares['likelier']}: a gap of {amount(gap)}"
        if "judged" in row:
            error, known = row["judge_error"], "texts that are nothing but a known answer"
            size = f"wrong about {with_interval(error, 100, unit=' %')} of {error['n']:,} {known}"
            words += f"; a judge reads it in {percent(row['judged']['value'])} and is "
            words += size if error["n"] else f"not measured: there are no {known}"
        missing = [f"{int(row[what]['value']):,} {name}" for what, name in _NO_ANSWER.items() if row[what]["value"]]
        yield ScreenRow(f"{words}{'; ' * bool(missing)}{', '.join(missing)}")


# Single answers.

MOST_MOVED = 40  # of each editor and level
COLUMNS = (
    *("editor", "about", "true_answer", "relation", "case_id", "edit", "person", "prompt", "right", "wrong"),
    *("right_before", "right_after", "wrong_before", "wrong_after", "loss", "turned_wrong"),
)
_ANSWERS = {"target_true": ("true", "new"), "target_new": ("new", "true")}  # the right and the wrong answer of holders
_PHASES = {"before": "pre", "after": "post"}


def answers_of(run: RunResult) -> pd.DataFrame:
    """Return every scored answer of the audited editors, with the columns `COLUMNS`; `loss` is that of the right one.

    Probabilities about other facts are shares of the candidates.
    """
    parts = [part for part in (*_about_people(run), *_about_facts(run)) if len(part)]
    if not parts:
        return pd.DataFrame(columns=list(COLUMNS))
    out = pd.concat(parts, ignore_index=True)
    return out.assign(edit=edit_names(run, out["case_id"]))[list(COLUMNS)]


def _about_people(run: RunResult) -> Iterator[pd.DataFrame]:
    if run.people is None:
        return
    scored = run.people[(run.people["status"] == "ok") & run.people["editor"].isin(run.audited)]
    for holds, sides in _ANSWERS.items():
        own = scored[scored["holds"] == holds]
        subject = own["subject"].astype(object)
        columns: dict[str, Any] = {name: own[name].astype(object) for name in ("editor", "prompt")}
        columns |= {
            "case_id": own["case_id"],
            "about": "other_people",
            "true_answer": TRUE_ANSWERS[holds],
            "relation": own["edit_relation"],
        }
        columns["person"] = subject.where(subject.fillna("") != "", own["person"])
        for name, side in zip(("right", "wrong"), sides):
            columns[name] = own[f"target_{side}"].astype(object)
            columns |= {f"{name}_{when}": np.exp(own[f"{phase}_{side}"]) for when, phase in _PHASES.items()}
        ahead = [columns[f"right_{when}"] > columns[f"wrong_{when}"] for when in _PHASES]
        loss = (1.0 if holds == "target_true" else -1.0) * own["D"].astype(float)
        yield pd.DataFrame({**columns, "loss": loss, "turned_wrong": ahead[0] & ~ahead[1]})


def _about_facts(run: RunResult) -> Iterator[pd.DataFrame]:
    if run.facts is None:
        return
    own = run.facts[(run.facts["seed"] == 1) & (run.facts["status"] == "ok") & run.facts["editor"].isin(run.audited)]
    top = [int(np.argmax(post)) for post in own["post"]]
    out = own[["editor", "case_id", "person"]].assign(about="other_facts", true_answer="")
    out["relation"] = own["edit_relation"] + "/" + own["effect_relation"]
    out["prompt"] = own["prompt_post"].where(own["prompt_post"] != "", own["prompt_pre"])
    out["right"] = [names[0] for names in own["gold"]]
    out["wrong"] = [names[at] for names, at in zip(own["candidates"], top, strict=True)]
    for when, phase in _PHASES.items():
        out[f"right_{when}"] = expit(own[f"{phase}_odds"].astype(float))
        out[f"wrong_{when}"] = [float(softmax(row)[at]) for row, at in zip(own[phase], top, strict=True)]
    turned = own["pre_correct"].astype(bool) & ~own["post_correct"].astype(bool)
    yield out.assign(loss=out["right_before"] - out["right_after"], turned_wrong=turned)


def edit_names(run: RunResult, cases: pd.Series) -> pd.Series:
    """Return the edits of cases in words: "Ada Lovelace: London \u2192 Paris"."""
    edits = run.edits.drop_duplicates("case_id").set_index("case_id")
    words = edits["subject"] + ": " + edits["target_true"].fillna("?") + " \u2192 " + edits["target_new"]
    return cases.map(words.map(printable)).fillna("case " + cases.astype(str))


def most_moved(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the answers of every editor and level whose right answer lost most, the largest loss first."""
    level = ["editor", "about", "true_answer"]
    order = answers[[*level, "loss", "case_id"]].sort_values(
        ["loss", "case_id"], ascending=[False, True], kind="stable"
    )
    return answers.loc[order.groupby(level, sort=False).head(MOST_MOVED).index].reset_index(drop=True)


def worst_edits(run: RunResult, answers: pd.DataFrame) -> pd.DataFrame:
    """Return one row an edit: what became of it and of the answers about others, most answers turned wrong first."""
    names = ["editor", "case_id", "relation_id", "order", "status", "delta_norm", "raised", "success"]
    names = [name for name in names if name in run.distinct]  # only edits one after another have an order
    out = run.distinct[run.distinct["editor"].isin(run.audited)][names]
    out = out.rename(columns={"relation_id": "relation", "order": "order_of_edits"})
    out.insert(3, "edit", edit_names(run, out["case_id"]))
    keys = ["editor", "case_id"]
    for about, answer in (("other_people", "old"), ("other_people", "new"), ("other_facts", "")):
        level = f"{about}_{answer}".strip("_")
        here = (answers["about"] == about) & (answers["true_answer"] == answer)
        own = answers.loc[here, [*keys, "loss", "turned_wrong"]].groupby(keys)
        counts = own.agg(asked=("loss", "size"), turned_wrong=("turned_wrong", "sum"), mean_loss=("loss", "mean"))
        out = out.merge(counts.add_prefix(f"{level}_").reset_index(), how="left", on=keys)
    whole = [name for name in map(str, out) if name.endswith(("_asked", "_turned_wrong"))]
    out[whole] = out[whole].fillna(0).astype(int)
    out["turned_wrong"] = out[whole[1::2]].sum(axis=1)
    people = out["other_people_old_turned_wrong"] + out["other_people_new_turned_wrong"]
    out = out.assign(order=out["editor"].map(run.audited.index), people=people)
    order, up = ["order", "people", "turned_wrong", "other_people_old_mean_loss"], [True, False, False, False]
    return out.sort_values(order, ascending=up, kind="stable", ignore_index=True).drop(columns=["order", "people"])


def example(run: RunResult, levels: Sequence[Row], answers: pd.DataFrame) -> str:
    """Return one answer that turned wrong, on the level of the largest harm; "" where no harm is shown.

    It is typical, not extreme: of each edit that turned answers the one with the median loss, of these that in the
    middle, so that one edit that turned hundreds does not choose itself.
    """
    keys = ["editor", "about", "true_answer"]
    for level in sorted((own for own in levels if own["is_harm"]), key=lambda own: -own["harm"]):
        own = answers[(answers[keys] == [level[key] for key in keys]).all(axis=1) & answers["turned_wrong"]]
        if own.empty:
            continue
        own = own.sort_values(["loss", "case_id"], kind="stable")
        edits = own.groupby("case_id", sort=False)
        middle = own[edits.cumcount() == (edits["loss"].transform("size") - 1) // 2]
        row = middle.iloc[(len(middle) - 1) // 2]
        made = f"after {row['editor']}" if run.asked_only else f"\u201c{row['edit']}\u201d ({row['editor']})"
        facts = level["about"] == "other_facts"
        about = relation_name(row["relation"].partition("/")[2]) if facts else printable(row["person"])
        asked = f" (\u201c{printable(row['prompt'])}\u201d)" if row["prompt"] else ""
        return (
            f"{capital(made)}: asked about {about}{asked}, the model now says "
            f"{printable(row['wrong'])} ({percent(row['wrong_after'])}; before, {percent(row['wrong_before'])}). "
            f"Right is {printable(row['right'])}."
        )
    return ""
