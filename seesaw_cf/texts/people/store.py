"""A study in one file of SQLite: items and tasks, which never change, and a log of what raters did, which grows.

The order of the log decides, never a clock. An entry is on the disk before the rater is answered (WAL,
`synchronous=FULL`), and triggers refuse to change or delete one.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, astuple, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.files import atomic_path
from seesaw_cf.texts.people.study import RatingItem, RatingStudy, RatingTask, plain_item, plain_study

FORMAT = 1
_TABLES = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE items (id TEXT PRIMARY KEY, content TEXT NOT NULL);
CREATE TABLE tasks (rater TEXT, position INTEGER, item TEXT NOT NULL, role TEXT NOT NULL, first TEXT NOT NULL,
  PRIMARY KEY (rater, position));
CREATE TABLE log (seq INTEGER PRIMARY KEY AUTOINCREMENT, entry TEXT NOT NULL UNIQUE, rater TEXT NOT NULL,
  act TEXT NOT NULL, position INTEGER NOT NULL, content TEXT NOT NULL, form TEXT NOT NULL, at TEXT NOT NULL,
  seconds REAL);
CREATE INDEX log_of_task ON log (rater, position, seq);
CREATE TRIGGER log_is_kept BEFORE DELETE ON log BEGIN SELECT RAISE(ABORT, 'the log only grows'); END;
CREATE TRIGGER log_is_final BEFORE UPDATE ON log BEGIN SELECT RAISE(ABORT, 'the log only grows'); END;
"""
_COLUMNS = "rater, act, position, content, form, seconds, at, entry, seq"  # as the fields of `Entry`


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that a rater did.

    Attributes:
        rater: Who.
        act: "consent", "draft", "answer", "submit", or "late": an answer after the rater had submitted; it is kept and
            does not count.
        position: Of the task; 0 for what is about none.
        content: The answer.
        form: The page that it was sent from; what is sent twice is kept once.
        seconds: Since that page was shown, where that is known. Never a difference of clock times.
        at: Wall clock, UTC; for people to read, nothing depends on it.
        entry: Names the entry in every copy of the file.
        seq: Its place in this file; 0 = not stored yet.
    """

    rater: str
    act: str
    position: int = 0
    content: Any = None
    form: str = ""
    seconds: float | None = None
    at: str = ""
    entry: str = ""
    seq: int = 0


def create_study(
    path: Path,
    study: RatingStudy,
    items: Iterable[RatingItem],
    tasks: Iterable[RatingTask],
    *,
    secret: str = "",
    log: Sequence[Entry] = (),
) -> None:
    """Write a new file whole or not at all; only its owner may read it.

    Args:
        path: The file; it must not exist.
        study, items, tasks: What it is made of.
        secret: What links are made from; drawn when empty.
        log: Entries to begin with, in order.

    Raises:
        StorageError: It exists, or cannot be written.
    """
    if path.exists():
        raise StorageError(f"{path} exists; it may hold answers. Name another file.")
    with atomic_path(path) as temporary, _file_errors(path):
        temporary.chmod(0o600)  # the links' secret and people's answers: for nobody else on the machine
        with closing(sqlite3.connect(temporary)) as base:
            base.executescript(_TABLES)
            facts = {"format": FORMAT, "study": asdict(study), "secret": secret or secrets.token_hex(32)}
            base.executemany("INSERT INTO facts VALUES (?, ?)", [(key, _json(value)) for key, value in facts.items()])
            base.executemany("INSERT INTO items VALUES (?, ?)", [(item.id, _json(asdict(item))) for item in items])
            base.executemany("INSERT INTO tasks VALUES (?, ?, ?, ?, ?)", map(astuple, tasks))
            for entry in log:
                _insert(base, entry)
            base.commit()


class StudyStore:
    """An open study. One connection behind a lock: raters are slower than a disk.

    Attributes:
        path: The file.
        study: What holds for every item.
        secret: What links are made from.
        items: Id -> item.
        tasks: Rater -> tasks in order.
    """

    def __init__(self, path: Path, *, readonly: bool = False) -> None:
        """Open a file.

        Args:
            path: The file.
            readonly: Nothing is ever written, not even when the program is wrong.

        Raises:
            StorageError: It is not there or cannot be read.
            RecordError: It is not a study, or one of another version.
        """
        if not path.is_file():
            raise StorageError(f"{path}: no such file. Make it with `seesaw-cf annotate make`.")
        self.path, self._lock, self._inode = path, threading.Lock(), _inode(path)
        with _file_errors(path):
            self._base = _connection(path, "ro")
            tables = {name for (name,) in self._base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not tables >= {"facts", "items", "tasks", "log"}:
                raise sqlite3.DatabaseError(f"tables {sorted(tables)}, expected facts, items, tasks and log")
            facts = {name: json.loads(value) for name, value in self._base.execute("SELECT name, value FROM facts")}
            if facts.get("format") != FORMAT:
                raise RecordError(
                    f"{path}: format {facts.get('format')!r}, expected {FORMAT}. Use the version that made it."
                )
            self.study, self.secret = plain_study(facts["study"]), str(facts["secret"])
            rows = self._base.execute("SELECT content FROM items ORDER BY rowid")
            self.items = {item.id: item for item in (plain_item(json.loads(content)) for (content,) in rows)}
            self.tasks: dict[str, list[RatingTask]] = {rater: [] for rater in self.study.raters}
            for row in self._base.execute(
                "SELECT rater, position, item, role, first FROM tasks ORDER BY rater, position"
            ):
                self.tasks[row[0]].append(RatingTask(*row))
            if not readonly:  # what is no study was refused above, before anything is written to it
                self._base.close()
                self._base = _connection(path, "rw")
                self._base.execute("PRAGMA journal_mode=WAL")
                self._base.execute("PRAGMA synchronous=FULL")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the last one folds the log of changes into the file, so that it moves as one."""
        with self._lock:
            self._base.close()

    def entries(self, rater: str | None = None) -> list[Entry]:
        """Return the log, or the part of it that is about one rater, in order."""
        where, values = ("WHERE rater = ?", (rater,)) if rater is not None else ("", ())
        with self._lock, _file_errors(self.path):
            rows = self._base.execute(f"SELECT {_COLUMNS} FROM log {where} ORDER BY seq", values).fetchall()
        return [_entry(row) for row in rows]

    def add(self, entry: Entry) -> Entry:
        """Write an entry; when it returns, the entry is on the disk.

        What was sent twice from one form is kept once. An answer after "submit" becomes "late".

        Raises:
            StorageError: The disk is full, the file is gone or cannot be written; nothing was stored.
        """
        with self._lock, _file_errors(self.path):
            self._check_place()
            try:
                self._base.execute("BEGIN IMMEDIATE")
                stored = self._find(entry) or self._written(entry)
                self._base.commit()
            except BaseException:
                self._base.rollback()
                raise
        return stored

    def _check_place(self) -> None:
        """Refuse to write to a file that was moved or deleted meanwhile: what is written would be lost."""
        if _inode(self.path) != self._inode:
            raise StorageError(
                f"{self.path}: the file was moved, deleted or replaced while it was in use; nothing more is written to "
                "it. Stop the server, put the file back with the files beside it (-wal), and start again."
            )

    def _find(self, entry: Entry) -> Entry | None:
        row = self._base.execute(
            f"SELECT {_COLUMNS} FROM log WHERE rater = ? AND position = ? ORDER BY seq DESC LIMIT 1",
            (entry.rater, entry.position),
        ).fetchone()
        last = _entry(row) if row else None
        same = last and (last.act, last.form, last.content) == (entry.act, entry.form, entry.content)
        return last if same else None

    def _written(self, entry: Entry) -> Entry:
        submitted = self._base.execute(
            "SELECT 1 FROM log WHERE rater = ? AND act = 'submit' LIMIT 1", (entry.rater,)
        ).fetchone()
        act = "late" if submitted and entry.act in ("answer", "draft") else entry.act
        return _insert(self._base, replace(entry, act=act, at=_now(), entry=secrets.token_hex(12)))


def _connection(path: Path, mode: str) -> sqlite3.Connection:
    address = f"file:{quote(str(path.absolute()))}?mode={mode}"
    return sqlite3.connect(address, uri=True, check_same_thread=False, timeout=20)


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _insert(base: sqlite3.Connection, entry: Entry) -> Entry:
    cursor = base.execute(
        "INSERT INTO log (entry, rater, act, position, content, form, at, seconds) "
        "VALUES (:entry, :rater, :act, :position, :content, :form, :at, :seconds)",
        asdict(entry) | {"content": _json(entry.content)},
    )
    return replace(entry, seq=cursor.lastrowid or 0)


def _entry(row: Sequence[Any]) -> Entry:
    rater, act, position, content, *more = row
    return Entry(rater, act, position, json.loads(content), *more)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """Raise SQLite's errors as this package's while the block runs."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StorageError(
            f"{path}: {error}. What was stored before is there; free some space, or check who may write the file and "
            "its folder, and try again."
        ) from error
    except (sqlite3.DatabaseError, json.JSONDecodeError, KeyError, TypeError) as error:
        raise RecordError(
            f"{path}: not the file of a study ({error}). Make it with `seesaw-cf annotate make`."
        ) from error
