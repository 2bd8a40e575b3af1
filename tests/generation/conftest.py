"""The server with the tiny chat model behind it."""

from collections.abc import Iterator

import pytest

from tests.generation.models import chat_model, chat_tokenizer
from tests.generation.server import KEY, OpenAIServer


@pytest.fixture
def openai_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """A running server; its key is in OPENAI_API_KEY for the length of the test."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with OpenAIServer(chat_model(), chat_tokenizer()) as server:
        yield server
