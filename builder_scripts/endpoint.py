"""A SPARQL 1.1 endpoint over HTTP, one query at a time, with the pauses that the server asks for.

Whole and well-formed replies are the only ones that count. Everything else (429, 5xx, time-outs, closed connections,
half replies, web pages instead of results) is tried again after a pause; a refused query is not. A reply of which the
server says that it is a part, or of which only a part comes, counts as a time-out: a smaller query may be answered.
"""

from __future__ import annotations

import contextlib
import email.utils
import http
import http.client
import logging
import random
import re
import time
import urllib.error
from collections.abc import Callable
from typing import Any

from seesaw_cf import __version__
from seesaw_cf.base.checks import address
from seesaw_cf.base.errors import hide_secrets, need
from seesaw_cf.base.retrying import TryAgain, say_when_waiting, try_again
from seesaw_cf.builder_scripts import Asking
from seesaw_cf.builder_scripts.sources import Source
from seesaw_cf.builder_scripts.sparql import SourceError, SourceTimeout, rows

WIKIDATA_ENDPOINT = "https://query.wikidata.org/sparql"
TRIES = 7  # of a query, when the endpoint is busy
SLOW_TRIES = 3  # of a query to which nothing comes, or nothing whole, or that the server ends
PAUSE = 1.0  # seconds before the second try; doubled each time, with jitter
LONGEST_PAUSE = 600.0  # seconds; a server that asks for more ends the build with a message
KNOCK = 20.0  # seconds for a query that needs no search; an endpoint that does not answer it is silent

_KNOCK_QUERY = "SELECT ?answer WHERE { VALUES ?answer { 1 } }"
_LATER = "Check the address, use a longer --timeout, or repeat the command later: replies that came are kept."
_RETRIED = {408, 425, 429, 500, 502, 503, 504}
_REMEDIES = {
    400: "the server refused the query. Check that the endpoint speaks SPARQL 1.1.",
    401: "the endpoint wants a login. Use a public one or a local store.",
    403: "the endpoint refuses this client. Name a contact, wait, or use another endpoint.",
    404: f"there is nothing at this address. Wikidata's is {WIKIDATA_ENDPOINT}.",
}
# What servers say of a query that took too long: Wikidata's, QLever and Oxigraph, Virtuoso.
_TOO_LONG = re.compile(r"time-?out|timed out|time limit|cancell?ed|estimated execution time", re.IGNORECASE)

logger = logging.getLogger(__name__)


class _Failure(TryAgain):
    """A failed try.

    Attributes:
        kind: "silent" (nothing came in time), "slow" (the server ended the query), "cut" (the reply broke off) or
            "busy".
    """

    def __init__(self, reason: str, kind: str, wait: float | None = None) -> None:
        """Keep what happened."""
        super().__init__(reason, wait)
        self.kind = kind


class EndpointSource(Source):
    """Answer the query files from a SPARQL endpoint."""

    limited = True

    def __init__(self, url: str, asking: Asking | None = None, *, sleep: Callable[[float], None] = time.sleep):
        """Remember the address; nothing is asked yet.

        Args:
            url: The endpoint's query address, http or https.
            asking: Contact in the User-Agent, as Wikimedia's policy asks, and seconds for one whole reply.
            sleep: Waits for some seconds; tests replace it.

        Raises:
            RecordError: Not an http(s) address.
        """
        address("endpoint", url if url.isprintable() and " " not in url else repr(url), WIKIDATA_ENDPOINT)
        asking = asking or Asking()
        self.identity, self._timeout, self._sleep = url, asking.timeout, sleep
        contact = f"; {asking.contact}" if asking.contact else ""
        self._agent = f"seesaw_cf/{__version__} (https://seesaw-cf.github.io{contact}) SPARQLWrapper"
        self._answered, self._knock_seconds = False, min(KNOCK, asking.timeout)
        self._jitter = random.Random(0)

    def ask(self, text: str, *, patient: bool = True) -> bytes:
        """Send a query and return the raw reply, checked to be whole and well-formed; see `Source.ask`."""
        failures: list[str] = []
        if not self._answered:
            self._knock()

        def once() -> bytes:
            try:
                reply = self._post(text, self._timeout)
            except _Failure as failure:
                failures.append("slow" if failure.kind == "silent" else failure.kind)
                logger.warning("%s: %s; try %d", hide_secrets(self.identity), failure.reason, len(failures))
                if failure.kind == "silent":
                    self._knock()
                slow = failures.count("slow") == (SLOW_TRIES if patient else 1)
                failure.last = slow or failures.count("cut") == SLOW_TRIES
                raise
            self._answered = True
            return reply

        try:
            return try_again(once, TRIES, self._pause, self._sleep)
        except _Failure as failure:
            message = f"{self.identity}: no answer in {len(failures)} tries; the last: {failure.reason}. {_LATER}"
            raise (SourceError if failure.kind == "busy" else SourceTimeout)(message) from None

    def _knock(self) -> None:
        """Send a query that needs no search. Any reply shows that the endpoint is up.

        Raises:
            SourceError: Nothing comes.
        """
        try:
            self._post(_KNOCK_QUERY, self._knock_seconds)
        except (_Failure, SourceError) as failure:
            if getattr(failure, "kind", "") == "silent":
                silence = f"in {self._knock_seconds:g} s nothing came to a query that needs no search"
                raise SourceError(f"{self.identity} is silent: {silence}. {_LATER}") from failure
        self._answered = True

    def _waiting_message(self) -> str:
        """Return how long an endpoint that has not answered yet is waited for."""
        name, seconds = hide_secrets(self.identity), self._knock_seconds
        message = f"waiting for {name}, which has not answered yet: {seconds:g} s at the most. Ctrl-C stops."
        return "" if self._answered else message

    def _post(self, text: str, seconds: float) -> bytes:
        """Send a query once.

        Raises:
            _Failure: A later try may be answered.
            SourceError: None will be.
        """
        with need("SPARQLWrapper", extra="build", what_for="SPARQL endpoints"):
            import SPARQLWrapper as wrapper
        request = wrapper.SPARQLWrapper(self.identity, returnFormat=wrapper.JSON, agent=self._agent)
        request.setQuery(text)
        request.setMethod(wrapper.POST)
        request.setTimeout(max(1, round(seconds)))
        deadline = time.monotonic() + seconds
        try:
            with say_when_waiting(self._waiting_message), request.query().response as response:
                return _check_whole(response, _read(response, deadline))
        except wrapper.SPARQLExceptions.SPARQLWrapperException as error:  # for the codes that it knows
            raise self._http_failure(error.__context__, str(error)) from error
        except urllib.error.HTTPError as error:
            explanation = str(error)
            with error, contextlib.suppress(OSError, http.client.HTTPException):  # it may break off while it explains
                explanation = error.read(10_000).decode(errors="replace")
            raise self._http_failure(error, explanation) from error
        except (OSError, http.client.HTTPException) as error:
            silent = any(isinstance(cause, TimeoutError) for cause in (error, getattr(error, "reason", None)))
            kind = "silent" if silent else "cut" if isinstance(error, http.client.IncompleteRead) else "busy"
            raise _Failure(f"{type(error).__name__}: {error}", kind) from error

    def _http_failure(self, error: Any, explanation: str) -> Exception:
        """Return the failure that a status code means: one that a later try may better, or an error."""
        status = f"HTTP {error.code} {error.reason}"
        if error.code not in _RETRIED:
            remedy = _REMEDIES.get(error.code, "check the address; it may not be a SPARQL endpoint.")
            return SourceError(f"{self.identity}: {status}; {remedy} The server said: {explanation[:300]!r}")
        seconds = _retry_after(error)
        if seconds is not None and seconds > LONGEST_PAUSE:
            return SourceError(f"{self.identity}: {status}, asks to wait {seconds:.0f} s. {_LATER}")
        too_long = error.code in {408, 504} or (error.code in {429, 500, 503} and _TOO_LONG.search(explanation))
        return _Failure(status, "slow" if too_long else "busy", seconds)

    def _pause(self, attempt: int) -> float:
        """Return the seconds to wait: exponential back-off with jitter."""
        return float(min(LONGEST_PAUSE, PAUSE * 2**attempt * self._jitter.uniform(0.5, 1)))


def _read(response: http.client.HTTPResponse, deadline: float) -> bytes:
    """Read a whole reply; raises TimeoutError when parts still come after the deadline."""
    parts = []
    while part := response.read1(1 << 16):
        parts.append(part)
        if time.monotonic() > deadline:
            raise TimeoutError(f"the reply was not complete in time ({sum(map(len, parts))} bytes so far)")
    return b"".join(parts)


def _check_whole(response: http.client.HTTPResponse, reply: bytes) -> bytes:
    """Return the reply, which is a complete result.

    Raises:
        _Failure: The server says that this is a part: HTTP 206; Virtuoso's headers on a query that it ended, or on rows
            that it left out; Wikidata's exception in the middle of the reply. Or it is not one whole SPARQL result.
    """
    state, most = response.headers.get("X-SQL-State", ""), response.headers.get("X-SPARQL-MaxRows", "")
    try:
        found = len(rows(reply))
    except SourceError as error:
        cut = reply.lstrip().startswith(b"{") and not reply.rstrip().endswith(b"}")
        ended = b"TimeoutException" in reply[-10_000:]
        raise _Failure(str(error), "slow" if ended else "cut" if cut else "busy") from error
    if response.status == http.HTTPStatus.PARTIAL_CONTENT or state or (most.isdecimal() and found >= int(most)):
        message = response.headers.get("X-SQL-Message") or f"HTTP {response.status}, at most {most or 'some'} rows"
        raise _Failure(f"the server says that its reply is not whole: {message[:200]}", "slow")
    return reply


def _retry_after(error: urllib.error.HTTPError) -> float | None:
    """Return the seconds that the server asks to wait, sent as a number or a date; None when it sends neither."""
    value = (error.headers.get("Retry-After") or "").strip()
    if value.isdecimal():
        return float(value)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None
