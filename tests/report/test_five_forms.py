"""Every table of a run, a study, a LEME run, a report of flaws and a graph, read in its four forms."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from seesaw_cf.base.files import original
from seesaw_cf.report import AuditSettings, Results, read_results, terminal_report
from seesaw_cf.report.html.findings import findings_page
from seesaw_cf.report.run_tables import run_tables
from seesaw_cf.report.table import Table
from seesaw_cf.report.write import run_report
from seesaw_cf.study.members import read_members
from seesaw_cf.study.page import comparison_tables
from seesaw_cf.study.tables import compare
from seesaw_cf.study.write import write_comparison
from seesaw_cf.texts.graph.changes import changes
from seesaw_cf.texts.graph.page import graph_findings
from seesaw_cf.texts.graph.results import change_table
from seesaw_cf.texts.report.collected import Collected
from seesaw_cf.texts.report.flaw_page import write_flaw_report
from seesaw_cf.texts.report.flaws import flaw_sections
from seesaw_cf.texts.report.page import write_leme_report
from tests.longform import test_flaw_page, test_leme_page
from tests.report.runs import cases, property_cases, write_run
from tests.stereotypes.test_graph_page import crawled

pytestmark = pytest.mark.slow

_TABLES = (
    *("moved", "efficacy", "levels", "success", "knowledge", "effects_by_group", "effects_known", "verdicts"),
    *("verdicts_known", "excess", "editors", "gates", "accuracy", "accuracy_known", "coverage", "intersections"),
    "unscored",
    "edit_damage",
)
_MOVED = [{"name": f"w{at}", "shape": [8, 8], "rank": at or None, "norm": 0.5, "relative": at / 64} for at in range(14)]
_WIDE = AuditSettings(margin=0.24, margin_log_odds=5.0)  # a margin that supports claims in a small run
Rows = Sequence[Sequence[str]]


@pytest.fixture(scope="module", autouse=True)
def _any_number_of_edits_shows_a_size() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("seesaw_cf.stats.verdicts.FEW_EDITS", 0)
        yield


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = cases(("P27", "P101"), 16, 24, holds=("target_new", "target_true")) + property_cases(4)
    return write_run(
        tmp_path_factory.mktemp("forms") / "run",
        made,
        ("memit", "ft", "random(memit)"),
        refused=1,
        edited={"mine": {"source": "a folder", "form": "model", "moved": _MOVED}},
    )


@pytest.fixture(scope="module")
def results(run: Path) -> Results:
    return read_results(run, settings=_WIDE)


@pytest.fixture(scope="module")
def tables(results: Results) -> dict[str, Table]:
    return {table.name: table for table in run_tables(results)}


@pytest.fixture(scope="module")
def terminal(results: Results) -> str:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "2000")
        return terminal_report(results)


@pytest.fixture(scope="module")
def out(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("written")
    run_report(results).write(folder)
    return folder


def test_a_run_with_everything_has_every_table(tables: dict[str, Table]) -> None:
    assert set(tables) == set(_TABLES)
    assert all(len(table.frame) for table in tables.values())
    assert 0 < len(tables["verdicts"].cells()) < len(tables["verdicts"].frame)


def _words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("name", _TABLES)
def test_the_terminal_shows_the_table(name: str, tables: dict[str, Table], terminal: str) -> None:
    table = tables[name]
    lines = [_words(line) for line in terminal.split(f"{table.title.upper()}\n")[1].split("\n\n")[0].split("\n")]
    rows = [_words(" ".join(row)) for row in table.cells()]
    if rows:
        heads, rule = lines[-len(rows) - 2 : -len(rows)]
        assert heads == _words(" ".join(table.heads))
        assert set(rule) == {"-"}
        assert lines[-len(rows) :] == rows
    assert _words(" ".join(lines)).startswith(_words(" ".join(table.sentences)))


@pytest.mark.parametrize("name", _TABLES)
def test_markdown_shows_the_table_or_names_its_file(name: str, tables: dict[str, Table], out: Path) -> None:
    table, page = tables[name], (out / "report.md").read_text("utf-8")
    assert (f"\n## {table.title}\n" in page) == table.brief
    assert (f"\n- [tables/{name}.csv](tables/{name}.csv), {len(table.frame):,} rows: " in page) != table.brief
    section = (page if table.brief else "\n" + table.markdown()).split(f"\n## {table.title}\n")[1].split("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    rows = [[_plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
    assert rows[:1] + rows[2:] == ([table.heads, *table.cells()] if table.cells() else [])
    assert all(_words(line) in _words(_plain(section)) for line in table.sentences)


def _plain(cell: str) -> str:
    return html.unescape(re.sub(r"\\([\\`*_\[\]|~$#])", r"\1", cell)).strip()


@pytest.mark.parametrize("file", ["report.html", "audit.html"])
@pytest.mark.parametrize("name", _TABLES)
def test_a_page_shows_the_table(name: str, file: str, tables: dict[str, Table], out: Path) -> None:
    table = tables[name]
    page = (out / file).read_text("utf-8")
    section = page.split(f'<section id="{name}">')[1].split("</section>")[0]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line) for line in section.split("<tr>")[1:]]
    assert [[_text(cell) for cell in row] for row in rows] == ([table.heads, *table.cells()] if table.cells() else [])
    assert all(_words(line) in _words(_text(section)) for line in (table.title, *table.sentences))


def _text(markup: str) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", markup)).strip()


@pytest.mark.parametrize("name", _TABLES)
def test_csv_holds_the_table_and_the_rows_behind_it(name: str, tables: dict[str, Table], out: Path) -> None:
    table = tables[name]
    sheet = csv.reader(io.StringIO((out / "tables" / f"{name}.csv").read_text("utf-8")))
    heads, *rows = [[original(cell) for cell in row] for row in sheet]
    assert len(rows) == len(table.frame)
    _check_texts(table, heads, rows)


def _check_texts(table: Table, heads: Sequence[str], rows: Rows) -> None:
    """The first columns are the table's; its rows are there in its order, perhaps with others between and after."""
    own = [column.head for column in table.columns]
    texts = [list(row[: len(own)]) for row in rows]
    assert list(heads[: len(own)]) == own
    if table.across:
        cells = {cell for row in table.cells() for cell in row if cell}
        assert cells <= {cell for row in texts for cell in row}
        return
    left = iter(texts)
    assert all(row in left for row in table.cells())


# Reports that are not of one run: their tables, the Markdown and the page that show them.


def _study(folder: Path) -> tuple[Sequence[Table], str, str]:
    made, declared = cases(("P27",), 6, 6) + property_cases(1), AuditSettings()
    editors = {"one": ("memit", "random(memit)"), "two": ("ft",)}
    runs = [write_run(folder / name, made, names) for name, names in editors.items()]
    comparison = compare(read_members(runs, declared), declared, every=True)
    write_comparison(comparison, folder / "out", "A study")
    markdown, page = ((folder / "out" / name).read_text("utf-8") for name in ("report.md", "report.html"))
    return comparison_tables(comparison), markdown, page


def _leme(folder: Path) -> tuple[Sequence[Table], str, str]:
    made = test_leme_page.write_run(folder / "leme")
    sections = test_leme_page.sections(made)
    write_leme_report(made, folder / "report", sections)
    return sections, *((folder / "report" / name).read_text("utf-8") for name in ("report.md", "report.html"))


def _flaws(folder: Path) -> tuple[Sequence[Table], str, str]:
    collected = Collected({"flaws": test_flaw_page.ratings()})
    write_flaw_report(folder, collected, draws=50)
    page = (folder / "report.html").read_text("utf-8")
    return flaw_sections(collected, draws=50), (folder / "report.md").read_text("utf-8"), page


def _graph(folder: Path) -> tuple[Sequence[Table], str, str]:
    base = crawled(folder / "graph")
    triples = base.triples.assign(object=[f"{name}!" for name in base.triples["object"]])
    edited = replace(base, triples=triples)
    frame = changes(base, edited, n_topics=2, permutations=20)
    table = change_table(frame)
    return [table], table.markdown(), findings_page(graph_findings(base, edited, frame))


_OTHERS: Mapping[str, Callable[[Path], tuple[Sequence[Table], str, str]]] = {
    "study": _study,
    "leme": _leme,
    "flaws": _flaws,
    "graph": _graph,
}


@pytest.mark.parametrize("kind", _OTHERS)
def test_other_reports_show_the_same_rows_in_four_forms(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables, markdown, page = _OTHERS[kind](tmp_path)
    monkeypatch.setenv("COLUMNS", "2000")
    blocks = [[line for line in part.splitlines() if line.startswith("| ")] for part in markdown.split("\n\n")]
    written = [[[_plain(cell) for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines] for lines in blocks]
    shown = [
        [[_text(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line)] for line in part.split("<tr>")[1:]]
        for part in page.split("<table>")[1:]
    ]
    assert len({table.name for table in tables}) == len(tables) > 0
    for table in tables:
        rows = [[_words(cell) for cell in row] for row in table.cells()]
        assert rows, f"{table.name} has nothing to compare"
        assert [lines[:1] + lines[2:] for lines in written if lines].count([table.heads, *rows]) >= 1, table.name
        assert any(part[: len(rows) + 1] == [table.heads, *rows] for part in shown), table.name
        lines = [_words(line) for line in table.terminal().splitlines()]
        assert lines[-len(rows) :] == [_words(" ".join(row)) for row in rows]
        sheet = pd.read_csv(io.StringIO(table.csv))
        read = replace(table, frame=_typed(sheet, table.frame), view=None)
        assert _cells(read) == _cells(replace(table, view=None)), table.name


def _typed(read: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """What a file holds, with the types of the table's own frame."""
    numbers = {str(name) for name in frame if pd.api.types.is_numeric_dtype(frame[name])}
    texts = {str(name): read[name].astype(object).fillna("").map(_original) for name in read if name not in numbers}
    return read.assign(**texts, **{name: pd.to_numeric(read[name]) for name in numbers})


def _original(cell: object) -> object:
    return original(cell) if isinstance(cell, str) else cell


def _cells(table: Table) -> list[list[str]]:
    """A file has nothing where a table shows a dash."""
    return [[cell or "-" for cell in row] for row in table.cells()]
