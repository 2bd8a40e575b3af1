"""Whole builds of a small invented world: edits from files, the papers' rules, a spoiled network, kill and resume."""

import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from seesaw_cf.builder_scripts import PAPER_RULES, Asking, BuildOptions
from seesaw_cf.builder_scripts.dataset import build, choose_edits
from seesaw_cf.builder_scripts.edits import read_seeds
from seesaw_cf.builder_scripts.endpoint import EndpointSource
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import CachedSource, Source, StoreSource
from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError
from seesaw_cf.records import load as sample
from seesaw_cf.records import read_cases, relations
from seesaw_cf.records.relations import RELATIONS, templates
from seesaw_cf.types import Case

from .fault_proxy import FaultProxy

FEW = BuildOptions(edits=dict.fromkeys(RELATIONS, 6), per_gender=10, true_per_gender=3, per_pair=5)


def make(out: Path, source: Source, options: BuildOptions = FEW, seeds: list[Case] | None = None) -> Path:
    facts = Facts(source, options)
    build(out, facts, choose_edits(facts, seeds or []), {})
    return out


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def data(folder: Path) -> dict[str, bytes]:
    """All but the card, which says of an endpoint how people were drawn from it."""
    return {name: text for name, text in contents(folder).items() if name != "README.md"}


@pytest.mark.slow
def test_given_edits_keep_their_numbers_words_and_targets(world: Path, edits_file: Path, tmp_path: Path) -> None:
    seeds = read_seeds([edits_file])
    out = make(tmp_path / "out", StoreSource(world), seeds=seeds)
    cases = {case.case_id: case for case in read_cases(out / "data" / "cross_subject")}
    assert {7, 11, 12} <= set(cases)
    for number in (7, 11, 12):
        given = next(case.request for case in seeds if case.case_id == number)
        assert cases[number].request == given, "nobody is recorded to be dead, so the words stay"
        assert cases[number].extra["subject_id"].startswith("Q9000")
    assert cases[7].extra["template_id"] == "P103-cloze-02"
    assert cases[12].extra["template_id"] == ""
    assert cases[7].attribute_prompts
    relations = Counter(case.request.relation_id for case in cases.values())
    assert relations == {"P103": 2, "P101": 1, "P21": 6, "P27": 6, "P19": 6}
    pairs = read_cases(out / "data" / "cross_property")
    assert not {case.case_id for case in pairs} & set(cases)


def test_a_config_without_rows_is_left_out(world: Path, tmp_path: Path) -> None:
    """`datasets` opens no file without rows, so that a published folder could not be loaded back."""
    out = make(tmp_path / "out", StoreSource(world), replace(FEW, edits={"P103": 2}))
    assert sorted(path.name for path in (out / "data").iterdir()) == [
        "candidates", "cross_subject", "demographics", "open_ended",
    ]  # fmt: skip
    card = (out / "README.md").read_text(encoding="utf-8")
    assert "config_name: cross_property" not in card
    assert "`cross_subject`\n" in card
    with pytest.raises(RecordError, match="there is no edit to make"):
        make(tmp_path / "none", StoreSource(world), replace(FEW, edits={}))


TEMPLATES = """relation_id,use,present,past
P27,cloze,{} ist Staatsangehöriger von,{} war Staatsangehöriger von
P101,cloze,Das Arbeitsgebiet von {} ist,
,open,{} ist,{} war
"""


def test_another_language_needs_templates(world: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    german, templates, out = tmp_path / "german.ttl", tmp_path / "templates.csv", tmp_path / "out"
    german.write_text(world.read_text(encoding="utf-8").replace("@en .", "@de ."), encoding="utf-8")
    templates.write_text(TEMPLATES, encoding="utf-8-sig")
    words = ["build", "--source", str(german), "--language", "de"]
    words += ["--cache", str(tmp_path / "cache"), "--out", str(out)]
    words += ["--number", "P27=4", "P101=2", "--per-gender", "5"]
    assert main(words) != 0
    assert "prompts are English" in " ".join(capsys.readouterr().err.split())
    assert main([*words, "--templates", str(templates)]) == 0
    cases = read_cases(out / "data" / "cross_subject") + read_cases(out / "data" / "cross_property")
    assert {case.request.relation_id for case in cases} == {"P27", "P101"}
    assert {(case.request.relation_id, case.effect_relation_id) for case in cases if case.effect_relation_id} == {
        ("P27", "P101"), ("P101", "P27"),
    }  # fmt: skip
    texts = [row.text for case in cases for row in (*case.attribute_prompts, *case.effect_prompts)]
    texts += [text for case in cases for text in (case.request.text, *case.generation_prompts)]
    assert texts
    german_words = ("Arbeitsgebiet", "Staatsangehöriger")
    assert all(text.endswith((" ist", " war")) or any(word in text for word in german_words) for text in texts)
    assert "language:\n- de\nlicense" in (out / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("P27,cloze,no name,", "line 2: .* with one {} for the name"),
        ("P72,cloze,{} is,", "line 2: .*expected relation_id of P21"),
        ("P27,close,{} is,", "line 2: .*use of cloze, property, open"),
        ("P27,property,{} is,", "no row with use cloze for P27"),
    ],
)
def test_wrong_templates_are_named(tmp_path: Path, rows: str, message: str) -> None:
    file = tmp_path / "templates.csv"
    file.write_text(f"relation_id,use,present,past\n{rows}\n", encoding="utf-8")
    with pytest.raises(RecordError, match=message):
        relations.read_templates(file)


@pytest.mark.slow
def test_the_papers_rules_show_the_papers_shape(world: Path, tmp_path: Path) -> None:
    options = BuildOptions(edits=dict.fromkeys(RELATIONS, 7), **PAPER_RULES)
    out = make(tmp_path / "out", StoreSource(world), options)
    for case in read_cases(out / "data" / "cross_subject"):
        people = {row.subject.id: row for row in case.attribute_prompts}
        counted = Counter(gender for row in people.values() for gender in row.gender)
        assert counted["men"] <= 100 + len(people) * (case.request.relation_id == "P21")
        assert {row.holds for row in case.attribute_prompts} <= {"target_new"}
        assert len(case.attribute_prompts) == len(people) * len(templates(case.request.relation_id, "cloze"))
        listed = Counter(case.generation_prompts)
        assert set(listed.values()) == {5}
        assert len(listed) == (3 if case.request.relation_id in ("P101", "P103") else 2)
        assert not case.neighborhood_prompts
    pairs = read_cases(out / "data" / "cross_property")
    assert {tuple(case.candidates) for case in pairs if case.effect_relation_id == "P21"} == {("female", "male")}
    assert BuildOptions().edits == {"P21": 290, "P101": 279, "P27": 282, "P19": 286, "P103": 898}
    for folder in (out, sample.path()):
        assert_card_counts(folder)


def assert_card_counts(out: Path) -> None:
    """Tables 1, 3, 7 and 16-18 of the card are what the rows say."""
    card = (out / "README.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in card.splitlines() if line.startswith("|")]
    cases, pairs = (read_cases(out / "data" / name) for name in ("cross_subject", "cross_property"))
    values = pq.read_table(out / "data" / "candidates").to_pylist()
    for id, row in RELATIONS.items():
        own = [case for case in cases if case.request.relation_id == id]
        prompts = [prompt for case in own for prompt in case.attribute_prompts]
        opened = sum(len(case.generation_prompts) for case in own)
        (table3,) = (line for line in cells if line[0] == f"{row.name} ({id})")
        counts = [len(own), len({case.extra["subject_id"] for case in own}),
                  len({case.request.target_new.id for case in own}),
                  *(sum(prompt.holds == side for prompt in prompts) for side in ("target_new", "target_true")),
                  len({prompt.text for prompt in prompts}), len({prompt.subject.id for prompt in prompts}), opened,
                  sum("few_holders" in case.flags for case in own)]  # fmt: skip
        assert table3[1:] == [f"{count:,}" for count in counts]
        listed = [value["label"] for value in values if value["relation_id"] == id]
        assert [row.name, f"{len(listed):,}", ", ".join(listed[:4])] in cells
        for other in RELATIONS.values():
            both = [case for case in pairs if (case.request.relation_id, case.effect_relation_id) == (id, other.id)]
            scored = sum(len(case.effect_prompts) * len(case.candidates) for case in both)
            asked = sum(len(case.effect_prompts) for case in both)
            opened = sum(len(case.generation_prompts) for case in both)
            line = [row.name, other.name, *(f"{count:,}" for count in (len(both), asked, scored, opened))]
            assert (line in cells) == bool(both)
    for id, column in (("P101", "area"), ("P27", "continent"), ("P19", "continent")):
        kinds = [value[column] for value in values if value["relation_id"] == id]
        for kind, count in Counter(kind for row in kinds for kind in ([row] if isinstance(row, str) else row)).items():
            assert [kind, f"{count:,}"] in cells


@pytest.mark.slow(10)
def test_a_spoiled_network_changes_nothing(world: Path, world_server: str, tmp_path: Path) -> None:
    quiet = Asking(timeout=2)
    expected = data(make(tmp_path / "expected", StoreSource(world)))
    faults = ["429:0", "", "half", "503:0", "page", "", "unfinished", "drop", "other", "500", "", "502", "504"] * 6
    with FaultProxy(world_server, faults) as proxy:
        source = CachedSource(EndpointSource(proxy.url, quiet, sleep=lambda _: None), tmp_path / "cache")
        assert data(make(tmp_path / "spoiled", source)) == expected
        assert not proxy.faults, "all faults were met"
        offline = CachedSource(EndpointSource(proxy.url, quiet), tmp_path / "cache", offline=True)
    assert data(make(tmp_path / "replayed", offline)) == expected
    assert contents(tmp_path / "replayed") == contents(tmp_path / "spoiled")


@pytest.mark.slow(15)
def test_killed_and_started_again_nothing_is_asked_twice(world_server: str, tmp_path: Path) -> None:
    """kill -9 in the middle; the second run gives the bytes of an undisturbed one."""
    with FaultProxy(world_server) as proxy:

        def command(out: str, cache: str) -> list[str]:
            return ["build", "--source", proxy.url, "--out", str(tmp_path / out), "--cache", str(tmp_path / cache),
                    "--per-gender", "10", "--number", *(f"{id}=6" for id in RELATIONS)]  # fmt: skip

        program = [sys.executable, "-c", "import sys; from seesaw_cf.cli import main; sys.exit(main(sys.argv[1:]))"]
        with subprocess.Popen([*program, *command("out", "cache")], stderr=subprocess.DEVNULL) as first:
            while len(proxy.queries) < 40 and first.poll() is None:
                time.sleep(0.01)
            first.kill()
        assert first.returncode == -signal.SIGKILL
        assert not (tmp_path / "out").exists()
        asked = len(proxy.queries)
        assert main(command("out", "cache")) == 0
        assert len(proxy.queries) > asked
        assert len(set(proxy.queries)) >= len(proxy.queries) - 1, "only a query that was cut off is asked again"
        assert main(command("undisturbed", "other")) == 0
    assert contents(tmp_path / "out") == contents(tmp_path / "undisturbed")
