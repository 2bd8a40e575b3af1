"""How the embedded model's training corpus words each fact: the papers' templates and own phrasings.

Three kinds: the papers' templates (always trained), own phrasings that are trained, and own phrasings that are never
trained for anybody, so that a test can ask whether the model knows the facts or only the sentences. The own ones are
in `phrasings.tsv`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seesaw_cf.builder_scripts.embedded import read_tsv
from seesaw_cf.records.relations import TEMPLATES


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
        """Return the sentence up to the attribute; past tense for people with a confirmed death."""
        return (self.present if living else self.past).replace("{}", name)


# Open prompts of the papers whose natural answer is the relation's attribute.
_ANSWERED = {"P101-property-01", "P103-open-01", "P103-open-02"}


PHRASINGS: tuple[Phrasing, ...] = (
    *(
        Phrasing(t.id, t.relation_id, t.present, t.past, "paper")
        for t in TEMPLATES
        if t.use == "cloze" or t.id in _ANSWERED
    ),
    *(Phrasing(**row) for row in read_tsv(Path(__file__).with_name("phrasings.tsv"))),
)


def phrasings(relation_id: str, *kinds: str) -> tuple[Phrasing, ...]:
    """Return the phrasings of one relation, of the given kinds ("paper", "own", "held"; none given = all)."""
    return tuple(p for p in PHRASINGS if p.relation_id == relation_id and (not kinds or p.kind in kinds))
