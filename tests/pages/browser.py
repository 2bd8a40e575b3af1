"""What is asked of a page in a browser; axe-core comes out of its package."""

import contextlib
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest

WIDTHS = (375, 1280)
_SERIOUS = ("serious", "critical")


@contextlib.contextmanager
def opened(browser: Any, address: str, width: int = 1280, theme: str = "light") -> Iterator[Any]:
    """A page; fails when it says anything on the console or asks for anything but itself."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme, bypass_csp=False)
    page, said, asked = context.new_page(), list[str](), list[str]()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)
    yield page
    context.close()
    own = address.split("#")[0].split("?")[0]
    assert not said, said
    assert all(url.split("#")[0].split("?")[0] == own or url.startswith(("data:", own)) for url in asked), asked


def violations(page: Any) -> list[str]:
    """What axe-core finds that is serious; it runs in the page without being part of it."""
    axe = pytest.importorskip(
        "axe_playwright_python", reason="axe is not installed (pip install axe-playwright-python)"
    )
    source = (resources.files(axe) / "axe.min.js").read_text(encoding="utf-8")
    found = page.evaluate(f"async () => {{ {source}; return (await axe.run()).violations; }}")
    return [
        f"{one['id']}: {one['help']} ({one['nodes'][0]['html'][:200]})" for one in found if one["impact"] in _SERIOUS
    ]


def illegible(page: Any) -> list[str]:
    """Labels of pictures that are cut at an edge, lie on each other or are tiny, and a page that scrolls sideways."""
    return list(page.evaluate(_ILLEGIBLE))


_ILLEGIBLE = """() => {
  const found = [], root = document.documentElement;
  if (root.scrollWidth > innerWidth) found.push(`${root.scrollWidth} px wide in a window of ${innerWidth}`);
  for (const picture of document.querySelectorAll("svg")) {
    const frame = picture.getBoundingClientRect(), drawn = [];
    const units = picture.viewBox.baseVal?.width, scale = units ? frame.width / units : 1;
    for (const label of picture.querySelectorAll("text")) {
      const box = label.getBoundingClientRect();
      const said = `${label.textContent.slice(0, 40)} (${picture.ariaLabel ?? ""})`;
      if (!box.width || label.classList.contains("alarm")) continue;
      if (parseFloat(getComputedStyle(label).fontSize) * scale < 11) found.push(`tiny: ${said}`);
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 2)
        found.push(`cut: ${said}`);
      const covers = other => box.left < other.right - 1 && other.left < box.right - 1 &&
        box.top < other.bottom - 3 && other.top < box.bottom - 3;
      if (drawn.some(covers)) found.push(`overlaps: ${said}`);
      drawn.push(box);
    }
  }
  return found;
}"""
