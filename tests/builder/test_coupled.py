"""Coupled Entity Prompts on the paper's own example, drawn small: the Eiffel Tower, the Champ de Mars and Paris."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from seesaw_cf.builder_scripts import BuildOptions
from seesaw_cf.builder_scripts.coupled import CoupledRow, couple
from seesaw_cf.builder_scripts.edits import read_seeds
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.cli import main
from seesaw_cf.records.load import load_cases
from seesaw_cf.run.questions import questions
from seesaw_cf.types import Case
from tests.records.samples import rewrite

from .conftest import PREFIXES

# Q243 tower, Q2 field, Q3 museum, Q90 Paris, Q142 France, Q5 tower in Texas, Q6 somebody; P131 city, P276 location.
WORLD = (
    PREFIXES
    + """
wd:Q243 rdfs:label "Eiffel Tower"@en ; wikibase:sitelinks 200 ;
  wdt:P131 wd:Q90 ; wdt:P17 wd:Q142 ; wdt:P276 wd:Q2 ; wdt:P84 wd:Q6 ; wdt:P31 wd:Q12518 ; wdt:P1889 wd:Q5 .
wd:Q5 rdfs:label "Eiffel Tower"@en ; wikibase:sitelinks 3 ; wdt:P131 wd:Q99 ; wdt:P17 wd:Q30 .
wd:Q2 rdfs:label "Champ de Mars"@en ; wdt:P131 wd:Q90 ; wdt:P17 wd:Q142 ; wdt:P527 wd:Q243 ; wdt:P793 wd:Q77 .
wd:Q3 rdfs:label "Museum"@en ; wdt:P131 wd:Q90 ; wdt:P180 wd:Q243 .
wd:Q4 wdt:P131 wd:Q90 ; wdt:P180 wd:Q243 .
wd:Q90 rdfs:label "Paris"@en ; wikibase:sitelinks 300 . wd:Q142 rdfs:label "France"@en ; wdt:P36 wd:Q90 .
wd:Q91 rdfs:label "Paris"@en ; wikibase:sitelinks 5 . wd:Q6 rdfs:label "Stephen Sauvestre"@en .
wd:Q77 rdfs:label "Exposition"@en . wd:Q220 rdfs:label "Rome"@en . wd:Q99 rdfs:label "Texas"@en .
wd:Q12518 rdfs:label "tower"@en .
wd:P131 rdfs:label "city"@en . wd:P17 rdfs:label "country"@en . wd:P276 rdfs:label "location"@en .
wd:P84 rdfs:label "architect"@en . wd:P527 rdfs:label "has part"@en . wd:P793 rdfs:label "significant event"@en .
wd:P180 rdfs:label "depicts"@en . wd:P36 rdfs:label "capital"@en . wd:P31 rdfs:label "instance of"@en .
"""
)
COUNTERFACT = {
    "case_id": 0, "pararel_idx": 1, "paraphrase_prompts": ["Where is it? Eiffel Tower is in"],
    "neighborhood_prompts": [], "attribute_prompts": [], "generation_prompts": [],
    "requested_rewrite": rewrite(
        "Eiffel Tower", "{} is located in the city of", "P131", ("Rome", "Q220"), ("Paris", "Q90")
    ),
}  # fmt: skip
ZSRE = {
    "subject": "Eiffel Tower", "src": "Which city is Eiffel Tower in?", "pred": "Rome", "alt": "Rome",
    "rephrase": "Where does Eiffel Tower stand?", "answers": ["Paris"], "loc": "nq question: who", "loc_ans": "me",
    "cond": "Rome >> Paris || Which city is Eiffel Tower in?",
}  # fmt: skip


Run = Callable[..., tuple[list[CoupledRow], dict[str, int]]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def go(*records: object, world: str = WORLD) -> tuple[list[CoupledRow], dict[str, int]]:
        (tmp_path / "world.ttl").write_text(world, encoding="utf-8")
        source = StoreSource(tmp_path / "world.ttl")
        facts = Facts(source, BuildOptions())
        found, skipped = couple(facts, cases(tmp_path, *records))
        return found, dict(skipped)

    return go


def cases(folder: Path, *records: object) -> list[Case]:
    (folder / "records.json").write_text(json.dumps(records), encoding="utf-8")
    return read_seeds([folder / "records.json"])


def truths(row: CoupledRow, side: str) -> dict[str, list[str]]:
    return {fact["property_id"]: [value["id"] for value in fact["values"]] for fact in row[side]["ground_truth"]}


def coupled(row: CoupledRow, side: str) -> dict[str, str]:
    return {fact["property_id"]: fact["coupled"] for fact in row[side]["ground_truth"] if fact["coupled"]}


def test_the_papers_example(run: Run) -> None:
    ((row,), skipped) = run(COUNTERFACT)
    assert skipped == {}
    assert row["subject_entity"]["entity"]["id"] == "Q243", "of two towers of that name the one in Paris"
    assert row["namesakes"] == 2
    assert row["related_entity"]["entity"] == {"id": "Q2", "str": "Champ de Mars"}
    # Links to the tower: location and has part; to Paris: city. France has one each. 2 * 1 pairs against 1 * 1.
    assert row["links"] == 2
    assert row["shared"] == 2, "city Paris and country France"
    assert truths(row, "subject_entity") == {"P131": ["Q90"], "P17": ["Q142"], "P276": ["Q2"], "P84": ["Q6"]}
    assert coupled(row, "subject_entity") == {"P131": "target", "P17": "shared", "P276": "other"}
    assert coupled(row, "related_entity") == {"P131": "target", "P17": "shared", "P527": "other"}
    assert row["subject_entity"]["essay"] == (
        "Write an essay about Eiffel Tower\nInclude the following information:"
        "\n- location\n- city\n- country\n- architect"
    )
    assert row["related_entity"]["properties"] == ["has part", "city", "country"]
    # Words in a label exclude nothing; Wikidata gives addresses of mailboxes (P968) as IRIs too.
    mail = 'wd:Q243 wdt:P968 <mailto:tower@example.org> . wd:P968 rdfs:label "email address"@en .'
    ((other,), _) = run(COUNTERFACT, world=WORLD.replace('"architect"@en', '"operating list"@en') + mail)
    assert truths(other, "subject_entity") == truths(row, "subject_entity")


def test_entities_in_a_circle_and_ties_have_a_fixed_order(run: Run) -> None:
    """Without the field, museum and France tie with one link each; the museum shares more with the tower."""
    circle = "wd:Q243 wdt:P276 wd:Q243, wd:Q90 . wd:Q2 wdt:P276 wd:Q3 . wd:Q3 wdt:P276 wd:Q2 .\n"
    ((row,), _) = run(COUNTERFACT, world=WORLD + circle)
    assert row["related_entity"]["entity"]["id"] == "Q2", "nothing is coupled with itself"
    assert truths(row, "subject_entity")["P276"] == ["Q2", "Q243", "Q90"]
    without = WORLD.replace("wdt:P276 wd:Q2 ;", "").replace("wdt:P527 wd:Q243 ;", "")
    assert {run(COUNTERFACT, world=without)[0][0]["related_entity"]["entity"]["id"] for _ in range(3)} == {"Q3"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, [("factual", "Paris", "Rome"), ("counterfactual", "Rome", "Paris")]),
        ({"alt": "Paris"}, [("factual", "Paris", "Rome")]),
        ({"pred": "Lyon"}, [("factual", "Paris", "Lyon"), ("counterfactual", "Rome", "Paris")]),
        ({"pred": "Paris"}, [("factual", "Paris", ""), ("counterfactual", "Rome", "Paris")]),
    ],
)
def test_zsre_makes_a_factual_and_a_counterfactual_edit(run: Run, change: Any, expected: list[tuple[str, ...]]) -> None:
    """A prediction that is right is no old answer; of two cities of that name the truth is the one the tower names."""
    rows, _ = run(ZSRE | change)
    rewrites = [(row["kind"], row["requested_rewrite"]) for row in rows]
    assert [(kind, edit["target_new"]["str"], edit["target_true"]["str"]) for kind, edit in rewrites] == expected
    assert {(row["truth"]["id"], row["related_entity"]["entity"]["id"]) for row in rows} == {("Q90", "Q2")}


@pytest.mark.parametrize(
    ("record", "factual", "counterfactual"),
    [
        ({"portability": {"New Question": "Of which country?", "New Answer": "Italy"}}, [], ["Italy"]),
        ({"portability_prompt": "Of which country?", "portability_ground_truth": "Italy"}, [], ["Italy"]),
        (
            {"portability": {name: {"prompt": "Of?", "ground_truth": name} for name in ("answer", "alt")}},
            ["answer"],
            ["alt"],
        ),
    ],
    ids=["easyedit", "flat", "of both"],
)
def test_what_follows_from_an_edit_stays_with_it(
    run: Run, record: dict[str, object], factual: list[str], counterfactual: list[str]
) -> None:
    """EasyEdit's answers follow from zsRE's `alt`, so that they say nothing about the factual edit."""
    answers = {row["kind"]: [pair["ground_truth"] for pair in row["portability"]] for row in run(ZSRE | record)[0]}
    assert answers == {"factual": factual, "counterfactual": counterfactual}


def test_what_has_no_couple_is_counted(run: Run) -> None:
    rewrite: Any = COUNTERFACT["requested_rewrite"]
    unknown = COUNTERFACT | {"case_id": 5, "requested_rewrite": rewrite | {"subject": "No \\ Such"}}
    lonely = COUNTERFACT | {"case_id": 6, "requested_rewrite": rewrite | {"target_true": {"str": "Texas", "id": "Q99"}}}
    missing = ZSRE | {"answers": ["Atlantis"], "alt": ""}
    assert run(unknown, lonely)[1] == {"subject not found": 1, "no related entity": 1}
    assert run(missing)[1] == {"old target not found": 1}


def test_the_config_is_written_described_and_the_same_each_time(tmp_path: Path) -> None:
    from datasets import load_dataset

    (tmp_path / "world.ttl").write_text(WORLD, encoding="utf-8")
    (tmp_path / "counterfact.json").write_text(json.dumps([COUNTERFACT]), encoding="utf-8")
    follows = {"portability": {"New Question": "Of which country?", "New Answer": "Italy"}}
    (tmp_path / "zsre.json").write_text(json.dumps([ZSRE | follows]), encoding="utf-8")
    for out in ("one", "two"):
        options = {"--source": "world.ttl", "--cache": "cache", "--out": out}
        words = [word for name, file in options.items() for word in (name, str(tmp_path / file))]
        records = [str(tmp_path / file) for file in ("counterfact.json", "zsre.json")]
        assert main(["build", *words, "--coupled", *records, "--coupled-only", "--version", "2.0.0"]) == 0
    made = json.loads((tmp_path / "one" / "build.json").read_text(encoding="utf-8"))
    assert made["source"].startswith("store:sha256:")
    card = (tmp_path / "one" / "README.md").read_text(encoding="utf-8")
    assert f"The source is `{made['source']}`" in card
    assert "version: 2.0.0" in card
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert all((tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes() for file in files)
    (row,) = load_dataset(str(tmp_path / "one"), "coupled_counterfact", split="test", cache_dir=str(tmp_path / "hf"))
    assert row["requested_rewrite"]["target_true"] == {"str": "Paris", "id": "Q90"}
    assert row["paraphrase_prompts"] == COUNTERFACT["paraphrase_prompts"]
    rows = pq.read_table(tmp_path / "one" / "data" / "coupled_zsre").to_pylist()
    assert [(row["kind"], row["requested_rewrite"]["target_new"]) for row in rows] == [
        ("factual", {"str": "Paris", "id": "Q90"}),
        ("counterfactual", {"str": "Rome", "id": None}),
    ]
    assert rows[1]["requested_rewrite"]["target_true"] == {"str": "Paris", "id": "Q90"}
    asked = questions(load_cases(str(tmp_path / "one"), "coupled_zsre")[0])
    near = {one.role: one.target for one in asked if one.kind == "neighborhood"}
    assert near == {"target_new": "Paris", "target_true": "me"}, "specificity compares with zsRE's own answer"
