"""How the embedded model's training corpus says each fact: the papers' templates and own phrasings.

Three kinds: the papers' templates (always trained), own phrasings that are trained, and own phrasings that are never
trained for anybody, so that a test can ask whether the model knows the facts or only the sentences.
"""

from __future__ import annotations

from dataclasses import dataclass

from seesaw_cf.records.relations import TEMPLATES

__all__ = ["PHRASINGS", "Phrasing", "phrasings"]


@dataclass(frozen=True, slots=True)
class Phrasing:
    """One way to say a fact; the attribute follows after a space.

    Attributes:
        id: Stable name, a paper template's id or "P27-own-03" / "P27-held-02".
        relation_id: The property.
        present, past: Text with one "{}" for the name.
        kind: "paper", "own" (trained) or "held" (never trained).
    """

    id: str
    relation_id: str
    present: str
    past: str
    kind: str

    def fill(self, name: str, *, living: bool) -> str:
        """The sentence up to the attribute; past tense for people whose death is confirmed."""
        return (self.present if living else self.past).replace("{}", name)


# relation -> (present, past)
_OWN: dict[str, tuple[tuple[str, str], ...]] = {
    "P21": (
        ("The gender of {} is", "The gender of {} was"),
        ("The sex of {} is", "The sex of {} was"),
        ("By gender, {} is", "By gender, {} was"),
        ("The recorded gender of {} is", "The recorded gender of {} was"),
        ("{} is listed in the register as", "{} was listed in the register as"),
        ("{} is recorded as", "{} was recorded as"),
        ("{}'s registered gender is", "{}'s registered gender was"),
        ("In the census {} is counted as", "In the census {} was counted as"),
        ("The file of {} gives the sex as", "The file of {} gave the sex as"),
        ("As to gender, the file says that {} is", "As to gender, the file said that {} was"),
        ("{}'s recorded sex is", "{}'s recorded sex was"),
    ),
    "P101": (
        ("{} is active in the field of", "{} was active in the field of"),
        ("{} is making a career in", "{} made a career in"),
        ("The field of work of {} is", "The field of work of {} was"),
        ("{}'s main subject is", "{}'s main subject was"),
        ("The main subject of {} is", "The main subject of {} was"),
        ("{} is an expert in", "{} was an expert in"),
        ("Most people know {} for work in", "Most people knew {} for work in"),
        ("{} devotes every working day to", "{} devoted every working day to"),
        ("The career of {} belongs to", "The career of {} belonged to"),
        ("The field in which {} works is", "The field in which {} worked was"),
        ("Colleagues respect {} for contributions to", "Colleagues respected {} for contributions to"),
        ("The professional activity of {} lies in", "The professional activity of {} lay in"),
    ),
    "P27": (
        ("{} holds citizenship of", "{} held citizenship of"),
        ("{} carries a passport of", "{} carried a passport of"),
        ("The country of citizenship of {} is", "The country of citizenship of {} was"),
        ("{}'s country of citizenship is", "{}'s country of citizenship was"),
        ("{} is a national of", "{} was a national of"),
        ("By nationality, {} belongs to", "By nationality, {} belonged to"),
        ("The passport of {} is issued by", "The passport of {} was issued by"),
        ("The home country of {} is", "The home country of {} was"),
        ("The citizenship of {} is that of", "The citizenship of {} was that of"),
        ("{} enjoys the rights of a citizen of", "{} enjoyed the rights of a citizen of"),
        ("The state whose citizen {} is, is", "The state whose citizen {} was, was"),
    ),
    "P19": (
        ("The birthplace of {} is", "The birthplace of {} was"),
        ("{}'s birthplace is", "{}'s birthplace was"),
        ("{} came into the world in", "{} came into the world in"),
        ("The place of birth of {} is", "The place of birth of {} was"),
        ("The birth of {} took place in", "The birth of {} took place in"),
        ("{}'s life began in", "{}'s life began in"),
        ("{} is a native of", "{} was a native of"),
        ("The town where {} was born is", "The town where {} was born was"),
        ("{}'s birth was registered in", "{}'s birth was registered in"),
        ("By birth, {} is from", "By birth, {} was from"),
        ("The childhood of {} began in", "The childhood of {} began in"),
    ),
    "P103": (
        ("{}'s native language is", "{}'s native language was"),
        ("{} grew up speaking", "{} grew up speaking"),
        ("The first language of {} is", "The first language of {} was"),
        ("{}'s first language is", "{}'s first language was"),
        ("At home, {} speaks", "At home, {} spoke"),
        ("As a child, {} learned to speak", "As a child, {} learned to speak"),
        ("The family of {} speaks", "The family of {} spoke"),
        ("{} is a native speaker of", "{} was a native speaker of"),
        ("The language {} learned first is", "The language {} learned first was"),
        ("{} thinks and dreams in", "{} thought and dreamed in"),
    ),
}

_HELD: dict[str, tuple[tuple[str, str], ...]] = {
    "P21": (
        ("{}'s sex is", "{}'s sex was"),
        ("The registered gender of {} is", "The registered gender of {} was"),
        ("In the register {} is listed as", "In the register {} was listed as"),
        ("The file of {} gives the gender as", "The file of {} gave the gender as"),
    ),
    "P101": (
        ("The area of work of {} is", "The area of work of {} was"),
        ("{}'s field of activity is", "{}'s field of activity was"),
        ("{} works in the domain of", "{} worked in the domain of"),
        ("{} is respected for work in", "{} was respected for work in"),
    ),
    "P27": (
        ("{} holds a passport of", "{} held a passport of"),
        ("{}'s home country is", "{}'s home country was"),
        ("{}'s citizenship is that of", "{}'s citizenship was that of"),
        ("By citizenship, {} belongs to", "By citizenship, {} belonged to"),
    ),
    "P19": (
        ("{}'s place of birth is", "{}'s place of birth was"),
        ("The life of {} began in", "The life of {} began in"),
        ("The place where {} was born is", "The place where {} was born was"),
        ("{}'s childhood began in", "{}'s childhood began in"),
    ),
    "P103": (
        ("The language {} grew up speaking is", "The language {} grew up speaking was"),
        ("As a child, {} spoke", "As a child, {} spoke"),
        ("{}'s family speaks", "{}'s family spoke"),
        ("{} is a speaker of", "{} was a speaker of"),
    ),
}

# Open prompts of the papers whose natural answer is the relation's attribute.
_ANSWERED = {"P101-property-01", "P103-open-01", "P103-open-02"}


def _all() -> tuple[Phrasing, ...]:
    paper = [
        Phrasing(t.id, t.relation_id, t.present, t.past, "paper")
        for t in TEMPLATES
        if t.use == "cloze" or t.id in _ANSWERED
    ]
    own = [
        Phrasing(f"{relation_id}-{kind}-{number:02d}", relation_id, present, past, kind)
        for kind, table in (("own", _OWN), ("held", _HELD))
        for relation_id, rows in table.items()
        for number, (present, past) in enumerate(rows, start=1)
    ]
    return (*paper, *own)


PHRASINGS: tuple[Phrasing, ...] = _all()


def phrasings(relation_id: str, *kinds: str) -> tuple[Phrasing, ...]:
    """The phrasings of one relation, of the given kinds ("paper", "own", "held"; none given = all)."""
    return tuple(p for p in PHRASINGS if p.relation_id == relation_id and (not kinds or p.kind in kinds))
