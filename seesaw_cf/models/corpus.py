"""Texts that editors learn from (second moments, MEND's examples): files and Hub data sets, read one text at a time.

    texts.txt                    one text a line
    texts.jsonl:body             one object a line, the texts in its column `body`
    texts.parquet:body           the same in Parquet
    org/name:config:split:body   a data set on the Hub, streamed

`.txt` and `.jsonl` files may be compressed (`.gz`). What is left out is the column `text`, or the only column of text;
the only config, or `default`; the only split, or `train`.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import random
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, SeesawError, StorageError, UnknownNameError
from seesaw_cf.base.retrying import Bar, no_bars
from seesaw_cf.base.types import JsonObject
from seesaw_cf.base.urls import hide_secrets

if TYPE_CHECKING:
    import pyarrow as pa


# Where the texts of a corpus are, and how each kind of place is read: text, JSON lines, Parquet, a Hub data set.

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
        """Yield every text with visible characters: those of a file in its order, those of a Hub data set shuffled.

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
    """Parse a spec; the name of an existing file is that file, with any characters.

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
    """Return the kind that the name tells: text, jsonl, parquet, refused, or "" for none."""
    suffix = Path(name.removesuffix(".gz")).suffix.lower()
    return "refused" if suffix in _REFUSED else _KINDS.get(suffix, "")


def _encodable(text: str, where: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"corpus {where}: half of a character ({text[error.start]!r}). Repair the text.") from error
    return text


def _lines(source: CorpusSpec, path: Path) -> Iterator[tuple[str, str]]:
    """Yield the lines of a UTF-8 file, and where each is."""
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
    """Return the column to read when none was named: `text`, or the only column of text."""
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
    if got:
        return one_of(kind, got, names)
    if usual in names or len(names) == 1:
        return usual if usual in names else names[0]
    raise UnknownNameError(f"corpus: which {kind}? There are {', '.join(names)}. Write ORG/NAME:CONFIG:SPLIT:COLUMN.")


def _asked(source: CorpusSpec, call: Callable[[], T]) -> T:
    """Return what the Hub's client answers; raise its many errors as one."""
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


# A file, with a column perhaps, or a data set of the Hub: not only a path, and so not checked as one.
TextSource: TypeAlias = str | Path

LIMIT = 100_000
"""Most texts of a corpus that are kept in memory; as many as the published programs use."""


@dataclass(frozen=True)
class Corpus(Sequence[str]):
    """A sequence of texts that is read when it is first used.

    Attributes:
        spec: Where the texts are, in one of the forms above.
        limit: Most texts kept. Of a longer file they are a uniform sample, in the file's order; of a Hub data set they
            are the first ones of its stream shuffled with a buffer of 10,000 texts.
        seed: Of the sample, and of the shuffle.

    Raises:
        RecordError: On first use: not UTF-8, not JSON, a column that is not text, or no text at all.
        UnknownNameError: The column, config or split does not exist; near names are suggested.
        StorageError: No such file or data set, or it is damaged.
    """

    spec: str
    limit: int = LIMIT
    seed: int = 0

    @cached_property
    def _texts(self) -> list[str]:
        source = read_source(self.spec)
        texts = source.texts(self.seed)
        sample = _sampled(texts, self.limit, self.seed) if source.path else _first(texts, self.limit, self.spec)
        if not sample:
            raise RecordError(f"corpus {self.spec}: no text in it has visible characters. Expected one text or more.")
        return sample

    @cached_property
    def sha256(self) -> str:
        """SHA-256 (hex) over the texts in their order."""
        digest = hashlib.sha256()
        for text in self._texts:
            raw = text.encode()
            digest.update(b"%d:" % len(raw) + raw)
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        return self._texts[index]


def corpus_of(spec: TextSource | None, model: str, limit: int = LIMIT, seed: int = 0) -> Sequence[str] | None:
    """Return the texts that a command was given, else those that come with an embedded model, else None.

    Raises:
        SeesawError: See `Corpus`; everything is read here, so before a model is loaded.
    """
    if spec is not None and str(spec):
        corpus = Corpus(str(spec), limit, seed)
        len(corpus)
        return corpus
    from seesaw_cf.models.load import sample_corpus
    from seesaw_cf.models.names import EMBEDDED

    return sample_corpus() if model in EMBEDDED else None


def corpus_facts(corpus: Sequence[str] | None) -> dict[str, JsonObject]:
    """Return what a manifest records of given texts: {} for embedded texts and for none."""
    if not isinstance(corpus, Corpus):
        return {}
    return {
        "corpus": {
            "source": hide_secrets(corpus.spec),
            "texts": len(corpus),
            "seed": corpus.seed,
            "sha256": corpus.sha256,
        }
    }


def _sampled(texts: Iterable[str], limit: int, seed: int) -> list[str]:
    """Draw a uniform sample without replacement, in the order of the texts, from one pass (reservoir)."""
    rng, sample = random.Random(seed), list[tuple[int, str]]()
    for number, text in enumerate(texts):
        if number < limit:
            sample.append((number, text))
        elif (place := rng.randrange(number + 1)) < limit:
            sample[place] = (number, text)
    return [text for _, text in sorted(sample)]


def _first(texts: Iterable[str], limit: int, spec: str) -> list[str]:
    """Return the first `limit` texts of a stream."""
    return list(Bar(islice(texts, limit), desc=f"texts of {spec}", total=limit, unit="text", disable=no_bars()))
