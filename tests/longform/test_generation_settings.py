"""Published settings by name, files of settings, and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.generation import Sampling
from seesaw_cf.texts.job import LemeJob
from seesaw_cf.texts.write.generation_settings import read_generation


def test_the_published_settings() -> None:
    # LEME: 600 new tokens and penalty 1.1 in the released program, the rest in appendix B.1. SEESAW-CF: section 5.
    assert read_generation("leme").sampling == Sampling(600, 0.9, 50, 0.95, repetition_penalty=1.1)
    assert read_generation("leme-gpt").sampling.temperature == 1.0, "appendix B.1, GPT-3.5 and GPT-4"
    assert (read_generation("seesaw-cf").samples, read_generation("seesaw-cf").sampling) == (
        5,
        Sampling(100, 1.0, 5, 1.0),
    )


def test_the_default_is_as_published_but_for_the_toy() -> None:
    assert LemeJob("seesaw-tiny").texts().name == "short"
    assert LemeJob("some/model").texts().name == "leme"
    assert LemeJob("seesaw-tiny", base_url="http://localhost/v1").texts().name == "leme"
    changed = LemeJob("seesaw-tiny", generation="seesaw-cf", samples=2, top_k=9).texts()
    assert (changed.name, changed.samples, changed.sampling.top_k, changed.sampling.max_new_tokens) == (
        "seesaw-cf", 2, 9, 100,
    )  # fmt: skip


def test_settings_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(json.dumps({"samples": 3, "temperature": 0.5, "stop": ["\n\n"]}), encoding="utf-8")
    found = read_generation(str(file), top_p=0.5)
    assert (found.name, found.samples) == ("mine.json", 3)
    assert found.sampling == Sampling(600, 0.5, 50, 0.5, ("\n\n",), 1.1)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        ('{"temprature": 1}', UnknownNameError, r"unknown setting in .*Did you mean 'temperature'"),
        ('{"temperature": -1}', RecordError, "sampling: temperature is -1"),
        ('{"top_p": "much"}', RecordError, "sampling: top_p is 'much'"),
        ('{"samples": 0}', RecordError, "generation settings: samples is 0"),
        ("[1]", RecordError, r"Expected an object such as \{\"samples\": 1, \"max_new_tokens\": 600"),
        ("{", RecordError, "not JSON"),
    ],
)
def test_wrong_files(tmp_path: Path, content: str, error: type[Exception], message: str) -> None:
    file = tmp_path / "mine.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(error, match=message):
        read_generation(str(file))


def test_wrong_names_and_counts(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match=r"unknown generation settings .*'leem'. Did you mean 'leme'"):
        read_generation("leem")
    with pytest.raises(StorageError, match=r"none\.json: No such file"):
        read_generation(str(tmp_path / "none.json"))
    for name in ("limit", "rows", "block", "samples"):
        with pytest.raises(RecordError, match=f"leme run: {name} is 0"):
            LemeJob("seesaw-tiny", **{name: 0})  # type: ignore[arg-type]
