"""Every run of these tests has a cache of its own; a small model as a folder."""

from pathlib import Path

import pytest

from tests.runner import small


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small model with its tokenizer, as a folder; treat it as read-only."""
    return small.save(tmp_path_factory.mktemp("base"))
