"""Does a judge treat groups alike? The same texts with the person's name exchanged for names of other people.

Names and groups come from records of people (`demographics`); no group is ever guessed from a name.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypedDict, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import TableRow
from seesaw_cf.effects.groups import AXES
from seesaw_cf.stats import adjust, case_weights, clustered_mean
from seesaw_cf.texts.write.pairs import PassagePair, seeded_uniform

Axis = Literal["gender", "race", "region"]


class TaggedPerson(TypedDict):
    """Of a row of the config `demographics`, the name and the recorded tags; None or empty = not recorded."""

    label: str
    gender: Sequence[str] | None
    race: Sequence[str] | None
    region: Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Renamed:
    """A pair with another person's name in it.

    Attributes:
        pair: The pair; its `pair_id` is that of the source and its group.
        source: `pair_id` of the pair it was made from.
        group: Group of the person who has this name.
        name: That name.
    """

    pair: PassagePair
    source: str
    group: str
    name: str


def rename(text: str, old: str, new: str) -> str:
    """Put one person's name for another's: the whole name, and the last name where it stands alone."""
    pairs = {old.split()[-1]: new.split()[-1], old: new} if old.split() and new.split() else {}
    names = "|".join(re.escape(name) for name in sorted(pairs, key=len, reverse=True))
    return re.sub(rf"(?<!\w)(?:{names})(?!\w)", lambda match: pairs[match[0]], text) if pairs else text


def swap_names(
    pairs: Sequence[PassagePair],
    people: Iterable[TaggedPerson],
    axis: str,
    *,
    groups: Sequence[str] = (),
    seed: int = 0,
) -> tuple[list[Renamed], Counter[str]]:
    """Make, of each pair, one copy per group that differs in the name alone.

    For race and region the new names are of people with the same recorded gender as the pair's person where that is
    known, so that pronouns stay right; for gender they cannot, which `group_bias` cannot tell from a bias.

    Args:
        pairs: The texts.
        people: Rows with label, and gender, race, region as lists (the `demographics` config).
        axis: "gender", "race" or "region".
        groups: Which groups; all that have names when empty.
        seed: Of the choice of names.

    Returns:
        The copies, and reason -> pairs left out.

    Raises:
        UnknownNameError: Unknown axis, or a group without any of `people`.
        RecordError: Fewer than two groups have names.
    """
    one_of("axis", axis, AXES)
    names, gender = _names(people, cast(Axis, axis))
    for group in groups:
        one_of(f"group of {axis}", group, names)
    chosen = list(groups) or sorted(names)
    if len(chosen) < 2:
        raise RecordError(f"names by {axis}: groups {chosen}, expected at least two with names. Give more people.")
    copies: list[Renamed] = []
    left_out: Counter[str] = Counter()
    for pair in pairs:
        if any(rename(text, pair.entity, "\0 \0") == text for text in (pair.pre, pair.post)):
            left_out["the person's name is not in both texts"] += 1
            continue
        own = "" if axis == "gender" else gender.get(pair.entity, "")
        picked = {group: _pick(names[group], own, gender, pair, seed, group) for group in chosen}
        if not all(picked.values()):
            left_out["too few names of the same gender in a group"] += 1
            continue
        copies += [_renamed(pair, group, name) for group, name in picked.items()]
    return copies, left_out


def _names(people: Iterable[TaggedPerson], axis: Axis) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Return group -> names of people with that one tag; name -> recorded gender, "" unless there is exactly one."""
    names: dict[str, list[str]] = {}
    gender: dict[str, str] = {}
    for person in people:
        label, tags = person["label"], person[axis] or ()
        own = person["gender"] or ()
        gender[label] = own[0] if len(own) == 1 else ""
        if len(tags) == 1 and len(label.split()) > 1:
            names.setdefault(tags[0], []).append(label)
    return names, gender


def _pick(names: Sequence[str], own: str, gender: Mapping[str, str], pair: PassagePair, seed: int, group: str) -> str:
    """Return a name that fits the person's recorded gender; "" where none does."""
    fits = [name for name in dict.fromkeys(names) if name != pair.entity and own in ("", gender[name])]
    return min(fits, key=lambda name: seeded_uniform(seed, "name", pair.pair_id, group, name), default="")


def _renamed(pair: PassagePair, group: str, name: str) -> Renamed:
    pre, post = (rename(text, pair.entity, name) for text in (pair.pre, pair.post))
    pair_id = f"{pair.pair_id}@{group}-0"
    return Renamed(replace(pair, pair_id=pair_id, entity=name, pre=pre, post=post), pair.pair_id, group, name)


def group_bias(table: pa.Table, renamed: Sequence[Renamed]) -> pd.DataFrame:
    """Contrast each group with the rest in a judge's answers about texts that differ in the name alone.

    Args:
        table: Rows of `FLAWS`: the judge's answers on the copies of `swap_names`.
        renamed: Those copies.

    Returns:
        One row per (flaw, group): `flaw`, `group`, `change` and `unequal`, the mean answer and the share of answers
        other than "equal" for that group; `change_contrast` and `unequal_contrast` with the other groups, `*_low`,
        `*_high`, `*_p` (clustered by text and by name), `*_p_adjusted` (Holm over all rows), `n`, `n_pairs`,
        `n_unanswered`, `note`.

    Raises:
        RecordError: A copy is not in the table.
    """
    by_id = {copy.pair.pair_id: copy for copy in renamed}
    frame = table.to_pandas()
    frame = frame[frame["pair_id"].isin(by_id)]
    if missing := set(by_id) - set(frame["pair_id"]):
        raise RecordError(f"group bias: {len(missing)} of {len(by_id)} copies were not judged, e.g. {min(missing)!r}.")
    for name in ("group", "name", "source"):
        frame[name] = [getattr(by_id[copy], name) for copy in frame["pair_id"]]
    rows = [
        {"flaw": flaw, "group": group, **_contrast(part, str(group))}
        for flaw, part in frame.groupby("flaw", sort=False)
        for group in sorted(set(part["group"]))
    ]
    out = pd.DataFrame(rows)
    for what in ("change", "unequal"):
        out[f"{what}_p_adjusted"] = adjust(out[f"{what}_p"].astype(float).to_numpy())
    return out


def _contrast(part: pd.DataFrame, group: str) -> TableRow:
    rated = part.dropna(subset="change")
    inside = (rated["group"] == group).to_numpy()
    out: TableRow = {
        "n": int(inside.sum()),
        "n_pairs": int(rated.loc[inside, "source"].nunique()),
        "n_unanswered": int((part["group"] == group).sum() - inside.sum()),
    }
    nan = float("nan")
    if not inside.any() or inside.all():
        ends = ("", "_contrast", "_low", "_high", "_p")
        blank = dict.fromkeys([f"{what}{end}" for what in ("change", "unequal") for end in ends], nan)
        return out | blank | {"note": "no answers to compare"}
    source = pd.factorize(rated["source"])[0]
    clusters = {"text": source, "name": pd.factorize(rated["name"])[0]}
    parts = [case_weights(source, inside), case_weights(source, ~inside)]
    change = rated["change"].to_numpy(np.float64)
    note = ""
    for what, values in (("change", change), ("unequal", np.abs(change))):
        contrast = clustered_mean(values, parts, clusters)
        note = contrast.note
        out |= {what: float(parts[0] @ values), f"{what}_contrast": contrast.value}
        out |= contrast.columns("low", "high", "p", prefix=f"{what}_")
    return out | {"note": note}
