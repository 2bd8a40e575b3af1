"""Models that need a beginning-of-text token and tokenizers that give them none."""

from __future__ import annotations

import pytest

from seesaw_cf.models.trial import warn_without_bos
from tests.fakes import tiny_model
from tests.tokenizer_styles import byte_level


@pytest.mark.parametrize("kind", ["gemma", "gemma2", "gemma3_text"])
def test_gemma_without_its_first_token_is_warned_of_once(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    model, tokenizer = tiny_model(kind), byte_level(bos=False)
    assert warn_without_bos(model, tokenizer)
    assert warn_without_bos(model, tokenizer)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "was trained with a beginning-of-text token" in record.getMessage()
    assert "'a' becomes ['a']" in record.getMessage()
    assert "add_bos_token=True" in record.getMessage()


@pytest.mark.parametrize("kind", ["gemma3_text", "llama", "gpt2"])
def test_nothing_is_said_where_it_is_there_or_not_needed(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    assert not warn_without_bos(tiny_model(kind, bos_token_id=1), byte_level(bos=True))
    assert warn_without_bos(tiny_model(kind), byte_level(bos=False)) == (kind == "gemma3_text")
    assert bool(caplog.text) == (kind == "gemma3_text")
