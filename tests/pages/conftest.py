"""One browser and one run for all tests of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.base.files import write_text
from tests.pages.browser import chromium
from tests.pages.made import MADE

Address = Callable[[str], str]


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the run and the pages are."""
    return tmp_path_factory.mktemp("browser")


@pytest.fixture(scope="package")
def address(folder: Path) -> Address:
    """Name of a page -> where it is; files are made when asked for."""

    def address_of(name: str) -> str:
        file = folder / f"{name}.html"
        if not file.exists():
            write_text(file, MADE[name](folder))
        return file.as_uri()

    return address_of


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    with chromium() as found:
        yield found
