"""The model `seesaw` of lm_eval: log-likelihoods over tries, of a model as it is or with an edit."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from lm_eval.api.registry import register_model
from lm_eval.models.huggingface import HFLM
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import ClozeScore, JsonObject
from seesaw_cf.models.changed import find_changed
from seesaw_cf.models.delta_files import load_delta
from seesaw_cf.models.load import load_model
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.scoring import TrieScorer
from seesaw_cf.scoring.encode import EncodedCloze
from seesaw_cf.scoring.hf_scorer import edited

Request = tuple[tuple[str, str] | None, list[int], list[int]]
"""As lm_eval hands it over: texts, which its cache takes as a key, ids of the context, ids of the continuation."""
_LOADING = ("device", "dtype", "revision", "trust_remote_code")
# Options of `HFLM` that it heeds when it gets a model that is loaded already.
_HEEDED = (
    *("truncation", "max_length", "batch_size", "max_batch_size", "add_bos_token", "prefix_token_id"),
    *("think_end_token", "enable_thinking", "chat_template_args", "softmax_dtype", "mixed_precision_dtype"),
)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Leave out what `hf` says of a model that is loaded already: which options it does not heed."""
    speaker = logging.getLogger(HFLM.__module__)
    level = speaker.level
    speaker.setLevel(logging.ERROR)
    try:
        yield
    finally:
        speaker.setLevel(level)


@register_model("seesaw")
class SeesawLM(HFLM):
    """lm_eval's `hf` with another engine: each distinct prefix of all requests is fed once.

    Requests are cut into tokens, truncated and answered as `hf` does, so tasks, templates and caches are lm_eval's.
    A model that cannot be fed tries is asked as `hf` asks it.
    """

    def __init__(
        self,
        pretrained: str | PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase | None = None,
        delta: str | None = None,
        **options: Any,
    ) -> None:
        """Load the model and the edit.

        Args:
            pretrained: Anything that `load_model` takes, or a model.
            tokenizer: Of a model that is given.
            delta: Delta, adapter or checkpoint: see `find_changed`. `peft=` is the same.
            options: Of `load_model` (device, dtype "float32", revision, trust_remote_code) or of `hf`.

        Raises:
            SeesawError: An option that nothing would heed, or a model or edit that cannot be loaded.
        """
        delta = delta or options.pop("peft", None)
        loading = {name: options.pop(name) for name in _LOADING if options.get(name) is not None}
        if strange := sorted(options.keys() - {*_HEEDED}):
            raise RecordError(
                f"lm_eval model seesaw: got the options {strange}, expected some of "
                f"{[*_LOADING, 'delta', 'peft', *_HEEDED]}. Use --model hf for others."
            )
        if isinstance(pretrained, str):
            pretrained, tokenizer = load_model(pretrained, progress=False, **loading)
        self.change: WeightDelta | None = None
        self.delta_sha256 = ""
        self.source = str(pretrained.config._name_or_path)
        if delta:
            if tokenizer is None:
                raise RecordError("lm_eval model seesaw: a delta is read with the tokenizer. Give tokenizer=, too.")
            changed = find_changed(delta)
            if changed.form == "delta":
                self.change = load_delta(changed.place, pretrained)
                self.delta_sha256 = str(read_json(changed.place / "delta.json")["sha256"])
            else:
                second = changed.load(pretrained, tokenizer)
                pretrained, tokenizer = second.model, second.tokenizer
        with _silent():
            super().__init__(pretrained=pretrained, tokenizer=tokenizer, **options)
        self.delta_source = delta

    @cached_property
    def scorer(self) -> TrieScorer:
        """The engine."""
        return TrieScorer(self.model, self.tokenizer)

    @contextlib.contextmanager
    def changed(self) -> Iterator[None]:
        """Return a block in which the model has its change."""
        with contextlib.nullcontext() if self.change is None else edited(self.model, self.change):
            yield

    def score_encoded(self, items: Sequence[EncodedCloze]) -> list[ClozeScore]:
        """Score texts by their token ids, see `TrieScorer.score_encoded`."""
        with self.changed():
            return self.scorer.score_encoded(items)

    def _loglikelihood_tokens(
        self, requests: Sequence[Request], disable_tqdm: bool = False, override_bs: int | None = None
    ) -> list[tuple[float, bool]]:
        if self.scorer.support.layout == "plain":
            with self.changed():
                answers: list[tuple[float, bool]] = super()._loglikelihood_tokens(requests, disable_tqdm, override_bs)
            return answers
        scores = self.score_encoded([self._cut(context, continuation) for _, context, continuation in requests])
        answers = [(score.logprob, score.greedy) for score in scores]
        for (texts, *_), answer in zip(requests, answers, strict=True):
            if texts is not None:
                self.cache_hook.add_partial("loglikelihood", texts, answer)
        return answers

    def _cut(self, context: Sequence[int], continuation: Sequence[int]) -> EncodedCloze:
        """Return a request that fits: as in `hf` the last token is asked, never fed.

        Raises:
            RecordError: The continuation alone is longer than the model reads.
        """
        if len(continuation) > self.max_length:
            raise RecordError(
                f"lm_eval: got a continuation of {len(continuation):,} tokens, expected at most {self.max_length:,}. "
                "Leave such requests out, or give a larger max_length."
            )
        ids = (*context, *continuation)[-(self.max_length + 1) :]
        return EncodedCloze(ids, len(ids) - len(continuation))

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        """Return the log-likelihood of whole texts, nats; windows of all texts are asked together."""
        texts = [request.args[0] for request in requests]
        windows = [[make_disjoint_window(window) for window in self._windows(self.tok_encode(text))] for text in texts]
        asked = [(None, *window) for own in windows for window in own]
        answers = iter(self._loglikelihood_tokens(asked, disable_tqdm, override_bs=self.max_batch_size))
        sums = [sum(next(answers)[0] for _ in own) for own in windows]
        for text, total in zip(texts, sums, strict=True):
            self.cache_hook.add_partial("loglikelihood_rolling", (text,), total)
        return sums

    def _windows(self, ids: list[int]) -> Iterator[tuple[list[int], list[int]]]:
        windows: Iterator[tuple[list[int], list[int]]] = get_rolling_token_windows(
            token_list=ids, prefix_token=self.prefix_token_id, max_seq_len=self.max_length, context_len=1
        )
        return windows

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        """Return what the model writes, by transformers as in `hf`."""
        with self.changed():
            texts: list[str] = super().generate_until(requests, disable_tqdm)
        return texts

    def get_model_info(self) -> JsonObject:
        """Return what the results file says of the model."""
        about = {"scorer": str(self.scorer.describe()), "delta": self.delta_source}
        about |= {"delta_sha256": self.delta_sha256} if self.change else {}
        return dict(super().get_model_info()) | about
