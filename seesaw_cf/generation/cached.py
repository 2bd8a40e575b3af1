"""A store of completions in front of any generator: what was written once is never asked again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import write_text
from seesaw_cf.base.text import read_json
from seesaw_cf.generation.types import Ask, Completion, Generator, Sampling
from seesaw_cf.stats.plain import json_text


@dataclass(frozen=True)
class CachedGenerator:
    """Generator that keeps each completion in a file named by the SHA-256 of generator, ask and sampling.

    Files are written whole or not at all, block by block, so a killed job goes on where it was. Only completions with
    status "ok" are kept: what failed is asked again.

    Attributes:
        generator: Writes what is not in the store.
        folder: Where the files are; may be shared by any number of jobs.
        block: Asks that are handed over at once, which is also the most that a kill can lose.
    """

    generator: Generator
    folder: Path
    block: int = 64

    @property
    def name(self) -> str:
        """That of the generator: a store changes nothing."""
        return self.generator.name

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        """Return completions from the store, and from the generator those missing from the store.

        Raises:
            RecordError: A file of the store is damaged; the message names it.
            StorageError: The store cannot be written.
        """
        name = self.generator.name
        files = {ask: self._file(name, ask, sampling) for ask in asks}
        completions = {ask: _read(file) for ask, file in files.items() if file.exists()}
        todo = [ask for ask in files if ask not in completions]
        for start in range(0, len(todo), self.block):
            part = todo[start : start + self.block]
            for ask, completion in zip(part, self.generator.generate(part, sampling), strict=True):
                completions[ask] = completion
                if completion.status == "ok":
                    request = {"generator": name, "ask": asdict(ask), "sampling": asdict(sampling)}
                    record = {**request, "completion": asdict(completion)}
                    write_text(files[ask], json_text(record))
        return [completions[ask] for ask in asks]

    def _file(self, name: str, ask: Ask, sampling: Sampling) -> Path:
        key = json.dumps([name, asdict(ask), asdict(sampling)], sort_keys=True, ensure_ascii=False)
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return self.folder / digest[:2] / f"{digest}.json"


def _read(file: Path) -> Completion:
    try:
        return Completion(**read_json(file)["completion"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(
            f"{file}: not a kept completion ({type(error).__name__}: {error}). Delete that file; it is asked again."
        ) from error
