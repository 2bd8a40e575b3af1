"""One identity of a crawl by itself, and the comparison of two small crawls by hand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from seesaw_cf.errors import RecordError
from seesaw_cf.generation.types import Ask, Completion
from seesaw_cf.texts.graph.changes import ALL, COLUMNS, changes
from seesaw_cf.texts.graph.folder import Crawl
from seesaw_cf.texts.graph.identities import Identity
from seesaw_cf.texts.graph.score import VALUE
from seesaw_cf.texts.graph.settings import CrawlSettings
from seesaw_cf.texts.graph.tables import COMPLETIONS, TRIPLES
from seesaw_cf.texts.graph.templates import Triple
from seesaw_cf.texts.graph.topics import Topics, fit_topics
from seesaw_cf.texts.graph.unit import Asking, IdentityCrawl

BAKERS, TAILORS = Identity("Bakers"), Identity("Tailors")
SETTINGS = CrawlSettings(triples=4, starts=1, tries=2, width=2, patience=4, predicates=("love", "hate"))


def drive(asking: Asking, answer: Callable[[Ask], str]) -> list[int]:
    """Answers every ask; the sizes of the rounds."""
    sizes: list[int] = []
    asks = next(asking, None)
    while asks is not None:
        sizes.append(len(asks))
        made = [Completion(answer(ask)) for ask in asks]
        try:
            asks = asking.send(made)
        except StopIteration:
            asks = None
    return sizes


def words() -> Callable[[Ask], str]:
    """Another object for every ask, in the form that is asked for."""
    numbers = iter(range(1000))
    return lambda ask: ("are A: " if str(ask.prompt).endswith("#") else "") + f"word {next(numbers)}"


def test_a_unit_starts_with_every_predicate_and_ends_with_enough_triples() -> None:
    unit, answer = IdentityCrawl(BAKERS, 0, SETTINGS), words()
    assert drive(unit.start(), answer) == [2]
    assert [triple.predicate for triple in unit.triples] == ["love", "hate"]
    assert drive(unit.expand([]), answer) == [2]
    assert (unit.status, len(unit.triples), unit.abandoned) == ("complete", 4, 0)
    assert all(set(row) == set(COMPLETIONS.names) for row in unit.rows)


def test_a_step_without_a_triple_is_tried_again_and_then_abandoned() -> None:
    unit = IdentityCrawl(BAKERS, 0, SETTINGS)
    assert drive(unit.start(), lambda ask: "...") == [2, 2], "two tries of both steps"
    assert (unit.triples, unit.abandoned) == ([], 2)
    assert [row["verdict"] for row in unit.rows] == ["empty object"] * 4
    assert [(row["step"], row["attempt"]) for row in unit.rows] == [(0, 0), (1, 0), (0, 1), (1, 1)]
    assert len({row["seed"] for row in unit.rows}) == 4


def test_a_unit_with_nothing_to_ask_about_gives_up_at_once() -> None:
    unit = IdentityCrawl(BAKERS, 0, SETTINGS)
    assert drive(unit.expand([]), words()) == []
    assert unit.status == "gave up: 0 steps in a row without a triple, last: nothing asked"
    other = IdentityCrawl(BAKERS, 0, SETTINGS)
    drive(other.expand([Triple(TAILORS, "love", "tea")]), words())
    assert other.status == "complete", "examples of others are enough to ask"


@pytest.mark.parametrize("budget", [1, 2, 3, 5])
def test_the_budget_is_never_exceeded(budget: int) -> None:
    unit = IdentityCrawl(BAKERS, 0, replace(SETTINGS, budget=budget, triples=50, patience=1000))
    drive(unit.start(), lambda ask: "...")
    drive(unit.expand([Triple(TAILORS, "love", "tea")]), lambda ask: "...")
    assert (len(unit.rows), unit.status) == (budget, "budget spent")


def test_a_repeat_is_seen_without_case() -> None:
    answers = iter(["Tea", "x", "tEA", "TEA"])
    unit = IdentityCrawl(BAKERS, 0, replace(SETTINGS, predicates=("love",), starts=4))
    drive(unit.start(), lambda ask: next(answers, "tea"))
    assert [row["verdict"] for row in unit.rows] == ["kept", "kept", "repeat", "repeat", "repeat", "repeat"]


def crawl(rows: Sequence[tuple[str, int, str, str]], **scores: Sequence[object]) -> Crawl:
    """A crawl in memory out of (identity, run, predicate, object)."""
    table: list[dict[str, Any]] = [
        {"kind": "general", "identity": who, "run": run, "step": step, "attempt": 0, "strategy": "start",
         "predicate": predicate, "object": thing, "text": f"{who} {predicate} {thing}", "prompt": "", "seed": step,
         "model": "m"}
        for step, (who, run, predicate, thing) in enumerate(rows)
    ]  # fmt: skip
    triples = pd.DataFrame(table, columns=TRIPLES.names)
    known: dict[str, Any] = {
        "regard": None, "p_positive": None, "p_negative": None, "regard_masked": None, "attack": float("nan"),
        "attack_masked": float("nan"), "status": "ok",
    }  # fmt: skip
    scored = triples[["kind", "identity", "run", "step"]].assign(**known | scores) if scores else None
    return Crawl(Path("x"), {"model": {"id": "m"}, "editors": {}}, triples, [], scored)


def compared(base: Crawl, edited: Crawl, topic: Sequence[int]) -> dict[tuple[str, str], dict[str, Any]]:
    """(measure, identity) -> row; topics are given, so that nothing is fitted."""
    topics = Topics(list(topic), {}, {}, "by hand")
    table = changes(base, edited, topics=topics, permutations=50)
    assert tuple(table.columns) == COLUMNS
    return {(row["measure"], row["identity"]): row for row in table.to_dict("records")}  # type: ignore[misc]


ROWS = [(who, run, "love", f"thing {run}") for who in ("Bakers", "Tailors") for run in range(6)]


def test_the_same_crawl_twice_has_not_changed() -> None:
    one = crawl(ROWS, regard=["positive", "negative"] * 6, attack=[0.1, 0.5] * 6)
    found = compared(one, one, [0, 1] * 12)
    for identity in ("Bakers", "Tailors", ALL):
        for measure in ("regard", "attack"):  # a sum of at most 24 terms below 1, each rounded by 2^-53 at most
            assert found[measure, identity]["change"] == pytest.approx(0, abs=24 * 2**-53)
        assert found["overlap", identity]["change"] == pytest.approx(1)
        assert found["topics", identity]["edited"] == 0, "the divergence of a mix and itself"


def test_two_crawls_that_share_nothing() -> None:
    """Regard turns from positive to negative (1 to -1), no triple is shared, disjoint topics are ln 2 nats apart."""
    base = crawl(ROWS, regard=["positive"] * 12, attack=[0.25] * 12)
    other = crawl(
        [(who, run, "hate", thing) for who, run, _, thing in ROWS], regard=["negative"] * 12, attack=[0.75] * 12
    )
    found = compared(base, other, [0] * 12 + [1] * 12)
    for identity in ("Bakers", "Tailors", ALL):
        row = found["regard", identity]
        assert (row["base"], row["edited"], row["change"]) == (1, -1, pytest.approx(-2))
        assert found["attack", identity]["change"] == pytest.approx(0.5)
        assert found["overlap", identity]["change"] == 0
        assert found["topics", identity]["edited"] == pytest.approx(math.log(2))
    assert VALUE["positive"] == -VALUE["negative"] == 1


def test_an_identity_on_one_side_alone_is_said_to_be() -> None:
    base = crawl(ROWS[:6], attack=[0.5] * 6)
    found = compared(base, crawl(ROWS[6:], attack=[0.5] * 6), [0] * 12)
    for identity in ("Bakers", "Tailors"):
        assert found["attack", identity]["note"] == "no triples on one side"
        assert math.isnan(found["attack", identity]["change"])
        assert found["topics", identity]["note"] == "no topics on one side"


def test_topics_need_two_texts_and_two_topics() -> None:
    for texts, topics in ((["a b"], 2), (["a b", "c d"], 1), ([], 2)):
        with pytest.raises(RecordError, match=rf"topics: {len(texts)} texts and {topics} topics, expected at least 2"):
            fit_topics(texts, topics)
