"""The notebooks run from nothing, and what is stored in them is what they print, but for the last digits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.tools.notebooks import FOLDER, notebook_page

from .. import fresh

NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
RUN = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from docs.tools.notebooks import run_notebook
Path("printed.json").write_text(json.dumps(run_notebook(Path({file!r}), Path("."))))
"""


def _cells(file: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(file.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def _words(text: str) -> list[str]:
    """Without numbers, whose last digits depend on the machine, and the white space that fits columns to them."""
    return re.sub(r"(?<!\w)[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?", "#", text).split()


def test_there_are_three() -> None:
    assert [file.stem for file in NOTEBOOKS] == ["audit", "editor", "tables"]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_calls_audit_imports_from_packages_and_stores_what_it_printed(file: Path) -> None:
    text = "\n".join("".join(cell["source"]) for cell in _cells(file))
    assert "seesaw_cf.audit(" in text
    assert not re.search(r"^from seesaw_cf\.(cli|\w+\.)", text, re.MULTILINE)
    assert all(cell["execution_count"] is None for cell in _cells(file))
    assert {output["output_type"] for cell in _cells(file) for output in cell["outputs"]} <= {"stream"}
    page, book = notebook_page(file), json.loads(file.read_text(encoding="utf-8"))
    assert all("".join(cell["source"]) in page for cell in book["cells"])
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])


@pytest.mark.slow(60)
@pytest.mark.parametrize(
    "file",
    [pytest.param(file, marks=[pytest.mark.exhaustive] * (file.stem == "editor")) for file in NOTEBOOKS],
    ids=lambda file: file.stem,
)
def test_a_notebook_runs_and_prints_what_it_says(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, said = fresh.snippet(RUN.format(root=str(FOLDER.parents[1]), file=str(file)), tmp_path)
    assert code == 0, said
    printed = json.loads((tmp_path / "printed.json").read_text(encoding="utf-8"))
    stored = ["".join("".join(output["text"]) for output in cell["outputs"]) for cell in _cells(file)]
    assert [_words(text) for text in printed] == [_words(text) for text in stored]
