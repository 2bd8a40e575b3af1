"""Prompts and completions, as every back end takes and returns them, and a store in front of any of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Protocol, runtime_checkable

from seesaw_cf.base.checks import Range
from seesaw_cf.base.errors import PromptError, RecordError
from seesaw_cf.base.fields import Share, field_types
from seesaw_cf.base.files import write_text
from seesaw_cf.base.text import read_json
from seesaw_cf.stats.plain import json_text


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a conversation.

    Attributes:
        role: "system", "user" or "assistant".
        content: Its text.
    """

    role: str
    content: str

    def __post_init__(self) -> None:
        """Refuse anything but text.

        Raises:
            PromptError: The role or the content is something else.
        """
        field_types(self, error=PromptError)


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn.

    The defaults are those of LEME's appendix: top-k 50, top-p 0.95, temperature 0.9.

    Attributes:
        max_new_tokens: Longest completion.
        temperature: 0 = the most likely token every time, and the other two do not matter.
        top_k: Only the k likeliest tokens; 0 = all.
        top_p: Only the likeliest tokens that make up this probability; 1 = all.
        stop: Texts that end a completion; they are not part of it.
        repetition_penalty: Logits of tokens that the prompt or the text has already are divided by it when positive,
            else multiplied (Keskar et al. 2019, as transformers does it), before the temperature; 1 = none. Local
            models only, and servers that are sent `top_k`.

    Raises:
        RecordError: A number is out of its range or not finite.
    """

    max_new_tokens: Annotated[int, Range(1, 1_000_000, whole=True)] = 200
    temperature: Annotated[float, Range(0, 100)] = 0.9
    top_k: Annotated[int, Range(0, 10_000_000, whole=True)] = 50
    top_p: Share = 0.95
    stop: tuple[str, ...] = ()
    repetition_penalty: Annotated[float, Range(0.01, 100)] = 1.0

    def __post_init__(self) -> None:
        """Refuse what no token can be drawn with."""
        field_types(self)


@dataclass(frozen=True, slots=True)
class Ask:
    """One completion to be written.

    Attributes:
        prompt: A text to continue, or the turns of a conversation to answer (chat template or chat endpoint).
        seed: Of this completion alone; the same ask gives the same text in any batch.
    """

    prompt: str | tuple[Message, ...]
    seed: Annotated[int, Range(0, 2**64 - 1, whole=True)] = 0

    def __post_init__(self) -> None:
        """Refuse an empty prompt.

        Raises:
            PromptError: Nothing to continue, no text, or a seed that is negative or beyond 64 bits.
        """
        field_types(self, error=PromptError)
        if not (self.prompt.strip() if isinstance(self.prompt, str) else self.prompt):
            raise PromptError(f"ask with seed {self.seed}: the prompt is {self.prompt!r}, expected text or messages.")


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model wrote.

    Attributes:
        text: The new text only, without the prompt and without special tokens; "" unless `status` is "ok".
        finish: "stop" (end of text or a stop text), "length", or "" without a text.
        status: "ok", or why the text is missing ("refused by the server: 400 ...", "time-out after 3 tries").
        prompt_tokens, new_tokens: Token counts; None when the back end does not say.
    """

    text: str
    finish: str = "stop"
    status: str = "ok"
    prompt_tokens: int | None = None
    new_tokens: int | None = None


@runtime_checkable
class Generator(Protocol):
    """What writes text: a local model, an API, or one of them with a cache in front."""

    @property
    def name(self) -> str:
        """Name the model and everything that changes what it writes; part of cache keys and manifests."""

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        """Return one completion per ask, in order. A failure of one ask is a status, not an exception."""


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
