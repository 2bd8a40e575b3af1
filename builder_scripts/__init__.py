"""Settings of `build` and `tag`, and the rules of a build. Nothing heavy is imported."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.fields import AboveZero, NameOrPath, Positive, Seed, field_types

if TYPE_CHECKING:
    from seesaw_cf.records.relations import Template

SAMPLE = "sample"  # the facts and data that come with the package
_NUMBER = re.compile(r"\w+=\d{1,7}")  # more people than any source knows


@dataclass(frozen=True)
class Asking:
    """How a source of facts is asked.

    Attributes:
        contact: mail address for endpoints
        timeout: seconds for one reply
        cache: folder of replies (default: $SEESAW_CF_CACHE)
        offline: use replies of the cache only
    """

    _: KW_ONLY
    contact: str = ""
    timeout: AboveZero = 70.0  # Wikidata ends a query after 60
    cache: Path | None = None
    offline: bool = False

    def __post_init__(self) -> None:
        """Raise RecordError where a field is of another type or out of range, or would break a header."""
        field_types(self)
        if not (self.contact.isprintable() and self.contact.isascii()):
            raise RecordError(f"--contact {shown(self.contact)}: expected a mail address or web page in ASCII.")


@dataclass(frozen=True)
class BuildJob:
    """A dataset made from a source of facts, or from records as they are.

    Attributes:
        source: sample, wikidata, a URL, a store or an RDF file
        records: take these JSON records as they are; ask nothing
        skip_bad: leave malformed records out and count them
        edits: JSON of edits that replace drawn ones
        coupled: JSON of edits for Coupled Entity Prompts
        coupled_only: make nothing but those of --coupled
        number: edits to draw, such as P27=100 gender=50
        per_gender: holders asked about, per gender (default: 100)
        paper: the published rules
        templates: CSV of prompts in another language
        language: of the names
        seed: of every draw
        version: of the dataset
    """

    _: KW_ONLY
    source: NameOrPath = SAMPLE
    records: tuple[Path, ...] = ()
    skip_bad: bool = False
    edits: tuple[Path, ...] = ()
    coupled: tuple[Path, ...] = ()
    coupled_only: bool = False
    number: tuple[str, ...] = ()
    per_gender: Positive | None = None
    paper: bool = False
    templates: Path | None = None
    language: str = "en"
    seed: Seed = 0
    version: str = "1.0.0"

    def __post_init__(self) -> None:
        """Raise RecordError for a field out of range, or options that exclude each other."""
        field_types(self)
        if not re.fullmatch(r"\d+\.\d+\.\d+", self.version):
            raise RecordError(f"--version {self.version!r}: expected major.minor.patch such as 1.2.0.")
        if self.language.partition("-")[0] != "en" and self.templates is None:
            raise RecordError(f"build --language {self.language}: prompts are English. Give --templates FILE.")
        if self.coupled_only and not self.coupled:
            raise RecordError("build: --coupled-only without --coupled. Give --coupled FILE, too.")
        if self.records and (self.edits or self.coupled):
            raise RecordError("build: --records takes records as they are, so --edits and --coupled make no sense.")
        self.numbers()

    def numbers(self) -> dict[str, int]:
        """Return relation -> number of edits out of texts such as "P27=100" and "citizenship=100"."""
        if not self.number:
            return {}
        from seesaw_cf.records.relations import RELATIONS, relation

        if bad := [word for word in self.number if not _NUMBER.fullmatch(word)]:
            expected = f"RELATION=N such as P27=100, of {', '.join(RELATIONS)}"
            raise RecordError(f"--number {shown(bad[0])}: expected {expected}.")
        pairs = (word.split("=") for word in self.number)
        return {relation(name).id: int(number) for name, number in pairs}

    def options(self) -> BuildOptions:
        """Return the rules of the build."""
        options = SAMPLE_OPTIONS if self.source == SAMPLE else BuildOptions()
        edits, per_gender = {**options.edits, **self.numbers()}, self.per_gender or options.per_gender
        options = replace(options, **PAPER_RULES) if self.paper else options
        options = replace(options, seed=self.seed, language=self.language, edits=edits, per_gender=per_gender)
        if self.templates is None:
            return options
        from seesaw_cf.records.relations import read_templates

        own = read_templates(self.templates)
        asked = {row.relation_id for row in own}
        return replace(options, templates=own, edits={id: edits[id] for id in edits if id in asked})


@dataclass(frozen=True)
class TagJob:
    """Groups, candidates and gold answers for records without them.

    Attributes:
        records: JSON, JSON lines or Parquet of cases, or a folder
        source: wikidata, a URL, a store, RDF or table, or sample
        language: of the names
    """

    records: tuple[Path, ...]
    _: KW_ONLY
    source: NameOrPath
    language: str = "en"

    def __post_init__(self) -> None:
        """Raise RecordError where a field is of another type."""
        field_types(self)


# Cross-property edits per relation (Table 7) and cross-subject edits of citizenship, gender and birth (Table 3); the
# papers take their cross-subject edits of work and language from CounterFact.
_EDITS = {"P21": 290, "P101": 279, "P27": 282, "P19": 286, "P103": 898}


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """The rules of a build; the defaults are those of our own release.

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
        templates: Of the prompts; none for the papers', which are English.
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
    templates: tuple[Template, ...] = ()


# The published rules. Source: SEESAW-CF section 3.2, Appendices A and B. Only the text's rules are kept, not the faults
# of the released files (first 200 instead of a sample, damaged names, prompts that are never tensed).
PAPER_RULES: Mapping[str, Any] = {
    **dict.fromkeys(("other_genders", "skip_both", "always_free"), False),
    **dict.fromkeys(("true_per_gender", "neighborhood", "paraphrases"), 0),
    "min_holders": 1,
    "open_repeats": 5,
}
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
