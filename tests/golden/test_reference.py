"""What a golden set does not have is a reason to skip, never an error of another kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.reference import limit


def test_a_limit_is_the_recorded_gap_and_without_one_there_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "results" / "gpt2"
    folder.mkdir(parents=True)
    gaps = {"memit": {"f64": {"loss0": 1e-3}}, "alone": {"alt": {"loss0": 1e-3}}}
    (folder / "tolerances.json").write_text(json.dumps(gaps))
    assert limit(tmp_path, "gpt2", "memit", "loss0") == pytest.approx(0.02)
    for method in ("alone", "absent"):
        with pytest.raises(pytest.skip.Exception, match=f"no float64 tolerance of the run {method} of gpt2"):
            limit(tmp_path, "gpt2", method, "loss0")
