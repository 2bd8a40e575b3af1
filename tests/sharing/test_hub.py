"""Publishing over real HTTP: pushed once, found by commit; refusals in clear words, no token anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.sharing import save_delta

from ..hub_server import Hub
from .tiny import low_rank_delta, tiny

TOKEN, READER = "hf_writer_secret", "hf_reader_secret"
pytestmark = pytest.mark.slow(30)

PUSH = """
import sys
from seesaw_cf.sharing import ShareOptions, share
for _ in range(2):  # the second time finds its own content and changes nothing
    share(sys.argv[1] + "/edit", "org/delta", options=ShareOptions(base_model="org/base"))
"""

FIND = """
import json
from huggingface_hub import HfApi
from seesaw_cf.errors import StorageError
from seesaw_cf.models.changed import find_changed
newest, first = (commit.commit_id for commit in HfApi().list_repo_commits("org/delta"))
out = {"found": [str(find_changed(name).place) for name in ("org/delta", "org/delta@main", "org/delta@" + newest)]}
for wrong in (first, "nobody"):
    try:
        find_changed("org/delta@" + wrong)
    except StorageError as error:
        out[wrong] = str(error)
print(json.dumps(out | {"commits": [newest, first]}))
"""

TRY = """
import json, logging, os, sys
logging.basicConfig(level=logging.DEBUG)
from huggingface_hub import HfApi, constants
from seesaw_cf.errors import SeesawError
from seesaw_cf.sharing import ShareOptions, share
for token, repo, options, endpoint in json.loads(sys.argv[2]):
    os.environ["HF_TOKEN"] = token
    constants.ENDPOINT = endpoint
    if options.pop("occupy", False):
        HfApi().create_repo(repo)
        HfApi().upload_file(path_or_fileobj=b"my thesis", path_in_repo="thesis.tex", repo_id=repo)
    try:
        print(json.dumps(share(sys.argv[1], repo, options=ShareOptions(base_model="org/base"), **options)))
    except SeesawError as error:
        print(json.dumps(f"{type(error).__name__}: {error}"))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An edit on disk."""
    folder = tmp_path_factory.mktemp("share")
    model = tiny("llama")
    save_delta(low_rank_delta(model, "llama"), folder / "edit", model)
    return folder


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with Hub(tmp_path, writers=(TOKEN,), readers=(READER,)) as server:
        yield server


def run(code: str, *args: str, env: dict[str, str]) -> tuple[list[Any], str]:
    done = subprocess.run([sys.executable, "-c", code, *args], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()], done.stdout + done.stderr


def test_sharing_again_changes_nothing_and_a_fresh_process_finds_each_commit(
    place: Path, hub: Hub, tmp_path: Path
) -> None:
    _, said = run(PUSH, str(place), env=hub.environment(TOKEN, tmp_path / "writer"))
    (loaded,), _ = run(FIND, env=hub.environment(None, tmp_path / "reader"))
    newest, first = loaded["commits"]  # the Hub's own first one, and ours, once
    assert {Path(folder).name for folder in loaded["found"]} == {newest}
    assert "holds none of delta.json" in loaded[first]
    assert loaded["nobody"].startswith("org/delta@nobody: no such folder, and the Hub gives no model of that id")
    files = hub.files("org/delta")
    assert b"counterfactual" in files["README.md"]
    assert not any(TOKEN.encode() in content or str(place).encode() in content for content in files.values())
    assert TOKEN not in said


def test_refusals_say_what_to_do_and_touch_nothing(place: Path, hub: Hub) -> None:
    attempts: list[Any] = [
        (READER, "org/x", {}, hub.url),
        ("hf_wrong", "org/x", {}, hub.url),
        (TOKEN, "org/x", {}, "http://127.0.0.1:9"),
        (TOKEN, "org/taken", {"occupy": True}, hub.url),
        (TOKEN, "org/taken", {"overwrite": True}, hub.url),
    ]
    answers, said = run(TRY, str(place / "edit"), json.dumps(attempts), env=hub.environment())
    reader, nobody, dead, taken, replaced = answers
    assert reader.startswith("StorageError: the Hub refused to take org/x (HTTP 403): this token lacks the right")
    assert "HTTP 401" in nobody
    assert "hf auth login" in nobody
    assert "the Hub did not take the files of org/x (ConnectError)" in dead
    assert "HF_ENDPOINT" in dead
    assert ("model", "org/x") not in hub.repos
    assert taken.startswith("StorageError: org/taken exists and holds other content (thesis.tex)")
    assert replaced == f"{hub.url}/org/taken"
    assert set(hub.files("org/taken")) == {".gitattributes", "README.md", "delta.json", "delta.safetensors"}
    before = list(hub.repo("model", "org/taken").commits)[1]
    assert hub.files("org/taken", revision=before)["thesis.tex"] == b"my thesis"  # history keeps it
    assert not any(token in said for token in (TOKEN, READER, "hf_wrong"))  # at log level DEBUG
