"""Clozes with the structure of the real ones: shared templates, shared people, many candidates."""

from seesaw_cf.types import Cloze, ClozeScore

PEOPLE = ("Ada Lovelace", "Zora Neale Hurston", "Marie Curie", "Toni Morrison", "Chinua Achebe", "C. V. Raman", "X")
TEMPLATES = ("{} was born in", "{}'s gender is", "The mother tongue of {} is", "The field of work of {} is")


def clozes(people: int = len(PEOPLE)) -> list[Cloze]:
    return [
        Cloze(template.format(person), target)
        for person in PEOPLE[:people]
        for template in TEMPLATES
        for target in ("London", "female", "the United States of America", "Kraków", "Paris", "Polish", "literature")
    ]


def candidates(count: int, context: str = "The field of work of Ada Lovelace is") -> list[Cloze]:
    """Made-up answers that share prefixes as real names do."""
    syllables = ("ba", "ke", "li", "mo", "nu", "ra", "se", "ti", "vo", "zu")
    names = []
    for number in range(count):
        digits = [int(digit) for digit in str(number)]
        names.append("".join(syllables[digit] for digit in digits))
    return [Cloze(context, name) for name in names]


def worst(got: list[ClozeScore], expected: list[ClozeScore]) -> float:
    """Largest |difference in log p| in nats; everything else must be equal."""
    assert [(s.n_tokens, s.greedy, s.status, s.n_greedy, s.first) for s in got] == [
        (s.n_tokens, s.greedy, s.status, s.n_greedy, s.first) for s in expected
    ]
    return max((abs(a.logprob - b.logprob) for a, b in zip(got, expected, strict=True)), default=0.0)
