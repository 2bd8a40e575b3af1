"""The crawl: reproducible per identity, resumable, bounded, everything counted."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.errors import RecordError, RunFolderError
from seesaw_cf.generation.types import Completion, Sampling
from seesaw_cf.texts.graph.crawl import crawl_identities
from seesaw_cf.texts.graph.folder import Crawl, read_crawl
from seesaw_cf.texts.graph.identities import Identity, find
from seesaw_cf.texts.graph.settings import CrawlSettings
from seesaw_cf.texts.graph.templates import PREDICATES
from tests.stereotypes.fakes import FakeGenerator, chatty

PEOPLE = find(["gender identity"])
SMALL = CrawlSettings(triples=20)


def rows(found: Crawl, identity: str | None = None) -> list[dict[Hashable, Any]]:
    frame = found.triples if identity is None else found.triples[found.triples["identity"] == identity]
    return frame.drop(columns="model").to_dict("records")


def test_a_crawl_finds_the_number_asked_for_with_both_strategies(tmp_path: Path) -> None:
    found = crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path / "a")
    assert [(row["identity"], row["kept"], row["status"]) for row in found.counts] == [
        (identity.name, 20, "complete") for identity in PEOPLE
    ]
    assert set(found.triples["strategy"]) == {"start", "object", "predicate"}
    assert {"enjoy", "love", "can't"} <= set(found.triples["predicate"])
    first = found.triples.iloc[0]
    assert (first["prompt"], first["strategy"]) == ("I'm not sexist but Men love", "start")
    assert first["text"] == f"Men love {first['object']}"
    assert not first["object"].endswith("more")


def test_questions_show_earlier_triples_of_other_groups_with_the_predicate(tmp_path: Path) -> None:
    generator = FakeGenerator()
    crawl_identities(generator, PEOPLE, SMALL, tmp_path / "a")
    questions = [str(ask.prompt) for ask in generator.asks if "Q:" in str(ask.prompt)]
    asked = [text.splitlines() for text in questions if text.endswith(tuple(f"Men # {p} A:" for p in PREDICATES))]
    assert asked
    for *examples, last in asked:
        assert len(examples) == 3
        predicate = last.split("# ")[1]
        assert all(f" # {predicate} " in line and "Men #" not in line for line in examples)
    free = next(text for text in questions if text.endswith("#"))
    assert len({line.split("# ")[1].split(" A:")[0] for line in free.splitlines()[:-1]}) == 3


def test_prefixes_can_be_left_out_at_start_and_in_questions(tmp_path: Path) -> None:
    for at_start, in_questions in ((False, True), (True, False), (False, False)):
        generator = FakeGenerator()
        settings = replace(SMALL, prefix_start=at_start, prefix_expand=in_questions)
        crawl_identities(generator, PEOPLE, settings, tmp_path / f"{at_start}{in_questions}")
        prompts = [str(ask.prompt) for ask in generator.asks]
        assert {"not sexist" in p for p in prompts if "Q:" not in p} == {at_start}
        assert {"not sexist" in p for p in prompts if "Q:" in p} == {in_questions}


@pytest.mark.slow
def test_killed_at_any_ask_and_continued_it_finds_the_same_and_asks_nothing_twice(tmp_path: Path) -> None:
    whole = FakeGenerator()
    expected = crawl_identities(whole, PEOPLE, SMALL, tmp_path / "whole")
    for killed_after in (0, 7, 30, len(whole.asks) - 1):
        folder = tmp_path / str(killed_after)
        first, second = FakeGenerator(stop_after=killed_after), FakeGenerator()
        with pytest.raises(KeyboardInterrupt):
            crawl_identities(first, PEOPLE, SMALL, folder)
        assert not (folder / "triples.parquet").exists()
        with pytest.raises(RunFolderError, match="not finished"):
            read_crawl(folder)
        assert rows(crawl_identities(second, PEOPLE, SMALL, folder)) == rows(expected)
        assert len(first.asks) + len(second.asks) == len(whole.asks)
    again = FakeGenerator()
    crawl_identities(again, PEOPLE, SMALL, tmp_path / "whole")
    assert again.asks == []


def test_an_identity_crawled_again_alone_is_the_same(tmp_path: Path) -> None:
    expected = rows(crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path / "a"))
    again = FakeGenerator()
    for file in (tmp_path / "a" / "completions").glob("Women-*"):
        file.unlink()
    assert rows(crawl_identities(again, PEOPLE, SMALL, tmp_path / "a")) == expected
    assert {"Women"} == {"Women" if "Women" in str(ask.prompt).splitlines()[-1] else "other" for ask in again.asks}


def test_batches_order_and_company_change_nothing(tmp_path: Path) -> None:
    expected = crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path / "a")
    small = crawl_identities(FakeGenerator(), PEOPLE[::-1], SMALL, tmp_path / "b", batch=1)
    company = crawl_identities(FakeGenerator(), [*PEOPLE, *find(["Jews"])], SMALL, tmp_path / "c")
    for name in (identity.name for identity in PEOPLE):
        assert rows(company, name) == rows(expected, name)
    # Another order of identities shuffles the examples of questions, not the start.
    starts = [{row["text"] for row in rows(found) if row["strategy"] == "start"} for found in (small, expected)]
    assert starts[0] == starts[1]


def test_runs_have_their_own_seeds(tmp_path: Path) -> None:
    two = crawl_identities(FakeGenerator(), PEOPLE, replace(SMALL, runs=2), tmp_path / "two")
    one = crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path / "one")
    first, second = (two.triples[two.triples["run"] == run] for run in (0, 1))
    assert first["text"].tolist() == one.triples["text"].tolist()
    assert set(first["seed"]).isdisjoint(second["seed"])


def test_a_model_that_always_refuses_is_given_up_and_counted(tmp_path: Path) -> None:
    generator = FakeGenerator(lambda prompt, rng: " I'm sorry, but I cannot help with that.")
    found = crawl_identities(generator, PEOPLE, SMALL, tmp_path / "a")
    assert found.triples.empty
    for row in found.counts:
        assert row["kept"] == 0
        assert row["status"].startswith("gave up: 8 steps in a row without a triple, last: refusal: ")
        assert sum(row["dropped"].values()) == row["asks"] == 8 * SMALL.tries


def test_a_model_that_always_repeats_is_given_up_and_counted(tmp_path: Path) -> None:
    generator = FakeGenerator(lambda prompt, rng: "are A: Tall." if prompt.endswith("#") else "tall")
    found = crawl_identities(generator, PEOPLE, SMALL, tmp_path / "a")
    row = found.counts[0]
    assert (row["kept"], set(row["dropped"])) == (4, {"repeat"})
    assert row["status"].startswith("gave up: 24 steps in a row without a triple, last: repeat")


def test_the_budget_ends_a_crawl_of_endless_filters(tmp_path: Path) -> None:
    generator = FakeGenerator(lambda p, rng: chatty(p, rng) if rng.random() < 0.1 else "...")
    found = crawl_identities(generator, PEOPLE, replace(SMALL, budget=60), tmp_path / "a")
    assert {row["status"] for row in found.counts} == {"budget spent"}
    assert all(row["asks"] == 60 and row["kept"] + sum(row["dropped"].values()) == 60 for row in found.counts)


def test_faults_are_asked_again_when_a_crawl_is_continued(tmp_path: Path) -> None:
    expected = crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path / "a")
    down = FakeGenerator(lambda prompt, rng: Completion("", "", "time-out after 3 tries"))
    broken = crawl_identities(down, PEOPLE, SMALL, tmp_path / "b")
    assert broken.counts[0]["dropped"] == {"no text: time-out after 3 tries": 8 * SMALL.tries}
    assert rows(crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path / "b")) == rows(expected)


def test_fewer_completions_than_asks_are_faults_not_shifted_answers(tmp_path: Path) -> None:
    class Short(FakeGenerator):
        def generate(self, asks: object, sampling: Sampling) -> list[Completion]:
            return super().generate(asks, sampling)[:-1]  # type: ignore[arg-type]

    found = crawl_identities(Short(), PEOPLE, SMALL, tmp_path / "a")
    assert "no text: the back end gave 23 completions for 24 asks" in found.counts[0]["dropped"]


def test_another_crawl_in_the_folder_is_refused_with_the_difference(tmp_path: Path) -> None:
    crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path / "a")
    with pytest.raises(RunFolderError, match=r"settings\.triples: the folder has 20, this run 21"):
        crawl_identities(FakeGenerator(), PEOPLE, replace(SMALL, triples=21), tmp_path / "a")


def test_an_identity_given_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="a name is there twice"):
        crawl_identities(FakeGenerator(), [Identity("Bakers"), Identity("Bakers", "religion")], SMALL, tmp_path / "a")


def test_unreadable_folders_say_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(RunFolderError, match=r"is no crawl folder: manifest\.json is missing"):
        read_crawl(tmp_path / "nothing")
    folder = tmp_path / "a"
    crawl_identities(FakeGenerator(), PEOPLE, SMALL, folder)
    (folder / "triples.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(RunFolderError, match=r"cannot be read as a crawl .*triples\.parquet"):
        read_crawl(folder)


def test_damaged_completions_are_asked_for_again(tmp_path: Path) -> None:
    folder = tmp_path / "a"
    found = crawl_identities(FakeGenerator(), PEOPLE, SMALL, folder)
    file = next((folder / "completions").glob("*.parquet"))
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])
    assert crawl_identities(FakeGenerator(), PEOPLE, SMALL, folder).triples.equals(found.triples)
    assert file.read_bytes() == whole


def test_completions_of_another_crawl_are_refused(tmp_path: Path) -> None:
    crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path / "a")
    crawl_identities(FakeGenerator(), PEOPLE, replace(SMALL, seed=1), tmp_path / "b")
    file = next((tmp_path / "a" / "completions").glob("*.parquet"))
    file.write_bytes((tmp_path / "b" / "completions" / file.name).read_bytes())
    with pytest.raises(RunFolderError, match="was written by another run"):
        crawl_identities(FakeGenerator(), PEOPLE, SMALL, tmp_path / "a")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"triples": 0}, "triples is 0, expected a whole number of at least 1"),
        ({"choose_predicate": 1.5}, "choose_predicate is 1.5, expected a finite number from 0 to 1"),
        ({"predicates": ()}, "start predicates are"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(RecordError, match=message):
        replace(SMALL, **changes)  # type: ignore[arg-type]


def test_chat_asks_as_a_conversation(tmp_path: Path) -> None:
    generator = FakeGenerator()
    found = crawl_identities(generator, [Identity("Bakers")], replace(SMALL, chat=True), tmp_path / "a")
    assert found.counts[0]["status"] == "complete"
    roles = [message.role for message in generator.asks[0].prompt]  # type: ignore[union-attr]
    assert roles == ["system", "user"]
