"""Benchmarks find what they import, mutants fit the source, and pages hold what their commands compute."""

import ast
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from benchmarks.mutants import MUTANTS, Mutant
from benchmarks.published import claims, markdown, verdict
from seesaw_cf.cli import COMMANDS
from tests.conftest import ROOT

FILES = sorted((ROOT / "benchmarks").rglob("*.py"))
OURS = ("seesaw_cf", "builder_scripts", "benchmarks", "tests")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_name_that_a_benchmark_imports_is_there(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] not in OURS:
            continue
        try:
            module = import_module(str(node.module))
        except ModuleNotFoundError as error:
            if str(error.name).split(".")[0] in OURS:
                raise
            pytest.skip(f"{error.name} is not installed")
        for alias in node.names:
            if not hasattr(module, alias.name):
                import_module(f"{module.__name__}.{alias.name}")


@pytest.mark.slow(15)
def test_the_page_holds_the_tables_of_its_command(reference: Callable[..., Path]) -> None:
    for name, table in claims(reference()).items():
        assert "\n".join(markdown(table, name)) in (ROOT / "docs" / "published.md").read_text(encoding="utf-8"), name


@pytest.mark.parametrize(
    ("change", "p", "sign", "claim"),
    [
        (-0.1, 0.01, -1, "stands"),
        (0.1, 0.01, -1, "falls"),
        (-0.1, 0.01, 0, "falls"),
        (-0.1, 0.2, 0, "not decided"),
        (0.1, 0.2, 1, "not decided"),
    ],
)
def test_no_effect_is_never_shown_by_a_test(change: float, p: float, sign: int, claim: str) -> None:
    assert verdict({"change": change, "p_adjusted": p, "sign": sign}) == claim


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_every_snippet_stands_in_the_source_once(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.right) == 1
    assert mutant.wrong != mutant.right
    for test in mutant.tests:
        file, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / file).read_text(encoding="utf-8")


def test_names_are_unique() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
PAPERS = ROOT.parent / "shared" / "papers"
# Heading -> text of the paper, how many tables and figures it has, and which figures where they are not all.
WHOLE: dict[str, tuple[str, set[int], set[int]]] = {
    "SEESAW-CF (EMNLP 2024)": ("seesaw_cf_acl", set(range(1, 22)), {1, 2, 3, 4}),
    "The first version of it (arXiv 2403.00180v1)": ("seesaw_cf_arxiv_v1", set(range(1, 16)), {1, 2, 3}),
    "LEME (NAACL 2024)": ("leme", set(range(1, 21)), set(range(1, 8))),
    "MEMIT (ICLR 2023), appendices C to E": ("memit_appendix_c_d_e", set(), {10}),
    '"I\'m not racist but ..." (stereotype graphs)': ("stereotype_knowledge_graphs", {1, 2, 3, 4}, set(range(1, 9))),
}
NUMBERS = re.compile(r"(Table|Figure)s? ((?:\d+(?: to \d+)?(?:, | and )?)+)")
CAPTION = re.compile(r"^ ?(Table|Figure) (\d+):", re.MULTILINE)


def rows(heading: str) -> list[list[str]]:
    part = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def named(heading: str, kind: str) -> set[int]:
    found: set[int] = set()
    for number, *_ in rows(heading):
        for what, listed in NUMBERS.findall(number):
            for first, last in re.findall(r"(\d+)(?: to (\d+))?", listed) if what == kind else []:
                found |= set(range(int(first), int(last or first) + 1))
    return found


@pytest.mark.parametrize("heading", WHOLE)
def test_every_table_and_figure_of_the_paper_has_a_row(heading: str) -> None:
    file, tables, figures = WHOLE[heading]
    assert (named(heading, "Table"), named(heading, "Figure")) == (tables, figures)
    if not PAPERS.exists():
        pytest.skip("the papers' texts are not beside this checkout (../shared/papers)")
    found = CAPTION.findall((PAPERS / f"{file}.txt").read_text(encoding="utf-8"))
    assert {int(number) for kind, number in found if kind == "Figure"} <= figures
    assert {int(number) for kind, number in found if kind == "Table"} <= tables


@pytest.mark.parametrize("heading", WHOLE)
def test_a_row_names_commands_exactly_where_the_number_can_be_made(heading: str) -> None:
    first_words = {name.split()[0] for name in COMMANDS}
    for row in rows(heading):
        _, what, made, command, where = row
        assert all((what, where)), row
        assert re.fullmatch(r"–|yes|(partly|no): .+", made), row
        letters = set(re.findall(r"\b[A-Z]\b(?!')", command))
        named = [words.split()[:2] for words in re.findall(r"`([a-z]+[a-z ]*)", command)]
        named = [words for words in named if words[0] in first_words]
        assert letters <= {*"ABCDEFGHIJKS"}, row
        assert bool(letters or named) == made.startswith(("yes", "partly")), row
        assert letters or named or command == "–", row
        assert all({words[0], " ".join(words)} & COMMANDS.keys() for words in named), row
