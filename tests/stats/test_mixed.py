"""The mixed model against what was planted and against clustered errors."""

from __future__ import annotations

import numpy as np
import pytest

from seesaw_cf.effects import group_contrasts
from seesaw_cf.errors import RecordError, SeesawError, UnknownNameError
from seesaw_cf.stats.mixed import MAX_LEVELS, mixed_contrast
from tests.effects.test_estimands import crossed
from tests.fakes import not_installed


def test_balanced_crossing_agrees_with_clustered_errors() -> None:
    pytest.importorskip("statsmodels", reason="statsmodels is not installed")
    frame = crossed(0.2, edits=15, people=20)
    default, mixed = (
        group_contrasts(frame, "race", "white", method=method).iloc[0] for method in ("clustered", "mixed")
    )
    assert mixed["value"] == pytest.approx(default["value"], abs=1e-6)
    # 10 + 10 people with the planted standard deviation 0.02: the error of the difference is 0.02 sqrt(1/10 + 1/10)
    assert mixed["stderr"] == pytest.approx(0.02 * np.sqrt(0.2), rel=0.35)
    assert mixed["stderr"] == pytest.approx(default["stderr"], rel=0.15)
    assert mixed["clusters"] == {"edit": 15, "person": 20}
    assert mixed["p"] < 0.001


def test_bad_input() -> None:
    pytest.importorskip("statsmodels", reason="statsmodels is not installed")
    codes = {"edit": np.arange(MAX_LEVELS + 1)}
    member = np.arange(MAX_LEVELS + 1) % 2 == 0
    with pytest.raises(RecordError, match="at most 1500 in all fit its dense matrices"):
        mixed_contrast(np.zeros(member.size), member, codes)
    with pytest.raises(RecordError, match="1 values are not finite, 2 of 4 are about members"):
        mixed_contrast(np.array([np.nan, 1, 2, 3]), member[:4], {"edit": np.arange(4)})
    few = mixed_contrast(np.arange(4.0), member[:4], {"edit": np.arange(4)})
    assert few.note == "too few edits: 2 in the smaller side, 5 needed (2.0 effective)"
    with pytest.raises(UnknownNameError, match="unknown method 'mixd'"):
        group_contrasts(crossed(), "race", method="mixd")  # type: ignore[arg-type]


def test_without_statsmodels_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    not_installed(monkeypatch, "statsmodels")
    with pytest.raises(SeesawError, match=r"pip install 'seesaw_cf\[mixed\]'"):
        group_contrasts(crossed(), "race", method="mixed")
