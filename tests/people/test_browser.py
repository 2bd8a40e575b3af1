"""Three raters at once in Chromium, one on a phone, through every kind of task; the server is killed in between."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.texts.people.make import KINDS
from seesaw_cf.texts.people.security import Place
from seesaw_cf.texts.people.serving import links
from seesaw_cf.texts.people.status import status_of
from seesaw_cf.texts.people.store import StudyStore

from ..conftest import ROOT
from ..pages.browser import chromium
from .studies import study

SCREENS = ((375, 720, "light"), (1280, 900, "dark"), (1280, 900, "light"))
SERVER = """
import os
import sys
from pathlib import Path
from threading import Thread
from seesaw_cf.texts.people.security import Place
from seesaw_cf.texts.people.serving import serve
def one(file, port):
    serve(Path(file), Place(port=int(port), burst=1000.0), lambda links: os.write(1, b"ready\\n"))
all = [Thread(target=one, args=pair) for pair in zip(sys.argv[1::2], sys.argv[2::2])]
[thread.start() for thread in all]
[thread.join() for thread in all]
"""
# What a page lacks for who cannot see it: names of fields, words of buttons.
UNNAMED = """() => [...document.querySelectorAll("input:not([type=hidden]), textarea, button")]
  .filter(one => !one.labels?.length && !one.getAttribute("aria-label") && !one.textContent.trim())
  .map(one => one.outerHTML)"""
WIDER = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@contextmanager
def served(studies: Mapping[Path, int]) -> Iterator[subprocess.Popen[str]]:
    """Studies on ports of loopback, in one process that can be killed."""
    words = [sys.executable, "-c", SERVER, *(str(word) for pair in studies.items() for word in pair)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in studies] == ["ready\n"] * len(studies)
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


class Person:
    """A rater who uses keys and the mouse, and what their browser complained of."""

    def __init__(self, browser: Any, link: str, width: int, height: int, scheme: str) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("console", self._hear)
        self.page.goto(link)
        for button in ("a.go", "button.go", "a.go"):
            self.follow(button)

    def follow(self, button: str) -> None:
        """Clicks and waits until the next page is loaded: a click alone does not wait for it."""
        with self.page.expect_navigation():
            self.page.click(button)

    def _hear(self, message: Any) -> None:
        if re.search("Refused|violates|Error", message.text) and "ERR_CONNECTION" not in message.text:
            self.complaints.append(message.text)

    def look(self) -> None:
        """Fits the screen, and everything has a name."""
        assert self.page.evaluate(WIDER) <= 0, self.page.url
        assert self.page.evaluate(UNNAMED) == [], self.page.url

    def fill(self) -> None:
        """Every question, by keys where there are keys."""
        for field in self.page.query_selector_all("fieldset"):
            keys = field.query_selector_all("input[data-key]")
            if keys:
                keys[0].focus()
                self.page.keyboard.press(keys[0].get_attribute("data-key"))
            if field.query_selector(".marks"):
                keys[0].focus()
                self.page.keyboard.press("1")
            for box in field.query_selector_all(".several input")[:1]:
                box.check()
            for area in field.query_selector_all("textarea"):
                area.fill("She was born in London, as the edit says.")

    def send(self) -> None:
        """Presses the button and waits for the next page."""
        before = self.page.url
        self.page.click("button.go")
        self.page.wait_for_function(
            "before => location.href !== before || !document.querySelector('form[data-task]')", arg=before
        )
        self.page.wait_for_load_state()

    def step(self) -> bool:
        """One page on; False at the end."""
        self.look()
        if self.page.query_selector("form[data-task]"):
            self.fill()
            self.send()
        elif self.page.query_selector("form"):
            self.page.click("button.go")
            self.page.wait_for_selector("text=Your answers are submitted")
            return False
        else:
            self.follow("a.go")
        return True


_SLOW = ("claims", "writing")
_OTHERS = tuple(kind for kind in KINDS if kind not in _SLOW)


@pytest.mark.slow(40)
@pytest.mark.parametrize("kinds", [_SLOW, pytest.param(_OTHERS, marks=pytest.mark.exhaustive)])
def test_three_raters_and_a_server_that_is_killed(tmp_path: Path, browser: Any, kinds: tuple[str, ...]) -> None:
    deal = {"duplicates": 0.0, "attention": 0}
    files = {
        study(
            tmp_path, kind, f"{kind}.study", raters=3, sample=_ITEMS.get(kind, 1), deal=deal, training=kind in _TRAINED
        )
        for kind in kinds
    }
    studies = {file: free_port() for file in files}
    with served(studies) as server:
        people = [
            Person(browser, link, *screen)
            for file, port in studies.items()
            for link, screen in zip(_links(file, port), SCREENS)
        ]
        for one in people:
            one.fill()
        server.send_signal(signal.SIGKILL)
        server.wait()
        for one in people[:: len(SCREENS)]:
            one.page.click("button.go")
            one.page.wait_for_selector("#kept.gone:has-text('Not saved: the server does not answer')")
    with served(studies):
        for one in people:
            one.send()  # the page that was open sends what was entered
        still = list(people)
        while still:
            still = [one for one in still if one.step()]
    assert [one.complaints for one in people] == [[] for _ in people]
    for file in files:
        with StudyStore(file, readonly=True) as store:
            found = status_of(store)
            assert [(one.now.done, one.now.submitted) for one in found] == [(one.now.total, True) for one in found]
            answers = [entry for entry in store.entries() if entry.act == "answer"]
            assert len(answers) == sum(len(own) for own in store.tasks.values()), "none lost, none twice"


_ITEMS = {"writing": 3}
_TRAINED = ("claims",)


def _links(file: Path, port: int) -> list[str]:
    with StudyStore(file, readonly=True) as store:
        return [link for name, link in links(store, Place(port=port)).items() if name != "status"]


@pytest.mark.slow(10)
def test_sentences_are_marked_by_mouse_and_kept_without_the_button(tmp_path: Path, browser: Any) -> None:
    port = free_port()
    file = study(tmp_path, "claims", training=False, deal={"attention": 0})
    with served({file: port}):
        page = Person(browser, _links(file, port)[0], 375, 720, "light").page
        page.click("fieldset >> nth=1 >> label >> nth=0")
        page.click(".s >> nth=1")
        assert page.is_checked("fieldset >> nth=1 >> .marks input >> nth=1"), (
            "a click on a sentence marks it for this claim"
        )
        assert "on" in page.get_attribute(".s >> nth=1", "class")
        page.wait_for_selector("#kept:has-text('Kept')")
        page.click("button.go")
        page.wait_for_selector("#kept.gone:has-text('Something is missing in')")
        wrong = page.locator("fieldset.wrong > .gone")
        assert "not answered yet" in wrong.all_inner_texts(), "each question says what it wants"
        number = wrong.count()
        page.click("fieldset.wrong >> nth=0 >> label >> nth=1")
        assert wrong.count() == number - 1, "until it is answered"
        page.wait_for_selector("#kept:has-text('Kept')")
        page.reload()
        assert page.is_checked("fieldset >> nth=1 >> .marks input >> nth=1"), "kept without the button"
        assert page.query_selector_all(".s.on") == [], "of the first claim nothing is marked"


@pytest.mark.slow(10)
def test_words_are_marked_by_mouse_by_keys_and_by_finger(tmp_path: Path, browser: Any) -> None:
    port = free_port()
    file = study(tmp_path, "claims", training=False, sample=1, deal={"attention": 0})

    def said(page: Any, number: int) -> list[str]:
        """What is marked for a claim."""
        found: list[str] = page.locator(f"fieldset >> nth={number} >> .spans label").all_inner_texts()
        return [one.strip() for one in found]

    with served({file: port}):
        person = Person(browser, _links(file, port)[0], 375, 720, "light")
        page = person.page
        words = page.locator(".w").all_inner_texts()
        page.click("fieldset >> nth=1 >> label >> nth=0")
        page.dblclick(".w >> nth=2")
        assert said(page, 1) == [words[2]]
        assert page.query_selector_all(".s.on") == [], "the sentence is not marked along with it"
        first, last = (page.locator(f".w >> nth={place}").bounding_box() for place in (3, 5))
        page.mouse.move(first["x"] + 1, first["y"] + 5)
        page.mouse.down()
        page.mouse.move(last["x"] + last["width"] - 1, last["y"] + 5)
        page.mouse.up()
        assert said(page, 1) == [words[2], " ".join(words[3:6])]
        assert page.query_selector_all(".s.on") == []
        page.keyboard.press("j")
        page.keyboard.press("s")
        page.keyboard.press("w")
        for key in ("ArrowRight", "Shift+ArrowRight", "Enter"):
            page.keyboard.press(key)
        assert said(page, 2) == [" ".join(words[1:3])]
        assert page.inner_text("#words") == f"\u201c{words[2]}\u201d"
        for key in ("Shift+ArrowRight", "Enter"):
            page.keyboard.press(key)
        assert said(page, 2) == [" ".join(words[1:4])], "what overlaps becomes one"
        assert page.locator(".w.on").all_inner_texts() == words[1:4]
        page.keyboard.press("Escape")
        assert page.evaluate("document.activeElement.name") == "c3"
        assert said(page, 1) == [words[2], " ".join(words[3:6])], "the other claim has its own"
        select = "at => getSelection().selectAllChildren(document.querySelectorAll('.w')[at])"
        page.evaluate(select, 6)
        page.wait_for_selector("#mark:visible")
        page.click("#mark")
        assert said(page, 2) == [" ".join(words[1:4]), words[6]], "selected without a mouse: the button marks it"
        page.evaluate(select, 6)
        page.click("#mark")
        assert said(page, 2) == [" ".join(words[1:4])], "the same once more takes it away"
        person.look()
        for _ in range(10):  # the page is asked for while its last change is on the way: it arrives, if not before
            page.reload()
            if said(page, 2) == [" ".join(words[1:4])]:
                break
        assert said(page, 2) == [" ".join(words[1:4])]
        assert person.complaints == []


@pytest.mark.slow(10)
def test_typing_without_a_pause_is_kept_and_so_are_the_last_words(tmp_path: Path, browser: Any) -> None:
    port = free_port()
    file = study(tmp_path, "writing", training=False)
    with served({file: port}):
        page = Person(browser, _links(file, port)[0], 1280, 900, "light").page
        place = page.url
        page.type("#subject", "Written without a pause.", delay=100)
        assert page.inner_text("#kept").startswith("Kept"), "while the keys were still pressed"
        page.type("#subject", " The end.")
        page.goto(place.rsplit("/task", 1)[0] + "/guide")
        page.goto(place)
        assert page.input_value("#subject") == "Written without a pause. The end."
        with page.expect_request("**/draft"):
            page.route("**/draft", lambda route: None, times=1)  # on its way, and never there
            page.type("#subject", "More. ")
        page.goto(place.rsplit("/task", 1)[0] + "/guide")
        page.goto(place)
        assert page.input_value("#subject").startswith("More. "), "what was on its way is sent again"
