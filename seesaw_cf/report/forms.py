"""A report in its forms: pages, one Markdown and one JSON file, a folder of tables, pictures, one screen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from seesaw_cf.base.files import sweep, write_text
from seesaw_cf.base.terminal import wrap
from seesaw_cf.base.types import JsonObject
from seesaw_cf.report.html.findings import Findings, findings_page
from seesaw_cf.report.table import Table
from seesaw_cf.report.text import escape
from seesaw_cf.stats.plain import json_text

SCREEN = 40  # lines
_WRITTEN = re.compile(r"[\w-]+\.(html|md)|tables/[\w-]+\.csv|pictures/[\w.-]+\.png")

Draw = Callable[[Path], Mapping[str, str]]
"""Draws pictures into a folder; returns file name -> caption. It may import matplotlib."""


@dataclass(frozen=True, slots=True)
class Report:
    """Content of a report.

    Attributes:
        head: Findings in Markdown.
        screen: Findings for a terminal.
        tables: In the order of a reader. Each is a file; `Table.brief` decides what `report.md` shows.
        pages: File name -> HTML or Markdown.
        record: What `report.json` holds: findings and settings, no table.
        foot: Markdown below the tables.
        draw: Draws pictures; None when there are none.
    """

    head: str
    screen: str
    tables: Sequence[Table]
    pages: Mapping[str, str] = field(default_factory=dict)
    record: JsonObject = field(default_factory=dict)
    foot: Sequence[str] = ()
    draw: Draw | None = None

    def write(self, folder: Path, *, pictures: bool = False) -> str:
        """Write every form into a folder; remove what an earlier report wrote there and this one does not.

        Every text is made before the first file changes. While files are written there is no page, and `report.json`
        only lists them, so that what is not whole does not look so.

        Args:
            folder: Where to; made when it is not there.
            pictures: Draw pictures too.

        Returns:
            Plain text for a terminal: where the files are, and the findings.

        Raises:
            MissingExtraError: Pictures without matplotlib.
            StorageError: A file could not be written.
        """
        sweep(folder)
        captions = _drawn(self.draw, folder / "pictures") if pictures and self.draw else {}
        files = {**self.pages, "report.md": self.markdown(captions)}
        files |= {table.file: table.csv for table in self.tables}
        names = [*files, *(f"pictures/{name}" for name in captions)]
        record, screen = json_text({**self.record, "files": names}), self._terminal(folder, len(captions))
        earlier = _earlier(folder)
        write_text(folder / "report.json", json_text({"files": sorted({*names, *earlier})}))
        for file in (folder / name for name in {*(earlier - {*names}), *self.pages}):
            if file.is_file():
                file.unlink()
        for name in sorted(files, key=lambda name: name in self.pages):
            write_text(folder / name, files[name])
        write_text(folder / "report.json", record)
        return screen

    def markdown(self, captions: Mapping[str, str] | None = None) -> str:
        """Return `report.md`.

        Args:
            captions: File in the folder `pictures` -> what it shows.
        """
        others = [table for table in self.tables if not table.brief]
        lines = [
            f"- [{table.file}]({table.file}), {len(table.frame):,} rows: {escape(table.title)}" for table in others
        ]
        images = [f"![{escape(about)}](pictures/{name})" for name, about in (captions or {}).items()]
        parts = [
            *(self.head, *(table.markdown() for table in self.tables if table.brief)),
            *(["## More tables", "\n".join(lines)] if lines else []),
            *(["## Pictures", *images] if images else []),
            *self.foot,
        ]
        return "\n\n".join(parts) + "\n"

    def _terminal(self, folder: Path, n_pictures: int) -> str:
        counts = {"tables": len(self.tables), "pictures": n_pictures}
        files = [*self.pages, "report.md", "report.json", *(f"{name}/ ({n} files)" for name, n in counts.items() if n)]
        note = f"Written to {folder}:\n{wrap(', '.join(files), '  ')}"
        return f"{note}\n\n{_shortened(self.screen, SCREEN - note.count(chr(10)) - 2)}"


def findings_report(
    page: Findings, note: str = "", draw: Draw | None = None, record: Mapping[str, object] = MappingProxyType({})
) -> Report:
    """Return the report of a page.

    Args:
        page: Findings and tables.
        note: Markdown between them.
        draw, record: See `Report`.
    """
    return Report(
        head="\n\n".join(filter(None, [page.screen.markdown(), note])),
        screen=page.screen.terminal(),
        tables=page.tables,
        pages={"report.html": findings_page(page)},
        record={"findings": page.screen.record(), "facts": dict(page.facts), **record},
        draw=draw,
    )


def _drawn(draw: Draw, folder: Path) -> Mapping[str, str]:
    return draw(folder)


def _earlier(folder: Path) -> set[str]:
    """Return the files that `report.json` says are there, of names that a report gives."""
    try:
        names = json.loads((folder / "report.json").read_text("utf-8"))["files"]
        return {name for name in names if _WRITTEN.fullmatch(name)}
    except (OSError, ValueError, KeyError, TypeError):
        return set()


def _shortened(text: str, most: int) -> str:
    """Return the paragraphs that have room; indented lines belong to the one above."""
    lines = text.split("\n")
    if len(lines) <= most:
        return text
    end = most - 1
    while end and lines[end].startswith(" "):
        end -= 1
    return "\n".join([*lines[:end], "The rest is in report.md."])
