"""The rules of a build, as one frozen record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seesaw_cf.errors import RecordError
from seesaw_cf.relations import RELATIONS

__all__ = ["SAMPLE_OPTIONS", "BuildOptions"]


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a build asks for.

    Attributes:
        seed: Decides every draw: who is edited, to what, and which holders are asked about.
        language: Language tag of the labels.
        edits: Relation -> number of edits to generate, half about men and half about women.
        per_gender: Holders of target_new asked about, per gender. Source: SEESAW-CF Appendix B, 100.
        true_per_gender: Holders of target_true asked about, per gender; 0 is the papers' rule.
        other_genders: Also ask about up to `per_gender` holders of other genders.
        skip_both: Leave out people who hold target_new and target_true, for whom neither answer is wrong.
        min_holders: A generated edit's target_new has at least this many holders.
        per_pair: Cross-property cases per pair of relations.
        neighborhood: Prompts about holders of target_true in CounterFact's sense, per case.
        paraphrases: Other phrasings of the edit, per case.
    """

    seed: int = 0
    language: str = "en"
    edits: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(RELATIONS, 290))
    per_gender: int = 100
    true_per_gender: int = 100
    other_genders: bool = True
    skip_both: bool = True
    min_holders: int = 1
    per_pair: int = 290
    neighborhood: int = 10
    paraphrases: int = 3

    def __post_init__(self) -> None:
        """Refuses numbers no build could meet.

        Raises:
            RecordError: A negative number, or an odd or negative number of edits (both directions are equal in number).
        """
        for relation_id, number in self.edits.items():
            if relation_id not in RELATIONS or number < 0 or number % 2:
                raise RecordError(
                    f"build options: edits {relation_id!r}: {number}; expected an even number >= 0 for one of "
                    f"{', '.join(RELATIONS)} (half of the edits are about men, half about women)."
                )
        for name in ("per_gender", "true_per_gender", "min_holders", "per_pair", "neighborhood", "paraphrases"):
            if getattr(self, name) < 0:
                raise RecordError(f"build options: {name} is {getattr(self, name)}, expected a number >= 0.")


# The embedded sample: small enough for a demo of minutes.
SAMPLE_OPTIONS = BuildOptions(
    edits={"P21": 24, "P101": 32, "P27": 32, "P19": 40, "P103": 32},
    true_per_gender=5,
    min_holders=6,
    per_pair=20,
    neighborhood=6,
)
