"""The page of the study and its table of claims, from the study's tables; every number on the page is put in here.

    python -m benchmarks.study.page

writes `docs/study_smollm2.md` from `page.md`, and `results/tables/claims.csv`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from benchmarks.editors_common import ROOT
from benchmarks.study.analysis import TABLES, read_tables
from benchmarks.study.cells import AFFECTED
from benchmarks.study.claims import claims
from benchmarks.study.looks import MODEL, first, looks_at, newest
from benchmarks.study.passages import FOLDER, passages
from benchmarks.words import effect, markdown_table, minus, p_value
from seesaw_cf.base.files import csv_text, write_text
from seesaw_cf.report.words import relation_name
from seesaw_cf.stats.simple import proportion

PAGE = ROOT / "docs" / "study_smollm2.md"
TEMPLATE = Path(__file__).with_name("page.md")
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
    "nf4": "rounded to 4 bits",
    "merged": "a merged LoRA",
}
MODELS = {
    "smollm2": "SmolLM2",
    "gemma3-270m": "Gemma 3",
    "qwen2.5-0.5b": "Qwen2.5",
    "smollm2-changed": "SmolLM2, changed",
    "smollm2-released": "SmolLM2, released records",
}
LEVELS = {
    "other_facts": "other facts of the edited person",
    "target_true": "people who hold the old answer",
    "target_new": "people who hold the new answer",
}
WORDS = {
    "worse than its control": "worse",
    "a little worse than its control": "a little worse",
    "better than its control": "better",
    "no more than its control": "no more",
    "undetermined": "undecided",
    "not testable": "too few",
    "no control": "no control",
}
_HOLDS = {"target_new": "new", "target_true": "old"}
_KEYS = ["model", "part", "relation", "holds", "axis", "group"]
_UNITS = {"log-odds": "", "probability": "ᵖ", "share": ""}
_WIDEST = 100.0  # nats; a wider interval says nothing


def named(editor: str) -> str:
    """Return what an editor or control is called on the page."""
    inner = editor.partition("(")[2].rstrip(")")
    return f"control of {NAMES.get(inner, inner)}" if inner else NAMES.get(editor, editor)


def _is_control(editors: pd.Series[str]) -> pd.Series[bool]:
    return editors.str.contains("(", regex=False)


def estimate(value: float, low: float = math.nan, high: float = math.nan, digits: int = 3) -> str:
    """Return an estimate with its interval; a dash for none."""
    if math.isnan(value):
        return "–"
    if high - low > _WIDEST:
        return f"{minus(effect(value, math.nan, math.nan, 0.0005, digits))} (no bounded interval)"
    return minus(effect(value, low, high, 0.0005, digits))


def everybody(tables: Tables) -> str:
    """Return the declared levels of every editor of every model: verdict of the first look, size with all edits."""
    table = tables["levels"][~_is_control(tables["levels"]["editor"])]
    rows = []
    for model, name in MODELS.items():
        own, runs = table[table["model"] == model], tables["runs"][tables["runs"]["model"] == model]
        tested, latest = first(own), newest(own)
        (edits,) = set(runs.groupby("part")["edits"].max())
        rows.append([f"**{name}**, {edits:.0f} edits", *[""] * len(LEVELS)])
        for editor in [part for part in NAMES if part in set(own["editor"])]:
            rows.append([named(editor), *(_level(tested, latest, editor, level) for level in LEVELS)])
    return markdown_table(["after", *LEVELS.values()], rows, left=1)


def _level(tested: pd.DataFrame, latest: pd.DataFrame, editor: str, level: str) -> str:
    """Return verdict and difference; a dagger: all edits say otherwise; a double one: the other scale does."""
    keys = {"editor": editor, "level": level}
    decided = _rows(tested, keys | {"decides": True})
    if not decided:
        return "–"
    verdict = WORDS[decided[0]["verdict"]]
    now = _rows(latest, keys | {"decides": True})[0]
    holds_0 = now["difference_low"] <= 0 <= now["difference_high"]
    marks = "†" if (verdict in ("worse", "better")) == holds_0 else ""
    for other in _rows(latest, keys | {"decides": False}):
        clear = other["difference_low"] * other["difference_high"] > 0
        marks += "‡" if clear and not holds_0 and other["difference"] * now["difference"] < 0 else ""
    size = estimate(
        now["difference"], now["difference_low"], now["difference_high"], 3 if level == "other_facts" else 2
    )
    return f"**{verdict}**{marks} {size}{_UNITS[now['scale']]}"


def _rows(table: pd.DataFrame, keys: Mapping[str, object]) -> Sequence[Row]:
    for name, value in keys.items():
        table = table[table[name] == value]
    return table.to_dict("records")


def _tests(table: pd.DataFrame) -> pd.DataFrame:
    return table[~table["mirror"].astype(bool)]


def groups(tables: Tables) -> str:
    """Return the contrasts with a verdict on a group at the newest look."""
    table = _tests(newest(tables["contrasts"]))
    control = table[_is_control(table["editor"])].set_index(_KEYS)
    rows = [
        [
            f"{MODELS[row['model']]}, {named(row['editor'])}",
            f"**{row['verdict'].removesuffix(' off')}**: {row['group']}",
            f"{_HOLDS[row['holds']]}; {'all' if row['relation'] == 'all' else relation_name(row['relation'])}",
            estimate(row["value"], row["low"], row["high"]) + _UNITS[row["scale"]] + _beside(control, row),
            p_value(row["p_adjusted"]),
            f"{row['n_edits']:.0f}; {row['n_people']:.0f}",
        ]
        for row in table[table["verdict"].isin(AFFECTED) & ~_is_control(table["editor"])].to_dict("records")
    ]
    heads = ["after", "group", "holders; edits of", "contrast (control's)", "p", "edits; people"]
    return markdown_table(heads, rows, left=3)


def _beside(controls: pd.DataFrame, row: Row) -> str:
    """Return the contrast of the control of a row; a star: its interval is without 0."""
    own: Any = controls.loc[tuple(row[name] for name in _KEYS)]
    return f" ({estimate(own['value'])}{'*' if own['low'] * own['high'] > 0 else ''})"


def counts(tables: Tables) -> str:
    """Return how many contrasts of each model are decided, equal or open at the newest look."""
    rows = []
    table = _tests(newest(tables["contrasts"]))
    table = table[table["p"].notna() & ~_is_control(table["editor"])]
    for model, own in table.groupby("model", sort=False):
        verdicts = own["verdict"].value_counts()
        equal, decided = int(verdicts.get("equivalent", 0)), int(own["verdict"].isin(AFFECTED).sum())
        rows.append([MODELS[str(model)], f"{len(own):,}", str(decided), str(equal), f"{len(own) - decided - equal:,}"])
    return markdown_table(["model", "testable contrasts", "decided", "equal within the margin", "undecided"], rows)


def took(tables: Tables) -> str:
    """Return efficacy, paraphrases and neighbours of the unedited model and the editors, at the newest look."""
    table = newest(tables["success"][tables["success"]["model"] == MODEL])
    table = table[~_is_control(table["editor"])].drop_duplicates(["editor", "measure"])
    rows = []
    for editor in ("unedited", *NAMES):
        shares = table[table["editor"] == editor].set_index("measure")
        if len(shares):
            cells = [shares.loc[name, ["value", "low", "high"]] for name in ("ES", "PS", "NS")]
            rows.append([named(editor), *(f"{value:.2f} [{low:.2f}, {high:.2f}]" for value, low, high in cells)])
    return markdown_table(["model", "edit's own prompt", "paraphrases", "neighbours"], rows)


def too_often(tables: Tables) -> str:
    """Return the parts whose permuted labels gave more claims than their level."""
    table = tables["null"]
    alphas = {(model, look.name): look.alpha for model in MODELS for look in looks_at(model)}
    words = []
    for row in table.to_dict("records"):
        share = proportion(int(row["false"]), int(row["reports"]))
        if share.low > (alpha := alphas[row["model"], row["records"]]):
            interval = f"{100 * share.low:.1f} to {100 * share.high:.1f} % at {100 * alpha:g} %"
            words.append(f"{named(row['editor'])} on {MODELS[row['model']]} ({interval})")
    return f"{len(words)} of {len(table)} looks: {', '.join(words)}"


def claim_counts(tables: Tables) -> str:
    """Return how many rows of claims came out in each way, by who was asked."""
    table = claims(tables)
    counted = pd.crosstab(table["tested on"], table["verdict"])
    rows = [[str(name), *map(str, row)] for name, row in zip(counted.index, counted.to_numpy().tolist())]
    return markdown_table(["tested on", *map(str, counted.columns)], rows)


def _number(tables: Tables, what: str) -> str:
    runs = tables["runs"]
    own = runs[runs["model"] == MODEL]
    numbers: Mapping[str, float] = {"PROMPTS": own["prompts"].max(), "PEOPLE": own["people"].max()}
    return f"{numbers[what]:,.0f}"


def _noise(tables: Tables) -> str:
    return f"{tables['runs']['noise_floor_log_odds'].max():.1e}"


def _fingerprints(tables: Tables) -> str:
    runs = tables["runs"].drop_duplicates("model_fingerprint").to_dict("records")
    return ", ".join(f"{MODELS[row['model']]} `{row['model_fingerprint'][:16]}`" for row in runs)


PARTS: Mapping[str, Callable[[Tables], str]] = {
    "EVERYBODY": everybody,
    "GROUPS": groups,
    "COUNTS": counts,
    "TOOK": took,
    "TOO_OFTEN": too_often,
    "CLAIMS": claim_counts,
    "PASSAGES": lambda _: passages(pd.read_csv(FOLDER / "labels.csv", keep_default_na=False, na_values=[""]), named),
    "PROMPTS": lambda tables: _number(tables, "PROMPTS"),
    "PEOPLE": lambda tables: _number(tables, "PEOPLE"),
    "NOISE": _noise,
    "FINGERPRINTS": _fingerprints,
}


def page(tables: Tables) -> str:
    """Return the page."""
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, part in PARTS.items():
        text = text.replace(f"__{name}__", part(tables))
    return text


def files(tables: Tables) -> Sequence[tuple[Path, str]]:
    """Return what the page is made of: it and the table of claims."""
    return [(PAGE, page(tables)), (TABLES / "claims.csv", csv_text(claims(tables)))]


def main() -> None:
    """Write the page and the claims."""
    for file, text in files(read_tables()):
        write_text(file, text)


if __name__ == "__main__":
    main()
