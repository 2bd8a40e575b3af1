"""The order and words of relations and groups."""

from __future__ import annotations

from collections.abc import Iterable

from seesaw_cf.effects.groups import ALL, UNKNOWN
from seesaw_cf.records import groups
from seesaw_cf.records.relations import PAIRS, RELATIONS


def relation_name(relation_id: str) -> str:
    """Return the papers' word for a relation ("P27" -> "citizenship"); the id itself when it is none of the five."""
    return RELATIONS[relation_id].name if relation_id in RELATIONS else relation_id


def sort_relations(relations: Iterable[str]) -> list[str]:
    """Return relation ids without repeats, in the order of `relations.RELATIONS`, then any other, "all" last."""
    order = list(RELATIONS)
    places = {name: number for number, name in enumerate(order)} | {"all": len(order) + 1}
    return sorted(set(relations), key=lambda name: (places.get(name, len(order)), name))


def sort_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return (edit, effect) pairs without repeats, in the order of Table 7, then any other, ("all", "all") last."""
    places = {pair: number for number, pair in enumerate(PAIRS)} | {("all", "all"): len(PAIRS) + 1}
    return sorted(set(pairs), key=lambda pair: (places.get(pair, len(PAIRS)), pair))


def sort_groups(axis: str, names: Iterable[str]) -> list[str]:
    """Return groups without repeats: "all"; the papers' groups, in their order; any other; "unknown" last."""
    reported = groups.AXES.get(axis, ())
    rank = {name: number for number, name in enumerate((ALL, *reported))} | {UNKNOWN: len(reported) + 2}
    return sorted(set(names), key=lambda name: (rank.get(name, len(reported) + 1), name))
