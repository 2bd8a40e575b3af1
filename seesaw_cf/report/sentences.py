"""What a run found, in sentences: every one is a function of rows of the frame, in one vocabulary.

A reader needs no statistics: a sentence says what happened, to whom, compared with what, by how much, and what is not
known. The noun is "edit" or "change". Harm is always above 0; no size is named whose interval holds 0.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from seesaw_cf.base.terminal import quantity
from seesaw_cf.editors.control_names import NULLS, is_control
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.means import ALL
from seesaw_cf.report.frame import HARM
from seesaw_cf.report.levels import harm_phrase, levels_of, turned_wrong
from seesaw_cf.report.pairs import MIXED, RunResult
from seesaw_cf.report.rows import Row, forms_of, model_name, rows_of
from seesaw_cf.report.words import (
    FORM_WORDS,
    amount,
    and_list,
    capital,
    control_words,
    digits_for,
    minus,
    percent,
    relation_name,
    size,
    unit_of,
)
from seesaw_cf.stats.clustered import FEW_EDITS
from seesaw_cf.stats.verdicts import RARE

_WHO: Mapping[str, str] = {"old": "for whom the old answer is true", "new": "for whom the new answer is true"}

ASKED_ONLY = "Of each fact that was asked, the old answer is true of its person and the new one false."


def finding(frame: pd.DataFrame, run: RunResult, settings: AuditSettings) -> list[str]:
    """Return what a run found, what must be known first standing first: a few sentences of plain words."""
    levels, doubted = levels_of(frame, run), doubts(frame, run)
    if not levels:
        nothing = "Nothing was asked but the edits themselves."
        if run.people is not None and (run.people["status"] == "ok").any():
            nothing = "It is not recorded which answer is true of the people who were asked about."
        elif run.people is not None or run.facts is not None:
            nothing = f"No score about others{asked_how(run)}: nothing is known of them."
        return [nothing, *doubted]
    failed = any(after["value"] <= 0.5 for _, _, after in efficacy_rows(frame, run) if not run.asked_only)
    sentences = [*broken(run), *(doubted if failed else [])]
    if all(is_control(name) for name in run.audited):
        sentences.append(f"Only control edits were made, {len(run.distinct):,}.")
    by_editor = {name: [level for level in levels if level["editor"] == name] for name in run.audited}
    harmed = [level for level in levels if level["is_harm"]]
    most = {name: max((own["harm"] for own in harmed if own["editor"] == name), default=0.0) for name in by_editor}
    happened = groupby(
        sorted(by_editor, key=lambda name: -most[name]),
        lambda name: (run.is_changed(name), run.together(name), _happened(by_editor[name], run)),
    )
    clauses = [_clause(words, list(names), run) for (*_, words), names in happened if words]
    group = group_sentence(frame, run, settings)
    if harmed and any(level["verdict"] == "no_control" for level in levels):
        clauses.append(f"Without a control it is not known whether any {run.noun} of that size does the same.")
    first = not harmed and not group_claims(frame, run)["gained"].all()  # who only gained less was not harmed
    sentences += [group, *clauses] if first else [*clauses, group]
    return [sentence for sentence in (*sentences, *([] if failed else doubted)) if sentence]


def _happened(levels: Sequence[Row], run: RunResult) -> str:
    """Return what one editor did to the model, the largest harm first."""
    if not levels:
        return ""
    if harmed := sorted((level for level in levels if level["is_harm"]), key=lambda level: -level["harm"]):
        edited = "the edited people" if run.together(levels[0]["editor"]) else "the edited person"
        person, count = "the people of the records" if run.asked_only else edited, len(run.audited) == 1
        phrases, others = zip(*(harm_phrase(level, person, count) for level in harmed))
        how = f"against {and_list(others)}" if all(others) else "more so than"
        beside = f", {how} after {control_words(harmed[0]['control'], run)}" if harmed[0]["control"] else ""
        return f"the model {and_list(phrases)}{beside}"
    worst = max(levels, key=lambda level: (level["verdict"] == "slightly_worse", level["harm"]))
    verdicts, control = {level["verdict"] for level in levels}, control_words(worst["control"], run)
    if worst["verdict"] == "slightly_worse":
        harm, margin = (size(value, worst["scale"]) for value in (worst["sign"] * worst["value"], worst["margin"]))
        return f"the answers are a little worse than after {control}: {harm}, below the {margin} declared to matter"
    known, few = ("no_worse", "better"), quantity(worst["n_edits"], run.unit)
    wrong, turned = _turned(levels, control)
    if is_control(worst["editor"]):
        return turned
    if verdicts == {"no_control"}:
        words = f"what a random {run.noun} of the same size does was not measured"
    elif verdicts == {"too_few"}:
        words = f"whether that is chance cannot be told ({levels[0]['note'].partition(' (')[0]})"
    elif verdicts <= set(known):
        words = "nothing that was asked is worse"
    elif all(RARE in level["note"] or level["verdict"] in known for level in levels):
        words = f"nothing that was asked is worse so far, but {few} {RARE}"
    else:
        what = "that is more than chance" if wrong else "the model became less sure of any"
        words = f"whether {what} is not decided"
    return f"{turned}: {words}"


def _turned(levels: Sequence[Row], control: str) -> tuple[int, str]:
    """Return how many answers turned wrong, of all levels together, in words against how many after the control."""
    (wrong, n), (others, _) = (
        map(sum, zip(*(turned_wrong(level[side]) for level in levels))) for side in ("own", "beside")
    )
    against = f", {f'against {others:,}' if wrong or others else 'as'} after {control}"
    beside = against * any("turned_wrong" in level["beside"] for level in levels)
    return wrong, f"{f'{wrong:,}' if wrong else 'none'} of {n:,} right answers turned wrong{beside}"


def _clause(words: str, editors: Sequence[str], run: RunResult) -> str:
    """Return a sentence about editors; a changed model is its subject."""
    changed = run.is_changed(editors[0])
    names = and_list(editors, "and" if changed else "or")
    if not changed:
        return f"After {f'all {names} edits together' if run.together(editors[0]) else f'{names} edits'} {words}."
    if not words.startswith("the model "):
        return f"After the change {names}, {words}."
    start = f"The model {names}" if len(editors) == 1 else f"Each of the models {names}"
    return f"{start} {words.removeprefix('the model ')}."


def broken(run: RunResult) -> list[str]:
    """Return a sentence on each editor whose edits damage the model as a whole."""
    return [
        f"Most edits by {editor} break the model: {local.others} right {percent(local.before)} before, "
        f"{percent(local.after)} after."
        for editor, local in run.local.items()
        if local.collapsed and not is_control(editor)
    ]


# Did the edits work?


def efficacy_rows(frame: pd.DataFrame, run: RunResult) -> Iterator[tuple[str, pd.Series, pd.Series]]:
    """Yield (editor, before, after): shares of edits whose new answer is the likelier one."""
    own = frame[(frame["relation"] == ALL) & frame["what"].isin(("efficacy_before", "efficacy_after"))]
    for editor in run.audited:
        rows = {str(row["what"]): row for _, row in own[own["editor"] == editor].iterrows()}
        if len(rows) == 2:
            yield editor, rows["efficacy_before"], rows["efficacy_after"]


def doubts(frame: pd.DataFrame, run: RunResult) -> list[str]:
    """Return sentences on editors whose edits did not work, or are not shown to."""
    rows = [(name, after) for name, _, after in efficacy_rows(frame, run) if not run.is_changed(name)]
    doubted = [(editor, after, _count(after)) for editor, after in rows if not after["low"] > 0.5]
    return [
        f"{count} edits by {editor} worked, too few to show that most do."
        if after["value"] == 1
        else f"Edits by {editor} {'did not work' if after['high'] <= 0.5 else 'are not shown to work'}: {count}."
        for editor, after, count in doubted
    ]


def _count(share: pd.Series) -> str:
    return f"{round(share['value'] * share['n'])} of {share['n']}"


def asked_how(run: RunResult) -> str:
    """Return how a run was asked, ", asked as a question in chat"; "" where there is the plain form alone."""
    return f", asked {FORM_WORDS[run.form]}" if forms_of(run.manifest) != ["plain"] else ""


def efficacy_sentence(frame: pd.DataFrame, run: RunResult) -> str:
    """Return how many edits worked, their new answer being the likelier one: "The edits worked: 137 of 137."."""
    several = len(run.audited) > 1
    parts = [_count(after) + f" ({editor})" * several for editor, _, after in efficacy_rows(frame, run)]
    if parts:
        return f"The {run.noun}s worked{asked_how(run)}: {', '.join(parts)}."
    return "" if run.asked_only else f"Whether the {run.noun}s worked{asked_how(run)} was not measured."


def ranges_sentence(levels: Sequence[Row]) -> str:
    """Return the likely ranges of what is worse: "Likely ranges (95 %): 51 of 80 is 52 to 74 %."; "" without any."""
    parts = []
    for level in (level for level in levels if level["is_harm"]):
        facts = level["about"] == "other_facts"
        row, (factor, unit) = level["own"]["turned_wrong" if facts else "change"], unit_of(level["scale"])
        shown = (1 - row[end] if facts else level["sign"] * row[end] for end in ("value", "low", "high"))
        low, value, high = sorted(factor * number for number in shown)
        words = f"{round(value * row['n'] / factor)} of {row['n']}" if facts else f"{value:.{digits_for(value)}f}"
        ends = f"{low:.{digits_for(value)}f} to {high:.{digits_for(value)}f} {'%' if facts else unit}"
        parts += [minus(f"{words} is {ends}")] * math.isfinite(row["low"])
    return f"Likely ranges (95 %): {', '.join(parts)}." if parts else ""


# What is missing.

_FAILED = {"refused": "were refused", "not_finite": "were not finite", "zero": "changed nothing"}


def denominators(frame: pd.DataFrame, run: RunResult) -> str:
    """Return what was refused, unscored or untagged; "" where nothing was."""
    failed = frame[frame["what"].isin(_FAILED) & (frame["relation"] == ALL) & (frame["value"] > 0)]
    parts = [
        f"{round(row['value'])} of {row['n']:,} edits by {row['editor']} {_FAILED[row['what']]}"
        for row in rows_of(failed)
    ]
    if missing := int(run.unscored["n_rows"].sum()):
        parts.append(f"{missing:,} of {run.n_rows:,} scores missing{asked_how(run)}")
    if run.people is not None and (lost := int((run.people["status"] != "ok").sum())):
        parts.append(f"{lost:,} of {len(run.people):,} questions about other people left out")
    if names := [name for name in run.audited if run.together(name)]:
        of = f" by {and_list(names)}" * (run.protocol == MIXED)
        parts.append(f"all edits of a relation{of} were made together, so that nothing has a likely range")
    return f"{capital('; '.join(parts))}." if parts else ""


# Groups.


def contrasts_of(frame: pd.DataFrame, run: RunResult | None = None) -> pd.DataFrame:
    """Return the contrasts of groups on the scale that decides; of a run each once, those of its audited editors."""
    own = frame[(frame["what"] == "contrast") & frame["decides"].astype(bool)]
    return own if run is None else own[own["editor"].isin(run.audited) & ~own["mirror"].astype(bool)]


def group_claims(frame: pd.DataFrame, run: RunResult) -> pd.DataFrame:
    """Return the contrasts that say a group was hit harder, one for each set of people, the largest first.

    On an axis with two labels the row of the label that lost is kept. What the control shows as well is left out, and
    so are groups of another axis that are the same people. `gained`: the group lost nothing, and the others gained.
    """
    own = contrasts_of(frame)
    shown = own[own["verdict"].isin(("hit_harder", "slightly_harder"))]
    key = ["relation", "axis", "group", "true_answer"]
    controls = pd.MultiIndex.from_frame(shown.loc[shown["editor"].map(is_control).astype(bool), key])
    claims = shown[shown["editor"].isin(run.audited) & ~pd.MultiIndex.from_frame(shown[key]).isin(controls)]
    claims = claims.assign(size=-claims["value"].abs() / claims["margin"], whole=claims["relation"] != ALL)
    claims = claims.sort_values(["whole", "verdict", "size"], kind="stable")
    claims = claims.drop_duplicates(["editor", "relation", "true_answer", "value", "n", "n_people"])
    change = frame[(frame["what"] == "change") & (frame["about"] == "other_people")]
    keys = ["editor", *key, "scale"]
    means = claims[keys].merge(change[[*keys, "value"]].drop_duplicates(keys), how="left", on=keys)["value"].to_numpy()
    sign = np.array([HARM["other_people", answer] for answer in claims["true_answer"]], float)
    return claims.assign(gained=sign * means.astype(float) <= 0)


def group_sentence(frame: pd.DataFrame, run: RunResult, settings: AuditSettings) -> str:
    """Return which groups were hit harder, or that none is shown to be, and what could have been missed."""
    own, claims = contrasts_of(frame, run), group_claims(frame, run)
    if own.empty:
        return "Groups of people were not compared." if run.people is not None else ""
    hard, verdicts = claims[claims["verdict"] == "hit_harder"], set(own["verdict"])
    if len(shown := claims if hard.empty else hard):
        groups = list(dict.fromkeys(map(_who, rows_of(shown))))
        more = groups[1:3] + [f"{len(groups) - 3} more groups"] * (len(groups) > 3)
        row, several = shown.iloc[0], shown["editor"].nunique() > 1 or len(run.audited) > 1
        below = f", below the {size(row['margin'], row['scale'])} declared to matter" * hard.empty
        return f"{claim(row, several)}{below}{f'; also {and_list(more)}' if more else ''}."
    if verdicts == {"too_few"}:
        return "Too few people were asked about to compare groups."
    if verdicts <= {"equal", "too_few"}:
        return f"No group was hit harder by {settings.margin * 100:g} points or more."
    missed = own[own["verdict"] == "undecided"].dropna(subset="detectable").groupby("scale")["detectable"].median()
    if missed.empty:
        return "No group is shown to be hit harder."
    scale = missed.index.max()  # probability, if any is decided there
    factor, unit = unit_of(scale)
    least = factor * missed[scale]
    least_words = f"{least:.{0 if least >= 1.5 else digits_for(least)}f} {unit}"
    return f"No group is shown to be hit harder. (Gaps under {least_words} could be missed.)"


def claim(row: pd.Series, several: bool) -> str:
    """Return a group that was hit harder: "Women for whom the old answer is true were hit harder by 5 points [..]".

    Of a group that lost nothing right answers "gained less", so that nobody is said to be harmed whom the others only
    overtook.
    """
    where = "" if row["relation"] == ALL else f" in edits of {relation_name(row['relation'])}"
    by = f" by {amount(row, -1)}" if row["n_edits"] >= FEW_EDITS else ""
    editor, little = f" ({row['editor']})" * several, "a little " * (row["verdict"] == "slightly_harder")
    who = f"{_who(row)} {_WHO[row['true_answer']]}"
    if row["gained"]:
        return f"Right answers about {who} gained {little}less than those about others{by}{where}{editor}"
    return f"{capital(who)} were hit {little}harder than others{by}{where}{editor}"


def _who(row: Mapping[str, Any] | pd.Series) -> str:
    return {"race": "{} people", "region": "people from {}"}.get(row["axis"], "{}").format(row["group"])


def group_counts(frame: pd.DataFrame, run: RunResult) -> str:
    """Return the contrasts of groups in counts: "180 compared, 0 hit harder; 127 have too few"."""
    own = contrasts_of(frame, run)
    if own.empty:
        return "none compared"
    counts = Counter(own["verdict"])
    few, harder = counts["too_few"], counts["hit_harder"] + counts["slightly_harder"]
    gained = int(group_claims(frame, run)["gained"].sum())  # less than others, and lost nothing
    parts = [f"{len(own) - few:,} compared", f"{harder - gained} hit harder", *[f"{gained} gained less"] * bool(gained)]
    parts += [f"{counts[name]} {name.replace('_', ' ')}" for name in ("equal", "hit_less") if counts[name]]
    return ", ".join(parts) + f"; {few} have too few" * bool(few)


def group_badge(frame: pd.DataFrame, run: RunResult) -> str:
    """Return what is concluded about groups, in a few words."""
    claims, verdicts = group_claims(frame, run), set(contrasts_of(frame, run)["verdict"])
    if len(claims):
        return "GROUPS DIFFER" if (claims["verdict"] == "hit_harder").any() else "differ a little"
    return "no difference" if verdicts == {"equal"} else "none shown" if "undecided" in verdicts else "too few to tell"


def header(run: RunResult) -> str:
    """Return the model, what was done to it and who was asked about, in one line."""
    model, edited = model_name(run.manifest), [name for name in run.audited if not run.is_changed(name)]
    names = and_list(edited or run.audited)
    facts = quantity(run.distinct["case_id"].nunique(), "fact")
    how = {"batch": "all together", MIXED: "one by one or all together"}.get(run.protocol, "one by one")
    people = 0 if run.people is None else run.people.loc[run.people["status"] == "ok", "person"].nunique()
    form, people_words = asked_how(run), [quantity(people, "other person", "other people")] * bool(people)
    if run.asked_only:
        return f"{model} against {names}: {and_list([facts, *people_words])} asked about{form}"
    changed = [name for name in run.audited if edited and run.is_changed(name)]
    beside = f", beside {and_list(changed)}" if changed else ""
    return (
        f"{model}: {facts} edited with {names} {how}{beside}{f'; {people:,} others asked about' * bool(people)}{form}"
    )


def controls_note(run: RunResult) -> str:
    """Return what the random control of a changed model is, where its kind is recorded."""
    edited = run.manifest.get("edited", {}).items()
    kinds = {name: facts.get("null") for name, facts in edited if run.control_of(name)}
    return " ".join(f"The random change beside {name}: {NULLS[kind]}." for name, kind in kinds.items() if kind in NULLS)
