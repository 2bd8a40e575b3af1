"""The server answers this machine's own name, GET and HEAD, and says why it answers nothing else."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from seesaw_cf.cli import main
from seesaw_cf.errors import ServiceError
from seesaw_cf.report.view.prompts import Prompts
from seesaw_cf.report.view.server import HOST, PageServer
from tests.page_reader import Read


@pytest.fixture(scope="module")
def server(prompts: Prompts) -> Iterator[PageServer]:
    with PageServer(prompts, 0) as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


def ask(
    server: PageServer, method: str = "GET", path: str = "/", host: str = ""
) -> tuple[http.client.HTTPResponse, str]:
    connection = http.client.HTTPConnection(HOST, server.port, timeout=20)
    connection.request(method, path, headers={"Host": host} if host else {})
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
    assert "Python" not in answer.headers["Server"]


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
        ("x://[", 400, "Invalid IPv6 URL"),
        ("/?editor=ftt", 400, "Did you mean"),
        ("/?" + "&".join(f"a{n}=1" for n in range(50)), 400, "Bad Request"),
        ("/?q=" + "x" * 70_000, 414, "Request-URI Too Long"),
        ("/?q=%00%ff", 200, "No prompts"),
    ],
)
def test_what_is_not_there_has_a_page_that_says_so(server: PageServer, path: str, status: int, said: str) -> None:
    answer, html = ask(server, path=path)
    assert answer.status == status
    assert said in html or said in Read(html).text
    assert answer.headers["X-Frame-Options"] == "DENY"


def test_two_host_names_are_none(server: PageServer) -> None:
    with socket.create_connection((HOST, server.port), timeout=20) as line:
        line.sendall(f"GET / HTTP/1.1\r\nHost: {HOST}:{server.port}\r\nHost: evil\r\n\r\n".encode())
        assert b" 421 " in line.recv(100)


def test_a_port_in_use_is_named(prompts: Prompts, server: PageServer) -> None:
    with pytest.raises(ServiceError, match=rf"port {server.port} of 127.0.0.1: in use.*--port 0"):
        PageServer(prompts, server.port)


def test_the_command_serves_and_ends_when_nobody_asks(
    viewed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", str(viewed), "--port", "0", "--idle", "0.05"]) == 0
    assert "http://127.0.0.1:" in capsys.readouterr().out
    assert main(["view", str(tmp_path), "--port", "0"]) == 1
    assert "so it is not a run folder" in capsys.readouterr().err
