"""`seesaw-cf moments` as a user meets it: made, published on the loopback Hub, fetched, used by a run; bad inputs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants
from huggingface_hub.errors import LocalEntryNotFoundError
from safetensors import SafetensorError

from seesaw_cf.base.hub import explained
from seesaw_cf.cli import main
from seesaw_cf.editors.locate import moment_files
from seesaw_cf.editors.locate.moment_sets import find_set, sets, sets_folder
from seesaw_cf.editors.memit import MEMIT, MEMITConfig
from seesaw_cf.errors import StorageError
from seesaw_cf.models import load_model, sample_corpus
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import Job
from tests.hub_routes import Repo
from tests.hub_server import Hub

# huggingface_hub uploads large files by an old name of httpx's.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

TOKEN, READER = "hf_writer_secret", "hf_reader_secret"
REPO = "org/tiny-moments"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and, in `cache`, moments of three layers of the embedded model from some of it."""
    place = tmp_path_factory.mktemp("moments")
    (place / "texts.txt").write_text("\n".join(sample_corpus(120)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEESAW_CF_CACHE", str(place / "cache"))
        words = ["--corpus", str(place / "texts.txt"), "--layers", "2", "0", "1", "--tokens", "2k", "--quiet"]
        words += ["--out", str(place / "copy")]
        assert main(["moments", "make", "--model", "seesaw-tiny", *words]) == 0
    return place


@pytest.fixture
def hub(tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The Hub that this process talks to; the cache is a copy of the one that has the moments."""
    shutil.copytree(made / "cache", tmp_path / "cache")
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))
    with Hub(tmp_path / "hub", writers=(TOKEN,), readers=(READER,)) as server:
        for name, value in {"ENDPOINT": server.url, "HF_HUB_OFFLINE": False, "HF_HUB_DISABLE_XET": True}.items():
            monkeypatch.setattr(constants, name, value)
        address = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace("https://huggingface.co", server.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address)
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no token"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


def said(capsys: pytest.CaptureFixture[str], *words: str, fails: bool = False) -> str:
    """What a command says, on stdout or as its error."""
    capsys.readouterr()
    assert main(["moments", *words]) == int(fails)
    out, err = capsys.readouterr()
    return err if fails else out


def push(*words: str, name: str = "") -> int:
    return main(["moments", "push", name or sets()[0].name, "--repo", REPO, *words])


@pytest.mark.slow
def test_made_published_fetched_and_used(
    hub: Hub, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (ours,) = sets()
    assert ours.layers == (0, 1, 2)
    assert ours.files.outline(0)["n_tokens"] in range(2000, 2256)
    listed = said(capsys, "list")
    assert ours.key in listed
    assert "seesaw-tiny" in listed
    assert "texts.txt, SHA-256" in listed
    assert "layer 2" in listed
    assert push() == push(name=str(made / "copy")) == 0
    assert hub.repos["dataset", REPO].private
    assert len(hub.repos["dataset", REPO].commits) == 2  # the second push changed nothing
    files = hub.files(REPO, "dataset")
    assert set(files) == {".gitattributes", "README.md", "set.json", *(f"layer-{n}.safetensors" for n in range(3))}
    card = files["README.md"].decode()
    record = json.loads(files["set.json"])
    for shown in (record["facts"]["model"], *record["files"].values(), "seesaw&#45;tiny", "texts&#46;txt", "float32"):
        assert str(shown).replace("&#45;", "-") in card
    assert str(tmp_path) not in card + files["set.json"].decode()
    assert record["facts"]["model"] in said(capsys, "list", REPO).replace("\n", "")

    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "other"))
    monkeypatch.setenv("HF_TOKEN", READER)
    assert said(capsys, "list").startswith("no second moments in ")
    fetched = said(capsys, "pull", REPO, "--model", "seesaw-tiny")
    assert f"{REPO} at " in fetched
    assert f"--moments {REPO}" in fetched
    theirs = find_set(REPO)
    assert theirs.folder == tmp_path / "other" / "second_moments" / ours.key
    assert torch.equal(theirs.files.load(1).matrix, ours.files.load(1).matrix)

    job = Job("seesaw-tiny", ("memit", "ft"), ("identity",), moments=REPO, limit=1, device="cpu", data="sample-small")
    run = make_run(job, tmp_path / "run")
    commit = hub.repos["dataset", REPO].branches["main"]
    facts = run.manifest.data["moments"]
    assert isinstance(facts, dict)
    assert set(facts) == {"memit"}
    assert (facts["memit"]["repository"], facts["memit"]["revision"]) == (REPO, commit)
    assert facts["memit"]["corpus"]["source"] == "texts.txt"
    editor = run.editors["memit"].fit(run.model, run.tokenizer)
    assert isinstance(editor, MEMIT)
    assert editor.fitted is not None
    assert torch.equal(editor.fitted.moments[0].matrix, ours.files.load(0).matrix)
    assert editor.fitted.facts()["moments_from"] == theirs.facts()


@pytest.mark.slow
def test_fetched_moments_serve_the_same_texts(hub: Hub, made: Path, tmp_path: Path) -> None:
    """Also those that stopped at a sampling error: they lie where `fit` looks."""
    corpus = ["--corpus", str(made / "texts.txt"), "--layers", "1", "--quiet"]
    before = set(sets_names())
    assert main(["moments", "make", "--model", "seesaw-tiny", *corpus, "--sampling-error", "0.9"]) == 0
    assert main(["moments", "make", "--model", "seesaw-tiny", *corpus]) == 0
    (name,) = set(sets_names()) - before
    assert push("--public", name=name) == 0
    assert not hub.repos["dataset", REPO].private
    shutil.rmtree(tmp_path / "cache")
    assert main(["moments", "pull", REPO]) == 0
    file = find_set(REPO).files.path(1)
    old = file.stat().st_mtime_ns
    assert main(["moments", "make", "--model", "seesaw-tiny", *corpus]) == 0
    assert file.stat().st_mtime_ns == old
    assert len(sets()) == 1


@pytest.mark.slow
def test_of_the_processes_of_a_torchrun_the_first_one_says_what_was_made(
    made: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make = ["make", "--model", "seesaw-tiny", "--editor", "memit", "--corpus", str(made / "texts.txt"), "--quiet"]
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    assert not said(capsys, *make)
    monkeypatch.setenv("RANK", "0")
    assert "use it with `--moments" in said(capsys, *make)


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_damaged_set_is_named_and_the_others_are_listed(
    hub: Hub, text: str, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    whole = sets()[0].key
    (folder := sets_folder() / "damaged").mkdir()
    (folder / "set.json").write_text(text)
    assert main(["moments", "list"]) == 0
    assert whole in capsys.readouterr().out
    assert str(folder / "set.json") in caplog.text
    assert find_set(whole).key == whole


def sets_names() -> list[str]:
    return [found.name for found in sets()]


def test_other_models_layers_and_types_are_refused(hub: Hub, capsys: pytest.CaptureFixture[str]) -> None:
    name = sets()[0].name
    model, tokenizer = load_model("seesaw-tiny", dtype="float64")
    editor = MEMIT(MEMITConfig(layers=(0,), context_templates=("{}",), moments=name))
    with pytest.raises(StorageError, match=r"another model: dtype torch\.float32 of seesaw-tiny, got torch\.float64"):
        editor.fit(model, tokenizer)
    model, tokenizer = load_model("seesaw-tiny")
    with torch.no_grad():
        next(model.parameters()).flatten()[0] += 1
    with pytest.raises(StorageError, match=r"another model: model fingerprint \w{16} of seesaw-tiny, got \w{16} of"):
        editor.fit(model, tokenizer)
    model, tokenizer = load_model("seesaw-tiny")
    editor = MEMIT(MEMITConfig(layers=(2, 3), context_templates=("{}",), moments=name))
    with pytest.raises(StorageError, match=r"are of layers \[0, 1, 2\], expected \[3\] as well\. Make those"):
        editor.fit(model, tokenizer)
    tokenizer.add_tokens("another")
    with pytest.raises(StorageError, match=r"another model: tokenizer \w{16}"):
        editor.fit(model, tokenizer)
    with pytest.raises(StorageError, match=r"moments none: neither a folder with set\.json nor a set on this machine"):
        make_run(Job("seesaw-tiny", ("memit",), moments="none", device="cpu"), Path("unused"))


def change(hub: Hub, file: str, content: bytes) -> None:
    """Puts something else into the newest commit of the repository."""
    repo = hub.repos["dataset", REPO]
    repo.add("main", "changed", {**repo.commits[repo.branches["main"]][1], file: hub.store(content, False)})


def edited_record(hub: Hub, **changes: Any) -> None:
    change(hub, "set.json", json.dumps(json.loads(hub.files(REPO, "dataset")["set.json"]) | changes).encode())


@pytest.mark.slow
def test_damaged_and_foreign_repositories_are_refused(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert push() == 0
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "other"))
    record, good = json.loads(hub.files(REPO, "dataset")["set.json"]), hub.files(REPO, "dataset")
    change(hub, "layer-1.safetensors", good["layer-1.safetensors"][:-1] + b"\1")
    assert "layer-1.safetensors has SHA-256" in said(capsys, "pull", REPO, fails=True)
    # The same with hashes that fit: another layer's file, another key, names and shapes of somebody else.
    change(hub, "layer-1.safetensors", good["layer-2.safetensors"])
    edited_record(hub, files=record["files"] | {"layer-1.safetensors": record["files"]["layer-2.safetensors"]})
    assert "layer 2', expected '" in said(capsys, "pull", REPO, fails=True)
    change(hub, "layer-1.safetensors", good["layer-1.safetensors"])
    edited_record(hub, files=record["files"], facts=record["facts"] | {"model": "0" * 64})
    assert "belongs to" in said(capsys, "pull", REPO, fails=True)
    for changes, message in (
        ({"facts": {}}, "facts.model"),
        ({"part": "../../x"}, "does not describe second moments"),
        ({"files": {"../x.safetensors": ""}, "facts": record["facts"]}, "lists no files layer-N"),
        ({"files": {}, "facts": record["facts"]}, "lists no files layer-N"),
    ):
        edited_record(hub, **{"part": "", **changes})
        assert message in said(capsys, "pull", REPO, fails=True)
    change(hub, "set.json", b"{")
    assert "not JSON" in said(capsys, "pull", REPO, fails=True)
    assert not sets()
    assert not list((tmp_path / "other" / "second_moments").iterdir())


@pytest.mark.slow
def test_what_the_hub_refuses_is_explained(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    name = sets()[0].name
    assert "expected ORG/NAME" in said(capsys, "push", name, "--repo", "nobody", fails=True)
    assert "expected ORG/NAME" in said(capsys, "pull", "../x", fails=True)
    assert "HTTP 404): there is no such repository" in said(capsys, "pull", "org/none", fails=True)
    hub.repos["dataset", "org/texts"] = repo = Repo(False)
    repo.add("main", "texts", {"texts.txt": hub.store(b"a\n", False)})
    assert "data set org/texts: no second moments in it (no set.json)" in said(capsys, "pull", "org/texts", fails=True)
    assert "no second moments in it" in said(capsys, "list", "org/texts", fails=True)
    assert "holds other content (texts.txt)" in said(capsys, "push", name, "--repo", "org/texts", fails=True)
    with (
        pytest.raises(StorageError, match=r"did not answer for org/x .*Nothing was fetched"),
        explained("org/x", reading=True),
    ):
        raise LocalEntryNotFoundError("no connection")
    monkeypatch.setenv("HF_TOKEN", READER)
    assert "this token lacks the right" in said(capsys, "push", name, "--repo", REPO, fails=True)
    monkeypatch.delenv("HF_TOKEN")
    assert "no valid token. Run `hf auth login`" in said(capsys, "push", name, "--repo", REPO, fails=True)
    assert "neither a folder" in said(capsys, "push", "none", "--repo", REPO, fails=True)


@pytest.mark.slow
def test_bad_corpora_and_a_full_disk(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))
    make, corpus = ["make", "--model", "seesaw-tiny", "--quiet"], ["--corpus", str(made / "texts.txt")]
    short = said(capsys, *make, *corpus, "--layers", "0", "--tokens", "300", fails=True)
    assert "the texts are too short" in short
    assert "has 768 dimensions, so it cannot be inverted" in short
    assert "layer 9: LlamaForCausalLM has blocks 0 to 4" in said(capsys, *make, "--layers", "9", fails=True)
    assert "ft needs no second moments" in said(capsys, *make, "--editor", "ft", fails=True)

    def full(*_: object, **__: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(moment_files, "save_file", full)
    message = said(capsys, *make, *corpus, "--layers", "1", "--tokens", "1k", fails=True)
    assert "No space left on device" in message
    assert "set SEESAW_CF_CACHE to a folder on another disk" in message
    assert len(sets()) == 1  # the short one
