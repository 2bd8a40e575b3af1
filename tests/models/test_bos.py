"""Models that need a beginning-of-text token and tokenizers that give them none."""

from __future__ import annotations

from pathlib import Path

import pytest

from seesaw_cf.editors import load_editor
from seesaw_cf.models.load import load_model
from seesaw_cf.models.trial import warn_without_bos
from seesaw_cf.scoring.encode import leading_specials
from tests.fakes import tiny_model, tiny_texts
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


def test_loading_and_fitting_say_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tiny_model("gemma3_text").save_pretrained(tmp_path)
    byte_level(bos=False).save_pretrained(tmp_path)
    model, tokenizer = load_model(str(tmp_path), device="cpu", progress=False)
    assert "puts none there" in caplog.text
    assert leading_specials(tokenizer) == ()
    caplog.clear()
    cls = load_editor("rome")
    editor = cls(cls.config_class(layers=(1,), use_moments=False, context_templates=("{}",)), tiny_texts())
    editor.fit(model, byte_level(bos=False))
    assert "puts none there" in caplog.text
