"""Records that come without groups are tagged as the builder tags its own, from a real server, a file or a table."""

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

from seesaw_cf.builder_scripts.sparql import TAGS
from seesaw_cf.builder_scripts.tag import BY_NAME, NAMESAKES, paper_candidates
from seesaw_cf.cli import main
from seesaw_cf.records import groups, load_cases, write_config
from seesaw_cf.records.arrow import cases_to_table
from seesaw_cf.texts.records import read_records as read_longform
from seesaw_cf.types import Case
from tests.records.samples import rewrite

from .conftest import PREFIXES, serve
from .fault_proxy import FaultProxy

MEN, WOMEN = "Q6581097", "Q6581072"
NAMES = ["Ann Ash", "Bo Beech", "Cy Cedar", "Di Dogwood"]


def pair_record(number: int, subject: str, people: Iterable[str]) -> dict[str, Any]:
    """A record as the released pair files have it: an edit of citizenship, others by QID and name, nothing else."""
    ids = list(people)
    edit = rewrite(subject, "{} is a citizen of", "P27", ("Japan", "Q17"), ("United Kingdom", "Q145"))
    return {
        "case_id": number, "requested_rewrite": edit, "generation_prompts": [f"{subject}'s field of work is"] * 5,
        "attribute_prompts": [f"Person {id} is a citizen of" for id in ids], "attribute_aux_info": ids,
        "attribute_aux_ent": [f"Person {id}" for id in ids],
    }  # fmt: skip


def write_pairs(folder: Path, records: list[dict[str, Any]]) -> Path:
    file = folder / "seesaw_cf_P27_P101.json"
    file.write_text(json.dumps(records), encoding="utf-8")
    return file


def invented(ids: Iterable[str], seed: int = 0) -> str:
    """Turtle with facts that are true of nobody: some people have no ethnic group, some several, some are dead."""
    rng, ethnic = random.Random(seed), sorted(id for id in groups.table("ethnic_groups") if id[0] == "Q")
    lines = []
    for id in sorted(set(ids)):
        held = ", ".join(f"wd:{group}" for group in rng.sample(ethnic, rng.choice((0, 1, 1, 2))))
        parts = [f"wdt:P21 wd:{rng.choice((MEN, WOMEN))}", f"wikibase:sitelinks {rng.randrange(90)}"]
        parts += [f"wdt:P172 {held}"] if held else []
        parts += rng.choice(
            ([], ['wdt:P570 "1950-01-01T00:00:00Z"^^xsd:dateTime'], ['wdt:P569 "1960-01-01"^^xsd:date'])
        )
        lines.append(f"wd:{id} wdt:P31 wd:Q5 ; {' ; '.join(parts)} .\n")
    return "".join(lines)


def edited(id: str, name: str, country: str = "Q145", field: str = "Q413", sitelinks: int = 5) -> str:
    """Turtle about somebody who can be the subject of `pair_record`."""
    held = f"wdt:P27 wd:{country} ; wdt:P101 wd:{field} ; wdt:P21 wd:{WOMEN} ; wikibase:sitelinks {sitelinks}"
    return f'wd:{id} wdt:P31 wd:Q5 ; {held} ; rdfs:label "{name}"@en .\n'


PEOPLE = [f"Q{90_000_000 + number}" for number in range(450)]  # more than fit into two queries
RECORDS = [pair_record(number, NAMES[number], PEOPLE[number * 100 : number * 100 + 150]) for number in range(4)]
WORLD = PREFIXES + invented(PEOPLE[:-1]) + "".join(edited(f"Q{80_000_000 + n}", name) for n, name in enumerate(NAMES))


@pytest.fixture(scope="module")
def turtle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tag") / "world.ttl"
    file.write_text(WORLD, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def tag_server(tmp_path_factory: pytest.TempPathFactory, turtle: Path) -> Iterator[str]:
    """A real SPARQL server with the invented facts."""
    yield from serve(tmp_path_factory.mktemp("tag-server"), turtle)


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    return write_pairs(tmp_path, RECORDS)


Tag = Callable[..., tuple[int, Path]]


@pytest.fixture
def tag(tmp_path: Path) -> Tag:
    """Runs the command with a cache of its own; gives its exit code and the folder."""

    def run(records: Path | list[Path], source: str | Path, out: str = "tagged") -> Any:
        files = [str(file) for file in (records if isinstance(records, list) else [records])]
        kept = ["--cache", str(tmp_path / "replies"), "--out", str(tmp_path / out)]
        return main(["tag", *files, "--source", str(source), *kept]), tmp_path / out

    return run


def numbers(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "tags.json").read_text(encoding="utf-8"))["coverage"]
    return found


def test_pairs_get_the_papers_candidates_and_gold(pairs: Path, tag: Tag, turtle: Path) -> None:
    _, out = tag(pairs, turtle)
    tables = [paper_candidates(id) for id in ("P101", "P27", "P19", "P21", "P103")]
    assert [len(names) for names in tables] == [219, 90, 232, 2, 0]
    # One candidate a name: Q171150 and Q25395037 are Kingdom of Hungary, Q1490 and Q7473516 Tokyo.
    assert [len(set(names.values())) for names in tables] == [219, 89, 231, 2, 0]
    for number, case in enumerate(load_cases(str(out), "P27_P101")):
        assert case.candidates == tuple(dict.fromkeys(paper_candidates("P101").values()))
        assert case.gold == ("physics",)
        assert case.extra["subject_id"] == f"Q{80_000_000 + number}"
        assert [row.text for row in case.effect_prompts] == [
            f"{NAMES[number]}'s field of work is",
            f"{NAMES[number]} is",
        ]
        assert {(row.gender, row.sitelinks, row.subject.label) for row in case.effect_prompts} == {
            (("women",), 5, NAMES[number])
        }
    assert numbers(out)["pairs"] == {"gold": 4, BY_NAME: 4, NAMESAKES: 0}
    rows = read_longform(str(out), ["open_ended"])["open_ended"]
    assert {(row["case_id"], row["subject_id"]) for row in rows} == {
        (case.case_id, case.extra["subject_id"]) for case in load_cases(str(out), "P27_P101")
    }, "the edited person is known by then"


def test_what_was_not_found_stays_unknown_and_is_counted(pairs: Path, tag: Tag, turtle: Path, capsys: Any) -> None:
    _, out = tag(pairs, turtle)
    found = numbers(out)
    rows = [row for case in load_cases(str(out), "P27_P101") for row in (*case.attribute_prompts, *case.effect_prompts)]
    for name in TAGS:
        known = {row.subject.id for row in rows if getattr(row, name) not in ((), None)}
        every = {row.subject.id for row in rows if row.subject.id in PEOPLE}
        counted = found["tags"][name]
        assert found["people"] == len(every) == 450
        assert counted["people"] == len(known & every)
        assert found["prompts"] == len(rows)
        assert counted["prompts"] == sum(getattr(row, name) not in ((), None) for row in rows)
    assert found["found"] == 449
    assert found["tags"]["race"]["people"] < 449
    for shown in (capsys.readouterr().out, (out / "README.md").read_text(encoding="utf-8")):
        assert "people world.ttl knows 449; nothing is recorded about 1" in " ".join(shown.split())
    assert "seesaw-cf audit --data" not in (out / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_queries_are_bounded_and_a_broken_off_job_goes_on(pairs: Path, tag: Tag, tag_server: str, capsys: Any) -> None:
    with FaultProxy(tag_server, ["", "", "503:1", "403"]) as proxy:
        assert tag(pairs, proxy.url)[0] == 1
        assert "HTTP 403" in capsys.readouterr().err
        first = len(proxy.queries)
        code, out = tag(pairs, proxy.url)
        assert code == 0
        asked = proxy.queries[first:]
        assert not set(asked) & set(proxy.queries[:2]), "what was answered is not asked again"
        assert max(query.count(b"entity/Q9") for query in proxy.queries) == 200
        again = tag(pairs, proxy.url, out="again")[1]
        assert len(proxy.queries) == first + len(asked)
    same = ["data/P27_P101/test-00000-of-00001.parquet", "data/tag_facts/test-00000-of-00001.parquet", "tags.json"]
    assert [(out / name).read_bytes() for name in same] == [(again / name).read_bytes() for name in same]


def test_merged_and_deleted_identifiers_are_followed_and_counted(tmp_path: Path, tag: Tag, capsys: Any) -> None:
    """Q1 was merged into Q2 and that into Q3; Q4 is gone; Q5 and Q6 lead to each other."""
    world = tmp_path / "world.ttl"
    same = "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
    links = "".join(
        f"wd:{a} owl:sameAs wd:{b} .\n" for a, b in (("Q1", "Q2"), ("Q2", "Q3"), ("Q5", "Q6"), ("Q6", "Q5"))
    )
    world.write_text(f"{PREFIXES}{same}{links}wd:Q3 wdt:P31 wd:Q5 ; wdt:P21 wd:{MEN} .\n" + edited("Q9", "Ann Ash"))
    _, out = tag(write_pairs(tmp_path, [pair_record(1, "Ann Ash", ["Q1", "Q3", "Q4", "Q5"])]), world)
    rows = load_cases(str(out), "P27_P101")[0].attribute_prompts
    assert [(row.subject.id, row.gender) for row in rows] == [
        ("Q1", ("men",)), ("Q3", ("men",)), ("Q4", ()), ("Q5", ()),
    ]  # fmt: skip
    people = numbers(out)
    assert (people["people"], people["found"], people["merged"]) == (4, 2, 1)
    facts = pq.read_table(out / "data" / "tag_facts").to_pylist()
    assert {(row["person"], row["entity"]) for row in facts if row["property"] == "P21"} >= {("Q1", "Q3"), ("Q3", "Q3")}
    assert "1 were merged into another identifier" in " ".join(capsys.readouterr().out.split())


def test_an_edited_person_is_who_holds_the_edited_fact(tmp_path: Path, tag: Tag) -> None:
    world = tmp_path / "world.ttl"
    people = [
        edited("Q11", "Ann Ash", country="Q17", sitelinks=90), edited("Q12", "Ann Ash", sitelinks=2),
        edited("Q13", "Ann Ash", field="Q395", sitelinks=1),
        edited("Q21", "Bo Beech", country="Q17"),
        edited("Q31", "Cy Cedar", sitelinks=7), edited("Q32", "Cy Cedar", sitelinks=7),
        edited("Q41", "Di Dogwood", field="Q999999"),
    ]  # fmt: skip
    world.write_text(PREFIXES + "".join(people) + f"wd:Q1 wdt:P21 wd:{MEN} .\n")
    records = [pair_record(number, name, ["Q1"]) for number, name in enumerate([*NAMES, "Nobody Here"])]
    given = {"subject_id": "Q13"}
    records += [pair_record(7, "A. Ash", ["Q1"]) | given, pair_record(8, "Ann Ash", ["Q1"]) | {"subject_id": "Q77"}]
    _, out = tag(write_pairs(tmp_path, records), world)
    cases = {case.case_id: case for case in load_cases(str(out), "P27_P101")}
    assert cases[0].extra["subject_id"] == "Q12"
    assert [(number, case.gold) for number, case in cases.items() if case.gold] == [
        (0, ("physics",)), (7, ("mathematics",)),
    ]  # fmt: skip
    assert all(bool(case.candidates) == bool(case.effect_prompts) == bool(case.gold) for case in cases.values())
    assert numbers(out)["pairs"] == {
        "gold": 2,
        "edited person: nobody of that name holds the edited fact": 1,
        "edited person: several of that name hold the edited fact and are as well known": 1,
        "no value of P101 recorded that is one of the papers' answers": 1,
        "edited person: no human found": 1,
        "edited person: nothing recorded": 1,
        BY_NAME: 2,
        NAMESAKES: 1,
    }


def stripped(case: Case) -> Case:
    """A case of the sample as a released file would have it."""
    empty = {"gender": (), "race": (), "region": (), "living": None, "sitelinks": None}
    rows = tuple(replace(row, **empty) for row in case.attribute_prompts)  # type: ignore[arg-type]
    return replace(case, attribute_prompts=rows, effect_prompts=(), candidates=(), gold=())


@pytest.mark.slow
def test_the_sample_without_its_tags_gets_them_back(tmp_path: Path, tag: Tag) -> None:
    """From the facts that it was built of."""
    for name in ("cross_subject", "cross_property"):
        write_config(tmp_path / "bare", name, cases_to_table(map(stripped, load_cases("sample", name))))
    code, out = tag(tmp_path / "bare", "sample")
    assert code == 0
    for old, new in zip(load_cases("sample", "cross_subject"), load_cases(str(out), "cross_subject"), strict=True):
        assert new == old
    for old, new in zip(load_cases("sample", "cross_property"), load_cases(str(out), "cross_property"), strict=True):
        names = set(paper_candidates(str(old.effect_relation_id)).values())
        assert set(new.gold) == set(old.gold) & names
        if new.gold:
            assert new.effect_prompts == old.effect_prompts
            assert set(new.candidates) == names


def refused(capsys: pytest.CaptureFixture[str], tmp_path: Path, *words: object) -> str:
    """What the command says when it fails; nothing may be left at --out."""
    out = tmp_path / "tagged"
    assert main(["tag", *map(str, words), "--cache", str(tmp_path / "replies"), "--out", str(out)]) == 1
    assert not out.exists()
    said = " ".join(capsys.readouterr().err.split())
    assert "could not write" not in said
    return said


def test_what_was_given_cannot_be_used(pairs: Path, tmp_path: Path, turtle: Path, capsys: Any) -> None:
    names = ("other.ttl", "edits.json", "tag_facts.json", "folder/data")
    other, edits, taken, folder = (tmp_path / name for name in names)
    other.write_text(f"{PREFIXES}wd:Q1 wdt:P21 wd:{MEN} .\n")
    edits.write_text('[{"subject": "Ada", "prompt": "Ada was born in", "target_new": "Rome"}]')
    taken.write_bytes(pairs.read_bytes())
    folder.mkdir(parents=True)
    said = refused(capsys, tmp_path, pairs, "--source", other)
    assert "other.ttl knows nobody: it was asked about 450 people (Q90000000, " in said
    said = refused(capsys, tmp_path, edits, "--source", turtle)
    assert re.search("none of the 1 records identifies anybody.*seesaw-cf build --edits", said)
    assert "source 'nowhere.nt': no such file" in refused(capsys, tmp_path, pairs, "--source", "nowhere.nt")
    assert "would both be config 'P27_P101'" in refused(capsys, tmp_path, pairs, pairs, "--source", turtle)
    assert "a folder without cases in data/" in refused(capsys, tmp_path, folder.parent, "--source", turtle)
    assert "config 'tag_facts' is taken" in refused(capsys, tmp_path, taken, "--source", turtle)


@pytest.mark.slow(60)
def test_a_run_of_tagged_released_files_has_groups_and_accuracy(
    reference: Callable[..., Path], tag: Tag, tmp_path: Path
) -> None:
    """Two cases of each released file, tagged from invented facts, run and reported."""
    names, turtle = ("P27_P101", "P21_P101", "P19_P101"), PREFIXES
    files = [tmp_path / f"seesaw_cf_{name}.json" for name in names]
    for file in files:
        records = json.loads(reference("seesaw", file.name).read_text(encoding="utf-8"))[:2]
        file.write_text(json.dumps(records), encoding="utf-8")
        turtle += invented(id for record in records for id in record["attribute_aux_info"])
        for asked in (record["requested_rewrite"] for record in records):
            edit = f"wdt:{asked['relation_id']} wd:{asked['target_true']['id']} ; wdt:P101 wd:Q413"
            name = json.dumps(asked["subject"], ensure_ascii=False)
            turtle += f"wd:Q7{len(turtle):08} wdt:P31 wd:Q5 ; {edit} ; rdfs:label {name}@en .\n"
    (tmp_path / "world.ttl").write_text(turtle, encoding="utf-8")
    code, out = tag(files, tmp_path / "world.ttl")
    assert code == 0
    words = ["audit", "seesaw-tiny", "--editor", "ft", "--control", "none", "--quiet", "--data", str(out)]
    configs = [word for name in names for word in ("--config", name)]
    assert main([*words, *configs, "--out", str(tmp_path / "run")]) == 0
    tables = tmp_path / "run" / "report" / "tables"
    assert set(pd.read_csv(tables / "groups.csv")["axis"]) >= {"gender", "race", "region"}
    assert set(pd.read_csv(tables / "other_facts.csv")["asked"]) == {"all", "P101"}
