"""Models that somebody else edited, under the questions of a run: the law, requests, controls, reports, bad input."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.tables import write_table
from seesaw_cf.errors import SeesawError
from seesaw_cf.models import applied, load_model
from seesaw_cf.models.changed import norms_between
from seesaw_cf.models.identity import fingerprint
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.records.arrow import cases_to_table
from seesaw_cf.report import report
from seesaw_cf.run.external import find_external, match_requests, read_external
from seesaw_cf.run.job import make_run, run_job
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.runner import Run
from seesaw_cf.scoring import HFScorer, make_scorer
from seesaw_cf.sharing import load_delta, save_delta
from seesaw_cf.types import Case, Cloze, EditRequest, Entity
from tests.runner import small
from tests.tokenizer_styles import byte_level

NATS = 1e-4
"""Of float32: what two ways to write the same edit may differ by, as for adapters (`seesaw_cf.models.adapters`)."""
CASES = small.cases()
REQUEST = CASES[0].request


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A base with a tokenizer, as a folder."""
    where = tmp_path_factory.mktemp("base")
    small.model().save_pretrained(where)
    byte_level(bos=False).save_pretrained(where)
    return where


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
    return Job(
        str(model),
        **{
            "changed": (f"theirs={edited}",),
            "data": "sample",
            "device": "cpu",
            "limit": 2,
            "controls": ("none",),
            **changes,
        },
    )


def audit(out: Path, job: Job, **options: Any) -> Path:
    run_job(job, out, progress=False, **options)
    return out


def same(found: dict[Cloze, float], scorer: Any) -> None:
    """The audit's scores are those of another model, to rounding."""
    wanted = [score.logprob for score in scorer.score(list(found))]
    assert np.abs(np.array(wanted) - list(found.values())).max() < NATS


def check_law(out: Path, edited: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    found, before = rows_of(out), rows_of(out, phase="pre")
    assert found.keys() == before.keys()
    assert max(abs(found[cloze] - before[cloze]) for cloze in found) > 100 * NATS  # something changed at all
    same(found, make_scorer(edited, tokenizer, "auto", None, None)[0])


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
    job = job_of(base, tmp_path / "edited", data=str(_data(tmp_path, case, other)), limit=None)
    silent = audit(tmp_path / "silent", job)
    table = pq.read_table(silent / "scores.parquet").to_pandas()
    assert set(table["kind"]) == {"cross_subject"}
    assert set(pq.read_table(silent / "edits.parquet")["status"].to_pylist()) == {"asked only"}
    screen = report(silent).screen
    assert screen.about.endswith("against theirs: 2 facts asked; 4 others asked")
    assert not any("likelier" in note for note in screen.notes)
    assert screen.finding[0].startswith("The model theirs: nothing that was asked is shown to be worse")

    asked = audit(tmp_path / "asked", replace(job, requests=records(tmp_path, case.request, own)))
    table = pq.read_table(asked / "scores.parquet").to_pandas()
    efficacy = table[table["kind"] == "efficacy"]
    assert set(efficacy["prompt"]) == {case.request.text, own.text}
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


def _data(folder: Path, *cases: Case) -> Path:
    write_table(folder / "cases.parquet", cases_to_table(cases))
    return folder / "cases.parquet"


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
    bare = replace(record, request=replace(REQUEST, relation_id=""))
    assert match_requests(CASES, [bare]).requested == {0}
    assert len(match_requests(CASES, [replace(record, request=replace(REQUEST, relation_id="P20"))]).cases) == 10


@pytest.mark.slow
def test_a_random_control_has_the_norms_and_ranks_of_the_checkpoint(base: Path, tmp_path: Path) -> None:
    nudged(base, tmp_path / "edited")
    job = job_of(base, tmp_path / "edited", controls=("random",), data=str(_data(tmp_path, *CASES[:3])))
    run = make_run(job, tmp_path / "run")
    norm = norms_between(run.model, run.external["theirs"].load().model)
    drawn = run.external["random(theirs)"].load().model
    assert norms_between(run.model, drawn) == pytest.approx(norm)
    run.complete()
    made = report(tmp_path / "run")
    assert made.run.editors == ["theirs", "random(theirs)"]
    assert set(made.frame.loc[made.frame["what"] == "beyond", "control"]) == {"random(theirs)"}
    seeded = tmp_path / "seed.json"
    seeded.write_text('{"random": {"seed": 3}}')
    other = make_run(replace(job, editor_config=seeded), tmp_path / "other").external["random(theirs)"]
    assert other.config["seed"] == 3
    again = other.load().model.get_parameter(small.PARAMETER)
    assert not torch.equal(again, drawn.get_parameter(small.PARAMETER))


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
    with applied(model, load_delta(tmp_path / "null", model)):
        same(rows_of(out, "random(theirs)"), make_scorer(model, byte_level(bos=False))[0])


@pytest.mark.slow
def test_edits_are_written_as_whole_models(base: Path, tmp_path: Path) -> None:
    config = tmp_path / "editors.json"
    config.write_text(json.dumps({"ft": {"steps": 1, "layers": [1]}}))
    job = Job(
        str(base),
        editors=("ft",),
        configs=("cross_subject",),
        controls=("random",),
        data="sample",
        device="cpu",
        limit=2,
        editor_config=config,
        checkpoints=True,
    )
    out = audit(tmp_path / "run", job)
    folders = sorted((out / "checkpoints").glob("*/*"))
    assert [folder.parent.name for folder in folders] == ["ft", "ft"]
    units = pq.read_table(out / "edits.parquet").to_pandas()
    assert len(folders) == int((units["editor"] == "ft").sum())
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


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no name": ({"changed": ("folder",)}, r"--changed: got 'folder', expected NAME=FOLDER or NAME=ORG/NAME"),
    "an empty name": ({"changed": ("=folder",)}, "expected NAME=FOLDER"),
    "a name that is a path": ({"changed": ("../x=folder",)}, "of 1 to 64 ASCII letters"),
    "an editor's name": ({"changed": ("memit=folder",)}, "'memit' is that of another model, an editor or a control"),
    "the name of a control's folder": ({"changed": ("random-a={edited}",)}, "'random-a' is that of another model"),
    "the name of the unedited model": ({"changed": ("unedited={edited}",)}, "'unedited' is that of another model"),
    "one name twice": ({"changed": ("a={edited}", "a={edited}")}, "the name 'a' is that of another model"),
    "nothing there": ({"changed": ("a=no/such",)}, "no/such: no such folder, and the Hub gives no model of that id"),
    "a control that must be edited in": ({"controls": ("identity",)}, r"--control identity: a model that is edited al"),
    "an unknown control": ({"controls": ("rndom",)}, "unknown control 'rndom'"),
    "settings for it": ({"settings": {"theirs": {}}}, "unknown editor of this run 'theirs'"),
    "a path that is not there": ({"changed": ("a=/no/such",)}, "--changed a: /no/such: no such file or folder"),
    "a null without a place": ({"control_models": ("theirs",)}, r"--control-model: got 'theirs', expected NAME=FOLDER"),
    "a null of nobody": (
        {"control_models": ("other=x",)},
        r"unknown model of --changed, for --control-model NAME=WHERE, 'other'",
    ),
}


@pytest.mark.parametrize("kind", sorted(BAD))
def test_bad_input_is_said_before_weights_are_loaded(
    kind: str, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nudged(base, tmp_path / "edited")
    monkeypatch.setattr("seesaw_cf.run.job.load_model", lambda *_, **__: pytest.fail("the weights were loaded"))
    changes, message = BAD[kind]
    changes = dict(changes)
    if "settings" in changes:
        (tmp_path / "editors.json").write_text(json.dumps(changes.pop("settings")))
        changes["editor_config"] = tmp_path / "editors.json"
    if "changed" in changes:
        changes["changed"] = tuple(word.format(edited=tmp_path / "edited") for word in changes["changed"])
    options = {"model": str(base), "editors": (), "changed": (f"theirs={tmp_path / 'edited'}",), "limit": 2,
               "data": "sample", "device": "cpu", **changes}  # fmt: skip
    with pytest.raises(SeesawError, match=message):
        make_run(Job(**options), tmp_path / "run")


def test_requests_need_a_model_and_a_run_something_to_audit(tmp_path: Path) -> None:
    with pytest.raises(SeesawError, match="neither an editor nor a changed model, so nothing is audited"):
        Job("seesaw-tiny", editors=())
    job = Job("seesaw-tiny", editors=("ft",), data="sample", limit=1, requests=records(tmp_path, REQUEST))
    with pytest.raises(SeesawError, match=r"--requests .*requests.json: .* none is given. Name one with --changed"):
        make_run(job, tmp_path / "run")


def test_a_changed_model_has_its_null_unless_none_is_asked_for() -> None:
    job = Job("seesaw-tiny", changed=("a=b",))
    assert job.changed_controls == replace(job, controls=("random",)).changed_controls == ("random",)
    assert replace(job, controls=("none",)).changed_controls == ()
    both = Job("seesaw-tiny", editors=("ft",), changed=("a=b",))
    assert both.editor_controls == both.changed_controls == ("random",)
    assert Job("seesaw-tiny", editors=("ft",), controls=("random",)).changed_controls == ()
    with pytest.raises(SeesawError, match=r"controls are \['none', 'random'\], expected none alone"):
        Job("seesaw-tiny", controls=("none", "random"), changed=("a=b",))
