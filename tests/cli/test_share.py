"""`seesaw-cf share` as a user meets it: an edit of a finished run as a repository of the loopback Hub, in each form."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import HfApi, ModelCard
from transformers import AutoModelForCausalLM, AutoTokenizer

from seesaw_cf.cli import main
from seesaw_cf.models.weights import applied
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.workers import run_job
from seesaw_cf.scoring import HFScorer
from seesaw_cf.sharing import load_delta
from seesaw_cf.sharing.card import SCORES_FILE, WARNING
from seesaw_cf.types import Cloze
from tests.hub_routes import Blob, Refusal
from tests.hub_server import TOKEN, Hub
from tests.runner import small
from tests.tokenizer_styles import TEXTS, byte_level

# huggingface_hub uploads large files by an old name of httpx's.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

SETTINGS = {
    "ft": {"layers": [1], "steps": 1, "weight_decay": 1.0},  # of all weights: the change has full rank
    "memit": {"layers": [0], "steps": 3, "moment_weight": 1.0, "context_templates": ["{}"]},
}
CLOZES = [("Marie Curie was born in", "London"), ("The mother tongue of Ada Lovelace was", "Polish")]
FILES = {
    "delta": {"delta.json", "delta.safetensors"},
    "adapter": {"adapter_config.json", "adapter_model.safetensors", "seesaw_cf.json"},
    "checkpoint": {"config.json", "model.safetensors", "tokenizer.json", "seesaw_cf.json"},
}

LOAD = """
import contextlib, json, sys
from transformers import AutoTokenizer
from seesaw_cf.scoring import HFScorer
from seesaw_cf.types import Cloze
programs, clozes = json.loads(sys.argv[1])
for program in programs:
    names = {}
    exec(program, names)  # what the card says
    edited = names["applied"](names["model"], names["delta"]) if "delta" in names else contextlib.nullcontext()
    with edited:
        model = names.get("edited") or names["model"]
        tokenizer = names.get("tokenizer") or AutoTokenizer.from_pretrained("org/base")
        scorer = HFScorer(model.eval(), tokenizer, strict=True)
        print(json.dumps([score.logprob for score in scorer.score([Cloze(*cloze) for cloze in clozes])]))
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `base`, a small model, and `run`, two cases edited by MEMIT and by one step of fine-tuning."""
    folder = tmp_path_factory.mktemp("share")
    small.save(folder / "base")
    (folder / "corpus.txt").write_text("\n".join(TEXTS))
    editors: Any = {"editors": tuple(SETTINGS), "editor_config": SETTINGS, "corpus": folder / "corpus.txt"}
    asked: Any = {"controls": ("none",), "configs": ("cross_subject",), "limit": 2, "device": "cpu"}
    job = Job(str(folder / "base"), **editors, **asked)
    run_job(job, folder / "run", keep_deltas=True, progress=False)
    return folder


def unit(place: Path, editor: str) -> str:
    return sorted(folder.name for folder in (place / "run" / "deltas" / editor).iterdir())[0]


def words(place: Path, form: str, editor: str = "memit") -> list[str]:
    chosen = ["--editor", editor, "--unit", unit(place, editor), "--base-model", "org/base"]
    return ["share", str(place / "run"), "--repo", f"org/{form}", "--form", form, *chosen]


@pytest.mark.slow
@pytest.mark.parametrize("form", FILES)
def test_the_repository_says_what_was_edited_and_measured(
    form: str, place: Path, near_hub: Hub, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(words(place, form)) == 0
    said = capfd.readouterr()
    assert said.out == f"{near_hub.url}/org/{form}\n"
    files = near_hub.files(f"org/{form}")
    assert files.keys() >= FILES[form] | {"README.md"}
    assert not any(name.endswith((".pt", ".bin", ".pkl")) for name in files)
    text = files["README.md"].decode()
    assert WARNING in text
    (tmp_path / "README.md").write_bytes(files["README.md"])
    data = ModelCard.load(tmp_path / "README.md").data
    facts = json.loads(files["delta.json" if form == "delta" else "seesaw_cf.json"])
    assert (data.base_model, facts["base"]["model_id"], facts["editor"]) == ("org/base", "org/base", "memit")
    assert facts["config"]["steps"] == SETTINGS["memit"]["steps"]
    assert f"| {facts['requests'][0]['subject']} |" in text
    assert "`efficacy`" in text
    assert "`other_people_new`" in text
    rows = [json.loads(line) for line in files[SCORES_FILE].decode().splitlines()]
    assert {row["editor"] for row in rows} == {"memit"}
    assert len({row["case_id"] for row in rows}) == 1
    for content in (said.out, said.err, *(content.decode(errors="replace") for content in files.values())):
        assert TOKEN not in content
        assert str(place) not in content


@pytest.mark.slow(15)
def test_a_fresh_process_loads_each_form_as_its_card_says(place: Path, near_hub: Hub, tmp_path: Path) -> None:
    HfApi().create_repo("org/base")
    HfApi().upload_folder(repo_id="org/base", folder_path=place / "base")
    model: Any = AutoModelForCausalLM.from_pretrained(place / "base")
    scorer = HFScorer(model.eval(), AutoTokenizer.from_pretrained(place / "base"), strict=True)
    clozes = [Cloze(*cloze) for cloze in CLOZES]
    plain = [score.logprob for score in scorer.score(clozes)]
    with applied(model, load_delta(place / "run" / "deltas" / "memit" / unit(place, "memit"), model)):
        edited = [score.logprob for score in scorer.score(clozes)]
    assert max(abs(a - b) for a, b in zip(plain, edited, strict=True)) > 1e-2
    assert [main(words(place, form)) for form in FILES] == [0, 0, 0]
    cards = [near_hub.files(f"org/{form}")["README.md"].decode() for form in FILES]
    programs = [card.split("```python\n")[1].split("```")[0] for card in cards]
    command = [sys.executable, "-c", LOAD, json.dumps([programs, CLOZES])]
    done = subprocess.run(
        command, env=near_hub.environment(None, tmp_path / "reader"), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    for form, line in zip(FILES, done.stdout.splitlines(), strict=True):
        assert json.loads(line) == pytest.approx(edited, abs=1e-4), form


@pytest.mark.slow
def test_an_upload_that_breaks_off_is_explained(
    place: Path, near_hub: Hub, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    store = near_hub.store

    def full(content: bytes, lfs: bool) -> Blob:
        if lfs:
            raise Refusal(422)
        return store(content, lfs)

    monkeypatch.setattr(near_hub, "store", full)
    assert main(words(place, "delta")) == 1
    assert "did not take the files of org/delta (HfHubHTTPError). Check the network" in capfd.readouterr().err
    assert near_hub.files("org/delta").keys() == {".gitattributes"}


@pytest.mark.slow
@pytest.mark.parametrize("form", ["adapter", "checkpoint"])
def test_a_base_that_changed_since_the_run_is_refused(
    form: str, place: Path, near_hub: Hub, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What was measured is what is shared, or nothing."""
    other = small.model()
    other.model.layers[0].mlp.down_proj.weight.data += 1
    other.save_pretrained(tmp_path / "base")
    byte_level(bos=False).save_pretrained(tmp_path / "base")
    folder = tmp_path / "edit"
    folder.mkdir()
    for file in (place / "run" / "deltas" / "memit" / unit(place, "memit")).iterdir():
        text = file.read_bytes()
        (folder / file.name).write_bytes(text.replace(str(place).encode(), str(tmp_path).encode()))
    assert main(["share", str(folder), "--repo", "org/x", "--form", form, "--base-model", "org/base"]) == 1
    assert re.search(r"this delta was made on .* with fingerprint .*Load that base", capfd.readouterr().err)
    assert not near_hub.log
