"""Where the texts of a corpus are, and how each kind of place is read: text, JSON lines, Parquet, a Hub data set."""

from __future__ import annotations

import gzip
import json
import os
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from seesaw_cf.checks import one_of
from seesaw_cf.errors import RecordError, SeesawError, StorageError, UnknownNameError, unknown_name

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")

BUFFER = 10_000
"""Texts of a Hub stream among which the next one is drawn."""

_HUB = re.compile(r"\w[\w.-]*/\w[\w.-]*(:[^:]*){0,3}")
_KINDS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".txt": "text"}
_REFUSED = (".csv", ".tsv", ".arrow", ".zip", ".bz2", ".xz", ".zst", ".tar", ".pdf")
_FORMS = "a text file, FILE.jsonl:COLUMN, FILE.parquet:COLUMN or a Hub data set ORG/NAME:CONFIG:SPLIT:COLUMN"

_Found = Iterator[tuple[str | None, str]]  # a text, and where it is for messages


@dataclass(frozen=True, slots=True)
class CorpusSpec:
    """A parsed spec.

    Attributes:
        spec: As it was given.
        kind: "text", "jsonl", "parquet" or "hub".
        path: The file; None for a Hub data set.
        column: The column that was named, if any.
        parts: Hub id, config and split, as far as they were named.
    """

    spec: str
    kind: str
    path: Path | None
    column: str | None
    parts: tuple[str, ...] = ()

    def texts(self, seed: int) -> Iterator[str]:
        """Every text with visible characters: of a file in its order, of a Hub data set shuffled.

        Raises:
            SeesawError: See `seesaw_cf.models.corpus.Corpus`.
        """
        rows = _hub(self, seed) if self.path is None else _READERS[self.kind](self, self.path)
        try:
            for text, where in rows:
                if text and text.strip():
                    yield _encodable(text, where)
        except SeesawError:
            raise
        except (OSError, EOFError, zlib.error) as error:
            reason = getattr(error, "strerror", None) or f"damaged: {error}"
            raise StorageError(f"corpus {self.path}: cannot be read ({reason}). Check the path.") from error


def read_source(spec: str) -> CorpusSpec:
    """Parse a spec; the name of an existing file is that file, whatever characters it has.

    Raises:
        RecordError: A kind of file that is not read.
        StorageError: No such file.
    """
    left, _, column = spec.rpartition(":")
    name = spec if os.path.exists(spec) or _kind(left) in ("", "refused") else left
    kind = _kind(name)
    if kind == "refused":
        raise RecordError(f"corpus {spec}: this kind of file is not read. Expected {_FORMS}.")
    if kind == "" and not os.path.exists(name):
        if _HUB.fullmatch(spec):
            parts = tuple(spec.split(":"))
            return CorpusSpec(spec, "hub", None, parts[3] or None if len(parts) == 4 else None, parts[:3])
        kind = "text"
    if not os.path.isfile(name):
        what = "is no plain file" if os.path.exists(name) else "no such file"
        raise StorageError(f"corpus {name}: cannot be read ({what}). Expected {_FORMS}.")
    if kind == "text" and name != spec:
        raise RecordError(f"corpus {spec}: a text file has no columns. Write {name} alone: one text a line.")
    return CorpusSpec(spec, kind or "text", Path(name), column or None if name != spec else None)


def _kind(name: str) -> str:
    """What the name says: text, jsonl, parquet, refused, or "" for nothing."""
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    return "refused" if suffix in _REFUSED else _KINDS.get(suffix, "")


def _encodable(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"corpus {where}: half of a character ({text[error.start]!r}). Repair the text.") from error
    return text


def _lines(source: CorpusSpec, path: Path) -> Iterator[tuple[str, str]]:
    """The lines of a UTF-8 file, and where each is."""
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rb") as file:
        for number, line in enumerate(file, 1):
            where = f"{path}, line {number}"
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n"), where
            except UnicodeDecodeError as error:
                kind = {b"\x1f\x8b": "gzip: name it .gz", b"PA": "Parquet: name it .parquet"}.get(line[:2], "no UTF-8")
                raise RecordError(
                    f"corpus {where}: not UTF-8 (byte {line[error.start]:#04x} at {error.start + 1}; it looks like "
                    f"{kind}). Save the file as UTF-8."
                ) from error


def _json_lines(source: CorpusSpec, path: Path) -> _Found:
    column = source.column
    for line, where in _lines(source, path):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"corpus {where}: not JSON ({error}). Expected one object a line.") from error
        if not isinstance(row, dict):
            raise RecordError(f"corpus {where}: expected a JSON object, got {row!r:.60}.")
        column = column or _only(where, [name for name, value in row.items() if isinstance(value, str)], row)
        one_of(f"column of corpus {where}:", column, row)
        yield _text(row[column], column, where), where


def _parquet(source: CorpusSpec, path: Path) -> _Found:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
            texts = [field.name for field in schema if _is_text(field.type)]
            column = source.column or _only(str(path), texts, schema.names)
            one_of(f"column of corpus {path}:", column, schema.names)
            if column not in texts:
                raise RecordError(
                    f"corpus {path}: column {column!r} is {schema.field(column).type}, expected text. Columns of "
                    f"text: {', '.join(texts) or 'none'}."
                )
            for batch in file.iter_batches(columns=[column]):
                yield from ((value, str(path)) for value in batch.column(0).to_pylist())
    except pa.ArrowException as error:
        raise StorageError(f"corpus {path}: no whole Parquet file ({error}). Make or fetch it again.") from error


def _is_text(kind: pa.DataType) -> bool:
    import pyarrow.types as types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _only(where: str, texts: Sequence[str], names: Iterable[str]) -> str:
    """The column to read when none was named."""
    if "text" in texts:
        return "text"
    if len(texts) == 1:
        return texts[0]
    raise UnknownNameError(
        f"corpus {where}: which column? There is none called 'text'. Columns of text: {', '.join(texts) or 'none'}; "
        f"all: {', '.join(names)}. Write the column after the name, as in FILE:COLUMN or ORG/NAME:CONFIG:SPLIT:COLUMN."
    )


def _text(value: object, column: str, where: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise RecordError(f"corpus {where}: column {column!r} holds {value!r:.60}, expected text.")


def _hub(source: CorpusSpec, seed: int) -> _Found:
    rows = _stream(source).shuffle(seed=seed, buffer_size=BUFFER)
    column, iterator, where = source.column, iter(rows), f"data set {source.spec}"
    while (row := _asked(source, lambda: next(iterator, None))) is not None:
        column = column or _only(where, [name for name, value in row.items() if isinstance(value, str)], row)
        one_of(f"column of corpus {where}:", column, row)
        yield _text(row[column], column, where), where


def _stream(source: CorpusSpec) -> Any:
    from datasets import get_dataset_config_names, get_dataset_split_names, load_dataset

    name, config, split = (*source.parts, "", "")[:3]
    configs = _asked(source, lambda: get_dataset_config_names(name))
    config = _chosen(f"config of data set {name}", config, configs, "default")
    splits = _asked(source, lambda: get_dataset_split_names(name, config))
    split = _chosen(f"split of data set {name}:{config}", split, splits, "train")
    return _asked(source, lambda: load_dataset(name, config, split=split, streaming=True))


def _chosen(kind: str, got: str, names: Sequence[str], usual: str) -> str:
    if got or usual in names:
        if (got or usual) not in names:
            raise unknown_name(kind, got, names)
        return got or usual
    if len(names) == 1:
        return names[0]
    raise UnknownNameError(f"corpus: which {kind}? There are {', '.join(names)}. Write ORG/NAME:CONFIG:SPLIT:COLUMN.")


def _asked(source: CorpusSpec, call: Callable[[], T]) -> T:
    """What the Hub's client answers; its many errors as one."""
    try:
        return call()
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "")[:200]
        raise StorageError(
            f"corpus {source.spec}: neither a file here nor a data set that can be read from the Hub "
            f"({type(error).__name__}: {reason}). Check the id, the network, HF_HUB_OFFLINE and your access. Expected "
            f"{_FORMS}."
        ) from error


_READERS: Mapping[str, Callable[[CorpusSpec, Path], _Found]] = {
    "text": _lines,
    "jsonl": _json_lines,
    "parquet": _parquet,
}
