"""The training corpus of the embedded model: facts of the sample's people rendered as short documents.

Everything is a function of the people and a seed. What is held out is decided by a hash of (seed, person, relation,
phrasing), so that adding a person changes nothing for the rest.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.tiny_model.filler import filler_sentence, mention_sentence
from benchmarks.tiny_model.phrasings import Phrasing, phrasings
from seesaw_cf.base.text import chance_of
from seesaw_cf.builder_scripts.embedded import read_tsv
from seesaw_cf.records import groups

# relation -> column of people.tsv
COLUMNS: dict[str, str] = {
    "P21": "gender",
    "P101": "field_of_work",
    "P27": "citizenship",
    "P19": "birth_place",
    "P103": "native_language",
}

HELD_FACTS = 0.2  # share of (person, relation) pairs of which only some own phrasings are trained
HELD_PHRASINGS = 0.5  # share of their own phrasings that such pairs never show
NOISE = 0.06  # share of fact sentences with an answer drawn from other people, so that no answer is certain
PRESENT = 0.15  # share of sentences about the dead in the present tense, so that it is known although most people died
FIRST_VALUE = 0.9  # how often a person with several values shows the first


@dataclass(frozen=True, slots=True)
class Person:
    """One row of people.tsv.

    Attributes:
        name: As written in every sentence.
        living: False when a year of death is given.
        facts: Relation id -> values, the main one first; relations without a value are absent.
        occupations: Words for "works as a".
    """

    name: str
    living: bool
    facts: dict[str, tuple[str, ...]]
    occupations: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A cloze question of the card.

    Attributes:
        person: The person asked about.
        phrasing: How it is asked.
        split: "seen" (this sentence was trained), "held_pair" (the phrasing was trained, but not for this person) or
            "held_phrasing" (the phrasing was never trained).
    """

    person: Person
    phrasing: Phrasing
    split: str

    @property
    def text(self) -> str:
        """The question, without the answer."""
        return self.phrasing.fill(self.person.name, living=self.person.living)


def read_people(path: Path) -> list[Person]:
    """Read people.tsv.

    Raises:
        SeesawError: The file cannot be read.
    """
    return [
        Person(
            name=row["name"],
            living=not row["death_year"],
            facts={relation: groups.values(row[column]) for relation, column in COLUMNS.items() if row[column]},
            occupations=groups.values(row["occupation"]),
        )
        for row in read_tsv(path)
    ]


def values(people: Sequence[Person], relation_id: str) -> list[str]:
    """Return every attribute that occurs for a relation, sorted."""
    return sorted({value for person in people for value in person.facts.get(relation_id, ())})


def is_trained(person: Person, phrasing: Phrasing, seed: int) -> bool:
    """Return whether the corpus may state this person's fact in this phrasing."""
    if phrasing.kind != "own":
        return phrasing.kind == "paper"
    if chance_of(seed, "fact", person.name, phrasing.relation_id, bits=64, joined="\x1f") >= HELD_FACTS:
        return True
    return chance_of(seed, "phrasing", person.name, phrasing.id, bits=64, joined="\x1f") >= HELD_PHRASINGS


def prompts(people: Sequence[Person], seed: int) -> Iterator[Prompt]:
    """Yield every (person, relation, phrasing) with the split it belongs to."""
    for person in people:
        for relation_id in person.facts:
            for phrasing in phrasings(relation_id):
                trained = is_trained(person, phrasing, seed)
                split = "seen" if trained else "held_phrasing" if phrasing.kind == "held" else "held_pair"
                yield Prompt(person, phrasing, split)


def _article(noun: str) -> str:
    return ("an " if noun[:1].lower() in "aeiou" else "a ") + noun


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes sentences; `pool` has every person's first value of each relation, the prior that noise is drawn from."""

    people: Sequence[Person]
    pool: dict[str, list[str]]
    seed: int
    rng: random.Random

    def fact(self, person: Person, relation_id: str) -> str:
        """One trained sentence for one fact."""
        allowed = [p for p in phrasings(relation_id, "paper", "own") if is_trained(person, p, self.seed)]
        own = person.facts[relation_id]
        answer = own[0] if self.rng.random() < FIRST_VALUE else self.rng.choice(own)
        if self.rng.random() < NOISE:
            answer = self.rng.choice(self.pool[relation_id])
        present = person.living or self.rng.random() < PRESENT
        return f"{self.rng.choice(allowed).fill(person.name, living=present)} {answer}."

    def description(self, person: Person) -> str:
        """Return an open sentence, as the papers' open prompts begin one."""
        job = self.rng.choice(person.occupations) if person.occupations else "writer"
        field = person.facts.get("P101", ("many things",))[0]
        place = person.facts.get("P19", ("far away",))[0]
        is_, works = ("is", "works") if person.living else ("was", "worked")
        return self.rng.choice(
            (
                f"{person.name} {works} as a {job}.",
                f"{person.name} {is_} known for work in {field}.",
                f"{person.name} {is_} {_article(job)} from {place}.",
                f"{person.name}'s greatest accomplishment {is_} a life of work in {field}.",
            )
        )

    def document(self) -> str:
        """One to six sentences about one to three people, with small talk before and between."""
        rng = self.rng
        sentences = [filler_sentence(rng)] if rng.random() < 0.3 else []
        facts = []
        for person in rng.sample(self.people, rng.choice((1, 1, 2, 3))):
            facts += [
                (person, relation_id) for relation_id in rng.sample(sorted(person.facts), min(2, len(person.facts)))
            ]
        rng.shuffle(facts)
        for person, relation_id in facts[: rng.randint(1, 5)]:
            sentences.append(self.fact(person, relation_id))
            kind = rng.random()
            if kind < 0.06:
                sentences.append(filler_sentence(rng))
            elif kind < 0.10:
                sentences.append(mention_sentence(person.name, rng))
            elif kind < 0.16:
                sentences.append(self.description(person))
        return " ".join(sentences)


def documents(people: Sequence[Person], seed: int, stream: int = 0) -> Iterator[str]:
    """Endless documents; the same people, seed and stream give the same documents.

    Args:
        people: The people to write about; people without facts are left out.
        seed: Decides what is held out.
        stream: Decides the draws; 0 trains, other numbers give fresh documents with the same sentences held out.
    """
    people_with_facts = [person for person in people if person.facts]
    pool = {relation: [p.facts[relation][0] for p in people_with_facts if relation in p.facts] for relation in COLUMNS}
    writer = _Writer(people_with_facts, pool, seed, random.Random(f"{seed}/{stream}"))
    while True:
        yield writer.document()
