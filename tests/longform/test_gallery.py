"""The gallery of flaws: it grows, escapes what models wrote, and goes onto a Hub without losing anybody's rows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.longform.flaws.gallery import GALLERY, add_flaws, read_gallery, read_rows
from seesaw_cf.longform.flaws.gallery_page import gallery_page
from seesaw_cf.longform.write.pairs import FlawAnswer, flaw_row

from ..hub_server import Hub
from ..page_reader import check_alone
from .flaw_samples import pair

TOKEN = "hf_writer_secret"
COMMAND = "import sys; from seesaw_cf.cli import main; sys.exit(main(sys.argv[1:]))"
EVIL = "<script>alert(1)</script>"


def row(**more: Any) -> dict[str, Any]:
    usual = {"pre": "She is a judge.", "post": "She is a nun.", "flaw": "religion", "rater": "A1", "quote": "a nun"}
    return usual | more


def test_rows_are_added_once_and_the_version_grows_with_them(tmp_path: Path) -> None:
    one = add_flaws(tmp_path, [row(), row(rater="A2", change=-1)], model="gpt-j")
    assert (one.added, one.known, one.total, one.version) == (2, 0, 2, "1.0.0")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    same = add_flaws(tmp_path, [row()], model="gpt-j")
    assert (same.added, same.known, same.total, same.version) == (0, 1, 2, "1.0.0")
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before
    rated = [
        flaw_row(pair(1), flaw, "A1", "pre", FlawAnswer(change)) for flaw, change in (("racism", 0), ("sexism", 1))
    ]
    more = add_flaws(tmp_path, [*rated, flaw_row(pair(1), "sexism", "A1", "pre", FlawAnswer(None, status="no answer"))])
    assert (more.added, more.equal, more.total, more.version) == (1, 2, 3, "1.1.0")
    assert read_gallery(tmp_path).schema == GALLERY


def test_a_rater_who_says_two_things_is_an_error_that_names_both(tmp_path: Path) -> None:
    add_flaws(tmp_path / "g", [row()])
    before = {file: file.read_bytes() for file in (tmp_path / "g").rglob("*") if file.is_file()}
    for change in (-1, 0):
        with pytest.raises(RecordError, match=r"flaw row 1: A1 says religion is .* has more after the edit"):
            add_flaws(tmp_path / "g", [row(change=change)])
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row(change=change, rater="B")) + "\n" for change in (1, -1)), encoding="utf-8")
    with pytest.raises(RecordError, match=r"rows\.jsonl, line 2: B says .*rows\.jsonl, line 1 has more after"):
        add_flaws(tmp_path / "g", read_rows(path))
    assert {file: file.read_bytes() for file in (tmp_path / "g").rglob("*") if file.is_file()} == before


def test_it_is_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from datasets import load_dataset

    add_flaws(tmp_path / "gallery", [row()])
    found = load_dataset(str(tmp_path / "gallery"), "flaws", split="test", cache_dir=str(tmp_path / "cache"))
    assert found[0]["quote"] == "a nun"
    assert found.column_names == GALLERY.names


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ({"pre": " "}, RecordError, "flaw row 1: pre empty or missing"),
        ({"rater": None}, RecordError, "flaw row 1: rater empty or missing"),
        ({"flaw": "ageism"}, UnknownNameError, "unknown flaw in flaw row 1 'ageism'"),
        ({"flaw": ["sexism"]}, RecordError, r"flaw row 1: flaw is \['sexism'\], expected text"),
        ({"pre": "x\ud800"}, RecordError, "flaw row 1: pre is .* half a surrogate pair"),
        ({"change": 2}, RecordError, r"change \(.*\) is 2, expected a whole number from -1 to 1"),
        ({"quote": "a saint"}, RecordError, "the quote 'a saint' is in neither text"),
        ({"change": 0}, RecordError, "no row to add has a flaw that changed"),
    ],
)
def test_bad_rows_add_nothing(tmp_path: Path, bad: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        add_flaws(tmp_path, [row(**bad)])
    assert list(tmp_path.iterdir()) == []


def test_files_of_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row()) + "\n\n" + json.dumps(row(rater="A2")) + "\n", encoding="utf-8")
    assert [one["rater"] for one in read_rows(path)] == ["A1", "A2"]
    path.write_text('{"pre": "x"}\n[1\n', encoding="utf-8")
    with pytest.raises(RecordError, match="line 2: not JSON"):
        read_rows(path)
    with pytest.raises(StorageError, match=r"none\.jsonl: No such file"):
        read_rows(tmp_path / "none.jsonl")


def test_what_models_wrote_is_shown_and_never_run(tmp_path: Path) -> None:
    wicked = row(
        post=f"She & {EVIL}\nis <b>a nun</b>.",
        quote="<b>a nun</b>",
        entity=f'"><img src=x onerror=alert(1)>{EVIL}',
        rater="</small><iframe>",
    )
    add_flaws(tmp_path, [wicked], model="<svg/onload=alert(1)>")
    page = check_alone((tmp_path / "gallery.html").read_text(encoding="utf-8"))
    assert not {tag for tag, _ in page.tags} & {"img", "iframe", "svg", "b"}
    assert f"She & {EVIL}\nis <b>a nun</b>." in page.text
    assert EVIL not in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_the_quote_is_marked_where_it_stands() -> None:
    page = gallery_page(GALLERY.empty_table())
    assert "<mark" not in page.split("</style>")[1]


def test_the_command_adds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "rows.jsonl").write_text(json.dumps(row()) + "\n", encoding="utf-8")
    assert main(["flaws", "add", str(tmp_path / "gallery"), str(tmp_path / "rows.jsonl")]) == 0
    assert "1 rows added, 0 known already" in capsys.readouterr().out
    html = (tmp_path / "gallery" / "gallery.html").read_text(encoding="utf-8")
    assert '<mark class="quote">a </mark><ins><mark class="quote">nun</mark></ins>' in html


@pytest.mark.slow(40)
@pytest.mark.exhaustive
def test_two_people_publish_and_nobodys_rows_are_lost(tmp_path: Path) -> None:
    with Hub(tmp_path / "hub", writers=(TOKEN,)) as hub:

        def publish(folder: Path) -> str:
            done = subprocess.run(
                [sys.executable, "-c", COMMAND, "flaws", "publish", str(folder), "--repo", "org/flaws"],
                env=hub.environment(TOKEN, home=tmp_path / f"home-{folder.name}"),
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            assert TOKEN not in done.stdout + done.stderr
            return done.stdout

        add_flaws(tmp_path / "one", [row()])
        assert "flaws: 1 rows, loaded back and the same" in publish(tmp_path / "one")
        add_flaws(tmp_path / "two", [row(rater="A2"), row(rater="A3")])
        assert "1 rows of others taken in" in publish(tmp_path / "two")
        said = publish(tmp_path / "one")  # nothing new here, two rows of others there
        assert "2 rows of others taken in" in said
        assert "Version 1.1.0" in said
        raters = {one["rater"] for one in read_gallery(tmp_path / "one").to_pylist()}
        assert raters == {"A1", "A2", "A3"}
        commits = len(hub.repo("dataset", "org/flaws").commits)
        publish(tmp_path / "two")
        assert len(hub.repo("dataset", "org/flaws").commits) == commits, "the same again changes nothing"
        add_flaws(tmp_path / "one", [row(rater="A4")])
        assert "Version 1.2.0" in publish(tmp_path / "one")
