"""No command writes onto what it reads, or onto what another command made: by the roles of what it takes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.base.fields import Role
from seesaw_cf.cli import main
from seesaw_cf.cli.parse import Given
from seesaw_cf.cli.paths import check_paths, role_of
from seesaw_cf.errors import StorageError
from tests.cli.commands import ARGUMENTS
from tests.report.runs import cases, write_manifest, write_run


def taken(one: Any) -> Role | None:
    """What an argument's path is for."""
    hint = one.field_info.annotation
    return role_of(hint) or (Role.READ if "Path" in str(hint) else None)


def test_outputs_say_that_they_are_written() -> None:
    for name, found in ARGUMENTS.items():
        for one in found:
            if one.name == "--out":
                assert taken(one) in (Role.FOLDER, Role.OWN), name
    assert len(PAIRS) > 12


PAIRS = [
    (name, read, written)
    for name, found in ARGUMENTS.items()
    for read in found
    if taken(read) is Role.READ
    for written in found
    if taken(written) not in (Role.READ, None)
]


def values(read: Any, place: Path, written: Any, spelling: Path, overwrite: bool | None) -> Iterator[Given]:
    """What the parser would hand over."""
    for one, path in ((read, place), (written, spelling)):
        hint = one.field_info.annotation
        path = str(path) if "Path" not in str(hint) else path  # type: ignore[assignment]
        yield Given(one.field_info.name, hint, (path,) if "tuple" in str(hint) else path, one.index is not None)
    if overwrite is not None:
        yield Given("overwrite", bool, overwrite, False)


@pytest.mark.parametrize(("name", "read", "written"), PAIRS)
@pytest.mark.parametrize("overwrite", [None, True])
def test_no_output_is_an_input(name: str, read: Any, written: Any, overwrite: bool | None, tmp_path: Path) -> None:
    folder, file = tmp_path / "f", tmp_path / "a.parquet"
    (tmp_path / "x").mkdir()
    folder.mkdir()
    (folder / "part").write_text("1")
    file.write_text("1")
    (tmp_path / "link folder").symlink_to(folder)
    (tmp_path / "link file").symlink_to(file)
    same = [(folder, folder), (file, file), (folder, tmp_path / "link folder"), (file, tmp_path / "link file")]
    same += [(folder, tmp_path / "x" / ".." / "f")]
    for place, spelling in same:
        with pytest.raises(StorageError, match=r"could not write|is a file"):
            check_paths(values(read, place, written, spelling, overwrite))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = cases(("P27",), 2, 3)
    folder = write_run(tmp_path / "run", made)
    write_manifest(folder, ("memit",), len(made), machine={})
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("report run --out other", "it is a run, study or dataset"),
        ("report run other --out other/report", "it lies in"),
        ("people export flaws s --out s", "is read by the same command"),
        ("report run --out s/a.csv", "it is a file, expected a folder"),
        ("report run --out run", "is read by the same command"),
        ("audit seesaw-tiny --editor rome --requests s --out s", "is read by the same command"),
        ("texts report --people run/edits.parquet --out run", "it is a run, study or dataset"),
        ("texts report --people s --out notes.txt", "it is a file, expected a folder"),
    ],
)
def test_nothing_of_the_user_is_replaced(
    words: str, message: str, run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(run.parent)
    (run.parent / "s").mkdir()
    (run.parent / "s" / "a.csv").write_text("props")
    other = write_run(run.parent / "other", cases(("P27",), 2, 3))
    write_manifest(other, ("memit",), 2, machine={})
    (other / "report").mkdir()
    (other / "report" / "report.html").write_text("the report of another run")
    Path("notes.txt").write_text("mine")
    Path("link").symlink_to("s/a.csv")
    before = contents(run.parent)
    assert main(words.split()) == 1
    assert message in capsys.readouterr().err
    assert contents(run.parent) == before
