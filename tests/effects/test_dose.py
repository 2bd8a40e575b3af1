"""Bands, alarms and kinds of pairs of dose runs, by hand."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from seesaw_cf.effects.dose import diversity, read_curves, summarise_curves
from seesaw_cf.errors import RunFolderError


def unit(dose: int, repeat: int, **values: Any) -> dict[str, Any]:
    row: dict[str, Any] = {"editor": "memit", "mix": "P27+P37", "dose": dose, "repeat": repeat, "n_edits": dose}
    row |= {"n_refused": 0, "ES": 1.0, "PS": 0.5, "NS": 0.5, "S": 0.6, "D": 0.0, "perplexity": 10.0, "entropy": 2.0}
    return row | values


def write(folder: Path, units: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    (folder / "manifest.json").write_text("{}")
    baseline = {"P27+P37": {"perplexity": 10.0, "entropy": 2.0}}
    (folder / "dose.json").write_text(json.dumps({"baseline": baseline, "units": units}))
    return folder


def test_bands_are_t_intervals_over_repeated_samples(tmp_path: Path) -> None:
    units = [unit(1, i, S=s) for i, s in enumerate((0.5, 0.6, 0.7))] + [unit(10, 0, D=None)]
    table = summarise_curves(read_curves(write(tmp_path / "run", units)))
    row = table.iloc[0]
    # sd of .5 .6 .7 is .1: half width = t(.95, 2) x .1 / sqrt 3
    half = stats.t.ppf(0.95, 2) * 0.1 / math.sqrt(3)
    assert (row["S"], row["S_low"], row["S_high"]) == pytest.approx((0.6, 0.6 - half, 0.6 + half))
    assert (row["repeats"], row["kind"]) == (3, "subject different, object different")
    assert np.isnan(table["S_low"].iloc[1])  # one sample has no band
    assert np.isnan(table["D"].iloc[1])
    assert not table["collapsed"].any()


def test_the_alarm_names_its_rule(tmp_path: Path) -> None:
    units = [unit(1, 0, perplexity=19.0), unit(10, 0, perplexity=21.0), unit(100, 0, entropy=0.9)]
    table = summarise_curves(read_curves(write(tmp_path / "run", units)))
    assert table["collapsed"].tolist() == [False, True, True]
    assert table.loc[1, "alarm"] == "perplexity 21 is above 2 times the unedited 10"
    assert table.loc[2, "alarm"] == "entropy of answers 0.90 is below 0.5 times the unedited 2.00"


def test_the_four_pairs_of_the_appendix_are_the_four_kinds() -> None:
    # MEMIT appendix D, (a) to (d)
    assert diversity("P27+P37") == "subject different, object different"
    assert diversity("P413+P1412") == "subject same, object different"
    assert diversity("P17+P495") == "subject different, object same"
    assert diversity("P27+P937") == "subject same, object same"
    assert diversity("P27") == diversity("P27+P9999") == ""


def test_unfinished_and_damaged_folders_are_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", [unit(1, 0)])
    (folder / "dose.json").write_text('{"units": []}')
    with pytest.raises(RunFolderError, match=r"dose\.json is damaged"):
        read_curves(folder)
    (folder / "dose.json").unlink()
    with pytest.raises(RunFolderError, match=r"dose\.json missing, so this is no finished dose run"):
        read_curves(folder)
