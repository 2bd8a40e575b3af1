"""What stands before every page: who may ask under which name, how much may be sent, and what a browser may do."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from seesaw_cf.texts.people.views import POLICY

Form = dict[str, list[str]]

LARGEST = 512 * 1024
"""Bytes of a form; the longest answer has two texts of 20,000 letters, each up to 9 bytes once it is URL-encoded."""
_HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Refuses other names of this host (a page elsewhere could point its own name here) and sets the headers."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str]) -> None:
        """Wrap an application.

        Args:
            app: What is guarded.
            hosts: Values of `Host` that are answered, such as "127.0.0.1:8000".
        """
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        host = Headers(scope=scope).get("host", "").lower()
        if host in self._hosts:
            await self._app(scope, receive, send_with_headers)
            return
        reason = "This server is not known under that name. Open it as the link you were given says."
        await PlainTextResponse(reason, 421)(scope, receive, send_with_headers)


async def read_form(request: Request) -> Form:
    """Return the fields of a posted form.

    Raises:
        HTTPException: 413 for more than `LARGEST` bytes, 400 for a body that is not a form.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            raise HTTPException(
                413, f"More than {LARGEST} bytes were sent; nothing of it was stored. Shorten the text."
            )
    try:
        return parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=2000, errors="strict")
    except ValueError as error:
        raise HTTPException(400, "What was sent is no form of these pages; nothing was stored.") from error


def first_of(form: Form, name: str) -> str:
    """Return the value of a field that is there once; "" when it is not there."""
    return (form.get(name) or [""])[0]
