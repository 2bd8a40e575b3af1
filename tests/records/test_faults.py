"""Records as people have them: damaged, of other benchmarks, with keys that nothing reads, with coupled entities."""

import json
import unicodedata
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from seesaw_cf.base.types import ClozeScore
from seesaw_cf.builder_scripts.tag import subject_id
from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError
from seesaw_cf.records import import_files, load_cases, parse_record, read_cases
from seesaw_cf.records.load import locality, portability, unread_keys
from seesaw_cf.run.prepare import data_notes
from seesaw_cf.run.questions import case_rows, questions, score_table
from seesaw_cf.texts.records import read_records
from tests.records import samples

ADA = "Ada Lovelace"
EDIT = {"prompt": f"{ADA} was a citizen of", "subject": ADA, "target_new": "Japan", "ground_truth": "UK"}


def written(path: Path, *records: Any) -> Path:
    path.write_text(json.dumps(records), encoding="utf-8")
    return path


def edit(**changes: object) -> dict[str, object]:
    return {**EDIT, **changes}


def test_bad_records_are_left_out_and_counted_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = [edit(subject="Rio Grande 463"), {"prompt": "x"}, "text", edit(target_new="")]
    file = written(tmp_path / "edits.json", edit(), *bad, edit(target_new="Chile"))
    with pytest.raises(RecordError, match="'Rio Grande 463' is not in prompt"):
        import_files(file, tmp_path / "all")
    assert main(["build", "--records", str(file), "--out", str(tmp_path / "some"), "--skip-bad"]) == 0
    said = capsys.readouterr().out
    assert "4 records of edits.json are left out" in said
    assert said.count("\n- ") == 4
    assert "'Rio Grande 463' is not in prompt" in said
    cases = load_cases(str(tmp_path / "some"), "edits")
    assert [(case.case_id, case.request.target_new.label) for case in cases] == [(0, "Japan"), (5, "Chile")]
    manifest = json.loads((tmp_path / "some" / "import.json").read_text(encoding="utf-8"))
    assert len(manifest["files"][0]["skipped"]) == 4


@pytest.mark.parametrize(
    ("subject", "words"),
    [
        (unicodedata.normalize("NFD", "Frédéric"), "They look alike"),
        ("FRÉDÉRIC", "They differ in capitals"),
        ("Fritz", r"no template can be made\. Correct it"),
    ],
)
def test_why_a_subject_is_not_in_its_prompt(tmp_path: Path, subject: str, words: str) -> None:
    file = written(tmp_path / "edits.json", edit(prompt="Frédéric was a citizen of", subject=subject))
    with pytest.raises(RecordError, match=words):
        read_cases(file)


@pytest.mark.parametrize(
    ("record", "name"),
    [
        ({"case_id": 1, "requested_rewrite": [EDIT], "new_single_hops": [], "questions": []}, "MQuAKE"),
        ({"example_type": "popular", "edit": {"prompt": "x"}, "Relation_Specificity": []}, "RippleEdits"),
        ({"edit": {"prompt": "x"}, "Logical_Generalization": []}, "RippleEdits"),
        ({**EDIT, "rephrase": "x", "perturbed_prompt": "y"}, "QAEdit"),
    ],
)
def test_records_of_other_benchmarks_are_refused_by_name(tmp_path: Path, record: object, name: str) -> None:
    with pytest.raises(RecordError, match=f"a record of {name} .*which is not read"):
        read_cases(written(tmp_path / "other.json", record))


KNOWEDIT = edit(
    ground_truth=["UK", "Great Britain"],
    portability={
        "Subject_Aliasing": [{"prompt": "Countess Lovelace was a citizen of", "ground_truth": [["Japan", "Nippon"]]}]
    },
    locality={
        "Relation_Specificity": [{"prompt": "Ada Lovelace was born in", "ground_truth": [["London"], ["Londres"]]}]
    },
)


def test_every_spelling_of_what_follows_and_of_what_must_stay_is_accepted(tmp_path: Path) -> None:
    (case,) = read_cases(written(tmp_path / "edits.json", KNOWEDIT))
    assert portability(case) == [("Countess Lovelace was a citizen of", ("Japan", "Nippon"))]
    assert locality(case) == [("Ada Lovelace was born in", ("London", "Londres"))]
    assert unread_keys(case) == ["ground_truth: other spellings"]
    asked = list(questions(case))
    before = {q.cloze: score(-1.0 if q.target in ("Londres", "Japan") else -2.0) for q in asked}
    after = {q.cloze: score(-0.5 if q.target in ("London", "Nippon") else -3.0) for q in asked}
    rows = score_table("ft", [(case_rows(case, asked, before), after)]).to_pylist()
    found = {
        (row["kind"], row["phase"]): row["target"] for row in rows if row["kind"] in ("portability", "neighborhood")
    }
    assert found == {
        ("portability", "pre"): "Japan",
        ("portability", "post"): "Nippon",
        ("neighborhood", "pre"): "Londres",
        ("neighborhood", "post"): "Londres",
    }
    assert len(rows) == 2 * len({(q.kind, q.prompt_id, q.role) for q in asked})
    summary = import_files(tmp_path / "edits.json", tmp_path / "out")
    assert summary.files["edits"].numbers["portability and locality prompts"] == (2,)


def score(logprob: float) -> ClozeScore:
    return ClozeScore(logprob, 1, False)


def test_a_kind_of_prompts_that_cannot_be_asked_is_said() -> None:
    kinds = {"Reasoning": [{"prompt": "Ada's capital is", "ground_truth": "Tokyo"}], "Empty": [], "Odd": 7}
    kinds["Unanswered"] = {"prompt": ["x is"], "ground_truth": [None]}
    assert unread_keys(parse_record(edit(portability=kinds))) == ["portability: Odd", "portability: Unanswered"]
    assert unread_keys(parse_record(edit(portability=kinds["Reasoning"]))) == []


def test_keys_that_nothing_reads_are_said(tmp_path: Path) -> None:
    records = [edit(source="web", portability="?"), edit(target_new="Chile", source="web")]
    file = written(tmp_path / "edits.json", *records)
    summary = import_files(file, tmp_path / "out")
    assert summary.files["edits"].notes == {"key source, not read": 2, "key portability, not read": 1}
    assert "| key source, not read" in summary.to_markdown()
    said = " ".join(data_notes(read_cases(file)))
    assert "The key 'source' of 2 of 2 records is not read: nothing of it is asked." in said


_ESSAY = "Write an essay about {}\nInclude the following information:\n- {}"
_FIELD = {
    "entity": "Champ de Mars",
    "entity_id": "Q217925",
    "coupled_prompt": _ESSAY.format("Champ de Mars", "country"),
    "mutual_properties": [],
    "target_true_as_object": [],
    "subject_as_object": ["significant place"],
    "overlap_properties": ["country"],
    "overlapping_ground_truth": {"country": ["France"]},
    "not_overlapping_ground_truth": {"significant place": ["Eiffel Tower"]},
}
COUPLED = {
    "subject_entity": {
        "entity": "Eiffel Tower",
        "entity_id": "Q243",
        "properties": ["architect", "country"],
        "coupled_prompt": _ESSAY.format("Eiffel Tower", "architect"),
        "ground_truth": {"architect": ["Stephen Sauvestre"], "country": ["France"]},
    },
    "coupled_entities": [_FIELD],
    "coupled_properties_count": 2,
}
REWRITE = samples.rewrite("Eiffel Tower", "{} is in the city of", "P131", ("Rome", "Q220"), ("Paris", "Q90"))
FORMS: dict[str, dict[str, Any]] = {
    "counterfact": {"case_id": 3, "requested_rewrite": REWRITE, "paraphrase_prompts": [], "neighborhood_prompts": []},
    "zsre": samples.ZSRE
    | {"subject": "Eiffel Tower", "src": "Where is Eiffel Tower?", "answers": ["Paris"], "pred": "Lyon", "alt": "Rome"},
}


@pytest.mark.parametrize("key", ["coupled_prompts_and_properties", "dependancies"])
@pytest.mark.parametrize("form", FORMS)
def test_the_authors_coupled_records_are_read_in_both_forms(tmp_path: Path, form: str, key: str) -> None:
    file = written(tmp_path / "coupled.json", {**FORMS[form], key: COUPLED})
    (case,) = read_cases(file)
    assert (case.record_format, subject_id(case), unread_keys(case)) == (form, "Q243", [])
    import_files(file, tmp_path / "out")
    for source in (file, tmp_path / "out"):
        ((row,),) = read_records(str(source), ["coupled"]).values()
        edited, subject, related = row["requested_rewrite"], row["subject_entity"], row["related_entity"]
        assert (edited["target_true"]["str"], edited["target_new"]["str"]) == ("Paris", "Rome")
        assert subject is not None
        assert related is not None
        assert (subject["entity"] or {}).get("id") == "Q243"
        assert str(subject["essay"]).endswith("- architect")
        facts = {fact["property"]: [value["str"] for value in fact["values"]] for fact in related["ground_truth"] or ()}
        assert facts == {"country": ["France"], "significant place": ["Eiffel Tower"]}


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_the_authors_coupled_records_run_and_are_tagged(tmp_path: Path, form: str) -> None:
    file, facts = written(tmp_path / "coupled.json", {**FORMS[form], "dependancies": COUPLED}), tmp_path / "facts.ttl"
    words = ["seesaw-tiny", "--editor", "ft", "--data", str(file), "--control", "none", "--quiet"]
    assert main(["audit", *words, "--out", str(tmp_path / "run")]) == 0
    wikidata = "http://www.wikidata.org"
    facts.write_text(f"<{wikidata}/entity/Q243> <{wikidata}/prop/direct/P31> <{wikidata}/entity/Q90> .\n")
    folders = ["--cache", str(tmp_path / "cache"), "--out", str(tmp_path / "tagged")]
    assert main(["tag", str(file), "--source", str(facts), *folders]) == 0
    (rows,) = (tmp_path / "tagged").glob("data/tag_facts/*.parquet")
    assert pq.read_table(rows)["person"].to_pylist() == ["Q243"]
