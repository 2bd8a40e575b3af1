"""`report.html` of a dose run: what it says is what its tables hold, whatever they hold."""

from __future__ import annotations

import csv
import io
import math
import re
import shlex
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seesaw_cf.cli import parser
from seesaw_cf.effects.dose import MEASURES, Curves, group_doses, summarise_curves
from seesaw_cf.report.dose import dose_findings
from seesaw_cf.report.dose_title import DoseLine, DoseSummary
from seesaw_cf.report.html.findings import findings_page
from seesaw_cf.report.html.forest import Axis, Curve, Point, draw_chart
from tests.page_reader import HOSTILE, check_alone, csv_files


def curves(editors: tuple[str, ...] = ("ft", "memit"), repeats: int = 3, *, value: float = 0.5) -> Curves:
    """A dose run of one mix; numbers differ by dose and sample."""
    units = []
    for editor in editors:
        for mix in ("P27", "P101", "P27+P101"):
            for dose in (1, 8):
                for repeat in range(repeats):
                    shift = value + 0.01 * dose + 0.1 * repeat
                    people: dict[str, Any] = {"gender": {"women": {"D": -shift, "n": 4}, "unknown": {"D": 0.0, "n": 1}}}
                    unit = {"editor": editor, "mix": mix, "dose": dose, "repeat": repeat, "n_edits": dose}
                    unit["overlap"] = 0
                    units.append({**unit, "n_refused": 0, **dict.fromkeys(MEASURES, shift), "D_by": people})
    job = {"model": "tiny", "editors": list(editors), "protocol": "batch", "seed": 0}
    settings = {"doses": [1, 8], "pairs": [["P27", "P101"]], "repeats": repeats, "people": 5}
    manifest: dict[str, object] = {"model": {"id": "tiny"}, "job": job, "settings": settings}
    return Curves(manifest, pd.DataFrame(units), {"P27": {"perplexity": 0.2, "entropy": 2.0}})


def test_the_page_has_every_number_with_its_band() -> None:
    made = curves()
    page = check_alone(findings_page(dose_findings(made)))
    rows = list(csv.DictReader(io.StringIO(csv_files(page)["dose.csv"])))
    table = summarise_curves(made)
    assert [float(row["S"]) for row in rows] == pytest.approx(table["S"].tolist())
    titles = re.findall(r"(\w+), ([\w +]+), (\d+) facts: ([\d.−]+) \[([\d.−]+), ([\d.−]+)\]", page.text)
    assert len(titles) >= 7 * len(table)
    assert {(who, dose) for who, _, dose, *_ in titles} == {(name, dose) for name in ("ft", "memit") for dose in "18"}
    assert "Facts edited together break the model: from 1 fact on (ft, citizenship; memit, citizenship)." in page.text
    assert "Collapse alarm ft, citizenship, 1 fact: perplexity" in page.text
    assert page.text.count("✕") > 6


@pytest.mark.parametrize(
    ("change", "title"),
    [
        ({}, "The score does not fall with more facts. Answers about other people move: D_d 0.68 [0.511, 0.849] with 8 "
             "facts (ft, citizenship)."),
        ({"S": [0.9, 0.91, 0.92, 0.2, 0.21, 0.22] * 3},
         "The score falls: 0.91 [0.893, 0.927] with 1 fact and 0.21 [0.193, 0.227] with 8 facts (ft, citizenship). "
         "Answers about other people move: D_d 0.68 [0.511, 0.849] with 8 facts (ft, citizenship)."),
        ({"S": [0.9, 0.6, 0.3, 0.8, 0.5, 0.2] * 3, "D": [-0.1, 0.0, 0.1] * 6},
         "That the score falls with more facts is not shown. Answers about other people are not shown to move."),
        ({"S": math.nan, "D": math.nan}, "Whether the edits took was not asked."),
        ({"n_edits": 0}, "Every edit was refused: nothing was changed."),
    ],
)  # fmt: skip
def test_the_title_says_what_more_facts_do(change: dict[str, Any], title: str) -> None:
    made = replace(curves(("ft",)), baseline={})
    assert dose_findings(replace(made, units=made.units.assign(**change))).screen.title == title


def test_groups_are_means_of_samples() -> None:
    found = group_doses(curves())
    assert set(found["group"]) == {"women"}
    one = found[(found["editor"] == "ft") & (found["mix"] == "P27") & (found["dose"] == 8)].iloc[0]
    values = [-(0.5 + 0.08 + 0.1 * repeat) for repeat in range(3)]
    assert one["D"] == pytest.approx(np.mean(values))
    half = 2.919986 * np.std(values, ddof=1) / math.sqrt(3)  # t of 2 degrees of freedom at 95 %
    assert (one["D_low"], one["D_high"]) == pytest.approx((np.mean(values) - half, np.mean(values) + half), rel=1e-4)
    assert (one["repeats"], one["n"]) == (3, 12)


def test_the_command_that_the_page_names_is_one() -> None:
    command = dose_findings(curves()).command
    args = parser("dose").parse_args(shlex.split(command)[1:])
    assert (args.doses, args.pairs, args.repeats, args.people) == ([1, 8], [("P27", "P101")], 3, 5)
    assert args.editors == ["ft", "memit"]


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_name_stays_a_name(kind: str) -> None:
    page = check_alone(findings_page(dose_findings(curves((HOSTILE[kind],)))))
    assert max([*re.findall(r"[^\s\W]+|\+", HOSTILE[kind]), ""], key=len) in page.text
    for content in csv_files(page).values():
        cells = [cell for row in csv.reader(io.StringIO(content)) for cell in row]
        assert not any(cell.startswith("=") for cell in cells)
    said = dose_findings(curves((HOSTILE[kind],))).screen.terminal()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\u202a-\u202e]", said)


def test_a_run_of_nothing_but_refusals_and_one_sample_says_so() -> None:
    made = curves(("ft",), 1, value=math.nan)
    made.units["n_refused"], made.units["n_edits"] = made.units["dose"], 0
    made = replace(made, units=made.units.drop(columns="D_by"))
    page = check_alone(findings_page(dose_findings(made)))
    assert "Every edit was refused: nothing was changed." in page.text
    assert "refused: 27 edits" in page.text
    assert "6 of 6 cells have no band: one sample" in page.text
    assert not re.search(r"\bnan\b|\binf\b", page.text, re.IGNORECASE)


def test_the_same_run_gives_the_same_bytes() -> None:
    assert findings_page(dose_findings(curves())) == findings_page(dose_findings(curves()))


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=8))
def test_an_axis_covers_its_values(values: list[float]) -> None:
    axis = Axis.covering(values)
    slack = 1e-6 * (axis.high - axis.low)
    assert axis.low - slack <= min(values) <= max(values) <= axis.high + slack
    places = [axis.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert (axis.zero is None) == (not axis.low <= 0 <= axis.high)
    assert len({said for _, said in axis.ticks}) == 5 or axis.high - axis.low < 1e-3 * max(map(abs, values))


@given(st.lists(st.floats(-10, 10) | st.just(math.nan), min_size=1, max_size=6))
def test_points_of_a_chart_are_inside_it_and_higher_values_are_higher(values: list[float]) -> None:
    points = [Point(n, value, value - 1, value + 1, "x") for n, value in enumerate(values)]
    chart = draw_chart("a", "b", [str(n) for n in range(len(values))], [Curve(0, 0, points)])
    [curve] = chart.curves
    kept = [value for value in values if not math.isnan(value)]
    assert len(curve.dots) == len(kept)
    assert len(curve.lines) == max(0, len(kept) - 1)
    for dot in curve.dots:
        assert 0 <= dot.x <= 100
        assert dot.low is not None
        assert dot.high is not None
        assert 100 >= dot.low >= dot.y >= dot.high >= 0  # the vertical axis of a picture goes down
    heights = [dot.y for _, dot in sorted(zip(kept, curve.dots), key=lambda pair: pair[0])]
    assert heights == sorted(heights, reverse=True)


def test_one_band_of_many_that_excludes_0_is_no_finding() -> None:
    """Of ten kinds of facts with two samples each one excludes 0 by chance; equal samples have no band at all."""

    def line(low: float, high: float, repeats: int = 2) -> DoseLine:
        row = {"D": (low + high) / 2, "D_low": low, "D_high": high, "repeats": repeats, "dose": 4}
        return DoseLine("ft", "D", row, row)  # type: ignore[arg-type]

    calm = [line(-0.1, 0.12) for _ in range(9)]
    for people, moved in (
        ([line(0.01, 0.09)], True),
        ([line(0.01, 0.09), *calm], False),
        ([line(0.05, 0.05)], False),
        ([line(0.04, 0.06), *calm], False),
        ([line(0.04, 0.06, repeats=12), *calm], True),
    ):
        assert bool(DoseSummary([], [], [], people).moved) == moved
