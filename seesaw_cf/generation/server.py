"""Asking a server with an OpenAI-compatible API: an API, or a server such as vLLM on your own machine.

Needs the package `openai`: pip install 'seesaw_cf[api]'. The key is read from the environment when it is needed and is
in no name, message, log or file; replies of a server are searched for it before they are shown.
"""

from __future__ import annotations

import contextlib
import os
import queue
import random
import threading
import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from seesaw_cf.base.checks import address
from seesaw_cf.base.errors import ServiceError, need
from seesaw_cf.base.retrying import TryAgain, say_when_waiting, try_again
from seesaw_cf.base.urls import hide_secrets

if TYPE_CHECKING:
    import openai

AskT = TypeVar("AskT")
AnswerT = TypeVar("AnswerT")

_SHOWN = 300
_CONNECT = 10.0  # seconds; a server that is there accepts at once


class _Stopped(Exception):
    """Raised when an answer is not awaited any more."""


class RefusedError(Exception):
    """Raised where a server refuses one ask, and no further try is of use."""


@dataclass(frozen=True)
class Client(ABC, Generic[AskT, AnswerT]):
    """What asks a server, some asks at once.

    Too many requests, server errors, time-outs, broken and empty answers are tried again with growing pauses, a stated
    number of times, and counted. A server that is silent for two seconds is named, with the longest time it is waited
    for.

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
    _answered: threading.Event = field(default_factory=threading.Event, repr=False, compare=False, kw_only=True)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False, kw_only=True)

    @property
    def name(self) -> str:
        """Model and server, without user or password."""
        return f"{self.model} at {hide_secrets(self.base_url)}"

    def _waits(self) -> str:
        """Say how long a server's first answer may take; "" once it has answered."""
        if self._answered.is_set():
            return ""
        pauses = sum(min(self.wait * 2.0**attempt, self.longest_wait) for attempt in range(self.tries - 1))
        return (
            f"waiting for {self.name}, which has not answered yet: {self.tries} tries of {self.timeout:g} s, "
            f"{self.tries * self.timeout + pauses:.0f} s in all. Ctrl-C stops."
        )

    def _answers(self, asks: Sequence[AskT]) -> dict[AskT, AnswerT]:
        """Return the answers of distinct asks, a few sent at once. The threads are daemons: Ctrl-C waits for no answer.

        Raises:
            ServiceError: The key is missing or refused, the server does not know the model, or it never answered.
            MissingExtraError: The package `openai` is not installed.
        """
        if not asks:
            return {}
        _ = self._client
        with say_when_waiting(self._waits):
            return self._in_threads(asks)

    def _in_threads(self, asks: Sequence[AskT]) -> dict[AskT, AnswerT]:
        todo: queue.SimpleQueue[AskT] = queue.SimpleQueue()
        results: queue.SimpleQueue[tuple[AskT, AnswerT | Exception]] = queue.SimpleQueue()
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

        answers: dict[AskT, AnswerT] = {}
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
        return (words.replace(self._key(), "[key]") if self.api_key_env else words)[:_SHOWN]

    def _count(self, **numbers: int) -> None:
        with self._lock:
            self.counts.update(numbers)

    @abstractmethod
    def _send(self, ask: AskT) -> object:
        """Send one ask and return the reply."""

    @abstractmethod
    def _read(self, ask: AskT, reply: Any) -> AnswerT:
        """Return what a reply answers.

        Raises:
            TryAgain: It is broken.
        """

    @abstractmethod
    def _refused(self, why: str) -> AnswerT:
        """Return the answer to an ask that the server refuses."""

    def _unanswered(self, why: str) -> AnswerT:
        """Return the answer to an ask without a reply after all tries; by default the others are not asked either.

        Raises:
            ServiceError: See above.
        """
        raise ServiceError(
            f"{self.name}: {why}. Look at the server, and run the same command again; what was finished is kept."
        )

    def _answer(self, ask: AskT, stop: threading.Event) -> AnswerT:
        def sleep(seconds: float) -> None:
            self._count(retries=1)
            if stop.wait(seconds):
                raise _Stopped

        self._count(asks=1)
        try:
            return try_again(lambda: self._once(ask), self.tries, lambda tried: self._pause(ask, tried), sleep)
        except RefusedError as refused:
            self._count(failures=1)
            return self._refused(str(refused))
        except TryAgain as again:
            reason = again.reason
        if not self._answered.is_set():
            raise ServiceError(
                f"{self.name}: nothing came from this server in {self.tries} tries, the last: {reason}. Check the "
                "address, that the server is up, and the network; what was finished is kept."
            )
        self._count(failures=1)
        return self._unanswered(f"no answer after {self.tries} tries: {reason}")

    def _pause(self, ask: AskT, attempt: int) -> float:
        """Return the seconds to wait: twice as long each time up to `longest_wait`, with a seeded part off."""
        spread = random.Random(f"{ask}:{attempt}").uniform(0.5, 1.0)
        return min(self.wait * float(2**attempt), self.longest_wait) * spread

    def _once(self, ask: AskT) -> AnswerT:
        """Send one request and read its answer.

        Raises:
            TryAgain: Another try may help.
            RefusedError: None will.
            ServiceError: No ask at all can be answered.
        """
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
                raise RefusedError(f"refused by the server: {why}") from None
            delay = _retry_after(error.response.headers)
            raise TryAgain(why, None if delay is None else min(delay, self.longest_wait)) from None
        except (openai.APIError, ValueError) as error:
            self._answered.set()
            raise TryAgain(f"broken answer ({type(error).__name__})") from None
        return self._read(ask, reply)


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
