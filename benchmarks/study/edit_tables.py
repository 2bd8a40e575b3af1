"""Tables of the study's page about the edits themselves, the claims of papers, and the data."""

from __future__ import annotations

import math

from benchmarks.study.claims import later_claims, released_claims, study_claims
from benchmarks.study.looks import newest
from benchmarks.study.sentences import MODELS, Tables, listed, named
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.text import effect, markdown_table, minus, p_value

NONE = "–"
NAN = float("nan")
WIDEST = 100.0  # nats; a wider interval says nothing


def took(tables: Tables) -> str:
    """Return efficacy, paraphrases and neighbours of the unedited model, the editors and their controls."""
    table = tables["success"]
    rows = []
    table = table.sort_values("editor", key=lambda names: names != "unedited", kind="stable")
    table = table.drop_duplicates(["editor", "measure", "n_edits"])
    for (editor, n), own in table.groupby(["editor", "n_edits"], sort=False):
        shares = own.set_index("measure")[["value", "low", "high"]].T
        cells = [share_text(*map(float, shares[name])) for name in ("ES", "PS", "NS")]
        rows.append([named(str(editor)), *cells, f"{n:.0f}"])
    return markdown_table(["model", "edit's own prompt", "paraphrases", "neighbours", "edits"], rows)


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
                share_text(row["pre"]),
                share_text(row["post"]),
                share_text(float(key["post"].iloc[0])) if len(key) else NONE,
                estimate_text(row["change"], row["low"], row["high"]),
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
            f"{estimate_text(row['value'], row['low'], row['high'])} {row['unit']}",
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
    rows += [[row["source"], row["claim"], "–", "–", "–", "–", row["reason"]] for row in later_claims()]
    return markdown_table(["source", "claim", "tested on", "estimate", "p", "n", "verdict"], rows, left=3)


def card(tables: Tables) -> str:
    """Return what the data are, as rows of a table."""
    runs = newest(tables["runs"])
    most = runs[["edits", "prompts", "people"]].max()
    models = runs.drop_duplicates("model").to_dict("records")
    prints = [f"{MODELS[row['model']]} (`{row['model_fingerprint'][:16]}`)" for row in models]
    rows = [
        ["what", "every score before and after every edit, with the recorded labels of the people, in Parquet"],
        ["parts", listed([f"{row['part']} on {MODELS[row['model']]}" for row in runs.to_dict("records")])],
        ["edits; prompts; people", f"{most['edits']:.0f}; {most['prompts']:,.0f}; {most['people']:,.0f} at most"],
        ["scores", f"{runs['score_rows'].sum():,.0f}, in steps of 1/2048 nat, without the wording of prompts"],
        ["not scored", f"{runs['unscored'].sum():,.0f}"],
        [
            "records",
            "`sample` of the package (its `dataset_card.md` says where facts come from); released ones of the papers",
        ],
        ["labels", "as recorded there; unknown is kept, and none was inferred from a name"],
        ["models; fingerprints", listed(prints)],
        ["licence", "MIT for scores and tables; SmolLM2 and Qwen2.5 have Apache-2.0, Gemma 3 has Google's Gemma terms"],
        ["not for", "statements about a person, or about models and editors that are not in the table"],
    ]
    return markdown_table(["", ""], rows, left=2)


def estimate_text(value: float, low: float = NAN, high: float = NAN) -> str:
    """Return an estimate with its interval; a dash for none."""
    if math.isnan(value):
        return NONE
    if high - low > WIDEST:
        return f"{minus(effect(value, NAN, NAN, 0.0005, 3))} (no bounded interval)"
    return minus(effect(value, low, high, 0.0005, 3))


def share_text(value: float, low: float = NAN, high: float = NAN) -> str:
    """Return a share with its interval; a dash for none."""
    if math.isnan(value):
        return NONE
    return f"{value:.2f}" + ("" if math.isnan(low) else f" [{low:.2f}, {high:.2f}]")
