"""What tagging found and what it did not, counted: for a reader and for a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from seesaw_cf.builder_scripts.dataset.statistics import markdown
from seesaw_cf.builder_scripts.source.people import RecordedPerson
from seesaw_cf.builder_scripts.tag.ask import People
from seesaw_cf.builder_scripts.tag.known import LISTED, TAGS
from seesaw_cf.records import groups
from seesaw_cf.types import AttributePrompt


@dataclass(slots=True)
class Coverage:
    """Counts over all records that were tagged together.

    Attributes:
        people: Identified people that prompts are about.
        covered: Those that a source knows.
        merged: Those with an identifier that was merged into another.
        knows: Source -> identified people that it knows.
        tagged, conflicts: Tag -> people who have it; people on which two sources (or a source and the records) differ.
        members: Tag -> group -> people.
        prompts, unnamed: Prompts that carry tags; those about a person without identifier.
        prompts_known: Tag -> prompts that have it.
        pairs: "gold", "had gold" or why a record of a pair has no gold answer -> records.
        linked, namesakes: Edited people who were found by their name and the edited fact; those with several people
            of that name hold it: the best known is taken.
        answer_conflicts: Records of pairs with a watched property on which sources differ; all their answers are gold.
    """

    people: int = 0
    covered: int = 0
    merged: int = 0
    knows: Counter[str] = field(default_factory=Counter)
    tagged: Counter[str] = field(default_factory=Counter)
    conflicts: Counter[str] = field(default_factory=Counter)
    members: dict[str, Counter[str]] = field(default_factory=lambda: {tag: Counter() for tag in LISTED})
    prompts: int = 0
    unnamed: int = 0
    prompts_known: Counter[str] = field(default_factory=Counter)
    pairs: Counter[str] = field(default_factory=Counter)
    linked: int = 0
    namesakes: int = 0
    answer_conflicts: int = 0

    def count_people(
        self, people: People, ids: Iterable[str], tags: Mapping[str, tuple[RecordedPerson, frozenset[str]]]
    ) -> None:
        """Count what is known about the people that prompts are about.

        Args:
            people: What the sources say.
            ids: Of the people.
            tags: Identifier -> everything about the person, and what sources differ about.
        """
        for id in ids:
            by_source = {source.name: records[id] for source, records in people.records.items() if id in records}
            self.people += 1
            self.covered += bool(by_source)
            self.merged += any(record.person.id != id for record in by_source.values())
            self.knows.update(by_source.keys())
            if id in tags:
                person, differ = tags[id]
                self.tagged.update(tag for tag in TAGS if getattr(person, tag) not in ((), None))
                self.conflicts.update(differ & set(TAGS))
                for tag in LISTED:
                    self.members[tag].update(getattr(person, tag))

    def count_prompts(self, rows: Iterable[AttributePrompt]) -> None:
        """Count the prompts of one tagged record."""
        for row in rows:
            self.prompts += 1
            self.unnamed += not row.subject.id
            self.prompts_known.update(tag for tag in TAGS if getattr(row, tag) not in ((), None))

    def numbers(self) -> dict[str, Any]:
        """Return everything as JSON takes it."""
        tags = {
            tag: {
                "people": self.people,
                "found": self.tagged[tag],
                "unknown": self.people - self.tagged[tag],
                "conflicts": self.conflicts[tag],
                "prompts": self.prompts,
                "prompts_found": self.prompts_known[tag],
            }
            for tag in TAGS
        }
        people = {"people": self.people, "found": self.covered, "merged": self.merged, "knows": dict(self.knows)}
        pairs = {
            "records": sum(self.pairs.values()),
            "with_gold": self.pairs["gold"] + self.pairs["had gold"],
            "by_reason": dict(sorted(self.pairs.items())),
            "found_by_name": self.linked,
            "with_namesakes": self.namesakes,
            "conflicts": self.answer_conflicts,
        }
        return {
            "people": people | {"prompts_without_id": self.unnamed},
            "tags": tags,
            "groups": {tag: dict(sorted(counts.items())) for tag, counts in self.members.items()},
            "pairs": pairs,
        }

    def to_markdown(self) -> str:
        """Return the tables to print and to put on a card."""
        parts = []
        if self.prompts or self.people:
            rows = [
                [tag, self.tagged[tag], self.people - self.tagged[tag], self.conflicts[tag],
                 f"{self.prompts_known[tag]:,} of {self.prompts:,}"]
                for tag in TAGS
            ]  # fmt: skip
            heads = ["Tag", f"People who have it (n = {self.people:,})", "Unknown", "Sources differ", "Prompts with it"]
            parts.append(markdown(heads, rows))
            parts.append(self._people())
        parts += [self._groups(tag) for tag in LISTED if self.members[tag]]
        if self.pairs:
            rows = [[reason, number] for reason, number in self.pairs.most_common()]
            parts.append(markdown(["Answers about the watched property", "Records"], rows))
            parts.append(
                f"{self.linked:,} edited people were found by their name and the edited fact; for {self.namesakes:,} "
                "of them several people of that name hold it and the best known is taken. Sources differ about the "
                f"watched property in {self.answer_conflicts:,} records; all their answers are gold."
            )
        return "\n\n".join(parts)

    def _people(self) -> str:
        """The people that no source knows, in a sentence."""
        knows = ", ".join(f"{name} knows {number:,}" for name, number in self.knows.items()) or "no source knows any"
        return (
            f"Of {self.people:,} identified people {knows}; nothing is recorded about {self.people - self.covered:,} "
            f"(deleted, or never there), {self.merged:,} were merged into another identifier, which was asked instead. "
            f"{self.unnamed:,} prompts are about somebody without identifier: unknown, as no tag is taken from a name."
        )

    def _groups(self, tag: str) -> str:
        counts = self.members[tag]
        reported = [name for name in groups.members(tag) if name in counts]
        ordered = [*reported, *sorted(set(counts) - set(reported))]
        rows = [[name, counts[name]] for name in ordered]
        return markdown([tag.capitalize(), "People"], [*rows, [groups.UNKNOWN, self.people - self.tagged[tag]]])
