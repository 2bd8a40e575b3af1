"""Scores from a server that gives the log-probabilities of a prompt's tokens.

vLLM, SGLang and llama-cpp-python (with logits_all) do, through `/v1/completions` with `echo` and `logprobs`, and SGLang
through its own `/generate`. Each text is sent as text, one in a request, so that the server cuts it into tokens itself:
what it cuts must be what the tokenizer here makes of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

from transformers import PreTrainedTokenizerBase

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import DeltaMismatchError, UnsupportedModelError
from seesaw_cf.base.retrying import TryAgain
from seesaw_cf.base.types import Cloze, ClozeScore, JsonObject
from seesaw_cf.generation.server import Client
from seesaw_cf.scoring import Scorer
from seesaw_cf.scoring.encode import Limits, check_clozes, encode_many, joined

_LEAST = -9000.0  # vLLM writes -9999 in the place of minus infinity
_SERVERS = "vLLM, SGLang and llama-cpp-python (started with logits_all) give them"


class ServedPrompt(NamedTuple):
    """A text that is sent, and what it should be cut into; the target's tokens are `ids[start:]`."""

    text: str
    ids: tuple[int, ...]
    start: int


class EchoedToken(NamedTuple):
    """What a server says of one token of a prompt.

    Attributes:
        token: Its text, or its number.
        logprob: Nats; None for the first one.
        best: Text or number of the most likely token there; None where it does not say.
        most: Its log-probability.
    """

    token: str | int
    logprob: float | None
    best: str | int | None = None
    most: float | None = None


def _completions_body(model: str, text: str) -> JsonObject:
    # One token is written, since not every server takes 0; it is not read.
    return {"model": model, "prompt": text, "echo": True, "logprobs": 1, "max_tokens": 1, "temperature": 1.0, "seed": 0}


def _read_completions(reply: Any) -> list[EchoedToken]:
    """Read OpenAI's form; what was written behind the prompt is left out."""
    parts = reply["choices"][0]["logprobs"]
    tokens, logprobs = parts["tokens"], parts["token_logprobs"]
    tops = parts.get("top_logprobs") or [None] * len(tokens)
    usage = reply.get("usage") or {}
    count = usage.get("prompt_tokens") or len(tokens) - 1
    rows = zip(tokens[:count], logprobs[:count], tops[:count], strict=True)
    return [EchoedToken(_number(token), logprob, *_best(top)) for token, logprob, top in rows]


def _best(top: Mapping[str, float] | None) -> tuple[str | int | None, float | None]:
    if not top:
        return None, None
    token = max(top, key=top.__getitem__)
    return _number(token), top[token]


def _number(token: str) -> str | int:
    """Return the number in "token_id:17", as servers write tokens where they are told to, else the text."""
    head, _, number = token.partition("token_id:")
    return int(number) if not head and number.isdecimal() else token


def _native_body(model: str, text: str) -> JsonObject:
    sampling = {"max_new_tokens": 1, "temperature": 1.0}
    wanted = {"return_logprob": True, "logprob_start_len": 0, "top_logprobs_num": 1, "return_text_in_logprobs": True}
    return {"text": text, "sampling_params": sampling, **wanted}


def _read_native(reply: Any) -> list[EchoedToken]:
    """Read SGLang's form: [log-probability, number, text] of each token."""
    facts = reply["meta_info"]
    tokens = facts["input_token_logprobs"]
    tops = facts.get("input_top_logprobs") or [None] * len(tokens)
    rows = []
    for (logprob, number, *_), top in zip(tokens, tops, strict=True):
        most, best = top[0][:2] if top else (None, None)
        rows.append(EchoedToken(number, logprob, best, most))
    return rows


class WireForm(NamedTuple):
    """How a prompt is asked for and its tokens are read."""

    body: Callable[[str, str], JsonObject]
    read: Callable[[Any], list[EchoedToken]]


FORMS: Mapping[str, WireForm] = {
    "/completions": WireForm(_completions_body, _read_completions),
    "/generate": WireForm(_native_body, _read_native),
}


@dataclass(frozen=True)
class ServedScorer(Client[ServedPrompt, ClozeScore]):
    """Scorer of clozes with a model on a server.

    Attributes:
        base_url, model, api_key_env, tries, timeout, concurrency, wait, longest_wait, counts: See
            `seesaw_cf.generation.server.Client`.
        tokenizer: That of the model.
        path: Key of `FORMS`.
        strict: Raise on the first cloze that cannot be scored instead of reporting it in `ClozeScore.status`.
    """

    tokenizer: PreTrainedTokenizerBase = field(kw_only=True, repr=False)
    path: str = field(default="/completions", kw_only=True)
    strict: bool = field(default=False, kw_only=True)

    def score(self, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        """Score every cloze.

        Args:
            clozes: N pairs of context and target; duplicates cost nothing.

        Returns:
            N scores in the order asked. Log-probabilities in nats, summed over target tokens.

        Raises:
            ServiceError: The key is missing or refused, the server does not know the model, or did not answer.
            UnsupportedModelError: Only with `strict`: the server gives no log-probabilities of a prompt.
            DeltaMismatchError: Only with `strict`: it cuts a text into other tokens.
            MissingExtraError: The package `openai` is not installed.
        """
        check_clozes(clozes)
        encoded = encode_many(self.tokenizer, clozes, Limits(unknown=self.tokenizer.unk_token_id))
        prompts = {ServedPrompt(joined(own[0]), *item): own for item, own in encoded.asked.items()}
        answers = self._answers(list(prompts))
        scores = {cloze: answers[prompt] for prompt, own in prompts.items() for cloze in own}
        scores |= {cloze: _unscored(str(error)) for cloze, error in encoded.refused.items()}
        return [scores[cloze] for cloze in clozes]

    def shapes(self) -> Mapping[str, Scorer]:
        """Return ways of asking the same questions that should make no difference."""
        alone = replace(self, concurrency=1)
        return {"again": self, "one at a time": alone, "in reverse order": Reversed(self)}

    def _send(self, ask: ServedPrompt) -> object:
        body = FORMS[self.path].body(self.model, ask.text)
        return self._client.post(self.path, cast_to=object, body=body)

    def _refused(self, why: str) -> ClozeScore:
        return _unscored(why)

    def _read(self, ask: ServedPrompt, reply: Any) -> ClozeScore:
        try:
            return self._score(ask, self._echo(reply))
        except (DeltaMismatchError, UnsupportedModelError) as error:
            if self.strict:
                raise
            return _unscored(str(error))

    def _echo(self, reply: Any) -> list[EchoedToken]:
        try:
            tokens = FORMS[self.path].read(reply)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            tokens = []
        if len(tokens) < 2 or not all(isinstance(token.logprob, int | float) for token in tokens[1:]):
            raise UnsupportedModelError(
                f"{self.name}: the answer has no log-probabilities of the prompt's tokens (got {shown(reply)}). "
                f"{_SERVERS}; or give the model's weights."
            )
        return tokens

    def _score(self, ask: ServedPrompt, tokens: list[EchoedToken]) -> ClozeScore:
        self._check_tokens(ask, tokens)
        target, ids = tokens[ask.start :], ask.ids[ask.start :]
        values = [float(token.logprob or 0.0) for token in target]
        if not all(math.isfinite(value) and value > _LEAST for value in values):
            return _unscored(f"log-probability is {min(values)}")
        first = tuple(self._first(token, number) for token, number in zip(target, ids, strict=True))
        hits = sum(best == number for best, number in zip(first, ids, strict=True))
        there = all(token.best is not None for token in target)
        known = tuple(best for best in first if best is not None)
        return ClozeScore(
            math.fsum(values),
            len(ids),
            hits == len(ids),
            n_greedy=hits if there else None,
            first=known if len(known) == len(ids) else None,
        )

    def _first(self, token: EchoedToken, number: int) -> int | None:
        """Return the number of the most likely token; None where the server does not say or its text is ambiguous."""
        if isinstance(token.best, str):
            own = token.most is not None and token.logprob is not None and token.logprob >= token.most
            return number if own else self._numbers.get(token.best.strip())
        return token.best

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """Texts that stand for one token alone -> its number."""
        every = range(len(self.tokenizer))
        texts = [str(self.tokenizer.decode([number])).strip() for number in every]
        counts: dict[str, list[int]] = {}
        for number, text in zip(every, texts, strict=True):
            counts.setdefault(text, []).append(number)
        return {text: numbers[0] for text, numbers in counts.items() if len(numbers) == 1}

    def _check_tokens(self, ask: ServedPrompt, tokens: list[EchoedToken]) -> None:
        """Refuse an answer about other tokens than those that the tokenizer here makes of the text."""
        theirs, ours = [token.token for token in tokens], self.tokenizer.convert_ids_to_tokens(list(ask.ids))
        if len(theirs) == len(ours) and all(map(self._is, theirs, ask.ids)):
            return
        body = [number for number in ask.ids if number not in self.tokenizer.all_special_ids]
        n = len(theirs)
        head, tail = all(map(self._is, theirs, ask.ids)), all(map(self._is, theirs[::-1], body[::-1]))
        told = f"{self.name}: it cut {ask.text!r} into {n} tokens {shown(theirs)}, expected {len(ours)}: {shown(ours)}."
        raise DeltaMismatchError(
            f"{told} It truncates prompts. Start it with a longer context."
            if n < len(body) and (head or tail)
            else f"{told} Another tokenizer, or another beginning of a text. Give the base of this model with --model, "
            "and its own tokenizer with --tokenizer where the base is served."
        )

    def _is(self, theirs: str | int, number: int) -> bool:
        """Return whether a token that a server names is the token of a number here, as far as its text tells."""
        if isinstance(theirs, int):
            return theirs == number
        if number in self.tokenizer.all_special_ids or "\ufffd" in theirs or theirs.startswith("bytes:"):
            return True
        own = str(self.tokenizer.decode([number])), str(self.tokenizer.convert_ids_to_tokens(number))
        return "\ufffd" in own[0] or theirs.strip() in {text.strip() for text in own}


@dataclass(frozen=True, slots=True)
class Reversed:
    """Scorer that asks in the opposite order."""

    scorer: Scorer

    def score(self, clozes: Sequence[Cloze]) -> list[ClozeScore]:
        """Score `clozes`, the last one first; answers come in the order asked."""
        return self.scorer.score(clozes[::-1])[::-1]


@dataclass(frozen=True)
class ServedNames(Client[str, tuple[str, ...]]):
    """Reads the list of a server's models."""

    def list(self) -> tuple[str, ...]:
        """Return their names.

        Raises:
            ServiceError: The server does not answer, refuses, or has no list.
        """
        return self._answers(["/models"])["/models"]

    def _send(self, ask: str) -> object:
        return self._client.get(ask, cast_to=object)

    def _read(self, ask: str, reply: Any) -> tuple[str, ...]:
        try:
            return tuple(str(entry["id"]) for entry in reply["data"])
        except (KeyError, TypeError):
            raise TryAgain(f"no list of models (got {shown(reply)})") from None

    def _refused(self, why: str) -> tuple[str, ...]:
        return self._unanswered(why)


def _unscored(why: str) -> ClozeScore:
    return ClozeScore(math.nan, 0, False, why)
