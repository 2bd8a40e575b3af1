"""The papers that this package follows, from `papers.bib`. Cards of metrics, models and data sets cite from here."""

from __future__ import annotations

import re
from pathlib import Path

_TEXT = Path(__file__).with_name("papers.bib").read_text(encoding="utf-8")
PAPERS = {entry.partition("{")[2].partition(",")[0]: entry for entry in re.split(r"\n\n", _TEXT.strip())}
"""Key -> BibTeX entry; the paper of an editor's method has the editor's name."""


def bibtex(*keys: str, note: str = "") -> str:
    """Return BibTeX entries, one after the other.

    Args:
        keys: Out of `PAPERS`.
        note: What of the first paper is meant, such as "section 4.1".
    """
    first, *others = (PAPERS[key] for key in keys)
    return "\n".join([f"{first[:-2]},\n  note = {{{note}}}\n}}" if note else first, *others])
