"""Serving a study over HTTP."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from seesaw_cf.base.checks import address
from seesaw_cf.base.errors import RecordError, need
from seesaw_cf.texts.people.security import Keys
from seesaw_cf.texts.people.store import StudyStore

LOOPBACK = ("127.0.0.1", "localhost", "::1")
_ANY = ("0.0.0.0", "::", "")  # refused without a public address


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


def links(store: StudyStore, place: Place) -> dict[str, str]:
    """Rater -> secret link; "status" -> that of the status page."""
    keys = Keys(store.secret, store.study.raters)
    addresses = {rater: f"{place.base}/enter/{keys.token('link', rater)}" for rater in store.study.raters}
    return addresses | {"status": f"{place.base}/status/{keys.token('status')}"}


def serve(file: Path, place: Place, tell: Callable[[dict[str, str]], None], *, idle: float = math.inf) -> None:
    """Serve a study until it is stopped.

    Args:
        file: The study.
        place: Where; port 0 takes a free one.
        tell: Called with `links` before the first request.
        idle: It also stops after so many seconds without a request.

    Raises:
        MissingExtraError: Starlette or uvicorn is not installed.
        StorageError: The file cannot be opened for writing.
        ServiceError: The port is taken, or the address is not this machine's.
    """
    with need("starlette", extra="annotate", what_for="the pages of raters"):
        import starlette  # noqa: F401
    with need("uvicorn", extra="annotate", what_for="serving the pages of raters"):
        import uvicorn  # noqa: F401
    from seesaw_cf.base.web import Server
    from seesaw_cf.texts.people.web import make_app

    with (
        StudyStore(file) as store,
        StudyStore(file, readonly=True) as look,
        Server("annotate serve: ", place.host, place.port) as server,
    ):
        own = replace(place, port=server.port)
        app = make_app(store, look, own)
        tell(links(store, own))
        server.run(app, idle)
