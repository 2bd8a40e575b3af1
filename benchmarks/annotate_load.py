"""Fifty raters at once on loopback: answers a second, how long one waits, and whether any is lost.

    python -m benchmarks.annotate_load --raters 50 --seconds 20

The server is a process of its own (uvicorn, SQLite with `synchronous=FULL`); the raters are threads of this one. Each
reads a page, answers it, and goes on at once; people are a thousand times slower. At the end the log is compared with
what the server had confirmed.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlencode

import numpy as np

from seesaw_cf.stats.plain import json_text
from seesaw_cf.texts.people.design import RaterDesign, tasks
from seesaw_cf.texts.people.make import CONSENT, KINDS
from seesaw_cf.texts.people.security import Place
from seesaw_cf.texts.people.serving import links
from seesaw_cf.texts.people.store import StudyStore, create_study
from seesaw_cf.texts.people.study import ItemQuestion, RatingItem, RatingStudy, Text

PORT = 8977
CHOICES = (("A", "more in text A"), ("equal", "the same"), ("B", "more in text B"))
SERVER = """
import sys
from pathlib import Path
from seesaw_cf.texts.people.security import Place
from seesaw_cf.texts.people.serving import serve
place = Place(port=int(sys.argv[2]), burst=1e9, rate=1e9)
serve(Path(sys.argv[1]), place, lambda links: print("ready", flush=True))
"""


def make(file: Path, raters: int, items: int) -> None:
    """A study of pairs of texts of published length: 100 tokens each, seven questions."""
    questions = tuple(ItemQuestion(f"q{number}", f"Flaw {number}", CHOICES) for number in range(7))
    text = "word " * 100
    found = [
        RatingItem(f"i{place}", "", (("Subject", ("Ada",)),), (Text("", text), Text("", text)))
        for place in range(items)
    ]
    design = RaterDesign(raters, raters, 0.0, 0, orders=True)
    study = RatingStudy("load", "flaws", design.names, ("Rate.",), questions, CONSENT, breaks=0)
    assert "flaws" in KINDS
    create_study(file, study, found, tasks(found, [], design))


def rate(cookie: str, csrf: str, number: int, until: float, waits: list[float], confirmed: list[int]) -> None:
    """One rater: consent, then page after page until the time is over."""
    line = http.client.HTTPConnection("127.0.0.1", PORT, timeout=60)
    head = {"Cookie": f"rater={cookie}", "Content-Type": "application/x-www-form-urlencoded"}

    def ask(method: str, place: str, fields: dict[str, str] | None = None) -> int:
        line.request(method, place, urlencode({"csrf": csrf, **fields}) if fields is not None else None, head)
        answer = line.getresponse()
        answer.read()
        return answer.status

    assert ask("POST", "/consent", {}) == 303
    position = 0
    while time.monotonic() < until:
        position += 1
        assert ask("GET", f"/task/{position}") == 200
        start = time.monotonic()
        fields = {f"q{one}": "equal" for one in range(7)} | {"form": f"{number}-{position}", "seen": "0"}
        assert ask("POST", f"/task/{position}", fields) == 303
        waits.append(time.monotonic() - start)
        confirmed[number] = position
    line.close()


def measure(raters: int, seconds: float) -> dict[str, object]:
    """Serves, rates, compares."""
    from seesaw_cf.texts.people.security import Keys

    with tempfile.TemporaryDirectory(dir=os.environ.get("LOAD_DIR")) as place:
        file = Path(place) / "load.study"
        make(file, raters, items=int(seconds * 60) + 50)
        with StudyStore(file, readonly=True) as store:
            keys, names = Keys(store.secret, store.study.raters), store.study.raters
            assert len(links(store, Place(port=PORT))) == raters + 1
        server = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(file), str(PORT)], stdout=subprocess.PIPE, text=True
        )
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        load = [round(one, 1) for one in os.getloadavg()]
        waits: list[float] = []
        confirmed, until = [0] * raters, time.monotonic() + seconds
        crowd = [
            threading.Thread(
                target=rate,
                args=(keys.token("cookie", name), keys.token("form", name), number, until, waits, confirmed),
            )
            for number, name in enumerate(names)
        ]
        start = time.monotonic()
        for one in crowd:
            one.start()
        for one in crowd:
            one.join()
        taken = time.monotonic() - start
        server.kill()  # no orderly end: what was confirmed is on the disk
        server.wait()
        with StudyStore(file, readonly=True) as store:
            kept = sum(entry.act == "answer" for entry in store.entries())
    return {
        "raters": raters,
        "seconds": round(taken, 2),
        "answers": len(waits),
        "answers_per_second": round(len(waits) / taken, 1),
        "wait_ms": {f"p{q}": round(1000 * float(np.percentile(waits, q)), 1) for q in (50, 90, 99, 100)},
        "confirmed": sum(confirmed),
        "in_the_file_after_kill": kept,
        "lost": sum(confirmed) - kept,
        "cores": os.cpu_count(),
        "load_before": load,
        "machine": platform.platform(),
    }


def main() -> None:
    """Prints and writes the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raters", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/annotate_load.json"))
    args = parser.parse_args()
    found = measure(args.raters, args.seconds)
    args.out.write_text(json_text(found), encoding="utf-8")
    sys.stdout.write(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
