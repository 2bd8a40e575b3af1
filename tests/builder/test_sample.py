"""The embedded sample: rebuilt byte by byte, loaded without network, checked against sources not used to write it."""

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmarks import sample_checks as checks
from seesaw_cf.builder_scripts import BuildJob
from seesaw_cf.builder_scripts.build import run_build
from seesaw_cf.builder_scripts.dataset import CONFIGS
from seesaw_cf.builder_scripts.embedded import COLUMNS, FOLDER, QUESTIONS, full_id, origins, read_tsv, render
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sparql import entity_iri
from seesaw_cf.records import load as sample
from seesaw_cf.records import load_cases
from seesaw_cf.records.groups import RACES, REGIONS
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.run.prepare import data_notes
from tests import fresh
from tests.builder.embedded import AREAS, check_embedded, small_tables

ROOT = Path(__file__).resolve().parents[2]
ALL = (*CONFIGS, "coupled_counterfact", "coupled_zsre")
NO_NETWORK = """
import socket
def refuse(*args, **kwargs): raise OSError("network refused by the test")
socket.socket.connect = socket.create_connection = socket.getaddrinfo = refuse
"""


def test_card_and_dataset_card_are_the_same() -> None:
    assert (ROOT / "dataset_card.md").read_bytes() == (ROOT / "seesaw_cf" / "README.md").read_bytes()


def test_the_yaml_describes_the_files_so_that_no_stale_cache_is_served() -> None:
    """`datasets` keys its cache on this YAML: other rows must mean another text."""
    from huggingface_hub import DatasetCard

    from seesaw_cf.records.card import content_hash

    header = DatasetCard.load(sample.path() / "README.md").data.to_dict()
    configs = {entry["config_name"]: entry for entry in header["configs"]}
    infos = {entry["config_name"]: entry for entry in header["dataset_info"]}
    assert set(configs) == set(infos) == set(ALL) == set(sample.configs())
    assert [name for name, entry in configs.items() if entry.get("default")] == ["cross_subject"]
    for name in ALL:
        files = [*(sample.path() / "data" / name).glob("*.parquet")]
        assert content_hash(files) in configs[name]["description"]
        assert infos[name]["splits"][0]["num_examples"] == sum(pq.read_metadata(path).num_rows for path in files)


def _run(code: str, cwd: Path, cache: Path) -> str:
    env = {key: value for key, value in os.environ.items() if key not in {"HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"}}
    env |= {"HF_HOME": str(cache)}
    return fresh.python("-c", NO_NETWORK + code, cwd=cwd, env=env).stdout


@pytest.mark.slow
def test_load_dataset_by_name_from_the_checkout_with_the_network_refused(tmp_path: Path) -> None:
    code = """
from datasets import load_dataset
for name in ("cross_subject", "cross_property", "open_ended", "candidates", "demographics", "coupled_counterfact"):
    rows = load_dataset("seesaw_cf", name, split="test")
    streamed = load_dataset("seesaw_cf", name, split="test", streaming=True)
    assert list(streamed) == list(rows), name  # read to its end: a thread of pyarrow outlives half
    print(name, rows.num_rows)
"""
    out = _run(code, ROOT, tmp_path)
    counts = dict(line.rsplit(" ", 1) for line in out.splitlines())
    assert int(counts["cross_subject"]) >= 400
    assert int(counts["cross_property"]) >= 120


def test_coupled_edits_of_the_sample_are_about_two_people_who_are_linked() -> None:
    path = sample.path() / "data" / "coupled_counterfact" / "test-00000-of-00001.parquet"
    assert path.stat().st_size < 100_000
    rows = pq.read_table(path).to_pylist()
    names = {row["name"] for row in read_tsv(FOLDER / "people.tsv")}
    linked = {frozenset((row["name"], row["other"])) for row in read_tsv(FOLDER / "links.tsv")}
    genders = {row["name"]: row["gender"] for row in read_tsv(FOLDER / "people.tsv")}
    edits = [(row["requested_rewrite"]["relation_id"], row["subject_entity"]["entity"]["str"]) for row in rows]
    counts = Counter((relation, genders[name]) for relation, name in edits)
    assert counts == dict.fromkeys(product(RELATIONS, ("female", "male")), 6)
    for row in rows:
        sides = [row["subject_entity"], row["related_entity"]]
        assert frozenset(side["entity"]["str"] for side in sides) in linked
        assert {side["entity"]["str"] for side in sides} <= names
        held = [
            {fact["property_id"]: {value["id"] for value in fact["values"]} for fact in side["ground_truth"]}
            for side in sides
        ]
        edited, truth = row["requested_rewrite"]["relation_id"], row["truth"]["id"]
        assert truth in held[0][edited]
        assert any(truth in values for values in held[1].values()), "the related entity has the old target too"
        assert row["requested_rewrite"]["target_new"]["id"] not in held[0][edited]
        assert row["neighborhood_prompts"], "locality can be measured"
    assert {row["requested_rewrite"]["relation_id"] for row in rows if row["portability"]} == {"P19", "P27", "P101"}


def test_the_factual_setting_of_the_sample_corrects_what_a_model_said() -> None:
    records = {record["case_id"]: record for record in json.loads(QUESTIONS.read_text(encoding="utf-8"))}
    rows = pq.read_table(sample.path() / "data" / "coupled_zsre").to_pylist()
    assert len(rows) == 2 * len(records)
    for row in rows:
        record, rewrite = records[row["case_id"] // 2], row["requested_rewrite"]
        new, true = rewrite["target_new"]["str"], rewrite["target_true"]["str"]
        factual = row["kind"] == "factual"
        answer, predicted, alternative = record["answers"][0], record["pred"], record["alt"]
        assert (new, true) == ((answer, predicted) if factual else (alternative, answer))
        assert row["truth"]["str"] == answer
        held = {value["str"] for fact in row["subject_entity"]["ground_truth"] for value in fact["values"]}
        assert (new in held) == factual, "a factual edit writes what is recorded"
        assert (row["neighborhood_prompts"], row["loc_ans"]) == ([record["loc"]], record["loc_ans"])


NAME = "test-00000-of-00001.parquet"


@pytest.mark.slow(60)
@pytest.mark.exhaustive
def test_the_build_reproduces_the_embedded_bytes(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run_build(BuildJob(), out)
    (out / "build.json").unlink()
    files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert len(files) == len(sample.configs()) + 1
    check_embedded(out, files)
    assert data_notes(load_cases("sample", "cross_subject")) == []


SOME, VALUES, LINKS = small_tables()
TEXT = render(SOME, VALUES, LINKS)


def test_everybody_arrives_in_the_store_with_every_value(facts: Facts) -> None:
    found = {person.entity.label: person for person in facts.everyone()}
    assert sorted(found) == sorted(row["name"] for row in SOME)
    columns = {"citizenship": "P27", "birth_place": "P19", "native_language": "P103", "field_of_work": "P101"}
    for row in SOME:
        for column, property_id in columns.items():
            labels = facts.labels(found[row["name"]].holds(property_id))
            assert sorted(labels.values()) == sorted(filter(None, row[column].split("|"))), row["name"]
        assert found[row["name"]].living is (not row["death_year"])


def test_every_fact_has_a_statement_with_a_reference(facts: Facts) -> None:
    assert all(facts.references(person.id for person in facts.everyone()).values())
    statements = TEXT.count("<http://www.wikidata.org/prop/statement/P")
    assert statements == TEXT.count("<http://www.w3.org/ns/prov#wasDerivedFrom>")
    people = "".join(
        line + "\n" for line in TEXT.splitlines() if "/prop/direct/P31>" not in line and "P17>" not in line
    )
    assert statements == people.count("<http://www.wikidata.org/prop/direct/P")


def test_links_are_seen_from_both_sides() -> None:
    first = next(row for row in LINKS if row["property"] == "P25")
    ids = {row["name"]: full_id(row["iri"]) for row in SOME}
    text = render(SOME, VALUES, [first])
    for one, name, other in ((first["name"], "P25", first["other"]), (first["other"], "P40", first["name"])):
        assert f"<{entity_iri(ids[one])}> <{entity_iri(name)}> <{entity_iri(ids[other])}> .\n" in text


RELEASED = Path(__file__).resolve().parents[3] / "shared" / "reference" / "seesaw"
PEOPLE = read_tsv(FOLDER / "people.tsv")
LARGE = PEOPLE[320:]  # the first ones, of the earliest sample, have other origins too
ENTITIES = {(row["kind"], row["label"]): row for row in read_tsv(FOLDER / "entities.tsv")}
SETTLED = read_tsv(checks.SETTLED)
CURATED = "curated from general encyclopaedic knowledge, 2026"


def cells(row: dict[str, str], column: str) -> list[str]:
    return row[column].split("|") if row[column] else []


def test_nobody_and_nothing_is_there_twice() -> None:
    assert len({row["name"] for row in PEOPLE}) == len({row["iri"] for row in PEOPLE}) == len(PEOPLE)
    names = [row["name"] for row in PEOPLE]
    assert [(name, other) for name in names for other in names if name != other and name in other] == []
    assert len({row["iri"] for row in ENTITIES.values()}) == len(ENTITIES)
    assert not {row["iri"] for row in PEOPLE} & {row["iri"] for row in ENTITIES.values()}


def test_every_value_has_one_origin_and_no_cell_is_odd() -> None:
    for row in PEOPLE:
        assert all(cell == cell.strip() for value in row.values() for cell in value.split("|")), row
        assert set(origins(row)) == {id for column, (id, _) in COLUMNS.items() if row[column]}, row
        assert all(len(set(cells(row, column))) == len(cells(row, column)) for column in COLUMNS), row
        assert len(cells(row, "birth_place")) <= 1, row
        if row["birth_year"] and row["death_year"]:
            assert 15 <= int(row["death_year"]) - int(row["birth_year"]) <= 115, row


def test_labels_are_entities_and_every_entity_of_its_own_is_in_use() -> None:
    held = {
        (kind, cell) for row in PEOPLE for column, (_, kind) in COLUMNS.items() if kind for cell in cells(row, column)
    }
    assert held <= set(ENTITIES)
    countries = {("country", name) for row in ENTITIES.values() for name in cells(row, "country")}
    assert set(ENTITIES) == held | countries
    for row in ENTITIES.values():
        assert bool(row["country"]) is (row["kind"] == "city"), row
        assert row["area"] in AREAS if row["kind"] == "field" else not row["area"], row
        assert row["kind"] == "ethnic_group" or not row["race"] + row["region"], row
        assert set(cells(row, "race")) <= set(RACES), row
        assert set(cells(row, "region")) <= set(REGIONS), row


def test_half_are_women_and_each_category_of_the_papers_has_sixty_people() -> None:
    women = sum(row["gender"] in {"female", "trans woman"} for row in PEOPLE)
    assert len(PEOPLE) >= 2000
    assert 0.49 < women / len(PEOPLE) < 0.51
    members: dict[str, set[str]] = defaultdict(set)
    for row in PEOPLE:
        for label in cells(row, "ethnic_group"):
            for axis in ("race", "region"):
                for tag in cells(ENTITIES["ethnic_group", label], axis):
                    members[tag].add(row["iri"])
    assert {tag: len(members[tag]) for tag in (*RACES, *REGIONS) if len(members[tag]) < 60} == {}
    assert sum(not row["ethnic_group"] for row in LARGE) >= 200


def _all_checks(rows: Iterable[dict[str, str]]) -> list[checks.Check]:
    if not RELEASED.is_dir():
        pytest.skip("the released SEESAW-CF files are not in ../shared/reference")
    if not checks.WORDNET.is_file():
        pytest.skip("WordNet 3.0 is not installed (Debian: wordnet-base)")
    return checks.all_checks(list(rows), list(ENTITIES.values()), checks.WORDNET, RELEASED)


def test_every_disagreement_with_other_sources_is_settled_and_no_decision_is_left_over() -> None:
    found = _all_checks(PEOPLE)
    assert checks.unsettled(found, SETTLED) == []
    open_keys = {check.key for check in found if not check.agrees}
    assert {(row["name"], row["property"], row["own"], row["stated"]) for row in SETTLED} == open_keys
    assert len(found) > 1000
    assert all(row["decision"].endswith(".") for row in SETTLED)


def test_provenance_says_which_sources_agree_and_ids_stand_where_one_gives_them() -> None:
    found = _all_checks(LARGE)
    agreeing: dict[tuple[str, str], set[str]] = defaultdict(set)
    for check in found:
        if check.agrees:
            agreeing[check.name, check.property_id].add(check.source)
    for row in LARGE:
        for property_id, text in origins(row).items():
            sources = sorted(agreeing[row["name"], property_id])
            assert text == CURATED + ("; agrees with " + ", ".join(sources) if sources else ""), row
    ids = checks.confirmed_ids(found, checks.read_names(RELEASED), RELEASED)
    assert {row["name"]: row["iri"] for row in LARGE if row["iri"][0] == "Q"} == ids
