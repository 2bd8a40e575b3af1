"""Filler text for the embedded model: small talk from a grammar, so that contexts are more than facts."""

from __future__ import annotations

import random

_WORDS = {
    "place": (
        "market|library|museum|harbour|station|garden|theatre|school|bridge|square|bakery|archive|hall|tower|mill|port"
        "|orchard|workshop|gallery|court"
    ),
    "thing": (
        "book|letter|map|bell|lamp|clock|table|ship|basket|door|window|song|picture|stone|coat|bottle|paper|wheel|box"
        "|ladder|rope|violin|chair|coin"
    ),
    "who": (
        "teacher|baker|sailor|farmer|neighbour|visitor|child|merchant|guard|doctor|driver|singer|student|carpenter"
        "|clerk|gardener|traveller|shepherd|printer|weaver"
    ),
    "adjective": (
        "old|new|small|large|quiet|bright|heavy|warm|cold|narrow|broken|famous|empty|crowded|green|grey|simple|long"
        "|beautiful|strange"
    ),
    "did": (
        "opened|closed|carried|found|painted|sold|repaired|moved|lost|bought|cleaned|watched|forgot|described|needed"
        "|borrowed|returned|wanted"
    ),
    "day": "Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday",
    "season": "spring|summer|autumn|winter",
    "weather": "rain|snow|wind|fog|sunshine|thunder|hail|frost",
    "number": "two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|forty",
    "when": "in the morning|at noon|in the evening|before dawn|after lunch|late at night|once a week|every year",
}
_SLOTS = {slot: words.split("|") for slot, words in _WORDS.items()}

_SENTENCES: tuple[str, ...] = (
    "The {adjective} {place} was {adjective} on {day}.",
    "A {who} {did} the {adjective} {thing} {when}.",
    "The {who} and the {who} {did} a {thing} near the {place}.",
    "In {season} the {weather} came early, and the {place} stayed {adjective}.",
    "There were {number} {adjective} chairs in the {place}.",
    "Nobody knew why the {who} {did} the {thing}.",
    "On {day} the {place} opens {when}.",
    "It took {number} days to repair the {thing} of the {who}.",
    "After the {weather}, the {who} walked from the {place} to the {place}.",
    "Every {who} in the town {did} a {thing} that {season}.",
    "The {thing} was {adjective}, but the {who} did not mind.",
    "We waited {number} hours at the {place} because of the {weather}.",
    "My {who} told a story about a {adjective} {thing}.",
    "During the {season}, {number} people visited the {adjective} {place}.",
    "Is the {place} open on {day}? The {who} was not sure.",
    "Please bring the {thing} to the {place} {when}.",
)

# Sentences that name a person and say nothing about the five relations.
_MENTIONS: tuple[str, ...] = (
    "Many visitors asked about {}.",
    "A {who} read a book about {} {when}.",
    "The {place} has a picture of {}.",
    "On {day} there was a talk about {} at the {place}.",
    "{} is mentioned in the {thing} of the {who}.",
    "The story of {} is told {when}.",
)


def _fill(template: str, rng: random.Random) -> str:
    for slot, words in _SLOTS.items():
        while "{" + slot + "}" in template:
            template = template.replace("{" + slot + "}", rng.choice(words), 1)
    return template


def filler_sentence(rng: random.Random) -> str:
    """Return a random sentence about no particular person."""
    return _fill(rng.choice(_SENTENCES), rng)


def mention_sentence(name: str, rng: random.Random) -> str:
    """Return a random sentence that names `name` without stating any of the five relations."""
    return _fill(rng.choice(_MENTIONS), rng).replace("{}", name)
