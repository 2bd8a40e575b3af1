"""The pages of the study from its tables; every sentence with a number is made here, whatever the numbers are.

    python -m benchmarks.study.page

writes `docs/study_smollm2.md`, and `docs/study_contrasts.md` with every pooled contrast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from benchmarks.editors_common import ROOT
from benchmarks.study.analysis import read_tables
from benchmarks.study.departures import happened
from benchmarks.study.edit_tables import NONE, card, claims, estimate_text, pairs, share_text, took
from benchmarks.study.looks import MODEL, first, looks_at, newest
from benchmarks.study.passages import FOLDER, passages
from benchmarks.study.sentences import (
    MODELS,
    Row,
    Tables,
    abstract,
    change_text,
    findings,
    later_level,
    limits,
    listed,
    named,
    null_rate,
    other_models,
    other_scale,
)
from seesaw_cf.base.files import write_text
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.text import effect, markdown_table, minus, p_value
from seesaw_cf.stats.verdicts import AFFECTED, VERDICTS

PAGE = ROOT / "docs" / "study_smollm2.md"
CONTRASTS = ROOT / "docs" / "study_contrasts.md"
TEMPLATES = {PAGE: Path(__file__).with_name("page.md"), CONTRASTS: Path(__file__).with_name("contrasts.md")}
LEVELS = {
    "other_facts": "other facts about the edited person are right",
    "target_true": "people who hold the old answer: towards the new one",
    "target_new": "people who hold the new answer: towards the new one",
}
HOLDS = {"target_new": "new", "target_true": "old"}
_KEYS = ["model", "part", "relation", "holds", "axis", "group"]


def levels(tables: Tables) -> str:
    """Return the declared levels of every editor."""
    rows = []
    for row in _deciding(tables).to_dict("records"):
        later, other = (of(tables, row["editor"], row["level"]) for of in (later_level, other_scale))
        unit = " nats" if row["scale"] == "log-odds" else ""
        rows.append(
            [
                named(row["editor"]),
                LEVELS[row["level"]],
                share_text(_before_level(tables, row)),
                minus(effect(row["value"], row["low"], row["high"], 0.0, 3)) + unit,
                estimate_text(row["control_value"]),
                f"**{_difference(row)}**",
                p_value(row["p_adjusted"]),
                f"{row['n']:.0f}; {row['n_edits']:.0f}",
                row["verdict"],
                NONE if later is None else f"{_difference(later)} (n = {later['n_edits']:.0f})",
                NONE if other is None else change_text(other),
            ]
        )
    heads = ["editor", "what", "before", "change", "control's", "difference", "p", "questions; edits", "verdict"]
    heads += ["difference with all edits so far", "the same on the other scale"]
    return markdown_table(heads, rows, left=2)


def _difference(row: Row) -> str:
    return minus(effect(row["difference"], row["difference_low"], row["difference_high"], 0.0, 3))


def pictures(tables: Tables) -> str:
    """Return the pictures of the levels."""
    return "\n\n".join(
        f"![Other facts about the edited person, and people who hold the old or the new answer, after {named(part)} "
        f"and after its control](assets/study_{part}.png)"
        for part in tables["runs"]["part"]
    )


def _deciding(tables: Tables) -> pd.DataFrame:
    table = tables["levels"]
    return table[table["decides"].astype(bool) & ~table["editor"].str.contains("(", regex=False)]


def _before_level(tables: Tables, row: Row) -> float:
    """Return a share before the edit: right answers, or how often the held answer is ahead."""
    if row["level"] == "other_facts":
        return float(row["before"])
    own = first(tables["all before"])
    own = own[(own["part"] == row["part"]) & (own["relation"] == "all") & (own["holds"] == row["level"])]
    return float(own["ahead"].iloc[0])


def counts(tables: Tables) -> str:
    """Return how many contrasts of each editor and control have each verdict, at every look; equal ones together."""
    rows = []
    for look in looks_at(_model(tables)):
        table = tables["all verdicts"]
        table = table[table["records"] == look.name]
        for numbers, own in table.groupby(list(VERDICTS), sort=False):
            names = [named(str(name)) for name in own["editor"]]
            words = listed(names) if len(own) < len(table) else "every editor and every control"
            rows.append([words, look.words, *map(str, numbers)])
    return markdown_table(["editor", "look", *VERDICTS], rows, left=2)


def _model(tables: Tables) -> str:
    return str(tables["runs"]["model"].iloc[0])


def _tests(tables: Tables) -> pd.DataFrame:
    table = tables["contrasts"]
    return table[~table["mirror"].astype(bool)]


def decided(tables: Tables) -> str:
    """Return the contrasts with a verdict on a group, or that there is none."""
    table = _tests(tables)
    control = table[table["editor"].str.contains("(", regex=False)].set_index(_KEYS)
    table = table[table["verdict"].isin(AFFECTED)]
    if table.empty:
        return "No contrast of any editor, change or control, in any model, came out *worse off* or *better off*."
    rows = [
        [
            MODELS[row["model"]],
            named(row["editor"]),
            row["group"],
            f"{HOLDS[row['holds']]} answer",
            "all" if row["relation"] == "all" else relation_name(row["relation"]),
            f"{estimate_text(row['value'], row['low'], row['high'])} {_unit(row)}",
            estimate_text(*control.loc[tuple(row[name] for name in _KEYS), ["value", "low", "high"]]),
            p_value(row["p_adjusted"]),
            f"{row['n_edits']:.0f}; {row['n_people']:.0f}",
            row["verdict"],
        ]
        for row in table.to_dict("records")
    ]
    heads = ["model", "editor", "group", "holders of the", "edits of", "contrast", "control's", "p"]
    heads += ["edits; people on both sides", "verdict"]
    return markdown_table(heads, rows, left=5)


def earlier(tables: Tables) -> str:
    """Return the contrasts that were decided at a look which is not the newest, a sentence each."""
    table = tables["decided"]
    table = table[~table["mirror"].astype(bool) & ~table.index.isin(newest(table).index)]
    looks = {(model, look.name): look for model in MODELS for look in looks_at(model)}
    last = _tests({"contrasts": tables["contrasts"]}).set_index([*_KEYS, "editor"])
    words = []
    for row in table.to_dict("records"):
        now = last.loc[(*(row[name] for name in _KEYS), row["editor"])]
        relation = "all edits" if row["relation"] == "all" else f"edits of {relation_name(row['relation'])}"
        then, later = (
            f"{estimate_text(each['value'], each['low'], each['high'])} {_unit(each)}" for each in (row, now)
        )
        words.append(
            f"At the {looks[row['model'], row['records']].words}, after {relation} with {named(row['editor'])}, "
            f"{row['group']} ({HOLDS[row['holds']]} answer) came out *{row['verdict']}*: {then}, "
            f"p {p_value(row['p_adjusted'])}; at the newest look it is {later}, *{now['verdict']}*."
        )
    return "\n\n".join(words) or "No contrast was decided at an earlier look."


def _unit(row: Row) -> str:
    return "nats" if row["scale"] == "log-odds" else "in probability"


def pooled(tables: Tables) -> str:
    """Return every pooled contrast that was tested, with its control's."""
    table = _tests(tables)
    table = table[(table["relation"] == "all") & table["p"].notna()]
    keys = ["part", "holds", "axis", "group"]
    control = table[table["editor"].str.contains("(", regex=False)].set_index(keys)
    rows = []
    for row in table[~table["editor"].str.contains("(", regex=False)].to_dict("records"):
        key = tuple(row[name] for name in keys)
        rows.append(
            [
                named(row["editor"]),
                row["group"],
                HOLDS[row["holds"]],
                estimate_text(row["value"], row["low"], row["high"]),
                "nats" if row["scale"] == "log-odds" else "p",
                p_value(row["p_adjusted"]),
                row["verdict"],
                estimate_text(*control.loc[key, ["value", "low", "high"]]) if key in control.index else NONE,
                f"{row['n_edits']:.0f}; {row['n_people']:.0f}",
            ]
        )
    heads = [
        "editor",
        "group",
        "holders of",
        "contrast",
        "unit",
        "corrected p",
        "verdict",
        "control",
    ]
    return markdown_table([*heads, "edits; people"], rows, left=3)


def before(tables: Tables) -> str:
    """Return what the unedited model says of the people asked about."""
    table = tables["before"].drop_duplicates(["relation", "holds"])
    rows = [
        [
            "all" if row["relation"] == "all" else relation_name(row["relation"]),
            f"{HOLDS[row['holds']]} answer",
            f"{row['ahead']:.2f}",
            minus(f"{row['log_odds']:+.2f}"),
            f"{row['median_p']:.1e}" if row["median_p"] < 0.01 else f"{row['median_p']:.2f}",
            f"{row['prompts']:.0f}; {row['people']:.0f}",
        ]
        for row in table.to_dict("records")
    ]
    heads = ["relation", "who holds the", "held answer likelier", "mean log-odds for it", "its median probability"]
    return markdown_table([*heads, "prompts; people"], rows, left=2)


def others(tables: Tables) -> str:
    """Return levels and counts of every model with one look."""
    return "\n\n".join(
        f"### {MODELS[model]}\n\n{levels(own)}\n\n{counts(own)}"
        for model, own in _by_model(tables).items()
        if model != MODEL
    )


def _by_model(tables: Tables) -> dict[str, Tables]:
    there = set(tables["runs"]["model"])
    return {model: views(tables, model) for model in MODELS if model in there}


def every_pooled(tables: Tables) -> str:
    """Return the pooled contrasts of every model."""
    tested = {model: own for model, own in _by_model(tables).items() if _tests(own)["p"].notna().any()}
    return "\n\n".join(f"## {MODELS[model]}\n\n{pooled(own)}" for model, own in tested.items())


def every_null(tables: Tables) -> str:
    """Return how often permuted labels gave a claim, in every model."""
    views = _by_model(tables)
    return "\n".join(f"- {MODELS[model]}: {null_rate(own)}" for model, own in views.items() if len(own["null"]))


# Parts about SmolLM2, and parts that look at all models.
PARTS: Mapping[str, Callable[[Tables], str]] = {
    "ABSTRACT": abstract,
    "FINDINGS": findings,
    "LEVELS": levels,
    "PICTURES": pictures,
    "COUNTS": counts,
    "TOOK": took,
    "BEFORE": before,
    "PAIRS": pairs,
    "CLAIMS": claims,
}
OF_ALL: Mapping[str, Callable[[Tables], str]] = {
    "DECIDED": lambda tables: decided({"contrasts": newest(tables["contrasts"])}),
    "EARLIER": earlier,
    "OTHERS": others,
    "OTHER_MODELS": lambda tables: other_models(_by_model(tables)),
    "POOLED": every_pooled,
    "LIMITS": limits,
    "HAPPENED": lambda tables: happened(_by_model(tables)),
    "NULL": every_null,
    "CARD": card,
    "PASSAGES": lambda _: passages(pd.read_csv(FOLDER / "labels.csv", keep_default_na=False, na_values=[""])),
}


def views(tables: Tables, model: str = MODEL) -> Tables:
    """Return the rows about a model at every editor's newest look, and those of the first where a level is tested."""
    own = {name: table[table["model"] == model] for name, table in tables.items()}
    tested, latest = first(own["levels"]), newest(own["levels"])
    return {name: newest(table) for name, table in own.items()} | {
        "levels": tested,
        "later levels": latest[~latest.index.isin(tested.index)],
        "all before": own["before"],
        "all verdicts": own["verdicts"],
        "all null": own["null"],
    }


def page(tables: Tables, file: Path = PAGE) -> str:
    """Return a page, by its file."""
    text = TEMPLATES[file].read_text(encoding="utf-8")
    for parts, rows in ((PARTS, views(tables)), (OF_ALL, tables)):
        for name, part in parts.items():
            if f"__{name}__" in text:
                text = text.replace(f"__{name}__", part(rows))
    return text


def main() -> None:
    """Write the pages."""
    tables = read_tables()
    for file in TEMPLATES:
        write_text(file, page(tables, file))


if __name__ == "__main__":
    main()
