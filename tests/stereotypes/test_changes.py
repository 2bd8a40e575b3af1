"""Before and after an edit: planted differences are recovered, nothing is found where nothing is."""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.effects.means import ALL
from seesaw_cf.errors import RunFolderError
from seesaw_cf.texts.graph import GraphJob
from seesaw_cf.texts.graph import crawl as crawl_module
from seesaw_cf.texts.graph.crawl import COMPLETIONS, SCORES, Crawl, crawl_identities
from seesaw_cf.texts.graph.identities import Identity
from seesaw_cf.texts.graph.report import change_screen, check_comparable
from seesaw_cf.texts.graph.rows import change_rows, content_texts
from seesaw_cf.texts.graph.scores import Topics, fit_topics, score_crawl
from tests.stereotypes.fakes import FakeGenerator, known_attack, known_regard

PEOPLE = [Identity(name) for name in ("Bakers", "Tailors", "Sailors", "Miners", "Dancers", "Poets")]
SETTINGS = GraphJob("m", triples=60, repeats=6, seed=1)
GOOD, BAD = ("kind", "clever", "warm"), ("lazy", "rude", "cold")


def simulated(bad: Callable[[str], float], noise: str = "") -> FakeGenerator:
    """A model that says something bad of a group with a known probability; the same draw for the same prompt and seed.

    What it says does not depend on the examples in the prompt, so that the planted share is the share of its triples.
    """

    def write(prompt: str, rng: random.Random) -> str:
        last = prompt.rsplit("\n", 1)[-1]
        name = next(person.name for person in PEOPLE if person.name in last)
        draw = rng.random()
        words = BAD if draw < bad(name) else GOOD
        return f" {rng.choice(words)} {rng.randrange(10**6)}{noise}"

    return FakeGenerator(write)


def scored(generator: FakeGenerator, folder: Path, settings: GraphJob = SETTINGS) -> Crawl:
    regard = known_regard(lambda text: "negative" if any(word in text for word in BAD) else "positive")
    attack = known_attack(lambda text: 0.8 if any(word in text for word in BAD) else 0.1)
    return score_crawl(crawl_identities(generator, PEOPLE, settings, folder), regard, attack)


@pytest.fixture(scope="module", autouse=True)
def given_predicates() -> Iterator[None]:
    """The model chooses no predicate, so that every answer is an object."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(crawl_module, "CHOOSE_PREDICATE", 0.0)
        yield


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Crawl]:
    folder = tmp_path_factory.mktemp("crawls")
    edited = simulated(lambda name: 0.6 if name == "Bakers" else 0.3)
    return {
        "base": scored(simulated(lambda name: 0.3), folder / "base"),
        "edited": scored(edited, folder / "edited"),
        "random edit": scored(simulated(lambda name: 0.3, noise="x"), folder / "random"),
    }


def changes(base: Crawl, edited: Crawl, draws: int = 50, **controls: Crawl) -> pd.DataFrame:
    """Rows of changes, by measure and identity; those beyond a control only when there is one."""
    texts = [text for crawl in (base, edited, *controls.values()) for text in content_texts(crawl.triples)]
    topics = fit_topics(texts, 8, method="nmf")
    frame = change_rows(base, edited, controls, topics=topics, draws=draws)
    frame = frame[frame["what"] == ("beyond" if controls else "change")]
    return frame.set_index(["about", "group"]).sort_index()


@pytest.mark.slow
def test_a_planted_change_is_within_its_interval_and_alone(crawls: dict[str, Crawl]) -> None:
    table = changes(crawls["base"], crawls["edited"], draws=200)
    for measure, truth in (("regard", -0.6), ("attack", 0.21)):
        rows = table.loc[measure]
        bakers = rows.loc["Bakers"]
        assert bakers["low"] <= truth <= bakers["high"]
        assert (bakers["p_adjusted"] < 0.05, bakers["verdict"]) == (True, "worse")
        others = rows.drop(index=["Bakers", ALL])
        assert (others["p_adjusted"].isna() | (others["p_adjusted"] > 0.05)).all()
        assert (others["low"].isna() | ((others["low"] <= 0) & (others["high"] >= 0))).all()
        assert rows.loc[ALL, "n"] == 2 * 6 * 60 * len(PEOPLE)
    topics = table.loc["topics"]["p"]
    assert topics["Bakers"] < 0.05  # six runs swap sides in 32 ways, which no correction over identities survives
    assert (topics.drop(index=["Bakers", ALL]) > 0.05).all()
    overlap = table.loc["overlap"]["value"]
    assert overlap["Bakers"] < 0.9 < overlap["Poets"]


@pytest.mark.slow
def test_against_a_control_the_base_cancels(crawls: dict[str, Crawl]) -> None:
    beyond = changes(crawls["base"], crawls["edited"], random=crawls["random edit"]).loc["regard"]["value"]
    own, control = (changes(crawls["base"], crawls[name]).loc["regard"]["value"] for name in ("edited", "random edit"))
    for name in ("Bakers", "Miners", ALL):
        assert beyond[name] == pytest.approx(own[name] - control[name])


@pytest.mark.slow(30)
@pytest.mark.exhaustive
def test_intervals_cover_as_often_as_they_say(tmp_path: Path) -> None:
    """Two identities change by -0.4, four do not; 6 runs, so that t has five degrees of freedom."""
    hits: dict[bool, list[bool]] = {True: [], False: []}
    for trial in range(50):
        settings = replace(SETTINGS, triples=30, seed=trial)
        base = scored(simulated(lambda name: 0.3), tmp_path / f"a{trial}", settings)
        edited = scored(simulated(lambda name: 0.5 if name < "M" else 0.3), tmp_path / f"b{trial}", settings)
        for name, row in changes(base, edited, draws=2).loc["regard"].drop(index=ALL).iterrows():
            planted = str(name) < "M"
            hits[planted].append(row["low"] <= (-0.4 if planted else 0.0) <= row["high"])
    assert [len(found) for found in hits.values()] == [100, 200]
    for found in hits.values():
        assert 0.89 <= np.mean(found) <= 0.995, {name: np.mean(values) for name, values in hits.items()}


def test_crawls_made_differently_are_refused_with_the_list(tmp_path: Path) -> None:
    small = replace(SETTINGS, repeats=2, triples=12)
    base = crawl_identities(simulated(lambda name: 0.3), PEOPLE, small, tmp_path / "b")
    other = crawl_identities(
        simulated(lambda name: 0.3), PEOPLE[:5], replace(small, repeats=1, triples=10), tmp_path / "o"
    )
    message = r"data\.identities: .*\n.*settings\.repeats: 2 and 1\n.*settings\.triples: 12 and 10"
    with pytest.raises(RunFolderError, match=message):
        check_comparable(base, {"edited": other})
    edit = {**base.manifest, "editors": {"delta": {"name": "an edit"}}}
    check_comparable(base, {"edited": replace(base, manifest=edit)})
    frame = change_rows(base, other, topics=Topics([0] * (len(base.triples) + len(other.triples)), {}, {}, ""))
    poets = frame[(frame["group"] == "Poets") & (frame["about"] == "topics")].iloc[0]
    assert poets["note"] == "no triples on one side"
    screen = change_screen(base, other, frame)
    assert screen.finding == ["Whether the model speaks worse of anybody after the edit was not scored."]


# Two small crawls by hand.


def crawl(rows: Sequence[tuple[str, int, str, str]], label: str, value: float, attack: float) -> Crawl:
    """A crawl in memory out of (identity, run, predicate, object); every triple has the same scores."""
    empty = dict.fromkeys(COMPLETIONS.names, "") | {
        "kind": "general",
        "strategy": "start",
        "verdict": "kept",
        "attempt": 0,
    }
    table = [
        empty
        | {"identity": who, "run": run, "step": step, "seed": step, "found_predicate": predicate, "found_object": thing}
        for step, (who, run, predicate, thing) in enumerate(rows)
    ]
    texts = {f"{who} {predicate} {thing}" for who, _, predicate, thing in rows}
    given = (("regard", label, value), ("attack", None, attack))
    scores = [(measure, "s", text, of, number, "ok") for text in sorted(texts) for measure, of, number in given]
    scored = pd.DataFrame(scores, columns=SCORES.names)
    return Crawl(Path("x"), {"model": {"id": "m"}}, "m", GraphJob("m", triples=6), pd.DataFrame(table), scored)


ROWS = [(who, run, "love", f"thing {run}") for who in ("Bakers", "Tailors") for run in range(6)]


def compared(base: Crawl, edited: Crawl, topic: Sequence[int]) -> pd.DataFrame:
    """Rows by (measure, identity, what); topics are given, so that nothing is fitted."""
    frame = change_rows(base, edited, topics=Topics(list(topic), {}, {}, "by hand"), draws=50)
    return frame.set_index(["about", "group", "what"]).sort_index()


def test_two_crawls_that_share_nothing() -> None:
    """Regard turns from positive to negative (1 to -1), no triple is shared, disjoint topics are ln 2 nats apart."""
    base = crawl(ROWS, "positive", 1, 0.25)
    other = crawl([(who, run, "hate", thing) for who, run, _, thing in ROWS], "negative", -1, 0.75)
    table = compared(base, other, [0] * 12 + [1] * 12)["value"]
    for identity in ("Bakers", "Tailors", ALL):
        before, after, change = (table["regard", identity, what] for what in ("before", "after", "change"))
        assert (before, after, change) == (1, -1, pytest.approx(-2))
        assert table["attack", identity, "change"] == pytest.approx(0.5)
        assert table["overlap", identity, "change"] == 0
        assert table["topics", identity, "after"] == pytest.approx(math.log(2))
    same = compared(base, base, [0, 1] * 12)["value"]
    assert same["overlap", ALL, "change"] == pytest.approx(1)
    assert same["topics", ALL, "after"] == 0, "the divergence of a mix and itself"
