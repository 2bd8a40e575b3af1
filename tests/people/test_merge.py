"""Copies of a study become one: nothing is lost, and what counts is decided once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.cli import main
from seesaw_cf.errors import RecordError
from seesaw_cf.texts.people.merge import merge_studies
from seesaw_cf.texts.people.progress import standing
from seesaw_cf.texts.people.status import status_of
from seesaw_cf.texts.people.store import Entry, StudyStore

from .studies import R1, R2, answered, study, truth


def test_copies_from_two_machines_become_one(tmp_path: Path) -> None:
    one = answered(study(tmp_path, "flaws"), R1, most=3)
    other = Path(shutil.copy(one, tmp_path / "other.study"))
    answered(other, R2)
    with StudyStore(one) as store:
        task = store.tasks[R1][3]
        store.add(Entry(R1, "answer", 4, truth(store.items[task.item], task), "f"))
    done = merge_studies([one, other], tmp_path / "both.study")
    assert done.conflicts == {}
    with StudyStore(tmp_path / "both.study") as store, StudyStore(one) as first, StudyStore(other) as second:
        assert [found.now.done + 2 for found in status_of(store)] == [4, len(store.tasks[R2])]
        ids = {entry.entry for entry in store.entries()}
        assert ids == {entry.entry for entry in [*first.entries(), *second.entries()]}
        assert store.secret == first.secret


def test_conflicts_are_named_and_decided_by_a_person(tmp_path: Path) -> None:
    one = answered(study(tmp_path, "flaws", training=False), R1, most=2)
    other = Path(shutil.copy(one, tmp_path / "other.study"))
    for file, said in ((one, "A"), (other, "B")):
        with StudyStore(file) as store:
            task = store.tasks[R1][0]
            store.add(Entry(R1, "answer", 1, {**truth(store.items[task.item], task), "sexism": said}, said))
    both = tmp_path / "both.study"
    with pytest.raises(RecordError, match=r"merge: 1 answers differ.*\n  R1-5eed00/1 .*'sexism': 'A'.*'sexism': 'B'"):
        merge_studies([one, other], both)
    assert not both.exists()
    for number, (preferred, right) in enumerate(((one, "A"), (other, "B"))):
        done = merge_studies([one, other], tmp_path / f"{number}.study", prefer={"": preferred})
        assert len(done.conflicts) == 1
        with StudyStore(tmp_path / f"{number}.study") as store:
            log = [entry for entry in store.entries(R1) if entry.position == 1]
            assert log[-1].content["sexism"] == right
            assert {entry.content["sexism"] for entry in log} >= {"A", "B"}, "both are kept"


def test_a_correction_that_knows_the_other_copy_is_no_conflict(tmp_path: Path) -> None:
    one = answered(study(tmp_path, "flaws", training=False), R1, most=1)
    other = Path(shutil.copy(one, tmp_path / "other.study"))
    with StudyStore(other) as store:
        store.add(Entry(R1, "answer", 1, {"sexism": "equal"}, "later"))
    assert merge_studies([other, one], tmp_path / "both.study").conflicts == {}
    with StudyStore(tmp_path / "both.study") as store:
        last = [entry for entry in store.entries(R1) if entry.act == "answer"][-1]
        assert last.content == {"sexism": "equal"}


def _said(file: Path, said: str) -> None:
    with StudyStore(file) as store:
        store.add(Entry(R1, "answer", 1, {"sexism": said}, f"{file.name}{said}"))


def _counts(file: Path) -> Any:
    with StudyStore(file, readonly=True) as store:
        return standing(store, R1).answers[1].content["sexism"]


@pytest.mark.parametrize(("first", "second", "preferred"), [("A", "B", 0), ("A", "BA", 1), ("", "AB", 0)])
def test_merging_again_with_one_of_the_files_changes_nothing(
    tmp_path: Path, first: str, second: str, preferred: int
) -> None:
    one = study(tmp_path, "flaws", training=False)
    _said(one, "equal")
    other, both = Path(shutil.copy(one, tmp_path / "other.study")), tmp_path / "both.study"
    for file, words in ((one, first), (other, second)):
        for said in words:
            _said(file, said)
    merge_studies([one, other], both, prefer={"": (one, other)[preferred]})
    for number, files in enumerate(([one, both], [other, both])):
        assert merge_studies(files, tmp_path / f"{number}.study").conflicts == {}
        assert _counts(tmp_path / f"{number}.study") == _counts(both), files


def test_a_draft_after_the_answer_stays_after_it(tmp_path: Path) -> None:
    one = answered(study(tmp_path, "flaws", training=False), R1, most=1)
    other = Path(shutil.copy(one, tmp_path / "other.study"))
    with StudyStore(one) as store:
        store.add(Entry(R1, "draft", 1, {"sexism": "A"}, "g"))
    merge_studies([one, other], tmp_path / "both.study")
    with StudyStore(tmp_path / "both.study") as store:
        assert standing(store, R1).drafts[1].content == {"sexism": "A"}


def test_merges_that_decided_otherwise_are_in_conflict(tmp_path: Path) -> None:
    one = study(tmp_path, "flaws", training=False)
    other = Path(shutil.copy(one, tmp_path / "other.study"))
    _said(one, "A")
    _said(other, "B")
    files = [tmp_path / "first.study", tmp_path / "second.study"]
    for file, preferred in zip(files, (one, other)):
        merge_studies([one, other], file, prefer={"": preferred})
    with pytest.raises(RecordError, match="merge: 1 answers differ"):
        merge_studies(files, tmp_path / "all.study")
    merge_studies(files, tmp_path / "all.study", prefer={"": files[0]})
    assert _counts(tmp_path / "all.study") == "A"


def test_a_preferred_file_that_says_nothing_decides_nothing(tmp_path: Path) -> None:
    silent = study(tmp_path, "flaws", training=False)
    one, other = (Path(shutil.copy(silent, tmp_path / f"{name}.study")) for name in ("one", "other"))
    _said(one, "A")
    _said(other, "B")
    with pytest.raises(RecordError, match=r"(?s)R1-5eed00/1 .*tasks\.study, which is preferred, has none of these"):
        merge_studies([silent, one, other], tmp_path / "both.study", prefer={"": silent})
    assert not (tmp_path / "both.study").exists()
    merge_studies([silent, one, other], tmp_path / "both.study", prefer={"": one})
    assert _counts(tmp_path / "both.study") == "A"


def test_other_studies_are_not_merged(tmp_path: Path) -> None:
    one, other = study(tmp_path, "flaws", "a.study"), study(tmp_path, "flaws", "b.study")
    with pytest.raises(RecordError, match="expected copies of one"):
        merge_studies([one, other], tmp_path / "c.study")
    with pytest.raises(RecordError, match="not among the files to merge"):
        merge_studies([one], tmp_path / "c.study", prefer={"": other})
    assert merge_studies([one], tmp_path / "c.study").entries == 0


def test_one_task_is_decided_otherwise_than_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = study(tmp_path, "flaws", training=False)
    other = Path(shutil.copy(one, tmp_path / "other.study"))
    for file, said in ((one, "A"), (other, "B")):
        with StudyStore(file) as store:
            for rater, place in ((R1, 1), (R1, 2), (R2, 1)):
                store.add(Entry(rater, "answer", place, {"sexism": said}, f"{said}{place}"))
    words = ["annotate", "merge", str(one), str(other), "--out"]

    def merged(name: str, *preferred: str) -> list[str]:
        prefer = [word for one in preferred for word in ("--prefer", one)]
        assert main([*words, str(tmp_path / name), *prefer]) == 0
        with StudyStore(tmp_path / name, readonly=True) as store:
            found = {rater: standing(store, rater).answers for rater in (R1, R2)}
        return [found[rater][place].content["sexism"] for rater, place in ((R1, 1), (R1, 2), (R2, 1))]

    assert merged("a", str(one), f"{R1}/2={other}") == ["A", "B", "A"]
    assert merged("b", f"{R1}/2={other}", str(one), f"{R1}={other}", f"{R1}/1={one}") == ["A", "B", "A"]
    with StudyStore(one, readonly=True) as store:
        item = store.tasks[R2][0].item
    assert merged("c", str(one), f"{item}={other}")[2] == "B"
    capsys.readouterr()
    assert main([*words, str(tmp_path / "d"), "--prefer", f"{R1}={one}"]) == 1
    assert f"{R2}/1 (item" in capsys.readouterr().err, "only what is still open is named"
    assert main([*words, str(tmp_path / "d"), "--prefer", f"R9={one}"]) == 1
    assert "merge: R9: nothing of that name is in conflict" in capsys.readouterr().err
    assert not (tmp_path / "d").exists()
