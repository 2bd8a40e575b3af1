"""Says which published claims stand when they are computed again from the published scores and ratings.

    python -m benchmarks.published ../shared/reference

reads GPT-J's scores (`gptj_cross_property/scores.parquet`, 2,266 cases) and the ratings of 300 pairs of texts by three
people (`annotators/*.csv`), both released with SEESAW-CF, and writes benchmarks/results/published.json and the tables
of docs/published.md, between their marks.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.table5 import accuracies
from seesaw_cf.base.files import write_text
from seesaw_cf.records.relations import relation
from seesaw_cf.report.text import estimate as interval
from seesaw_cf.report.text import p_value
from seesaw_cf.stats import adjust, clustered_mean

ROOT = Path(__file__).parent.parent
LEVEL = 0.05
# What the paper says of a pair of properties: edited, asked, sign of the change it claims for MEMIT (0: none).
TABLE_5 = {
    ("P19", "P21"): 0,
    ("P27", "P21"): 0,
    ("P101", "P21"): 0,
    ("P19", "P101"): -1,
    ("P21", "P101"): -1,
    ("P27", "P101"): -1,
    ("P101", "P27"): -1,
}
# Cells of Table 6 that the paper stars.
TABLE_6 = {
    ("gender", "Sexism"): 1,
    ("citizenship", "Religious Injection"): 1,
    ("citizenship", "Xenophobia"): 1,
    ("citizenship", "Classism"): 1,
    ("citizenship", "Racism"): 1,
}
_EDITED = {"P101_P21": "work", "P21_P101": "gender", "P27_P21": "citizenship"}
_EFFECTS = {0: "no effect", -1: "a loss", 1: "more after the edit"}


def accuracy_claims(reference: Path) -> pd.DataFrame:
    """Return Table 5's claims about MEMIT: change of accuracy by exact match, McNemar's exact p, Holm over 14 tests."""
    path = reference / "gptj_cross_property" / "scores.parquet"
    results = {mode: accuracies(path, mode) for mode in ("exact", "paper")}
    family = {
        (editor, *pair): results["exact"][editor]["pairs"]["/".join(pair)]
        for editor in ("ft", "memit")
        for pair in TABLE_5
    }
    corrected = dict(zip(family, adjust([row["p"] for row in family.values()])))
    rows = []
    for pair, sign in TABLE_5.items():
        row, printed = (results[mode]["memit"]["pairs"]["/".join(pair)] for mode in ("exact", "paper"))
        name = " \u2192 ".join(relation(id).name for id in pair)
        numbers = {key: row[key] for key in ("n", "lost", "gained", "change", "low", "high", "p")}
        rows.append({"claim": name, "sign": sign, "paper_arithmetic": printed["change"], **numbers})
        rows[-1]["p_adjusted"] = float(corrected["memit", *pair])
    return pd.DataFrame(rows)


def flaw_claims(reference: Path) -> pd.DataFrame:
    """Return Table 6's claims: means of an item's three ratings, clustered by edited fact, Holm over its 21 cells.

    A blank is "equal", as published. Three raters are too few to speak about others: these intervals are about other
    edits, rated by the same three people.
    """
    frames = [pd.read_csv(reference / "annotators" / f"a{number}.csv") for number in (1, 2, 3)]
    flaws = [str(name) for name in frames[0].columns[6:13]]
    ratings = np.stack([2 * (frame[flaws].fillna(1.5).to_numpy(np.float64) - 1.5) for frame in frames]).mean(axis=0)
    edits = frames[0][["props", "subj", "target_new"]].astype(str).agg("|".join, axis=1)
    rows = [
        {"edited": _EDITED[str(props)], "flaw": flaw, **_mean(ratings[at, column], edits.to_numpy()[at])}
        for props, at in frames[0].groupby("props", sort=True).indices.items()
        for column, flaw in enumerate(flaws)
    ]
    table = pd.DataFrame(rows).assign(p_adjusted=lambda frame: adjust(frame["p"]))
    table["sign"] = [TABLE_6.get((edited, flaw), np.nan) for edited, flaw in zip(table["edited"], table["flaw"])]
    claims = table.dropna(subset="sign").copy()
    claims.insert(0, "claim", claims["edited"] + ": " + claims["flaw"].str.lower())
    return claims.drop(columns=["edited", "flaw"]).reset_index(drop=True)


def _mean(values: np.ndarray[Any, np.dtype[np.float64]], edits: np.ndarray[Any, Any]) -> dict[str, Any]:
    estimate = clustered_mean(values, [np.full(values.size, 1 / values.size)], {"edit": pd.factorize(edits)[0]})
    numbers = {"change": estimate.value, "low": estimate.low, "high": estimate.high, "p": estimate.p}
    return {"n": values.size, "edits": len(set(edits)), **numbers}


def verdict(row: Mapping[Any, Any]) -> str:
    """Return whether a claim stands, falls or is not decided by the corrected p and the direction.

    "No effect" cannot be shown by a test that finds nothing: it falls, or it is not decided.
    """
    effect = int(np.sign(row["change"])) if row["p_adjusted"] < LEVEL else 0
    if not effect:
        return "not decided"
    return "stands" if effect == row["sign"] else "falls"


def markdown(table: pd.DataFrame) -> list[str]:
    """Return the lines of a table of claims."""
    published = "paper_arithmetic" in table
    heads = ["claim about", "the paper says", "n", "change [95 %]", "p", "p, Holm", "the claim"]
    heads[3:3] = ["change by the paper's match"] * published
    lines = [_line(heads), "|---" * len(heads) + "|"]
    for row in table.to_dict("records"):
        cells = [row["claim"], _EFFECTS[int(row["sign"])], str(row["n"])]
        cells += [f"{row['paper_arithmetic']:+.3f}"] if published else []
        cells += [
            interval(row["change"], row["low"], row["high"], "+.3f"),
            p_value(row["p"]),
            p_value(row["p_adjusted"]),
        ]
        lines.append(_line([*cells, f"**{row['verdict']}**"]))
    return lines


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def between(page: str, name: str, lines: list[str]) -> str:
    """Return a page with other lines between the marks of this name."""
    start, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    head, rest = page.split(start)
    return f"{head}{start}\n\n" + "\n".join(lines) + f"\n\n{end}{rest.split(end)[1]}"


def claims(reference: Path) -> dict[str, pd.DataFrame]:
    """Return the claims of both tables with their verdicts."""
    tables = {"accuracy": accuracy_claims(reference), "flaws": flaw_claims(reference)}
    return {
        name: table.assign(verdict=[verdict(row) for row in table.to_dict("records")]) for name, table in tables.items()
    }


def main() -> None:
    """Write the JSON and the tables of the page."""
    tables = claims(Path(sys.argv[1]))
    records = {name: table.round(6).to_dict("records") for name, table in tables.items()}
    write_text(ROOT / "benchmarks" / "results" / "published.json", json.dumps(records, indent=1) + "\n")
    page = ROOT / "docs" / "published.md"
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        text = between(text, name, markdown(table))
    write_text(page, text)


if __name__ == "__main__":
    main()
