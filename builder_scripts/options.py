"""The rules of a build, as one frozen record, and the two that have names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from seesaw_cf.base.checks import at_least
from seesaw_cf.base.errors import RecordError
from seesaw_cf.records.relations import RELATIONS

# Cross-property edits per relation (Table 7) and cross-subject edits of citizenship, gender and birth (Table 3); the
# papers take their cross-subject edits of work and language from CounterFact.
_EDITS = {"P21": 290, "P101": 279, "P27": 282, "P19": 286, "P103": 898}


_COUNTS = (
    "per_gender",
    "true_per_gender",
    "min_holders",
    "min_true_holders",
    "per_pair",
    "neighborhood",
    "paraphrases",
)


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What a build asks for. The defaults are the rules of our own release.

    Attributes:
        seed: Decides every draw: who is edited, to what, and which holders are asked about.
        language: Language tag of the labels.
        edits: Relation -> number of edits to generate, half about men and half about women.
        per_gender: Holders of target_new asked about, per gender. Source: SEESAW-CF Appendix B, 100.
        true_per_gender: Holders of target_true asked about, per gender; 0 is the papers' rule.
        other_genders: Also ask about up to `per_gender` holders of other genders.
        skip_both: Leave out people who hold target_new and target_true: neither answer is wrong for them.
        grouped_gender: For edits of gender, ask about people with a recorded ethnic group, as the papers do: nearly
            every person has a gender, and a large endpoint cannot sort them all.
        min_holders: A generated edit's target_new has at least this many holders.
        min_true_holders: Its target_true has at least this many holders other than the subject.
        per_pair: Cross-property cases per pair of relations.
        neighborhood: Prompts about holders of target_true in CounterFact's sense, per case.
        paraphrases: Other phrasings of the edit, per case.
        open_repeats: How often each open-ended prompt is listed; the papers list it five times.
        always_free: Edits of work and language, which have own open-ended templates, have the free prompt
            ("X is") too; in the papers they do not.
    """

    seed: int = 0
    language: str = "en"
    edits: Mapping[str, int] = field(default_factory=lambda: dict(_EDITS))
    per_gender: int = 100
    true_per_gender: int = 100
    other_genders: bool = True
    skip_both: bool = True
    grouped_gender: bool = True
    min_holders: int = 2
    min_true_holders: int = 0
    per_pair: int = 290
    neighborhood: int = 10
    paraphrases: int = 3
    open_repeats: int = 1
    always_free: bool = True

    def __post_init__(self) -> None:
        """Refuse numbers no build could meet.

        Raises:
            RecordError: A negative number, or edits of an unknown relation.
        """
        for relation_id, number in self.edits.items():
            if relation_id not in RELATIONS or number < 0:
                raise RecordError(
                    f"build options: edits {relation_id!r}: {number}; expected a number >= 0 for one of "
                    f"{', '.join(RELATIONS)}."
                )
        at_least("build options", self, {**dict.fromkeys(_COUNTS, 0), "open_repeats": 1})


def paper(options: BuildOptions) -> BuildOptions:
    """Return the published rules, with the seed, language and numbers of edits of `options`.

    Source: SEESAW-CF section 3.2, Appendices A and B. Only the text's rules are kept, not the faults of the released
    files (first 200 instead of a sample, damaged names, prompts that are never tensed).
    """
    return replace(
        options,
        true_per_gender=0,
        other_genders=False,
        skip_both=False,
        min_holders=1,
        neighborhood=0,
        paraphrases=0,
        open_repeats=5,
        always_free=False,
    )


# The embedded sample: 400 edits, each asked of up to 200 holders of the new and of the old value per gender.
SAMPLE_OPTIONS = BuildOptions(
    edits=dict.fromkeys(_EDITS, 80),
    per_gender=200,
    true_per_gender=200,
    grouped_gender=False,
    min_holders=6,
    min_true_holders=4,
    per_pair=50,
    neighborhood=6,
)
