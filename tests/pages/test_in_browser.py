"""Every kind of page in Chromium: silent, alone, accessible, legible at three widths in both themes."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.base.files import write_text
from tests.pages.browser import WIDTHS, illegible, opened, violations
from tests.pages.made import MADE

Address = Callable[[str], str]
pytestmark = pytest.mark.slow(50)
LIKE = ("report-one-case",)  # made of the same parts as another page


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Address:
    """Name of a page -> where it is; files are made when asked for."""
    folder = tmp_path_factory.mktemp("browser")

    def address_of(name: str) -> str:
        file: Path = folder / f"{name}.html"
        if not file.exists():
            write_text(file, MADE[name](folder))
        return file.as_uri()

    return address_of


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, or the reason why there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install playwright)")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("Chromium is not installed (apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield browser
        browser.close()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=(pytest.mark.exhaustive,) * (name in LIKE)) for name in MADE]
)
def test_a_page_is_silent_alone_accessible_and_legible(
    browser: Any, address: Address, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Its pictures are kept in pytest's folder of the session."""
    pictures = tmp_path_factory.getbasetemp() / "pictures"
    pictures.mkdir(exist_ok=True)
    faults: list[str] = []
    with opened(browser, address(name)) as page:
        assert not illegible(page)
        page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                faults += [f"{width} px: {said}" for said in illegible(page)]
                page.screenshot(path=pictures / f"{name}-{width}-{theme}.png", full_page=True)
                faults += [f"{width} px, {theme}: {said}" for said in violations(page)]
        assert not page.locator("img").count()
    assert not faults, "\n".join(dict.fromkeys(faults))


def test_print_opens_what_is_folded_without_a_warning(browser: Any, address: Address) -> None:
    with opened(browser, address("report")) as page:
        shown = "all => all.map(one => one.checkVisibility({ contentVisibilityAuto: true }))"
        tables = page.locator("details:not([open]) > :not(summary)")
        assert tables.count() > 0
        assert not any(tables.evaluate_all(shown))
        page.emulate_media(media="print")
        for _ in range(50):  # a busy machine lays the page out later
            if all(tables.evaluate_all(shown)):
                return
            page.wait_for_timeout(100)
        pytest.fail("a folded table is not printed")
