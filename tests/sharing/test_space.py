"""A report's page as a static Space: what is pushed is what was looked at, private by default, over real HTTP."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError, StorageError
from seesaw_cf.sharing import share_page
from tests.conftest import ROOT
from tests.hub_server import Hub

TOKEN = "hf_writer_secret"
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


@pytest.mark.slow(60)
def test_a_space_holds_the_page_and_no_token(run: Path, tmp_path: Path) -> None:
    def share(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "seesaw_cf", "share", str(run), "--space", "org/page", *words],
            env={**hub.environment(TOKEN), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    with Hub(tmp_path / "hub", writers=(TOKEN,)) as hub:
        done = share()
        assert done.returncode == 0, done.stderr
        space = hub.repos["space", "org/page"]
        assert space.private
        assert TOKEN not in done.stdout + done.stderr
        assert "/spaces/org/page" in done.stdout
        files = hub.files("org/page", "space")
        assert {"index.html", "README.md"} <= set(files)
        assert files["index.html"] == (run / "report" / "report.html").read_bytes()
        assert b"sdk: static" in files["README.md"]
        assert files["README.md"].count(b"\n---\n") == 1
        (run / "report" / "report.html").write_text("another", encoding="utf-8")
        refused = share()
        assert refused.returncode == 1
        assert "exists and holds other content (index.html)" in refused.stderr
        assert share("--overwrite").returncode == 0
        assert hub.files("org/page", "space")["index.html"] == b"another"
