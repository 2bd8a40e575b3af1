"""The file of a study: nothing is lost, nothing is changed, and every failure is said."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from seesaw_cf.errors import RecordError, StorageError
from seesaw_cf.texts.people.progress import standing
from seesaw_cf.texts.people.security import Keys
from seesaw_cf.texts.people.store import Entry, StudyStore, create_study

from ..conftest import ROOT
from .studies import R1, R2, study


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return study(tmp_path, "flaws")


def entry(position: int = 1, said: str = "A", form: str = "f", rater: str = R1) -> Entry:
    return Entry(rater, "answer", position, {"sexism": said}, form)


def test_an_answer_sent_twice_is_kept_once_and_a_correction_is_added(file: Path) -> None:
    with StudyStore(file) as store:
        first = store.add(entry())
        assert store.add(entry()) == first
        assert store.add(entry(said="B")).seq > first.seq
        assert store.add(entry(form="g")).seq > first.seq, "the same words from another page are another answer"
        assert [found.content["sexism"] for found in store.entries(R1)] == ["A", "B", "A"]
        assert store.entries(R2) == []


def test_only_the_owner_may_read_the_file(file: Path) -> None:
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_log_only_grows(file: Path) -> None:
    with StudyStore(file) as store:
        store.add(entry())
    base = sqlite3.connect(file)
    for act in ("DELETE FROM log", "UPDATE log SET content = '{}'"):
        with pytest.raises(sqlite3.IntegrityError, match="the log only grows"):
            base.execute(act)
    base.close()


def test_what_comes_after_submission_is_kept_and_does_not_count(file: Path) -> None:
    with StudyStore(file) as store:
        store.add(entry())
        store.add(Entry(R1, "submit"))
        assert store.add(entry(said="B")).act == "late"
        assert store.add(entry(rater=R2)).act == "answer", "others go on"
        assert standing(store, R1).answers[1].content == {"sexism": "A"}


def test_many_writers_lose_nothing(file: Path) -> None:
    with StudyStore(file) as store, StudyStore(file) as second:
        work = [(base, place) for place in range(100) for base in (store, second)]

        def write(own: list[tuple[StudyStore, int]]) -> None:
            for base, place in own:
                base.add(entry(place, form=f"{id(base)}"))

        crowd = [threading.Thread(target=write, args=(work[start::4],)) for start in range(4)]
        for one in crowd:
            one.start()
        for one in crowd:
            one.join()
        assert len(store.entries()) == 200
        assert len({found.entry for found in store.entries()}) == 200


def test_a_killed_process_loses_nothing_that_it_had_confirmed(file: Path) -> None:
    code = """
import sys
from pathlib import Path
from seesaw_cf.texts.people.store import Entry, StudyStore
store = StudyStore(Path(sys.argv[1]))
place = 0
while True:
    place += 1
    store.add(Entry("R1", "answer", place, {"sexism": "A"}, "f"))
    print(place, flush=True)
"""
    words = [sys.executable, "-c", code, str(file)]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ) as process:
        assert process.stdout
        confirmed = [int(process.stdout.readline()) for _ in range(30)][-1]
        process.send_signal(signal.SIGKILL)
        confirmed = max([confirmed, *(int(line) for line in process.stdout.read().split())])
    with StudyStore(file, readonly=True) as look:
        assert [found.position for found in look.entries()][:confirmed] == list(range(1, confirmed + 1))
    with StudyStore(file) as store:
        assert len(store.entries()) in (confirmed, confirmed + 1), "the last one may have been written and not said"
    assert not Path(f"{file}-wal").exists(), "one file again after it was closed"


def test_a_full_disk_is_said_and_loses_nothing(file: Path) -> None:
    with StudyStore(file) as store:
        store.add(entry())
        pages = store._base.execute("PRAGMA page_count").fetchone()[0]
        store._base.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(
            StorageError, match=r"database or disk is full\. What was stored before is there; free some"
        ):
            store.add(entry(2, said="x" * 100_000))
        assert [found.position for found in store.entries()] == [1]
        store._base.execute(f"PRAGMA max_page_count = {pages + 1000}")
        store.add(entry(2))
        assert [found.position for found in store.entries()] == [1, 2]


def test_a_file_that_is_moved_away_takes_no_more(file: Path) -> None:
    with StudyStore(file) as store:
        store.add(entry())
        file.rename(file.with_name("moved"))
        with pytest.raises(StorageError, match="was moved, deleted or replaced while it was in use"):
            store.add(entry(2))


def test_the_read_only_store_cannot_write(file: Path) -> None:
    with StudyStore(file, readonly=True) as look, pytest.raises(StorageError, match="readonly database"):
        look.add(entry())


def test_the_clock_does_not_decide(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with StudyStore(file) as store:
        for date, said in (("2030-01-01T00:00:00+00:00", "A"), ("2020-01-01T00:00:00+00:00", "B")):
            monkeypatch.setattr("seesaw_cf.texts.people.store._now", lambda date=date: date)
            store.add(entry(said=said))
        now = standing(store, R1)
        assert now.answers[1].content == {"sexism": "B"}
        assert now.back == 1


def test_what_is_no_study_is_refused(tmp_path: Path, file: Path) -> None:
    with pytest.raises(StorageError, match=r"nowhere: no such file\. Make it with `seesaw-cf annotate make`"):
        StudyStore(tmp_path / "nowhere")
    (tmp_path / "text").write_text("hello " * 500, encoding="utf-8")
    with pytest.raises(RecordError, match=r"not the file of a study .*not a database"):
        StudyStore(tmp_path / "text")
    sqlite3.connect(tmp_path / "empty").close()
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(RecordError, match=r"not the file of a study \(tables \[\], expected facts"):
        StudyStore(tmp_path / "empty", readonly=True)
    with StudyStore(file) as store, pytest.raises(StorageError, match="exists; it may hold answers"):
        create_study(file, store.study, [], [])
    base = sqlite3.connect(file)
    base.execute("UPDATE facts SET value = '9' WHERE name = 'format'")
    base.commit()
    base.close()
    with pytest.raises(RecordError, match="format 9, expected 1"):
        StudyStore(file)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGHUP])
def test_a_server_that_is_stopped_leaves_one_file(tmp_path: Path, stop: signal.Signals) -> None:
    file = study(tmp_path, "flaws", training=False)
    words = [sys.executable, "-m", "seesaw_cf", "annotate", "serve", str(file), "--port", "0"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout
        link = process.stdout.readline().split()[1]
        base, path = link.split("/enter/")
        place = base.removeprefix("http://")
        for _ in range(100):
            connection = http.client.HTTPConnection(place, timeout=10)
            try:
                connection.request("GET", f"/enter/{path}")
                break
            except ConnectionError:
                time.sleep(0.05)
        answer = connection.getresponse()
        cookie = str(answer.headers["set-cookie"]).split(";")[0]
        answer.read()
        with StudyStore(file, readonly=True) as store:
            csrf = Keys(store.secret, store.study.raters).token("form", R1)
        head = {"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}
        connection.request("POST", "/consent", f"csrf={csrf}", head)
        assert connection.getresponse().status == 303
        connection.close()
        process.send_signal(stop)
        try:
            process.wait(20)
        finally:
            process.kill()
    alone = shutil.copy(file, tmp_path / "alone.study")
    with StudyStore(Path(alone), readonly=True) as store:
        assert [(found.rater, found.act) for found in store.entries()] == [(R1, "consent")]
