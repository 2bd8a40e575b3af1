"""The site: what is generated is whole, names on its pages exist, it builds without a warning and asks no network."""

import importlib
import inspect
import os
import pkgutil
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from docs.tools.commands import command_page
from docs.tools.hooks import generated
from tests import fresh
from tests.cli.commands import OPTIONS

from ..conftest import ROOT

pytestmark = pytest.mark.slow

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
STABLE = ("seesaw_cf", "seesaw_cf.types", "seesaw_cf.scoring", "seesaw_cf.editors", "seesaw_cf.effects")
NAME = re.compile(r"`(seesaw_cf(?:\.\w+)+)(?:\(.*?\))?`")
PATH = re.compile(r"`((?:seesaw_cf|editors|metrics|builder_scripts|benchmarks|tests|docs)/[\w./-]*)`")
# What a reader fills in, and a file that must not be added.
ABSENT = {"editors/NAME.py", "metrics/NAME/", "seesaw_cf/seesaw_cf.py"}


def test_every_command_and_option_is_in_the_reference() -> None:
    page = command_page()
    for name, options in OPTIONS.items():
        section = page.split(f"## {name}\n")[1].split("\n## ")[0]
        described = set(re.findall(r"^`([^`]*)`$", section, re.MULTILINE))
        assert described == {one.label for one in options}, name


def _exists(name: str) -> bool:
    """A module, or a name in one."""
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_and_files_on_pages_exist_and_snippets_import_from_packages_only(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    imported = set(re.findall(r"^from (seesaw_cf[\w.]*) import", text, re.MULTILINE))
    modules = [importlib.import_module(name) for name in imported - {"seesaw_cf.types", "seesaw_cf.errors"}]
    assert [module for module in modules if not hasattr(module, "__path__")] == []
    assert [name for name in NAME.findall(text) if not _exists(name)] == []
    assert [path for path in PATH.findall(text) if path not in ABSENT and not (ROOT / path).exists()] == []


class _Requests(HTMLParser):
    """What a browser fetches for a page, and the ids on it."""

    def __init__(self) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.ids: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids.add(found.get("id") or "")
        followed = tag == "a" or (tag == "link" and found.get("rel") in ("canonical", "next", "prev", "license"))
        self.fetched += [found[name] or "" for name in ("src", "href", "data") if name in found and not followed]


def _read(page: Path) -> _Requests:
    requests = _Requests()
    requests.feed(page.read_text(encoding="utf-8"))
    return requests


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` does."""
    folder = tmp_path_factory.mktemp("site")
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)}
    words = ("-m", "mkdocs", "build", "--strict", "--site-dir", str(folder))
    done = fresh.python(*words, cwd=ROOT, env=environment)
    assert "WARNING" not in done.stderr, done.stderr
    return folder


@pytest.mark.slow(20)
def test_every_page_is_built(site: Path) -> None:
    sources = [str(page.relative_to(ROOT / "docs")) for page in PAGES[2:]]
    for name in [*sources, *generated()]:
        assert (site / name).with_suffix(".html").is_file(), name


@pytest.mark.slow(20)
def test_pages_ask_nothing_of_the_network(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > 30
    for page in pages:
        assert [url for url in _read(page).fetched if re.match(r"(https?:)?//", url)] == [], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name
    assert not any('class="mermaid"' in page.read_text(encoding="utf-8") for page in pages), "its script is on a CDN"


@pytest.mark.slow(20)
@pytest.mark.parametrize("package", STABLE)
def test_every_stable_name_is_in_the_reference(site: Path, package: str) -> None:
    page = site / "api" / (package.rpartition(".")[2] + ".html")
    ids = {name.rpartition(".")[2] for name in _read(page).ids}
    module = importlib.import_module(package)
    names = {name for name in module.__all__ if not inspect.ismodule(getattr(module, name))}
    assert names - ids == set(), "packages have pages"
