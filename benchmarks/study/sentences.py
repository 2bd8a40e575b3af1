"""The sentences of the study's page: each follows from its tables, and says so where they decide nothing."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import pandas as pd

from benchmarks.study.looks import LOOKS, MODEL, Look, look_of, looks_at
from seesaw_cf.report.text import effect, minus, p_value
from seesaw_cf.stats.simple import proportion
from seesaw_cf.stats.verdicts import AFFECTED

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
_THREE = ("memit", "ft", "lora")
# Declared parts of each model.
ORDER: Mapping[str, Sequence[str]] = {
    "smollm2": ("memit", "ft", "rome", "lora", "alphaedit", "mend", "ike"),
    "gemma3-270m": _THREE,
    "qwen2.5-0.5b": _THREE,
    "smollm2-changed": ("nf4", "merged"),
    "smollm2-released": ("memit", "ft"),
}


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


def _otherwise(tables: Tables, level: str) -> str:
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
    """Return the smallest effects that the pooled contrasts would have found alone."""
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
            f"is {by_verdict(tables, 'other_facts')}{_otherwise(tables, 'other_facts')}.",
            "The move towards the new answer, editor minus control, is, about people who hold the old one (of whom the "
            f"new one is false), {by_verdict(tables, 'target_true')}; about people who hold the new one it is "
            f"{by_verdict(tables, 'target_new')}{_contradictions(tables)}.",
            f"{_groups_of_all(tables)}; the smallest pooled contrast that a test alone finds with power 80 %, without "
            f"the correction and the margin that a verdict needs, is {detectable(tables)}.",
            "What is undetermined is not shown to be equal, the model is small and was quantised, and these sentences "
            "say nothing about other models, editors or settings.",
        ]
    )


def _contradictions(tables: Tables) -> str:
    """Return the editors whose two scales contradict each other about people who hold the old answer."""
    against = []
    for editor in own_editors(tables):
        if (other := other_scale(tables, editor, _OLD)) is None:
            continue
        row = _latest(tables, editor, _OLD)
        if row["difference"] * other["difference"] < 0 and not (_holds_0(row) or _holds_0(other)):
            against.append(f"{named(editor)} ({change_text(other)}, {other['n_edits']:.0f} edits)")
    if not against:
        return ""
    where = f"about those who hold the old one it has the other sign after {listed(against)}"
    return f"; on the scale that does not decide the move {where}, so that the two contradict each other"


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
        half = f", of which {row['half_edits']:.0f} edits make up half" if _settled(row["verdict"]) else _missed(row)
        first = f"{change_text(row)} with {row['n_edits']:.0f} edits{half}"
        clauses.append(f"{_sentence(words)}: *{row['verdict']}* ({first}{_with_later_edits(tables, editor, level)}).")
    own = tables["contrasts"]
    own = own[(own["part"] == editor) & ~own["mirror"].astype(bool)]
    return f"- **{named(editor)}.** {' '.join(clauses)} Groups: {groups(tables, editor)}.{_of_controls(own)}"


def _missed(row: Row) -> str:
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
        groups = f"{away} of {len(tested)} testable contrasts of groups {_is(away)} decided"
        groups = groups if len(tested) else "No contrast of groups is testable"
        lines.append(f"- **{MODELS[model]}**: {'; '.join(clauses)}{_contradictions(tables)}. {groups}.")
    return "\n".join(lines)


def happened(views: Mapping[str, Tables]) -> str:
    """Return what ran, what did not, and where the study departs from its declaration."""
    done = [
        f"{MODELS[model]}: {'; '.join(clauses)}"
        for model, tables in views.items()
        if (clauses := [f"{listed(names)} ({look.words})" for look, names in _by_look(model, tables)])
    ]
    missing = [f"{listed(absent)} on {MODELS[model]}" for model in views if (absent := _absent(model, views[model]))]
    costs = [f"{named(editor)} on `{records}` {cost}" for (editor, records), cost in COST.items()]
    lines = [
        *(f"- **Finished**, {each}." for each in done),
        "- **Finished**, texts: MEMIT, FT and ROME (stage 6).",
        f"- **Not finished, so not shown**: {'; '.join([*missing, *_last_edits(views[MODEL])])}.",
        "- **Stopped by** time on the machine, as declared.",
        f"- **Cost** on a CPU, with a control: {'; '.join(costs)}.",
        *DEVIATIONS,
    ]
    return "\n".join(lines)


def _last_edits(tables: Tables) -> list[str]:
    looks = _by_look(MODEL, tables)
    return [f"{listed(names)} beyond the {look.words}" for look, names in looks if look != LOOKS[-1]]


def _by_look(model: str, tables: Tables) -> list[tuple[Look, list[str]]]:
    """Return the editors of a model by their newest look."""
    looks = {name: look_of(tables, name) for name in own_editors(tables)}
    return [
        (look, [named(name) for name in looks if looks[name] == look])
        for look in looks_at(model)
        if look in looks.values()
    ]


def _absent(model: str, tables: Tables) -> list[str]:
    there = own_editors(tables)
    return [named(name) for name in ORDER.get(model, ()) if name not in there]


# CPU seconds and peak memory of a part, by `/usr/bin/time -v`.
COST = {
    ("memit", "edits1"): "726 s of a core, 1.8 GB",
    ("ft", "edits1"): "497 s, 1.6 GB",
    ("rome", "edits1"): "918 s, 2.6 GB",
    ("memit", "edits2"): "762 s, 1.9 GB",
    ("ft", "edits2"): "571 s, 1.6 GB",
    ("rome", "edits2"): "1,071 s, 2.6 GB",
    ("lora", "edits1"): "768 s, 1.5 GB",
    ("alphaedit", "edits1"): "847 s, 1.8 GB",
}
DEVIATIONS = (
    "- **Run from** the code of commit `548775c` with the declared files of commit `d087f3e`. Manifests of what ran on "
    "a CPU name that commit or `df8d9d2`, which is of a copy of both and not in this repository; those of what ran on "
    "the other machine, to which the files were copied, name none. What "
    "FT and ROME do by default has changed in the package since, and what MEMIT does in Gemma 3 270M and Qwen2.5.",
    "- **Amended before any edit**: 40 edits in stage 1 in place of 80, with three looks in place of two "
    "([the declaration](study_declared.md) says why).",
    "- **On another machine**: stage 3, the second file of stage 4 (but MEND), and stages 5 and 7 ran side by side on "
    "one NVIDIA H200, in float32 without TF32, in 13 minutes together, from the same code but for one line that NumPy "
    "2.5 needed "
    "(torch 2.11 in place of 2.13). The first part of stage 1 was repeated there: its 26,924 scores after an edit "
    "differ by 2.2e-4 nats (root mean square; 0.01 at most), those of its control by 1e-5. 120 of the 320 edits "
    "of AlphaEdit's third file were made there too, the others and all of their controls on a CPU. LoRA's third file, "
    "IKE's and all of MEND's were made by two processes side by side on a CPU.",
    "- **Stage 6 has 50 coupled edits**, all that the sample has, in place of 60. MEMIT's and FT's texts and those of "
    "their controls were written on the same card, two of seven blocks of ROME's and all of its control's on a CPU.",
    "- **Level of stage 7**, which the declaration does not give: one look at 5 %, as in stage 5.",
    "- **More permutations, decided after the third look at MEMIT was read**: with 1,999 the smallest corrected p of "
    "an equivalence is the tests over 4,000, 0.054 with 217 tests, so that nothing could come out *equivalent* at any "
    "declared level. As many more are drawn as that takes, 4,340 at 2.5 % with 217 tests. The declared 1,999 are the "
    "first of them.",
    "- **Counted once, decided after all looks but MEND's third were read**: a contrast that is another one with its "
    "sides exchanged. Where a third gender is recorded the page counted men against all others and women against all "
    "others as two tests, also where they are one: 8 of 225 after 400 edits, 4 of 181 after 80. Of editors one "
    "decided contrast (FT) and 7 equivalent ones had been counted twice, of controls one decided one (IKE's). No "
    "other verdict changed.",
    "- **Another control for IKE, decided before any of its edits**: the declared one is a random change of weights, "
    "and IKE changes none, so that the declared command fails. Its control is `unrelated`: the same text in front of "
    "every question, with a false fact about a thing in place of the one about a person.",
    "- **The second file of MEND ran twice.** Its network is trained by the package, 300 steps on the 800 texts. The "
    "first time the second file ran on another machine, where the training ends in another network (people who hold "
    "the old answer: 21.8 nats beyond the control), so that the parts were not of one editor. It was decided, before a "
    "score of the third file was read, to run all files with one network. That of the first file came out again, and "
    "so did its scores, to the last digit. The scores of the other network are in commit `26206629`.",
    "- **Templates**: the declaration says two for all people of an edit. The records have two for work and "
    "language, and one for birth, gender and citizenship.",
    "- **The second model of stage 5** is declared as Qwen2.5-0.5B. The one that installs, and ran, is "
    "Qwen2.5-Coder-0.5B-Instruct. On it and on Gemma 3 270M editors have the package's settings for the model "
    "(FT: steps of 0.005, relative to the weights, changes of at most 5 %), on SmolLM2 those of the papers.",
    "- **Another order, decided after stage 1 was read and before any part of stage 4 ran**: the first files of LoRA, "
    "AlphaEdit and MEND come after stage 2 and before stage 3, so that they have a first look. IKE's first file came "
    "after stages 3 and 5 to 7, as did its second file and the third files of stage 4, MEND's last. Each look has its "
    "declared level.",
    "- **Written after the declaration, before any score was read**: which rows of the table of claims stand for "
    "which sentence of a paper (`benchmarks/study/claims.py`), and the programs of this page (commit `518bfd0`). "
    "Changed after scores were read: test A became a row about FT, and four claims that have no stage or need "
    "people went from *not run* to *not decided*. Until the third look at IKE, a claim inside the margin was *not "
    "decided* where the declared rule says *refuted*.",
    "- **Claims on released scores, not declared**: the declaration speaks of finished parts. Where a row has no p, "
    "its verdict says whether the printed number agrees with the released ones.",
    "- **Added, not declared**: 40 records that SEESAW-CF's authors released, drawn with seed 0 from the 260 of three "
    "files whose right answer about the watched property the package's own samples know. Of the 33,821 people in the "
    "released files these samples know 59, so that nothing can be said about groups: the others would have "
    "to be looked up in Wikidata. They "
    "ask about holders of the new answer alone, in the authors' own prompts.",
    "- **Added after the first part was read**: that answers about other people *move towards the new answer*, which "
    "repeats two declared verdicts, and words that explain tables. No number and no verdict follows from them.",
)


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
            "- **Fame** cannot be held equal, since the records have no counts of sitelinks. Confidence and "
            "familiarity, which are the model's, stand in for it.",
            "- **Labels** are those that the records have. Who has none is in no group.",
            "- **One trained network of MEND.** Another one, trained on another machine, moved people who hold the old "
            "answer by 21.8 nats on the second file. Intervals are over edits and people, not over trainings.",
            f"- **Noise**: scoring alone moves log-odds by {floor:.1e} nats at most on one machine. After edits of "
            "MEMIT's first file two machines differ by up to 0.01. Kept scores have steps of 4.9e-4.",
        ]
    )
