"""Scoring with token tries: each distinct prefix is fed once, and logits are computed only where they are asked for."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import islice
from typing import TypeAlias, TypeVar

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import UnsupportedModelError, unknown_name
from seesaw_cf.base.types import SCORERS, Cloze, ClozeScore, JsonObject
from seesaw_cf.models.hooks import evaluating, exchanged
from seesaw_cf.models.trial import embedding
from seesaw_cf.scoring.below import Change, Known, find_change, recording
from seesaw_cf.scoring.encode import EncodedCloze
from seesaw_cf.scoring.forward import (
    Answers,
    Pass,
    ask,
    is_out_of_memory,
    logit_bytes,
    make_pass,
    split,
    token_bytes,
    wide_head,
)
from seesaw_cf.scoring.hf_scorer import HFScorer, Scorer, TextScorer
from seesaw_cf.scoring.layout import AnyRow, TrieRow, chunks, lay_out, make_rows
from seesaw_cf.scoring.support import Support, find_support, window

log = logging.getLogger(__name__)

_ROW = 64
_LOGITS = 512 * 2**20
"""Bytes of logits in one pass, on a GPU a 32nd of its memory where that is more: the same on every card of one kind."""
_TEXT = 4096  # bytes that one text takes while it is encoded and laid out
_CHUNK = {"cpu": 3072}
_KEPT = 2**18
"""Texts whose token ids, and passes, are kept for the next model that is asked them."""
_Encoded: TypeAlias = tuple[dict[Cloze, EncodedCloze], dict[Cloze, ClozeScore]]
Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(slots=True)
class Counts:
    """What a scorer has done so far.

    Attributes:
        forwards: Forward passes.
        tokens: Positions fed, padding not counted.
        padded: Positions fed, padding counted.
        logit_rows: Positions with computed logits.
        work: Positions fed, each times the part of the model's blocks that it went through.
    """

    forwards: int = 0
    tokens: int = 0
    padded: int = 0
    logit_rows: int = 0
    work: float = 0.0

    def add(self, rows: Sequence[TrieRow], packed: bool, logit_rows: int, part: float = 1.0) -> None:
        """Count one forward pass of `rows` through a part of the blocks."""
        tokens = sum(map(len, rows))
        self.forwards += 1
        self.tokens += tokens
        self.padded += tokens if packed else len(rows) * max(map(len, rows))
        self.logit_rows += logit_rows
        self.work += part * tokens


@dataclass(slots=True)
class _Part:
    """Rows of one forward pass, and once they were asked how they are laid out, and what is known of the pass."""

    rows: Sequence[TrieRow]
    laid: Pass | None = None
    known: Known | None = None


class _Kept(dict[tuple[Key, ...], Value]):
    """What was made of texts, the latest ones: an editor, its controls and all states of a sequence ask the same."""

    def of(self, texts: Sequence[Key], make: Callable[[Sequence[Key]], Value]) -> Value:
        """Return what was made of these texts before, else make it."""
        key = tuple(texts)
        if (made := self.get(key)) is None:
            made = make(texts)
            while self and sum(map(len, self)) + len(key) > _KEPT:
                del self[next(iter(self))]
            self[key] = made
        return made


@dataclass(frozen=True)
class TrieScorer(TextScorer):
    """Scorer of clozes with a transformers causal language model; the numbers of `HFScorer` from far fewer tokens.

    On one type of machine with one number of threads, the same set of clozes gives the same bytes in any order and
    however often they are asked. A model that cannot be fed tries (see `support`) is scored by `HFScorer`, and so are
    single texts longer than `window`. While it scores, modules of the model run other functions: other
    threads that score or edit with the same model wait.

    Attributes:
        model: On any device, in any float dtype; logits and log-softmax are taken in float32 (float64
            for float64 models) and summed over the target's tokens in float64.
        tokenizer: The model's own tokenizer, fast or slow.
        max_tokens: Tokens in one forward pass; None = 3,072 on a CPU, 8,192 elsewhere.
        strict: Raise on the first cloze, in sorted order, that cannot be scored instead of reporting it in
            `ClozeScore.status`.
        memory: Bytes that scoring may take on top of the model; None = what `max_tokens` needs. Passes are made small
            enough by an estimate, and halved when memory runs out all the same.
        counts: Tokens fed and forward passes so far.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    max_tokens: int | None = None
    strict: bool = False
    memory: int | None = None
    counts: Counts = field(default_factory=Counts, compare=False)
    _encoded: _Kept[Cloze, _Encoded] = field(default_factory=_Kept, init=False, compare=False, repr=False)
    _parts: _Kept[EncodedCloze, list[_Part]] = field(default_factory=_Kept, init=False, compare=False, repr=False)
    # changed parameters -> whether a pass below which everything is known gives the bytes of a whole one
    _stays: dict[frozenset[str], bool] = field(default_factory=dict, init=False, compare=False, repr=False)

    @cached_property
    def support(self) -> Support:
        """How this model is fed; found by a small trial when first asked."""
        with evaluating(self.model):
            return find_support(self.model)

    @property
    def tokens_per_pass(self) -> int:
        """`max_tokens`, or the device's default, or less to stay within `memory`."""
        tokens = self.max_tokens or _CHUNK.get(self.model.device.type, 8192)
        return tokens if self.memory is None else max(1, min(tokens, self.memory // 2 // token_bytes(self.model)))

    @property
    def texts_at_once(self) -> int:
        """Clozes that are encoded together: with a budget as many as a quarter of it holds."""
        most = super().texts_at_once
        return most if self.memory is None else max(1024, min(most, self.memory // 4 // _TEXT))

    @property
    def device(self) -> torch.device:
        """Where token ids go."""
        return embedding(self.model).device

    def describe(self) -> JsonObject:
        """Return what a run's manifest records about this scorer: everything that can change rounding."""
        logits = {"logit_bytes": _logit_room(self.device)} if self.device.type == "cuda" else {}
        return {"scorer": type(self).__name__, "max_tokens": self.tokens_per_pass, **logits, **asdict(self.support)}

    def encode(self, clozes: Sequence[Cloze]) -> _Encoded:
        """See `TextScorer.encode`; without a budget the latest ones are kept."""
        return self._encoded.of(clozes, super().encode) if self.memory is None else super().encode(clozes)

    def score_items(self, items: Sequence[EncodedCloze], changed: Collection[str] = ()) -> list[ClozeScore]:
        """Score sorted, distinct items; in tries those that are no longer than `window`.

        Args:
            items: What is asked.
            changed: Parameters in which the model differs just now from the one that it is otherwise: what is computed
                below them is kept for the next changed model, up to 1 GiB (of a large GPU a 32nd), until `forget`.
        """
        narrow = 0 if self.support.layout == "plain" else window(self.model)
        short = [item for item in items if narrow is None or len(item.ids) <= narrow]
        passes = self._parts.of(short, self._make_parts) if self.memory is None else self._make_parts(short)
        change = find_change(self.model, changed) if self.memory is None else None
        parts = (answer for part in passes for answer in self._forward(part, change))
        with wide_head(self.model):
            scores = to_scores(short, parts)
        if len(short) == len(items):
            return scores
        answers = dict(zip(short, scores, strict=True))
        long = [item for item in items if item not in answers]
        answers |= zip(long, self._plain(long), strict=True)
        return [answers[item] for item in items]

    def _plain(self, items: Sequence[EncodedCloze]) -> list[ClozeScore]:
        tokens = 2 * self.tokens_per_pass
        while items:
            try:
                return HFScorer(self.model, self.tokenizer, tokens).score_items(items)
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error) or tokens < 2:
                    raise
                tokens //= 2
                log.warning("out of memory; going on with %d tokens in a pass", tokens)
        return []

    def rows(self, items: Sequence[EncodedCloze]) -> list[TrieRow]:
        """Put sorted, distinct items into trie rows, none longer than `window`."""
        limit = max([self.tokens_per_pass, *(4 * len(item.ids) for item in items)])
        return make_rows(items, _ROW, min(limit, window(self.model) or limit))

    def chunks(self, rows: Sequence[AnyRow]) -> Iterator[list[AnyRow]]:
        """Group rows into forward passes."""
        room = _logit_room(self.device)
        room = room if self.memory is None else min(room, self.memory // 2)
        asks = max(1, room // logit_bytes(self.model))
        return chunks(rows, self.tokens_per_pass, asks, padded=self.support.layout == "padded")

    def _make_parts(self, items: Sequence[EncodedCloze]) -> list[_Part]:
        return [_Part(rows) for rows in self.chunks(self.rows(items))]

    def _forward(self, part: _Part, change: Change | None) -> Iterator[Answers]:
        """Yield the answers of one pass, or of two half as large when memory runs out."""
        packed, rows, laid = self.support.layout == "packed", part.rows, part.laid
        try:
            laid = laid or make_pass(rows, lay_out(rows, packed, self.device, self.model.dtype))
            answers = self._ask(part, laid, change)
        except (RuntimeError, MemoryError) as error:
            halves = split(rows)
            if not is_out_of_memory(error) or not halves:
                raise
            if self.forget():  # what was kept may be all that there was no room for
                yield from self._forward(part, None)
                return
        else:
            part.laid = laid if self.memory is None else None
            yield answers
            return
        log.warning("out of memory with %d tokens in a pass; going on with half of them", sum(map(len, rows)))
        for half in halves:
            yield from self._forward(_Part(half), None)

    def _ask(self, part: _Part, laid: Pass, change: Change | None) -> Answers:
        """Run a pass, or what of it depends on a change, and count it."""
        packed, skipped = self.support.layout == "packed", 0.0
        if change is None or not self._stays.get(change.names, True):
            answers = ask(self.model, laid)
        elif part.known is not None and part.known.change == change:
            skipped = change.first / len(change.blocks)
            with exchanged(part.known.forwards):
                answers = ask(self.model, laid)
        else:
            part.known = None
            with recording(change) as known:
                answers = ask(self.model, laid)
            if change.names not in self._stays:  # whatever a model's code does, such as adding in place
                with exchanged(known.forwards):
                    again = ask(self.model, laid)
                self._stays[change.names] = again.logprobs.nan_to_num().equal(answers.logprobs.nan_to_num())
            room = _LOGITS * 2 if self.device.type == "cpu" else _logit_room(self.device)
            held = sum(own.known.nbytes for own in self._every_part if own.known)
            if self._stays[change.names] and held + known.nbytes <= room:
                part.known = known
        self.counts.add(part.rows, packed, answers.logit_rows, 1 - skipped)
        return answers

    @property
    def _every_part(self) -> Iterator[_Part]:
        return (part for parts in self._parts.values() for part in parts)

    def forget(self) -> bool:
        """Give back what is kept of passes below changes; return whether there was anything."""
        held = [part for part in self._every_part if part.known is not None]
        for part in held:
            part.known = None
        return bool(held)


def to_scores(items: Sequence[EncodedCloze], parts: Iterable[Answers]) -> list[ClozeScore]:
    """Sum the answers about single tokens into one score for each item.

    Args:
        items: What was asked.
        parts: Answers that name items by their index; together one for every target token of every item, those of an
            item in the order of its tokens.
    """
    totals = torch.zeros(len(items), dtype=torch.float64)
    misses = torch.zeros(len(items), dtype=torch.int64)
    firsts: list[list[int]] = [[] for _ in items]
    for answers in _one_behind(parts):
        index = torch.tensor(answers.items)
        totals.index_add_(0, index, answers.logprobs.cpu().double())
        misses.index_add_(0, index, (~answers.greedy.cpu()).long())
        for item, first in zip(answers.items, answers.first.tolist(), strict=True):
            firsts[item].append(first)
    return [
        ClozeScore(
            total,
            len(item.ids) - item.start,
            miss == 0,
            "ok" if math.isfinite(total) else f"log-probability is {total}",
            len(item.ids) - item.start - miss,
            tuple(own),
        )
        for item, total, miss, own in zip(items, totals.tolist(), misses.tolist(), firsts, strict=True)
    ]


def _one_behind(parts: Iterable[Answers]) -> Iterator[Answers]:
    """Yield each part after the next one was begun. The host lays that one out while a GPU computes this one."""
    parts = iter(parts)
    previous = list(islice(parts, 1))
    for part in parts:
        yield previous.pop()
        previous.append(part)
    yield from previous


def _logit_room(device: torch.device) -> int:
    if device.type != "cuda":
        return _LOGITS
    return max(_LOGITS, torch.cuda.get_device_properties(device).total_memory // 32)


def make_scorer(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    how: str = "auto",
    max_tokens: int | None = None,
    memory: int | None = None,
) -> tuple[Scorer, JsonObject]:
    """Make a scorer and describe it for the run's manifest.

    Args:
        model: In eval mode.
        tokenizer: The model's tokenizer.
        how: "auto": tries where the model takes them, else one sequence per cloze. "trie": tries or an error.
            "plain": one sequence per cloze. "single": one sequence per forward pass, so that a score depends on its
            cloze and on nothing else that is asked, in any dtype; many times slower.
        max_tokens: Tokens in one forward pass; None = what suits the device. "single" has no use for it.
        memory: Bytes that scoring with tries may take on top of the model.

    Raises:
        UnknownNameError: Another `how`.
        UnsupportedModelError: "trie", but this model cannot be fed tries; tells why.
    """
    if how not in SCORERS:
        raise unknown_name("scorer", how, SCORERS)
    device = model.device.type
    if how in ("plain", "single"):
        tokens = 1 if how == "single" else max_tokens or 2048
        return HFScorer(model, tokenizer, tokens), {"scorer": "HFScorer", "max_tokens": tokens, "device": device}
    scorer = TrieScorer(model, tokenizer, max_tokens, memory=memory)
    if how == "trie" and scorer.support.layout == "plain":
        raise UnsupportedModelError(
            f"{type(model).__name__} cannot be scored with tries: {scorer.support.reason}. "
            "Use the scorer auto or plain."
        )
    return scorer, {**scorer.describe(), "device": device}
