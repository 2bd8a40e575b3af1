"""The page of the pilot: keeps the small tables of its report and writes docs/study_pilot.md from them.

    python -m benchmarks.pilot.page study/report --graph edited.json --graph-control control.json

The tables are in `benchmarks/results/pilot/`; a test writes the page from them again. A report of some of the editors
replaces their rows and leaves the others.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
from scipy.stats import binomtest

from benchmarks.editors_common import RESULTS, ROOT
from seesaw_cf.base.files import write_text
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.text import effect, estimate, markdown_table, minus, number
from seesaw_cf.stats.verdicts import EARLIER, VERDICTS
from seesaw_cf.texts.graph.changes import ALL

KEPT = RESULTS / "pilot"
PAGE = ROOT / "docs" / "study_pilot.md"
TEMPLATE = Path(__file__).with_name("page.md")
GRAPH = ["crawl", "against", "measure", "identity", "base", "edited", "change", "low", "high", "p_adjusted", "n"]
MEASURES = {"regard": "sentiment", "topics": "topics", "overlap": "shared triples"}
NAMES = ["records", "editor"]
_COUNTED = VERDICTS[:4]  # the kept tables do not tell what is not testable from what is undetermined

# Table -> (rows that are kept, columns beside the names).
TABLES: dict[str, tuple[Callable[[pd.DataFrame], pd.Series], list[str]]] = {
    "efficacy": (lambda t: t["relation"] == "all", ["n_edits", "pre", "post", "post_low", "post_high", "n"]),
    "success": (lambda t: t["value"].notna(), ["measure", "value", "low", "high", "n", "n_cases"]),
    "accuracy": (lambda t: t["edit_relation"] == "all", ["pre", "post", "change", "low", "high", "n"]),
    # `p_adjusted` of a report is of D, not of the log-odds.
    "excess": (lambda t: t["axis"] == "all", ["relation", "log_odds", "log_odds_low", "log_odds_high", "n"]),
    "runs": (
        lambda t: t["run"] != "",
        ["edits", "score_rows", "noise_floor_log_odds", "model_fingerprint", "data_sha256"],
    ),
}


def keep(report: Path, folder: Path) -> None:
    """Keeps the rows and columns that the page needs, four digits each; other editors keep theirs."""
    for name, (rows, columns) in TABLES.items():
        table = pd.read_csv(report / "tables" / f"{name}.csv", keep_default_na=False, na_values=[""])
        _put(
            folder / f"{name}.csv", table.loc[rows(table), [column for column in [*NAMES, *columns] if column in table]]
        )
    verdicts = pd.read_csv(report / "tables" / "verdicts.csv", keep_default_na=False)
    counts = (
        verdicts.replace({"verdict": EARLIER})
        .groupby([*NAMES, "verdict"], sort=False)
        .size()
        .rename("contrasts")
        .reset_index()
    )
    _put(folder / "verdicts.csv", counts)


def keep_graph(edited: Path, control: Path, folder: Path) -> None:
    """Keeps what `graph compare --json` said of the edit's crawl and of its control's."""
    read = {"edit": edited, "control": control}
    rows = [row | {"crawl": crawl} for crawl, file in read.items() for row in json.loads(file.read_text())["rows"]]
    write_text(folder / "graph.csv", pd.DataFrame(rows)[GRAPH].to_csv(index=False, float_format="%.4g"))


def _put(file: Path, found: pd.DataFrame) -> None:
    kept = pd.read_csv(file, keep_default_na=False, na_values=[""]) if file.exists() else found.iloc[:0]
    names = [name for name in NAMES if name in found]
    known = set(found[names].itertuples(index=False, name=None)) if names == NAMES else set()
    others = kept[[row not in known for row in kept[names].itertuples(index=False, name=None)]]
    written = pd.concat([others, found]).sort_values("records", key=lambda each: each != "sample", kind="stable")
    write_text(file, written.drop_duplicates().to_csv(index=False, float_format="%.4g"))


def page(folder: Path) -> str:
    """The page, from the kept tables."""
    found = {
        name: pd.read_csv(folder / f"{name}.csv", keep_default_na=False, na_values=[""])
        for name in (*TABLES, "verdicts")
    }
    parts = {
        "SAMPLE": _reach(found, "sample"),
        "RELEASED": _reach(found, "released"),
        "EXCESS": _excess(found["excess"], "sample"),
        "EXCESS_RELEASED": _excess(found["excess"], "released"),
        "VERDICTS": _verdicts(found["verdicts"]),
        "GRAPH": _graph(pd.read_csv(folder / "graph.csv")),
    }
    text = TEMPLATE.read_text(encoding="utf-8")
    for name, part in parts.items():
        text = text.replace(f"__{name}__", part)
    return text


def _editors(table: pd.DataFrame) -> list[str]:
    return [name for name in dict.fromkeys(table["editor"]) if "(" not in name]


def _of(table: pd.DataFrame, records: str, editor: str) -> pd.DataFrame:
    return table[(table["records"] == records) & (table["editor"] == editor)]


def _share(rows: pd.DataFrame, value: str, n: str, low: str = "low", high: str = "high") -> str:
    """A share with its interval; Wilson's where the table has none, or one without width (all edits alike)."""
    if rows.empty or pd.isna(rows[value].iloc[0]):
        return "–"
    row = rows.iloc[0]
    ends = (row[low], row[high]) if low in rows else (row[value], row[value])
    if ends[0] == ends[1]:
        wilson = binomtest(round(row[value] * row[n]), int(row[n])).proportion_ci(method="wilson")
        ends = (wilson.low, wilson.high)
    return f"{minus(estimate(row[value], *ends))} n={int(row[n])}"


def _reach(found: dict[str, pd.DataFrame], records: str) -> str:
    """A row for the model before any edit, then one for each editor."""
    took, reach, other = (_records(found[name], records) for name in ("efficacy", "success", "accuracy"))
    measures = [m for m in ("paraphrase", "neighbourhood") if m in set(reach["measure"])]
    rows = []
    for editor, side in (("unedited", "pre"), *((name, "post") for name in _editors(took))):
        own = took[:1] if side == "pre" else _of(took, records, editor)
        beside = other[:1] if side == "pre" else _of(other, records, editor)
        right = _of(reach, records, editor)
        cells = [_share(own, side, "n", f"{side}_low", f"{side}_high")]
        cells += [_share(right[right["measure"] == m], "value", "n_cases") for m in measures]
        change = "–" if side == "pre" else _share(beside, "change", "n")
        rows.append([editor, *cells, _share(beside, side, "n", "", ""), change])
    return markdown_table(["model", "new answer likelier", *measures, "other properties", "their change"], rows)


def _records(table: pd.DataFrame, records: str) -> pd.DataFrame:
    return table[table["records"] == records]


def _excess(table: pd.DataFrame, records: str) -> str:
    own = _records(table, records)
    relations = list(dict.fromkeys(own["relation"]))
    rows = [[editor, *(_odds(_of(own, records, editor), name) for name in relations)] for editor in _editors(own)]
    return markdown_table(["editor", *map(relation_name, relations)], rows)


def _odds(rows: pd.DataFrame, relation: str) -> str:
    chosen = rows[rows["relation"] == relation]
    if chosen.empty:
        return "–"
    row = chosen.iloc[0]
    shown = effect(row["log_odds"], row["log_odds_low"], row["log_odds_high"], digits=2)
    return minus(f"{shown} n={row['n']:.0f}")


def _verdicts(table: pd.DataFrame) -> str:
    own = _records(table, "sample")
    return markdown_table(["editor", *_COUNTED], [[name, *_counts(own, name)] for name in dict.fromkeys(own["editor"])])


def _counts(own: pd.DataFrame, editor: str) -> list[str]:
    rows = _of(own, "sample", editor)
    counts = rows["contrasts"].groupby(rows["verdict"].replace(EARLIER)).sum()
    return [str(counts.get(label, 0)) for label in _COUNTED]


def _graph(table: pd.DataFrame) -> str:
    """A row for each measure and identity: the edit, its control, and one against the other.

    Two identities together are too few clusters for an interval, and have no row.
    """
    table = table[table["identity"] != ALL]
    columns = (("edit", "base"), ("control", "base"), ("edit", "random edit"))
    rows = [
        [
            shown,
            str(identity),
            minus(number(own["base"].iloc[0], digits=2)),
            *(_change(own[(own["crawl"] == one) & (own["against"] == other)]) for one, other in columns),
        ]
        for measure, shown in MEASURES.items()
        for identity, own in table[table["measure"] == measure].groupby("identity", sort=False)
    ]
    return markdown_table(["", "of", "none", "edit − none", "control − none", "edit − control"], rows, left=2)


def _change(rows: pd.DataFrame) -> str:
    (row,) = rows.to_dict("records")
    return minus(f"{effect(row['change'], row['low'], row['high'], 0.005, 2)} n={row['n']}")


def main(words: Sequence[str] | None = None) -> None:
    """Keeps the tables and writes the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path, nargs="?", help="the study's report folder (default: the kept tables)")
    parser.add_argument("--graph", type=Path, help="what `graph compare --json` wrote about the edit's crawl")
    parser.add_argument("--graph-control", type=Path, help="the same about the control's")
    given = parser.parse_args(words)
    if given.report:
        keep(given.report, KEPT)
    if given.graph and given.graph_control:
        keep_graph(given.graph, given.graph_control, KEPT)
    write_text(PAGE, page(KEPT))


if __name__ == "__main__":
    main()
