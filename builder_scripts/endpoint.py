"""A SPARQL 1.1 endpoint over HTTP, one query at a time, with the pauses that the server asks for.

Whole and well-formed replies are the only ones that count. Everything else (429, 5xx, time-outs, closed connections,
half replies, web pages instead of results) is tried again after a pause; a refused query is not. A reply of which the
server says that it is a part, or of which only a part comes, counts as a time-out: a smaller query may be answered.
"""

from __future__ import annotations

import email.utils
import http
import http.client
import logging
import random
import re
import time
import urllib.error
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from seesaw_cf import __version__
from seesaw_cf.base.errors import RecordError, hide_secrets, need
from seesaw_cf.base.retrying import TryAgain, say_when_waiting, try_again
from seesaw_cf.builder_scripts.sources import Source
from seesaw_cf.builder_scripts.sparql import SourceError, SourceTimeout, rows

WIKIDATA_ENDPOINT = "https://query.wikidata.org/sparql"
CHUNK = 1 << 16
_RETRIED = {408, 425, 429, 500, 502, 503, 504}

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """How an endpoint is asked.

    Attributes:
        contact: Mail address or web page in the User-Agent, as Wikimedia's policy asks.
        timeout: Seconds for one whole reply, however slowly its parts come.
        attempts: How often a query is tried when the endpoint is busy.
        silent_attempts: How often a query is tried when nothing comes, or nothing whole, or the server ends it.
        pause: Seconds before the second try; doubled each time, with jitter.
        longest_pause: Seconds; a server that asks for more than this ends the build with a message.
        knock: Seconds for a query that needs no search: asked first, and again after a query to which nothing came, so
            that a silent server is named soon. 0 = never.
    """

    contact: str = ""
    timeout: float = 70.0  # Wikidata ends a query after 60
    attempts: int = 7
    silent_attempts: int = 3
    pause: float = 1.0
    longest_pause: float = 600.0
    knock: float = 0.0

    def __post_init__(self) -> None:
        """Refuse settings no request could be made with.

        Raises:
            RecordError: A number that is not positive, or a contact that would break the header.
        """
        for name in ("timeout", "attempts", "silent_attempts", "pause", "longest_pause"):
            if not getattr(self, name) > 0:
                raise RecordError(f"endpoint: {name} is {getattr(self, name)}, expected a number above 0.")
        if not self.knock >= 0:
            raise RecordError(f"endpoint: knock is {self.knock}, expected 0 or more seconds.")
        if not self.contact.isprintable() or not self.contact.isascii():
            raise RecordError(f"endpoint: contact {self.contact!r}, expected a mail address or web page in ASCII.")

    @property
    def agent(self) -> str:
        """The User-Agent header."""
        contact = f"; {self.contact}" if self.contact else ""
        return f"seesaw_cf/{__version__} (https://seesaw-cf.github.io{contact}) SPARQLWrapper"


class _Failure(TryAgain):
    """A failed try: the query ran out of time, its reply broke off, or nothing came at all."""

    def __init__(
        self, reason: str, wait: float | None, timed_out: bool, cut_off: bool = False, silent: bool = False
    ) -> None:
        """Keep what happened."""
        super().__init__(reason, wait)
        self.timed_out, self.cut_off, self.silent = timed_out, cut_off, silent


class EndpointSource(Source):
    """Answer the query files from a SPARQL endpoint."""

    limited = True

    def __init__(
        self,
        url: str = WIKIDATA_ENDPOINT,
        policy: RequestPolicy | None = None,
        *,
        sleep: Callable[[float], None] = time.sleep,
    ):
        """Remember the address; nothing is asked yet.

        Args:
            url: The endpoint's query address, http or https.
            policy: Waiting times, number of tries, contact.
            sleep: Waits for some seconds; tests replace it.

        Raises:
            RecordError: Not an http(s) address.
        """
        if not _is_address(url):
            raise RecordError(f"endpoint {url!r}: expected an address such as {WIKIDATA_ENDPOINT!r}.")
        self.identity = url
        self.policy = policy or RequestPolicy()
        self._sleep = sleep
        self._answered = False
        self._jitter = random.Random(0)

    def ask(self, text: str) -> bytes:
        """Send a query and return the raw reply, checked to be whole and well-formed.

        Raises:
            SourceTimeout: Nothing whole came in time, or the server reports that it took too long, in the last try.
            SourceError: The endpoint refused the query, is not SPARQL, or did not answer in any of the tries; the text
                names the address, the last failure and what to do.
        """
        return self._send(text, self.policy.silent_attempts)

    def within_time(self, text: str) -> bytes | None:
        """See `Source.within_time`; a query that is not finished in time is not tried again."""
        try:
            return self._send(text, 1)
        except SourceTimeout:
            return None

    def _send(self, text: str, silent_attempts: int) -> bytes:
        failures: list[_Failure] = []
        if not self._answered:
            self._knock()

        def once() -> bytes:
            try:
                reply = self._post(text, self.policy.timeout)
            except _Failure as failure:
                failures.append(failure)
                logger.warning("%s: %s; try %d", hide_secrets(self.identity), failure.reason, len(failures))
                if failure.silent:
                    self._knock()
                cut_off = sum(earlier.cut_off for earlier in failures) == self.policy.silent_attempts
                failure.last = cut_off or sum(earlier.timed_out for earlier in failures) == silent_attempts
                raise
            self._answered = True
            return reply

        try:
            return try_again(once, self.policy.attempts, self._pause, self._sleep)
        except _Failure as failure:
            kind = SourceTimeout if failure.timed_out or failure.cut_off else SourceError
            raise kind(
                f"{self.identity}: no answer in {len(failures)} tries; the last: {failure.reason}. Check the address "
                "and the network; a query that always times out needs a longer --timeout, another endpoint or a dump. "
                "Or come back later: replies that came are kept, the same command goes on from there."
            ) from None

    def _knock(self) -> None:
        """Send a query that needs no search. Any reply shows that the endpoint is up.

        Raises:
            SourceError: Nothing comes.
        """
        seconds = self.policy.knock
        try:
            if seconds:
                self._post(_KNOCK, seconds)
        except _Failure as failure:
            if failure.silent:
                raise SourceError(
                    f"{self.identity} is silent: in {seconds:g} s nothing came to a query that needs no search. Check "
                    "the address and the network, or come back later: replies that came are kept, the same command "
                    "goes on from there."
                ) from failure
        except SourceError:
            pass
        self._answered = self._answered or seconds > 0

    def _waiting_message(self) -> str:
        """Return how long an endpoint that has not answered yet is waited for."""
        if self._answered:
            return ""
        tries, seconds = self.policy.silent_attempts, self.policy.timeout
        long = f"{tries} tries of {seconds:g} s, {tries * seconds:g} s in all"
        long = f"{self.policy.knock:g} s at the most" if self.policy.knock else long
        return f"waiting for {hide_secrets(self.identity)}, which has not answered yet: {long}. Ctrl-C stops."

    def _post(self, text: str, seconds: float) -> bytes:
        """Send a query once.

        Raises:
            _Failure: A later try may be answered.
            SourceError: None will be.
        """
        with need("SPARQLWrapper", extra="build", what_for="SPARQL endpoints"):
            import SPARQLWrapper as wrapper
        request = wrapper.SPARQLWrapper(self.identity, agent=self.policy.agent)
        request.setQuery(text)
        request.setReturnFormat(wrapper.JSON)
        request.setMethod(wrapper.POST)
        request.setTimeout(max(1, round(seconds)))
        deadline = time.monotonic() + seconds
        try:
            with say_when_waiting(self._waiting_message), request.query().response as response:
                reply = _read(response, deadline)
                _check_whole(response, reply)
        except Exception as error:
            # SPARQLWrapper raises errors of its own for the codes that it knows.
            http_error = next((e for e in (error, error.__context__) if isinstance(e, urllib.error.HTTPError)), None)
            if http_error is not None:
                raise self._http_failure(http_error, error) from error
            if not isinstance(error, (OSError, http.client.HTTPException, SourceError)):
                raise
            silent = any(isinstance(e, TimeoutError) for e in (error, getattr(error, "reason", None)))
            cut_off = isinstance(error, (_CutOff, http.client.IncompleteRead))
            timed_out = silent or isinstance(error, SourceTimeout)
            raise _Failure(f"{type(error).__name__}: {error}", None, timed_out, cut_off, silent) from error
        return reply

    def _http_failure(self, http_error: urllib.error.HTTPError, error: Exception) -> Exception:
        """Return the failure that a status code means: one that a later try may better, or an error."""
        explanation = _explanation(http_error) if error is http_error else str(error)
        code, said = http_error.code, f"HTTP {http_error.code} {http_error.reason}"
        if code not in _RETRIED:
            remedy = _REMEDIES.get(code, "check the address; it may not be a SPARQL endpoint.")
            return SourceError(f"{self.identity}: {said}; {remedy} The server said: {explanation[:300]!r}")
        seconds = _retry_after(http_error)
        if seconds is not None and seconds > self.policy.longest_pause:
            return SourceError(
                f"{self.identity}: HTTP {code}, asks to wait {seconds:.0f} s. Come back then, or raise the "
                "longest pause: replies that came are kept, the same command goes on from there."
            )
        too_long = code in {429, 500, 503} and _TOO_LONG.search(explanation) is not None
        return _Failure(said, seconds, code in {408, 504} or too_long)

    def _pause(self, attempt: int) -> float:
        """Return the seconds to wait: exponential back-off with jitter."""
        return float(min(self.policy.longest_pause, self.policy.pause * 2**attempt * self._jitter.uniform(0.5, 1)))


def _is_address(url: str) -> bool:
    try:
        return url.isprintable() and " " not in url and bool(re.match("https?://", url) and urlsplit(url).hostname)
    except ValueError:  # half an IPv6 address
        return False


_REMEDIES = {
    400: "the server refused the query. Check that the endpoint speaks SPARQL 1.1.",
    401: "the endpoint wants a login. Use a public one or a local store.",
    403: "the endpoint refuses this client. Name a contact, wait, or use another endpoint.",
    404: "there is nothing at this address. Wikidata's is " + WIKIDATA_ENDPOINT + ".",
}


def _read(response: http.client.HTTPResponse, deadline: float) -> bytes:
    """Read a whole reply; raises TimeoutError when parts still come after the deadline."""
    parts = []
    while part := response.read1(CHUNK):
        parts.append(part)
        if time.monotonic() > deadline:
            raise TimeoutError(f"the reply was not complete in time ({sum(map(len, parts))} bytes so far)")
    return b"".join(parts)


def _explanation(error: urllib.error.HTTPError) -> str:
    """Return the beginning of the server's explanation."""
    try:
        with error:
            return error.read(10_000).decode(errors="replace")
    except (OSError, http.client.HTTPException):  # it broke off while it explained
        return str(error)


# What servers say of a query that took too long: Wikidata's, QLever and Oxigraph, Virtuoso.
_TOO_LONG = re.compile(r"time-?out|timed out|time limit|cancell?ed|estimated execution time", re.IGNORECASE)
_KNOCK = "SELECT ?answer WHERE { VALUES ?answer { 1 } }"


class _CutOff(SourceError):
    """A reply that begins as results and breaks off, without a word of the server."""


def _check_whole(response: http.client.HTTPResponse, reply: bytes) -> None:
    """Raise for a reply that is not a complete result.

    Raises:
        SourceTimeout: The server says that this is a part: HTTP 206; Virtuoso's headers on a query that it ended, or
            on rows that it left out; Wikidata's exception in the middle of the reply.
        SourceError: Anything else that is not one whole SPARQL result in JSON.
    """
    state, most = response.headers.get("X-SQL-State", ""), response.headers.get("X-SPARQL-MaxRows", "")
    try:
        found = len(rows(reply))
    except SourceError as error:
        if b"TimeoutException" in reply[-10_000:]:
            raise SourceTimeout("the server ended the query in the middle of its reply") from error
        if reply.lstrip().startswith(b"{") and not reply.rstrip().endswith(b"}"):
            raise _CutOff(str(error)) from error
        raise
    if response.status == http.HTTPStatus.PARTIAL_CONTENT or state or (most.isdecimal() and found >= int(most)):
        said = response.headers.get("X-SQL-Message") or f"HTTP {response.status}, at most {most or 'some'} rows"
        raise SourceTimeout(f"the server says that its reply is not whole: {said[:200]}")


def _retry_after(error: urllib.error.HTTPError) -> float | None:
    """Return the seconds that the server asks to wait, sent as a number or a date; None when it sends neither."""
    value = (error.headers.get("Retry-After") or "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
