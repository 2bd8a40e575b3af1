"""A real Label Studio on loopback takes the tasks of all five kinds, is answered, exports, and the answers read back.

`make label-studio` runs this, with Label Studio in an environment of its own.
"""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from seesaw_cf.cli import main
from seesaw_cf.texts import KINDS, ExportJob
from seesaw_cf.texts.exchange import export_people, import_people

from ..longform.people_runs import label_studio_parts, truth, write_run

PROGRAM = os.environ.get("LABEL_STUDIO") or shutil.which("label-studio")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="label-studio is not installed: make label-studio")
MAIL, PASSWORD = "rater@example.org", "a-long-password-1"
PATIENCE = 300  # seconds; the first start makes a database


class LabelStudio:
    """A signed-in session."""

    def __init__(self, url: str) -> None:
        self.url, self.session = url, requests.Session()

    def wait(self, process: subprocess.Popen[bytes]) -> None:
        """Until it answers."""
        end = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < end:
            try:
                if self.session.get(f"{self.url}/user/login/", timeout=60).ok:
                    return
            except requests.RequestException:
                time.sleep(0.5)
        raise AssertionError(f"label-studio did not start (exit code {process.poll()})")

    def sign_in(self) -> None:
        form = {"email": MAIL, "password": PASSWORD, "csrfmiddlewaretoken": self.session.cookies["csrftoken"]}
        self.session.post(f"{self.url}/user/login/", data=form, headers={"Referer": self.url}).raise_for_status()

    def post(self, path: str, body: Any) -> Any:
        headers = {"X-CSRFToken": str(self.session.cookies["csrftoken"]), "Referer": self.url}
        reply = self.session.post(f"{self.url}{path}", json=body, headers=headers)
        assert reply.ok, reply.text
        return reply.json()

    def get(self, path: str) -> Any:
        reply = self.session.get(f"{self.url}{path}")
        assert reply.ok, reply.text
        return reply.json()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LabelStudio]:
    folder = tmp_path_factory.mktemp("label-studio")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = f"{PROGRAM} start --no-browser --port {port} --internal-host 127.0.0.1".split()
    settings = {"LABEL_STUDIO_BASE_DATA_DIR": str(folder), "COLLECT_ANALYTICS": "0", "LATEST_VERSION_CHECK": "0"}
    hidden = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    with (folder / "log.txt").open("wb") as log:
        process = subprocess.Popen(
            [*words, "--username", MAIL, "--password", PASSWORD],
            env=hidden | settings,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
        )
    try:
        own = LabelStudio(f"http://127.0.0.1:{port}")
        own.wait(process)
        own.sign_in()
        yield own
    finally:
        process.terminate()
        process.wait(30)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("run") / "run", 2, 'A "quoted" <b>word</b> & \U0001f600 $text_B.')


@pytest.mark.parametrize("kind", KINDS)
def test_tasks_go_in_and_answers_come_out(server: LabelStudio, run: Path, tmp_path: Path, kind: str) -> None:
    out = tmp_path / "tasks"
    export_people(ExportJob(kind, run, duplicates=0.5), out)
    tasks, key = (json.loads((out / f"{name}.json").read_text(encoding="utf-8")) for name in ("tasks", "key"))
    config = (out / "config.xml").read_text(encoding="utf-8")
    project = server.post("/api/projects", {"title": kind, "label_config": config})["id"]
    assert server.post(f"/api/projects/{project}/import", tasks)["task_count"] == len(tasks)
    for task in server.get(f"/api/tasks?project={project}&fields=all&page_size=1000")["tasks"]:
        about = key["items"][task["data"]["item"]]["about"]
        parts = [label_studio_parts(task["data"], name, truth(about, name)) for name in key["questions"]]
        result = [part for own in parts for part in own]
        server.post(f"/api/tasks/{task['id']}/annotations", {"result": result, "lead_time": 3.2})
    skipped = server.get(f"/api/tasks?project={project}&page_size=1")["tasks"][0]["id"]
    server.post(f"/api/tasks/{skipped}/annotations", {"result": [], "was_cancelled": True})
    results = tmp_path / "results.json"
    exported = server.get(f"/api/projects/{project}/export?exportType=JSON")
    results.write_text(json.dumps(exported), encoding="utf-8")
    table = next(iter(import_people(results, out / "key.json").values()))
    assert set(table.column("status").to_pylist()) == {"ok"}
    column = "annotator" if kind == "claims" else "editor" if kind == "writing" else "rater"
    assert len(set(table.column(column).to_pylist())) == 1
    if kind == "flaws":
        assert set(table.column("change").to_pylist()) == {1}
    if kind == "claims":
        assert {tuple(words) for words in table.column("evidence").to_pylist()} == {("was born in",)}
    words = ["people", "import", str(results), "--key", str(out / "key.json"), "--out", str(tmp_path / "tables")]
    assert main(words) == 0
