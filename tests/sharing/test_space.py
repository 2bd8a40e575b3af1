"""A report's page as a static Space: what is pushed is what was looked at, private by default, over real HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError, StorageError
from seesaw_cf.sharing import share_page
from tests.hub_server import TOKEN, Hub

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
