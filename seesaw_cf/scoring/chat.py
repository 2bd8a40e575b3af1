"""Questions in a model's chat template: the turns, the text before the answer, and what is refused.

A prompt such as "Ada Lovelace was born in" is asked in two chat forms. "question": a user asks to complete it, and the
answer is the assistant's whole turn. "prefill": the same question, and the assistant's turn begins with the prompt.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from transformers import PreTrainedTokenizerBase

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import PromptError, UnsupportedModelError
from seesaw_cf.base.types import FORMS, Cloze, JsonObject

Turn = Mapping[str, str]
"""A turn of a conversation: `role` and `content`."""
COMPLETE = "Complete the sentence. Answer with the missing words only.\n{}"
ANSWER = "{}\nAnswer with a few words only."
"""What a user says around a prompt, and around one that is a question already."""
_BEGUN = "The answer is"  # of a prompt that is a question
_PROBE = Cloze("The capital of France is", "Paris")


def make_turns(prompt: str, form: str) -> list[dict[str, str]]:
    """Return the turns that ask a prompt in a chat form; the last one is open when it is the assistant's.

    Args:
        prompt: A text to continue, or a question. Lines above the last one are what an editor puts before it.
        form: "question" or "prefill".
    """
    last = prompt.rstrip().rpartition("\n")[2]
    is_question = last.endswith("?")
    turns = [{"role": "user", "content": (ANSWER if is_question else COMPLETE).format(prompt.rstrip())}]
    begun = [{"role": "assistant", "content": _BEGUN if is_question else last}]
    return turns + begun * (form == "prefill")


def fill_template(tokenizer: PreTrainedTokenizerBase, turns: Sequence[Turn]) -> str:
    """Return a conversation as the model's chat template writes it, up to where the assistant goes on.

    Args:
        tokenizer: The model's.
        turns: A last turn of the assistant is left open; behind any other one the assistant's turn is begun.

    Raises:
        UnsupportedModelError: The tokenizer has no chat template.
        PromptError: The template refuses the turns.
    """
    name = tokenizer.name_or_path or type(tokenizer).__name__
    if not tokenizer.chat_template:
        raise UnsupportedModelError(
            f"{name}: the tokenizer has no chat template, so the model cannot be asked in turns. Use a chat model, set "
            "tokenizer.chat_template, or give plain prompts."
        )
    is_open = turns[-1]["role"] == "assistant"
    options: dict[str, Any] = {"add_generation_prompt": not is_open, "continue_final_message": is_open}
    try:
        return str(tokenizer.apply_chat_template([dict(turn) for turn in turns], tokenize=False, **options))
    except Exception as error:  # a template is a foreign program: it raises what it likes
        raise PromptError(
            f"{name}: the chat template refuses the turns {[turn['role'] for turn in turns]}, expected a text "
            f"({type(error).__name__}: {error}). Correct tokenizer.chat_template, or ask in the plain form."
        ) from error


def chat_head(tokenizer: PreTrainedTokenizerBase, context: str, form: str) -> tuple[str, str]:
    """Return the text before an answer in a chat form, special tokens written out, and the white space between them.

    Raises:
        UnsupportedModelError, PromptError: As `fill_template`.
    """
    head = fill_template(tokenizer, make_turns(context, form))
    if form == "prefill":
        return head, " "
    answered = [*make_turns(context, form), {"role": "assistant", "content": _PROBE.target}]
    begun, _, _ = fill_template(tokenizer, answered).rpartition(_PROBE.target)
    gap = begun[len(head) :] if begun.startswith(head) else ""
    return head, gap if gap.isspace() else ""


def check_chat(tokenizer: PreTrainedTokenizerBase, cloze: Cloze, head: str) -> None:
    """Refuse a question in a chat template that says more than it may.

    Args:
        tokenizer: The model's.
        cloze: In a chat form.
        head: The text before its answer.

    Raises:
        PromptError: The question holds its answer, or a special token, which would be a second beginning of the text or
            the end of a turn.
    """
    for text in (cloze.context, cloze.target):
        if special := next((token for token in tokenizer.all_special_tokens if token in text), None):
            raise PromptError(
                f"cloze {cloze}: {shown(text)} holds the special token {special!r}, expected text alone: the template "
                "writes its own. Remove it from the record."
            )
    above = cloze.context.rstrip().rpartition("\n")[0]  # by an editor in context, which may name the new fact
    if holds(head.replace(above, "", 1) if above else head, cloze.target):
        raise PromptError(f"cloze {cloze}: the question in the chat template holds its answer. Rephrase the prompt.")


def holds(text: str, answer: str) -> bool:
    """Return whether a text has an answer as whole words, in upper or lower case."""
    words = re.escape(answer.strip())
    return re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE) is not None


def template_facts(tokenizer: PreTrainedTokenizerBase) -> JsonObject:
    """Return what a manifest records of a chat template: its SHA-256, and that of a question written with it.

    The second one differs where a template writes the date.

    Raises:
        UnsupportedModelError, PromptError: As `fill_template`; or the template leaves out what the user says.
    """
    heads = {form: chat_head(tokenizer, _PROBE.context, form)[0] for form in FORMS[1:]}
    if not all(make_turns(_PROBE.context, form)[0]["content"] in head for form, head in heads.items()):
        raise PromptError(
            f"{tokenizer.name_or_path}: the chat template leaves out what the user says, expected it in the text: "
            f"{shown(heads['question'])}. Correct tokenizer.chat_template, or ask in the plain form."
        )
    parts = {"template": json.dumps(tokenizer.chat_template), "written": json.dumps(heads)}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in parts.items()}
