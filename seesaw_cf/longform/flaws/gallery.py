"""The gallery of flaws: rows of (texts before and after, flaw, rater, quote) that grow, in a dataset folder.

The folder is a `datasets` folder with one config, `flaws`, and a page `gallery.html` that shows it. Rows are only ever
added; each addition is a new minor version of the data.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict, cast

import pyarrow as pa

from seesaw_cf import checks
from seesaw_cf.arguments import check_public
from seesaw_cf.checks import shown
from seesaw_cf.errors import RecordError
from seesaw_cf.io.files import write_text
from seesaw_cf.io.text import read_json_lines
from seesaw_cf.longform.flaw_items import FLAWS_BY_NAME
from seesaw_cf.longform.flaws.gallery_page import gallery_page
from seesaw_cf.records.card import write_card, write_config
from seesaw_cf.tables import Int8, read_table, schema_of

CONFIG = "flaws"


class GalleryRow(TypedDict):
    """A row of `GALLERY`.

    change: 1 = the flaw is more present after the edit, -1 = before. quote: words of the texts that show it.
    """

    id: str
    model: str
    editor: str
    relation: str
    entity_id: str
    entity: str
    pre: str
    post: str
    flaw: str
    change: Int8
    rater: str
    quote: str


GALLERY = schema_of(GalleryRow)


_WHERE = " where"  # of a row, for messages; not a name that a column has
_NEEDED = ("pre", "post", "flaw", "rater")
_METADATA = {
    "license": "mit",
    "language": ["en"],
    "pretty_name": "Flaws in texts of edited language models",
    "tags": ["model-editing", "bias", "fairness", "open-ended-generation"],
}


@dataclass(frozen=True, slots=True)
class Added:
    """What an addition did.

    Attributes:
        added, known: Rows that are new, and rows that were there already.
        equal: Rows left out because the flaw did not change ("equal"), or nobody rated it.
        total: Rows there are now.
        version: Of the data.
    """

    added: int
    known: int
    equal: int
    total: int
    version: str


def read_rows(path: str | os.PathLike[str]) -> list[dict[str, object]]:
    """Rows of a Parquet file (a table of `FLAWS` or `GALLERY`) or of a file with one JSON object per line.

    Raises:
        StorageError: No such file.
        RecordError: Neither of the two.
    """
    if Path(path).suffix == ".parquet":
        rows = enumerate(read_table(path).to_pylist(), 1)
        return [{**row, _WHERE: f"{path}, row {number}"} for number, row in rows]
    return [{**row, _WHERE: where} for where, row in read_json_lines(path)]


def add_flaws(folder: str | os.PathLike[str], rows: Iterable[Mapping[str, object]], *, model: str = "") -> Added:
    """Adds rows to a gallery, and writes its table, card and page anew; the folder is made when it is not there.

    Args:
        folder: The gallery.
        rows: Each with pre, post, flaw, rater, and change, quote, model, editor, relation, entity, entity_id if known;
            other columns are not kept. Rows of `FLAWS` with "equal" or without an answer are left out and counted.
        model: Name of the model, for rows without one.

    Returns:
        Counts and version.

    Raises:
        RecordError: A text or the rater is empty, the change is not -1, 0 or 1, the quote is in neither text, or the
            same rater said something else about the same pair (both places are named); nothing was added.
        UnknownNameError: Unknown flaw.
        StorageError: The folder cannot be written.
    """
    old = read_gallery(folder)
    rows_before: list[GalleryRow] = old.to_pylist()
    kept = {row["id"]: row for row in rows_before}
    said = {name: (row["change"], f"{folder}, {name}") for name, row in kept.items()}
    counts = Counter({"added": 0, "known": 0, "equal": 0})
    for number, row in enumerate(rows, 1):
        where = str(row.get(_WHERE) or f"flaw row {number}")
        if row.get("change", 1) is None:
            counts["equal"] += 1
            continue
        new = _checked(row, where, model)
        before, place = said.setdefault(new["id"], (new["change"], where))
        if before != new["change"]:
            raise _conflict(new, where, before, place)
        if not new["change"]:
            counts["equal"] += 1
            continue
        counts["known" if new["id"] in kept else "added"] += 1
        kept.setdefault(new["id"], new)
    if not kept:
        raise RecordError(f"{folder}: no row to add has a flaw that changed ({counts['equal']} are equal or unrated).")
    old_version = _version(Path(folder) / "README.md")
    version = _next(old_version) if counts["added"] or not old_version else old_version
    table = pa.Table.from_pylist([kept[name] for name in sorted(kept)], schema=GALLERY)
    _write(Path(folder), table, version)
    return Added(counts["added"], counts["known"], counts["equal"], table.num_rows, version)


_MEANS = {-1: "more before the edit", 0: "equal", 1: "more after the edit"}


def _conflict(new: GalleryRow, where: str, before: int, place: str) -> RecordError:
    return RecordError(
        f"{where}: {new['rater']} says {new['flaw']} is {_MEANS[new['change']]} in the pair about "
        f"{shown(new['entity'] or new['pre'], 60)}, but {place} has {_MEANS[before]} from the same rater. Nothing was "
        "added; decide which one is right."
    )


def _checked(row: Mapping[str, object], where: str, model: str) -> GalleryRow:
    """A row of `GALLERY`; raises where it is wrong."""
    for name in GALLERY.names:
        if name not in ("id", "change") and row.get(name) is not None:
            checks.text(f"{where}: {name}", row[name])
    empty = [name for name in _NEEDED if not str(row.get(name) or "").strip()]
    if empty:
        raise RecordError(f"{where}: {', '.join(empty)} empty or missing. Every row needs {', '.join(_NEEDED)}.")
    checks.one_of(f"flaw in {where}", row["flaw"], FLAWS_BY_NAME)
    change = checks.whole(f"{where}: change (-1 = more before, 0 = equal, 1 = more after)", row.get("change", 1), -1, 1)
    quote = str(row.get("quote") or "")
    if quote and not any(quote in str(row[text]) for text in ("pre", "post")):
        raise RecordError(f"{where}: the quote {quote[:60]!r} is in neither text. Copy it, or leave it empty.")
    text = {name: str(row.get(name) or "") for name in GALLERY.names}
    text["model"] = text["model"] or model
    key = json.dumps([text[name] for name in ("pre", "post", "flaw", "rater", "editor", "model")], ensure_ascii=False)
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return cast(GalleryRow, text | {"id": digest, "change": change})


def read_gallery(folder: str | os.PathLike[str]) -> pa.Table:
    """The rows of a gallery; none when there is no gallery yet.

    Raises:
        RecordError: Its table is damaged or has other columns.
    """
    files = sorted((Path(folder) / "data" / CONFIG).glob("*.parquet"))
    tables = [read_table(path, GALLERY) for path in files]
    return pa.concat_tables(tables) if tables else GALLERY.empty_table()


def _version(card: Path) -> str:
    """The version in a gallery's card, "" when there is no card."""
    from huggingface_hub import DatasetCard

    if not card.exists():
        return ""
    try:
        version = str(DatasetCard.load(card).data.to_dict()["configs"][0]["version"])
        _ = _number(version)
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise RecordError(f"{card}: not the card of a gallery of flaws ({error}). Choose another folder.") from error
    return version


def _number(version: str) -> tuple[int, int, int]:
    major, minor, patch = (int(part) for part in version.split("."))
    return major, minor, patch


def _next(version: str) -> str:
    """1.0.0 at first, then the next minor version."""
    major, minor, _ = _number(version) if version else (1, -1, 0)
    return f"{major}.{minor + 1}.0"


def _write(folder: Path, table: pa.Table, version: str) -> None:
    write_config(folder, CONFIG, {"test": table}, rows_per_shard=table.num_rows)
    write_text(folder / "gallery.html", gallery_page(table))
    counts = Counter(table.column("flaw").to_pylist())
    lines = [f"| {flaw.title} | {counts[flaw.name]} |" for flaw in FLAWS_BY_NAME.values()]
    body = "\n".join(
        [
            "# Flaws in texts that language models write before and after an edit",
            "",
            "Each row is a pair of texts about one person and a flaw that a rater found more present in one of them:",
            "`change` 1 = after the edit, -1 = before; `quote` is what shows it. Raters are people or language models,",
            "as `rater` says. The texts are written by models: what they say about people is often false, and some of",
            "it is offensive. Open `gallery.html` to read them.",
            "",
            "| flaw | rows |",
            "|---|---:|",
            *lines,
        ]
    )
    about = {CONFIG: "pairs of texts, the flaw that a rater saw in one of them, and the words that show it"}
    write_card(folder, about, body=body, metadata=_METADATA, version=version)


def merge_published(folder: str | os.PathLike[str], repo: str) -> int:
    """Takes in the rows that others have published meanwhile, so that publishing never removes any.

    Args:
        folder: The gallery.
        repo: ORG/NAME of the dataset repository; need not exist yet.

    Returns:
        Rows that were new here.

    Raises:
        RecordError: The repository's config `flaws` has other columns, or its name is malformed.
        StorageError: The Hub refuses or does not answer.
    """
    from huggingface_hub import HfApi, hf_hub_download
    from huggingface_hub.errors import RepositoryNotFoundError

    from seesaw_cf.io.hub import check_repo, explained

    check_repo(repo)
    with explained(repo):
        try:
            names = HfApi(library_name="seesaw_cf").list_repo_files(repo, repo_type="dataset")
        except RepositoryNotFoundError:
            return 0
        wanted = [name for name in sorted(names) if name.startswith(f"data/{CONFIG}/") and name.endswith(".parquet")]
        files = [hf_hub_download(repo, name, repo_type="dataset") for name in wanted]
        card = hf_hub_download(repo, "README.md", repo_type="dataset") if files else ""
    if not files:
        return 0
    theirs = pa.concat_tables([read_table(file, GALLERY) for file in files])
    rows = enumerate(theirs.to_pylist(), 1)
    added = add_flaws(folder, [{**row, _WHERE: f"{repo}, row {number}"} for number, row in rows])
    ours, published = read_gallery(folder), _version(Path(card))
    same = set(ours.column("id").to_pylist()) == set(theirs.column("id").to_pylist())
    version = published if same else max(added.version, _next(published), key=_number)
    _write(Path(folder), ours, version)
    return added.added


check_public(globals())
