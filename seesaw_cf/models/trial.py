"""A model and a tokenizer that can be asked: found out in one short pass when they are loaded."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator
from weakref import WeakSet

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as logs

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import UnsupportedModelError
from seesaw_cf.models.architectures import ARCHITECTURES, text_config
from seesaw_cf.models.hooks import evaluating
from seesaw_cf.models.tensors import pad

log = logging.getLogger(__name__)
_EXPLAINED: WeakSet[PreTrainedTokenizerBase] = WeakSet()

_HALF = 4  # tokens that stay, and tokens after them that are exchanged
# Share of the change at later places that rounding can make at earlier ones, where tokens change at later places alone.
# Causal models: 0, with routed experts 1e-6 (16 bits: 1e-2). Others: at least 1e-3 untrained, .3 trained.
_ROUNDING = {torch.float64: 1e-4, torch.float32: 1e-4}


def check_model(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse a model that gives no probabilities of a text's next token.

    Raises:
        UnsupportedModelError: Logits are not finite or depend on later tokens, or the tokenizer uses tokens that the
            model has no embedding for.
    """
    name = f"model {model.config._name_or_path or type(model).__name__!r}"
    _check_tokens(name, model, tokenizer)
    same, *ends = (some_ids(model, 3 * _HALF)[start::3] for start in range(3))
    # The third text is shorter, so that attention is masked: without a mask some kernels turn NaN into numbers.
    ids, mask = pad([[*same, *ends[0]], [*same, *ends[1]], same], embedding(model).device)
    with evaluating(model), torch.inference_mode():
        logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
    strange = [name for name, weight in model.named_parameters() if not _is_finite(weight)]
    if strange or not bool(torch.isfinite(logits[mask.bool()]).all()):
        raise UnsupportedModelError(
            f"{name}: {f'weights {shown(strange)}' if strange else 'logits of a short text'} are not finite, expected "
            f"numbers. Get the model again; where its numbers are beyond {model.dtype}, give --dtype float32."
        )
    change = (logits[0] - logits[1]).abs().amax(-1)
    early, late = change[:_HALF].max(), change[_HALF:].max()
    if early > _ROUNDING.get(model.dtype, 0.03) * late:
        raise UnsupportedModelError(
            f"{name}: {type(model).__name__} is not causal: other tokens at the end of a text move logits before them "
            f"by {float(early):.2g}, expected 0. Load a causal language model; a BERT-like decoder needs is_decoder "
            "true in config.json, and weights that were trained so."
        )


def embedding(model: PreTrainedModel) -> Tensor:
    """Return the weights of the input embedding, (ids, d)."""
    return next(model.get_input_embeddings().parameters())


def _is_finite(weight: Tensor) -> bool:
    """Return whether all numbers are finite, in one pass without a copy; True for weights that are kept elsewhere."""
    if weight.is_meta or not weight.is_floating_point():
        return True
    return bool(weight.detach().sum(dtype=torch.promote_types(weight.dtype, torch.float32)).isfinite())


def _check_tokens(name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse a tokenizer that uses tokens beyond the embedding; warn of tokens that only a text could bring in."""
    size = len(embedding(model))
    beyond = [token for token, number in tokenizer.get_vocab().items() if number >= size]
    if not beyond:
        return
    some = shown(sorted(beyond))
    around = tokenizer.convert_ids_to_tokens(list(tokenizer("a")["input_ids"]))
    special = [*around, tokenizer.bos_token, tokenizer.eos_token]
    if any(token in special or token in str(tokenizer.chat_template) for token in beyond):
        raise UnsupportedModelError(
            f"{name}: the tokenizer puts tokens into texts that the model has no embedding for: {len(beyond)} have ids "
            f"of {size} or more ({some}), expected ids below. Is it a chat model's tokenizer beside a base model? "
            "Load the tokenizer that the model was trained with."
        )
    log.warning(
        "%s has no embedding for %d tokens of its tokenizer (%s): no text can hold them.", name, len(beyond), some
    )


def some_ids(model: PreTrainedModel, count: int) -> list[int]:
    """Return ids of common tokens, special ones left out."""
    config = text_config(model)
    special = {getattr(config, name, None) for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    usable = [token for token in range(min(config.vocab_size, 5000)) if token not in special]
    return [usable[(number + 1) * len(usable) // (count + 2)] for number in range(count)]


def warn_without_bos(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Warn, once for each tokenizer, where a model needs a beginning-of-text token and gets none.

    Prompts, scores, generated texts and second moments all begin with what the tokenizer puts in front of a text.

    Args:
        model: A model type with `bos` in its row of `ARCHITECTURES`.
        tokenizer: Asked with a short text.

    Returns:
        Whether the token is missing.
    """
    row = ARCHITECTURES.get(str(model.config.model_type))
    bos = getattr(text_config(model), "bos_token_id", None)
    first = list(tokenizer("a")["input_ids"])[:1]
    if row is None or not row.bos or first in ([bos], [tokenizer.bos_token_id]):
        return False
    if tokenizer not in _EXPLAINED:
        _EXPLAINED.add(tokenizer)
        log.warning(
            "%s was trained with a beginning-of-text token (%s, id %s) before every text, and this tokenizer puts none "
            "there: 'a' becomes %s. Scores, edits and texts will be those of a broken model. Load the tokenizer that "
            "belongs to the model, with add_bos_token=True where it has that option, and save it beside the weights.",
            *(type(model).__name__, tokenizer.bos_token, bos, tokenizer.convert_ids_to_tokens(first)),
        )
    return True


# transformers' loaders without their own reports and bars.


@contextlib.contextmanager
def silent_loaders(bars: bool) -> Iterator[None]:
    """Hide transformers' own report of the weights, and its bars unless wanted, while the block runs.

    What was set is put back.
    """
    level, bars_before = logs.get_verbosity(), logs.is_progress_bar_enabled()
    logs.set_verbosity_error()
    if not bars:
        logs.disable_progress_bar()
    try:
        # The bar of GGUF files knows no setting of transformers.
        with contextlib.nullcontext() if bars else contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        logs.set_verbosity(level)
        if bars_before:
            logs.enable_progress_bar()
