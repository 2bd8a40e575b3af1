"""Publishing over real HTTP: push, load in a fresh process, same scores; refusals in clear words, no token anywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from seesaw_cf.sharing import save_delta

from ..hub_server import Hub
from .tiny import VOCABULARY, low_rank_delta, tiny

TOKEN, READER = "hf_writer_secret", "hf_reader_secret"
pytestmark = pytest.mark.slow(30)

SCORE = """
import json, sys
from seesaw_cf.scoring import HFScorer
from seesaw_cf.types import Cloze
CLOZES = [Cloze("w3 w4", "w5"), Cloze("w7", "w9 w11"), Cloze("w20 w21 w22", "w1")]
def scores(model, tokenizer):
    return [s.logprob for s in HFScorer(model.eval(), tokenizer, strict=True).score(CLOZES)]
"""

PUSH = (
    SCORE
    + """
from transformers import AutoModelForCausalLM, AutoTokenizer
from seesaw_cf.sharing import ShareOptions, load_delta, share
from seesaw_cf.models.weights import applied
folder = sys.argv[1]
AutoModelForCausalLM.from_pretrained(folder + "/base").push_to_hub("org/base")
AutoTokenizer.from_pretrained(folder + "/base").push_to_hub("org/base")
model, tokenizer = AutoModelForCausalLM.from_pretrained("org/base"), AutoTokenizer.from_pretrained("org/base")
delta = load_delta(folder + "/edit", model)
for form in ("delta", "adapter", "checkpoint"):
    for _ in range(2):  # the second time finds its own content and changes nothing
        options = ShareOptions(model=model, tokenizer=tokenizer, base_model="org/base")
        share(folder + "/edit", "org/" + form, form, options)
plain = scores(model, tokenizer)
with applied(model, delta):
    print(json.dumps({"plain": plain, "edited": scores(model, tokenizer)}))
"""
)

LOAD = (
    SCORE
    + """
from huggingface_hub import snapshot_download
from peft import PeftModel
from transformers import AutoModelForCausalLM, AutoTokenizer
from huggingface_hub import HfApi
from seesaw_cf.errors import StorageError
from seesaw_cf.models.changed import find_changed
from seesaw_cf.models.weights import applied
from seesaw_cf.sharing import load_delta
model, tokenizer = AutoModelForCausalLM.from_pretrained("org/base"), AutoTokenizer.from_pretrained("org/base")
newest, first = (commit.commit_id for commit in HfApi().list_repo_commits("org/delta"))
out = {"found": [str(find_changed(name).place) for name in ("org/delta", "org/delta@main", "org/delta@" + newest)]}
for wrong in (first, "nobody"):
    try:
        find_changed("org/delta@" + wrong)
    except StorageError as error:
        out[wrong] = str(error)
out["commits"] = [newest, first]
with applied(model, load_delta(snapshot_download("org/delta"), model)):
    out["delta"] = scores(model, tokenizer)
checkpoint = AutoModelForCausalLM.from_pretrained("org/checkpoint")
out["checkpoint"] = scores(checkpoint, AutoTokenizer.from_pretrained("org/checkpoint"))
out["adapter"] = scores(PeftModel.from_pretrained(model, "org/adapter"), tokenizer)
print(json.dumps(out))
"""
)

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
    """A base model with tokenizer and an edit of it, on disk."""
    folder = tmp_path_factory.mktemp("share")
    vocabulary = {f"w{index}": index for index in range(VOCABULARY)}
    raw = Tokenizer(models.WordLevel(vocabulary, unk_token="w0"))
    raw.pre_tokenizer = pre_tokenizers.Whitespace()
    model = tiny("llama")
    model.save_pretrained(folder / "base")
    PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="w0").save_pretrained(folder / "base")
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


def test_push_then_load_in_a_fresh_process_gives_the_same_scores(place: Path, hub: Hub, tmp_path: Path) -> None:
    (pushed,), said = run(PUSH, str(place), env=hub.environment(TOKEN, tmp_path / "writer"))
    (loaded,), _ = run(LOAD, env=hub.environment(None, tmp_path / "reader"))
    newest, first = loaded["commits"]
    assert {Path(folder).name for folder in loaded["found"]} == {newest}
    assert "holds none of delta.json" in loaded[first]  # the Hub's own first commit
    assert loaded["nobody"].startswith("org/delta@nobody: no such folder, and the Hub gives no model of that id")
    assert min(abs(a - b) for a, b in zip(pushed["plain"], pushed["edited"], strict=True)) > 1e-3
    for form in ("delta", "adapter", "checkpoint"):
        assert loaded[form] == pytest.approx(pushed["edited"], abs=1e-4), form
        files = hub.files(f"org/{form}")
        assert b"counterfactual" in files["README.md"]
        assert not any(name.endswith((".pt", ".bin", ".pkl")) for name in files)
        assert not any(TOKEN.encode() in content or str(place).encode() in content for content in files.values())
        assert len(hub.repo("model", f"org/{form}").commits) == 2  # the Hub's own first one, and ours, once
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
