"""A server of pages for this machine alone: loopback, GET and HEAD, no script, no file, no other name than its own."""

from __future__ import annotations

import errno
import logging
import sys
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from seesaw_cf.base.errors import ServiceError, UnknownNameError, unknown_name
from seesaw_cf.report.html.render import SERVED, policy
from seesaw_cf.report.view.pages import refusal, view_page
from seesaw_cf.report.view.prompts import Prompts
from seesaw_cf.report.view.query import PAGES

HOST = "127.0.0.1"
_PATIENCE = 20  # seconds that a connection may stay silent
_log = logging.getLogger(__name__)
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class PageServer(ThreadingHTTPServer):
    """Server of the pages of a run.

    Args:
        prompts: The run.
        port: On 127.0.0.1; 0 for any that is free.

    Raises:
        ServiceError: The port is in use, or this user may not use it.
    """

    daemon_threads = True

    def __init__(self, prompts: Prompts, port: int) -> None:
        self.prompts = prompts
        self.asked = threading.Event()
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            reason = "in use by another program" if error.errno == errno.EADDRINUSE else error.strerror
            raise ServiceError(
                f"port {port} of {HOST}: {reason}. Choose another with --port, or any that is free with --port 0."
            ) from error

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self.server_address[1])

    @property
    def url(self) -> str:
        """Of its first page."""
        return f"http://{HOST}:{self.port}/"

    def serve_while_asked(self, idle: float | None) -> None:
        """Answer until so many seconds pass without a request; without end when None."""
        serving = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
        serving.start()
        try:
            while self.asked.wait(idle):
                self.asked.clear()
        finally:
            self.shutdown()
            serving.join()

    def handle_error(self, request: object, client_address: object) -> None:
        """A closed connection is logged as debug information; any other error with its traceback."""
        gone = isinstance(sys.exception(), ConnectionError | TimeoutError)
        _log.log(logging.DEBUG if gone else logging.ERROR, "a page was not answered", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    """One request."""

    server: PageServer
    timeout = _PATIENCE
    server_version = "seesaw-cf"
    sys_version = ""

    def do_GET(self) -> None:
        """A page, or why there is none."""
        self.server.asked.set()
        allowed = {f"{name}:{self.server.port}" for name in (HOST, "localhost")}
        if self.headers.get_all("Host") not in [
            [name] for name in allowed
        ]:  # another name may lead here: DNS rebinding
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST, explain=f"Open {self.server.url} itself.")
            return
        try:
            address = urlsplit(self.path)  # of "x://[" there are no parts
            if address.path not in PAGES:
                self._refuse(HTTPStatus.NOT_FOUND, unknown_name("page", address.path, PAGES))
                return
            self._answer(HTTPStatus.OK, view_page(self.server.prompts, address.path, address.query))
        except (UnknownNameError, ValueError) as error:  # a RecordError is one, too
            self._refuse(HTTPStatus.BAD_REQUEST, error)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        """Nothing here can be changed."""
        self.close_connection = True
        self.send_error(HTTPStatus.METHOD_NOT_ALLOWED, explain="This server only shows: use GET.")

    do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = do_POST

    def _refuse(self, status: HTTPStatus, error: Exception) -> None:
        self._answer(status, refusal(status.phrase, str(error)))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Also what `http.server` refuses by itself: a malformed or endless request."""
        status = HTTPStatus(code)
        self._answer(status, refusal(status.phrase, explain or status.description or status.phrase))

    def _answer(self, status: HTTPStatus, html: str) -> None:
        content = html.encode("utf-8")
        self.send_response(status)
        own = {"Content-Security-Policy": f"{policy(SERVED)}; frame-ancestors 'none'"}
        for name, value in {**_HEADERS, **own, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        if status is HTTPStatus.METHOD_NOT_ALLOWED:
            self.send_header("Allow", "GET, HEAD")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """To the log, where --debug finds it: nothing in the terminal for every page."""
        _log.debug(format, *args)
