"""The gallery of flaws as one page: pairs of texts side by side, what shows the flaw marked, below a warning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from seesaw_cf.longform.flaw_items import FLAWS_BY_NAME
from seesaw_cf.page.findings import Findings, Folded, Section, findings_page
from seesaw_cf.page.texts import Found, Pair, Texts, compared

WARNING = (
    "Below are texts that language models wrote about people. What they say is often false, and some of it is "
    "offensive. Open to read"
)
_MOST = 3_000_000  # characters of texts on a page


def gallery_page(table: pa.Table) -> str:
    """A page that needs nothing beside it.

    Args:
        table: Rows of `seesaw_cf.longform.flaws.gallery.GALLERY`.

    Returns:
        HTML; of a gallery with more than three million characters of texts the first rows of each flaw.
    """
    rows = table.to_pylist()
    found = {name: [row for row in rows if row["flaw"] == name] for name in FLAWS_BY_NAME}
    there = {name: own for name, own in found.items() if own}
    sections = [_section(name, own, _MOST // len(there)) for name, own in there.items()]
    method = ("Rows are only ever added; raters are people or language models, as each row says.",)
    title = "Flaws in texts of edited language models"
    return findings_page(Findings(title, _said(rows, there), sections, method, "", (), {}))


def within_size(rows: Sequence[Mapping[str, Any]], most: int) -> list[Mapping[str, Any]]:
    """The first rows whose texts have so many characters together."""
    kept: list[Mapping[str, Any]] = []
    size = 0
    for row in rows:
        size += len(row["pre"] or "") + len(row["post"] or "")
        if size > most and kept:
            break
        kept.append(row)
    return kept


def _section(name: str, rows: Sequence[Mapping[str, Any]], most: int) -> Section:
    kept = within_size(rows, most)
    shown = (
        f"{len(kept)} of {len(rows)} pairs" if len(kept) < len(rows) else f"{len(rows)} pair{'s' * (len(rows) != 1)}"
    )
    pairs = Texts([_pair(row) for row in kept])
    title = f"{FLAWS_BY_NAME[name].title} ({len(rows)})"
    return Section(name, title, [Folded(f"{WARNING} {shown}.", [pairs], warning=True)])


def _pair(row: Mapping[str, Any]) -> Pair:
    where = "after" if row["change"] == 1 else "before"
    known = [f"{name}: {row[name]}" for name in ("model", "editor", "relation", "rater") if row[name]]
    quotes = [Found(str(row["quote"] or ""), "quote")]
    texts = compared("", row["pre"], row["post"], (quotes, quotes))
    return Pair(f"{row['entity'] or 'unnamed person'}: more present {where} the edit", "; ".join(known), [texts])


def _said(rows: Sequence[Mapping[str, Any]], there: Mapping[str, Sequence[Mapping[str, Any]]]) -> tuple[str, ...]:
    def names(column: str) -> str:
        return ", ".join(dict.fromkeys(str(row[column]) for row in rows if row[column])) or "not said"

    def counted(own: Iterable[Mapping[str, Any]]) -> str:
        signs = Counter(row["change"] for row in own)
        return f"{signs[1]} more after the edit, {signs[-1]} more before"

    pairs = len({(row["pre"], row["post"]) for row in rows})
    flaws = "; ".join(f"{FLAWS_BY_NAME[name].title}: {counted(own)}" for name, own in there.items())
    return (
        f"{pairs} pairs of texts; models: {names('model')}; editors: {names('editor')}.",
        "A gallery does not say whether edits took.",
        f"{flaws or 'Nothing was added yet'}.",
        "Pairs in which a flaw did not change are not in a gallery, so its counts are no shares.",
        f"{len(rows)} judgements by {names('rater')}; each is one rater's, without an interval.",
    )
