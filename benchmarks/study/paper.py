"""The study's page as a PDF, by pandoc and typst of the extra `paper`.

python -m benchmarks.study.paper OUT.pdf
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import pypandoc
import typst

from benchmarks.study.page import PAGE

# Ten columns fit a page that lies on its side.
_OPTIONS = {"papersize": "a4", "fontsize": "8pt", "section-numbering": "1.1"}
_HEAD = """
#set page(flipped: true)
#set table(inset: 3pt)
#show table: set text(size: 6.5pt)
#show figure: set block(breakable: true)
"""


def write(out: Path) -> None:
    """Write the PDF.

    Args:
        out: The file.
    """
    title, _, text = PAGE.read_text(encoding="utf-8").partition("\n")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        head, source = Path(folder, "head.typ"), Path(folder, "study.typ")
        head.write_text(_HEAD, encoding="utf-8")
        shutil.copytree(PAGE.parent / "assets", Path(folder, "assets"))
        options = [f"--variable={name}={value}" for name, value in _OPTIONS.items()]
        names = [f"--metadata=title={title.removeprefix('# ')}", "--metadata=author=The seesaw_cf authors"]
        pypandoc.convert_text(
            text,
            "typst",
            format="gfm",
            outputfile=source,
            extra_args=["--standalone", "--shift-heading-level-by=-1", f"--include-in-header={head}", *options, *names],
        )
        typst.compile(source, output=out)


def main() -> None:
    """Write the file that is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    write(parser.parse_args().out)


if __name__ == "__main__":
    main()
