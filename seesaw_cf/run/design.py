"""Which people the prompts of an edit are about, and in which words: chosen from what its record holds.

Prompts about one person repeat each other, and a template moves all people alike. So the default asks about every
recorded holder, with a few templates that all people of an edit share. Source: docs/statistics.md, "Whom to ask".
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from seesaw_cf.base.checks import LARGEST, shown
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import seed_of
from seesaw_cf.base.types import Case

T = TypeVar("T")
Number = int | Literal["all"]


@dataclass(frozen=True, slots=True)
class PromptDesign:
    """How many people and prompts an edit is scored on.

    Attributes:
        prompts_per_person: Prompts about one person; "all" = as many as are recorded.
        people_per_edit: People of each gender who hold one answer; "all" = as many as are recorded.
    """

    prompts_per_person: Number = 2
    people_per_edit: Number = "all"

    def __post_init__(self) -> None:
        """Refuse anything but numbers and "all".

        Raises:
            RecordError: See above.
        """
        for name in ("prompts_per_person", "people_per_edit"):
            value = getattr(self, name)
            if value != "all" and not (type(value) is int and 1 <= value <= LARGEST):
                raise RecordError(
                    f"job: {name} is {shown(value)}, expected a whole number of at least 1, or 'all'. Leave it out "
                    "for that of the design."
                )

    def choose(self, case: Case, seed: int) -> Case:
        """Return a case with the prompts about other people that this design asks, in the order of the record.

        Templates and people are drawn once for an edit: who is asked with fewer prompts is asked with some of the same
        templates, and fewer people are some of the same people.

        Args:
            case: As it is recorded. A prompt without a name counts as one more person.
            seed: Of both draws.
        """
        prompts, request = case.attribute_prompts, case.request
        rng = random.Random(seed_of("people", seed, request.relation_id, request.text, request.target_new.label))
        people: dict[tuple[str, str], list[int]] = defaultdict(list)
        for place, prompt in enumerate(prompts):
            person = prompt.subject.id or prompt.subject.label or str(place)
            people[prompt.holds, person].append(place)
        templates = {
            # In files that do not name it, the place among the prompts about a person stands for a template.
            place: prompts[place].template_id or f"prompt {number:05d}"
            for own in people.values()
            for number, place in enumerate(own)
        }
        order = _shuffle(sorted(set(templates.values())), rng)
        ranks = {template: rank for rank, template in enumerate(order)}
        strata: dict[tuple[str, tuple[str, ...]], list[list[int]]] = defaultdict(list)
        for (holds, _), own in people.items():
            strata[holds, prompts[own[0]].gender].append(sorted(own, key=lambda place: ranks[templates[place]]))
        chosen = (own for stratum in strata.values() for own in _shuffle(stratum, rng)[: _most(self.people_per_edit)])
        places = sorted(place for own in chosen for place in own[: _most(self.prompts_per_person)])
        return replace(case, attribute_prompts=tuple(prompts[place] for place in places))


# The default, and the published design: every template, up to 100 holders of each gender (SEESAW-CF, Appendix B).
DESIGNS: Mapping[str, PromptDesign] = {"shared": PromptDesign(), "paper": PromptDesign("all", 100)}


def prompt_counts(cases: Sequence[Case]) -> dict[str, int]:
    """Return how many prompts about how many other people there are."""
    prompts = [prompt for case in cases for prompt in case.attribute_prompts]
    return {"prompts": len(prompts), "people": len({prompt.subject.id or prompt.subject.label for prompt in prompts})}


def _shuffle(items: Sequence[T], rng: random.Random) -> list[T]:
    return rng.sample(items, len(items))


def _most(number: Number) -> int | None:
    return None if number == "all" else number
