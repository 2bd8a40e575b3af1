"""Text from any OpenAI-compatible server: an API, or a server such as vLLM on your own machine.

Needs the package `openai`: pip install 'seesaw_cf[api]'. The key is read from the environment when it is needed and is
in no name, message, log or file; replies of a server are searched for it before they are shown.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import random
import threading
import weakref
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from seesaw_cf.base.checks import address
from seesaw_cf.base.errors import ServiceError, hide_secrets, need
from seesaw_cf.base.retrying import TryAgain, say_when_waiting, try_again
from seesaw_cf.base.types import JsonObject
from seesaw_cf.generation.types import Ask, Completion, Message, Sampling

if TYPE_CHECKING:
    import openai

log = logging.getLogger(__name__)

_MAX_CHARACTERS = 300  # of a server's words
_CONNECT = 10.0  # seconds; a server that is there accepts at once
_Request = tuple[Ask, Sampling]


class _Stopped(Exception):
    """Raised when an answer is not awaited any more."""


class _RefusedError(Exception):
    """A failure that repeating cannot fix."""


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
        tries: Times one ask is sent at the most.
        timeout: Seconds to wait for an answer, at most 10 of them for the connection.
        concurrency: Asks that are under way at once.
        wait: Seconds before the second try; doubled for each further one unless the server sets a wait.
        longest_wait: Longest pause in seconds.
        counts: "asks", "retries", "failures", "prompt_tokens", "new_tokens", and "model NAME" as servers report it.
        chat: Ask plain prompts as a user's turn, for servers without `/completions`.
        top_k: Pass `Sampling.top_k` and `repetition_penalty` on; vLLM takes them, OpenAI's own server does not.
        length_field: "max_tokens", or "max_completion_tokens" where a server wants that.
    """

    base_url: str = field(repr=False)  # may hold a password
    model: str
    api_key_env: str = "OPENAI_API_KEY"
    tries: int = field(default=4, kw_only=True)
    timeout: float = field(default=60.0, kw_only=True)
    concurrency: int = field(default=4, kw_only=True)
    wait: float = field(default=1.0, kw_only=True)
    longest_wait: float = field(default=30.0, kw_only=True)
    counts: Counter[str] = field(default_factory=Counter, compare=False, kw_only=True)
    chat: bool = field(default=False, kw_only=True)
    top_k: bool = field(default=False, kw_only=True)
    length_field: str = field(default="max_tokens", kw_only=True)
    _answered: threading.Event = field(default_factory=threading.Event, init=False, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Model, server (without user or password) and what is sent with the prompt."""
        how = f"{' as chat' if self.chat else ''}{' with top_k' if self.top_k else ''}"
        return f"{self.model} at {hide_secrets(self.base_url)}{how}"

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        """Return one completion for each ask, in order; the same ask is sent once.

        Raises:
            ServiceError: The key is missing or refused, the server does not know the model, or it never answered.
            MissingExtraError: The package `openai` is not installed.
        """
        _ = asks and self._client
        with say_when_waiting(self._waits):
            answers = self._answers([(ask, sampling) for ask in dict.fromkeys(asks)])
        return [answers[ask, sampling] for ask in asks]

    def _waits(self) -> str:
        """Say how long a server's first answer may take; "" once it has answered."""
        if self._answered.is_set():
            return ""
        pauses = sum(min(self.wait * 2.0**attempt, self.longest_wait) for attempt in range(self.tries - 1))
        return (
            f"waiting for {self.name}, which has not answered yet: {self.tries} tries of {self.timeout:g} s, "
            f"{self.tries * self.timeout + pauses:.0f} s in all. Ctrl-C stops."
        )

    def _answers(self, asks: Sequence[_Request]) -> dict[_Request, Completion]:
        """Return the answers of distinct asks, a few sent at once. The threads are daemons: Ctrl-C waits for none."""
        todo: queue.SimpleQueue[_Request] = queue.SimpleQueue()
        results: queue.SimpleQueue[tuple[_Request, Completion | Exception]] = queue.SimpleQueue()
        stop = threading.Event()
        for ask in asks:
            todo.put(ask)

        def work() -> None:
            with contextlib.suppress(queue.Empty, _Stopped):
                while not stop.is_set():
                    ask = todo.get_nowait()
                    try:
                        results.put((ask, self._answer(ask, stop)))
                    except _Stopped:
                        raise
                    except Exception as error:
                        results.put((ask, error))

        answers: dict[_Request, Completion] = {}
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
        """Raise what `generate` would raise before anything is sent: without a key, or without the package `openai`."""
        _ = self._client

    @cached_property
    def _client(self) -> Any:
        address("the server of --base-url", self.base_url)
        with need("openai", extra="api", what_for="API models"):
            import openai
        timeout = openai.Timeout(self.timeout, connect=min(self.timeout, _CONNECT))
        options = {"base_url": self.base_url, "timeout": timeout, "max_retries": 0}
        client = openai.OpenAI(api_key=self._key(), **options)
        weakref.finalize(self, client.close).atexit = False  # before its sockets are collected, which would warn
        return client

    def _key(self) -> str:
        """Return the key, "none" for a server without keys; never put it into a message."""
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
        """Return a server's words, short and without the key."""
        words = " ".join(str(text).split())
        return (words.replace(self._key(), "[key]") if self.api_key_env else words)[:_MAX_CHARACTERS]

    def _count(self, **numbers: int) -> None:
        with self._lock:
            self.counts.update(numbers)

    def _answer(self, ask: _Request, stop: threading.Event) -> Completion:
        def sleep(seconds: float) -> None:
            self._count(retries=1)
            if stop.wait(seconds):
                raise _Stopped

        self._count(asks=1)
        try:
            return try_again(lambda: self._once(ask), self.tries, lambda tried: self._pause(ask, tried), sleep)
        except _RefusedError as refused:
            self._count(failures=1)
            return Completion("", "", str(refused))
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

    def _pause(self, ask: _Request, attempt: int) -> float:
        """Return the seconds to wait: twice as long each time up to `longest_wait`, with a seeded part off."""
        spread = random.Random(f"{ask}:{attempt}").uniform(0.5, 1.0)
        return min(self.wait * float(2**attempt), self.longest_wait) * spread

    def _once(self, ask: _Request) -> Completion:
        """Send one request and read its answer; raise `TryAgain` where another try may help."""
        import openai

        try:
            reply = self._send(ask)
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
                raise _RefusedError(f"refused by the server: {why}") from None
            delay = _retry_after(error.response.headers)
            raise TryAgain(why, None if delay is None else min(delay, self.longest_wait)) from None
        except (openai.APIError, ValueError) as error:
            self._answered.set()
            raise TryAgain(f"broken answer ({type(error).__name__})") from None
        return self._read(ask, reply)

    def _send(self, ask: _Request) -> object:
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

    def _read(self, ask: _Request, reply: Any) -> Completion:
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


def _words(error: openai.APIStatusError) -> str:
    """Return the message of the server's error object, else that of the client."""
    message = error.body.get("message") if isinstance(error.body, dict) else None
    return str(message or error.message)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of a Retry-After header; None when there is none that can be read."""
    try:
        return max(0.0, float(headers["retry-after"]))
    except (KeyError, ValueError):
        return None
