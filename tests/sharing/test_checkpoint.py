"""Full checkpoints: what transformers loads is the edited model, and the base is left as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from seesaw_cf.errors import EditError
from seesaw_cf.models.weights import WeightDelta, applied, digest, parameter_hashes
from seesaw_cf.sharing import merge_and_save

from .tiny import ARCHITECTURES, VOCABULARY, logits, low_rank_delta, tiny


@pytest.fixture(scope="module")
def tokenizer() -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer, models, pre_tokenizers

    letters = {chr(97 + index) if index < 26 else f"t{index}": index for index in range(VOCABULARY)}
    raw = Tokenizer(models.WordLevel(letters, unk_token="a"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="a", pad_token="b")


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_checkpoint_is_the_edited_model(name: str, dtype: torch.dtype, tokenizer: Any, tmp_path: Path) -> None:
    model: Any = tiny(name, dtype=dtype)
    before = digest(parameter_hashes(model))
    delta = low_rank_delta(model, name)
    merge_and_save(model, tokenizer, delta, tmp_path / "edited")
    assert digest(parameter_hashes(model)) == before
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "edited", dtype=dtype).eval()
    with applied(model, delta):
        assert torch.equal(logits(loaded), logits(model))
    assert AutoTokenizer.from_pretrained(tmp_path / "edited")("c d")["input_ids"] == [2, 3]
    assert json.loads((tmp_path / "edited" / "seesaw_cf.json").read_text())["base"]["fingerprint"] == before


def test_a_text_context_has_no_checkpoint(tokenizer: Any, tmp_path: Path) -> None:
    with pytest.raises(EditError, match="a checkpoint holds weights only"):
        merge_and_save(tiny("gpt2"), tokenizer, WeightDelta({}, {}, "Q: a? A: b\n"), tmp_path / "edited")
    assert not (tmp_path / "edited").exists()
