"""`report.md` of a comparison: what was compared, in what the runs disagree, numbers side by side, differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from seesaw_cf.effects.audit import hypotheses
from seesaw_cf.effects.groups import ALL
from seesaw_cf.page.findings import HEADS
from seesaw_cf.report import notes, text
from seesaw_cf.report.markdown import effect_cell
from seesaw_cf.report.results import HOLDER, relation_name, sort_relations
from seesaw_cf.report.rows import EffectRow, EfficacyRow, number_of, records, with_limits
from seesaw_cf.stats.verdicts import VERDICTS
from seesaw_cf.study.conclusion import conclude
from seesaw_cf.study.members import NAMES, ComparedEditor, disagreements
from seesaw_cf.study.tables import MEASURES, Comparison

_MOST = 40
_SIDE = """One line for each editor of each run, controls left out; n behind every number, 95 % intervals. *Took*: the
share of edits after which the new target is likelier than the true one (Wilson; before the edit in brackets).
*Paraphrase*, *neighbourhood*: share of prompts after which the new, or the true, target wins, mean of the edits' means,
Wilson, over edits; *score*: the harmonic mean of the three. *Other properties*: change of the share of edited people
whose other property is answered right, in percentage points."""

_DIFFERENCES = """First minus second on the cases, prompts and people that both were scored on. D and log-odds: errors
clustered by edit and person. Paraphrase and neighbourhood: mean of the edits' means, clustered by edit. Efficacy and
accuracy: Newcombe's paired interval, clustered by person. No interval below five, and none of these shares where a run
has the protocol batch, whose cases are one edit. p is corrected within each measure, relation and axis of a pair.
All of them are in `differences.csv`."""

_BATCH = """protocol batch, the cases of a relation are one edit of the model: intervals of its shares are about these
cases under this one edit, and support no claim about other edits.""".replace("\n", " ")

_GROUPS = """What the editors, or models, did to groups of people is in [tables.md](tables.md), in the layout of the
papers' tables; every number with its counts is in `effects_by_group.csv`."""


def comparison_page(
    comparison: Comparison, title: str, missing: Sequence[str] = (), notes_on: Sequence[str] = ()
) -> str:
    """The whole page.

    Args:
        comparison: The comparison.
        title: Its heading.
        missing: What is not there and why, in sentences.
        notes_on: What was declared, in sentences.
    """
    cautions = [*missing, *disagreements(comparison.members), *run_notes(comparison)]
    parts = [
        f"# {text.escape(title)}",
        "\n".join(
            f"- **{head}:** {text.escape(sentence)}"
            for head, sentence in zip(HEADS, conclude(comparison, missing), strict=True)
        ),
        notes.READING,
        "\n".join(f"- {text.escape(line)}" for line in notes_on),
        "## What is compared\n\n" + _runs(comparison),
        "**Read this first.**\n\n" + "\n".join(f"- {text.escape(line)}" for line in cautions) if cautions else "",
        "## Did the edits take, generalise, stay local?\n\n" + _SIDE + "\n\n" + gate_markdown(comparison),
        *_everybody(comparison),
        *_verdicts(comparison),
        *_differences(comparison),
        notes.ABOUT_LABELS,
        notes.COUNTERFACTUALS,
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def run_notes(comparison: Comparison) -> list[str]:
    """Which runs edited in batches, and what the runs said of themselves when they began."""
    batches = [f"{member.title}: {_BATCH}" for member in comparison.members if member.protocol == "batch"]
    return batches + [
        f"{member.title}: {note}" for member in comparison.members for note in member.manifest.get("notes", [])
    ]


def runs_table(comparison: Comparison) -> tuple[tuple[str, ...], list[list[str]]]:
    """Heads and rows: what each run was made of."""
    heads = ("Model", "Records", "Protocol", "Editors", "Cases", "dtype", "Scorer", "Seed", "Noise floor of D")
    columns = ("model", "records", "protocol", "editors", "data_cases", "model_dtype", "scorer", "seed", "noise_floor")
    return heads, [[_plain(row[name]) for name in columns] for row in comparison.table("runs").to_dict("records")]


def _runs(comparison: Comparison) -> str:
    heads, rows = runs_table(comparison)
    return text.markdown_table(heads, [list(map(text.escape, row)) for row in rows], left=4)


def _plain(value: object) -> str:
    if isinstance(value, float):
        return "–" if value != value else f"{value:.2g}"
    return "–" if value is None else str(value)


def gate_table(comparison: Comparison) -> tuple[tuple[str, ...], list[list[str]]]:
    """Heads and rows: how well each line's edits took, and what they did to other properties."""
    heads = (*_heads(comparison), "took", *MEASURES.values(), "other properties")
    return heads, [[*_names(line, comparison), *_gate(line, comparison)] for line in comparison.lines]


def gate_markdown(comparison: Comparison) -> str:
    """Return `gate_table` as Markdown."""
    heads, rows = gate_table(comparison)
    return text.markdown_table([head.capitalize() for head in heads], [list(map(text.escape, row)) for row in rows])


def _heads(comparison: Comparison) -> tuple[str, ...]:
    return tuple(name for place, name in enumerate(NAMES) if _varies(comparison, place)) or ("editor",)


def _varies(comparison: Comparison, place: int) -> bool:
    return len({line.key[place] for line in comparison.lines}) > 1


def _names(line: ComparedEditor, comparison: Comparison) -> list[str]:
    return [line.key[NAMES.index(name)] for name in _heads(comparison)]


def of_line(table: pd.DataFrame, line: ComparedEditor) -> pd.DataFrame:
    """The rows of a table that belong to a line."""
    if table.empty:
        return table
    return table[(table[list(NAMES)] == list(line.key)).all(axis=1)]


def _gate(line: ComparedEditor, comparison: Comparison) -> list[str]:
    took, success, accuracy = (of_line(comparison.table(name), line) for name in ("efficacy", "success", "accuracy"))
    cells = ["–"]
    for row in records(took[took["relation"] == ALL], EfficacyRow) if len(took) else []:
        share = text.percent_interval(*with_limits(row, "post"))
        cells = [f"{share} ({text.percent(number_of(row, 'pre'))}) n={row.get('n', 0):.0f}"]
    by_measure = {row["measure"]: row for row in records(success, dict[str, Any])}
    cells += [_measure(by_measure.get(name)) for name in MEASURES.values()]
    pooled = records(accuracy[accuracy["edit_relation"] == "all"], dict[str, Any]) if len(accuracy) else []
    return [*cells, *[_points(row) for row in pooled or [{}]]]


def _measure(row: dict[str, Any] | None) -> str:
    if row is None or pd.isna(row["value"]):
        return "–"
    share = text.percent_interval(row["value"], row["low"], row["high"], missing="(too few cases)")
    return f"{share} n={row['n_cases']}"


def _points(row: Mapping[str, Any]) -> str:
    if not row.get("n"):
        return "–"
    return f"{text.minus(text.points(row['change'], row['low'], row['high']))} n={row['n']}"


def everybody_table(comparison: Comparison) -> tuple[tuple[str, ...], list[list[str]]]:
    """Heads and rows: D of all people who hold the new target, by property and line."""
    effects = comparison.table("effects_by_group")
    if effects.empty:
        return (), []
    frame = effects[(effects["axis"] == ALL) & (effects["holds"] == HOLDER)]
    relations = sort_relations(frame["relation"])
    rows = []
    for line in comparison.lines:
        cells = {row["relation"]: row for row in records(of_line(frame, line), EffectRow)}
        floor, score = line.member.results.floor, line.member.results.score
        rows.append([*_names(line, comparison), *[effect_cell(cells.get(name), floor, score) for name in relations]])
    return (*_heads(comparison), *map(relation_name, relations)), rows


def _everybody(comparison: Comparison) -> list[str]:
    heads, rows = everybody_table(comparison)
    if not rows:
        return []
    cells = [[*map(text.escape, row[: len(_heads(comparison))]), *row[len(_heads(comparison)) :]] for row in rows]
    about = notes.effect_size(*text.ABOUT_SCORE[comparison.members[0].results.score])
    table = text.markdown_table(list(map(text.escape, heads)), cells, left=len(_heads(comparison)))
    return [f"## What happened to other people\n\n{about}", table, _GROUPS]


def verdict_table(comparison: Comparison) -> tuple[tuple[str, ...], list[list[str]]]:
    """Heads and rows: how many contrasts of each line have which verdict."""
    table, rows = hypotheses(comparison.table("verdicts")), []
    for line in comparison.lines if "verdict" in table else []:
        counts = of_line(table, line)["verdict"].value_counts()
        rows.append([*_names(line, comparison), *[str(int(counts.get(label, 0))) for label in VERDICTS]])
    return (*_heads(comparison), *VERDICTS), rows


def _verdicts(comparison: Comparison) -> list[str]:
    heads, rows = verdict_table(comparison)
    if not rows:
        return []
    declared, table = comparison.settings, comparison.table("verdicts")
    about = (
        f"Contrasts between a group and everybody else, per verdict; p corrected ({declared.correction}) in "
        f"{table['family'].nunique()} families, false claims at most {100 * declared.alpha:g} % per family, margin "
        f"{declared.margin:g} in probability and {declared.margin_log_odds:g} in log-odds. Each with its rule: "
        "`verdicts.csv`."
    )
    return [f"## Verdicts\n\n{about}", text.markdown_table(heads, [list(map(text.escape, row)) for row in rows])]


def _differences(comparison: Comparison) -> list[str]:
    table = comparison.table("differences")
    head = "## Paired differences\n\n"
    if table.empty:
        return [head + "No two lines that differ in one name share a case, so nothing is paired."]
    heads = ("First", "Second", "Measure", "Property", "Group", "First − second", "p corrected", "n")
    whole = (table["relation"] == ALL) | table["measure"].isin(("D", "log-odds"))
    chosen = table[(table["axis"] == ALL) & whole]
    tests, claimed = int(table["p"].notna().sum()), table[table["p_adjusted"] < comparison.settings.alpha]
    families = table.loc[table["p"].notna(), "family"].nunique()
    groups = claimed[claimed["axis"] != ALL].sort_values(["measure", "value"], kind="stable")
    overall = [_difference(row) for row in records(chosen, dict[str, Any])]
    parts = [head + _DIFFERENCES, text.markdown_table(heads, overall, left=5)]
    about = (
        f"Of {tests} tests {len(claimed)} have a corrected p below {comparison.settings.alpha:g}; about "
        f"{comparison.settings.alpha * families:.1f} of the {families} families would have one by chance. Groups of "
        f"people among them{f', the first {_MOST} of {len(groups)}' if len(groups) > _MOST else ''}:"
    )
    rows = [_difference(row) for row in records(groups.head(_MOST), dict[str, Any])]
    return [*parts, about, text.markdown_table(heads, rows, left=5) if rows else "None."]


def _difference(row: Mapping[str, Any]) -> list[str]:
    group = "all people" if row["group"] == ALL else row["group"]
    name = "/".join(map(relation_name, row["relation"].split("/")))
    names = [text.escape(word) for word in (row["first"], row["second"], row["measure"], name, group)]
    return [
        *names,
        text.minus(text.effect(row["value"], row["low"], row["high"])),
        text.p_value(row["p_adjusted"]),
        str(row["n_cases"]),
    ]
