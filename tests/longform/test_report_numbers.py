"""The numbers of every table: those of small invented studies are kept, those of public files are the papers'."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.texts.report.leme import leme_frame
from seesaw_cf.texts.report.people import people_frame

from . import report_samples as samples
from .analysis_samples import frames

GOLDEN = Path(__file__).parent / "report_golden.csv"
_KEYS = ("editor", "relation", "asked", "about", "reference", "answer", "dataset", "rater")


def _keyed(frame: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    """What and whom a number is about, by its names in any order."""
    found = {}
    for row in frame.to_dict("records"):
        names = {str(row[name]) for name in _KEYS if name in row and pd.notna(row[name])}
        names |= {row["control"]} if row["what"] == "labels_differ" else set()
        key = row["what"], "|".join(sorted(names - {"", "all"}))
        assert key not in found, key
        found[key] = {str(name): value for name, value in row.items()}
    return found


@pytest.mark.parametrize("source", ["leme", "flaws", "people"])
def test_numbers_are_those_of_the_first_version(source: str) -> None:
    run, flaws = samples.leme_run(), samples.flaw_ratings()
    if source == "leme":
        frame = leme_frame(run.pop("passages"), **run)
    elif source == "flaws":
        frame = people_frame(frames(flaws), judges=["judge"], draws=50)
    else:
        judged = frames({name: run[name] for name in ("ratings", "annotations")})
        frame = people_frame(frames(samples.people()), judged, draws=50)
    golden = pd.read_csv(GOLDEN, keep_default_na=False, na_values=[""]).query("source == @source")
    found = _keyed(frame)
    for row in golden.to_dict("records"):
        key = row["what"], "" if pd.isna(row["key"]) else row["key"]
        for column, value in row.items():
            name = str(column)
            if name in ("source", "what", "key") or pd.isna(value):
                continue
            assert found[key][name] == pytest.approx(value, rel=1e-6, abs=1e-9), (key, name)
        for name in ("value", "low", "high", "p", "p_adjusted"):
            own = found[key].get(name)
            assert np.isnan(row[name]) == (own is None or np.isnan(own)), (key, name, own)
