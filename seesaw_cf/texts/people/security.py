"""Who may ask, and who is who: places, secret links, cookies, tokens of forms, and rate limits.

Links and tokens are made from the study's secret by HMAC, so a restarted server knows all raters again, and copies of
a study on several machines share their links. Nothing is kept of a caller but a count in memory.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from seesaw_cf.base.checks import address
from seesaw_cf.base.errors import RecordError

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANY = ("0.0.0.0", "::", "")  # refused without a public address
_CALLERS = 10_000  # remembered at once


@dataclass(frozen=True, slots=True)
class Place:
    """Where a study is served.

    Attributes:
        host, port: What the server listens on.
        url: The address that raters use, where it is another one: that of a proxy or a Space.
        burst, rate: Requests of one rater at once, and a second.
        bad_links: Wrong links from one address at once; then one in ten seconds.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    url: str = ""
    burst: float = field(default=60.0, kw_only=True)
    rate: float = field(default=6.0, kw_only=True)
    bad_links: float = field(default=20.0, kw_only=True)

    def __post_init__(self) -> None:
        if self.url and address("annotate serve: the address", self.url, "https://study.example.org").path.strip("/"):
            raise RecordError(f"annotate serve: the address is {self.url!r}, expected one without a path.")
        if self.host in _ANY and not self.url:
            raise RecordError(
                f"annotate serve: {self.host or 'an empty host'} listens on every address, so pages cannot tell their "
                "own name from a foreign one. Give the address that raters use with --url, or one address with --host."
            )

    @property
    def base(self) -> str:
        """What links begin with."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.url.rstrip("/") or f"http://{host}:{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """Values of the header Host that are answered."""
        own = [self.host, *LOOPBACK] if self.host in (*LOOPBACK, *_ANY) else [self.host]
        names = [f"[{name}]" if ":" in name else name for name in own if name not in _ANY]
        hosts = [f"{name}:{self.port}" for name in names] + ([urlsplit(self.url).netloc] if self.url else [])
        return tuple(hosts if self.port != 80 else [*hosts, *names])


class Keys:
    """Tokens of one study."""

    def __init__(self, secret: str, raters: Sequence[str]) -> None:
        """Prepare the tokens.

        Args:
            secret: Of the study.
            raters: Their names.
        """
        self._secret, self._raters = secret.encode(), tuple(raters)

    def token(self, use: str, rater: str = "") -> str:
        """Return 160 bits, in hexadecimal, that only the holder of the secret can make.

        Args:
            use: "link", "cookie", "form" or "status"; a token is good for one use.
            rater: Rater of the token; "" for a token of no rater.
        """
        return hmac.new(self._secret, f"{use}\0{rater}".encode(), hashlib.sha256).hexdigest()[:40]

    def rater_of(self, use: str, token: str) -> str | None:
        """Return the rater of a token. All are compared, each in constant time."""
        owner = None
        for rater in self._raters:
            if self.fits(token, use, rater):
                owner = rater
        return owner

    def fits(self, token: str, use: str, rater: str = "") -> bool:
        """Return whether a token is the one for a use. The comparison takes constant time."""
        return hmac.compare_digest(self.token(use, rater).encode(), token.encode("utf-8", "replace"))


class Limit:
    """So many times at once, and so many a second after that, for each caller."""

    def __init__(self, burst: float, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        """Start without any clients.

        Args:
            burst: Times at once.
            rate: Times a second.
            clock: Seconds; it never goes back.
        """
        self._burst, self._rate, self._clock = burst, rate, clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, caller: str) -> float:
        """Count a call; return the seconds after which it would be allowed, 0 when it is."""
        now = self._clock()
        left, then = self._left.pop(caller, (self._burst, now))
        left = min(self._burst, left + (now - then) * self._rate)
        allowed = left >= 1
        self._left[caller] = (left - 1 if allowed else left, now)
        while len(self._left) > _CALLERS:
            self._left.popitem(last=False)
        return 0.0 if allowed else (1 - left) / self._rate
