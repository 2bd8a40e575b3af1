"""Arbitrary values at every option of every command: success, a usage error or a message, never a traceback."""

import json
import shutil
import socket
import time
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer

from seesaw_cf.builder_scripts import build
from seesaw_cf.cli import COMMANDS, main
from seesaw_cf.errors import StorageError
from tests.builder.embedded import small_tables
from tests.cli.commands import ARGUMENTS
from tests.records.samples import SEESAW
from tests.report.runs import cases, write_manifest, write_run

# What a needed option gets while the fuzzed one gets something else; "report" would draw pictures.
VALID = {"model": "seesaw-tiny", "out": "out", "name": "mine", "file": "study.yaml", "key": "key.json"}
VALID |= {"records": "records.json", "source": "sample", "kind": "flaws", "encoder": "empty"}
VALID |= dict.fromkeys(("editor", "editors"), "rome") | dict.fromkeys(("run", "runs", "edited"), "run")
VALID |= dict.fromkeys(("base", "changed"), "log.csv") | dict.fromkeys(("tasks", "results", "data"), "empty.json")
VALUES = (
    *("nan", "inf", "-inf", "-1", "0", "0.5", "1", "1e400", "-0", "9" * 400, "1_000", "None", "null", "[]", "{}"),
    *("", " ", "é", "日本", "😀", "\udcff", "a\0b", "x" * 300, "../..", "..", ".", "$x_{", "%s{}", "[red]", "--"),
    *("run", "missing", "missing/deeper", "loop", "empty", "empty.json", "empty.parquet", "latin.txt", "latin.json"),
    *("list.json", "deep.json", "nan.json", "cut.parquet", "cut.safetensors", "cut", "locked", "/dev/full"),
    *("latin.txt:text", "latin.json:text", "cut.parquet:text", "a:b:c:d", ":", "http://[", "file:///etc/passwd"),
)  # fmt: skip
# A word that begins with a dash is an option of its own behind a positional, and a value behind "=".
ANY = st.sampled_from(VALUES) | st.text(max_size=12) | st.floats().map(repr) | st.integers().map(str)


def spelled(option: Any, value: str) -> list[str]:
    """The option with a value, as on a command line."""
    if option.index is not None:
        return [value]
    return [option.name] if option.hint is bool else [f"{option.name}={value}"]


@st.composite
def lines(draw: st.DrawFn, name: str) -> list[str]:
    """A command line on which everything needed has a cheap value, except up to three options."""
    fuzzed = draw(st.lists(st.sampled_from(ARGUMENTS[name]), min_size=1, max_size=3, unique_by=id))
    words = name.split()
    for option in sorted(ARGUMENTS[name], key=lambda one: one.index is None):
        if option in fuzzed:
            words += spelled(option, draw(ANY))
        elif option.required:
            words += spelled(option, VALID[option.field_info.name])
    return words


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Good, damaged and odd files, under the names in `VALUES`."""
    folder = tmp_path_factory.mktemp("material")
    made = cases(("P27",), 2, 3)
    write_manifest(write_run(folder / "run", made), ("memit",), len(made), machine={})
    (folder / "empty").mkdir()
    shutil.copytree(folder / "run", folder / "cut")
    for path in (folder / "cut").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    contents = {
        "empty.json": b"",
        "log.csv": b"item,acc,gender\n" + b"".join(b"%d,%d,%d\n" % (at, at % 2, at % 3) for at in range(12)),
        "empty.parquet": b"",
        "latin.txt": "caf\xe9\n".encode("latin-1"),
        "latin.json": '{"text": "caf\xe9"}'.encode("latin-1"),
        "records.json": json.dumps([SEESAW]).encode(),
        "list.json": b"[1, null, [], {}]",
        "deep.json": b"[" * 100_000,
        "nan.json": b'{"a": NaN, "b": 1e999, "a": "\\ud800"}',
        "cut.parquet": b"PAR1\x00\x01PAR1",
        "cut.safetensors": b"\xff\x00\x00\x00\x00\x00\x00\x00{",
        "locked": b"",
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    (folder / "locked").chmod(0)
    (folder / "loop").symlink_to("loop")
    return folder


@pytest.fixture
def stage(material: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in; no model is loaded, no server is reached and nobody waits."""

    def no_model(*args: Any, **options: Any) -> NoReturn:
        raise StorageError("no model is loaded in this test")

    def no_network(*args: Any) -> NoReturn:
        raise ConnectionRefusedError(111, "Connection refused")

    work = tmp_path / "work"
    shutil.copytree(material, work, symlinks=True, ignore=shutil.ignore_patterns("locked"))
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    for kind in (AutoModelForCausalLM, AutoTokenizer):
        monkeypatch.setattr(kind, "from_pretrained", no_model)
    monkeypatch.setattr(socket.socket, "connect", no_network)
    monkeypatch.setattr(socket, "getaddrinfo", no_network)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr(build, "curated", small_tables)
    return work


BOUNDED = settings(
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.slow
@pytest.mark.parametrize("leaf", sorted(COMMANDS))
def test_a_few_values(leaf: str, stage: Path) -> None:
    """What is not success, a usage error or a message comes out of `main` as it is."""

    @settings(BOUNDED, max_examples=8)
    @given(lines(leaf))
    def check(words: list[str]) -> None:
        assert main(words) in (0, 1, 2), words

    check()
