"""docs/papers.md has a row for every table and figure of the five papers, with a command that is there."""

from __future__ import annotations

import re

import pytest

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
def test_every_table_and_figure_has_a_row(heading: str) -> None:
    _, tables, figures = WHOLE[heading]
    assert named(heading, "Table") == tables
    assert named(heading, "Figure") == figures


@pytest.mark.parametrize("heading", WHOLE)
def test_the_papers_have_no_others(heading: str) -> None:
    file, tables, figures = WHOLE[heading]
    if not PAPERS.exists():
        pytest.skip("the papers' texts are not beside this checkout (../shared/papers)")
    found = CAPTION.findall((PAPERS / f"{file}.txt").read_text(encoding="utf-8"))
    assert {int(number) for kind, number in found if kind == "Figure"} <= figures
    assert {int(number) for kind, number in found if kind == "Table"} <= tables


@pytest.mark.parametrize("heading", WHOLE)
def test_every_row_names_a_command_or_a_reason_and_a_place(heading: str) -> None:
    letters = set(re.findall(r"  # ([A-Z])$", PAGE, re.MULTILINE)) | set("HIJKS")
    for row in rows(heading):
        assert len(row) == 4, row
        _, what, command, where = row
        assert what
        assert where
        used = set(re.findall(r"\b[A-Z]\b(?!')", command))
        assert used <= letters, row
        assert used or command == "–" or "`" in command, row
