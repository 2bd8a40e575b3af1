"""The names that programs may rely on."""

from __future__ import annotations

import re

import seesaw_cf
from tests.conftest import ROOT

STABLE = {"audit", "compare", "load", "register", "scoring", "editors", "effects", "metrics", "types"}


def test_the_stable_names_are_shown_and_declared() -> None:
    assert set(dir(seesaw_cf)) >= STABLE
    assert set(seesaw_cf.__all__) >= STABLE
    page = (ROOT / "docs" / "api" / "index.md").read_text(encoding="utf-8").partition("**Everything else")[0]
    assert set(re.findall(r"`(?:seesaw_cf\.)?(\w+)`", page)) >= STABLE
