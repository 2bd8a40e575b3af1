"""Before and after an edit: planted differences are recovered, nothing is found where nothing is."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from seesaw_cf.errors import RunFolderError
from seesaw_cf.texts.graph.changes import ALL, changes, check_comparable
from seesaw_cf.texts.graph.crawl import crawl_identities
from seesaw_cf.texts.graph.folder import Crawl
from seesaw_cf.texts.graph.identities import Identity
from seesaw_cf.texts.graph.score import score_crawl
from seesaw_cf.texts.graph.settings import CrawlSettings
from tests.stereotypes.classifiers import KnownAttack, KnownRegard
from tests.stereotypes.fakes import FakeGenerator

PEOPLE = [Identity(name) for name in ("Bakers", "Tailors", "Sailors", "Miners", "Dancers", "Poets")]
SETTINGS = CrawlSettings(triples=60, runs=6, choose_predicate=0.0, seed=1)
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


def scored(generator: FakeGenerator, folder: Path, settings: CrawlSettings = SETTINGS) -> Crawl:
    regard = KnownRegard(lambda text: "negative" if any(word in text for word in BAD) else "positive")
    attack = KnownAttack(lambda text: 0.8 if any(word in text for word in BAD) else 0.1)
    return score_crawl(crawl_identities(generator, PEOPLE, settings, folder), regard, attack, contents=5)


@pytest.fixture(scope="module")
def crawls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Crawl]:
    folder = tmp_path_factory.mktemp("crawls")
    edited = simulated(lambda name: 0.6 if name == "Bakers" else 0.3)
    return {
        "base": scored(simulated(lambda name: 0.3), folder / "base"),
        "edited": scored(edited, folder / "edited"),
        "random edit": scored(simulated(lambda name: 0.3, noise="x"), folder / "random"),
    }


@pytest.mark.slow
def test_a_planted_change_is_within_its_interval_and_alone(crawls: dict[str, Crawl]) -> None:
    table = changes(crawls["base"], crawls["edited"], permutations=200)
    for measure, truth in (("regard", -0.6), ("attack", 0.21)):
        rows = table[table["measure"] == measure].set_index("identity")
        bakers = rows.to_dict("index")["Bakers"]
        assert bakers["low"] <= truth <= bakers["high"]
        assert bakers["p_adjusted"] < 0.05
        others = rows.drop(index=["Bakers", ALL])
        assert (others["p_adjusted"].isna() | (others["p_adjusted"] > 0.05)).all()
        assert (others["low"].isna() | ((others["low"] <= 0) & (others["high"] >= 0))).all()
        assert rows.loc[ALL, "n"] == 2 * 6 * 60 * len(PEOPLE)
    topics = table[table["measure"] == "topics"].set_index("identity")["p"]
    assert topics["Bakers"] < 0.05  # six runs swap sides in 32 ways, which no correction over identities survives
    assert (topics.drop(index=["Bakers", ALL]) > 0.05).all()
    overlap = table[table["measure"] == "overlap"].set_index("identity")["change"]
    assert overlap["Bakers"] < 0.9 < overlap["Poets"]


@pytest.mark.slow
def test_against_a_control_the_base_cancels(crawls: dict[str, Crawl]) -> None:
    controls = {"random edit": crawls["random edit"]}
    table = changes(crawls["base"], crawls["edited"], controls, permutations=50)
    regard = table[table["measure"] == "regard"].set_index(["against", "identity"])["change"]
    control = changes(crawls["base"], crawls["random edit"], permutations=50)
    own = control[control["measure"] == "regard"].set_index("identity")["change"]
    for name in ("Bakers", "Miners", ALL):
        assert regard["random edit", name] == pytest.approx(regard["base", name] - own[name])


@pytest.mark.slow
def test_the_same_crawl_twice_has_not_changed(crawls: dict[str, Crawl]) -> None:
    table = changes(crawls["base"], crawls["base"], permutations=50)
    assert (table[table["measure"].isin(["regard", "attack"])]["change"].abs() < 1e-12).all()
    assert table[table["measure"] == "overlap"]["change"].to_numpy() == pytest.approx(1)
    assert not (table["p_adjusted"] < 0.05).any()


@pytest.mark.slow
def test_with_few_runs_the_note_says_what_was_assumed(tmp_path: Path) -> None:
    one = replace(SETTINGS, runs=1)
    a = scored(simulated(lambda name: 0.3), tmp_path / "a", one)
    b = scored(simulated(lambda name: 0.3 if name != "Poets" else 0.9), tmp_path / "b", one)
    table = changes(a, b, permutations=100)
    poets = table[(table["measure"] == "regard") & (table["identity"] == "Poets")].iloc[0]
    assert poets["low"] <= -1.2 <= poets["high"]
    assert "1 run: steps are taken for independent; use five runs or more" in poets["note"]


@pytest.mark.slow(30)
@pytest.mark.exhaustive
def test_intervals_cover_as_often_as_they_say(tmp_path: Path) -> None:
    """Two identities change by -0.4, four do not; 6 runs, so that t has five degrees of freedom."""
    hits: dict[bool, list[bool]] = {True: [], False: []}
    for trial in range(50):
        settings = replace(SETTINGS, triples=30, seed=trial)
        base = scored(simulated(lambda name: 0.3), tmp_path / f"a{trial}", settings)
        edited = scored(simulated(lambda name: 0.5 if name < "M" else 0.3), tmp_path / f"b{trial}", settings)
        table = changes(base, edited, permutations=2)
        for row in table[(table["measure"] == "regard") & (table["identity"] != ALL)].to_dict("records"):
            planted = row["identity"] < "M"
            hits[planted].append(row["low"] <= (-0.4 if planted else 0.0) <= row["high"])
    assert [len(found) for found in hits.values()] == [100, 200]
    for found in hits.values():
        assert 0.89 <= np.mean(found) <= 0.995, {name: np.mean(values) for name, values in hits.items()}


def test_crawls_made_differently_are_refused_with_the_list(crawls: dict[str, Crawl], tmp_path: Path) -> None:
    settings = replace(SETTINGS, runs=1, triples=50)
    other = crawl_identities(simulated(lambda name: 0.3), PEOPLE[:5], settings, tmp_path / "o")
    message = r"data\.identities: .*\n.*settings\.runs: 6 and 1\n.*settings\.triples: 60 and 50\n.*--force"
    with pytest.raises(RunFolderError, match=message):
        check_comparable(crawls["base"], {"edited": other})
    assert len(check_comparable(crawls["base"], {"edited": other}, force=True)) == 3
    assert check_comparable(crawls["base"], {"edited": crawls["edited"], "r": crawls["random edit"]}) == []
    table = changes(crawls["base"], other, permutations=10)
    gone = table[(table["identity"] == "Poets") & (table["measure"] == "topics")].iloc[0]
    assert gone["note"] == "no topics on one side"
    assert set(table["measure"]) == {"regard", "attack", "topics", "overlap"}
