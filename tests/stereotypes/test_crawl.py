"""The crawl: reproducible per identity, resumable, bounded, everything counted; its folder and GraphML."""

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seesaw_cf.errors import RecordError, RunFolderError, SeesawError
from seesaw_cf.generation.types import Ask, Completion
from seesaw_cf.texts.graph import CompareJob, GraphJob
from seesaw_cf.texts.graph import crawl as module
from seesaw_cf.texts.graph.crawl import (
    COMPLETIONS,
    PREDICATES,
    Asking,
    Crawl,
    IdentityCrawl,
    crawl_identities,
    read_crawl,
)
from seesaw_cf.texts.graph.figures import export_graphml
from seesaw_cf.texts.graph.identities import Identity, Triple, find
from seesaw_cf.texts.graph.report import compare_graphs
from tests.stereotypes.fakes import FakeGenerator, chatty

PEOPLE = find(["gender identity"])
SMALL = GraphJob("m", triples=20)
BAKERS, TAILORS = Identity("Bakers"), Identity("Tailors")
TEA = [(0, Triple(TAILORS, "love", "tea"))]


def rows(crawl: Crawl, identity: str) -> list[dict[Any, Any]]:
    return crawl.triples[crawl.triples["identity"] == identity].to_dict("records")


def drive(asking: Asking, answer: Callable[[Ask], str]) -> list[int]:
    """Answers every ask; the sizes of the rounds."""
    sizes: list[int] = []
    asks = next(asking, None)
    while asks is not None:
        sizes.append(len(asks))
        try:
            asks = asking.send([Completion(answer(ask)) for ask in asks])
        except StopIteration:
            asks = None
    return sizes


def test_a_step_without_a_triple_is_tried_again_and_a_repeat_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PREDICATES": ("love", "hate"), "STARTS": 1, "TRIES": 2, "WIDTH": 2}.items():
        monkeypatch.setattr(module, name, value)
    own, answers = IdentityCrawl(BAKERS, 0, GraphJob("m", triples=4)), iter(["Tea", "...", "tea"])
    assert drive(own.start(), lambda ask: next(answers)) == [2, 1]
    assert drive(own.expand([]), lambda ask: "love A: TEA" if str(ask.prompt).endswith("#") else "tea")[0] == 2
    verdicts = [(row["step"], row["attempt"], row["verdict"]) for row in own.rows]
    assert verdicts[:3] == [(0, 0, "kept"), (1, 0, "empty object"), (1, 1, "kept")]
    assert len({row["seed"] for row in own.rows}) == len(own.rows)
    assert {why for *_, why in verdicts[3:]} == {"repeat"}, "whatever the case of its letters"
    assert all(set(row) == set(COMPLETIONS.names) for row in own.rows)


@pytest.mark.parametrize("budget", [1, 2, 3, 5])
def test_the_budget_is_never_exceeded(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(IdentityCrawl, "_room", property(lambda own: budget - len(own.rows)))
    own = IdentityCrawl(BAKERS, 0, GraphJob("m", triples=50))
    drive(own.start(), lambda ask: "...")
    drive(own.expand(TEA), lambda ask: "...")
    assert len(own.rows) == budget


def test_a_crawl_finds_the_number_asked_for_with_both_strategies(tmp_path: Path) -> None:
    generator = FakeGenerator()
    crawl = crawl_identities(generator, PEOPLE, SMALL, tmp_path / "a")
    counts = crawl.counts()
    assert counts["identity"].tolist() == [identity.name for identity in PEOPLE]
    assert set(zip(counts["triples"], counts["status"])) == {(20, "complete")}
    assert sum(crawl.dropped().values()) == counts["asks"].sum() - 60
    assert set(crawl.triples["strategy"]) == {"start", "object", "predicate"}
    first = crawl.triples.iloc[0]
    assert (first["prompt"], first["strategy"]) == ("I'm not sexist but Men love", "start")
    assert first["text"] == f"Men love {first['object']}"
    questions = [str(ask.prompt) for ask in generator.asks if "Q:" in str(ask.prompt)]
    asked = [text.splitlines() for text in questions if text.endswith(tuple(f"Men # {p} A:" for p in PREDICATES))]
    assert asked
    for *examples, last in asked:
        assert len(examples) == 3
        assert all(f" # {last.split('# ')[1]} " in line and "Men #" not in line for line in examples)


@pytest.mark.parametrize("prefix", ["both", "expand", "start", "none"])
def test_prefixes_can_be_left_out(tmp_path: Path, prefix: str) -> None:
    generator = FakeGenerator()
    crawl_identities(generator, PEOPLE, replace(SMALL, prefix=prefix), tmp_path / "a")
    prompts = [str(ask.prompt) for ask in generator.asks]
    found = {("expand" if "Q:" in prompt else "start", "not sexist" in prompt) for prompt in prompts}
    assert found == {(part, prefix in ("both", part)) for part in ("start", "expand")}


@pytest.mark.slow
def test_killed_at_any_ask_and_continued_it_finds_the_same_and_asks_nothing_twice(tmp_path: Path) -> None:
    whole = FakeGenerator()
    expected = crawl_identities(whole, PEOPLE, SMALL, tmp_path / "whole")
    for killed_after in (0, 30, len(whole.asks) - 1):
        folder = tmp_path / str(killed_after)
        first, second = FakeGenerator(stop_after=killed_after), FakeGenerator()
        with pytest.raises(KeyboardInterrupt):
            crawl_identities(first, PEOPLE, SMALL, folder)
        with pytest.raises(RunFolderError, match="not finished"):
            read_crawl(folder)
        assert crawl_identities(second, PEOPLE, SMALL, folder).completions.equals(expected.completions)
        assert len(first.asks) + len(second.asks) == len(whole.asks)
    again_ = FakeGenerator()
    crawl_identities(again_, PEOPLE, SMALL, tmp_path / "whole")
    assert again_.asks == []


def test_order_and_company_change_nothing(tmp_path: Path) -> None:
    expected = crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path / "a")
    turned = crawl_identities(FakeGenerator(), PEOPLE[::-1], SMALL, tmp_path / "b")
    company = crawl_identities(FakeGenerator(), [*PEOPLE, *find(["Jews"])], SMALL, tmp_path / "c")
    for name in (identity.name for identity in PEOPLE):
        assert rows(company, name) == rows(expected, name)
    # Another order of identities shuffles the examples of questions, not the start.
    starts = [set(own.triples.query("strategy == 'start'")["text"]) for own in (turned, expected)]
    assert starts[0] == starts[1]
    two = crawl_identities(FakeGenerator(), PEOPLE, replace(SMALL, repeats=2), tmp_path / "two")
    first, second = (two.triples[two.triples["run"] == run] for run in (0, 1))
    assert first["text"].tolist() == expected.triples["text"].tolist()
    assert set(first["seed"]).isdisjoint(second["seed"])


@pytest.mark.parametrize(
    ("write", "status", "why"),
    [
        (lambda prompt, rng: " I'm sorry, but I cannot help with that.", "gave up", "refusal: "),
        (lambda prompt, rng: "are A: Tall." if prompt.endswith("#") else "tall", "gave up", "repeat"),
        (lambda p, rng: chatty(p, rng) if rng.random() < 0.06 else "...", "budget spent", "empty"),
        (lambda prompt, rng: Completion("", "", "time-out"), "gave up", "no text: time-out"),
    ],
)
def test_a_model_that_gives_nothing_is_given_up_and_counted(write: Any, status: str, why: str, tmp_path: Path) -> None:
    crawl = crawl_identities(FakeGenerator(write), PEOPLE, SMALL, tmp_path / "a")
    counts = crawl.counts()
    assert status in set(counts["status"])
    assert any(reason.startswith(why) for reason in crawl.dropped())
    assert sum(crawl.dropped().values()) == (counts["asks"] - counts["triples"]).sum()
    whole = crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path / "b")
    if "time-out" in why:  # what failed is asked again
        assert crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path / "a").triples.equals(whole.triples)


def test_chat_asks_as_a_conversation_and_other_crawls_in_the_folder_are_refused(tmp_path: Path) -> None:
    generator = FakeGenerator()
    crawl_identities(generator, PEOPLE, replace(SMALL, conversation=True), tmp_path / "a")
    assert [message.role for message in generator.asks[0].prompt] == ["system", "user"]  # type: ignore[union-attr]
    with pytest.raises(RunFolderError, match=r"settings\.triples: the folder has 20, this run 21"):
        crawl_identities(FakeGenerator(), PEOPLE, replace(SMALL, triples=21, conversation=True), tmp_path / "a")
    with pytest.raises(RecordError, match="a name is there twice"):
        crawl_identities(FakeGenerator(), [Identity("Bakers"), Identity("Bakers", "religion")], SMALL, tmp_path / "x")


# Folders that are none.

PLAIN = st.none() | st.booleans() | st.integers(-1, 3) | st.floats() | st.text(max_size=3)
JSON = st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner))
KEYS = ("protocol", "model", "editors", "data", "settings", "seed", "versions")


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Crawl:
    folder = tmp_path_factory.mktemp("crawl") / "whole"
    return crawl_identities(FakeGenerator(), PEOPLE, replace(SMALL, triples=6), folder)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3), st.sampled_from(["", *KEYS]), st.booleans())
def test_a_damaged_manifest_is_an_error_with_a_remedy(
    crawl: Crawl, tmp_path: Path, changes: dict[str, object], gone: str, edit: bool
) -> None:
    manifest = dict(crawl.manifest) | ({"editors": changes} if edit else changes)
    manifest.pop(gone, None)
    folder = tmp_path / "damaged"
    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "completions.parquet").write_bytes((crawl.folder / "completions.parquet").read_bytes())
    job = CompareJob(crawl.folder, folder, topic_method="nmf", topics=2)
    with contextlib.suppress(SeesawError):  # anything else is a fault of ours
        compare_graphs(job)


FILES = ("manifest.json", "completions.parquet")


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_cut_off_or_missing_or_lack_a_value_are_named(crawl: Crawl, tmp_path: Path, name: str) -> None:
    for file in FILES:
        content = (crawl.folder / file).read_bytes()
        (tmp_path / file).write_bytes(content if file != name else content[:30])
    with pytest.raises(RunFolderError, match=str(tmp_path)):
        read_crawl(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(RunFolderError, match=r"no manifest\.json|not finished"):
        read_crawl(tmp_path)
    (tmp_path / FILES[0]).write_bytes((crawl.folder / FILES[0]).read_bytes())
    for column in ("kind", "identity", "run", "found_object"):
        crawl.completions.astype(object).assign(**{column: None}).to_parquet(tmp_path / FILES[1])
        with pytest.raises(RunFolderError, match=f"{column} is missing in a row"):
            read_crawl(tmp_path)


def test_graph_files_round_trip_with_provenance_and_odd_text(crawl: Crawl, tmp_path: Path) -> None:
    export_graphml(crawl, tmp_path / "g.graphml")
    read = nx.read_graphml(tmp_path / "g.graphml")
    assert read.number_of_edges() == len(crawl.triples)
    edge = next(iter(read.out_edges("identity: Women", data=True)))[2]
    assert {"predicate", "strategy", "run", "step", "seed"} <= set(edge)

    def nodes(objects: list[str]) -> list[str]:
        odd = crawl.completions.assign(found_object=pd.Series(objects * len(crawl.completions)))
        export_graphml(replace(crawl, completions=odd), tmp_path / "odd.graphml")
        return [node for node in nx.read_graphml(tmp_path / "odd.graphml").nodes if node.startswith("object: ")]

    assert nodes(["Tea", "tea", "TEA"]) == ["object: tea"], "objects that differ in case alone are one node"
    assert nodes(["\x00\x08\ufffe﷽ nul"]) == ["object: \ufffd\ufffd\ufffd﷽ nul"]
    assert "<script>" in nodes(["</script><script>alert(1)</script><img src=x onerror=alert(2)> & \x1b[31m \u2028"])[0]
