"""Text from any OpenAI-compatible server: an API, or a server such as vLLM on your own machine."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import write_text
from seesaw_cf.base.retrying import TryAgain
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.generation.server import Client
from seesaw_cf.generation.types import Ask, Completion, Generator, Message, Sampling
from seesaw_cf.stats.plain import json_text

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class OpenAIGenerator(Client[tuple[Ask, Sampling], Completion]):
    """Generator that writes through `/chat/completions` (conversations) and `/completions` (plain prompts).

    A seed is passed on; whether it is honoured is the server's affair.

    Attributes:
        base_url, model, api_key_env, tries, timeout, concurrency, wait, longest_wait, counts: See
            `seesaw_cf.generation.server.Client`.
        chat: Ask plain prompts as a user's turn, for servers without `/completions`.
        top_k: Pass `Sampling.top_k` and `repetition_penalty` on; vLLM takes them, OpenAI's own server does not.
        length_field: "max_tokens", or "max_completion_tokens" where a server wants that.
    """

    chat: bool = False
    top_k: bool = False
    length_field: str = "max_tokens"

    @property
    def name(self) -> str:
        """Model, server (without user or password) and what is sent with the prompt."""
        return f"{super().name}{' as chat' if self.chat else ''}{' with top_k' if self.top_k else ''}"

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        """Return one completion for each ask, in order; the same ask is sent once.

        Raises:
            ServiceError: The key is missing or refused, the server does not know the model, or it never answered.
            MissingExtraError: The package `openai` is not installed.
        """
        answers = self._answers([(ask, sampling) for ask in dict.fromkeys(asks)])
        return [answers[ask, sampling] for ask in asks]

    def _refused(self, why: str) -> Completion:
        return Completion("", "", why)

    def _unanswered(self, why: str) -> Completion:
        log.warning("%s: %s", self.name, why)
        return self._refused(why)

    def _send(self, ask: tuple[Ask, Sampling]) -> object:
        own, sampling = ask
        prompt = (Message("user", own.prompt),) if self.chat and isinstance(own.prompt, str) else own.prompt
        options: JsonObject = {
            "model": self.model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": own.seed,
            self.length_field: sampling.max_new_tokens,
        }
        if sampling.stop:
            options["stop"] = list(sampling.stop)
        if self.top_k:
            options["extra_body"] = {"top_k": sampling.top_k or -1, "repetition_penalty": sampling.repetition_penalty}
        if isinstance(prompt, str):
            return self._client.completions.create(prompt=prompt, **options)
        return self._client.chat.completions.create(messages=[asdict(turn) for turn in prompt], **options)

    def _read(self, ask: tuple[Ask, Sampling], reply: Any) -> Completion:
        try:
            choice = reply.choices[0]
            message = getattr(choice, "message", None)
            text = choice.text if message is None else message.content
            refusal = getattr(message, "refusal", None)
            finish = choice.finish_reason
            text is None or text.strip  # noqa: B018 (an answer that is no text is broken)
        except (AttributeError, LookupError, TypeError):
            raise TryAgain("broken answer (no choices in it)") from None
        usage = getattr(reply, "usage", None)
        counted = (getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens"))
        tokens = [number if isinstance(number, int) else None for number in counted]
        self._count(prompt_tokens=tokens[0] or 0, new_tokens=tokens[1] or 0)
        self._count(**{f"model {getattr(reply, 'model', '')}": 1})
        if refusal or finish == "content_filter":
            return Completion("", "", f"refused: {self._shown(refusal or 'content filter')}", *tokens)
        if not text or not text.strip():
            raise TryAgain("empty answer")
        # a token limit may cut a character in two
        text, finish = text.encode("utf-8", "replace").decode(), finish if isinstance(finish, str) else ""
        return Completion(text, "stop" if finish == "eos" else finish, "ok", *tokens)


# A store of completions in front of any generator: what was written once is never asked again.


@dataclass(frozen=True)
class CachedGenerator:
    """Generator that keeps each completion in a file named by the SHA-256 of generator, ask and sampling.

    Files are written whole or not at all, block by block, so a killed job goes on where it was. Only completions with
    status "ok" are kept: what failed is asked again.

    Attributes:
        generator: Writes what is not in the store.
        folder: Where the files are; may be shared by any number of jobs.
        block: Asks that are handed over at once, which is also the most that a kill can lose.
    """

    generator: Generator
    folder: Path
    block: int = 64

    @property
    def name(self) -> str:
        """That of the generator: a store changes nothing."""
        return self.generator.name

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        """Return completions from the store, and from the generator those missing from the store.

        Raises:
            RecordError: A file of the store is damaged; the message names it.
            StorageError: The store cannot be written.
        """
        name = self.generator.name
        files = {ask: self._file(name, ask, sampling) for ask in asks}
        completions = {ask: _read(file) for ask, file in files.items() if file.exists()}
        todo = [ask for ask in files if ask not in completions]
        for start in range(0, len(todo), self.block):
            part = todo[start : start + self.block]
            for ask, completion in zip(part, self.generator.generate(part, sampling), strict=True):
                completions[ask] = completion
                if completion.status == "ok":
                    request = {"generator": name, "ask": asdict(ask), "sampling": asdict(sampling)}
                    record = {**request, "completion": asdict(completion)}
                    write_text(files[ask], json_text(record))
        return [completions[ask] for ask in asks]

    def _file(self, name: str, ask: Ask, sampling: Sampling) -> Path:
        key = json.dumps([name, asdict(ask), asdict(sampling)], sort_keys=True, ensure_ascii=False)
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return self.folder / digest[:2] / f"{digest}.json"


def _read(file: Path) -> Completion:
    try:
        return Completion(**read_json(file)["completion"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(
            f"{file}: not a kept completion ({type(error).__name__}: {error}). Delete that file; it is asked again."
        ) from error
