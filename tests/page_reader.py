"""What a page says and shows, read as a program and as Chromium reads it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

__all__ = ["HOSTILE", "Read", "check_alone", "csv_files", "in_browser"]

HOSTILE = {
    "html": "</script><img src=x onerror=alert(1)><script>alert(2)</script><!--&amp;\"'",
    "right to left": "שלום \N{RIGHT-TO-LEFT OVERRIDE}txt.exe\N{POP DIRECTIONAL FORMATTING} مرحبا\u2028",
    "long": "w" * 4_000,
    "emoji": "\U0001f469\u200d\U0001f680 \U0001f3f3\ufe0f\u200d\U0001f308",
    "formula": "=1+1",
}
"""What a model, a data set or a user may write as a name or a text."""

_APART = {"text", "title", "td", "th", "dt", "dd", "p", "li", "h1", "h2", "h3", "summary", "caption"}
_VOID = {"meta", "link", "br", "img", "input", "hr"}


class Read(HTMLParser):
    """A page: its tags with attributes, the text outside of scripts and styles, and what its data block holds."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.data: Any = None  # of the first data block
        self.blocks: dict[str, Any] = {}
        self._open: list[str] = []
        self._block = ""
        self.feed(html)
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.text += " " if tag in _APART else ""
        if tag not in _VOID:
            self._open.append(tag)
        own = dict(attrs)
        self._block = str(own.get("id")) if own.get("type") == "application/json" else ""

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self._block = ""

    def handle_data(self, data: str) -> None:
        if self._block:
            self.blocks[self._block] = json.loads(data)
            self.data = self.data or self.blocks[self._block]
        elif not {"script", "style"} & set(self._open):
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every such tag."""
        return [attrs for name, attrs in self.tags if name == tag]


def csv_files(page: Read) -> dict[str, str]:
    """The tables that a page offers: name -> content."""
    links = {str(tag["download"]): str(tag["href"]) for tag in page.all("a") if "download" in tag}
    return {name: base64.b64decode(link.partition("base64,")[2]).decode() for name, link in links.items()}


def check_alone(html: str) -> Read:
    """A page that asks nobody: only its own script and style may act, and no text in it is markup or control."""
    page = Read(html)
    [policy] = [str(tag["content"]) for tag in page.all("meta") if tag.get("http-equiv")]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for kind in ("style", "script"):
        [own] = re.findall(rf"<{kind}>(.*?)</{kind}>", html, re.DOTALL)
        assert f"sha256-{base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()}" in policy
    assert len(page.all("script")) == 1 + len(page.blocks)
    ids = [str(attrs["id"]) for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids)), "an id is there twice"
    for tag, attrs in page.tags:
        assert tag not in ("img", "iframe", "object", "embed", "base", "link"), tag
        assert not {name for name in attrs if name.startswith("on") or name in ("style", "src")}
        link = str(attrs.get("href") or "#")
        assert link.startswith(("#", "data:text/csv;")), link
        assert not link.startswith("#") or link == "#" or link[1:].partition("?")[0] in ids, link
    assert not re.search(r"url\(|@import|fetch\(|XMLHttp|WebSocket", html.partition("<body>")[0])
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u2028\u2029\u202a-\u202e\u2066-\u2069]", html)
    return page


def in_browser(file: Path, fragment: str = "", width: int = 1280) -> Read:
    """The page as it is after its script has run in Chromium; fails when its own policy refuses something.

    Skips where Chromium is not installed.
    """
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    words = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--virtual-time-budget=5000"]
    words += ["--enable-logging=stderr", "--disable-dev-shm-usage", "--dump-dom", f"{file.as_uri()}{fragment}"]
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=120, check=True)
    refused = [line for line in done.stderr.splitlines() if re.search(r"CONSOLE.*(Refused|Error|violates)", line)]
    assert not refused, refused
    return Read(done.stdout)
