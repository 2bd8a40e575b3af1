"""Hooks of mkdocs: pages made from the code, and links from one file of the repository to another."""

from __future__ import annotations

import os
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))  # mkdocs runs this file by its path

from docs.tools.columns import columns_page  # noqa: E402
from docs.tools.commands import command_page  # noqa: E402
from docs.tools.house import house_picture, rooms_table  # noqa: E402
from docs.tools.notebooks import FOLDER, notebook_page  # noqa: E402
from seesaw_cf.metrics.register import METRICS  # noqa: E402

# File of the repository -> its page in the site.
OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "dataset_card.md": "cards/dataset.md",
    "seesaw_cf/models/seesaw-tiny/README.md": "cards/seesaw-tiny.md",
} | {f"metrics/{name}/README.md": f"metrics/{name}.md" for name in METRICS}
NOTEBOOKS = {f"docs/tutorials/{file.name}": f"tutorials/{file.stem}.md" for file in sorted(FOLDER.glob("*.ipynb"))}
INSERTED = {"<!-- house -->": house_picture, "<!-- rooms -->": rooms_table}
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")


def generated() -> dict[str, str]:
    """Name of a page that is no file of docs/ -> its Markdown."""
    pages = {page: (ROOT / file).read_text(encoding="utf-8") for file, page in OUTSIDE.items()}
    pages |= {page: notebook_page(ROOT / file) for file, page in NOTEBOOKS.items()}
    return pages | {"commands.md": command_page(), "columns.md": columns_page()}


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages that are made from the code."""
    for name, text in generated().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Puts in what is made from the code, and turns paths of the repository into pages of the site."""
    for mark, make in INSERTED.items():
        if mark in markdown:
            markdown = markdown.replace(mark, make())
    sources = {site: file for file, site in OUTSIDE.items()}
    name = page.file.src_uri
    source = sources.get(name, f"docs/{name}")
    return LINK.sub(lambda found: _to_page(found[1], source, name), markdown)


def _to_page(target: str, source: str, name: str) -> str:
    """The link as it is, unless it leads to a file that is a page elsewhere in the site."""
    path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
    page = (OUTSIDE | NOTEBOOKS).get(path, path.removeprefix("docs/") if source in OUTSIDE else None)
    return os.path.relpath(page, posixpath.dirname(name) or ".") if page else target
