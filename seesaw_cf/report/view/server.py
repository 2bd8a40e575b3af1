"""Pages of a run for this machine alone: loopback, GET and HEAD, no script, no file, no other name than its own."""

from __future__ import annotations

import hmac
import math
import secrets
from collections.abc import Mapping
from http import HTTPStatus

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import Receive, Scope, Send

from seesaw_cf.base.errors import UnknownNameError, unknown_name
from seesaw_cf.base.web import Guard, Server
from seesaw_cf.report.html.render import SERVED, policy
from seesaw_cf.report.view.pages import refusal, view_page
from seesaw_cf.report.view.prompts import Prompts
from seesaw_cf.report.view.query import PAGES

HOST = "127.0.0.1"


class PageServer(Server):
    """Server of the pages of a run.

    Args:
        prompts: The run.
        port: On 127.0.0.1; 0 for any that is free.
        private: Answer only who has opened `url`, which then holds a secret: for a machine with other users.

    Raises:
        ServiceError: The port is in use, or this user may not use it.
    """

    def __init__(self, prompts: Prompts, port: int, private: bool = False) -> None:
        super().__init__("view: ", HOST, port)
        self._prompts = prompts
        self._secret = secrets.token_urlsafe(20) if private else ""
        self._cookie = f"reader{self.port}" if private else ""  # a browser sends one port's cookies to all
        home = f"http://{HOST}:{self.port}/"
        self.url = f"{home}enter/{self._secret}" if private else home
        headers = {
            "content-security-policy": f"{policy(SERVED)}; frame-ancestors 'none'",
            "referrer-policy": "no-referrer",
        }
        hosts = [f"{name}:{self.port}" for name in (HOST, "localhost")]
        stranger = _refuse(HTTPStatus.MISDIRECTED_REQUEST, f"Open {home} itself.")
        self._guarded = Guard(self._answer, hosts, headers, stranger)

    def serve(self, idle: float = math.inf) -> None:
        """Answer until `stop`, a signal, or so many seconds without a request."""
        self.run(self._guarded, idle)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        response = await run_in_threadpool(self._page, request)
        await response(scope, receive, send)

    def _page(self, request: Request) -> Response:
        """Return a page, or why there is none."""
        if request.method not in ("GET", "HEAD"):
            return _refuse(HTTPStatus.METHOD_NOT_ALLOWED, "This server only shows: use GET.", {"Allow": "GET, HEAD"})
        path, query = request.url.path, request.url.query
        entered = bool(self._secret) and hmac.compare_digest(path.encode(), f"/enter/{self._secret}".encode())
        cookie = request.cookies.get(self._cookie, "")
        if not entered and not hmac.compare_digest(cookie.encode(), self._secret.encode()):
            return _refuse(HTTPStatus.UNAUTHORIZED, "Open the address that `seesaw-cf view` printed; it lets you in.")
        try:
            if not entered and path not in PAGES:
                return _refuse(HTTPStatus.NOT_FOUND, str(unknown_name("page", path, PAGES)))
            page = HTMLResponse(view_page(self._prompts, *(("/", "") if entered else (path, query))))
        except (UnknownNameError, ValueError) as error:  # a RecordError is one, too
            return _refuse(HTTPStatus.BAD_REQUEST, str(error))
        if entered:
            page.set_cookie(self._cookie, self._secret, httponly=True, samesite="strict")
        return page


def _refuse(status: HTTPStatus, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return HTMLResponse(refusal(status.phrase, message), status, headers)
