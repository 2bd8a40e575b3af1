"""Coupled Entity Prompts on the paper's own example, drawn small: the Eiffel Tower, the Champ de Mars and Paris."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from seesaw_cf.builder_scripts.build import couples_of
from seesaw_cf.builder_scripts.coupled import Coupled, RecordedClaims, couple
from seesaw_cf.builder_scripts.jobs import BuildOptions
from seesaw_cf.builder_scripts.people import Facts
from seesaw_cf.builder_scripts.seeds import read_seeds
from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.builder_scripts.tables import prompt, prompt_properties
from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError
from seesaw_cf.records import groups
from seesaw_cf.records.load import load_cases, portability
from seesaw_cf.run.questions import questions
from seesaw_cf.types import Case

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
    "requested_rewrite": {
        "prompt": "{} is located in the city of", "relation_id": "P131", "subject": "Eiffel Tower",
        "target_new": {"str": "Rome", "id": "Q220"}, "target_true": {"str": "Paris", "id": "Q90"},
    },
}  # fmt: skip
ZSRE = {
    "subject": "Eiffel Tower", "src": "Which city is Eiffel Tower in?", "pred": "Rome", "alt": "Rome",
    "rephrase": "Where does Eiffel Tower stand?", "answers": ["Paris"], "loc": "nq question: who", "loc_ans": "me",
    "cond": "Rome >> Paris || Which city is Eiffel Tower in?",
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., tuple[list[Coupled], dict[str, int]]]:
    def go(*records: object, world: str = WORLD) -> tuple[list[Coupled], dict[str, int]]:
        (tmp_path / "world.ttl").write_text(world, encoding="utf-8")
        source = StoreSource(tmp_path / "world.ttl")
        facts = Facts(source, BuildOptions())
        found, skipped = couple(facts, RecordedClaims(source, facts), cases(tmp_path, *records))
        return found, dict(skipped)

    return go


def cases(folder: Path, *records: object) -> list[Case]:
    (folder / "records.json").write_text(json.dumps(records), encoding="utf-8")
    return read_seeds([folder / "records.json"])


def test_the_papers_example(run: Callable[..., tuple[list[Coupled], dict[str, int]]]) -> None:
    ((row,), skipped) = run(COUNTERFACT)
    assert skipped == {}
    assert row.edit.subject.id == "Q243", "of two towers of that name the one in Paris"
    assert row.edit.namesakes == 2
    assert (row.related.entity.id, row.related.entity.label) == ("Q2", "Champ de Mars")
    # Links to the tower: location and has part; to Paris: city. France has one each. 2 * 1 pairs against 1 * 1.
    assert row.links == 2
    assert row.shared == 2, "city Paris and country France"
    assert row.subject.truths == {"P131": ["Q90"], "P17": ["Q142"], "P276": ["Q2"], "P84": ["Q6"]}
    assert row.subject.coupled == {"P131": "target", "P17": "shared", "P276": "other"}
    assert row.related.coupled == {"P131": "target", "P17": "shared", "P527": "other"}


def test_excluded_properties_go_by_identifier(run: Callable[..., tuple[list[Coupled], dict[str, int]]]) -> None:
    ((row,), _) = run(COUNTERFACT)
    assert {"P31", "P1889"} <= set(groups.table("excluded_properties"))
    assert not {"P31", "P1889"} & set(row.subject.truths)
    renamed = WORLD.replace('"architect"@en', '"operating list"@en')
    ((row,), _) = run(COUNTERFACT, world=renamed)
    assert "P84" in row.subject.truths, "words in a label exclude nothing"


def test_values_that_are_no_entities_are_left_out(run: Callable[..., tuple[list[Coupled], dict[str, int]]]) -> None:
    """Wikidata gives addresses of mailboxes (P968) as IRIs too."""
    mail = "wd:Q243 wdt:P968 <mailto:tower@example.org> ."
    ((row,), _) = run(COUNTERFACT, world=f'{WORLD}{mail} wd:P968 rdfs:label "email address"@en .')
    ((plain,), _) = run(COUNTERFACT)
    assert row.subject.truths == plain.subject.truths


def test_prompts_name_coupled_properties_first_and_no_values(
    run: Callable[..., tuple[list[Coupled], dict[str, int]]],
) -> None:
    ((row,), _) = run(COUNTERFACT)
    labels = {"P131": "city", "P17": "country", "P276": "location", "P84": "architect", "P527": "has part",
              "P793": "significant event"}  # fmt: skip
    own = [labels[name] for name in prompt_properties(row.subject, labels, whole=True)]
    assert own == ["location", "city", "country", "architect"]
    other = [labels[name] for name in prompt_properties(row.related, labels, whole=False)]
    assert other == ["has part", "city", "country"]
    assert prompt("essay", "Eiffel Tower", own) == (
        "Write an essay about Eiffel Tower\nInclude the following information:"
        "\n- location\n- city\n- country\n- architect"
    )
    assert prompt("article", "Champ de Mars", other[:1]) == (
        "Write an article about Champ de Mars. You must work the following information into the article:\n- has part"
    )


def test_zsre_makes_a_factual_and_a_counterfactual_edit(
    run: Callable[..., tuple[list[Coupled], dict[str, int]]],
) -> None:
    (rows, _) = run(ZSRE)
    assert [row.edit.kind for row in rows] == ["factual", "counterfactual"]
    assert [row.edit.case.request.target_new.label for row in rows] == ["Paris", "Rome"]
    assert {row.edit.truth.id for row in rows} == {"Q90"}, "of two cities of that name the one the tower names"
    assert {row.related.entity.id for row in rows} == {"Q2"}
    (rows, _) = run(ZSRE | {"alt": "Paris"})
    assert [row.edit.kind for row in rows] == ["factual"]
    (rows, _) = run(ZSRE | {"pred": "Lyon"})
    assert [row.edit.case.request.target_true.label for row in rows] == ["Lyon", "Paris"], "believed, and true"
    (rows, _) = run(ZSRE | {"pred": "Paris"})
    assert rows[0].edit.case.request.target_true.label == "", "a prediction that is right is no old answer"


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
    run: Callable[..., tuple[list[Coupled], dict[str, int]]],
    record: dict[str, object],
    factual: list[str],
    counterfactual: list[str],
) -> None:
    """EasyEdit's answers follow from zsRE's `alt`, so that they say nothing about the factual edit."""
    (rows, _) = run(ZSRE | record)
    answers = {row.edit.kind: [answer for _, (answer,) in portability(row.edit.case)] for row in rows}
    assert answers == {"factual": factual, "counterfactual": counterfactual}


def test_what_has_no_couple_is_counted(run: Callable[..., tuple[list[Coupled], dict[str, int]]]) -> None:
    rewrite = COUNTERFACT["requested_rewrite"]
    assert isinstance(rewrite, dict)
    unknown = COUNTERFACT | {"case_id": 5, "requested_rewrite": rewrite | {"subject": "No \\ Such"}}
    lonely = COUNTERFACT | {"case_id": 6, "requested_rewrite": rewrite | {"target_true": {"str": "Texas", "id": "Q99"}}}
    missing = ZSRE | {"answers": ["Atlantis"], "alt": ""}
    assert run(unknown, lonely)[1] == {"subject not found": 1, "no related entity": 1}
    assert run(missing)[1] == {"old target not found": 1}


def test_entities_that_link_to_themselves_or_in_a_circle(
    run: Callable[..., tuple[list[Coupled], dict[str, int]]],
) -> None:
    """The tower is part of itself, and field and museum are parts of each other; nothing is coupled with itself."""
    circle = "wd:Q243 wdt:P276 wd:Q243, wd:Q90 . wd:Q2 wdt:P276 wd:Q3 . wd:Q3 wdt:P276 wd:Q2 .\n"
    ((row,), skipped) = run(COUNTERFACT, world=WORLD + circle)
    assert (row.related.entity.id, skipped) == ("Q2", {})
    assert row.subject.truths["P276"] == ["Q2", "Q243", "Q90"]


def test_every_file_of_edits_has_its_digest(tmp_path: Path) -> None:
    (tmp_path / "world.ttl").write_text(WORLD, encoding="utf-8")
    files = [tmp_path / name / "records.json" for name in ("one", "two")]
    for number, file in enumerate(files):
        file.parent.mkdir()
        file.write_text(json.dumps([COUNTERFACT | {"case_id": number}]), encoding="utf-8")
    options = {"--source": "world.ttl", "--cache": "cache", "--out": "out"}
    words = [word for name, file in options.items() for word in (name, str(tmp_path / file))]
    assert main(["build", *words, "--coupled", *map(str, files), "--coupled-only"]) == 0
    made = json.loads((tmp_path / "out" / "build.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in made["edit_files"]] == ["records.json", "records.json"]
    assert len({row["sha256"] for row in made["edit_files"]}) == 2


def test_ties_have_a_fixed_order(run: Callable[..., tuple[list[Coupled], dict[str, int]]]) -> None:
    """Without the field, museum and France tie with one link each; the museum shares more with the tower."""
    without = WORLD.replace("wdt:P276 wd:Q2 ;", "").replace("wdt:P527 wd:Q243 ;", "")
    found = {run(COUNTERFACT, world=without)[0][0].related.entity.id for _ in range(3)}
    assert found == {"Q3"}


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
    assert row["subject_entity"]["properties"] == ["location", "city", "country", "architect"]
    assert row["related_entity"]["essay"].startswith("Write an essay about Champ de Mars\n")
    assert row["paraphrase_prompts"] == COUNTERFACT["paraphrase_prompts"]
    rows = pq.read_table(tmp_path / "one" / "data" / "coupled_zsre").to_pylist()
    assert [(row["kind"], row["requested_rewrite"]["target_new"]) for row in rows] == [
        ("factual", {"str": "Paris", "id": "Q90"}),
        ("counterfactual", {"str": "Rome", "id": None}),
    ]
    assert rows[1]["requested_rewrite"]["target_true"] == {"str": "Paris", "id": "Q90"}
    cases_read = load_cases(str(tmp_path / "one"), "coupled_zsre")
    consequences = [
        [(q.prompt.text, q.target) for q in questions(case) if q.kind == "portability"] for case in cases_read
    ]
    assert consequences == [[], [("Of which country?", "Italy")]], "they survive into what a run asks"
    asked = questions(cases_read[0])
    near = {one.role: one.target for one in asked if one.kind == "neighborhood"}
    assert near == {"target_new": "Paris", "target_true": "me"}, "specificity compares with zsRE's own answer"


def test_nothing_coupled_at_all_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "world.ttl").write_text(PREFIXES, encoding="utf-8")
    source = StoreSource(tmp_path / "world.ttl")
    facts = Facts(source, BuildOptions())
    with pytest.raises(RecordError, match=r"no coupled edits: of 1 records none has a related entity"):
        couples_of(source, facts, cases(tmp_path, COUNTERFACT))
