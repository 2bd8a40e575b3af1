"""No command writes onto what it reads, or onto what another command made: by the types of its options."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from seesaw_cf.cli import COMMANDS, main, parser
from seesaw_cf.cli.paths import (
    ROLES,
    check_paths,
    name_or_source,
    output_file,
    output_folder,
    own_folder,
    source,
)
from seesaw_cf.errors import StorageError
from tests.report.runs import cases, write_manifest, write_run

PARSER = parser(*COMMANDS)
OUTPUTS = (output_file, output_folder, own_folder)
# Words that only a path has in its help, its name or the name of its value.
PATH = re.compile(r"\b(files?|folders?|Parquet|CSV|JSON|YAML)\b")
PLACE = re.compile(r"FILE|DIR|FOLDER|RUN\d?|TABLE|TASKS|CRAWL|HTML|SHEET|PASSAGES|ROWS|RECORDS|out|json|page|cache")
# `--unit`: a name below the run; a Hub name.
WORDS = {"unit", "base_model"}


def leaves(
    found: argparse.ArgumentParser, chosen: dict[str, str]
) -> Iterator[tuple[dict[str, str], list[argparse.Action]]]:
    """The words of each action of each command, with its options."""
    nested = [action for action in found._actions if isinstance(action, argparse._SubParsersAction)]
    if not nested:
        yield chosen, [action for action in found._actions if action.nargs != 0]
    for action in nested:
        for name, sub in action.choices.items():
            yield from leaves(sub, {**chosen, action.dest: name})


LEAVES = {" ".join(chosen.values()): (chosen, options) for chosen, options in leaves(PARSER, {})}


def named(action: argparse.Action) -> str:
    return action.option_strings[-1] if action.option_strings else action.dest


def test_whatever_names_a_path_says_what_it_is_for() -> None:
    seen = dict.fromkeys(ROLES, 0)
    for leaf, (_, options) in LEAVES.items():
        for action in options:
            place = PLACE.fullmatch(action.dest) or PLACE.fullmatch(str(action.metavar))
            about = action.help if action.type is None else ""
            if place or action.type is Path or (PATH.search(about or "") and action.dest not in WORDS):
                assert action.type in ROLES, f"{leaf} {named(action)}: give it a type of seesaw_cf.cli.paths.ROLES"
            if action.dest in ("out", "json", "page"):
                assert action.type in OUTPUTS, f"{leaf} {named(action)} is written"
            if action.type in seen:
                seen[action.type] += 1
    assert min(seen.values()) >= 2, seen


PAIRS = [
    (leaf, named(read), named(written))
    for leaf, (_, options) in LEAVES.items()
    for read in options
    if read.type in (source, name_or_source)
    for written in options
    if written.type in OUTPUTS
]


def spellings(place: Path) -> dict[str, Path]:
    """Other names of a file or folder."""
    link = place.parent / "link"
    link.symlink_to(place)
    return {"itself": place, "link": link, "other spelling": place.parent / "x" / ".." / place.name}


def given(leaf: str, **values: Path) -> argparse.Namespace:
    """What the parser would hand over."""
    chosen, options = LEAVES[leaf]
    empty = {action.dest: None for action in options}
    by_name = {named(action): action for action in options}
    filled = {
        by_name[name].dest: [place] if by_name[name].nargs in ("+", "*") else place for name, place in values.items()
    }
    return argparse.Namespace(**empty, **chosen) if not filled else argparse.Namespace(**(empty | filled), **chosen)


@pytest.mark.parametrize(("leaf", "read", "written"), PAIRS)
@pytest.mark.parametrize("overwrite", [None, True])
def test_no_output_is_an_input(leaf: str, read: str, written: str, overwrite: bool | None, tmp_path: Path) -> None:
    folder, file = tmp_path / "f", tmp_path / "a.parquet"
    (tmp_path / "x").mkdir()
    folder.mkdir()
    (folder / "part").write_text("1")
    file.write_text("1")
    for place in (folder, file):
        for name, spelling in spellings(place).items():
            args = given(leaf, **{read: place, written: spelling})
            args.overwrite = overwrite
            with pytest.raises(StorageError, match=r"could not write|is a file"):
                check_paths(PARSER, args)
            assert name
        (tmp_path / "link").unlink()
    os.link(folder / "part", tmp_path / "hard")
    if LEAVES[leaf] and next(act for act in LEAVES[leaf][1] if named(act) == written).type is output_file:
        for inside in (folder / "part", tmp_path / "hard"):
            args = given(leaf, **{read: folder, written: inside})
            args.overwrite = overwrite
            with pytest.raises(StorageError, match="could not write"):
                check_paths(PARSER, args)


def test_the_pairs_are_many() -> None:
    assert len(PAIRS) > 60


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = cases(("P27",), 2, 3)
    folder = write_run(tmp_path / "run", made)
    write_manifest(folder, ("memit",), len(made), machine={})
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


Words = Callable[[Path], list[str]]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("report run --out other", "it is a run, study or dataset"),
        ("report run --out other/report", "it lies in"),
        ("report run other --out other/report", "it lies in"),
        ("people export flaws s --out s", "is read by the same command"),
        ("flaws import s/a.csv --rater A --out link --overwrite", "is read by the same command"),
        ("report run --out s/a.csv", "it is a file, expected a folder"),
        ("report run --out run", "is read by the same command"),
        ("run --model seesaw-tiny --editor rome --out new --report new", "is named twice"),
        ("flaws validate run/edits.parquet --judge j --out run", "it is a run, study or dataset"),
        ("flaws validate missing --judge j --out notes.txt", "it is a file, expected a folder"),
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
