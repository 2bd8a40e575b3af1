"""`seesaw-cf share --moments` as a user meets it: computed, published on the loopback Hub, used by a run; bad input."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from safetensors import SafetensorError

from seesaw_cf.cli import main
from seesaw_cf.editors import tensor_files
from seesaw_cf.editors.locate.moments import moment_files
from seesaw_cf.editors.memit import MEMIT, MEMITConfig
from seesaw_cf.editors.tensor_files import load_facts
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


def words(place: Path) -> list[str]:
    """The command that computes moments of three layers of the embedded model."""
    corpus = ["--corpus", str(place / "texts.txt"), "--tokens", "2000"]
    return ["share", "seesaw-tiny", "--moments", *corpus, "--layers", "2", "0", "1"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a corpus and, in `cache`, moments from some of it."""
    place = tmp_path_factory.mktemp("moments")
    (place / "texts.txt").write_text("\n".join(sample_corpus(120)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SEESAW_CF_CACHE", str(place / "cache"))
        assert main(words(place)) == 0
    return place


def folder_of(cache: Path) -> Path:
    """The folder of the moments in a cache."""
    (folder,) = (path for path in (cache / "second_moments").iterdir() if path.is_dir())
    return folder


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
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no token"))
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        yield server


def said(capsys: pytest.CaptureFixture[str], *command: str, fails: bool = False) -> str:
    """What a command says, on stdout or as its error."""
    capsys.readouterr()
    assert main(list(command)) == int(fails)
    out, err = capsys.readouterr()
    return err if fails else out


@pytest.mark.slow
def test_computed_published_and_used(
    hub: Hub, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ours = moment_files(folder_of(tmp_path / "cache"))
    assert list(ours) == [0, 1, 2]
    facts = load_facts(ours[0])
    assert facts["n_tokens"] in range(2000, 2256)
    time = ours[0].stat().st_mtime_ns
    out = said(capsys, *words(made), "--repo", REPO)
    assert f"use them with `--moments {ours[0].parent}`" in out
    assert said(capsys, *words(made), "--repo", REPO)
    assert ours[0].stat().st_mtime_ns == time, "found in the cache"
    assert hub.repos["dataset", REPO].private
    assert len(hub.repos["dataset", REPO].commits) == 2  # the second push changed nothing
    files = hub.files(REPO, "dataset")
    assert set(files) == {".gitattributes", "README.md", *(f"layer-{n}.safetensors" for n in range(3))}
    card = files["README.md"].decode()
    for shown in (facts["model"], facts["texts"], "seesaw-tiny", "texts.txt", "float32", "0, 1, 2"):
        assert shown in card.replace("&#45;", "-").replace("&#46;", ".")
    assert str(tmp_path) not in card + str(facts)
    assert str(made) not in card + str(facts)

    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "other"))
    monkeypatch.setenv("HF_TOKEN", READER)
    job = Job(
        "seesaw-tiny",
        editors=("memit", "ft"),
        controls=("identity",),
        moments=REPO,
        limit=1,
        device="cpu",
        data="sample",
    )
    run = make_run(job, tmp_path / "run")
    recorded = run.manifest.data["moments"]
    assert isinstance(recorded, dict)
    assert set(recorded) == {"memit"}
    assert recorded["memit"] == {
        **{name: facts[name] for name in ("texts", "n_texts", "n_tokens")},
        "corpus": "texts.txt",
        "revision": hub.repos["dataset", REPO].branches["main"],
    }
    editor = run.editors["memit"].fit(run.model, run.tokenizer)
    assert isinstance(editor, MEMIT)
    assert editor.fitted is not None
    assert torch.equal(editor.fitted.moments[0].matrix, tensor_files.load_tensors(ours[0])[0]["matrix"])
    assert editor.fitted.facts()["moments_from"] == recorded["memit"]


def test_other_models_layers_and_types_are_refused(made: Path) -> None:
    name = str(folder_of(made / "cache"))
    model, tokenizer = load_model("seesaw-tiny", dtype="float64")
    editor = MEMIT(MEMITConfig(layers=(0,), context_templates=("{}",), moments=name))
    with pytest.raises(StorageError, match=r"is of another dtype: torch\.float32, expected torch\.float64"):
        editor.fit(model, tokenizer)
    model, tokenizer = load_model("seesaw-tiny")
    with torch.no_grad():
        next(model.parameters()).flatten()[0] += 1
    with pytest.raises(StorageError, match=r"of another model: \w{16}, expected \w{16}. .*made with \(seesaw-tiny\)"):
        editor.fit(model, tokenizer)
    model, tokenizer = load_model("seesaw-tiny")
    editor = MEMIT(MEMITConfig(layers=(2, 3), context_templates=("{}",), moments=name))
    with pytest.raises(StorageError, match=r"moments of layers \[0, 1, 2\], expected \[3\] as well\. Compute those"):
        editor.fit(model, tokenizer)
    tokenizer.add_tokens("another")
    editor = MEMIT(MEMITConfig(layers=(2,), context_templates=("{}",), moments=name))
    with pytest.raises(StorageError, match=r"is of another tokenizer: \w{16}"):
        editor.fit(model, tokenizer)
    with pytest.raises(StorageError, match=r"none: no such folder, and no second moments of that name on the Hub"):
        make_run(Job("seesaw-tiny", editors=("memit",), moments="none", device="cpu"), Path("unused"))
    with pytest.raises(StorageError, match=r"no second moments there, expected files layer-N\.safetensors"):
        make_run(Job("seesaw-tiny", editors=("memit",), moments=str(made), device="cpu"), Path("unused"))


@pytest.mark.slow
def test_a_damaged_repository_and_what_the_hub_refuses(
    hub: Hub, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    push = (*words(made), "--repo")
    said(capsys, *push, REPO, "--public")
    assert not hub.repos["dataset", REPO].private
    repo, good = hub.repos["dataset", REPO], hub.files(REPO, "dataset")
    damaged = hub.store(good["layer-1.safetensors"][:-1] + b"\1", False)
    repo.add("main", "changed", {**repo.commits[repo.branches["main"]][1], "layer-1.safetensors": damaged})
    model, tokenizer = load_model("seesaw-tiny")
    editor = MEMIT(MEMITConfig(layers=(1,), context_templates=("{}",), moments=REPO))
    with pytest.raises(StorageError, match=r"layer-1\.safetensors has SHA-256 .*damaged or changed"):
        editor.fit(model, tokenizer)
    assert "holds other content (layer-1.safetensors)" in said(capsys, *push, REPO, fails=True)
    said(capsys, *push, REPO, "--overwrite")
    assert editor.fit(model, tokenizer).fitted is not None
    assert "expected ORG/NAME" in said(capsys, *push, "nobody", fails=True)
    hub.repos["dataset", "org/texts"] = other = Repo(False)
    other.add("main", "texts", {"texts.txt": hub.store(b"a\n", False)})
    assert "holds other content (texts.txt)" in said(capsys, *push, "org/texts", fails=True)
    monkeypatch.setenv("HF_TOKEN", READER)
    assert "this token lacks the right" in said(capsys, *push, "org/new", fails=True)
    monkeypatch.delenv("HF_TOKEN")
    assert "no valid token" in said(capsys, *push, "org/new", fails=True)


@pytest.mark.slow
def test_bad_corpora_and_a_full_disk(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))
    make, corpus = ["share", "seesaw-tiny", "--moments"], ["--corpus", str(made / "texts.txt")]
    short = said(capsys, *make, *corpus, "--layers", "0", "--tokens", "300", fails=True)
    assert "the texts are too short" in short
    assert "has 768 dimensions, so it cannot be inverted" in short
    assert "layers [9] were asked for, expected different numbers from 0 to 4" in " ".join(
        said(capsys, *make, "--layers", "9", fails=True).split()
    )
    assert "ft needs no second moments" in said(capsys, *make, "--editor", "ft", fails=True)

    def full(*_: object, **__: object) -> None:
        raise SafetensorError("I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(tensor_files, "save_file", full)
    message = said(capsys, *make, *corpus, "--layers", "1", "--tokens", "1000", fails=True)
    assert "No space left on device" in message
    assert "set SEESAW_CF_CACHE to a folder on another disk" in message
    assert [file.name for file in (tmp_path / "cache").rglob("*.safetensors")] == ["layer-0.safetensors"]
