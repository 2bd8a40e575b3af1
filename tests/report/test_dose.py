"""The mass-editing study, end to end on the embedded model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seesaw_cf.cli import main
from seesaw_cf.effects.dose import read_curves, summarise_curves
from seesaw_cf.errors import RecordError
from seesaw_cf.report import write_report
from tests.report.runs import cases, write_run

OPTIONS = ["--model", "seesaw-tiny", "--editor", "memit", "--pair", "P27,P101", "--dose", "1", "--dose", "8"]
SMALL = [*OPTIONS, "--repeats", "2", "--people", "2", "--quiet"]


@pytest.mark.slow(30)
def test_end_to_end_resumed_and_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "dose"
    assert main(["dose", *SMALL, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "citizenship+work" in shown
    assert max(len(line) for line in shown.split("\n") if str(tmp_path) not in line) <= 110
    curves = read_curves(out)
    assert len(curves.units) == 3 * 2 * 2  # P27, P101 and both; doses 1 and 8; two samples
    table = summarise_curves(curves).set_index(["mix", "dose"])
    assert table.loc[("P27+P101", 8), "edits"] == 8
    assert table.loc[("P27+P101", 8), "kind"] == "subject same, object different"
    assert table.loc[("P27", 1), "ES"] == 1
    assert (curves.units["perplexity"] > 1).all()
    assert curves.units["n_people"].min() >= 1
    for name in ("dose.csv", "dose.md", "dose.png"):
        assert (out / name).stat().st_size, name
    before = (out / "dose.json").read_bytes()
    lost = sorted((out / "units").iterdir())[:3]
    kept = {file: file.stat().st_mtime_ns for file in (out / "units").iterdir() if file not in lost}
    for file in lost:
        file.unlink()
    assert main(["dose", *SMALL, "--out", str(out)]) == 0
    assert (out / "dose.json").read_bytes() == before
    assert all(file.stat().st_mtime_ns == time for file, time in kept.items())
    capsys.readouterr()
    assert main(["dose", *SMALL, "--repeats", "3", "--out", str(out)]) == 1
    assert "belongs to another run" in capsys.readouterr().err
    run = write_run(tmp_path / "run", cases(("P27",), 3, 4))
    write_report(run, dose=out)
    assert "## Dose and response" in (run / "report" / "report.md").read_text(encoding="utf-8")
    assert (run / "report" / "dose.png").exists()


def test_samples_are_the_same_for_every_editor_and_half_of_each_relation() -> None:
    from seesaw_cf.dose import DosePlan, _draw, _Unit, mixes_of

    pool = cases(("P27", "P101"), 10, 3)
    plan = DosePlan(pairs=(("P27", "P101"),))
    assert mixes_of(pool, plan) == ["P27", "P101", "P27+P101"]
    drawn = [_draw(pool, _Unit(editor, "P27+P101", 8, 1), plan) for editor in ("ft", "memit")]
    assert drawn[0] == drawn[1]
    assert [case.request.relation_id for case in drawn[0]] == ["P27"] * 4 + ["P101"] * 4
    assert len({case.case_id for case in drawn[0]}) == 8
    assert drawn[0] != _draw(pool, _Unit("ft", "P27+P101", 8, 2), plan)
    assert len(_draw(pool, _Unit("ft", "P27", 100, 0), plan)) == 10


def test_bad_plans_are_named() -> None:
    from seesaw_cf.dose import DosePlan, mixes_of

    pool = cases(("P27",), 3, 3)
    with pytest.raises(RecordError, match=r"no cases of relation \['P101'\]; cases per relation: \{'P27': 3\}"):
        mixes_of(pool, DosePlan(pairs=(("P27", "P101"),)))
    with pytest.raises(RecordError, match="all must be at least 1"):
        mixes_of(pool, DosePlan(doses=(0,)))


def test_watched_answers_and_texts_by_hand() -> None:
    """Entropy of answers: 3 prompts, two answer "a", one "b"; perplexity: exp(6 nats / 3 tokens)."""
    import math

    from seesaw_cf.dose import _health, _watched
    from seesaw_cf.types import AttributePrompt, ClozeScore, Entity

    panel = {AttributePrompt(f"p{i}", Entity(None, "")): ["a", "b"] for i in range(3)}
    watched = _watched(panel, ["one two three", "alone"])
    best = {"p0": "a", "p1": "a", "p2": "b"}
    scores = {
        q.cloze: ClozeScore(-6.0, 3, False)
        if q.kind == "text"
        else ClozeScore(-1.0 if best[q.cloze.context] == q.cloze.target else -2.0, 1, False)
        for q in watched
    }
    found = _health(panel, watched, scores)
    assert found["perplexity"] == pytest.approx(math.exp(2))
    assert found["entropy"] == pytest.approx(-(2 / 3 * math.log(2 / 3) + 1 / 3 * math.log(1 / 3)))
    assert json.dumps(found)
