from __future__ import annotations

import re
from itertools import islice

import pytest

from benchmarks.tiny_model import corpus as tiny_corpus
from benchmarks.tiny_model.corpus import Person, documents, prompts, read_people
from benchmarks.tiny_model.phrasings import PHRASINGS, phrasings
from seesaw_cf.builder_scripts.embedded import FOLDER
from seesaw_cf.records.relations import RELATIONS, TEMPLATES

PEOPLE = FOLDER / "people.tsv"
SEED = 0


@pytest.fixture(scope="module")
def people() -> list[Person]:
    return read_people(PEOPLE)


@pytest.fixture(scope="module")
def texts(people: list[Person]) -> list[str]:
    return list(islice(documents(people, SEED), 3000))


def test_every_relation_has_all_three_kinds_and_every_paper_cloze() -> None:
    for relation_id in RELATIONS:
        assert len(phrasings(relation_id, "own")) >= 10
        assert len(phrasings(relation_id, "held")) >= 3
    ids = {p.id for p in PHRASINGS}
    assert {t.id for t in TEMPLATES if t.use == "cloze"} <= ids
    assert len(ids) == len(PHRASINGS)


def test_held_out_wordings_are_no_trained_wording() -> None:
    for tense in ("present", "past"):
        trained = {getattr(p, tense) for p in PHRASINGS if p.kind != "held"}
        held = [getattr(p, tense) for p in PHRASINGS if p.kind == "held"]
        assert trained.isdisjoint(held)
        assert len(set(held)) == len(held)
        assert all(text.count("{}") == 1 for text in [*trained, *held])


@pytest.fixture(scope="module")
def about(people: list[Person], texts: list[str]) -> dict[str, str]:
    """All documents that name a person, by person: searching them is much faster than searching everything."""
    return {p.name: "\n".join(text for text in texts if p.name in text) for p in people}


@pytest.mark.slow
def test_no_held_out_sentence_is_ever_written(people: list[Person], about: dict[str, str]) -> None:
    found = dict.fromkeys(("seen", "held_pair", "held_phrasing"), 0)
    for prompt in prompts(people, SEED):
        name = prompt.person.name
        for living in (True, False):
            found[prompt.split] += f"{prompt.phrasing.fill(name, living=living)} " in about[name]
    assert found["held_pair"] == found["held_phrasing"] == 0
    assert found["seen"] > 1000


def test_tense_follows_death(people: list[Person]) -> None:
    dead = next(p for p in people if not p.living)
    born = next(p for p in phrasings("P27", "paper"))
    assert born.fill(dead.name, living=dead.living) == f"{dead.name} was a citizen of"
    assert {p.text for p in prompts([dead], SEED)}.isdisjoint(
        p.phrasing.present.replace("{}", dead.name)
        for p in prompts([dead], SEED)
        if p.phrasing.present != p.phrasing.past
    )


@pytest.mark.slow
def test_share_of_wrong_answers_is_the_declared_noise(people: list[Person], about: dict[str, str]) -> None:
    told, wrong = 0, 0
    for prompt in prompts(people, SEED):
        if prompt.phrasing.relation_id == "P19":  # a place drawn from all people is nearly always another one
            own = prompt.person.facts["P19"]
            for answer in re.findall(re.escape(prompt.text) + r" ([^.]*)\.", about[prompt.person.name]):
                told += 1
                wrong += answer not in own
    assert told > 500
    assert 0.5 * tiny_corpus.NOISE < wrong / told < 1.5 * tiny_corpus.NOISE
