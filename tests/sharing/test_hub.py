"""Publishing over real HTTP: pushed once, found by commit; refusals in clear words, no token anywhere."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from huggingface_hub import HfApi, constants

from seesaw_cf.errors import StorageError
from seesaw_cf.models.changed import find_changed
from seesaw_cf.sharing import ShareOptions, save_delta, share

from ..hub_routes import Repo
from ..hub_server import READER, TOKEN, Hub
from .tiny import low_rank_delta, tiny

OPTIONS = ShareOptions(base_model="org/base")


@pytest.fixture
def edit(tmp_path: Path) -> Path:
    """An edit on disk."""
    model = tiny("llama")
    save_delta(low_rank_delta(model, "llama"), tmp_path / "edit", model)
    return tmp_path / "edit"


@pytest.mark.slow
def test_sharing_again_changes_nothing_and_each_commit_is_found(edit: Path, near_hub: Hub) -> None:
    for _ in range(2):  # the second time finds its own content and changes nothing
        share(edit, "org/delta", options=OPTIONS)
    newest, first = (commit.commit_id for commit in HfApi().list_repo_commits("org/delta"))
    for revision in ("", "@main", f"@{newest}"):
        assert find_changed(f"org/delta{revision}").place.name == newest
    with pytest.raises(StorageError, match=r"holds none of delta\.json"):
        find_changed(f"org/delta@{first}")  # the Hub's own
    with pytest.raises(StorageError, match=r"org/delta@nobody: no such folder, and the Hub gives no model of that id"):
        find_changed("org/delta@nobody")
    files = near_hub.files("org/delta")
    assert b"counterfactual" in files["README.md"]
    assert not any(TOKEN.encode() in content or str(edit).encode() in content for content in files.values())


@pytest.mark.slow
def test_refusals_say_what_to_do_and_touch_nothing(
    edit: Path, near_hub: Hub, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    for token, endpoint, message in (
        (READER, near_hub.url, r"the Hub refused to take org/x \(HTTP 403\): this token lacks the right"),
        ("hf_wrong", near_hub.url, "HTTP 401.*hf auth login"),
        (TOKEN, "http://127.0.0.1:9", r"the Hub did not take the files of org/x \(ConnectError\).*HF_ENDPOINT"),
    ):
        monkeypatch.setenv("HF_TOKEN", token)
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        with pytest.raises(StorageError, match=message):
            share(edit, "org/x", options=OPTIONS)
    assert ("model", "org/x") not in near_hub.repos
    monkeypatch.setattr(constants, "ENDPOINT", near_hub.url)
    near_hub.repos["model", "org/taken"] = taken = Repo(False)
    taken.add("main", "mine", {"thesis.tex": near_hub.store(b"my thesis", False)})
    with pytest.raises(StorageError, match=r"org/taken exists and holds other content \(thesis\.tex\)"):
        share(edit, "org/taken", options=OPTIONS)
    before = taken.branches["main"]
    assert share(edit, "org/taken", options=OPTIONS, overwrite=True) == f"{near_hub.url}/org/taken"
    assert {"README.md", "delta.json", "delta.safetensors"} == set(near_hub.files("org/taken")) - {".gitattributes"}
    assert near_hub.files("org/taken", revision=before)["thesis.tex"] == b"my thesis"  # history keeps it
    assert not any(token in caplog.text for token in (TOKEN, READER, "hf_wrong"))
