"""Records, prompts and seeds of what is written; published settings; who may be in a demonstration."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from seesaw_cf.editors.ike import demonstrations
from seesaw_cf.errors import RecordError, SeesawError, StorageError, UnknownNameError
from seesaw_cf.generation import Completion, Sampling
from seesaw_cf.records import import_files
from seesaw_cf.texts import GENERATIONS, WriteJob
from seesaw_cf.texts.records import (
    EditedCase,
    LongformRecord,
    coupled_cases,
    open_ended_cases,
    read_records,
    spare_cases,
    usual_configs,
)
from seesaw_cf.texts.write import asks_of, passage_rows, with_leads
from seesaw_cf.types import Entity
from tests.longform.coupled import record
from tests.records.samples import SEESAW


def open_row(prompt: str, use: str, case_id: int = 7) -> LongformRecord:
    return {**record(case_id), "prompt": prompt, "use": use, "subject_id": "Q7186"}


def test_coupled_records_give_two_prompts_that_end_with_the_relationship() -> None:
    (case,) = coupled_cases([record()])
    assert [(p.passage, p.entity.label, p.status) for p in case.prompts] == [
        ("subject", "Marie Curie", "ok"),
        ("related", "Pierre Curie", "ok"),
    ]
    assert case.prompts[0].text.startswith("Write an essay about Marie Curie\n")
    assert [prompt.text.splitlines()[-1] for prompt in case.prompts] == [
        "- relationship to Pierre Curie",
        "- relationship to Marie Curie",
    ]
    assert case.request.text == "Marie Curie was born in"
    led = with_leads(case)
    assert led.prompts[1].text.endswith("\n- relationship to Marie Curie\n\nPierre Curie")
    rows = passage_rows(led, "none", 1, 0, [Completion(" was born."), Completion(" ")])
    assert [row["text"] for row in rows] == ["Marie Curie was born.", ""]
    (alone,) = coupled_cases([record(related=False)])
    assert "relationship" not in alone.prompts[0].text
    assert with_leads(alone).prompts[1].status == "the record has no related entity"
    assert len(asks_of(alone, 3, 0)) == 3


def test_bad_records_are_named() -> None:
    with pytest.raises(RecordError, match="case 1 is there twice"):
        coupled_cases([record(), record()])
    with pytest.raises(RecordError, match=r"record 1: .*no subject entity"):
        coupled_cases([{**record(), "subject_entity": None}])
    with pytest.raises(RecordError, match=r"record 1: requested_rewrite is \{\}.*seesaw-cf build"):
        coupled_cases([cast(LongformRecord, {**record(), "requested_rewrite": None})])
    other = open_row("Marie Curie is", "free")
    other["requested_rewrite"] = {**other["requested_rewrite"], "subject": "X"}
    with pytest.raises(RecordError, match="case 7 has two edits"):
        open_ended_cases([open_row("Marie Curie is", "free"), other])


def test_open_ended_records_are_put_together_by_case() -> None:
    (case,) = open_ended_cases([open_row("a", "guided"), open_row("b", "guided"), open_row("Marie Curie is", "free")])
    numbered = [(p.passage, p.number, p.text) for p in case.prompts]
    assert numbered == [("guided", 0, "a"), ("guided", 1, "b"), ("free", 0, "Marie Curie is")]
    assert case.prompts[0].entity.id == "Q7186"


def test_seeds_depend_on_run_case_prompt_and_sample_only() -> None:
    one, two = coupled_cases([record(1), record(2)])

    def seeds(case: EditedCase, samples: int, seed: int) -> list[int]:
        return [ask.seed for ask in asks_of(case, samples, seed)]

    every = [seed for run in (0, 1) for case in (one, two) for seed in seeds(case, 2, run)]
    assert len(set(every)) == 16
    assert all(0 <= seed < 2**48 for seed in every)
    more = seeds(two, 3, 5)
    assert seeds(coupled_cases([record(2)])[0], 2, 5) == [*more[:2], *more[3:5]]
    # A golden value: a seed must not change between versions, or nothing regenerates.
    (alone,) = coupled_cases([record(1, related=False)])
    assert seeds(alone, 1, 0)[0] == 161138344158709


def test_records_are_read_by_config_or_file(tmp_path: Path) -> None:
    rows = read_records("sample", ["coupled_counterfact"])["coupled_counterfact"]
    assert {"requested_rewrite", "subject_entity", "related_entity"} <= rows[0].keys()
    assert len(coupled_cases(rows)) == len(rows) >= 20
    assert usual_configs("sample") == ("coupled_counterfact",)
    with pytest.raises(UnknownNameError, match="coupled_counterfact"):
        read_records("sample", ["coupled_counterfacts"])
    (tmp_path / "a.parquet").write_bytes(b"PAR1nonsense")
    with pytest.raises(RecordError, match="not a whole Parquet file"):
        read_records(str(tmp_path / "a.parquet"), [])
    with pytest.raises(StorageError, match="neither 'sample'"):
        read_records("nobody/nothing", ["coupled_counterfact"])


def test_released_records_are_written_about_as_they_are(tmp_path: Path) -> None:
    file = tmp_path / "seesaw_cf_P27_P101.json"
    prompts = ["Marie Curie's field of work is"] * 2 + ["Marie Curie is"] * 2
    file.write_text(json.dumps([SEESAW | {"generation_prompts": prompts}]), encoding="utf-8")
    import_files(file, tmp_path / "imported")
    both = ("coupled_counterfact", "open_ended")
    assert len(read_records(str(file), both)) == 1, "a file has one config, whatever is named"
    assert usual_configs(str(tmp_path / "imported")) == ("open_ended",)
    for source, configs in ((file, ()), (tmp_path / "imported", ["P27_P101"]), (tmp_path / "imported", ["open_ended"])):
        ((case,),) = (open_ended_cases(rows) for rows in read_records(str(source), configs).values())
        assert [prompt.text for prompt in case.prompts] == prompts, "every text that the paper draws"
        numbered = [(prompt.passage, prompt.number) for prompt in case.prompts]
        assert numbered == [("guided", 0), ("guided", 1), ("free", 0), ("free", 1)]
        assert {prompt.entity for prompt in case.prompts} == {Entity(None, "Marie Curie")}, "named, not identified"


def about(case_id: int, subject: str, related: str, **prompts: Any) -> LongformRecord:
    row = cast(LongformRecord, {**record(case_id), **prompts})
    row["requested_rewrite"] = {**row["requested_rewrite"], "subject": subject}
    row["subject_entity"] = {**(row["subject_entity"] or {}), "entity": {"str": subject, "id": None}}
    row["related_entity"] = {**(row["related_entity"] or {}), "entity": {"str": related, "id": None}}
    return row


def test_people_who_are_asked_about_are_in_no_demonstration() -> None:
    rows = [
        about(1, "Ann", "Bob"),
        about(2, "Bob", "Cleo"),  # the related entity of an evaluated edit
        about(3, "Dan", "Ann"),  # related to an evaluated subject
        about(4, "Eve", "Fay", paraphrase_prompts=["Eve comes from"], neighborhood_prompts=["Gus was born in"]),
        about(4, "Eve", "Fay"),  # the same edit in another config
    ]
    spare = spare_cases(rows, rows[:1])
    assert [case.request.subject for case in spare] == ["Eve"]
    assert [one.text for one in demonstrations(spare)] == [
        "New Fact: Eve was born in London\nPrompt: Eve was born in London\n\n",
        "New Fact: Eve was born in London\nPrompt: Eve comes from London\n\n",
        "New Fact: Eve was born in London\nPrompt: Gus was born in Kraków\n\n",
    ]


def test_the_published_settings() -> None:
    # LEME: 600 new tokens and penalty 1.1 in the released program, the rest in appendix B.1. SEESAW-CF: section 5.
    assert GENERATIONS["leme"].sampling == Sampling(600, 0.9, 50, 0.95, repetition_penalty=1.1)
    assert GENERATIONS["leme-gpt"].sampling.temperature == 1.0, "appendix B.1, GPT-3.5 and GPT-4"
    assert (GENERATIONS["seesaw-cf"].samples, GENERATIONS["seesaw-cf"].sampling) == (5, Sampling(100, 1.0, 5, 1.0))
    assert WriteJob("seesaw-tiny").texts().name == "short"
    assert WriteJob("some/model").texts().name == "leme"
    assert WriteJob("seesaw-tiny", base_url="http://localhost/v1").texts().name == "leme"
    changed = WriteJob("seesaw-tiny", generation="seesaw-cf", samples=2, temperature=0.5).texts()
    assert (changed.name, changed.samples, changed.sampling) == ("seesaw-cf", 2, Sampling(100, 0.5, 5, 1.0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(({name: 0}, f"{name} is 0, expected a whole number of at least 1") for name in ("limit", "block", "samples")),
        ({"generation": "leem"}, "'leem'. Did you mean 'leme'"),
        ({"seed": -1}, "seed is -1"),
        ({"temperature": float("nan")}, "temperature is nan"),
    ],
)
def test_wrong_jobs(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SeesawError, match=message):
        WriteJob("seesaw-tiny", **change)
