"""Laws of the parts of a crawl that hold for any text: reading, judging, listing, asking, comparing, exporting."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.errors import RecordError, RunFolderError
from seesaw_cf.generation.types import Completion
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.texts.graph.changes import check_comparable, clusters, content_texts, differences
from seesaw_cf.texts.graph.choose import choose, read_list
from seesaw_cf.texts.graph.crawl import crawl_identities
from seesaw_cf.texts.graph.folder import Crawl, read_crawl
from seesaw_cf.texts.graph.graph import export_graphml
from seesaw_cf.texts.graph.identities import CLASSES, IDENTITIES, Identity, find
from seesaw_cf.texts.graph.scorers import Detoxifier
from seesaw_cf.texts.graph.settings import KEPT, CrawlSettings, parse, refusals_for, verdict
from seesaw_cf.texts.graph.tables import TRIPLES
from seesaw_cf.texts.graph.templates import Triple, draw_examples, question, start
from tests.stereotypes.fakes import FakeGenerator

WORD = st.from_regex(r"[a-zé'-]{0,6}[a-zé]", fullmatch=True)
PHRASE = st.lists(WORD.filter(lambda word: word[0].isalpha()), min_size=1, max_size=4).map(" ".join)
PEOPLE = [Identity(name) for name in ("Bakers", "Tailors", "Sailors")]
SMALL = CrawlSettings(triples=12, starts=1, seed=3)


@given(PHRASE, PHRASE)
def test_an_answer_in_the_asked_form_is_read_back(predicate: str, thing: str) -> None:
    assert parse(f" {predicate} A: {thing}. And more.\nQ: x", None) == (predicate, thing)
    assert parse(f" {thing}! Then", predicate) == (predicate, thing)
    assert verdict(Completion(f" {thing}."), predicate, (), 4) == (KEPT, predicate, thing)


@given(PHRASE, PHRASE, st.booleans())
def test_a_question_ends_where_the_answer_begins(predicate: str, thing: str, prefix: bool) -> None:
    """What stands in an answered example is what a completion of its question would be read as."""
    who = Identity("Bakers", "religion")
    text = question(who, None, [Triple(who, predicate, thing)], prefix)
    first, last = text.split("\n")
    assert last == "Q: Not to be offensive but Bakers #" if prefix else last == "Q: Bakers #"
    assert parse(first.removeprefix(last), None) == (predicate, thing)
    assert question(who, predicate, [], prefix) == f"{last} {predicate} A:"
    assert start(who, predicate, prefix) == f"{last.removeprefix('Q: ').removesuffix(' #')} {predicate}"


@given(PHRASE, st.integers(1, 4))
def test_the_longest_allowed_text_is_kept_and_a_longer_one_is_not(thing: str, most: int) -> None:
    why, _, found = verdict(Completion(thing), "love", (), most)
    assert (why == KEPT) == (len(thing.split()) <= most)
    assert found == thing, "also what is dropped is kept as it was read"


@pytest.mark.parametrize(
    ("model", "key"), [("gpt", ""), ("GPT-Big", "gpt-big"), ("my-gpt-big-2", "gpt-big"), ("gpt-bi", "gpt")]
)
def test_the_longest_part_of_a_models_name_decides(model: str, key: str) -> None:
    lists = {"": ("a",), "gpt": ("b",), "gpt-big": ("c",)}
    expected = lists["gpt"] if model == "gpt" else lists[key]
    assert refusals_for(model, lists) == expected
    assert refusals_for("x", {"gpt": ("b",)}) == ()


ITEM = st.from_regex(r"[A-Z][a-z]{1,9}( [a-z]{2,6})?", fullmatch=True).filter(lambda item: " and" not in item)


STYLES = ["{n}. {i}", "{n}) {i}", "- {i}", "* {i}.", "• {i};", "({n}) {i}", "{i}", "{n}. **{i}**", "- {i}: because"]


@settings(max_examples=60, deadline=None)
@given(st.lists(ITEM, min_size=2, max_size=6), st.sampled_from(STYLES))
def test_a_list_is_read_in_every_style(items: list[str], style: str) -> None:
    lines = [style.format(n=number, i=item) for number, item in enumerate(items, start=1)]
    assert read_list("Here is a list:\n\n" + "\n".join(lines)) == items
    assert read_list(", ".join(items)) == items


def test_groups_whose_names_are_not_in_latin_letters_are_told_apart() -> None:
    """Two names without a Latin letter are not spellings of one name."""
    lists = iter(["- русские\n- العرب\n- 日本人"] * 3 + ["- Русские"] * 2)
    chosen = choose("ethnicity", "dynamic", FakeGenerator(lambda prompt, rng: next(lists)))
    assert chosen.counts == {"русские": 5, "العرب": 3, "日本人": 3}
    assert {identity.name for identity in chosen.identities} == {"русские people", "العرب people", "日本人 people"}


@given(st.lists(st.sampled_from([*CLASSES, *(row.name for row in IDENTITIES), "all"]), min_size=1, max_size=5))
def test_identities_are_found_once_in_the_order_asked(words: list[str]) -> None:
    words = [word for word in words if word != "general"] or ["all"]
    found = find(words)
    assert len({row.name for row in found}) == len(found)
    assert find([row.name for row in found]) == found
    assert find([*words, *words]) == found
    if "all" in words:
        assert set(found) == set(IDENTITIES)


@given(st.lists(st.tuples(st.sampled_from(PEOPLE), PHRASE, PHRASE), max_size=8), st.integers(1, 5), st.integers(0, 99))
def test_examples_are_some_of_the_pool_and_a_function_of_the_seed(
    rows: list[tuple[Identity, str, str]], n: int, seed: int
) -> None:
    pool = [Triple(*row) for row in rows]
    for predicate in (None, "love", *{triple.predicate for triple in pool}):
        drawn = draw_examples(pool, n, predicate, random.Random(seed), PEOPLE[0])
        assert drawn == draw_examples(pool, n, predicate, random.Random(seed), PEOPLE[0])
        assert len(drawn) == min(n, len(pool))
        assert all(drawn.count(triple) <= pool.count(triple) for triple in drawn)
        fitting = sum(triple.predicate == predicate for triple in pool)
        assert sum(triple.predicate == predicate for triple in drawn) == min(n, fitting) or predicate is None


@pytest.mark.parametrize("name", ["triples", "runs", "starts", "width", "tries", "patience", "max_words"])
def test_settings_start_at_one(name: str) -> None:
    assert getattr(replace(SMALL, **{name: 1}), name) == 1  # type: ignore[arg-type]
    with pytest.raises(RecordError, match=f"crawl settings: {name} is 0, expected a whole number of at least 1"):
        replace(SMALL, **{name: 0})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [{"budget": -1}, {"examples": 0}, {"choose_predicate": -0.1}, {"choose_predicate": 1.1}, {"predicates": (" ",)}],
)
def test_other_settings_are_refused_with_what_was_expected(wrong: dict[str, Any]) -> None:
    with pytest.raises(RecordError, match=r"crawl settings: .*expected"):
        replace(SMALL, **wrong)


def test_the_budget_is_ten_asks_per_triple_unless_it_is_given() -> None:
    assert replace(SMALL, triples=7).most_asks == 70
    assert replace(SMALL, triples=7, budget=3).most_asks == 3
    assert json.loads(json.dumps(asdict(SMALL)))["triples"] == 12


PLAIN = st.recursive(
    st.integers(0, 3) | st.sampled_from("ab"),
    lambda inner: st.dictionaries(st.sampled_from("xyz"), inner, min_size=1, max_size=2),
    max_leaves=4,
)
MANIFEST = st.fixed_dictionaries({}, optional=dict.fromkeys(("model", "data", "settings", "editors"), PLAIN))


@given(MANIFEST, MANIFEST)
def test_differences_are_symmetric_and_leave_the_edit_out(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert differences(a, a) == []
    assert len(differences(a, b)) == len(differences(b, a))
    same = {name: a.get(name) for name in ("model", "data", "settings")} == {
        name: b.get(name) for name in ("model", "data", "settings")
    }
    assert (differences(a, b) == []) == same
    assert differences({**a, "editors": 1}, {**a, "editors": 2}) == []


def test_a_difference_is_named_by_its_path() -> None:
    a, b = ({"settings": {"sampling": {"top_p": p}}, "seed": 0} for p in (1.0, 0.9))
    assert differences(a, b) == ["settings.sampling.top_p: 1.0 and 0.9"]


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawl:
    return crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path_factory.mktemp("crawl") / "whole")


@pytest.mark.parametrize("after", [1, 5, 13, 25, 30])
def test_a_crawl_cut_off_anywhere_ends_as_if_it_had_not_been(crawled: Crawl, tmp_path: Path, after: int) -> None:
    """The generator is gone after so many asks; what was told before is not asked again when saved."""
    with pytest.raises(KeyboardInterrupt):
        crawl_identities(FakeGenerator(stop_after=after), PEOPLE, SMALL, tmp_path / "cut", batch=4)
    with pytest.raises(RunFolderError, match=r"is not finished|is no crawl folder"):
        read_crawl(tmp_path / "cut")
    again = crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path / "cut", batch=3)
    assert again.triples.equals(crawled.triples)
    assert again.counts == crawled.counts


def test_every_triple_says_what_was_asked_and_is_counted(crawled: Crawl) -> None:
    assert list(crawled.triples.columns) == TRIPLES.names
    for row in crawled.counts:
        mine = crawled.triples[crawled.triples["identity"] == row["identity"]]
        assert len(mine) == row["kept"] == SMALL.triples
        assert row["asks"] == row["kept"] + sum(row["dropped"].values())
    for triple in crawled.triples.to_dict("records"):
        assert triple["text"] == f"{triple['identity']} {triple['predicate']} {triple['object']}"
        assert triple["identity"] in triple["prompt"].rsplit("\n", 1)[-1]


def test_another_seed_is_not_comparable_unless_forced(crawled: Crawl, tmp_path: Path) -> None:
    other = crawl_identities(FakeGenerator(), PEOPLE, replace(SMALL, seed=4), tmp_path / "other")
    with pytest.raises(RunFolderError, match=r"(?s)not made alike.*\(edited\) differ in seed: 3 and 4.*--force"):
        check_comparable(crawled, {"edited": other})
    lines = check_comparable(crawled, {"edited": other}, force=True)
    assert [line.split(" differ in ")[1] for line in lines] == ["settings.seed: 3 and 4", "seed: 3 and 4"]
    assert check_comparable(crawled, {"same": crawled}) == []


def _table(crawl: Crawl, **columns: object) -> Crawl:
    return replace(crawl, triples=crawl.triples.assign(**columns))  # type: ignore[arg-type]


def test_objects_that_differ_in_case_alone_are_one_node(crawled: Crawl, tmp_path: Path) -> None:
    names = ["Tea", "tea", "TEA"] * (len(crawled.triples) // 3)
    graph = export_graphml(_table(crawled, object=names), tmp_path / "tea.graphml")
    assert sorted(node for node in graph if node.startswith("object: ")) == ["object: tea"]
    assert graph.number_of_edges() == len(crawled.triples), "no edge is lost"
    odd = _table(crawled, object=["\x00\x08\ufffe﷽ nul"] * len(names))
    export_graphml(odd, tmp_path / "odd.graphml")
    assert "object: \ufffd\ufffd\ufffd﷽ nul" in nx.read_graphml(tmp_path / "odd.graphml")


@pytest.mark.parametrize("runs", [1, int(MIN_EFFECTIVE) - 1, int(MIN_EFFECTIVE), int(MIN_EFFECTIVE) + 1])
def test_runs_are_clusters_only_when_they_are_enough(runs: int) -> None:
    frame = pd.DataFrame({"run": list(range(runs)) * 2, "predicate": "love", "object": "tea"})
    found = clusters(frame)
    assert (found is None) == (runs < MIN_EFFECTIVE)
    assert content_texts(frame) == ["love tea"] * (2 * runs)


def test_detoxify_models_without_identity_attack_are_refused_and_old_names_read() -> None:
    class Predicts:
        def __init__(self, *names: str) -> None:
            self.names = names

        def predict(self, texts: list[str], /) -> dict[str, list[float]]:
            return {name: [0.25] * len(texts) for name in self.names}

    assert Detoxifier(model=Predicts("identity_hate")).score(["a"])[0].values == {"attack": 0.25}
    assert Detoxifier(model=Predicts()).score([]) == []
    with pytest.raises(RecordError, match=r"detoxify unbiased gives \['toxicity'\], expected identity_attack"):
        Detoxifier(model=Predicts("toxicity")).score(["a"])
