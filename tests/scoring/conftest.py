"""The run of one process, which several workers must write byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scoring.shared_run import make


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone") / "run"
    make(out).complete()
    return out
