"""The page of the study from its tables; every sentence with a number is made here, whatever the numbers are.

python -m benchmarks.study.page
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path

import pandas as pd

from benchmarks.editors_common import ROOT
from benchmarks.study.analysis import read_tables
from benchmarks.study.claims import later_claims, released_claims, study_claims
from benchmarks.study.sentences import Row, abstract, findings, happened, limits, listed, named, null_rate
from seesaw_cf.base.files import write_text
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.text import effect, markdown_table, minus, p_value
from seesaw_cf.stats.verdicts import AFFECTED, VERDICTS

PAGE = ROOT / "docs" / "study_smollm2.md"
TEMPLATE = Path(__file__).with_name("page.md")
Tables = Mapping[str, pd.DataFrame]
LEVELS = {
    "other_facts": "other facts about the edited person are right",
    "target_true": "people who hold the old answer: towards the new one",
    "target_new": "people who hold the new answer: towards the new one",
}
HOLDS = {"target_new": "new", "target_true": "old"}
NONE = "–"
NAN = float("nan")
WIDEST = 100.0  # nats; a wider interval says nothing


def levels(tables: Tables) -> str:
    """Return the declared levels of every editor."""
    rows = []
    for row in _deciding(tables).to_dict("records"):
        unit = " nats" if row["scale"] == "log-odds" else ""
        rows.append(
            [
                named(row["editor"]),
                LEVELS[row["level"]],
                _share(_before_level(tables, row)),
                _number(row["value"], row["low"], row["high"]) + unit,
                _number(row["control_value"]),
                f"**{_number(row['difference'], row['difference_low'], row['difference_high'])}**",
                p_value(row["p_adjusted"]),
                f"{row['n']:.0f}; {row['n_edits']:.0f}",
                row["verdict"],
            ]
        )
    heads = ["editor", "what", "before", "change", "control's", "difference", "p", "questions; edits", "verdict"]
    return markdown_table(heads, rows, left=2)


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
    own = tables["before"]
    own = own[(own["part"] == row["part"]) & (own["relation"] == "all") & (own["holds"] == row["level"])]
    return float(own["ahead"].iloc[0])


def counts(tables: Tables) -> str:
    """Return how many contrasts of each editor and control have each verdict."""
    table = _tests(tables)
    rows = [
        [named(str(editor)), *(str(int((own["verdict"] == label).sum())) for label in VERDICTS)]
        for editor, own in table.groupby("editor", sort=False)
    ]
    return markdown_table(["editor", *VERDICTS], rows)


def _tests(tables: Tables) -> pd.DataFrame:
    table = tables["contrasts"]
    return table[~table["mirror"].astype(bool)]


def decided(tables: Tables) -> str:
    """Return the contrasts with a verdict on a group, or that there is none."""
    table = _tests(tables)
    table = table[table["verdict"].isin(AFFECTED)]
    if table.empty:
        return "No contrast of any editor or control came out *worse off* or *better off*."
    rows = [
        [
            named(row["editor"]),
            row["group"],
            f"{HOLDS[row['holds']]} answer",
            "all" if row["relation"] == "all" else relation_name(row["relation"]),
            f"{_number(row['value'], row['low'], row['high'])} {_unit(row)}",
            p_value(row["p_adjusted"]),
            f"{row['n_edits']:.0f}; {row['n_people']:.0f}",
            row["verdict"],
        ]
        for row in table.to_dict("records")
    ]
    heads = ["editor", "group", "holders of the", "edits of", "contrast", "p", "edits; people", "verdict"]
    return markdown_table(heads, rows, left=4)


def _unit(row: Row) -> str:
    return "nats" if row["scale"] == "log-odds" else "in probability"


def pooled(tables: Tables) -> str:
    """Return every pooled contrast that was tested, with its control's and at equal confidence and familiarity."""
    table = _tests(tables)
    table = table[(table["relation"] == "all") & table["p"].notna()]
    keys = ["part", "holds", "axis", "group"]
    control = table[table["editor"].str.contains("(", regex=False)].set_index(keys)
    adjusted = tables["adjusted"].set_index(["estimand", *keys, "editor"])
    rows = []
    for row in table[~table["editor"].str.contains("(", regex=False)].to_dict("records"):
        key = tuple(row[name] for name in keys)
        beside = [adjusted.loc[(name, *key, row["editor"])] for name in ("confidence", "familiarity")]
        rows.append(
            [
                named(row["editor"]),
                row["group"],
                HOLDS[row["holds"]],
                _number(row["value"], row["low"], row["high"]),
                "nats" if row["scale"] == "log-odds" else "p",
                p_value(row["p_adjusted"]),
                row["verdict"],
                _number(*control.loc[key, ["value", "low", "high"]]) if key in control.index else NONE,
                *(_number(each["value"], each["low"], each["high"]) for each in beside),
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
        "equal confidence",
    ]
    return markdown_table([*heads, "equal familiarity", "edits; people"], rows, left=3)


def took(tables: Tables) -> str:
    """Return efficacy, paraphrases and neighbours of the unedited model, the editors and their controls."""
    table = tables["success"]
    rows = []
    for editor in dict.fromkeys(table["editor"]):
        own = table[table["editor"] == editor].drop_duplicates("measure").set_index("measure")
        shares = [own.loc[name] for name in ("ES", "PS", "NS")]
        cells = [_share(each["value"], each["low"], each["high"]) for each in shares]
        rows.append([named(editor), *cells, f"{own.loc['ES', 'n_edits']:.0f}"])
    return markdown_table(["model", "edit's own prompt", "paraphrases", "neighbours", "edits"], rows)


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


def pairs(tables: Tables) -> str:
    """Return accuracy about other facts of the edited person by pair of properties."""
    table = tables["accuracy"]
    rows = []
    for row in table[~table["editor"].str.contains("(", regex=False)].to_dict("records"):
        key = table[(table["part"] == row["part"]) & table["editor"].str.contains("(", regex=False)]
        key = key[(key["edit_relation"] == row["edit_relation"]) & (key["effect_relation"] == row["effect_relation"])]
        pair = (
            "all"
            if row["edit_relation"] == "all"
            else f"{relation_name(row['edit_relation'])} → {relation_name(row['effect_relation'])}"
        )
        rows.append(
            [
                named(row["editor"]),
                pair,
                _share(row["pre"]),
                _share(row["post"]),
                _share(float(key["post"].iloc[0])) if len(key) else NONE,
                _number(row["change"], row["low"], row["high"]),
                f"{row['lost']:.0f}; {row['gained']:.0f}",
                p_value(row["p"]),
                f"{row['n']:.0f}",
            ]
        )
    heads = ["editor", "edited → asked", "before", "after", "control", "change", "lost; gained", "p", "facts"]
    return markdown_table(heads, rows, left=2)


def claims(tables: Tables) -> str:
    """Return every claim with its verdict: of this study, of released scores, and not run."""
    rows = [
        [
            row["source"],
            row["claim"],
            f"{named(str(row['editor']))}, this study",
            f"{_number(row['value'], row['low'], row['high'])} {row['unit']}",
            p_value(float(row["p_adjusted"])).replace("-", NONE),
            str(row["n"]),
            f"**{row['verdict']}**",
        ]
        for row in study_claims(tables)
    ]
    for row in released_claims():
        cells = [str(row[name]) for name in ("source", "claim", "estimate", "n", "verdict")]
        p = p_value(float(row["p_adjusted"])).replace("-", NONE)
        rows.append([*cells[:2], "released scores", cells[2], p, cells[3], f"**{cells[4]}**"])
    rows += [[row["source"], row["claim"], "–", "–", "–", "–", f"not run ({row['stage']})"] for row in later_claims()]
    return markdown_table(["source", "claim", "tested on", "estimate", "p", "n", "verdict"], rows, left=3)


def _number(value: float, low: float = NAN, high: float = NAN) -> str:
    if math.isnan(value):
        return NONE
    if high - low > WIDEST:
        return f"{minus(effect(value, NAN, NAN, 0.0005, 3))} (no bounded interval)"
    return minus(effect(value, low, high, 0.0005, 3))


def _share(value: float, low: float = NAN, high: float = NAN) -> str:
    if math.isnan(value):
        return NONE
    return f"{value:.2f}" + ("" if math.isnan(low) else f" [{low:.2f}, {high:.2f}]")


def card(tables: Tables) -> str:
    """Return what the data are, as rows of a table."""
    runs = tables["runs"]
    first = runs.iloc[0]
    rows = [
        ["what", "every score before and after every edit, with the recorded labels of the people, in Parquet"],
        ["parts", listed([f"{row['part']} on {row['records']}" for row in runs.to_dict("records")])],
        ["edits; prompts; people", f"{first['edits']:.0f}; {first['prompts']:,.0f}; {first['people']:,.0f}"],
        ["scores", f"{runs['score_rows'].sum():,.0f}, in steps of 1/8192 nat"],
        ["not scored", f"{runs['unscored'].sum():,.0f}"],
        ["records", "`sample` of the package: its [card](cards/dataset.md) says where facts and labels come from"],
        ["labels", "as recorded there; unknown is kept, and none was inferred from a name"],
        ["model", f"fingerprint `{first['model_fingerprint'][:16]}`"],
        ["licence", "MIT for scores and tables; SmolLM2 has Apache-2.0"],
        ["not for", "statements about a person, or about models and editors that are not in the table"],
    ]
    return markdown_table(["", ""], rows, left=2)


PARTS: Mapping[str, Callable[[Tables], str]] = {
    "ABSTRACT": abstract,
    "FINDINGS": findings,
    "LEVELS": levels,
    "PICTURES": pictures,
    "COUNTS": counts,
    "DECIDED": decided,
    "POOLED": pooled,
    "TOOK": took,
    "BEFORE": before,
    "PAIRS": pairs,
    "CLAIMS": claims,
    "HAPPENED": happened,
    "NULL": null_rate,
    "LIMITS": limits,
    "CARD": card,
}


def page(tables: Tables) -> str:
    """Return the page."""
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, part in PARTS.items():
        text = text.replace(f"__{name}__", part(tables))
    return text


def main() -> None:
    """Write the page."""
    write_text(PAGE, page(read_tables()))


if __name__ == "__main__":
    main()
