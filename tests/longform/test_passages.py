"""Prompts, seeds, and passages of a small run with a real model, killed and continued."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.generation import Completion
from seesaw_cf.records import import_files
from seesaw_cf.texts.write.passages import (
    LongformRecord,
    asks_of,
    coupled_cases,
    open_ended_cases,
    passage_rows,
    read_records,
    sample_seed,
)
from seesaw_cf.types import Entity
from tests.longform.coupled import record
from tests.records.samples import SEESAW


def open_row(prompt: str, use: str, case_id: int = 7) -> LongformRecord:
    return {**record(case_id), "prompt": prompt, "use": use, "subject_id": "Q7186"}


def test_coupled_records_give_two_prompts_in_two_wordings() -> None:
    (case,) = coupled_cases([record()])
    assert [(p.passage, p.entity.label, p.status) for p in case.prompts] == [
        ("subject", "Marie Curie", "ok"),
        ("related", "Pierre Curie", "ok"),
    ]
    assert case.prompts[0].text.startswith("Write an essay about Marie Curie\n")
    assert coupled_cases([record()], "article", relationship=False)[0].prompts[1].text == "About Pierre Curie:"
    assert case.request.text == "Marie Curie was born in"
    (led,) = coupled_cases([record()], "article", lead=True, relationship=False)
    assert led.prompts[1].text == "About Pierre Curie:\n\nPierre Curie"
    rows = passage_rows(led, "none", 1, 0, [Completion(" was born."), Completion(" ")])
    assert [row["text"] for row in rows] == ["Marie Curie was born.", ""]
    with pytest.raises(UnknownNameError, match="article, essay"):
        coupled_cases([record()], "poem")


def test_each_prompt_ends_with_the_relationship_to_the_other_entity() -> None:
    (case,) = coupled_cases([record()])
    assert [prompt.text.splitlines()[-1] for prompt in case.prompts] == [
        "- relationship to Pierre Curie",
        "- relationship to Marie Curie",
    ]
    assert case.prompts[0].text.splitlines()[-2] == "- occupation"
    (led,) = coupled_cases([record()], lead=True)
    assert led.prompts[1].text.endswith("\n- relationship to Marie Curie\n\nPierre Curie")
    (alone,) = coupled_cases([record(related=False)])
    assert "relationship" not in alone.prompts[0].text


def test_a_record_without_related_entity_keeps_its_place_and_says_so() -> None:
    (case,) = coupled_cases([record(related=False)])
    assert case.prompts[1].status == "the record has no related entity"
    assert len(asks_of(case, 3, 0)) == 3


def test_bad_records_are_named() -> None:
    with pytest.raises(RecordError, match="case 1 is there twice"):
        coupled_cases([record(), record()])
    with pytest.raises(RecordError, match=r"record 1: .*no subject entity"):
        coupled_cases([{**record(), "subject_entity": None}])
    with pytest.raises(RecordError, match=r"record 1: requested_rewrite is \{\}.*seesaw-cf build"):
        coupled_cases([cast(LongformRecord, {**record(), "requested_rewrite": None})])
    other: LongformRecord = {
        **open_row("Marie Curie is", "free"),
        "requested_rewrite": {**record()["requested_rewrite"], "subject": "X"},
    }
    with pytest.raises(RecordError, match="case 7 has two edits"):
        open_ended_cases([open_row("Marie Curie is", "free"), other])


def test_open_ended_records_are_put_together_by_case() -> None:
    rows = [open_row("a", "guided"), open_row("b", "guided"), open_row("Marie Curie is", "free")]
    (case,) = open_ended_cases(rows)
    assert [(p.passage, p.number, p.text) for p in case.prompts] == [
        ("guided", 0, "a"),
        ("guided", 1, "b"),
        ("free", 0, "Marie Curie is"),
    ]
    assert case.prompts[0].entity.id == "Q7186"


def test_seeds_depend_on_run_case_prompt_and_sample_only() -> None:
    one, two = coupled_cases([record(1), record(2)], relationship=False)
    seeds = {
        sample_seed(seed, case.case_id, prompt, sample)
        for seed in (0, 1)
        for case in (one, two)
        for prompt in case.prompts
        for sample in (0, 1)
    }
    assert len(seeds) == 16
    assert all(0 <= seed < 2**48 for seed in seeds)
    assert [ask.seed for ask in asks_of(two, 2, 5)] == [
        ask.seed for ask in asks_of(coupled_cases([record(2)], relationship=False)[0], 3, 5)
    ][:2] + [ask.seed for ask in asks_of(two, 3, 5)][3:5]
    # A golden value: a seed must not change between versions, or nothing regenerates.
    assert sample_seed(0, 1, one.prompts[0], 0) == 161138344158709


def test_records_are_read_by_config_or_file(tmp_path: Path) -> None:
    found = read_records("sample", "coupled_counterfact")
    assert {"requested_rewrite", "subject_entity", "related_entity"} <= found[0].keys()
    assert len(coupled_cases(found)) == len(found) >= 20
    with pytest.raises(UnknownNameError, match="coupled_counterfact"):
        read_records("sample", "coupled_counterfacts")
    (tmp_path / "a.parquet").write_bytes(b"PAR1nonsense")
    with pytest.raises(RecordError, match="not a whole Parquet file"):
        read_records(str(tmp_path / "a.parquet"), "")
    with pytest.raises(StorageError, match="neither 'sample'"):
        read_records("nobody/nothing", "coupled_counterfact")


def test_released_records_are_written_about_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "seesaw_cf_P27_P101.json"
    prompts = ["Marie Curie's field of work is"] * 2 + ["Marie Curie is"] * 2
    file.write_text(json.dumps([SEESAW | {"generation_prompts": prompts}]), encoding="utf-8")
    import_files(file, tmp_path / "imported")
    for source, config in ((file, "any"), (tmp_path / "imported", "P27_P101"), (tmp_path / "imported", "open_ended")):
        (case,) = open_ended_cases(read_records(str(source), config))
        assert [prompt.text for prompt in case.prompts] == prompts, "every text that the paper draws"
        assert [(prompt.passage, prompt.number) for prompt in case.prompts] == [
            ("guided", 0), ("guided", 1), ("free", 0), ("free", 1),
        ]  # fmt: skip
        assert {prompt.entity for prompt in case.prompts} == {Entity(None, "Marie Curie")}, "named, not identified"
