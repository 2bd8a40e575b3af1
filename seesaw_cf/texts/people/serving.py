"""Serving a study over HTTP."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from seesaw_cf.base.errors import need
from seesaw_cf.texts.people.security import Keys, Place
from seesaw_cf.texts.people.store import StudyStore


def links(store: StudyStore, place: Place) -> dict[str, str]:
    """Return rater -> secret link; "status" -> that of the status page."""
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
