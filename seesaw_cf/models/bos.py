"""Models that are of no use without a beginning-of-text token, and tokenizers that give them none."""

from __future__ import annotations

import logging
from weakref import WeakSet

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.models.architectures import ARCHITECTURES

_LOG = logging.getLogger(__name__)
_TOLD: WeakSet[PreTrainedTokenizerBase] = WeakSet()


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
    bos = getattr(model.config.get_text_config(decoder=True), "bos_token_id", None)
    first = list(tokenizer("a")["input_ids"])[:1]
    if row is None or not row.bos or first in ([bos], [tokenizer.bos_token_id]):
        return False
    if tokenizer not in _TOLD:
        _TOLD.add(tokenizer)
        _LOG.warning(
            "%s was trained with a beginning-of-text token (%s, id %s) before every text, and this tokenizer puts none "
            "there: 'a' becomes %s. Scores, edits and texts will be those of a broken model. Load the tokenizer that "
            "belongs to the model, with add_bos_token=True where it has that option, and save it beside the weights.",
            *(type(model).__name__, tokenizer.bos_token, bos, tokenizer.convert_ids_to_tokens(first)),
        )
    return True
