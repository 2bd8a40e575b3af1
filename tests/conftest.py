"""Shared fixtures: no network, private caches, and the reference data when it is there."""

import gc
import os
import socketserver
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from tests.hub_server import READER, TOKEN, Hub

# A client that hangs up is no error: the traceback would stand on the screen of another test.
socketserver.BaseServer.handle_error = lambda *_: None  # type: ignore[method-assign]

# Before torch is imported: the models are too small for two threads, and tests run side by side.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A loaded machine is slow, and the same tree gives the same verdict twice.
# The same examples each time; `make exhaustive` asks for more of them.
EXAMPLES = int(os.environ.get("SEESAW_CF_EXAMPLES", "20"))
settings.register_profile("tests", deadline=None, derandomize=True, max_examples=EXAMPLES)
settings.load_profile("tests")

# What is imported and collected stays to the end: nothing of it is garbage, and no search for garbage reads it again.
gc.disable()

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT.parent / "shared" / "reference"
# Files whose tests share what is slow to start: a Ray cluster, the built site.
TOGETHER = ("tests/scoring/test_ray.py", "tests/docs/test_site.py")
# Files that take long: begun last they would keep one worker busy alone.
FIRST = (
    *("tests/contract/test_editor_contract.py", "tests/editors/test_architectures.py"),
    *("tests/golden/test_closed_forms.py", "tests/scoring/test_trie_scorer.py", "tests/editors/test_methods.py"),
)


@pytest.fixture(scope="session")
def reference() -> Callable[..., Path]:
    """Gives a path below ../shared/reference, or skips the test with the reason when it is absent."""

    def find(*parts: str) -> Path:
        path = REFERENCE.joinpath(*parts)
        if not path.exists():
            pytest.skip(f"{path.relative_to(ROOT.parent)} is not beside this checkout")
        return path

    return find


@pytest.fixture(scope="session", autouse=True)
def _private_caches(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keeps every cache of the libraries and of this package out of the user's home for the whole test session."""
    cache = tmp_path_factory.mktemp("cache")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_EVALUATE_OFFLINE", "1")
    os.environ["HF_HOME"] = str(cache / "hf")
    os.environ["SEESAW_CF_CACHE"] = str(cache / "seesaw_cf")


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """A Hub on loopback, for clients in processes of their own."""
    with Hub(tmp_path / "hub", writers=(TOKEN,), readers=(READER,)) as server:
        yield server


@pytest.fixture
def near_hub(hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """The Hub that this process talks to, with write access."""
    from huggingface_hub import constants

    address = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace("https://huggingface.co", hub.url)
    own = {"ENDPOINT": hub.url, "HUGGINGFACE_CO_URL_TEMPLATE": address, "HF_HUB_OFFLINE": False}
    own |= {"HF_HUB_CACHE": str(tmp_path / "hub cache"), "HF_TOKEN_PATH": str(tmp_path / "no token")}
    for name, value in (own | {"HF_HUB_DISABLE_XET": True}).items():
        monkeypatch.setattr(constants, name, value)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    return hub


def pytest_collection_finish() -> None:
    """Garbage is searched from here on, among what tests make."""
    gc.freeze()
    gc.set_threshold(50_000)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest come first, by the seconds in their `slow` mark: no worker is left alone with one at the end."""
    items.sort(key=lambda item: (-_seconds(item), item.nodeid.split("::")[0] not in FIRST))


class _Spread(LoadScopeScheduling):  # type: ignore[misc]
    """A file's tests stay with one worker, which makes what they share once; but of files with seconds in their marks,
    and not in `TOGETHER`, each test goes to whoever is free.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::")[0]
        apart = file not in TOGETHER and "mark.slow(" in (ROOT / file).read_text(encoding="utf-8")
        return nodeid if apart else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling | None:
    """Replaces `--dist loadscope` only."""
    return _Spread(config, log) if config.getvalue("dist") == "loadscope" else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """With `--dist loadscope` three workers on two cores: slow tests wait for the processes and servers they start."""
    return (os.cpu_count() or 1) * 3 // 2 if config.getvalue("dist") == "loadscope" else None


def _seconds(item: pytest.Item) -> float:
    mark = item.get_closest_marker("slow")
    return mark.args[0] if mark is not None and mark.args else 0
