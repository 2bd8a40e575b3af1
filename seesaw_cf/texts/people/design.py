"""Who rates what, and in which order: balanced, and a function of the seed alone.

Every item goes to k raters. Raters are dealt from one shuffled deck after another, so that loads differ by one at the
most, by two within a group of items, and all pairs of raters meet. Within a rater's sequence a repeated item comes
half a sequence after its first showing, and attention items are spread evenly.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seesaw_cf.base.checks import number, whole
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.seeds import seed_of
from seesaw_cf.texts.people.study import RatingItem, RatingTask
from seesaw_cf.texts.write.pairs import PHASES, draw_groups, even_counts, turned


@dataclass(frozen=True, slots=True)
class RaterDesign:
    """How items are dealt.

    Attributes:
        raters: How many people.
        per_item: Raters of each item.
        duplicates: Share of a rater's items that come a second time.
        attention: Attention items in each rater's sequence.
        orders: Texts are shown in two orders, half of a rater's items in each.
        seed: Of everything.
    """

    raters: int = 3
    per_item: int = 3
    duplicates: float = 0.1
    attention: int = 2
    orders: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        whole("raters", self.raters, 1)
        whole("raters of an item", self.per_item, 1)
        whole("attention items", self.attention, 0)
        number("share of duplicates", self.duplicates, 0, 0.5)
        if self.per_item > self.raters:
            raise RecordError(
                f"design: every item to {self.per_item} of {self.raters} raters, expected at most all of them. "
                "Give more raters, or fewer for each item."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Of the raters; a study adds its id."""
        return tuple(f"R{number}" for number in range(1, self.raters + 1))


def sampled(items: Sequence[RatingItem], number: int | dict[str, int], seed: int) -> list[RatingItem]:
    """Draw items within each group, the groups in the order of their names.

    Args:
        items: To draw from.
        number: Group -> how many; or how many in all, as evenly over the groups as they have items.
        seed: Of the draw.

    Raises:
        RecordError: A group has fewer items than are wanted of it.
    """
    groups: dict[str, list[RatingItem]] = {}
    for item in items:
        groups.setdefault(item.group, []).append(item)
    counts = (
        even_counts({name: len(own) for name, own in groups.items()}, number) if isinstance(number, int) else number
    )
    for name, count in counts.items():
        if count > len(groups.get(name, ())):
            have = ", ".join(f"{group} {len(own)}" for group, own in sorted(groups.items()))
            raise RecordError(
                f"sample: {count} items of {name!r} are wanted, there are {len(groups.get(name, ()))} ({have}). "
                "Lower --sample, or give a run with more texts."
            )
    return draw_groups(groups, counts, seed)


def assigned(items: Sequence[RatingItem], design: RaterDesign) -> dict[str, list[str]]:
    """Assign every item to `per_item` different raters: rater -> ids of items."""
    shuffled = sorted(items, key=lambda item: (item.group, seed_of(design.seed, "deal", item.id)))
    hands: dict[str, list[str]] = {name: [] for name in design.names}
    deck: list[str] = []
    rounds = 0
    for item in shuffled:
        hand, deck = deck[: design.per_item], deck[design.per_item :]
        if len(hand) < design.per_item:
            rounds += 1
            fresh = list(design.names)
            random.Random(seed_of(design.seed, "deck", rounds)).shuffle(fresh)
            fresh.sort(key=lambda name: name in hand)  # who has this item already comes last
            missing = design.per_item - len(hand)
            hand, deck = hand + fresh[:missing], fresh[missing:]
        for name in hand:
            hands[name].append(item.id)
    return hands


def tasks(items: Sequence[RatingItem], shared: Sequence[RatingItem], design: RaterDesign) -> list[RatingTask]:
    """Return the sequence of every rater.

    Args:
        items: To be rated, each by `design.per_item` raters.
        shared: Items with a "role" in `about`: "training", "gold" or "attention"; every rater gets the first two
            before anything else, in their order.
        design: How they are dealt.
    """
    by_role: dict[str, list[str]] = {role: [] for role in ("training", "gold", "attention")}
    for item in shared:
        by_role[item.about["role"]].append(item.id)
    sequences = []
    for rater, own in assigned(items, design).items():
        first = [(role, id, "pre" if design.orders else "") for role in ("training", "gold") for id in by_role[role]]
        sequence = [*first, *_sequence(rater, own, by_role["attention"], design)]
        sequences += [RatingTask(rater, place, id, role, phase) for place, (role, id, phase) in enumerate(sequence, 1)]
    return sequences


def _sequence(
    rater: str, own: Sequence[str], attention: Sequence[str], design: RaterDesign
) -> Iterator[tuple[str, str, str]]:
    """Yield role, item and order of the texts, one after the other."""
    draw = random.Random(seed_of(design.seed, "sequence", rater))
    order = draw.sample(list(own), len(own))
    phases = dict(zip(order, _orders(len(order), draw))) if design.orders else dict.fromkeys(order, "")
    half = (len(order) + 1) // 2
    again = sorted(draw.sample(range(half), min(half, round(design.duplicates * len(order)))))
    count = design.attention if attention else 0
    places = [(float(place), "item", id, phases[id]) for place, id in enumerate(order)]
    places += [(place + half + 0.5, "repeat", order[place], turned(phases[order[place]])) for place in again]
    for which in range(count):
        where = (which + draw.uniform(0.25, 0.75)) / count * len(order)
        places.append((where, "attention", attention[which % len(attention)], "pre" if design.orders else ""))
    for _, role, id, first in sorted(places):
        yield role, id, first


def _orders(number: int, draw: random.Random) -> list[str]:
    """Return as many "pre" as "post", give or take one, in random order."""
    phases = list(PHASES) * ((number + 1) // 2)
    draw.shuffle(phases)
    return phases[:number]
