"""Text from a transformers causal language model: many prompts and many edited models in one batch.

The model's own `generation_config` is not looked at (no repetition penalty, no sampling switches); only its ids of the
end of text are. Nothing here uses the network.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import PromptError
from seesaw_cf.generation.decoding import OpenCompletion, decode
from seesaw_cf.generation.types import Ask, Completion, Message, Sampling
from seesaw_cf.models.hooks import evaluating
from seesaw_cf.models.identity import identity
from seesaw_cf.models.weights import WeightDelta, applied
from seesaw_cf.scoring.chat import fill_template
from seesaw_cf.scoring.encode import leading_specials
from seesaw_cf.scoring.forward import is_out_of_memory
from seesaw_cf.scoring.hf_scorer import context_length, obstacle
from seesaw_cf.scoring.support import shared_limit

log = logging.getLogger(__name__)

Jobs = Sequence[tuple[WeightDelta, Sequence[Ask]]]


@dataclass(frozen=True)
class HFGenerator:
    """Generator with a transformers model; weights, random state, hooks and training mode are left as they were.

    The noise of a completion comes from its own seed, so the same ask gives the same text in any batch.
    Batches of another shape round logits differently (about 1e-6 in float32), which can in principle turn a draw that
    falls that close to the border between two tokens. A draw is one number per token, compared in float64, which keeps
    this rare. In bfloat16 the rounding is about 1e-2 and such turns are common: repeat a low-precision run with the
    same `rows`.

    Attributes:
        model: On any device, in any float dtype.
        tokenizer: The model's own tokenizer; its padding settings do not matter and are not changed.
        chat: Put a plain prompt into the chat template as a user's turn, for models that were trained to answer.
        rows: Completions that are written at once; halved when memory runs out.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    chat: bool = False
    rows: int = 32

    @property
    def name(self) -> str:
        """Id (of a folder its last part), dtype, and a hash of its identity and of where its texts end.

        Takes as long as reading all weights once.
        """
        config = self.model.config
        parts = [identity(self.model, self.tokenizer), sorted(self._ends()), self.chat]
        digest = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]
        dtype = str(self.model.dtype).removeprefix("torch.")
        origin = Path(config._name_or_path or config.model_type)
        return f"{origin.name if origin.is_dir() else origin} {dtype} {digest}"

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        """Write one completion for each ask, in order.

        Args:
            asks: n prompts or conversations; the same ask twice costs nothing.
            sampling: How tokens are drawn, and where a completion ends.

        Returns:
            n completions. What does not fit into the model's context, or turns out not finite, has a status.

        Raises:
            UnsupportedModelError: A conversation is asked of a tokenizer without chat template, or the model keeps no
                key-value cache.
        """
        return self.generate_each([(WeightDelta(), asks)], sampling)[0]

    def generate_each(self, jobs: Jobs, sampling: Sampling) -> list[list[Completion]]:
        """Write with several edited models at once.

        Low-rank deltas share one batch, each as a term of its rows; any other delta is applied, used alone and undone.
        `WeightDelta.context` is put before the prompt.

        Args:
            jobs: n pairs of a delta and what is asked of the model edited by it.
            sampling: For all of them.

        Returns:
            n lists of completions, in the order asked.

        Raises:
            UnsupportedModelError: A conversation is asked of a tokenizer without chat template, or the model keeps no
                key-value cache.
            DeltaMismatchError: A delta does not fit the model; the weights are unchanged.
        """
        rows: dict[tuple[int, Ask], OpenCompletion] = {}
        refused: dict[tuple[int, Ask], Completion] = {}
        for edit, (delta, asks) in enumerate(jobs):
            for ask in dict.fromkeys(asks):
                row = self._row(with_context(ask, delta.context), edit, sampling)
                if isinstance(row, OpenCompletion):
                    rows[edit, ask] = row
                else:
                    refused[edit, ask] = row
        deltas = [delta for delta, _ in jobs]
        alone = {edit for edit, delta in enumerate(deltas) if obstacle(self.model, delta)}
        with evaluating(self.model):
            self._write([row for row in rows.values() if row.edit not in alone], sampling, deltas)
            for edit in sorted(alone):
                with applied(self.model, deltas[edit]):
                    own = [row for row in rows.values() if row.edit == edit]
                    for row in own:
                        row.edit = -1
                    self._write(own, sampling, ())
        completions = refused | {key: self._completion(row, sampling) for key, row in rows.items()}
        return [[completions[edit, ask] for ask in asks] for edit, (_, asks) in enumerate(jobs)]

    def _write(self, rows: Iterable[OpenCompletion], sampling: Sampling, deltas: Sequence[WeightDelta]) -> None:
        """Write rows of about the same length together."""
        ordered = sorted(rows, key=lambda row: (-len(row.prompt), row.prompt, row.seed))
        limit = shared_limit(self.model)
        long = [row for row in ordered if limit and len(row.prompt) + sampling.max_new_tokens > limit]
        for row in long:
            self._batch([row], sampling, deltas)
        rest = ordered[len(long) :]
        for start in range(0, len(rest), self.rows):
            self._batch(rest[start : start + self.rows], sampling, deltas)

    def _batch(self, rows: Sequence[OpenCompletion], sampling: Sampling, deltas: Sequence[WeightDelta]) -> None:
        ends = self._ends()
        try:
            decode(self.model, rows, sampling, ends, lambda row: self._stop_at(row, sampling) is not None, deltas)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error) or len(rows) == 1:
                raise
        else:
            return
        log.warning("out of memory with %d completions at once; going on with half of them", len(rows))
        for row in rows:
            row.new, row.finish, row.status = [], "", "ok"
        for part in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
            self._batch(part, sampling, deltas)

    def _ends(self) -> frozenset[int]:
        """Return the ids that end a text, by the tokenizer and by the model."""
        declared = getattr(self.model.generation_config, "eos_token_id", None)
        ids = declared if isinstance(declared, (list, tuple)) else [declared]
        return frozenset(int(end) for end in (*ids, self.tokenizer.eos_token_id) if end is not None)

    def _row(self, ask: Ask, edit: int, sampling: Sampling) -> OpenCompletion | Completion:
        try:
            ids = self._encode(ask.prompt)
        except PromptError as error:
            return Completion("", "", f"refused: {error}")
        limit = context_length(self.model)
        if limit is not None and len(ids) + sampling.max_new_tokens > limit:
            size = f"{len(ids)} tokens of prompt and {sampling.max_new_tokens} new ones"
            why = f"refused: {size} do not fit into the model's context of {limit}"
            return Completion("", "", why, prompt_tokens=len(ids))
        return OpenCompletion(ids, ask.seed, edit)

    def _encode(self, prompt: str | tuple[Message, ...]) -> tuple[int, ...]:
        if isinstance(prompt, str) and self.chat:
            prompt = (Message("user", prompt),)
        if isinstance(prompt, str):
            body = self.tokenizer(prompt, add_special_tokens=False)["input_ids"]
            ids = (*leading_specials(self.tokenizer), *body)
        else:
            text = fill_template(self.tokenizer, [asdict(message) for message in prompt])
            ids = tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])
        if not ids:
            raise PromptError(f"prompt {prompt!r} has no tokens under this tokenizer.")
        return ids

    def _text(self, row: OpenCompletion) -> str:
        """Return the new text: the decoded whole without the prompt, so that white space at the border is not lost."""
        options: Mapping[str, bool] = {"skip_special_tokens": True, "clean_up_tokenization_spaces": False}
        head = str(self.tokenizer.decode(list(row.prompt), **options))
        whole = str(self.tokenizer.decode([*row.prompt, *row.new], **options))
        return whole[len(head) :] if whole.startswith(head) else str(self.tokenizer.decode(row.new, **options))

    def _stop_at(self, row: OpenCompletion, sampling: Sampling) -> int | None:
        """Return where the first stop text begins; None when there is none."""
        if not sampling.stop:
            return None
        text = self._text(row)
        return min((place for stop in sampling.stop if (place := text.find(stop)) >= 0), default=None)

    def _completion(self, row: OpenCompletion, sampling: Sampling) -> Completion:
        ok = row.status == "ok"
        text = self._text(row)[: self._stop_at(row, sampling)] if ok else ""
        return Completion(text, row.finish if ok else "", row.status, len(row.prompt), len(row.new))


def with_context(ask: Ask, context: str) -> Ask:
    """Return the ask with a text before its prompt; in a conversation, before the last user's turn."""
    if not context:
        return ask
    if isinstance(ask.prompt, str):
        return replace(ask, prompt=context + ask.prompt)
    last = max((place for place, turn in enumerate(ask.prompt) if turn.role == "user"), default=len(ask.prompt) - 1)
    turns = list(ask.prompt)
    turns[last] = replace(turns[last], content=context + turns[last].content)
    return replace(ask, prompt=tuple(turns))
