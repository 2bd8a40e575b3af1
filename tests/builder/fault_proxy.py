"""A proxy in front of a SPARQL server that spoils replies in a given order, then passes everything on."""

import json
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

JSON = "application/sparql-results+json"
_BROKEN = b"\njava.util.concurrent.TimeoutException\n" + b"\tat java.util.concurrent.FutureTask\n" * 20
# Fault -> what is said behind half of a reply, and whether the length of a whole one is promised.
HALVES = {"half": (b"", True), "unfinished": (b"", False), "broken": (_BROKEN, False)}
# Fault -> status, reply and its kind: a page, JSON that is no SPARQL result, what Wikidata says of a long query.
CANNED = {
    "page": (200, b"<!doctype html><title>Maintenance</title>", "text/html"),
    "other": (200, b'{"error": "busy"}', "application/json"),
    "timeout": (500, b"SPARQL-QUERY: " + b"x" * 500 + b"\njava.util.concurrent.TimeoutException", "text/plain"),
}


class FaultProxy:
    """`with FaultProxy(upstream, ["503", "half"]) as proxy:` spoils the first two replies."""

    def __init__(
        self, upstream: str, faults: Iterable[str] = (), ends: Callable[[str], str] = lambda query: ""
    ) -> None:
        """Remembers what to spoil.

        Args:
            upstream: A SPARQL server.
            faults: What is done to one reply after the other; a knock meets none.
            ends: Query -> the fault that it always meets, such as "timeout"; "" = none.
        """
        self.upstream, self.ends = upstream, ends
        self.faults = list(faults)
        self.queries: list[bytes] = []
        self.agents: list[str] = []
        handler = type("BoundHandler", (_Handler,), {"proxy": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/query"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    proxy: FaultProxy

    def log_message(self, *_: Any) -> None:
        """Keeps the test output clean."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.proxy.agents.append(self.headers["User-Agent"])
        asked = urllib.parse.parse_qs(body.decode())["query"][0]
        knock = "?answer" in asked  # only asks whether somebody is there
        self.proxy.queries += [] if knock else [body]
        fault = self.proxy.ends(asked) or (self.proxy.faults.pop(0) if self.proxy.faults and not knock else "")
        name, _, argument = fault.partition(":")
        if fault.endswith(" said"):
            return self._send(int(fault[:3]), b'{"exception": "Operation timed out."}', "application/json", {})
        if name.isdigit():
            return self._send(int(name), b"try later", "text/plain", {"Retry-After": argument} if argument else {})
        request = urllib.request.Request(self.proxy.upstream, body, dict(self.headers))
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                code, reply = 200, response.read()
        except urllib.error.HTTPError as error:
            with error:
                code, reply = error.code, error.read()
        if name in CANNED:
            code, canned, kind = CANNED[name]
            return self._send(code, canned, kind, {})
        if name in HALVES:
            why, promised = HALVES[name]
            return self._send(code, reply[: len(reply) // 2] + why, JSON, {}, len(reply) if promised else None)
        spoil: Callable[[int, bytes, str], None] = getattr(self, f"_{name}") if name else self._whole
        return spoil(code, reply, argument)

    def _send(self, code: int, reply: bytes, kind: str, headers: dict[str, str], length: int | None = None) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        for name, value in headers.items():
            self.send_header(name, value)
        if length is not None or code != 200:
            self.send_header("Content-Length", str(len(reply) if length is None else length))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(reply)
        self.close_connection = True

    def _whole(self, code: int, reply: bytes, _: str) -> None:
        self._send(code, reply, JSON, {}, len(reply))

    def _part(self, code: int, reply: bytes, argument: str) -> None:
        """The first rows of a longer result ("30 206", "30 state", "30 most", "30 cut"), said or broken off."""
        number, _, how = argument.partition(" ")
        result = json.loads(reply)
        if len(result["results"]["bindings"]) <= int(number):
            return self._whole(code, reply, "")
        if how == "cut":
            return self._send(code, reply[: len(reply) // 2], JSON, {})
        del result["results"]["bindings"][int(number) :]
        headers = {"state": {"X-SQL-State": "S1TAT", "X-SQL-Message": "Returning incomplete results"}}
        headers["most"] = {"X-SPARQL-MaxRows": number}
        part = json.dumps(result).encode()
        return self._send(206 if how == "206" else code, part, JSON, headers.get(how, {}), len(part))

    def _hang(self, code: int, reply: bytes, seconds: str) -> None:
        """Nothing for some seconds."""
        time.sleep(float(seconds))
        self._whole(code, reply, "")

    def _drip(self, code: int, reply: bytes, seconds: str) -> None:
        """One byte after the other, each in time, all together for some seconds."""
        self.send_response(code)
        self.send_header("Content-Type", JSON)
        self.send_header("Connection", "close")
        self.end_headers()
        end = time.monotonic() + float(seconds)
        for byte in reply:
            if time.monotonic() > end:
                break
            try:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
            except OSError:
                break
            time.sleep(0.05)
        self.close_connection = True

    def _drop(self, *_: Any) -> None:
        """The connection is closed without a word."""
        self.close_connection = True
