"""A tokenizer, and the run of one process, which several workers must write byte for byte."""

from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerBase

from tests.scoring.shared_run import make
from tests.tokenizer_styles import byte_level


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerBase:
    return byte_level(bos=True)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("alone") / "run"
    make(out).complete()
    return out
