"""`seesaw-cf run --explain`: where the scores before any edit come from, and how each block of edits is scored."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import seesaw_cf.run.explain
from seesaw_cf.cli import main

RUN = (
    "run",
    "--model",
    "seesaw-tiny",
    "--editor",
    "ft",
    "--data",
    "sample",
    "--limit",
    "2",
    "--quiet",
    "--device",
    "cpu",
)


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty cache, no report, and the log's levels as they were."""
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("seesaw_cf.report.write_report", lambda *_, **__: "")
    yield
    for logger in seesaw_cf.run.explain._EXPLAINED:
        logger.setLevel(logging.NOTSET)


@pytest.mark.slow
def test_explain_names_the_editor_and_the_first_case(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert main([*RUN, "--out", str(tmp_path / "silent"), "--limit", "1"]) == 0
    assert not caplog.messages

    assert main([*RUN, "--out", str(tmp_path / "run"), "--explain"]) == 0
    floor, candidates, before, plan = caplog.messages
    assert floor.startswith("noise floor: ")
    assert candidates.endswith("to rank the true targets among at most 32 candidates")
    clozes = int(before.split()[3])
    assert before == f"before any edit: {clozes} distinct clozes, 0 from the cache"
    edit = pq.read_table(tmp_path / "run" / "edits.parquet").to_pylist()[0]
    first = f"{edit['relation_id']}-{edit['case_id']:08d}"
    assert plan.startswith(f"ft, {first} and 1 more: 2 edits, ")
    assert "weights restored" in plan

    caplog.clear()
    assert main([*RUN, "--out", str(tmp_path / "again"), "--explain", "--block", "1"]) == 0
    assert caplog.messages[2] == f"before any edit: {clozes} distinct clozes, {clozes} from the cache"
    assert caplog.messages[3].startswith(f"ft, {first}: 1 edit, ")
    assert len(caplog.messages) == 5


@pytest.mark.slow
def test_a_scorer_without_a_choice_is_explained_too(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert main([*RUN, "--out", str(tmp_path / "run"), "--limit", "1", "--scorer", "plain", "--explain"]) == 0
    assert caplog.messages[-1].startswith("ft, ")
    assert caplog.messages[-1].endswith(": one after the other, weights restored (the scorer knows no other way)")


def test_lines_of_another_process_are_told_here(caplog: pytest.LogCaptureFixture) -> None:
    plans = logging.getLogger("seesaw_cf.scoring.edited_scorer")
    with seesaw_cf.run.explain.capture_log() as lines, seesaw_cf.run.explain.log_prefix("memit, P27 100% and 7 more"):
        plans.info("%d edits", 8)
        plans.warning("out of memory")
    plans.info("not collected any more")
    expected = ["memit, P27 100% and 7 more: 8 edits", "memit, P27 100% and 7 more: out of memory"]
    assert lines == [(logging.INFO, expected[0]), (logging.WARNING, expected[1])]
    caplog.clear()
    seesaw_cf.run.explain.log_lines(lines)
    assert caplog.messages == expected[1:]
    seesaw_cf.run.explain.explain()
    seesaw_cf.run.explain.log_lines(lines)
    assert caplog.messages == [*expected[1:], *expected]
