"""`audit.html`: what a judge of a run asks for in one document, which prints whole and certifies nothing."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from seesaw_cf.report import write_report
from seesaw_cf.report.write import crosswalk
from tests.page_reader import Read
from tests.report.runs import cases, property_cases, write_run

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = cases(("P27", "P101"), 8, 20) + property_cases(2)
    folder = write_run(tmp_path_factory.mktemp("audit") / "run", made, ("memit", "random(memit)"), refused=1)
    write_report(folder)
    return folder / "report"


@pytest.fixture(scope="module")
def page(out: Path) -> Read:
    return Read((out / "audit.html").read_text(encoding="utf-8"))


def test_it_has_what_it_says_it_has(page: Read) -> None:
    ids = {str(attrs["id"]) for _, attrs in page.tags if "id" in attrs}
    wanted = {"scope", "coverage", "intersections", "efficacy", "accuracy", "unscored", "verdicts", "method"}
    assert wanted | {"crosswalk", "provenance"} <= ids
    said = " ".join(page.text.split())
    assert "gender unknown" in said
    assert re.search(r"(wo)?men · \w+", said)
    assert "seesaw-cf run " in said


def test_people_are_counted_once_and_unknown_ones_too(page: Read) -> None:
    """The shares of gender, where nobody has two tags, add up to everybody."""
    rows = re.findall(r"gender\s*(men|women|unknown)\s*([\d,]+)", page.text)
    everybody = re.search(r"People asked about: ([\d,]+), none", page.text)
    assert everybody is not None
    assert sum(int(n) for _, n in rows) == int(everybody[1])
    assert {name for name, _ in rows} == {"men", "women", "unknown"}


def test_a_crosswalk_is_no_claim_of_compliance(page: Read) -> None:
    found = crosswalk()
    assert {row[0].split(",")[0] for row in found.cells()} == {
        "NYC Local Law 144 (rules of 2023)", "NIST AI RMF 1.0", "EU AI Act",
    }  # fmt: skip
    assert all(len(row) == len(found.heads) and all(row) for row in found.cells())
    said = " ".join(page.text.split()).lower()
    assert said.count("complian") == 1
    assert "not a statement of compliance" in said


def test_a_run_in_batches_says_why_there_are_no_verdicts(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", cases(("P27",), 6, 12), ("memit",), protocol="batch")
    write_report(folder)
    page = Read((folder / "report" / "audit.html").read_text(encoding="utf-8"))
    ids = {str(attrs["id"]) for _, attrs in page.tags if "id" in attrs}
    assert "intersections" not in ids
    assert "batch" in page.text


@pytest.mark.slow(20)
def test_it_prints(out: Path, tmp_path: Path) -> None:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--no-pdf-header-footer"]
    file = tmp_path / "audit.pdf"
    page = (out / "audit.html").as_uri()
    subprocess.run([program, *words, f"--print-to-pdf={file}", page], capture_output=True, timeout=120, check=True)
    assert file.read_bytes()[:5] == b"%PDF-"
    assert file.stat().st_size > 20_000
