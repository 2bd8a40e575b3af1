"""Text from any OpenAI-compatible server: an API, or a server such as vLLM on your own machine.

Needs the package `openai`: pip install 'seesaw_cf[api]'. The key is read from the environment when it is needed and is
in no name, message, log or file; replies of a server are searched for it before they are shown.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import queue
import random
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seesaw_cf.base.arguments import check_public
from seesaw_cf.base.checks import address
from seesaw_cf.base.errors import RecordError, ServiceError, need
from seesaw_cf.base.files import write_text
from seesaw_cf.base.retrying import TryAgain, say_when_waiting, try_again
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.generation.types import Ask, Completion, Generator, Message, Sampling

if TYPE_CHECKING:
    import openai


log = logging.getLogger(__name__)

_FINISH = {"stop": "stop", "length": "length", "eos": "stop"}
_SHOWN = 300
_CONNECT = 10.0  # seconds; a server that is there accepts at once


class _Stopped(Exception):
    """Raised when an answer is not awaited any more."""


@dataclass(frozen=True)
class OpenAIGenerator:
    """Generator that writes through `/chat/completions` (conversations) and `/completions` (plain prompts).

    A seed is passed on; whether it is honoured is the server's affair. Too many requests, server errors, time-outs,
    broken and empty answers are tried again with growing pauses, a stated number of times, and counted. A server that
    is silent for two seconds is named, with the longest time it is waited for.

    Attributes:
        base_url: Such as "https://api.openai.com/v1" or "http://localhost:8000/v1".
        model: Name of the model there.
        api_key_env: Environment variable that holds the key; "" = the server asks for none.
        chat: Ask plain prompts as a user's turn, for servers without `/completions`.
        tries: Times one ask is sent at the most.
        timeout: Seconds to wait for an answer, at most 10 of them for the connection.
        concurrency: Asks that are under way at once.
        wait: Seconds before the second try; doubled for each further one unless the server sets a wait.
        longest_wait: Longest pause in seconds.
        top_k: Pass `Sampling.top_k` and `repetition_penalty` on; vLLM takes them, OpenAI's own server does not.
        length_field: "max_tokens", or "max_completion_tokens" where a server wants that.
        counts: "asks", "retries", "failures", "prompt_tokens", "new_tokens", and "model NAME" as servers report it.
    """

    base_url: str = field(repr=False)  # may hold a password
    model: str
    api_key_env: str = "OPENAI_API_KEY"
    chat: bool = False
    tries: int = 4
    timeout: float = 60.0
    concurrency: int = 4
    wait: float = 1.0
    longest_wait: float = 30.0
    top_k: bool = False
    length_field: str = "max_tokens"
    counts: Counter[str] = field(default_factory=Counter, compare=False)
    _answered: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Model, server (without user or password) and what is sent with the prompt."""
        place = public_url(self.base_url)
        return f"{self.model} at {place}{' as chat' if self.chat else ''}{' with top_k' if self.top_k else ''}"

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        """One completion for each ask, in order; the same ask is sent once.

        Raises:
            ServiceError: The key is missing or refused, the server does not know the model, or it never answered.
            MissingExtraError: The package `openai` is not installed.
        """
        distinct = list(dict.fromkeys(asks))
        if not distinct:
            return []
        _ = self._client
        with say_when_waiting(self._waits):
            answers = self._answers(distinct, sampling)
        return [answers[ask] for ask in asks]

    def _waits(self) -> str:
        """Seconds to wait for a server's first answer."""
        if self._answered.is_set():
            return ""
        pauses = sum(min(self.wait * 2.0**attempt, self.longest_wait) for attempt in range(self.tries - 1))
        return (
            f"waiting for {self.name}, which has not answered yet: {self.tries} tries of {self.timeout:g} s, "
            f"{self.tries * self.timeout + pauses:.0f} s in all. Ctrl-C stops."
        )

    def _answers(self, asks: Sequence[Ask], sampling: Sampling) -> dict[Ask, Completion]:
        """Answers of all asks, a few at once. The threads are daemons: Ctrl-C waits for no answer."""
        todo: queue.SimpleQueue[Ask] = queue.SimpleQueue()
        results: queue.SimpleQueue[tuple[Ask, Completion | Exception]] = queue.SimpleQueue()
        stop = threading.Event()
        for ask in asks:
            todo.put(ask)

        def work() -> None:
            with contextlib.suppress(queue.Empty, _Stopped):
                while not stop.is_set():
                    ask = todo.get_nowait()
                    try:
                        results.put((ask, self._answer(ask, sampling, stop)))
                    except _Stopped:
                        raise
                    except Exception as error:
                        results.put((ask, error))

        answers: dict[Ask, Completion] = {}
        try:
            for _ in range(min(self.concurrency, len(asks))):
                threading.Thread(target=work, daemon=True).start()
            while len(answers) < len(asks):
                ask, answer = results.get()
                if isinstance(answer, Exception):
                    raise answer
                answers[ask] = answer
        finally:
            stop.set()
        return answers

    def check(self) -> None:
        """Ask for what is needed before anything is sent.

        Raises:
            ServiceError: The key is missing or is none.
            MissingExtraError: The package `openai` is not installed.
        """
        _ = self._client

    @cached_property
    def _client(self) -> Any:
        with need("openai", extra="api", what_for="API models"):
            import openai
        timeout = openai.Timeout(self.timeout, connect=min(self.timeout, _CONNECT))
        options = {"base_url": self.base_url, "timeout": timeout, "max_retries": 0}
        return openai.OpenAI(api_key=self._key(), **options)

    def _key(self) -> str:
        """The key; never put it into a message."""
        if not self.api_key_env:
            return "none"
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise ServiceError(
                f"{self.name}: the environment variable {self.api_key_env} is not set. Put the API key into it, "
                "e.g. `export OPENAI_API_KEY=...`, or name another variable; a server without keys needs none ('')."
            )
        if not key.isascii() or not key.isprintable() or " " in key:
            raise ServiceError(
                f"{self.name}: {self.api_key_env} does not hold a key: it has characters that no key has (spaces, line "
                "breaks or letters beyond ASCII). Set it again."
            )
        return key

    def _shown(self, text: object) -> str:
        """A server's words, short and without the key."""
        words = " ".join(str(text).split())
        return (words.replace(self._key(), "[key]") if self.api_key_env else words)[:_SHOWN]

    def _count(self, **numbers: int) -> None:
        with self._lock:
            self.counts.update(numbers)

    def _answer(self, ask: Ask, sampling: Sampling, stop: threading.Event) -> Completion:
        def sleep(seconds: float) -> None:
            self._count(retries=1)
            if stop.wait(seconds):
                raise _Stopped

        self._count(asks=1)
        try:
            return try_again(
                lambda: self._once(ask, sampling), self.tries, lambda tried: self._pause(ask, tried), sleep
            )
        except TryAgain as again:
            reason = again.reason
        if not self._answered.is_set():
            raise ServiceError(
                f"{self.name}: nothing came from this server in {self.tries} tries, the last: {reason}. Check the "
                "address, that the server is up, and the network; what was finished is kept."
            )
        self._count(failures=1)
        log.warning("%s: no answer after %d tries: %s", self.name, self.tries, reason)
        return Completion("", "", f"no answer after {self.tries} tries: {reason}")

    def _pause(self, ask: Ask, attempt: int) -> float:
        """Seconds: twice as long each time, with a seeded part off."""
        spread = random.Random(f"{ask.seed}:{attempt}").uniform(0.5, 1.0)
        return min(self.wait * float(2**attempt), self.longest_wait) * spread

    def _once(self, ask: Ask, sampling: Sampling) -> Completion:
        """One request.

        Raises:
            TryAgain: Another try may help.
            ServiceError: No ask of this generator can be answered.
        """
        import openai

        try:
            reply = self._send(ask, sampling)
            self._answered.set()
        except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
            raise ServiceError(
                f"{self.name}: the server refuses ({error.status_code}: {self._shown(_words(error))}). Check the key "
                f"in {self.api_key_env or 'api_key_env'}, the model's name and the base URL."
            ) from None
        except openai.APITimeoutError:
            raise TryAgain(f"time-out after {self.timeout:g} s") from None
        except openai.APIConnectionError as error:
            raise TryAgain(f"no connection ({self._shown(error.__cause__ or error)})") from None
        except openai.APIStatusError as error:
            self._answered.set()
            why = f"{error.status_code}: {self._shown(_words(error))}"
            spent = getattr(error, "code", None) == "insufficient_quota"
            if spent or (error.status_code < 500 and error.status_code not in (408, 409, 429)):
                self._count(failures=1)
                return Completion("", "", f"refused by the server: {why}")
            delay = _retry_after(error.response.headers)
            raise TryAgain(why, None if delay is None else min(delay, self.longest_wait)) from None
        except (openai.APIError, ValueError) as error:
            self._answered.set()
            raise TryAgain(f"broken answer ({type(error).__name__})") from None
        return self._read(reply)

    def _send(self, ask: Ask, sampling: Sampling) -> object:
        prompt = (Message("user", ask.prompt),) if self.chat and isinstance(ask.prompt, str) else ask.prompt
        options: JsonObject = {
            "model": self.model,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": ask.seed,
            self.length_field: sampling.max_new_tokens,
        }
        if sampling.stop:
            options["stop"] = list(sampling.stop)
        if self.top_k:
            options["extra_body"] = {"top_k": sampling.top_k or -1, "repetition_penalty": sampling.repetition_penalty}
        if isinstance(prompt, str):
            return self._client.completions.create(prompt=prompt, **options)
        turns = [{"role": turn.role, "content": turn.content} for turn in prompt]
        return self._client.chat.completions.create(messages=turns, **options)

    def _read(self, reply: Any) -> Completion:
        try:
            choice = reply.choices[0]
            message = getattr(choice, "message", None)
            text = choice.text if message is None else message.content
            refusal = getattr(message, "refusal", None)
            finish = choice.finish_reason
            text is None or text.strip  # noqa: B018 (an answer that is no text is broken)
        except (AttributeError, IndexError, TypeError):
            raise TryAgain("broken answer (no choices in it)") from None
        usage = getattr(reply, "usage", None)
        tokens = (getattr(usage, "prompt_tokens", None), getattr(usage, "completion_tokens", None))
        self._count(prompt_tokens=tokens[0] or 0, new_tokens=tokens[1] or 0)
        self._count(**{f"model {getattr(reply, 'model', '')}": 1})
        if refusal or finish == "content_filter":
            return Completion("", "", f"refused: {self._shown(refusal or 'content filter')}", *tokens)
        if not text or not text.strip():
            raise TryAgain("empty answer")
        return Completion(text, _FINISH.get(finish or "", finish or ""), "ok", *tokens)


def public_url(url: str) -> str:
    """Host, port and path of a URL: no user, no password, no query; "" of a model that is on no server."""
    if not url:
        return ""
    parts = address("the server of --base-url", url)
    return f"{parts.hostname or ''}{f':{parts.port}' if parts.port else ''}{parts.path}"


def _words(error: openai.APIStatusError) -> str:
    """The message of the server's error object, else that of the client."""
    message = error.body.get("message") if isinstance(error.body, dict) else None
    return str(message or error.message)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds of a Retry-After header; None when there is none that can be read."""
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, ValueError):
        return None


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
        """Completions from the store, and from the generator what the store does not have.

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
                    write_text(files[ask], json.dumps(record, ensure_ascii=False, indent=1) + "\n")
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


check_public(globals())
