"""Models that somebody else edited, under the questions of a run: the law, requests, controls, reports, bad input."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.tables import write_table
from seesaw_cf.errors import SeesawError
from seesaw_cf.models import applied, load_model
from seesaw_cf.models.identity import fingerprint
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.records.arrow import cases_to_table
from seesaw_cf.report import report
from seesaw_cf.run.external import find_external, match_requests, read_external
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.runner import Run
from seesaw_cf.run.workers import run_job
from seesaw_cf.scoring import HFScorer, make_scorer
from seesaw_cf.sharing import load_delta, save_delta
from seesaw_cf.types import Cloze, EditRequest, Entity
from tests.runner import small
from tests.tokenizer_styles import byte_level

NATS = 1e-4
"""Of float32: what two ways to write the same edit may differ by, as for adapters (`seesaw_cf.models.adapters`)."""
CASES = small.cases()
REQUEST = CASES[0].request


def nudged(base: Path, folder: Path) -> tuple[PreTrainedModel, WeightDelta]:
    """The base, and a checkpoint of it after an edit, in `folder`."""
    model, _ = load_model(str(base), device="cpu", progress=False)
    delta = small.Nudge().edit(model, byte_level(bos=False), [REQUEST])
    with applied(model, delta):
        model.save_pretrained(folder)
    return model, delta


def records(folder: Path, *requests: EditRequest) -> Path:
    """EasyEdit's file of requests."""
    file = folder / "requests.json"
    rows = [
        {"prompt": r.text, "subject": r.subject, "target_new": r.target_new.label, "ground_truth": r.target_true.label}
        for r in requests
    ]
    file.write_text(json.dumps(rows))
    return file


def rows_of(folder: Path, editor: str = "theirs", phase: str = "post") -> dict[Cloze, float]:
    table = pq.read_table(folder / "scores.parquet").to_pylist()
    kept = [row for row in table if row["editor"] == editor and row["phase"] == phase]
    return {Cloze(row["prompt"], row["target"]): row["logprob"] for row in kept}


def job_of(model: str | Path, edited: str | Path, **changes: Any) -> Job:
    usual = {"changed": (f"theirs={edited}",), "device": "cpu", "limit": 2, "controls": ("none",)}
    return Job(str(model), **{**usual, **changes})


def audit(out: Path, job: Job, **options: Any) -> Path:
    run_job(job, out, progress=False, **options)
    return out


@dataclass(frozen=True)
class Fixed:
    """An editor whose edit is known."""

    delta: WeightDelta
    config: Any = field(default_factory=dict)

    def fit(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Fixed:
        return self

    def edit(self, *_: Any) -> WeightDelta:
        return self.delta


@pytest.mark.slow
def test_the_same_delta_of_an_editor_in_one_batch_gives_the_same_scores(base: Path, tmp_path: Path) -> None:
    model, delta = nudged(base, tmp_path / "edited")
    save_delta(delta, tmp_path / "delta", model)
    tokenizer, made = byte_level(bos=False), small.manifest(model, protocol="batch")
    job = job_of(base, tmp_path / "delta")
    external, _ = read_external(find_external(job, ()), model, tokenizer, job, {})
    both = Run(
        *(model, tokenizer, HFScorer(model, tokenizer), {"fixed": Fixed(delta)}, CASES, made, tmp_path / "run"),
        progress=False, external=external, requests=match_requests(CASES, CASES),
    )  # fmt: skip
    hashes = fingerprint(model)
    both.complete()
    assert fingerprint(model) == hashes
    theirs, ours = rows_of(tmp_path / "run"), rows_of(tmp_path / "run", "fixed")
    assert list(theirs) == list(ours)
    assert np.abs(np.array(list(theirs.values())) - list(ours.values())).max() < NATS
    edits = pq.read_table(tmp_path / "run" / "edits.parquet").to_pandas()
    assert set(edits["status"]) == {"ok"}
    success = edits.groupby("editor")["success"].agg(list)
    assert success["theirs"] == success["fixed"]


@pytest.mark.slow
def test_requests_decide_what_efficacy_is_claimed(base: Path, tmp_path: Path) -> None:
    nudged(base, tmp_path / "edited")
    case, other = CASES[:2]
    own = EditRequest("{} speaks", "Rome", "", Entity(None, "French"), Entity(None, "Italian"))
    write_table(tmp_path / "cases.parquet", cases_to_table([case, other]))
    job = job_of(base, tmp_path / "edited", data=str(tmp_path / "cases.parquet"), limit=None)
    silent = audit(tmp_path / "silent", job)
    table = pq.read_table(silent / "scores.parquet").to_pandas()
    assert set(table["kind"]) == {"cross_subject"}
    assert set(pq.read_table(silent / "edits.parquet")["status"].to_pylist()) == {"asked only"}
    said = " ".join(report(silent).screen.terminal().split())  # wherever its lines end
    assert "old answer is true of its person and the new one false" in said
    assert "edited person" not in said

    asked = audit(tmp_path / "asked", replace(job, requests=records(tmp_path, case.request, own)))
    table = pq.read_table(asked / "scores.parquet").to_pandas()
    assert set(table[table["kind"] == "efficacy"]["prompt"]) == {case.request.text, own.text}
    assert set(table["case_id"]) == {case.case_id, other.case_id, max(case.case_id, other.case_id) + 1}
    edits = pq.read_table(asked / "edits.parquet").to_pandas().set_index("case_id")
    assert edits.loc[other.case_id, "status"] == "asked only"
    assert edits.loc[case.case_id, "status"] == "ok"
    made = report(asked)
    raised = made.frame[(made.frame["what"] == "raised") & (made.frame["relation"] == "all")]
    assert raised["n_edits"].tolist() == [2]
    assert json.loads((asked / "manifest.json").read_text())["data"]["requests"]["asked"] == 2
    # Nothing is done twice, and other requests are another run.
    before = (asked / "scores.parquet").read_bytes()
    assert audit(asked, replace(job, requests=records(tmp_path, case.request, own)))
    assert (asked / "scores.parquet").read_bytes() == before
    with pytest.raises(SeesawError, match=r"data.requests.*: the folder has"):
        audit(asked, replace(job, requests=records(tmp_path, own)))


def test_cases_take_over_what_the_record_of_their_request_asks() -> None:
    record = replace(CASES[0], paraphrase_prompts=("So it is said that",), case_id=77)
    found = match_requests(CASES, [record, replace(record, request=replace(REQUEST, target_new=Entity(None, "Rome")))])
    assert [case.case_id for case in found.cases] == [*range(9), 9]
    assert found.cases[0].paraphrase_prompts == ("So it is said that",)
    assert found.cases[0].attribute_prompts == CASES[0].attribute_prompts
    assert found.requested == {0, 9}
    asked = [{q.kind for _, qs in unit.questions() for q in qs} for unit in found.units("single")]
    assert asked[:2] == [{"cross_subject", "efficacy", "paraphrase"}, {"cross_subject"}]
    # Without a relation the subject and the new target decide; with one it must be the same.
    assert match_requests(CASES, [replace(record, request=replace(REQUEST, relation_id=""))]).requested == {0}
    assert len(match_requests(CASES, [replace(record, request=replace(REQUEST, relation_id="P20"))]).cases) == 10


@pytest.mark.slow
def test_a_null_that_is_given_takes_the_place_of_drawn_ones(base: Path, tmp_path: Path) -> None:
    model, _ = nudged(base, tmp_path / "mine")
    for name, request in {"null": CASES[1].request, "again": CASES[2].request}.items():
        save_delta(small.Nudge().edit(model, byte_level(bos=False), [request]), tmp_path / name, model)
    nulls = (f"theirs={tmp_path / 'null'}", f"theirs={tmp_path / 'again'}")
    out = audit(tmp_path / "run", replace(job_of(base, tmp_path / "mine"), control_models=nulls))
    manifest = json.loads((out / "manifest.json").read_text())
    assert set(manifest["editors"]) == {"theirs", "random(theirs)", "random(theirs, 2)"}
    assert manifest["edited"]["theirs"]["null"] == "given"
    found = rows_of(out, "random(theirs)")
    with applied(model, load_delta(tmp_path / "null", model)):
        wanted = [score.logprob for score in make_scorer(model, byte_level(bos=False))[0].score(list(found))]
    assert list(found.values()) == pytest.approx(wanted, abs=NATS)


@pytest.mark.slow
def test_edits_are_written_as_whole_models(base: Path, tmp_path: Path) -> None:
    settings = {"ft": {"steps": 1, "layers": [1]}}
    job = job_of(base, "", changed=(), editors=("ft",), controls=("random",), configs=("cross_subject",))
    job = replace(job, editor_config=settings, save_checkpoints=True)
    out = audit(tmp_path / "run", job)
    folders = sorted((out / "checkpoints").glob("*/*"))
    assert [folder.parent.name for folder in folders] == ["ft", "ft"]
    assert len(folders) == int((pq.read_table(out / "edits.parquet").to_pandas()["editor"] == "ft").sum())
    # Each is audited to the scores that its edit had in this run.
    again = audit(tmp_path / "again", job_of(base, folders[0], limit=2, controls=()))
    case_id = int(folders[0].name.split("-")[1])
    table = pq.read_table(out / "scores.parquet").to_pandas()
    ours = table[(table["editor"] == "ft") & (table["phase"] == "post") & (table["case_id"] == case_id)]
    theirs = rows_of(again)
    ours = ours[ours["kind"] == "cross_subject"]
    assert len(ours)
    for row in ours.itertuples():
        assert theirs[Cloze(row.prompt, row.target)] == pytest.approx(row.logprob, abs=NATS)
    kept = (folders[0] / "config.json").stat().st_mtime_ns
    audit(tmp_path / "run", job)
    assert (folders[0] / "config.json").stat().st_mtime_ns == kept


BAD: list[tuple[dict[str, str], str]] = [
    ({"changed": "folder"}, r"audit: changed: got 'folder', expected NAME=FOLDER or NAME=ORG/NAME"),
    ({"changed": "../x=folder"}, "of 1 to 64 ASCII letters"),
    ({"changed": "memit=folder"}, "'memit' is that of another model, an editor or a control"),
    ({"changed": "random-a={edited}"}, "'random-a' is that of another model"),  # the folder of a control
    ({"changed": "unedited={edited}"}, "'unedited' is that of another model"),
    ({"changed": "a={edited} a={edited}"}, "the name 'a' is that of another model"),
    ({"changed": "a=no/such"}, "no/such: no such folder, and the Hub gives no model of that id"),
    ({"changed": "a=/no/such"}, "audit: changed: a=/no/such: no such file or folder"),
    ({"controls": "identity"}, r"audit: control is identity, and a model that is edited al"),
    ({"control_models": "theirs"}, r"audit: control_model: got 'theirs', expected NAME=FOLDER"),
    ({"control_models": "other=x"}, r"unknown changed model, for NAME=WHERE of its control, 'other'"),
]


@pytest.fixture(scope="module")
def edited(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint after an edit."""
    folder = tmp_path_factory.mktemp("edited")
    nudged(base, folder)
    return folder


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_bad_input_is_said_before_weights_are_loaded(
    changes: dict[str, str], message: str, base: Path, edited: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seesaw_cf.run.job.load_model", lambda *_, **__: pytest.fail("the weights were loaded"))
    words = {name: tuple(text.format(edited=edited).split()) for name, text in changes.items()}
    with pytest.raises(SeesawError, match=message):
        make_run(job_of(base, edited, **{"controls": (), **words}), tmp_path / "run")


def test_requests_need_a_changed_model(tmp_path: Path) -> None:
    job = Job("seesaw-tiny", editors=("ft",), data="sample", limit=1, requests=records(tmp_path, REQUEST))
    with pytest.raises(SeesawError, match=r"audit: requests is .*requests.json, .* Name one as `changed`"):
        make_run(job, tmp_path / "run")


def test_a_changed_model_has_its_null_unless_none_is_asked_for() -> None:
    job = Job("seesaw-tiny", changed=("a=b",))
    assert job.changed_controls == replace(job, controls=("random",)).changed_controls == ("random",)
    assert replace(job, controls=("none",)).changed_controls == ()
    both = Job("seesaw-tiny", editors=("ft",), changed=("a=b",))
    assert both.editor_controls == both.changed_controls == ("random",)
    assert Job("seesaw-tiny", editors=("ft",), controls=("random",)).changed_controls == ()
    with pytest.raises(SeesawError, match=r"control is \['none', 'random'\], expected none alone"):
        Job("seesaw-tiny", controls=("none", "random"), changed=("a=b",))
