"""Notebooks as pages: their cells and the outputs stored in them, without scripts of a notebook's own.

`python -m docs.tools.notebooks` runs every notebook in an empty folder and stores what it prints.
"""

from __future__ import annotations

import contextlib
import html
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["FOLDER", "notebook_page", "run_notebook"]

FOLDER = Path(__file__).resolve().parents[1] / "tutorials"


def notebook_page(file: Path) -> str:
    """Markdown with a link to the notebook itself."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    first, *others = [_cell(cell) for cell in cells]
    link = (
        f'<a href="{file.name}" download>Download the notebook</a>; it runs offline, on a laptop, in a minute or less.'
    )
    return "\n\n".join([first, link, *others]) + "\n"


def _cell(cell: dict[str, Any]) -> str:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    said = "".join("".join(output["text"]) for output in cell["outputs"])
    shown = f'\n\n<pre class="output">{html.escape(said.rstrip())}</pre>' if said else ""
    return f"```python\n{source}\n```{shown}"


def run_notebook(file: Path, folder: Path) -> list[str]:
    """Runs the code cells one after another in one process.

    Args:
        file: The notebook.
        folder: Where they run; the process is back in its own folder afterwards.

    Returns:
        What each code cell printed on stdout.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = []
    with contextlib.chdir(folder):
        for cell in json.loads(file.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                said = io.StringIO()
                with contextlib.redirect_stdout(said):
                    exec(compile("".join(cell["source"]), str(file), "exec", dont_inherit=True), names)
                printed.append(said.getvalue())
    return printed


def _store(file: Path) -> None:
    book = json.loads(file.read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        printed = iter(run_notebook(file, Path(folder)))
    for cell in book["cells"]:
        if cell["cell_type"] == "code":
            lines = next(printed).splitlines(keepends=True)
            cell["outputs"] = [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
    file.write_text(json.dumps(book, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    os.environ["COLUMNS"] = "100"
    for name in sorted(FOLDER.glob("*.ipynb")):
        _store(name)
