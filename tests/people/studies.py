"""A small finished run, studies made from it, and a rater who reads pages and fills forms as a browser does."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from starlette.testclient import TestClient

from seesaw_cf.base.tables import write_table
from seesaw_cf.effects.survey_items import ITEMS
from seesaw_cf.texts.people.design import RaterDesign
from seesaw_cf.texts.people.make import KINDS, StudyPlan, make_study
from seesaw_cf.texts.people.security import Place
from seesaw_cf.texts.people.serving import links
from seesaw_cf.texts.people.store import Entry, StudyStore
from seesaw_cf.texts.people.study import Answer, RatingItem, RatingTask
from seesaw_cf.texts.people.web import make_app
from seesaw_cf.texts.tables import PASSAGES
from seesaw_cf.texts.write.writing import EDITS

from ..longform.coupled import MAIN, RELATED, passages, record
from ..longform.flaw_samples import passages as free_passages

HOST = "127.0.0.1:8000"
ID = "5eed00" + "0" * 10
R1, R2 = (f"R{number}-5eed00" for number in (1, 2))
HOSTILE = "</p><script>alert(1)</script><img src=x onerror=alert(2)>\N{RIGHT-TO-LEFT OVERRIDE}&amp; <b>"


def write_run(folder: Path, cases: int = 4, text: str = "") -> Path:
    """A run of so many edits with coupled passages, and pairs of free descriptions; `text` is put into every text."""
    folder.mkdir(parents=True, exist_ok=True)
    records = [record(number) for number in range(1, cases + 1)]
    pq.write_table(pa.Table.from_pylist(records), folder / "records.parquet")
    tables = [passages(records, f"{MAIN} {text}", f"{RELATED} {text}", editor) for editor in ("none", "memit")]
    for number in range(1, cases + 1):
        about = {"case_id": number, "relation": ("P21", "P27")[number % 2]}
        before = {**about, "editor": "none", "phase": "pre", "text": f"Ada Oak is judge {number}. {text}"}
        tables.append(free_passages(before, {**about, "text": f"Ada Oak is nun {number}. {text}"}))
    write_table(folder / "passages.parquet", pa.concat_tables(tables))
    rows = [
        {"editor": "memit", "case_id": number, "relation": ("P21", "P27")[number % 2], "subject": "Ada Oak"}
        | {"target_new": "female", "target_true": "male", "status": "ok", "delta_norm": 1.0, "demonstrations": None}
        for number in range(1, cases + 1)
    ]
    write_table(folder / "edits.parquet", pa.Table.from_pylist(rows, schema=EDITS))
    job = {"data": str(folder / "records.parquet"), "configs": ["coupled_counterfact"]}
    settings = {"generation": "short", "sampling": {"temperature": 0.9, "top_k": 0}, "samples": 1}
    manifest = {"job": job, "model": {"id": "tiny"}, "seed": 0, "settings": settings}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert PASSAGES.names == tables[0].schema.names
    return folder


def study(folder: Path, kind: str, name: str = "tasks.study", text: str = "", **more: Any) -> Path:
    """A study of a small run, for two raters unless it is said otherwise."""
    run = folder / "run"
    if not run.exists():
        write_run(run, text=text)
    raters, deal = more.pop("raters", 2), more.pop("deal", {})
    design = RaterDesign(raters, KINDS[kind].per_item or raters, **{"duplicates": 0.25, "attention": 1, **deal})
    with patch("seesaw_cf.texts.people.make.token_hex", return_value=ID):
        make_study(run, StudyPlan(kind, design, **more), folder / name)
    return folder / name


class Form(HTMLParser):
    """The form of a page, with the fields as they are filled; its text; its links."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.action, self.fields, self.choices = "", dict[str, list[str]](), dict[str, list[str]]()
        self.texts, self.links, self._area = "", list[str](), ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = found["action"]
        if tag == "a":
            self.links.append(found["href"])
        if tag == "textarea":
            self._area = found["name"]
            self.fields[self._area] = [""]
        if tag == "input" and found["type"] in ("radio", "checkbox"):
            self.choices.setdefault(found["name"], []).append(found["value"])
            if "checked" in found:
                self.fields.setdefault(found["name"], []).append(found["value"])
        elif tag == "input":
            self.fields[found["name"]] = [found["value"]]

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self.fields[self._area] = [self.fields[self._area][0].removeprefix("\n")]  # as browsers do
            self._area = ""

    def handle_data(self, data: str) -> None:
        if self._area:
            self.fields[self._area][0] += data
        self.texts += data


@dataclass
class Rater:
    """One person with a browser.

    Attributes:
        browser: Keeps the cookie.
        link: The secret link.
        page: What is shown.
    """

    browser: TestClient
    link: str
    page: Form = field(init=False)
    status: int = 200

    def open(self, place: str) -> Form:
        """Goes to a page."""
        return self._shown(self.browser.get(place))

    def send(self, place: str = "", /, **changed: list[str]) -> Form:
        """Sends the form that is shown, with other values."""
        data = {name: value for name, value in {**self.page.fields, **changed}.items() if value}
        return self._shown(self.browser.post(place or self.page.action, data=data))

    def enter(self) -> None:
        """Takes part."""
        self.open(re.sub(r"^https?://[^/]+", "", self.link))
        self.open("/")
        if self.page.action == "/consent":
            self.send()
            self.open("/")

    def work(self, answer: Callable[[Form], dict[str, list[str]]], most: int = 10**6) -> int:
        """Answers what comes, up to so many items; how many that were."""
        done = 0
        while done < most:
            if self.page.action.startswith("/task/"):
                self.send(**answer(self.page))
                assert self.status == 200, self.page.texts
                done += 1
            elif self.page.action == "/submit" or self._stuck():
                break
        return done

    def _stuck(self) -> bool:
        """A break, feedback or a note has one link onward; a page without one is the end."""
        onward = [link for link in self.page.links if link == "/" or link.startswith(("/task/", "/review"))]
        if not onward:
            return True
        self.open(onward[-1])
        return False

    def _shown(self, response: Any) -> Form:
        self.status, self.page = response.status_code, Form(response.text)
        return self.page


def raters(store: StudyStore, look: StudyStore, names: tuple[str, ...] = (), **more: Any) -> list[Rater]:
    """Raters of a study that is served inside this process."""
    app = make_app(store, look, Place(**{"burst": 1e6, **more}))
    known = links(store, Place())
    return [Rater(TestClient(app, f"http://{HOST}"), known[name]) for name in names or store.study.raters]


def any_answer(form: Form) -> dict[str, list[str]]:
    """Something for every question: the last choice, the first sentence, a few words."""
    said = {name: values[-1:] for name, values in form.choices.items()}
    said |= {name: values[:1] for name, values in form.choices.items() if name.endswith(".sentences")}
    free = {name: ["Marie Curie was born in London."] for name in form.fields if name in ("subject", "related")}
    return said | free


def truth(item: RatingItem, task: RatingTask) -> Answer:
    """The text after the edit has more of every flaw; every claim is contradicted by the second sentence; and so on."""
    after = "B" if task.first == "pre" else "A"
    by_shape: dict[str, Any] = {
        "choice": after,
        "several": ["topic_drift"],
        "claim": {"choice": "contradicts", "sentences": [2]},
        "line": "so",
        "text": f"Text of {task.rater}.",
    }
    if task.role == "attention" and item.gold is not None:
        return dict(item.gold.answers)
    named: dict[str, Any] = {"edit_reflected": "yes", **{one.name: str(1 + n % 7) for n, one in enumerate(ITEMS)}}
    questions = item.questions or ()
    if questions:
        return {one.name: by_shape[one.shape] for one in questions}
    asked = item.ask or ("modes", "comment")
    return {name: named.get(name) or by_shape[_SHAPES.get(name, "choice")] for name in asked}


_SHAPES = {"comment": "line", "modes": "several"}


def answered(file: Path, *names: str, most: int = 10**6) -> Path:
    """The study with the true answers of some raters."""
    with StudyStore(file) as store:
        for name in names or store.study.raters:
            store.add(Entry(name, "consent"))
            for task in store.tasks[name][:most]:
                store.add(Entry(name, "answer", task.position, truth(store.items[task.item], task), "f", 10.0))
    return file
