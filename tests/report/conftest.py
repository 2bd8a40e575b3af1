"""A finished run and its report, made once for all tests of the report."""

from pathlib import Path

import pytest

from seesaw_cf.report import AuditSettings, Report, report
from tests.report.runs import cases, property_cases, write_run

QUICK = AuditSettings(permutations=99)
BOTH = ("target_new", "target_true")


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "two editors"
    made = cases(("P27", "P101"), 6, 12, holds=BOTH) + property_cases(4)
    return write_run(folder, made, ("memit", "ft", "random(memit)"), refused=1)


@pytest.fixture(scope="session")
def made(run_folder: Path) -> Report:
    return report(run_folder, QUICK)
