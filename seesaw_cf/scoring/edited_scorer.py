"""Scoring many edited models at once: shared blocks once per text, edited blocks in one batch with a term per token."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from seesaw_cf.base.types import Cloze, ClozeScore
from seesaw_cf.models.architectures import has_one_stream
from seesaw_cf.models.hooks import enter_at, evaluating, first_tensor, hooked, stop_after
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.scoring.encode import EncodedCloze, encode_many
from seesaw_cf.scoring.forward import Answers, ask, feed, is_out_of_memory, make_pass, tree_context, wide_head
from seesaw_cf.scoring.hf_scorer import Scorer, as_it_is, edited, first_block, obstacle, per_token_deltas
from seesaw_cf.scoring.layout import Layout, TrieRow, lay_out, subset, unique_nodes
from seesaw_cf.scoring.support import window
from seesaw_cf.scoring.trie_scorer import TrieScorer, to_scores

# Activations below the first edited block: computed once, used by every edited model.


def hidden_below(model: PreTrainedModel, block: nn.Module, layout: Layout) -> tuple[Tensor, object]:
    """Run a layout up to and with one block.

    Args:
        model: The unedited model.
        block: The last block to run.
        layout: What to feed.

    Returns:
        The block's output flattened to (positions, d), and the output as the block gave it, for its form.
    """
    seen: list[object] = []
    note = block.register_forward_hook(lambda _, __, output: seen.append(output))
    with tree_context(model, layout), hooked([note, stop_after(block)]):
        feed(model, layout)
    output = seen[0]
    return first_tensor(output).flatten(0, -2), output


log = logging.getLogger(__name__)

Jobs = Sequence[tuple[WeightDelta, Sequence[Cloze]]]
EncodedJobs = Sequence[tuple[WeightDelta, Sequence[EncodedCloze]]]
Text = TypeVar("Text", Cloze, EncodedCloze)


_FLOOR = {"cpu": 48, "cuda": 256}
"""Tokens below which a forward pass costs no less: reading the weights then takes longer than the arithmetic."""


@dataclass(frozen=True, slots=True)
class ScoringPlan:
    """What scoring a block of edits costs either way.

    Attributes:
        how: The cheaper way: "together" or "restore".
        reason: Why "restore" is the only way; "" when both were possible.
        together, restore: FLOPs of the transformer blocks each way, passes that are too small to be efficient counted
            at what they cost.
    """

    how: Literal["together", "restore"]
    reason: str = ""
    together: float = 0.0
    restore: float = 0.0


def make_plan(texts: Sequence[Sequence[EncodedCloze]], blocks: nn.ModuleList, first: int, device: str) -> ScoringPlan:
    """Weigh both ways for edits that can be applied per token.

    Args:
        texts: For each edit its distinct texts.
        blocks: The model's blocks.
        first: The lowest edited block.
        device: Device type, for the cost of small passes.
    """
    size, floor = sum(parameter.numel() for parameter in blocks[0].parameters()), _FLOOR.get(device, 256)
    own, shared = [unique_nodes(items) for items in texts], unique_nodes(set().union(*texts))
    restore = 2.0 * size * sum(max(tokens, floor) for tokens in own) * len(blocks)
    together = 2.0 * size * (max(shared, floor) * first + max(sum(own), floor) * (len(blocks) - first))
    return ScoringPlan("together" if together <= restore else "restore", "", together, restore)


@dataclass(slots=True)
class _EditedRow(TrieRow):
    """Part of a shared row that one edit asks; `source` holds the places of its nodes in the shared activations."""

    edit: int = -1
    source: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class EditedScorer:
    """Scorer of several edited models.

    Attributes:
        scorer: Scores with the unedited model; its limits hold here too.
        how: "auto": the cheaper way by `ScoringPlan`. "together" or "restore": that way where it is possible.
        keep: What lies below an edit is kept for the next one that is asked the same, until `TrieScorer.forget`: only
            while nobody else writes to the model or hooks into it.
    """

    scorer: TrieScorer
    how: str = "auto"
    keep: bool = False

    def plan(self, jobs: Jobs) -> ScoringPlan:
        """Return what scoring the jobs costs either way, and the cheaper way."""
        tokenizer = self.scorer.tokenizer
        return self._plan([(delta, list(encode_many(tokenizer, clozes).asked)) for delta, clozes in jobs])

    def _plan(self, jobs: EncodedJobs) -> ScoringPlan:
        model, deltas, texts = self.scorer.model, [delta for delta, _ in jobs], [items for _, items in jobs]
        reasons = [reason for delta in deltas if (reason := obstacle(model, delta))]
        place = first_block(model, deltas)
        if self.scorer.support.layout == "plain":
            reasons.append(self.scorer.support.reason)
        if place is None:
            reasons.append("no edit changes a transformer block")
        elif place[1] and not has_one_stream(model):
            reasons.append("its upper blocks read more of the lower ones than one hidden state")
        narrow = window(model)
        if narrow is not None and any(len(item.ids) > narrow for items in texts for item in items):
            reasons.append(f"a text is longer than the {narrow} tokens up to which texts share passes")
        if reasons or place is None:
            return ScoringPlan("restore", reasons[0])
        return make_plan(texts, *place, model.device.type)

    def score(self, jobs: Jobs) -> list[list[ClozeScore]]:
        """Score every edited model's clozes.

        Args:
            jobs: n pairs of a delta and the clozes to ask the model edited by it. `WeightDelta.context` is not added
                here; an empty delta asks the unedited model.

        Returns:
            n lists of scores, in the order asked. The same jobs give the same bytes on one type of machine with
                one number of threads.

        Raises:
            PromptError: Only when the scorer is strict.
            DeltaMismatchError: A delta does not fit the model; the weights are unchanged.
        """
        asked = dict.fromkeys(cloze for _, clozes in jobs for cloze in clozes)  # in their order: most often sorted
        return self._score(jobs, sorted(asked), self.scorer.encode)

    def score_encoded(self, jobs: EncodedJobs) -> list[list[ClozeScore]]:
        """Score every edited model's texts by their token ids; see `score` and `TextScorer.score_encoded`."""
        return self._score(jobs, sorted({item for _, items in jobs for item in items}), as_it_is)

    def _score(
        self,
        jobs: Sequence[tuple[WeightDelta, Sequence[Text]]],
        union: Sequence[Text],
        encode: Callable[[Sequence[Text]], tuple[dict[Text, EncodedCloze], dict[Text, ClozeScore]]],
    ) -> list[list[ClozeScore]]:
        """Score so many of the distinct, sorted texts at a time that their token ids fit into any memory."""
        wanted = [frozenset(texts) for _, texts in jobs] if len(jobs) > 1 else []
        answers: list[dict[Text, ClozeScore]] = [{} for _ in jobs]
        with evaluating(self.scorer.model):
            for start in range(0, len(union), self.scorer.texts_at_once):
                encoded, refused = encode(union[start : start + self.scorer.texts_at_once])
                own = [{text: item for text, item in encoded.items() if text in texts} for texts in wanted]
                own = own or [encoded]  # one job asks all there is
                items = [list(dict.fromkeys(part.values())) for part in own]
                found = self._items([(delta, part) for (delta, _), part in zip(jobs, items, strict=True)])
                for answer, part, asked, scores in zip(answers, own, items, found, strict=True):
                    known = dict(zip(asked, scores, strict=True))
                    answer |= refused | {text: known[item] for text, item in part.items()}
        return [[own[text] for text in texts] for own, (_, texts) in zip(answers, jobs, strict=True)]

    def _items(self, jobs: EncodedJobs) -> list[list[ClozeScore]]:
        """Score sorted, distinct items the way that is planned."""
        plan = self._plan(jobs)
        if (plan.how if self.how == "auto" or plan.reason else self.how) == "together":
            try:
                return self._together([delta for delta, _ in jobs], [items for _, items in jobs])
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                log.warning("out of memory with %d edits at once; going on one after the other", len(jobs))
        return [self._restored(delta, items) for delta, items in jobs]

    def _restored(self, delta: WeightDelta, items: Sequence[EncodedCloze]) -> list[ClozeScore]:
        with edited(self.scorer.model, delta):
            return self.scorer.score_items(items, delta.updates if self.keep else ())

    def _together(
        self, deltas: Sequence[WeightDelta], items: Sequence[Sequence[EncodedCloze]]
    ) -> list[list[ClozeScore]]:
        """Score each edit's distinct items, all edits together."""
        starts = [0]
        for own in items:
            starts.append(starts[-1] + len(own))
        union = sorted(set().union(*items))
        number = {item: index for index, item in enumerate(union)}
        # For each edit: index in the union -> index in the concatenation of all edits' items.
        places = [{number[item]: start + k for k, item in enumerate(own)} for start, own in zip(starts, items)]
        flat = [item for own in items for item in own]
        with wide_head(self.scorer.model):
            scores = to_scores(flat, self._answers(deltas, union, places))
        return [scores[start:end] for start, end in itertools.pairwise(starts)]

    def _answers(
        self, deltas: Sequence[WeightDelta], union: Sequence[EncodedCloze], places: Sequence[dict[int, int]]
    ) -> Iterator[Answers]:
        scorer, place = self.scorer, first_block(self.scorer.model, deltas)
        assert place is not None
        blocks, first = place
        packed = scorer.support.layout == "packed"
        for part in scorer.chunks(scorer.rows(union)):
            layout = lay_out(part, packed, scorer.device, scorer.model.dtype)
            hidden, form = None, None
            if first:
                hidden, form = hidden_below(scorer.model, blocks[first - 1], layout)
                scorer.counts.add(part, packed, 0, first / len(blocks))
            for rows in scorer.chunks(list(_edited_rows(part, layout.starts, places))):
                yield self._edited_pass(rows, deltas, blocks, first, hidden, form)

    def _edited_pass(
        self,
        rows: Sequence[_EditedRow],
        deltas: Sequence[WeightDelta],
        blocks: nn.ModuleList,
        first: int,
        hidden: Tensor | None,
        form: object,
    ) -> Answers:
        """Run rows of any edits through the edited blocks in one pass."""
        scorer = self.scorer
        packed = scorer.support.layout == "packed"
        layout = lay_out(rows, packed, scorer.device, scorer.model.dtype)
        owners, source = torch.full((layout.ids.numel(),), -1), torch.zeros(layout.ids.numel(), dtype=torch.long)
        for row, start in zip(rows, layout.starts, strict=True):
            owners[start : start + len(row)] = row.edit
            source[start : start + len(row)] = torch.tensor(row.source)
        used = sorted({row.edit for row in rows})
        owners = torch.searchsorted(torch.tensor(used), owners).masked_fill(owners < 0, -1)
        with per_token_deltas(scorer.model, [deltas[edit] for edit in used], owners):
            if hidden is None:
                answers = ask(scorer.model, make_pass(rows, layout))
            else:
                entering = hidden.index_select(0, source.to(hidden.device)).unflatten(0, tuple(layout.ids.shape))
                with enter_at(blocks, first, entering, form):
                    answers = ask(scorer.model, make_pass(rows, layout))
        scorer.counts.add(rows, packed, answers.logit_rows, 1 - first / len(blocks))
        return answers


def score_each(scorer: Scorer, model: PreTrainedModel, jobs: Jobs, keep: bool = False) -> list[list[ClozeScore]]:
    """Score a block of edits in the cheapest way that this scorer knows.

    Low-precision models keep every delta that allows it as a separate term: adding a small change
    into bfloat16 weights would round much of it away. `EditedScorer.plan` says why a delta does not allow it.

    Args:
        scorer: Any scorer of `model`; only a `TrieScorer` can score edits together.
        model: The unedited model.
        jobs: As for `EditedScorer.score`.
        keep: See `EditedScorer`.
    """
    if not isinstance(scorer, TrieScorer):
        results = []
        for delta, clozes in jobs:
            with edited(model, delta):
                results.append(scorer.score(clozes))
        return results
    low = model.dtype in (torch.bfloat16, torch.float16)
    engine = EditedScorer(scorer, "together" if low else "auto", keep)
    return engine.score(jobs)


def _edited_rows(
    shared: Sequence[TrieRow], starts: Sequence[int], places: Sequence[dict[int, int]]
) -> Iterator[_EditedRow]:
    """Yield, for every edit, the parts of the shared rows that it asks, with items renumbered."""
    for edit, own in enumerate(places):
        for row, start in zip(shared, starts, strict=True):
            common = {item for _, _, item in row.asks} & own.keys()
            if common:
                part, nodes = subset(row, common)
                asks = [(node, token, own[item]) for node, token, item in part.asks]
                yield _EditedRow(part.tokens, part.parents, part.depths, asks, edit, [start + node for node in nodes])
