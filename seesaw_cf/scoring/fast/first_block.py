"""The first block's products once per distinct token: before any attention, equal tokens have equal activations."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from seesaw_cf.models.blocks import transformer_blocks
from seesaw_cf.models.hooks import exchanged
from seesaw_cf.scoring.layout import Layout

__all__ = ["distinct_rows"]

_WORTH = 0.8
"""Distinct rows are multiplied alone when there are at most this many of a row."""


class _Groups:
    """Which rows of a batch are equal, as far as the tokens let suspect and the rows themselves confirm."""

    def __init__(self, layout: Layout) -> None:
        ids, positions = layout.ids.flatten(), layout.positions.flatten()
        self.suspected = [_first_and_inverse(keys) for keys in (ids, ids * (positions.max() + 1) + positions)]
        self.seen: tuple[Tensor | None, tuple[Tensor, Tensor] | None] = None, None

    def of(self, rows: Tensor) -> tuple[Tensor, Tensor] | None:
        """The first of each group of equal rows, and each row's group; None when hardly any two are equal."""
        if self.seen[0] is not rows:
            self.seen = rows, next((pair for pair in self.suspected if _confirmed(rows.flatten(0, -2), *pair)), None)
        return self.seen[1]


def _first_and_inverse(keys: Tensor) -> tuple[Tensor, Tensor]:
    """(groups,) the first place of each distinct key, and (places,) the group of every place."""
    distinct, inverse = torch.unique(keys, return_inverse=True)
    first = torch.full_like(distinct, len(keys))
    places = torch.arange(len(keys), device=keys.device)
    return first.scatter_reduce_(0, inverse, places, "amin"), inverse


def _confirmed(rows: Tensor, first: Tensor, inverse: Tensor) -> bool:
    """Saving is worth while, and the rows said to be equal are; one column is looked at before all."""
    if len(first) > _WORTH * len(inverse) or len(rows) != len(inverse):
        return False
    where = first.to(rows.device)[inverse.to(rows.device)]
    return bool((rows[:, 0] == rows[where, 0]).all()) and torch.equal(rows, rows.index_select(0, where))


@contextlib.contextmanager
def distinct_rows(model: PreTrainedModel, layout: Layout) -> Iterator[None]:
    """Inside the block, linear layers of the first block multiply equal rows of their input once.

    Until the first attention a token's activations depend on the token, and in some models on its position, but not on
    the text before it. That is not taken on trust: rows are compared, so nothing but rounding can change.

    Args:
        model: Its modules are as before afterwards, also after an exception.
        layout: What will be fed.
    """
    blocks = transformer_blocks(model)
    groups = _Groups(layout)
    parts = [] if blocks is None else [part for part in blocks[0].modules() if type(part) in (nn.Linear, Conv1D)]
    with exchanged({part: partial(_forward, part.forward, groups) for part in parts}):
        yield


def _forward(plain: Callable[[Tensor], Tensor], groups: _Groups, rows: Tensor) -> Tensor:
    found = groups.of(rows)
    if found is None:
        return plain(rows)
    first, inverse = (index.to(rows.device) for index in found)
    answers = plain(rows.flatten(0, -2).index_select(0, first)).index_select(0, inverse)
    return answers.view(*rows.shape[:-1], -1)
