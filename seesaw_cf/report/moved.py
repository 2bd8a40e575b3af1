"""What models edited elsewhere moved of their base, in words and tables."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

import pandas as pd

from seesaw_cf.base.terminal import quantity
from seesaw_cf.editors.control_names import split_control
from seesaw_cf.models.change import EditedModel
from seesaw_cf.report.rows import Manifest

MOST_PARAMETERS = 12  # parameters of each model that people see
ABOUT_MOVED = """These models were changed elsewhere and compared with the base once, tensor by tensor. Each is one
change: n counts facts and people that were asked, its intervals are over them, and what is found holds for this model,
not for the method that made it. Whether a change took is shown for the facts that it is said to be made for, and no
other. Rank: the change is a product of that rank up to the rounding of the weights; whole: it is not, or of too large
a rank to pay. Relative: Frobenius norm of the change over that of the base's weights."""


def check_moved(edited: Mapping[str, object]) -> bool:
    """Return whether the manifest's part about edited models is what a run writes there."""
    for facts in edited.values():
        if not isinstance(facts, dict) or not all(isinstance(facts.get(key), str) for key in ("source", "form")):
            return False
        rows = facts.get("moved")
        if not isinstance(rows, list) or not all(map(_is_row, rows)):
            return False
    return True


def _is_row(row: object) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("name"), str) or not isinstance(row.get("shape"), list):
        return False
    norm, rank, relative = row.get("norm"), row.get("rank", ""), row.get("relative", "")
    return isinstance(norm, int | float) and isinstance(rank, int | None) and isinstance(relative, int | float | None)


def is_external(name: str, manifest: Manifest) -> bool:
    """Return whether a column of a run is a model edited elsewhere, or the control of one."""
    return bool({name, split_control(name)[1]} & manifest.get("edited", {}).keys())


def moved_table(manifest: Manifest) -> pd.DataFrame:
    """Return a row for each model and parameter: model, name, shape, rank (missing: whole), norm, relative."""
    rows = [
        {"model": model, **row, "shape": "x".join(map(str, row["shape"]))}
        for model, facts in manifest.get("edited", {}).items()
        for row in facts["moved"]
    ]
    return pd.DataFrame(rows)


def moved_phrase(name: str, facts: EditedModel) -> str:
    """Describe a model in a few words: "the adapter mine (2 tensors moved, ranks 1 to 8, norm 0.9)"."""
    rows = facts["moved"]
    if not rows:
        return f"the {facts['form']} {name}"
    ranks = [row["rank"] for row in rows if row["rank"] is not None]
    kinds = [_ranks(ranks)] if ranks else []
    kinds += [f"{len(rows) - len(ranks)} whole"] if len(ranks) < len(rows) and ranks else []
    norm = math.sqrt(sum(row["norm"] ** 2 for row in rows))
    noun = ("place", "places") if facts["form"] == "steering vector" else ("tensor", "tensors")
    phrase = ", ".join([f"{quantity(len(rows), *noun)} moved", *kinds, f"norm {norm:.3g}"])
    return f"the {facts['form']} {name} ({phrase})"


_BLOCK = re.compile(r"^(?:.*?\.)?(\d+)\.(.+?)(?:\.weight)?$")


def block_of(name: str) -> tuple[int | None, str]:
    """Return the number of the block that holds a parameter, None outside the blocks, and what it is in there."""
    match = _BLOCK.match(name)
    return (int(match[1]), match[2]) if match else (None, name)


def where_moved(facts: EditedModel) -> str:
    """Describe where weights moved: blocks, the one that moved most, and what lies outside; "" where none is in one."""
    squares: dict[int, float] = {}
    outside = 0.0
    for row in facts["moved"]:
        block, _ = block_of(row["name"])
        if block is None:
            outside += row["norm"] ** 2
        else:
            squares[block] = squares.get(block, 0.0) + row["norm"] ** 2
    if not squares:
        return ""
    low, high = min(squares), max(squares)
    largest = max(squares, key=lambda block: squares[block])
    total = sum(squares.values(), outside) or 1.0
    blocks = f"block {low}" if low == high else f"{len(squares)} blocks from {low} to {high}"
    most = "" if low == high else f", block {largest} most ({squares[largest] / total:.0%} of the squared norm)"
    rest = f"; {outside / total:.0%} of the squared norm lies outside the blocks" if outside else ""
    return f"weights of {blocks} moved{most}{rest}"


def _ranks(ranks: Sequence[int]) -> str:
    low, high = min(ranks), max(ranks)
    return f"rank {low}" if low == high else f"ranks {low} to {high}"
