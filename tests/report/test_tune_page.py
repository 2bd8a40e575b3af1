"""The page of a search for settings: its title is what came out, its numbers are those of `tune.json`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seesaw_cf.report.html.findings import findings_page
from seesaw_cf.report.tune import Search, TrialRecord, tune_findings, write_tune_report
from seesaw_cf.run.tune import ScorePart
from tests.page_reader import HOSTILE, check_alone, csv_files


def trial(number: int, score: float, kind: str = "final") -> TrialRecord:
    part: ScorePart = {"value": score, "low": max(0.0, score - 0.1), "high": min(1.0, score + 0.1), "n": 8}
    return {
        "round": kind,
        "trial": number,
        "n": 8,
        "score": score,
        "efficacy": part,
        "paraphrase": part,
        "neighborhood": part,
        "fluency": {"value": None, "low": None, "high": None, "n": 0},
        "settings": {"steps": number} if number else {},
        "refused": {},
    }


def search(*scores: float, model: str = "tiny") -> Search:
    """What a search of that many trials wrote; the first is the preset."""
    final = [trial(number, score) for number, score in enumerate(scores)]
    best = max(final, key=lambda row: (row["score"], -row["trial"]))
    return {
        "editor": "ft",
        "model": {"id": model},
        "data": {"source": "sample"},
        "subjects": ["A", "B"],
        "objective": "harmonic mean",
        "settings": {"steps": 2},
        "plan": {"trials": 5, "first_edits": 2, "final_edits": 8, "space": {"steps": [1, 2]}},
        "best": best,
        "trials": [trial(0, scores[0], "first"), *final],
    }


@pytest.mark.parametrize(
    ("scores", "title"),
    [
        ((0.0, 0.0), "No setting out of 5 makes ft work on tiny."),
        ((0.5, 0.5), "No setting out of 5 is better than the preset of ft on tiny: score 0.50."),
        ((0.5, 0.75), "Trial 1 out of 5 settings of ft is the best on tiny: score 0.75, the preset 0.50."),
    ],
)
def test_the_title_says_what_came_out(scores: tuple[float, ...], title: str) -> None:
    shown = tune_findings(search(*scores)).screen.title
    assert shown.startswith(title)
    assert ("takes " in shown) == any(scores)


def test_the_search_has_a_page(tmp_path: Path) -> None:
    (tmp_path / "tune.json").write_text(json.dumps(search(0.5, 0.75)), encoding="utf-8")
    said = write_tune_report(tmp_path)
    page = check_alone((tmp_path / "report" / "report.html").read_text("utf-8"))
    assert "Trial 1 out of 5 settings of ft is the best on tiny" in page.text
    assert "trial 1 (best): takes 0.75 [0.65, 0.85] (n=8)" in page.text
    assert page.all("g")[0]["class"] == "mark k0"
    assert "--leave-out-tuned" in said
    assert (tmp_path / "report" / "report.md").read_text("utf-8").startswith("# Trial 1 out of 5 settings")
    assert csv_files(page)["trials.csv"].count("\n") == 4
    assert "Refused" not in page.text, "a head without content"


@pytest.mark.parametrize("kind", HOSTILE)
def test_names_stay_names(kind: str) -> None:
    check_alone(findings_page(tune_findings(search(0.5, 0.75, model=HOSTILE[kind]))))
