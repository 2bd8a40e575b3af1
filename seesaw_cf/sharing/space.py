"""Publishing the page of a report as a static Space on the Hugging Face Hub."""

from __future__ import annotations

import html
import json
import os
import shutil
import tempfile
from pathlib import Path

from seesaw_cf.errors import StorageError
from seesaw_cf.io.files import write_text
from seesaw_cf.io.hub import check_repo
from seesaw_cf.sharing.hub import push_folder

_PAGES = {"report.html": "index.html", "audit.html": "audit.html"}
_TITLE = ("<title>", "</title>")


def share_page(folder: str | os.PathLike[str], repo: str, *, public: bool = False, overwrite: bool = False) -> str:
    """Make a Space that shows a report, in one commit; the page is the file that was looked at here.

    Args:
        folder: The folder of a report (of a run, a comparison or a study), or a run folder with `report/` in it.
        repo: "org/name".
        public: Visible to all people; a new Space is private otherwise.
        overwrite: Replace what the Space holds.

    Returns:
        The address of the Space.

    Raises:
        RecordError: A malformed name.
        StorageError: The folder has no report, or the Hub refused or did not answer.
    """
    check_repo(repo)
    pages = _report_folder(Path(folder))
    with tempfile.TemporaryDirectory() as temporary:
        space = Path(temporary) / "space"
        space.mkdir()
        there = [name for name in _PAGES if (pages / name).is_file()]
        for name in there:
            shutil.copyfile(pages / name, space / _PAGES[name])
        write_text(space / "README.md", _card(_title(pages / "report.html"), there))
        return push_folder(space, repo, not public, overwrite, kind="space", message="Report, made with seesaw_cf")


def _report_folder(source: Path) -> Path:
    for folder in (source, source / "report"):
        if (folder / "report.html").is_file():
            return folder
    raise StorageError(
        f"{source}: no report.html there nor in its folder report. Write it with `seesaw-cf report RUN`, look at it, "
        "and give the folder it is in."
    )


def _title(page: Path) -> str:
    """Return the page's own title."""
    head = page.read_text(encoding="utf-8")[:20_000]
    _, tag, rest = head.partition(_TITLE[0])
    return html.unescape(rest.partition(_TITLE[1])[0]) if tag else "Report"


def _card(title: str, there: list[str]) -> str:
    more = "`audit.html` is the same for those who have to judge it. " if "audit.html" in there else ""
    # JSON strings are YAML strings, except that YAML knows no pairs of surrogates.
    return f"""---
title: {json.dumps(" ".join(title.split())[:100], ensure_ascii=False)}
sdk: static
app_file: index.html
tags:
- seesaw-cf
- model-editing
- fairness
---

A report of side effects of knowledge edits on answers about other people, made with `seesaw_cf`. {more}The
page asks no network and keeps nothing. The edits are counterfactual: neither they nor anything an edited model says is
a statement about the people named.
"""
