"""docs/papers.md has a row for every table and figure of the five papers, with a command that is there."""

from __future__ import annotations

import re
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest

from seesaw_cf.cli import COMMANDS, main
from tests.conftest import ROOT

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
LETTERS = {letter: words for words, letter in re.findall(r"^seesaw-cf (.*)  # ([A-Z])$", PAGE, re.MULTILINE)}
PAGES = {"H": "longform.md", "I": "stereotypes.md", "J": "longform.md", "K": "related.md", "S": "study.md"}
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
    for row in rows(heading):
        assert len(row) == 5, row
        _, what, made, command, where = row
        assert what
        assert where
        assert re.fullmatch(r"–|yes|(partly|no): .+", made), row
        letters = set(re.findall(r"\b[A-Z]\b(?!')", command))
        named = [
            words
            for words in re.findall(r"`([a-z]+[a-z ]*)", command)
            if words.split()[0] in {name.split()[0] for name in COMMANDS}
        ]
        assert letters <= LETTERS.keys() | PAGES.keys(), row
        assert bool(letters or named) == made.startswith(("yes", "partly")), row
        assert letters or named or command == "–", row
        for words in named:
            assert takes(words), row


def test_every_command_and_page_behind_a_letter_exists() -> None:
    assert list(LETTERS) == list("ABCDEFG")
    for words in LETTERS.values():
        assert takes(words), words
    for letter, page in PAGES.items():
        assert re.search(rf"\b{letter}\b[^|]*?\({page}\)", PAGE), letter
        assert (ROOT / "docs" / page).exists()
    assert not takes("texts reprt")


def takes(words: str) -> bool:
    """Whether the command line has this command, with its second word where it needs one."""
    names = words.split(" --")[0].split()[:2]
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        return main([*names, "--help"]) == 0
