"""What judging will cost, before a judge is asked anything."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from seesaw_cf.generation.types import Ask, Completion, Sampling

_BYTES = 4
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class JudgeCost:
    """Calls and tokens of a job; money is in the currency of the prices, None without them.

    Attributes:
        calls: Requests, when every reply can be read at once.
        prompt_tokens: Tokens sent by them.
        new_tokens: Tokens that the replies have at the most.
        money: Of the calls, with replies of full length.
        most: The same when every question takes all its tries.
    """

    calls: int
    prompt_tokens: int
    new_tokens: int
    money: float | None = None
    most: float | None = None

    def __add__(self, other: JudgeCost) -> JudgeCost:
        """Both jobs, at the same prices."""
        pairs = [(self.money, other.money), (self.most, other.most)]
        money, most = (None if own is None or more is None else own + more for own, more in pairs)
        sent, written = self.prompt_tokens + other.prompt_tokens, self.new_tokens + other.new_tokens
        return JudgeCost(self.calls + other.calls, sent, written, money, most)


def estimated_tokens(text: str) -> int:
    """Tokens of a text where the tokenizer is not at hand: one for every four bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // _BYTES)


def judge_cost(
    prompts: Iterable[str],
    tokens: Callable[[str], int],
    max_new_tokens: int,
    *,
    tries: int = 1,
    price_in: float | None = None,
    price_out: float | None = None,
) -> JudgeCost:
    """Add up a job.

    Args:
        prompts: Every question that will be asked.
        tokens: Counts those of a text.
        max_new_tokens: Longest reply.
        tries: Times a question is asked at the most.
        price_in, price_out: Per million tokens sent and written; a missing one is 0 where the other is given.
    """
    sent = [tokens(prompt) for prompt in prompts]
    written = max_new_tokens * len(sent)
    if price_in is None and price_out is None:
        return JudgeCost(len(sent), sum(sent), written)
    money = (sum(sent) * (price_in or 0.0) + written * (price_out or 0.0)) / _MILLION
    return JudgeCost(len(sent), sum(sent), written, money, money * tries)


@dataclass
class Counted:
    """A generator that sends nothing: it keeps what would be asked, and gives replies that every judge can read.

    Attributes:
        name: Name of the judge that it replaces.
        prompts: Longest reply in tokens -> prompts, the turns of a conversation as one text.
    """

    name: str
    prompts: dict[int, list[str]] = field(default_factory=lambda: defaultdict(list))

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        """Keep the prompts."""
        for ask in asks:
            turns = [ask.prompt] if isinstance(ask.prompt, str) else [turn.content for turn in ask.prompt]
            self.prompts[sampling.max_new_tokens].append("\n".join(turns))
        return [Completion("Rating: 4\nLabel: neutral") for _ in asks]
