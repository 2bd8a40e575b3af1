"""The sentences of the study's page: each follows from its tables, and says so where they decide nothing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from benchmarks.study.looks import MODEL, looks_at
from seesaw_cf.report.text import effect, minus, p_value
from seesaw_cf.stats.simple import proportion
from seesaw_cf.stats.verdicts import AFFECTED

# What the kept tables call verdicts.
WORSE, BETTER, SAME = "worse than its control", "better than its control", "no more than its control"
_UNTESTED = ("not testable", "no control")


def contradiction(row: Mapping[Any, Any], other: Mapping[Any, Any], floor: float) -> str:
    """Return how the scale that does not decide speaks against a verdict, or shows a change where there is none.

    Args:
        row, other: A level on the scale that decides and on the other.
        floor: Largest difference on the other scale that is noise.
    """
    change = other["difference"]
    if row["verdict"] in _UNTESTED or other["difference_low"] * other["difference_high"] <= 0 or abs(change) <= floor:
        return ""
    if row["verdict"] in (WORSE, BETTER):
        return "the other way" if row["difference"] * change < 0 else ""
    return f"beyond its margin of {other['margin']:g}" if abs(change) > other["margin"] else ""


Row = Mapping[Hashable, Any]
Tables = Mapping[str, pd.DataFrame]
NAMES = {
    "memit": "MEMIT",
    "ft": "FT",
    "rome": "ROME",
    "lora": "LoRA",
    "alphaedit": "AlphaEdit",
    "mend": "MEND",
    "ike": "IKE",
    "nf4": "rounding to 4 bits",
    "merged": "a merged LoRA",
}
MODELS = {
    "smollm2": "SmolLM2-135M-Instruct",
    "gemma3-270m": "Gemma 3 270M",
    "qwen2.5-0.5b": "Qwen2.5-Coder-0.5B-Instruct",
    "smollm2-changed": "SmolLM2-135M-Instruct, changed as a whole",
    "smollm2-released": "SmolLM2-135M-Instruct, on records that the papers released",
}
_OLD = "target_true"
_LEVEL = 0.05  # of test A
_FEW = 3  # editors with all their numbers in one sentence


def named(editor: str) -> str:
    """Return what an editor or control is called on the page."""
    inner = editor.partition("(")[2].rstrip(")")
    return f"control of {NAMES.get(inner, inner)}" if inner else NAMES.get(editor, editor)


def own_editors(tables: Tables) -> list[str]:
    """Return the editors of finished parts, without controls, in the declared order."""
    there = {str(name) for name in tables["levels"]["editor"].unique() if "(" not in name}
    return sorted(there, key=list(NAMES).index)


def listed(names: Sequence[str]) -> str:
    """Return names as a list in words."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _level(tables: Tables, editor: str, level: str) -> Row:
    table = tables["levels"]
    own = table[(table["editor"] == editor) & (table["level"] == level) & table["decides"].astype(bool)]
    return own.to_dict("records")[0]


def change_text(row: Row, name: str = "difference") -> str:
    """Return a change with its interval and unit."""
    digits = 2 if row["scale"] == "log-odds" else 3
    unit = {"log-odds": " nats", "probability": " in probability", "share": ""}[row["scale"]]
    shown = effect(row[name], row[f"{name}_low"], row[f"{name}_high"], 0.0, digits)
    return minus(shown) + unit


def by_verdict(tables: Tables, level: str) -> str:
    """Return the editors of each verdict of a level, with the difference from the control where it is decided.

    The verdict is that of the first look, the difference has all edits so far.
    """
    there: dict[str, list[str]] = {}
    for editor in own_editors(tables):
        there.setdefault(str(_level(tables, editor, level)["verdict"]), []).append(editor)
    order = sorted(there, key=lambda verdict: not _settled(verdict))
    return listed([f"*{verdict}* after {_with_values(tables, verdict, there[verdict], level)}" for verdict in order])


def _with_all_edits(tables: Tables, level: str) -> str:
    """Return the editors of which all edits so far say otherwise than the first look, which decides."""
    later = {editor: later_level(tables, editor, level) for editor in own_editors(tables)}
    settled = {editor: _settled(_level(tables, editor, level)["verdict"]) for editor in later}
    faded = [named(editor) for editor, row in later.items() if row and settled[editor] and _holds_0(row)]
    grown = [
        f"{named(editor)} ({change_text(row)}, {row['n_edits']:.0f} edits)"
        for editor, row in later.items()
        if row and not settled[editor] and not _holds_0(row)
    ]
    sides = {"has 0 in it": faded, "has no 0 in it": grown}
    words = [f"{what} after {listed(names)}" for what, names in sides.items() if names]
    return f"; the interval with all edits so far {listed(words)}" if words else ""


def _settled(verdict: object) -> bool:
    return str(verdict).endswith("its control")


def _with_values(tables: Tables, verdict: str, editors: Sequence[str], level: str) -> str:
    """Return editors with their differences; of many the smallest and the largest."""
    if not _settled(verdict):
        return listed([named(editor) for editor in editors])
    rows = {editor: _latest(tables, editor, level) for editor in editors}
    values = {editor: f"{change_text(row)}, {row['n_edits']:.0f} edits" for editor, row in rows.items()}
    if len(editors) <= _FEW:
        return listed([f"{named(editor)} ({value})" for editor, value in values.items()])
    least, *_, most = sorted(editors, key=lambda editor: abs(rows[editor]["difference"]))
    ends = [f"{named(editor)}, {values[editor]}" for editor in (least, most)]
    return f"{listed([named(editor) for editor in editors])} (from {ends[0]}, to {ends[1]})"


def groups(tables: Tables, editor: str) -> str:
    """Return one clause about the contrasts of groups of an editor."""
    table = tables["contrasts"]
    own = table[(table["editor"] == editor) & ~table["mirror"].astype(bool)]
    tested, away = own[own["p"].notna()], own[own["verdict"].isin(AFFECTED)]
    same = int((own["verdict"] == "equivalent").sum())
    return (
        f"{len(away)} of {len(tested)} testable contrasts {_is(len(away))} decided, "
        f"{same or 'none'} {_is(max(same, 1))} shown to be inside the margin"
    )


def _groups_of_all(tables: Tables) -> str:
    table = tables["contrasts"]
    table = table[~table["mirror"].astype(bool) & table["p"].notna()]
    own = table[table["editor"].isin(own_editors(tables))]
    away = own[own["verdict"].isin(AFFECTED)]["editor"].value_counts()
    counts = listed([f"{away.get(editor, 0)} after {named(editor)}" for editor in own_editors(tables)])
    same = int((own["verdict"] == "equivalent").sum())
    return (
        f"Of {len(own):,} testable contrasts of groups {away.sum()} are decided at the declared level of the newest "
        f"look ({counts}), {same or 'none'} {_is(max(same, 1))} shown to be inside the margin, and all others are "
        "undetermined"
    )


def _is(n: int) -> str:
    return "is" if n == 1 else "are"


def detectable(tables: Tables) -> str:
    """Return the smallest effects that the pooled contrasts would have found in the first step of their correction."""
    table = tables["contrasts"]
    own = table[(table["relation"] == "all") & table["p"].notna()]
    own = own[~own["mirror"].astype(bool) & ~own["editor"].str.contains("(", regex=False)]
    ranges = [
        f"{rows['detectable'].min():.2g} {unit} at best and {rows['detectable'].median():.2g} in the median"
        for scale, unit in (("log-odds", "nats"), ("probability", "in probability"))
        if len(rows := own[own["scale"] == scale])
    ]
    return " or ".join(ranges) or "no size"


def abstract(tables: Tables) -> str:
    """Return five sentences."""
    editors, runs = own_editors(tables), tables["runs"].set_index("part")
    edits = {name: int(n) for name, n in runs["edits"].items()}
    counts = listed(
        [
            f"{n} with each of {listed([named(name) for name in editors if edits[name] == n])}"
            for n in sorted(set(edits.values()), reverse=True)
        ]
    )
    prompts, people = runs["prompts"].max(), runs["people"].max()
    facts = _level(tables, editors[0], "other_facts")
    return " ".join(
        [
            f"We wrote false facts about people, one at a time, into SmolLM2-135M-Instruct, {counts}, and asked up to "
            f"{prompts:,.0f} questions about {people:,.0f} other people before and after, with a "
            "random change of the same size (of IKE's prompt: a fact about a thing) as the control.",
            f"Of other recorded facts about the edited person {100 * facts['before']:.0f} % were right before "
            f"({facts['n']:.0f} facts, {facts['n_edits']:.0f} edits of the first look, which decides), and this share "
            f"is {by_verdict(tables, 'other_facts')}{_with_all_edits(tables, 'other_facts')}.",
            "The move towards the new answer, editor minus control, is, about people who hold the old one (of whom the "
            f"new one is false), {by_verdict(tables, 'target_true')}; about people who hold the new one it is "
            f"{by_verdict(tables, 'target_new')}{_contradictions(tables)}.",
            f"{_groups_of_all(tables)}; the smallest pooled contrast that is found with power 80 %, without the margin "
            f"that a verdict needs, is {detectable(tables)}.",
            "What is undetermined is not shown to be equal, the model is small and was quantised, and these sentences "
            "say nothing about other models, editors or settings.",
        ]
    )


def _contradictions(tables: Tables) -> str:
    """Return the editors whose two scales disagree about people who hold the old answer."""
    opposite: list[str] = []
    beyond: list[str] = []
    clause = {WORSE: opposite, BETTER: opposite, SAME: beyond}
    for editor in own_editors(tables):
        if (other := other_scale(tables, editor, _OLD)) is None:
            continue
        verdict = _level(tables, editor, _OLD)["verdict"]
        against = contradiction({**_latest(tables, editor, _OLD), "verdict": verdict}, other, 0.0)
        if against and verdict in clause:
            clause[verdict].append(f"{named(editor)} ({change_text(other)}, {other['n_edits']:.0f} edits)")
    clauses = []
    if opposite:
        clauses.append(f"has the other sign after {listed(opposite)}, so that the two contradict each other")
    if beyond:
        clauses.append(f"is beyond the margin after {listed(beyond)}: *{SAME}* is said of the declared scale alone")
    where = "on the scale that does not decide, the move about those who hold the old one"
    return f"; {where} {', and '.join(clauses)}" if clauses else ""


def findings(tables: Tables) -> str:
    """Return the findings, an editor each."""
    editors = own_editors(tables)
    lines = [_of_editor(tables, editor) for editor in editors]
    if all_move := [named(editor) for editor in editors if _moves_all(tables, editor)]:
        text = f"**The log-odds of the new answer rise about other people after {listed(all_move)}**, whichever answer"
        lines.insert(0, f"- {text} they hold: it is false of those who hold the old one{_contradictions(tables)}.")
    return "\n".join(lines)


def _of_editor(tables: Tables, editor: str) -> str:
    clauses = []
    for level, words in _LEVEL_SENTENCES.items():
        row = _level(tables, editor, level)
        half = (
            f", of which {row['half_edits']:.0f} edits make up half"
            if _settled(row["verdict"])
            else _inside_margin(row)
        )
        first = f"{change_text(row)} with {row['n_edits']:.0f} edits{half}"
        clauses.append(f"{_sentence(words)}: *{row['verdict']}* ({first}{_with_later_edits(tables, editor, level)}).")
    own = tables["contrasts"]
    own = own[(own["part"] == editor) & ~own["mirror"].astype(bool)]
    return f"- **{named(editor)}.** {' '.join(clauses)} Groups: {groups(tables, editor)}.{_of_controls(own)}"


def _inside_margin(row: Row) -> str:
    """Return that a significant difference is inside the margin, where it is."""
    inside = row["p_adjusted"] < _LEVEL and abs(row["difference"]) <= row["margin"]
    return (
        f", corrected p {p_value(row['p_adjusted'])}, but not beyond the margin of {row['margin']:g}" if inside else ""
    )


def _of_controls(contrasts: pd.DataFrame) -> str:
    """Return in how many of an editor's decided contrasts its control goes the same way."""
    keys, control = ["relation", "holds", "axis", "group"], contrasts["editor"].str.contains("(", regex=False)
    away = contrasts[~control & contrasts["verdict"].isin(AFFECTED)].merge(contrasts[control], on=keys)
    sure = (away["low_y"] > 0) | (away["high_y"] < 0)
    n = int((sure & (away["value_x"] * away["value_y"] > 0)).sum())
    return f" In {n} of the decided the control's contrast goes the same way, with an interval without 0." if n else ""


def _with_later_edits(tables: Tables, editor: str, level: str) -> str:
    """Return what later edits make of the estimate of a level, which is tested in the first look alone."""
    row = later_level(tables, editor, level)
    if row is None:
        return ""
    settled = _settled(_level(tables, editor, level)["verdict"])
    doubt = ", an interval with 0 in it: more edits do not bear the verdict out" if settled and _holds_0(row) else ""
    more = ", an interval without 0, but the first look decides" if not settled and not _holds_0(row) else ""
    return f"; {change_text(row)} with {row['n_edits']:.0f}{doubt}{more}"


def _holds_0(row: Row) -> bool:
    return bool(row["difference_low"] <= 0 <= row["difference_high"])


def _latest(tables: Tables, editor: str, level: str) -> Row:
    """Return the row of a level with all edits so far."""
    return later_level(tables, editor, level) or _level(tables, editor, level)


def later_level(tables: Tables, editor: str, level: str) -> Row | None:
    """Return the row of a level at an editor's newest look; None where that is the first."""
    table = tables["later levels"]
    own = table[(table["editor"] == editor) & (table["level"] == level) & table["decides"].astype(bool)]
    return own.to_dict("records")[0] if len(own) else None


def other_scale(tables: Tables, editor: str, level: str) -> Row | None:
    """Return the row with all edits so far on the scale that does not decide; None where there is one scale."""
    for name in ("later levels", "levels"):
        table = tables[name]
        own = table[(table["editor"] == editor) & (table["level"] == level) & ~table["decides"].astype(bool)]
        if len(own):
            return own.to_dict("records")[0]
    return None


def _moves_all(tables: Tables, editor: str) -> bool:
    """Return whether both kinds of holders are shown to move towards the new answer more than after the control."""
    verdicts = [_level(tables, editor, level)["verdict"] for level in ("target_true", "target_new")]
    return verdicts == ["worse than its control", "better than its control"]


_LEVEL_SENTENCES = {
    "other_facts": "other facts about the edited person",
    "target_true": "people who hold the old answer",
    "target_new": "people who hold the new answer",
}


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]


def other_models(views: Mapping[str, Tables]) -> str:
    """Return what the other models and the whole changes show, a clause each."""
    lines = []
    for model, tables in views.items():
        if model == MODEL:
            continue
        own, table = own_editors(tables), tables["contrasts"]
        tested = table[~table["mirror"].astype(bool) & table["p"].notna() & table["editor"].isin(own)]
        away = int(tested["verdict"].isin(AFFECTED).sum())
        levels = [level for level in _LEVEL_SENTENCES if level in set(tables["levels"]["level"])]
        clauses = [f"{_LEVEL_SENTENCES[level]} {by_verdict(tables, level)}" for level in levels]
        look = next(look for look in looks_at(model) if look.alpha)
        groups = f"{away} of {len(tested)} testable contrasts of groups {_is(away)} decided ({look.words})"
        groups = groups if len(tested) else "No contrast of groups is testable"
        lines.append(f"- **{MODELS[model]}**: {'; '.join(clauses)}{_contradictions(tables)}. {groups}.")
    return "\n".join(lines)


def null_rate(tables: Tables) -> str:
    """Return how often permuted labels gave a corrected p below the level of each look, and where that is too often."""
    table, looks = tables["all null"], looks_at(str(tables["runs"]["model"].iloc[0]))
    words = []
    for look in looks:
        rows, level = table[table["records"] == look.name].to_dict("records"), f"{100 * look.alpha:.2g} %"
        counts = [f"{named(row['editor'])} {100 * row['false'] / row['reports']:.1f} %" for row in rows]
        often = [
            f"{named(row['editor'])} (95 % interval {100 * share.low:.2f} to {100 * share.high:.2f} %)"
            for row in rows
            if (share := proportion(int(row["false"]), int(row["reports"]))).low > look.alpha
        ]
        if rows:
            more = f". More often than the level says: {listed(often)}" if often else ""
            words.append(
                f"at a level of {level}, of {rows[0]['reports']:.0f} permuted reports each, {listed(counts)}{more}"
            )
    if len(words) > 1:
        sums = (table["false"] / table["reports"]).groupby(table["editor"], sort=False).sum()
        shares = listed([f"{named(str(editor))} {100 * share:.1f} %" for editor, share in sums.items()])
        words.append(f"summed over the looks, for which 5 % are declared, {shares}")
    return "; ".join(words) + "."


def limits(tables: Tables) -> str:
    """Return what the study cannot say."""
    floor = tables["runs"]["noise_floor_log_odds"].max()
    few, many = tables["runs"]["edits"].min(), tables["runs"]["edits"].max()
    return "\n".join(
        [
            f"- **{few:.0f}{f' to {many:.0f}' if many > few else ''} edits** can miss rare harm: intervals of "
            "means speak about harm that some edit of the sample had. A verdict on a group within one relation "
            "rests on 16 to 80 edits: its estimate is beyond the margin, and its interval may reach into it.",
            "- **One template** for edits of birth, gender and citizenship, two for work and language: what is said of "
            "groups after an edit of gender or citizenship is said of one wording.",
            "- **Small models**, quantised to 4 bits and dequantised, that know little about most of these "
            "people. What they say before any edit is in every table, and must be read with it.",
            "- **One control seed**: differences include how one random direction happens to fall.",
            "- **Fame** is not held equal: the records have no counts of sitelinks. Neither is the model's confidence "
            "in the right answer.",
            "- **Labels** are those that the records have. Who has none is in no group.",
            "- **One trained network of MEND.** Another one, trained on another machine, moved people who hold the old "
            "answer by 21.8 nats on the second file. Intervals are over edits and people, not over trainings.",
            f"- **Noise**: scoring alone moves log-odds by {floor:.1e} nats (twice what 99 % of scores stay below, in "
            "the noisiest part) on one machine. After edits of "
            "MEMIT's first file two machines differ by up to 0.01. Kept scores have steps of 4.9e-4.",
        ]
    )
