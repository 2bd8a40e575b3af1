"""Texts that editors learn from (second moments, MEND's examples): files and Hub data sets, read one text at a time.

    texts.txt                    one text a line
    texts.jsonl:body             one object a line, the texts in its column `body`
    texts.parquet:body           the same in Parquet
    org/name:config:split:body   a data set on the Hub, streamed

`.txt` and `.jsonl` files may be compressed (`.gz`). What is left out is the column `text`, or the only column of text;
the only config, or `default`; the only split, or `train`.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TypeAlias, overload

from tqdm import tqdm

from seesaw_cf.arguments import check_public
from seesaw_cf.errors import RecordError
from seesaw_cf.io.waiting import no_bars
from seesaw_cf.models.corpus_source import read_source

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
    """The texts that a command was given, those that come with an embedded model, or None.

    Raises:
        SeesawError: See `Corpus`; everything is read here, so before a model is loaded.
    """
    if spec is not None and str(spec):
        corpus = Corpus(str(spec), limit, seed)
        len(corpus)
        return corpus
    from seesaw_cf.models.embedded import EMBEDDED
    from seesaw_cf.models.load import sample_corpus

    return sample_corpus() if model in EMBEDDED else None


def corpus_facts(corpus: Sequence[str] | None) -> dict[str, dict[str, object]]:
    """What a manifest says of texts that were given: {} for embedded texts and for none."""
    if not isinstance(corpus, Corpus):
        return {}
    return {"corpus": {"source": corpus.spec, "texts": len(corpus), "seed": corpus.seed, "sha256": corpus.sha256}}


def _sampled(texts: Iterable[str], limit: int, seed: int) -> list[str]:
    """A uniform sample without replacement, in the order of the texts, from one pass (reservoir)."""
    rng, sample = random.Random(seed), list[tuple[int, str]]()
    for number, text in enumerate(texts):
        if number < limit:
            sample.append((number, text))
        elif (place := rng.randrange(number + 1)) < limit:
            sample[place] = (number, text)
    return [text for _, text in sorted(sample)]


def _first(texts: Iterable[str], limit: int, spec: str) -> list[str]:
    """The first texts of a stream."""
    return list(tqdm(islice(texts, limit), desc=f"texts of {spec}", total=limit, unit="text", disable=no_bars()))


check_public(globals())
