"""One browser and one run for all tests of pages."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.base.files import write_text
from seesaw_cf.report.view.prompts import open_prompts
from seesaw_cf.report.view.server import PageServer
from tests.pages.browser import chromium
from tests.pages.made import MADE, run_folder

SERVED = {"view": "", "case": "case?relation=P27&case=3"}
Address = Callable[[str], str]


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the run and the pages are."""
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="package")
def address(folder: Path) -> Iterator[Address]:
    """Name of a page -> where it is; files are made when asked for."""
    with open_prompts(run_folder(folder)) as prompts, PageServer(prompts, 0) as server:
        thread = threading.Thread(target=server.serve)
        thread.start()
        yield lambda name: f"{server.url}{SERVED[name]}" if name in SERVED else _file(folder, name)
        server.stop()
        thread.join()


def _file(folder: Path, name: str) -> str:
    file = folder / f"{name}.html"
    if not file.exists():
        write_text(file, MADE[name](folder))
    return file.as_uri()


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found
