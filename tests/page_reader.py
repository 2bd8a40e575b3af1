"""What a page says and shows, read as a program and as Chromium reads it."""

from __future__ import annotations

import base64
import hashlib
import re
from html.parser import HTMLParser

from seesaw_cf.base.files import neutral

__all__ = ["HOSTILE", "Read", "check_alone", "csv_files"]

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
    """A page: its tags with attributes, and the text outside of its style."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self.text += " " if tag in _APART else ""
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of every such tag."""
        return [attrs for name, attrs in self.tags if name == tag]


def csv_files(page: Read) -> dict[str, str]:
    """The tables that a page offers: name -> content."""
    links = {str(tag["download"]): str(tag["href"]) for tag in page.all("a") if "download" in tag}
    return {name: base64.b64decode(link.partition("base64,")[2]).decode() for name, link in links.items()}


def check_alone(html: str) -> Read:
    """A page that asks nobody: it has no script, only its own style may act, and no text in it is markup or control."""
    page = Read(html)
    [policy] = [str(tag["content"]) for tag in page.all("meta") if tag.get("http-equiv")]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    [own] = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert f"sha256-{base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()}" in policy
    assert not page.all("script")
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


def original(cell: str) -> str:
    """The text that `neutral` was given."""
    return cell[1:] if cell.startswith("'") and neutral(cell[1:]) == cell else cell
