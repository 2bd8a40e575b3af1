"""Publishing over real HTTP: pushed once, found by commit; refusals in clear words, no token anywhere."""

import logging
from pathlib import Path

import pytest
from huggingface_hub import HfApi, constants

from seesaw_cf import Audit
from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError, StorageError
from seesaw_cf.models.changed import find_changed
from seesaw_cf.report import report
from seesaw_cf.sharing import ShareOptions, save_delta, share, share_page

from ..hub_routes import Repo
from ..hub_server import READER, TOKEN, Hub
from ..report.frozen import restore
from .tiny import low_rank_delta, tiny

# huggingface_hub uploads large files by an old name of httpx's.
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")

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


PAGE = '<!doctype html><html><head><title>Side effects of "x": <b></title></head><body>1</body></html>'


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "report").mkdir(parents=True)
    (folder / "report" / "report.html").write_text(PAGE.replace("<b>", "&lt;b&gt;"), encoding="utf-8")
    return folder


def test_without_a_page_the_command_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"no report.html there nor in its folder report. Write it with `seesaw-cf"):
        share_page(tmp_path, "org/page")
    with pytest.raises(RecordError, match=r"repository 'page': expected ORG/NAME"):
        share_page(tmp_path, "page")


def test_options_of_the_two_kinds_do_not_mix(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["share", str(run), "--repo", "org/a", "--space", "org/b"]) == 1
    assert main(["share", str(run)]) == 1
    assert main(["share", str(run), "--repo", "org/a", "--public"]) == 1
    assert "--public is for --space" in capsys.readouterr().err


@pytest.mark.slow
def test_a_space_holds_the_page_and_no_token(run: Path, near_hub: Hub, capfd: pytest.CaptureFixture[str]) -> None:
    words = ["share", str(run), "--space", "org/page"]
    assert main(words) == 0
    said = capfd.readouterr()
    assert TOKEN not in said.out + said.err
    assert "/spaces/org/page" in said.out
    assert near_hub.repos["space", "org/page"].private
    files = near_hub.files("org/page", "space")
    assert files["index.html"] == (run / "report" / "report.html").read_bytes()
    assert b"sdk: static" in files["README.md"]
    assert files["README.md"].count(b"\n---\n") == 1
    (run / "report" / "report.html").write_text("another", encoding="utf-8")
    assert main(words) == 1
    assert "exists and holds other content (index.html)" in capfd.readouterr().err
    assert main([*words, "--overwrite"]) == 0
    assert near_hub.files("org/page", "space")["index.html"] == b"another"


@pytest.mark.slow(30)
def test_an_audit_is_pushed_once_with_its_tables(tmp_path: Path, near_hub: Hub) -> None:
    audit = Audit(report(restore("two_editors", tmp_path / "run")))
    assert audit.push_to_hub("org/audit").endswith("/spaces/org/audit")
    commits = len(near_hub.repos["space", "org/audit"].commits)
    audit.push_to_hub("org/audit")
    assert len(near_hub.repos["space", "org/audit"].commits) == commits, "the same again changes nothing"
    assert near_hub.repos["space", "org/audit"].private
    files = near_hub.files("org/audit", "space")
    assert {"index.html", "README.md", "report.json", "tables/levels.csv"} <= set(files)
    assert b'href="tables/levels.csv"' in files["index.html"]
