"""Texts that editors learn from (second moments, MEND's examples), read by `datasets`.

    texts.txt                    one text a line
    texts.jsonl:body             one object a line, the texts in its column `body`
    texts.parquet:body           the same in Parquet
    org/name:config:split:body   a data set on the Hub, streamed

`.txt` and `.jsonl` files may be compressed (`.gz`). What is left out is the column `text`, or the only column of text;
the only config, or `default`; the only split, or `train`.
"""

from __future__ import annotations

import glob
import hashlib
import os
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, overload

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import RecordError, SeesawError, StorageError, UnknownNameError, hide_secrets
from seesaw_cf.base.fields import checked
from seesaw_cf.base.retrying import Bar, no_bars
from seesaw_cf.base.types import JsonObject
from seesaw_cf.models.names import EMBEDDED, model_path

# A file, with a column perhaps, or a data set of the Hub: not only a path, and so not checked as one.
TextSource: TypeAlias = str | Path

LIMIT = 100_000
"""Most texts of a corpus that are kept in memory; as many as the published programs use."""
BUFFER = 10_000
"""Texts of a Hub stream among which the next one is drawn."""

_BUILDERS = {".jsonl": "json", ".ndjson": "json", ".json": "json", ".parquet": "parquet", ".txt": "text", "": "text"}
_HUB = re.compile(r"\w[\w.-]*/\w[\w.-]*(:[^:]*){0,3}")
_FORMS = "a text file, FILE.jsonl:COLUMN, FILE.parquet:COLUMN or a Hub data set ORG/NAME:CONFIG:SPLIT:COLUMN"
_BATCH = 1000


@dataclass(frozen=True)
class Corpus(Sequence[str]):
    """A sequence of texts that is read when it is first used.

    Attributes:
        spec: Where the texts are, in one of the forms above.
        limit: Most texts kept. Of a longer file they are a uniform sample, in the file's order; of a Hub data set they
            are the first ones of its stream shuffled with a buffer of 10,000 texts.
        seed: Of the sample, and of the shuffle.

    Raises:
        RecordError: On first use: a column that is not text, or no text at all.
        UnknownNameError: The column does not exist; near names are suggested.
        StorageError: No such file or data set, or it is damaged.
    """

    spec: str
    limit: int = LIMIT
    seed: int = 0

    @cached_property
    def _texts(self) -> list[str]:
        try:
            file, column = _find_file(self.spec)
            if file:
                texts = _sampled(_texts_of(_open_file(self.spec, file), column, self.spec), self.limit, self.seed)
            else:
                _, config, split, column = (*self.spec.split(":"), "", "", "")[:4]
                stream = _open_hub(self.spec, config, split).shuffle(seed=self.seed, buffer_size=BUFFER)
                found = islice(_texts_of(stream, column, self.spec), self.limit)
                texts = list(Bar(found, f"texts of {self.spec}", self.limit, unit="text", disable=no_bars()))
        except SeesawError:
            raise
        except Exception as error:  # `datasets` and what it reads with fail in many ways
            reason = " ".join(str(error.__cause__ or error).split())[:200]
            raise StorageError(
                f"corpus {self.spec}: cannot be read ({type(error).__name__}: {reason}). Check the file, or "
                f"the id, the network, HF_HUB_OFFLINE and your access. Expected {_FORMS}."
            ) from error
        if not texts:
            raise RecordError(f"corpus {self.spec}: no text in it has visible characters. Expected one text or more.")
        return texts

    @cached_property
    def sha256(self) -> str:
        """SHA-256 (hex) over the texts in their order."""
        digest = hashlib.sha256()
        for raw in map(str.encode, self._texts):
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


def _find_file(spec: str) -> tuple[str, str]:
    """Return a file and a column, either "" when not named; the name of an existing file is that file, as it is."""
    name, _, column = spec.rpartition(":")
    file, column = (spec, "") if os.path.exists(spec) or not _suffix(name) else (name, column)
    if os.path.isfile(file):
        return file, column
    if not _suffix(file) and not os.path.exists(file) and _HUB.fullmatch(spec):
        return "", ""
    what = "is no plain file" if os.path.exists(file) else "no such file"
    raise StorageError(f"corpus {file}: cannot be read ({what}). Expected {_FORMS}.")


def _suffix(name: str) -> str:
    return Path(name.removesuffix(".gz")).suffix.lower()


def _open_file(spec: str, file: str) -> Any:
    from datasets import load_dataset

    if (suffix := _suffix(file)) not in _BUILDERS:
        raise RecordError(f"corpus {spec}: {suffix} files are not read. Expected {_FORMS}.")
    return load_dataset(_BUILDERS[suffix], data_files=glob.escape(file), split="train", streaming=True)


def _open_hub(spec: str, config: str, split: str) -> Any:
    from datasets import load_dataset

    splits = load_dataset(spec.split(":")[0], config or None, streaming=True)
    only = next(iter(splits)) if len(splits) == 1 else "train"
    return splits[one_of(f"split of data set {spec}", split or only, splits)]


def _texts_of(rows: Any, column: str, spec: str) -> Iterator[str]:
    """Yield every text with visible characters, in the order of the rows."""
    mark = "\ufeff"  # of the byte order, at the beginning of a file
    for batch in rows.iter(_BATCH):
        if not column:
            texts = [name for name, values in batch.items() if any(isinstance(value, str) for value in values)]
            if "text" not in batch and len(texts) != 1:
                raise UnknownNameError(
                    f"corpus {spec}: which column? There is none called 'text'. Columns of text: "
                    f"{', '.join(texts) or 'none'}; all: {', '.join(batch)}. Write the column after the name, as in "
                    "FILE:COLUMN or ORG/NAME:CONFIG:SPLIT:COLUMN."
                )
            column = "text" if "text" in batch else texts[0]
        for value in batch[one_of(f"column of corpus {spec}:", column, batch)]:
            if value is not None and not isinstance(value, str):
                raise RecordError(f"corpus {spec}: column {column!r} holds {value!r:.60}, expected text.")
            text, mark = (value or "").removeprefix(mark), ""
            if text.strip():
                text.encode()
                yield text


def _sampled(texts: Iterable[str], limit: int, seed: int) -> list[str]:
    """Draw a uniform sample without replacement, in the order of the texts, from one pass (reservoir)."""
    rng, sample = random.Random(seed), list[tuple[int, str]]()
    for number, text in enumerate(texts):
        if number < limit:
            sample.append((number, text))
        elif (place := rng.randrange(number + 1)) < limit:
            sample[place] = (number, text)
    return [text for _, text in sorted(sample)]


def corpus_of(spec: TextSource | None, model: str, limit: int = LIMIT, seed: int = 0) -> Sequence[str] | None:
    """Return the texts that a command was given, else those that come with an embedded model, else None.

    Raises:
        SeesawError: See `Corpus`; everything is read here, so before a model is loaded.
    """
    if spec is not None and str(spec):
        corpus = Corpus(str(spec), limit, seed)
        len(corpus)
        return corpus
    return sample_corpus() if model in EMBEDDED else None


def corpus_facts(corpus: Sequence[str] | None) -> dict[str, JsonObject]:
    """Return what a manifest records of given texts: {} for embedded texts and for none."""
    if not isinstance(corpus, Corpus):
        return {}
    source = hide_secrets(corpus.spec)
    return {"corpus": {"source": source, "texts": len(corpus), "seed": corpus.seed, "sha256": corpus.sha256}}


@checked
def sample_corpus(n: int | None = None, seed: int = 0, name: str = "seesaw-tiny") -> list[str]:
    """Return texts for second moments of an embedded model's activations (the covariance of ROME and MEMIT).

    They are fresh documents of its training distribution.

    Args:
        n: How many, drawn without replacement; None = all, in file order.
        seed: Seed of the draw.
        name: Which embedded model.

    Returns:
        n documents of one to some ten sentences.

    Raises:
        UnknownNameError: No embedded model has that name.
        StorageError: The texts are missing.
        RecordError: More texts are asked for than there are, or fewer than none.
    """
    file = model_path(name) / "corpus.txt"
    try:
        texts = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise StorageError(f"{file}: cannot be read ({error.strerror}). Reinstall seesaw_cf.") from error
    if n is None:
        return texts
    if not 0 <= n <= len(texts):
        raise RecordError(f"sample_corpus: n is {n}, expected 0 to {len(texts)}, the texts that come with {name!r}.")
    return random.Random(seed).sample(texts, n)
