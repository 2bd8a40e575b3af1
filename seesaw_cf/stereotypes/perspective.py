"""Identity attack by a server that speaks the protocol of Jigsaw's Perspective API.

The key comes from the environment, travels in a header (never in an address) and is in no message.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass

from seesaw_cf.checks import address
from seesaw_cf.errors import ServiceError
from seesaw_cf.io.retrying import TryAgain, try_again
from seesaw_cf.stereotypes.scorers import SentenceScore

URL = "https://commentanalyzer.googleapis.com/v1alpha1/comments:analyze"
_AGAIN = (408, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class Perspective:
    """Asks for IDENTITY_ATTACK, one sentence a request.

    Attributes:
        url: The server.
        key_env: Environment variable with the key; "" = the server needs none.
        language: Of the sentences.
        tries: Requests per sentence at most.
        timeout: Seconds per request.
        wait: Seconds before the second try, doubled for each further one.
    """

    url: str = URL
    key_env: str = "PERSPECTIVE_API_KEY"
    language: str = "en"
    tries: int = 5
    timeout: float = 30.0
    wait: float = 1.0

    @property
    def name(self) -> str:
        """The server and the attribute."""
        return f"IDENTITY_ATTACK of {self.url}"

    def check(self) -> None:
        """Ask for the key before anything is sent.

        Raises:
            ServiceError: There is none.
        """
        self._key()

    def score(self, texts: Sequence[str]) -> list[SentenceScore]:
        """The attack score of every sentence; a sentence without one has a status.

        Raises:
            ServiceError: No key, or the server refuses it.
        """
        headers = {"Content-Type": "application/json", **self._key()}
        return [self._one(text, headers) for text in texts]

    def _key(self) -> dict[str, str]:
        address("the server of --attack-url", self.url, URL)
        if not self.key_env:
            return {}
        key = os.environ.get(self.key_env, "").strip()
        if not key:
            raise ServiceError(f"{self.url}: the environment variable {self.key_env} is not set. Put the key into it.")
        return {"X-Goog-Api-Key": key}

    def _one(self, text: str, headers: dict[str, str]) -> SentenceScore:
        request = {
            "comment": {"text": text},
            "languages": [self.language],
            "requestedAttributes": {"IDENTITY_ATTACK": {}},
            "doNotStore": True,
        }
        body = json.dumps(request).encode()
        try:
            return try_again(lambda: self._once(body, headers), self.tries, lambda tried: self.wait * 2.0**tried)
        except TryAgain as again:
            return SentenceScore(status=f"no score after {self.tries} tries: {again.reason}")

    def _once(self, body: bytes, headers: dict[str, str]) -> SentenceScore:
        try:
            with urllib.request.urlopen(
                urllib.request.Request(self.url, body, headers), timeout=self.timeout
            ) as answer:
                return _read(answer.read())
        except urllib.error.HTTPError as error:
            error.close()
            if error.code in (401, 403, 404):
                raise ServiceError(
                    f"{self.url}: the server refuses (status {error.code}). Check the address and the key in "
                    f"{self.key_env or 'key_env'}."
                ) from None
            if error.code not in _AGAIN:
                return SentenceScore(status=f"refused by the server: {error.code}")
            raise TryAgain(f"status {error.code}") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise TryAgain(type(error).__name__) from None


def _read(body: bytes) -> SentenceScore:
    value = float(json.loads(body)["attributeScores"]["IDENTITY_ATTACK"]["summaryScore"]["value"])
    return (
        SentenceScore({"attack": value}) if 0 <= value <= 1 else SentenceScore(status=f"score {value} is outside 0..1")
    )
