"""The store: written once, asked once, by content."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from seesaw_cf.errors import RecordError
from seesaw_cf.generation import Ask, CachedGenerator, Completion, HFGenerator, Message, Sampling
from tests.fakes import tiny_tokenizer, trained_model

SAMPLING = Sampling(max_new_tokens=4)
ASKS = [Ask("Marie Curie was born in", 1), Ask("The mother tongue of", 2), Ask("London " * 80, 3)]


class Counting:
    """A local model that counts, and stops after some asks as if it were killed."""

    def __init__(self, limit: int = 1000, name: str = "a") -> None:
        self.inner, self.asked, self.limit, self.name = (
            HFGenerator(trained_model("llama"), tiny_tokenizer()),
            0,
            limit,
            name,
        )

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        self.asked += len(asks)
        if self.asked > self.limit:
            raise KeyboardInterrupt
        return self.inner.generate(asks, sampling)


@pytest.mark.slow
def test_what_was_written_is_not_asked_again_and_failures_are(tmp_path: Path) -> None:
    inner = Counting()
    first = CachedGenerator(inner, tmp_path).generate([*ASKS, ASKS[0]], SAMPLING)
    assert first == inner.inner.generate([*ASKS, ASKS[0]], SAMPLING)
    assert first[2].status.startswith("refused")
    assert CachedGenerator(inner, tmp_path).generate(ASKS, SAMPLING) == first[:3]
    assert inner.asked == 4  # three, then the refused one again
    assert len(list(tmp_path.rglob("*.json"))) == 2


def test_a_kill_loses_at_most_one_block(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        CachedGenerator(Counting(limit=1), tmp_path, block=1).generate(ASKS[:2], SAMPLING)
    again = Counting()
    CachedGenerator(again, tmp_path, block=1).generate(ASKS[:2], SAMPLING)
    assert again.asked == 1


def test_everything_that_changes_the_text_changes_the_place(tmp_path: Path) -> None:
    ask = ASKS[0]
    for number, (name, one, sampling) in enumerate(
        [
            ("a", ask, SAMPLING),
            ("b", ask, SAMPLING),
            ("a", Ask(ask.prompt, 9), SAMPLING),
            ("a", ask, Sampling(max_new_tokens=4, stop=("x",))),
        ],
        1,
    ):
        CachedGenerator(Counting(name=name), tmp_path).generate([one], sampling)
        assert len(list(tmp_path.rglob("*.json"))) == number
    assert Ask("user: hi") != Ask((Message("user", "hi"),))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    store = CachedGenerator(Counting(), tmp_path)
    store.generate(ASKS[:1], SAMPLING)
    (file,) = tmp_path.rglob("*.json")
    file.write_text("{", encoding="utf-8")
    with pytest.raises(RecordError, match=file.name + ".*Delete that file"):
        store.generate(ASKS[:1], SAMPLING)
