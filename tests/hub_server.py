"""A Hub-compatible server on loopback, so that publishing is tested over real HTTP: standard library only.

    with Hub(tmp_path, writers=("hf_write",), readers=("hf_read",)) as hub:
        subprocess.run([...], env=hub.environment("hf_write"))

It keeps models, datasets and Spaces with commits, branches and tags in memory, file contents on disk, and speaks the
part of the REST API that `huggingface_hub`, `transformers`, `datasets` and `evaluate` use: create, preupload, commit,
LFS basic transfer, tree, paths-info, resolve with ranges. Clients read HF_ENDPOINT when they are imported: run them in
a subprocess with `environment()`.
"""

import hashlib
import json
import os
import threading
from collections.abc import Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from .hub_routes import ROUTES, Blob, Refusal, Repo

TOKEN, READER = "hf_writer_secret", "hf_reader_secret"
"""Tokens that may write, and read only, on the server of the fixture `hub`."""


class Hub:
    """The server; a context manager."""

    def __init__(self, root: Path, writers: Iterable[str] = ("hf_write",), readers: Iterable[str] = ()) -> None:
        self.blobs = root / "blobs"
        self.blobs.mkdir(parents=True, exist_ok=True)
        self.repos: dict[tuple[str, str], Repo] = {}
        self.writers, self.readers = set(writers), set(readers)
        self.log: list[tuple[str, str]] = []
        self.lock = threading.RLock()
        handler = type("BoundHandler", (Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self) -> "Hub":
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def environment(self, token: str | None = None, home: Path | None = None) -> dict[str, str]:
        """Environment of a client process; `home` is its own cache."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith("HF_")}
        own = {"HF_ENDPOINT": self.url, "HF_HUB_DISABLE_XET": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}
        cache = {"HF_HOME": str(home or self.blobs.parent / "client")}
        return {**kept, **own, **cache, **({"HF_TOKEN": token} if token else {})}

    def files(self, repo: str, kind: str = "model", revision: str = "main") -> dict[str, bytes]:
        """Every file of a repository at a revision."""
        found = self.repo(kind, repo)
        files = found.commits[found.resolve(revision)][1]
        return {path: (self.blobs / blob.sha256).read_bytes() for path, blob in files.items()}

    def repo(self, kind: str, name: str) -> Repo:
        if (kind, name) not in self.repos:
            raise Refusal(404, "RepoNotFound", "Repository not found")
        return self.repos[kind, name]

    def store(self, content: bytes, lfs: bool) -> Blob:
        sha256 = hashlib.sha256(content).hexdigest()
        (self.blobs / sha256).write_bytes(content)
        return Blob(sha256, hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest(), len(content), lfs)


class Handler(BaseHTTPRequestHandler):
    """One request: find the route, check the token, answer JSON or bytes."""

    protocol_version = "HTTP/1.1"
    hub: Hub

    def handle_any(self) -> None:
        url = urlsplit(self.path)
        self.query = parse_qs(url.query)
        self.body = self._read()
        self.hub.log.append((self.command, self.path))
        try:
            with self.hub.lock:
                answer = self._route(url.path)
            if answer is not None:
                self.reply(200, json.dumps(answer).encode(), {"Content-Type": "application/json"})
        except Refusal as refusal:
            text = json.dumps({"error": str(refusal)}).encode()
            self.reply(refusal.status, text, {"X-Error-Code": refusal.code, "X-Error-Message": str(refusal)})

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any

    def _route(self, path: str) -> Any:
        method = "GET" if self.command == "HEAD" else self.command
        for verb, pattern, writes, function in ROUTES:
            found = pattern.fullmatch(path) if verb == method else None
            if found:
                self._authorise(writes)
                return function(self, **{key: value and unquote(value) for key, value in found.groupdict().items()})
        raise Refusal(404, "", f"no route {method} {path}")

    def _authorise(self, writes: bool) -> None:
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if token and token not in self.hub.writers | self.hub.readers:
            raise Refusal(401, "", "Invalid credentials in Authorization header")
        if writes and token not in self.hub.writers:
            raise Refusal(403 if token else 401, "", "You don't have the rights to write here")

    def _read(self) -> bytes:
        if "chunked" not in (self.headers.get("Transfer-Encoding") or ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def reply(self, status: int, content: bytes = b"", headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for key, value in {"Content-Length": str(len(content)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Silence."""
