"""`seesaw-cf share --moments` as a user meets it: computed, published on the loopback Hub, used by a run; bad input."""

import shutil
from pathlib import Path

import pytest
import torch

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
from tests.hub_server import READER, Hub

# huggingface_hub uploads large files by an old name of httpx's.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

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
def hub(near_hub: Hub, tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """The Hub that this process talks to; the cache is a copy of the one that has the moments."""
    shutil.copytree(made / "cache", tmp_path / "cache")
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))
    return near_hub


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
    assert f"use them with `--moments {ours[0].parent}`" in said(capsys, *words(made), "--repo", REPO)
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
    job = Job("seesaw-tiny", editors=("memit", "ft"), controls=("identity",), moments=REPO, limit=1, device="cpu")
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


@pytest.mark.slow
def test_other_models_layers_and_types_are_refused(made: Path) -> None:
    name = str(folder_of(made / "cache"))
    half, changed, same = (
        load_model("seesaw-tiny", dtype="float64"),
        load_model("seesaw-tiny"),
        load_model("seesaw-tiny"),
    )
    with torch.no_grad():
        next(changed[0].parameters()).flatten()[0] += 1
    for (model, tokenizer), layers, message in (
        (half, (0,), r"is of another dtype: torch\.float32, expected torch\.float64"),
        (changed, (0,), r"of another model: \w{16}, expected \w{16}. .*made with \(seesaw-tiny\)"),
        (same, (2, 3), r"moments of layers \[0, 1, 2\], expected \[3\] as well\. Compute those"),
    ):
        editor = MEMIT(MEMITConfig(layers=layers, context_templates=("{}",), moments=name))
        with pytest.raises(StorageError, match=message):
            editor.fit(model, tokenizer)
    same[1].add_tokens("another")
    with pytest.raises(StorageError, match=r"is of another tokenizer: \w{16}"):
        MEMIT(MEMITConfig(layers=(2,), context_templates=("{}",), moments=name)).fit(*same)
    for place, message in (
        ("none", "none: no such folder, and no second moments"),
        (str(made), "no second moments there"),
    ):
        with pytest.raises(StorageError, match=message):
            make_run(Job("seesaw-tiny", editors=("memit",), moments=place, device="cpu"), Path("unused"))


@pytest.mark.slow
def test_a_damaged_repository_and_what_a_hub_refuses(hub: Hub, made: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
