"""From a request and a context template to token ids; what the model has at the subject's last token.

Indices are counted in the whole filled prompt, special tokens included, without padding; padding is added on the
right by code that knows, so `tokenizer.padding_side` does not matter.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from seesaw_cf.base.errors import PromptError
from seesaw_cf.base.types import Cloze, EditRequest
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.editor import Model, Tokenizer
from seesaw_cf.models.hooks import frozen, hooked, stop_after, watch
from seesaw_cf.models.tensors import batches, pad
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.scoring.encode import encode_cloze, leading_specials
from seesaw_cf.scoring.hf_scorer import context_length, per_token_deltas


@dataclass(frozen=True, slots=True)
class InputRow:
    """One sequence that is fed to the model.

    Attributes:
        ids: The tokens fed (a target's last token never is).
        lookup: Index of the subject's last token.
        targets: Tokens that the last `len(targets)` positions must predict; empty for a row without target.
    """

    ids: tuple[int, ...]
    lookup: int
    targets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PreparedEdit:
    """Every row one request needs.

    Attributes:
        request: The request.
        rows: One row per context template, the bare prompt first.
        anchor: The row cut off at the subject token, where the next-token distribution should stay as it is.
    """

    request: EditRequest
    rows: tuple[InputRow, ...]
    anchor: InputRow


def encode_text(tokenizer: Tokenizer, text: str) -> tuple[int, ...]:
    """Return the token ids of a text with the special tokens this tokenizer puts in front (and none behind)."""
    return (*leading_specials(tokenizer), *tokenizer(text, add_special_tokens=False)["input_ids"])


def last_token_before(tokenizer: Tokenizer, text: str, end: int) -> int:
    """Return the index of the token that holds the last character before `end`.

    Fast tokenizers say so themselves (character offsets); a character split over several tokens counts for its last
    one. Slow tokenizers are asked for the ids of `text[:end]`, which must be the beginning of the ids of `text`.

    Args:
        tokenizer: Any transformers tokenizer.
        text: The whole text.
        end: A character position, 1 <= end <= len(text).

    Returns:
        The index, special tokens in front included.

    Raises:
        PromptError: No token holds the character, or tokens of a slow tokenizer merge across `end`.
    """
    n_lead = len(leading_specials(tokenizer))
    if tokenizer.is_fast:
        offsets = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        holding = [index for index, (start, stop) in enumerate(offsets) if start < end <= stop]
        if holding:
            return n_lead + holding[-1]
        raise PromptError(f"no token of {text!r} holds its character {end - 1} ({text[end - 1]!r}). Check the subject.")
    head, body = (tuple(tokenizer(part, add_special_tokens=False)["input_ids"]) for part in (text[:end], text))
    if not head or body[: len(head)] != head:
        raise PromptError(
            f"{text!r}: tokens merge across the end of the subject (character {end}) and this slow tokenizer has no "
            f"character offsets. Up to there: {tokenizer.convert_ids_to_tokens(list(head))}; whole: "
            f"{tokenizer.convert_ids_to_tokens(list(body))}. Load the fast tokenizer or rephrase the prompt."
        )
    return n_lead + len(head) - 1


def _subject_end(template: str, request: EditRequest) -> tuple[str, int]:
    """Return the text of `template` around the request's filled prompt, and where its subject ends."""
    outer = template.index("{}")
    inner = request.prompt.index("{}")
    text = template.replace("{}", request.text, 1)
    return text, outer + inner + len(request.subject.rstrip())


def prepare(
    model: Model,
    tokenizer: Tokenizer,
    request: EditRequest,
    templates: Sequence[str],
    anchor_prompt: str = "{} is a",
) -> PreparedEdit:
    """Encode a request under every context template.

    The subject's place is known from the "{}" of the request, so a name may occur twice.

    Args:
        model: Its context length limits the rows.
        tokenizer: The model's tokenizer.
        request: The edit.
        templates: Context templates, each with one "{}" that takes the filled prompt.
        anchor_prompt: Template with one "{}" for the subject; its next-token distribution should not move.

    Returns:
        The rows. The target's tokens are what follows the context's tokens in the whole string, so no separate
        white space is trained (SentencePiece) and BOS never is part of the target.

    Raises:
        PromptError: A prompt that is too long, a target without tokens, or tokens that merge across a boundary.
    """
    rows = []
    for template in templates:
        text, end = _subject_end(template, request)
        ids, start = encode_cloze(tokenizer, Cloze(text, request.target_new.label))
        rows.append(InputRow(ids[:-1], last_token_before(tokenizer, text, end), ids[start:]))
    anchor_text = anchor_prompt.replace("{}", request.subject, 1)
    at = last_token_before(tokenizer, anchor_text, anchor_prompt.index("{}") + len(request.subject.rstrip()))
    anchor = InputRow(encode_text(tokenizer, anchor_text)[: at + 1], at)
    limit = context_length(model)
    longest = max(len(row.ids) + 1 for row in rows)
    if limit is not None and longest > limit:
        raise PromptError(
            f"edit request {request.text!r} -> {request.target_new.label!r} needs {longest} tokens with its context "
            f"templates, the model takes {limit}. Shorten the prompt or the context_templates."
        )
    return PreparedEdit(request, tuple(rows), anchor)


# Context templates: short beginnings under which a new fact must hold, sampled from the model itself.

MEMIT_STARTS: tuple[tuple[str, int], ...] = tuple((word, 10) for word in ("The", "Therefore", "Because", "I", "You"))
"""MEMIT: one continuation of ten tokens for each of five words. Source: memit/memit_main.py:290-309."""

ROME_STARTS: tuple[tuple[str, int], ...] = (("", 5),) * 10 + (("", 10),) * 10
"""ROME: ten texts of five and ten of ten tokens from nothing. Source: rome/rome_main.py:213-236."""

_TOP_K = 5
_NO_BRACES = str.maketrans("{}", "  ")


def sample_templates(
    parts: ModelParts, tokenizer: Tokenizer, starts: Sequence[tuple[str, int]], seed: int
) -> tuple[str, ...]:
    """Sample continuations with top-k 5 and make templates "<text>. {}" of them, the bare "{}" first.

    Deviates: The published programs sample without a seed, so no two runs agree; here a separate generator is
    seeded, and the model's random state is not touched.

    Args:
        parts: The model.
        tokenizer: Its tokenizer.
        starts: Words to continue, each with the number of new tokens; "" starts from the beginning-of-text token, or
            from the end-of-text token where there is none.
        seed: Of the sampling.

    Returns:
        Templates, each with exactly one "{}".
    """
    generator = torch.Generator().manual_seed(seed)
    # drawn text by text, as `torch.multinomial` draws one of each, so that texts may grow side by side
    noise = [[torch.empty(_TOP_K).exponential_(generator=generator) for _ in range(n_new)] for _, n_new in starts]
    bos = next((number for number in (tokenizer.bos_token_id, tokenizer.eos_token_id) if number is not None), 0)
    texts = [(list(encode_text(tokenizer, start)) if start else []) or [bos] for start, _ in starts]
    with frozen(parts.model), torch.no_grad():
        for step in range(max(map(len, noise), default=0)):
            unfinished = [number for number, draws in enumerate(noise) if step < len(draws)]
            next_tokens = _likeliest_next(parts, [texts[number] for number in unfinished])
            for number, p, tokens in zip(unfinished, *next_tokens):
                texts[number].append(int(tokens[(p / noise[number][step]).argmax()]))
    words = [str(tokenizer.decode(ids, skip_special_tokens=True)).translate(_NO_BRACES).split() for ids in texts]
    return ("{}", *(f"{' '.join(text)}. {{}}" for text in words))


def _likeliest_next(parts: ModelParts, texts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Return probabilities of the `_TOP_K` likeliest next tokens of each text, and these tokens, (texts, top) each."""
    seen: dict[str, Tensor] = {}
    ids, mask = pad(texts, parts.model.device)
    with hooked(watch(seen, outputs={"top": parts.block(parts.n_layers - 1)})):
        parts.model(input_ids=ids, attention_mask=mask, use_cache=False)
    ends = torch.tensor([len(text) - 1 for text in texts])
    top = parts.logits(seen["top"][torch.arange(len(texts)), ends]).float().cpu().topk(_TOP_K)
    return top.values.softmax(-1), top.indices


class AtSubject(NamedTuple):
    """What was seen at the subject's last token of N rows, in the model's dtype (at least float32).

    Attributes:
        keys: (N, d_ff), input of the MLP output projection of the layer asked for.
        values: (N, d), its output.
        stream: (N, d), the output of the block asked for.
    """

    keys: Tensor
    values: Tensor
    stream: Tensor


class RowEdits(NamedTuple):
    """Low-rank edits of single rows.

    Attributes:
        deltas: The edits.
        owners: For each row, which one.
    """

    deltas: Sequence[WeightDelta]
    owners: Sequence[int]

    def among(self, parts: ModelParts, rows: Sequence[int]) -> AbstractContextManager[None]:
        """Make a batch of these rows go through their edits while the block runs."""
        return per_token_deltas(parts.model, self.deltas, torch.tensor([self.owners[row] for row in rows]))


def cut(row: InputRow) -> InputRow:
    """Cut a row behind the subject's last token: nothing after it can change what is seen there."""
    return InputRow(row.ids[: row.lookup + 1], row.lookup)


def at_subject(
    parts: ModelParts,
    rows: Sequence[InputRow],
    layer: int,
    block: int | None = None,
    max_tokens: int = 8192,
    edits: RowEdits | None = None,
) -> AtSubject:
    """Run rows up to the subject's last token and no block further than needed.

    Args:
        parts: The model.
        rows: N rows.
        layer: The block with the watched MLP output projection.
        block: The block with the watched output; `layer` when None. The pass stops after the later of the two.
        max_tokens: Tokens per forward, padding included.
        edits: Of the rows, where each goes through a model of its own; None = the model as it is.

    Returns:
        Keys, values and block outputs in the order of `rows`, without gradients.
    """
    block = layer if block is None else block
    projection, top = parts.mlp_out(layer), parts.block(max(layer, block))
    order: list[int] = []
    groups: list[tuple[Tensor, Tensor, Tensor]] = []
    for group in batches([row.lookup + 1 for row in rows], max_tokens):
        ids, mask = pad([cut(rows[index]).ids for index in group], parts.model.device)
        seen: dict[str, Tensor] = {}
        outputs: dict[str, nn.Module] = {"values": projection, "stream": parts.block(block)}
        own = edits.among(parts, group) if edits else contextlib.nullcontext()
        with torch.no_grad(), own, hooked([*watch(seen, {"keys": projection}, outputs), stop_after(top)]):
            parts.model(input_ids=ids, attention_mask=mask, use_cache=False)
        last = torch.tensor([rows[index].lookup for index in group])
        groups.append(tuple(_pick(seen[name], last) for name in ("keys", "values", "stream")))  # type: ignore[arg-type]
        order += group
    back = torch.tensor(order).argsort()
    return AtSubject(*(torch.cat([entry[k] for entry in groups])[back.to(groups[0][k].device)] for k in range(3)))


def _pick(seen: Tensor, last: Tensor) -> Tensor:
    seen = seen.reshape(len(last), -1, seen.shape[-1])  # OPT flattens its MLP's input
    chosen = seen[torch.arange(len(last), device=seen.device), last.to(seen.device)]
    return chosen.to(torch.promote_types(chosen.dtype, torch.float32))


def average_keys(keys: Tensor, edits: Sequence[PreparedEdit], bare_weight: float | None) -> Tensor:
    """Average keys over each edit's context templates.

    Args:
        keys: (rows, d_ff or d), the rows of all edits one after another.
        edits: n edits, for the number of their rows.
        bare_weight: Weight of the first row, the bare prompt; other rows share the rest evenly; None = plain mean.
    """
    means = []
    for part in keys.split([len(edit.rows) for edit in edits]):
        if bare_weight is None or len(part) == 1:
            means.append(part.mean(0))
        else:
            means.append(bare_weight * part[0] + (1 - bare_weight) * part[1:].mean(0))
    return torch.stack(means)
