"""Pages over HTTP: a port that is taken before its address is printed, guarded pages, clients that must not dawdle."""

from __future__ import annotations

import asyncio
import math
import signal
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

import h11
import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from seesaw_cf.base.errors import ServiceError

PATIENCE = 20.0
"""Seconds within which a client has to send the whole of a request."""
CONNECTIONS = 500
"""Connections at once; beyond, a request is answered with 503."""
_HEADERS = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Refuses other names of this host (a page elsewhere could point its own name here) and sets the headers."""

    def __init__(self, app: ASGIApp, hosts: Sequence[str], headers: Mapping[str, str], stranger: Response) -> None:
        """Wrap an application.

        Args:
            app: What is guarded.
            hosts: Values of `Host` that are answered, such as "127.0.0.1:8000".
            headers: Headers of every answer, in addition to those of every server here.
            stranger: Answer to requests under another name.
        """
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)
        self._headers, self._stranger = {**_HEADERS, **headers}, stranger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer or refuse."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self._headers)
            await send(message)

        is_ours = Headers(scope=scope).get("host", "").lower() in self._hosts
        await (self._app if is_ours else self._stranger)(scope, receive, send_with_headers)


class Server:
    """A server on one port of this machine.

    Args:
        where: What the messages begin with, such as "annotate serve: ".
        host: Address to listen on.
        port: 0 for any that is free.

    Raises:
        ServiceError: The port is taken, this user may not use it, or the address is not this machine's.
    """

    def __init__(self, where: str, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            self._socket = socket.create_server((host, port), family=family, backlog=256)
        except OSError as error:
            why = str(error.strerror or error).partition(" (while")[0]
            raise ServiceError(
                f"{where}{host}:{port} cannot be listened on ({why}). Stop what has it, choose another --port, or any "
                "that is free with --port 0."
            ) from error
        self.port = int(self._socket.getsockname()[1])
        self._uvicorn: uvicorn.Server | None = None

    def __enter__(self) -> Self:
        """Keep the port until the block ends."""
        return self

    def __exit__(self, *_: object) -> None:
        """Free the port."""
        self._socket.close()

    def run(self, app: ASGIApp, idle: float = math.inf) -> None:
        """Answer until `stop`, a signal, or so many seconds without a request."""
        last = [time.monotonic()]

        async def timed(scope: Scope, receive: Receive, send: Send) -> None:
            last[0] = time.monotonic()
            await _answer(app, scope, receive, send)

        async def check() -> None:
            server.should_exit |= time.monotonic() - last[0] > idle

        # No access log: links are secret, addresses are nobody's business.
        config = uvicorn.Config(
            timed,
            http=_ImpatientProtocol,
            ws="none",
            lifespan="off",
            access_log=False,
            log_level="warning",
            server_header=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=5,
            limit_concurrency=CONNECTIONS,
            callback_notify=check,
            timeout_notify=0,
        )
        server = self._uvicorn = uvicorn.Server(config)
        _stop_by_signals(server)
        server.run(sockets=[self._socket])

    def stop(self) -> None:
        """Let `run` return."""
        if self._uvicorn is not None:
            self._uvicorn.should_exit = True


async def _answer(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer, and close the connection when the body was not read: else the rest of it would be, to its end."""
    headers = Headers(scope=scope)
    unread = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"

    async def receive_and_note() -> Message:
        nonlocal unread
        message = await receive()
        unread = unread and message.get("more_body", False)
        return message

    async def send_and_close(message: Message) -> None:
        if unread and message["type"] == "http.response.start":
            MutableHeaders(scope=message)["connection"] = "close"
        await send(message)

    await app(scope, receive_and_note, send_and_close)


class _ImpatientProtocol(H11Protocol):
    """Closes a connection on which a request does not arrive in time: half a header would hold its place for ever."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop()

    def _watch(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop()
        elif self._timer is None:
            self._timer = self.loop.call_later(PATIENCE, self.transport.abort)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _stop_by_signals(server: Any) -> None:
    """Let what a container or a closed terminal sends stop the server, so that files are closed whole.

    Uvicorn stops by itself at SIGTERM, and then sends it once more to whoever had it before.
    """
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGTERM", "SIGHUP"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), lambda *_: setattr(server, "should_exit", True))
