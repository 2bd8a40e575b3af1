"""Names that a model, a data set or a user chose, in every page of a report, rendered as a browser would."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import markdown
import pandas as pd
import pytest
import wcwidth

from seesaw_cf.base.files import write_text
from seesaw_cf.effects.dose import Curves, summarise_curves
from seesaw_cf.report import Results, read_results, terminal_report, write_report
from seesaw_cf.report.dose import dose_table
from seesaw_cf.report.forms import Report
from seesaw_cf.report.run_tables import run_tables
from seesaw_cf.report.text import escape, markdown_table
from tests.report.runs import all_markdown, cases, property_cases, write_run

pytestmark = pytest.mark.slow

HTML = "<img src=x onerror=alert(1)><script>alert(2)</script>"
LINKS = "[me](javascript:alert(3)) ![p](http://evil/p.png) <http://evil> &lt;b&gt;"
TABLE = "a | b\n| --- | --- |\n# head\n```\n* list\n> quote"
RIGHT_TO_LEFT = "שלום \N{RIGHT-TO-LEFT OVERRIDE}txt.exe\N{POP DIRECTIONAL FORMATTING} مرحبا"
LONG = "w" * 3_000
FORMULA = "=HYPERLINK(1)"
NAMES = {"html": HTML, "links": LINKS, "table": TABLE, "right to left": RIGHT_TO_LEFT, "long": LONG, "formula": FORMULA}


class Page(HTMLParser):
    """The tags of a rendered page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(markdown.markdown(text, extensions=["tables", "fenced_code"]))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


OURS = {"h1", "h2", "h3", "p", "em", "strong", "code", "pre", "br", "ul", "li", "blockquote", "img", "a"}
OURS |= {"table", "thead", "tbody", "tr", "th", "td", "hr"}


def check_page(text: str) -> Page:
    page = Page(text)
    assert {tag for tag, _ in page.tags} <= OURS
    for tag, attrs in page.tags:
        assert not any(name.startswith("on") for name in attrs), attrs
        if tag == "img":
            assert re.fullmatch(r"pictures/[a-z_]+\.png", attrs["src"] or ""), attrs
        assert "javascript" not in (attrs.get("href") or "")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", text)
    return page


def renamed(results: Results, name: str) -> Results:
    """The results with the name as editor, model and group of people."""

    def put(frame: pd.DataFrame) -> pd.DataFrame:
        changes = {"memit": name, "women": name}
        return frame.replace({one: changes for one in ("editor", "group", "first", "second") if one in frame})

    audit, prompts = results.audit, results.prompts
    assert audit is not None
    assert prompts is not None
    named = ([name if tag == "women" else tag for tag in own] for own in prompts["gender"])
    tags = pd.Series(list(named), prompts.index)
    return replace(
        results,
        prompts=put(prompts.astype({"editor": object})).assign(gender=tags),
        answers=None if results.answers is None else put(results.answers),
        manifest={**results.manifest, "model": {**results.manifest.get("model", {}), "id": name}},
        edits=put(results.edits),
        efficacy=put(results.efficacy),
        effects=put(results.effects),
        accuracy=put(results.accuracy),
        known=replace(results.known, effects=put(results.known.effects), accuracy=put(results.known.accuracy)),
        unscored=put(results.unscored).assign(reason=name),
        audit=replace(audit, verdicts=put(audit.verdicts), excess=put(audit.excess), pairs=put(audit.pairs)),
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("hostile") / "run"
    made = cases(("P27",), 6, 12) + property_cases(1)
    return read_results(write_run(folder, made, ("memit", "ft", "identity"), refused=1))


@pytest.fixture(scope="module")
def plain(results: Results) -> Page:
    return check_page(_page(results, "by race"))


def _page(results: Results, about: str) -> str:
    return Report(all_markdown(results), "", run_tables(results)).markdown({"forest_race.png": about})


@pytest.mark.parametrize("kind", NAMES)
def test_the_page_says_a_name_and_does_nothing_else_with_it(results: Results, plain: Page, kind: str) -> None:
    name = NAMES[kind]
    page = check_page(_page(renamed(results, name), f"by {name}"))
    heads = [tag for tag, _ in page.tags]
    assert heads.count("table") == [tag for tag, _ in plain.tags].count("table")
    assert heads.count("tr") == [tag for tag, _ in plain.tags].count("tr"), "a name makes no row of its own"
    words = max(re.findall(r"\w+", name), key=len)
    assert words in page.text


@pytest.mark.parametrize("kind", NAMES)
def test_a_cell_holds_the_name_as_it_reads(kind: str) -> None:
    name = NAMES[kind]
    table = markdown_table(("who", "n"), [[escape(name), "1"]])
    page = Page(table)
    assert [tag for tag, _ in page.tags].count("td") == 2
    shown = " ".join(page.text.split())
    wanted = re.sub(r"[\x00-\x1f\u202a-\u202e\u2066-\u2069]+", " ", name)
    assert shown == " ".join(f"who n {wanted} 1".split())


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("columns", ["60", "100"])
def test_the_terminal_keeps_its_width(
    results: Results, kind: str, columns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    shown = terminal_report(renamed(results, NAMES[kind]))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", shown)
    lines = shown.split("\n")[1:]  # the first line is the folder
    if kind != "long":  # prose never breaks a word, and one of 3,000 letters is a name, not a line
        assert max(map(wcwidth.width, lines)) <= int(columns)
    else:
        assert sum(wcwidth.width(line) > int(columns) for line in lines) <= 12


def test_cells_of_csv_files_are_no_formulas(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", cases(("P27",), 5, 8), (FORMULA,), refused=1)
    write_report(run)
    for file in (run / "report" / "tables").iterdir():
        with file.open(encoding="utf-8", newline="") as lines:
            cells = [cell for row in csv.reader(lines) for cell in row]
        assert f"'{FORMULA}" in cells or file.stem in ("knowledge", "coverage", "intersections"), file.name
        number = r"[-+]?[\d.]+(e[-+]?\d+)?"
        numbers = re.compile(rf"{number}%?\*?( \[{number}, {number}\]| \(.*\))?( n=\d+)?|-?inf|-")
        assert not any(cell[:1] in "=+-@" and cell and not numbers.fullmatch(cell) for cell in cells), file.name
        assert not any(cell[:1] == "'" and numbers.fullmatch(cell[1:]) for cell in cells), file.name


@pytest.mark.parametrize("kind", NAMES)
def test_a_dose_page_says_a_name_and_does_nothing_else_with_it(kind: str) -> None:
    measures = dict.fromkeys(("ES", "PS", "NS", "S", "D", "perplexity", "entropy"), 0.5)
    unit = {"editor": NAMES[kind], "mix": "P27+P101", "dose": 8, "repeat": 0, "n_edits": 8, "n_refused": 0, **measures}
    unit["overlap"] = 0.0
    curves = Curves({}, pd.DataFrame([unit]), {"P27+P101": {"perplexity": 0.2, "entropy": 2.0}})
    page = check_page(dose_table(summarise_curves(curves)).markdown())
    assert "citizenship + work" in page.text
    assert "perplexity 0.5 is above 2 times the unedited 0.2" in page.text
    assert "0.5 (1 sample)" in page.text
    assert [tag for tag, _ in page.tags].count("tr") == 2


def test_a_page_is_written_in_utf_8_whatever_its_names(tmp_path: Path, results: Results) -> None:
    text = all_markdown(renamed(results, RIGHT_TO_LEFT))
    write_text(tmp_path / "page.md", text)
    assert (tmp_path / "page.md").read_bytes().decode("utf-8") == text
    assert "שלום" in text
