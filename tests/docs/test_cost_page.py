"""The page about cost is what its figures give."""

import json

from benchmarks.editors_common import ROOT
from benchmarks.editors_cost import EDITORS, MODELS, RESULT, page


def test_the_page_is_made_from_the_figures() -> None:
    record = json.loads(RESULT.read_text(encoding="utf-8"))
    assert (ROOT / "docs" / "cost.md").read_text(encoding="utf-8") == page(record)
    assert {(row["model"], row["editor"]) for row in record["rows"]} == {(m, e) for m in MODELS for e in EDITORS}


def test_larger_models_cost_in_proportion() -> None:
    record = json.loads(RESULT.read_text(encoding="utf-8"))
    (own,) = [row for row in record["rows"] if (row["model"], row["editor"]) == ("smollm2-135m-q4", "memit")]
    cell = f"{own['flops'] * 7e9 / own['parameters'] / 1e12:.3g}"
    (line,) = [line for line in page(record).splitlines() if line.startswith("| memit |")]
    assert line.split(" | ")[2] == cell
