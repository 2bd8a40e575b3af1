"""A tiny chat model that really answers: trained in a second to rate, to label, and to refuse everything else."""

import functools
import random
import string

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from tests.fakes import tiny_model, tiny_texts
from tests.tokenizer_styles import byte_level

TEMPLATE = (
    "{% for message in messages %}<{{ message.role }}> {{ message.content }}\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
"""The smallest chat template that has roles."""

LABELS = ("supports", "neutral", "contradicts")


def _answer(last: str, draw: random.Random) -> str:
    if last == "Rating:":
        return f" Rating: {draw.randint(1, 7)}"
    if last == "Label:":
        return f" Label: {draw.choice(LABELS)}"
    return " I cannot say."


@functools.cache
def chat_tokenizer() -> PreTrainedTokenizerBase:
    """A byte-level tokenizer with a chat template; treat it as read-only."""
    tokenizer = byte_level(bos=False)
    tokenizer.chat_template = TEMPLATE
    return tokenizer


@functools.cache
def chat_model(steps: int = 150) -> PreTrainedModel:
    """A mistral of two blocks that sees the last two dozen tokens of a context of 8,192; treat it as read-only.

    A user's turn that ends with "Rating:" is answered " Rating: 1" to " Rating: 7", one that ends with "Label:" with
    one of `LABELS`, any other " I cannot say."; a plain prompt is continued as in `tiny_texts`.
    """
    tokenizer = chat_tokenizer()
    model = tiny_model("mistral", num_hidden_layers=2, max_position_embeddings=8192, sliding_window=24)
    draw, texts = random.Random(0), tiny_texts()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        rows: list[tuple[list[int], list[int]]] = [([0], tokenizer(draw.choice(texts))["input_ids"]) for _ in range(4)]
        for _ in range(8):
            last = draw.choice(["Rating:", "Label:", "Thanks."])
            turn = draw.choice(texts) if draw.random() < 0.5 else "".join(draw.choices(string.printable[:94], k=40))
            asked = [{"role": "user", "content": f"{turn}\n{last}"}]
            text = str(tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True))
            rows.append((tokenizer(text)["input_ids"], [*tokenizer(_answer(last, draw))["input_ids"], 0]))
        longest = max(len(head) + len(tail) for head, tail in rows)
        ids = torch.tensor([[*head, *tail, *[0] * (longest - len(head) - len(tail))] for head, tail in rows])
        goal = torch.full_like(ids, -100)
        for row, (head, tail) in enumerate(rows):
            goal[row, len(head) : len(head) + len(tail)] = torch.tensor(tail)
        optimiser.zero_grad()
        model(input_ids=ids, labels=goal).loss.backward()
        optimiser.step()
    optimiser.zero_grad()
    return model.eval()
