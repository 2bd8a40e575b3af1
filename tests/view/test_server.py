"""The server answers this machine's own name, GET and HEAD, and says why it answers nothing else."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from seesaw_cf.base.web import Server
from seesaw_cf.cli import main
from seesaw_cf.errors import ServiceError
from seesaw_cf.report.view.prompts import Prompts
from seesaw_cf.report.view.server import HOST, PageServer
from seesaw_cf.texts.people.web import LARGEST, read_form
from tests.page_reader import Read


@pytest.fixture(scope="module")
def server(prompts: Prompts) -> Iterator[PageServer]:
    with PageServer(prompts, 0) as made, serving(made):
        yield made


@contextmanager
def serving(server: Server, app: ASGIApp | None = None) -> Iterator[None]:
    thread = threading.Thread(target=partial(server.run, app) if app else server.serve)  # type: ignore[attr-defined]
    thread.start()
    yield
    server.stop()
    thread.join()


def ask(
    server: PageServer, method: str = "GET", path: str = "/", host: str = "", **headers: str
) -> tuple[http.client.HTTPResponse, str]:
    with closing(http.client.HTTPConnection(HOST, server.port, timeout=20)) as connection:
        connection.request(method, path, headers={"Host": host, **headers} if host else headers)
        answer = connection.getresponse()
        return answer, answer.read().decode()


def test_a_page_has_the_headers_that_keep_it_to_itself(server: PageServer) -> None:
    answer, html = ask(server)
    assert answer.status == 200
    assert Read(html).all("form") == [{"method": "get", "action": "/"}]
    policy = str(answer.headers["Content-Security-Policy"])
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "script-src 'none'" in policy
    assert policy.endswith("form-action 'self'; frame-ancestors 'none'")
    assert "unsafe" not in policy
    for name, value in {"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY"}.items():
        assert answer.headers[name] == value
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["Cache-Control"] == "no-store"
    assert "Server" not in answer.headers


def test_head_is_get_without_the_page(server: PageServer) -> None:
    answer, html = ask(server, "HEAD")
    assert (answer.status, html) == (200, "")
    assert int(answer.headers["Content-Length"]) > 1_000


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1", "[::1]:80", "127.0.0.1.nip.io"])
def test_another_name_for_this_machine_is_refused(server: PageServer, host: str) -> None:
    answer, html = ask(server, host=host)
    assert answer.status == 421
    assert server.url in html
    assert "citizenship" not in html
    assert ask(server, host=f"localhost:{server.port}")[0].status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_nothing_can_be_changed(server: PageServer, method: str) -> None:
    answer, html = ask(server, method)
    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"
    assert "only shows" in html


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/etc/passwd", 404, "unknown page"),
        ("/../manifest.json", 404, "unknown page"),
        ("//evil.example/", 404, "unknown page"),
        ("x://[", 404, "unknown page"),
        ("/?editor=ftt", 400, "Did you mean"),
        ("/?" + "&".join(f"a{n}=1" for n in range(50)), 400, "Bad Request"),
        ("/?q=%00%ff", 200, "No prompts"),
    ],
)
def test_what_is_not_there_has_a_page_that_says_so(server: PageServer, path: str, status: int, said: str) -> None:
    answer, html = ask(server, path=path)
    assert answer.status == status
    assert said in html or said in Read(html).text
    assert answer.headers["X-Frame-Options"] == "DENY"


@pytest.mark.parametrize("line", ["Host: evil", "X: " + "x" * 1_000_000])
def test_two_host_names_and_endless_headers_are_no_request(server: PageServer, line: str) -> None:
    with socket.create_connection((HOST, server.port), timeout=20) as client:
        client.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}:{server.port}\r\n{line}\r\n\r\n".encode())
        assert b" 400 " in client.recv(100)


async def too_long(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        await read_form(Request(scope, receive))
    except HTTPException as error:
        await PlainTextResponse(error.detail, error.status_code)(scope, receive, send)


@pytest.mark.parametrize("app", [too_long, PlainTextResponse("no such page", 404)])
def test_a_body_that_is_refused_is_not_read_to_its_end(app: ASGIApp) -> None:
    def send_for_ever(client: socket.socket) -> None:
        for _ in range(LARGEST):
            client.sendall(b"2000\r\n" + b"x" * 0x2000 + b"\r\n")

    with (
        Server("", HOST, 0) as server,
        serving(server, app),
        socket.create_connection((HOST, server.port), timeout=20) as client,
    ):
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        with pytest.raises(ConnectionError):
            send_for_ever(client)


@pytest.mark.parametrize("read", [True, False])
def test_only_a_body_that_was_read_leaves_the_connection_open(read: bool) -> None:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if read:
            await read_form(Request(scope, receive))
        await PlainTextResponse("answer")(scope, receive, send)

    with (
        Server("", HOST, 0) as server,
        serving(server, app),
        closing(http.client.HTTPConnection(HOST, server.port)) as client,
    ):
        client.request("POST", "/", body="a=1")
        assert client.getresponse().getheader("Connection") == (None if read else "close")


@pytest.mark.parametrize("start", ["", "GET / HT", "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nhalf"])
def test_who_does_not_finish_a_request_is_let_go(prompts: Prompts, monkeypatch: pytest.MonkeyPatch, start: str) -> None:
    monkeypatch.setattr("seesaw_cf.base.web.PATIENCE", 0.05)
    with PageServer(prompts, 0) as server, serving(server):
        with socket.create_connection((HOST, server.port), timeout=20) as client:
            client.sendall(start.encode())
            while client.recv(4096):  # what was answered to the head of a request, and then the end
                pass
        assert ask(server)[0].status == 200


def test_a_private_server_answers_only_who_has_the_address(prompts: Prompts) -> None:
    with PageServer(prompts, 0, private=True) as server, serving(server):
        path = server.url.partition(f":{server.port}")[2]
        for wrong in ("/", "/case?relation=P27&case=1", "/enter/", path[:-1], "/etc/passwd"):
            answer, html = ask(server, path=wrong)
            assert (answer.status, "lets you in" in html) == (401, True), wrong
        answer, html = ask(server, path=path)
        assert answer.status == 200
        cookie = str(answer.headers["Set-Cookie"])
        assert "HttpOnly" in cookie
        assert "SameSite=strict" in cookie
        assert ask(server, Cookie=cookie.partition(";")[0])[0].status == 200
        assert ask(server, Cookie=f"reader{server.port}=other")[0].status == 401


def test_a_port_in_use_is_named(prompts: Prompts, server: PageServer) -> None:
    with pytest.raises(ServiceError, match=rf"127.0.0.1:{server.port} cannot be listened on.*--port 0"):
        PageServer(prompts, server.port)


@pytest.mark.slow
def test_the_command_serves_and_ends_when_nobody_asks(
    viewed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", str(viewed), "--port", "0", "--idle", "0.05"]) == 0
    assert "http://127.0.0.1:" in capsys.readouterr().out
    assert main(["view", str(tmp_path), "--port", "0"]) == 1
    assert "so it is not a run folder" in capsys.readouterr().err
