"""What a page says and shows, read as a program and as Chromium reads it."""

from html.parser import HTMLParser

from seesaw_cf.base.files import neutral

__all__ = ["HOSTILE", "Read", "original"]

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


def original(cell: str) -> str:
    """The text that `neutral` was given."""
    return cell[1:] if cell.startswith("'") and neutral(cell[1:]) == cell else cell
