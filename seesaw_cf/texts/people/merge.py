"""One study from the copies of its file that were served on several machines.

Every entry of every log is kept. Where two copies end with different answers of one rater to one item, and neither
knows the other's, no clock decides: it is a conflict, it is named, and who runs the study decides which copy counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from seesaw_cf.base.errors import RecordError
from seesaw_cf.texts.people.store import Entry, StudyStore, create_study
from seesaw_cf.texts.people.study import Answer

_Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Different answers of one rater to one task.

    Attributes:
        rater, position, item: Which.
        answers: File -> the answer that counts in it.
    """

    rater: str
    position: int
    item: str
    answers: Mapping[str, Answer]

    def __str__(self) -> str:
        """Which answers stand against each other."""
        answers = "; ".join(f"{file} has {_differing(self.answers, file)}" for file in self.answers)
        return f"{self.rater}/{self.position} (item {self.item}): {answers}"

    @property
    def names(self) -> tuple[str, ...]:
        """What a preference may call it: everything, its item, its rater, the one task of that rater."""
        return "", self.item, self.rater, f"{self.rater}/{self.position}"


@dataclass(frozen=True, slots=True)
class Merged:
    """What became one.

    Attributes:
        entries: In the merged log.
        new: File -> entries that no file before it has.
        conflicts: What differed -> the file that counts.
    """

    entries: int
    new: Mapping[str, int]
    conflicts: Mapping[str, str]


def merge_studies(files: Sequence[Path], out: Path, *, prefer: Mapping[str, Path] = MappingProxyType({})) -> Merged:
    """Write a study with the logs of all files. One file alone gives a whole copy of it, also while it is served.

    Args:
        files: Copies of one study.
        out: The file to write; it must not exist.
        prefer: Item, rater, or "RATER/TASK" -> which of the files counts where they are in conflict about it; the
            narrowest decides. "" = about everything else.

    Raises:
        RecordError: Files of different studies; a conflict that `prefer` does not decide, or decides by a file that has
            none of the answers; a preference about what is not in conflict. Every one is named.
        StorageError: A file cannot be read, or `out` exists.
    """
    for file in prefer.values():
        if file not in files:
            raise RecordError(
                f"{file}: not among the files to merge ({', '.join(map(str, files))}). Prefer one of them."
            )
    ordered = sorted(files, key=lambda file: file == prefer.get(""))  # of drafts the last one is shown
    with ExitStack() as opened:
        stores = [opened.enter_context(StudyStore(file, readonly=True)) for file in ordered]
        _check_same(stores)
        logs = {str(store.path): store.entries() for store in stores}
        conflicts = conflicts_of(logs, stores[0])
        decided = _decided(conflicts, prefer)
        merged: dict[str, Entry] = {}
        new = {}
        for name, log in logs.items():
            fresh = [entry for entry in log if entry.entry not in merged]
            merged |= {entry.entry: entry for entry in fresh}
            new[name] = len(fresh)
        items = list(stores[0].items.values())
        tasks = [task for own in stores[0].tasks.values() for task in own]
        create_study(out, stores[0].study, items, tasks, secret=stores[0].secret, log=_log(logs, merged, decided))
    return Merged(
        len(merged), new, {str(conflict): decided[conflict.rater, conflict.position] for conflict in conflicts}
    )


def _check_same(stores: Sequence[StudyStore]) -> None:
    first = stores[0]
    for store in stores[1:]:
        if (store.study, store.secret, store.tasks) != (first.study, first.secret, first.tasks):
            raise RecordError(
                f"merge: {store.path} is study {store.study.id}, {first.path} is study {first.study.id}, expected "
                "copies of one. Merge the tables of `annotate export` instead."
            )


def _decided(conflicts: Sequence[Conflict], prefer: Mapping[str, Path]) -> dict[_Place, str]:
    """Return task -> the file that counts."""
    names = {name for conflict in conflicts for name in conflict.names}
    if unknown := [what for what in prefer if what and what not in names]:
        raise RecordError(
            f"merge: {', '.join(unknown)}: nothing of that name is in conflict. Expected an item, RATER, or RATER/TASK "
            f"of {'; '.join(map(str, conflicts)) or 'a conflict, and there is none'}."
        )
    files, left = {}, []
    for conflict in conflicts:
        file = next((str(prefer[name]) for name in reversed(conflict.names) if name in prefer), "")
        files[conflict.rater, conflict.position] = file
        if file not in conflict.answers:
            left.append(f"{conflict}{f'; {file}, which is preferred, has none of these' if file else ''}")
    if left:
        named = "\n  ".join(left)
        raise RecordError(
            f"merge: {len(left)} answers differ between the files, and no clock decides:\n  {named}\nNothing was "
            "written. Say which file counts, all answers are kept in the log: --prefer FILE for all, --prefer "
            f"{conflicts[0].names[-1]}=FILE for one of them; before the = may stand an item or a rater, too."
        )
    return files


def conflicts_of(logs: Mapping[str, Sequence[Entry]], store: StudyStore) -> list[Conflict]:
    """Return tasks with different final answers in files that were made independently.

    Args:
        logs: File -> its log.
        store: For the items of tasks.
    """
    conflicts = []
    for (rater, position), ends in sorted(_ends(logs).items()):
        if len({str(entry.content) for entry in ends.values()}) > 1:
            answers = {name: entry.content for name, entry in ends.items()}
            conflicts.append(Conflict(rater, position, store.tasks[rater][position - 1].item, answers))
    return conflicts


def _ends(logs: Mapping[str, Sequence[Entry]]) -> dict[_Place, dict[str, Entry]]:
    """Return task -> file -> its last answer, without those that another file has corrected."""
    last: dict[_Place, dict[str, Entry]] = {}
    for name, log in logs.items():
        for entry in log:
            if entry.act == "answer":
                last.setdefault((entry.rater, entry.position), {})[name] = entry
    ids = {name: {entry.entry for entry in log} for name, log in logs.items()}

    def corrected(name: str, own: Mapping[str, Entry]) -> bool:
        """Return whether another file has its last answer and ends with one that it does not know."""
        return any(own[name].entry in ids[file] and end.entry not in ids[name] for file, end in own.items())

    # Where each corrects another, in a circle, nothing is decided: all stay.
    return {
        place: {name: end for name, end in own.items() if not corrected(name, own)} or own
        for place, own in last.items()
    }


def _log(logs: Mapping[str, Sequence[Entry]], by_id: Mapping[str, Entry], decided: Mapping[_Place, str]) -> list[Entry]:
    """Return all entries; within a task, those of the file that decides it come last, in that file's order."""
    own, merged = {name: _by_place(log) for name, log in logs.items()}, _by_place(by_id.values())
    for place, ends in _ends(logs).items():
        # Of files with the same answer, the one that has more about the task: perhaps a draft since.
        decides = max(ends, key=lambda name: (name == decided.get(place), len(own[name][place])))
        tail = {entry.entry: entry for entry in own[decides][place]}
        merged[place] = [entry for entry in merged[place] if entry.entry not in tail] + list(tail.values())
    turns = {place: iter(entries) for place, entries in merged.items()}
    return [next(turns[entry.rater, entry.position]) for entry in by_id.values()]


def _by_place(entries: Iterable[Entry]) -> dict[_Place, list[Entry]]:
    by_place: dict[_Place, list[Entry]] = {}
    for entry in entries:
        by_place.setdefault((entry.rater, entry.position), []).append(entry)
    return by_place


def _differing(answers: Mapping[str, Answer], file: str) -> str:
    """Return the parts of one answer that differ from any other."""
    others = [answer for name, answer in answers.items() if name != file]
    own = {key: value for key, value in answers[file].items() if any(value != other.get(key) for other in others)}
    return f"{own!r:.200}"
