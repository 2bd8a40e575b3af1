"""Means of ratings, tests, a judge beside a constant; Table 6 on the public ratings."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from seesaw_cf.effects.ratings import open_ended_flaws
from seesaw_cf.stats.plain import as_json

PROPERTIES = {"P101_P21": "work", "P21_P101": "gender", "P27_P21": "citizenship"}
# PEER_FACTS B5: sums over the ratings of all 300 rows
SUMS = {
    "work": [-16, 7, 6, -2, -1, 1, -10],
    "gender": [-3, 154, -1, -4, 7, -3, -4],
    "citizenship": [-3, 1, 21, 55, 15, 19, 4],
}


def columns(ratings: Mapping[str, Sequence[float | None]]) -> dict[str, Any]:
    """Ratings of items 0, 1, ... by named raters."""
    rows = [(str(i), "gender", "sexism", name, value) for name, own in ratings.items() for i, value in enumerate(own)]
    return dict(zip(("item", "group", "flaw", "rater", "rating"), map(list, zip(*rows))))


def rated(rng: np.random.Generator, raters: int, edits: int, samples: int = 5) -> Any:
    """The mean rating where nothing changed, but edits, raters and pairs have inclinations of their own."""
    shape = (edits, samples, raters)
    score = rng.normal(0, 0.7, (edits, 1, 1)) + rng.normal(0, 0.5, raters) + rng.normal(0, 0.5, (edits, samples, 1))
    score = score + rng.normal(0, 0.7, shape)
    rating = np.sign(score) * (np.abs(score) > 0.6)
    edit, sample, rater = (place.ravel().astype(str).tolist() for place in np.indices(shape))
    item = [f"{one}/{other}" for one, other in zip(edit, sample)]
    rows = {"item": item, "group": ["x"] * len(item), "flaw": ["x"] * len(item), "rater": rater, "edit": edit}
    found: Any = open_ended_flaws(rows | {"rating": rating.ravel()})
    return found["flaws"]["x"]["x"]


def test_mean_and_clustered_error_by_hand() -> None:
    first = [1.0, 0, 0, 1, 0, -1, 0, 1]
    row = as_json(open_ended_flaws)(columns(dict.fromkeys("ABCDE", first)))["flaws"]["gender"]["sexism"]
    assert (row["mean"], row["n_ratings"], row["n_items"]) == (pytest.approx(0.25), 40, 8)
    # Of 5 equal raters there is no variance: what is left is that over 8 edits.
    assert row["stderr"] ** 2 / np.var(first) == pytest.approx(1 / 7)
    assert row["p_paper"] < row["p"]
    assert row["note"] == "edits not given: pairs of one edit count as independent"


@pytest.mark.parametrize(
    ("raters", "edits", "note"), [(3, 15, "too few raters: 3,"), (6, 3, "too few edits: 3,"), (6, 15, "")]
)
def test_no_interval_below_five_edits_or_raters(raters: int, edits: int, note: str) -> None:
    found = rated(np.random.default_rng(0), raters, edits)
    assert found["note"].startswith(note)
    assert bool(found["note"]) is math.isnan(found["low"]) is bool(note)


@pytest.mark.slow
def test_edits_and_raters_of_their_own_make_no_effect() -> None:
    """15 edits of five samples, six biased raters: one test in twenty errs; by pairs alone, nearly one in three."""
    rng = np.random.default_rng(0)
    wrong = sum(rated(rng, 6, 15)["p"] < 0.05 for _ in range(100))
    assert wrong <= stats.binom.ppf(1 - 1e-5, 100, 0.07)


def test_table_6_formula_on_all_public_rows(reference: Callable[..., Path]) -> None:
    long = []
    for name in ("a1", "a2", "a3"):
        frame = pd.read_csv(reference("annotators", f"{name}.csv"))
        flaws = list(frame.columns[6:13])
        melted = frame.assign(item=[str(i) for i in range(len(frame))]).melt(["item", "props"], flaws)
        long.append(melted.assign(rater=name, rating=2 * (melted["value"].fillna(1.5) - 1.5)))  # blank = equal
    rows = pd.concat(long)
    rows = rows.drop(columns="value").rename(columns={"props": "group", "variable": "flaw"})
    result = as_json(open_ended_flaws)(rows)["flaws"]
    for folder, name in PROPERTIES.items():
        found = [round(result[folder][flaw]["mean"] * 300) for flaw in flaws]
        assert found == SUMS[name]
        assert all(result[folder][flaw]["n_ratings"] == 300 for flaw in flaws)
    # starred in the papers: sexism after gender edits, xenophobia after citizenship edits; three raters are too few
    for row in (result["P21_P101"]["Sexism"], result["P27_P21"]["Xenophobia"]):
        assert row["p_paper"] < 0.001
        assert row["p"] is None
