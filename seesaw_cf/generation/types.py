"""Prompts and completions, as every back end takes and returns them; no back end is imported here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from seesaw_cf.base.checks import number, whole
from seesaw_cf.base.errors import PromptError
from seesaw_cf.base.fields import field_types


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

    max_new_tokens: int = 200
    temperature: float = 0.9
    top_k: int = 50
    top_p: float = 0.95
    stop: tuple[str, ...] = ()
    repetition_penalty: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what no token can be drawn with."""
        for name, check, low, high in _RANGES:
            check(f"sampling: {name}", getattr(self, name), low, high)


# Field, what checks it, smallest and largest value.
_RANGES: tuple[tuple[str, Callable[..., object], float, float], ...] = (
    ("max_new_tokens", whole, 1, 1_000_000),
    ("temperature", number, 0, 100),
    ("top_k", whole, 0, 10_000_000),
    ("top_p", number, 0, 1),
    ("repetition_penalty", number, 0.01, 100),
)


@dataclass(frozen=True, slots=True)
class Ask:
    """One completion to be written.

    Attributes:
        prompt: A text to continue, or the turns of a conversation to answer (chat template or chat endpoint).
        seed: Of this completion alone; the same ask gives the same text in any batch.
    """

    prompt: str | tuple[Message, ...]
    seed: int = 0

    def __post_init__(self) -> None:
        """Refuse an empty prompt.

        Raises:
            PromptError: Nothing to continue, or no text.
            RecordError: The seed is negative or beyond 64 bits.
        """
        field_types(self, error=PromptError)
        whole("ask: seed", self.seed, 0, 2**64 - 1)
        empty = not self.prompt.strip() if isinstance(self.prompt, str) else not self.prompt
        if empty:
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
