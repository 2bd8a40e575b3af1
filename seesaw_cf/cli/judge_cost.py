"""`--plan`, `--price-in` and `--price-out`: what a judge will cost, before the first question."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from seesaw_cf.cli.output import say
from seesaw_cf.cli.types import at_least_zero

if TYPE_CHECKING:
    from seesaw_cf.texts.job import JudgeCost


def plan_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add("--plan", action="store_true", help="only say how many calls and tokens the judge takes, and what they cost")
    add("--price-in", type=at_least_zero, help="price of a million tokens sent, for --plan")
    add("--price-out", type=at_least_zero, help="price of a million tokens written, for --plan")


def prices_of(args: argparse.Namespace) -> dict[str, float | None]:
    """Both prices, as `judge_cost` takes them."""
    return {"price_in": args.price_in, "price_out": args.price_out}


def counting(tokenizer: Any = None) -> tuple[Callable[[str], int], str]:
    """What counts the tokens of a text, and how it does: the judge's tokenizer, or bytes where there is none."""
    from seesaw_cf.texts.job import estimated_tokens

    if tokenizer is None:
        return estimated_tokens, "one token for every four bytes"
    return lambda text: len(tokenizer(text)["input_ids"]), "counted by the judge's tokenizer, without a chat template"


def say_cost(what: str, cost: JudgeCost, rule: str, tries: int) -> None:
    """Print a plan.

    Args:
        what: Is judged, such as "12 pairs".
        cost: Its cost.
        rule: How tokens were counted.
        tries: Times a question is asked at the most.
    """
    say(f"{what}, {cost.calls:,} calls, {cost.prompt_tokens:,} tokens sent ({rule}), at most")
    say(f"{cost.new_tokens:,} tokens written. Nothing was asked.")
    if cost.money is not None:
        say(f"At most {cost.money:,.2f}; {cost.most:,.2f} if every reply had to be asked for {tries} times.")
