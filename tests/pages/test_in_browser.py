"""Every kind of page in Chromium: silent, alone, accessible, legible at three widths in both themes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from seesaw_cf.io.files import write_text
from seesaw_cf.report import read_results
from seesaw_cf.report.audit_page import audit_page
from seesaw_cf.report.page import report_page
from seesaw_cf.report.write import report_tables
from seesaw_cf.sharing.leaderboard import leaderboard_page
from seesaw_cf.sharing.submit import submission
from seesaw_cf.view.prompts import open_prompts
from seesaw_cf.view.server import PageServer
from tests.pages.browser import THEMES, WIDTHS, chromium, opened, violations
from tests.report.runs import cases, property_cases, write_run
from tests.sharing.shards import write_shards

pytestmark = pytest.mark.slow(30)
HOSTILE = "<img src=x onerror=alert(1)>\u202e =1+1 \N{FACE WITH TEARS OF JOY} " + "w" * 120
PAGES = ("report", "audit", "leaderboard", "view", "case")


@pytest.fixture(scope="module")
def addresses(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("browser") / "run"
    made = cases(("P27",), 6, 10) + property_cases(1)
    write_shards(write_run(folder, made, ("memit", HOSTILE, "random(memit)"), refused=1))
    results = read_results(folder)
    texts = {
        "report": report_page(results, report_tables(results)),
        "audit": audit_page(results),
        "leaderboard": leaderboard_page(submission(folder)[1], "org/board"),
    }
    for name, text in texts.items():
        write_text(folder.parent / f"{name}.html", text)
    with open_prompts(folder) as prompts, PageServer(prompts, 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        files = {name: (folder.parent / f"{name}.html").as_uri() for name in texts}
        yield files | {"view": server.url, "case": f"{server.url}case?relation=P27&case=3"}
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_silent_alone_accessible_and_fits(
    browser: Any, addresses: dict[str, str], name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its pictures are kept in pytest's folder of the session."""
    pictures = tmp_path_factory.getbasetemp() / "pictures"
    pictures.mkdir(exist_ok=True)
    for theme in THEMES:
        for width in WIDTHS:
            with opened(browser, addresses[name], width, theme) as page:
                page.screenshot(path=pictures / f"{name}-{width}-{theme}.png")
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                assert not page.locator("img").count()
                if width != WIDTHS[1]:
                    assert violations(page) == []
    assert len(list(pictures.glob(f"{name}-*.png"))) == len(THEMES) * len(WIDTHS)


def test_a_form_chooses_and_its_address_is_the_view(browser: Any, addresses: dict[str, str]) -> None:
    """Without JavaScript: the page has none."""
    with opened(browser, addresses["view"]) as page:
        page.select_option("#editor", "memit")
        page.select_option("#gender", "women")
        page.fill("#q", "Person 1")
        page.click("button[type=submit]")
        found = page.text_content("#found")
        assert "editor=memit" in page.url
        page.goto(page.get_attribute("#found a", "href") and page.evaluate("document.querySelector('#found a').href"))
        assert page.text_content("#found") == found
        page.click("th a[title^='probability of the new answer before']")
        assert page.get_attribute("th[aria-sort=descending] a", "title").startswith("probability of the new answer")
        page.click("tbody a >> nth=0")
        assert "/case?" in page.url
        assert "Its prompts" in page.text_content("main")


def test_a_permalink_of_a_report_shows_its_prompts(browser: Any, addresses: dict[str, str]) -> None:
    view = "#look?editor=memit&relation=P27&holds=target_new&axis=gender&group=women"
    with opened(browser, addresses["report"] + view) as page:
        before = page.locator("#look tbody tr").count()
        assert before > 0
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement !== document.body")
