"""What every command answers to bad words, missing keys, removed names, closed pipes and errors of libraries."""

import errno
import subprocess
import sys
from pathlib import Path

import httpx2 as httpx
import pyarrow as pa
import pytest
import safetensors
from huggingface_hub.errors import GatedRepoError, HFValidationError, LocalEntryNotFoundError

from seesaw_cf.base.tables import write_table
from seesaw_cf.cli import COMMANDS, gone, main
from seesaw_cf.cli.output import explained
from seesaw_cf.texts.graph import GraphJob
from seesaw_cf.texts.graph.crawl import crawl_identities
from seesaw_cf.texts.graph.identities import find
from seesaw_cf.texts.tables import PASSAGES
from tests import fresh
from tests.cli.commands import OPTIONS
from tests.stereotypes.fakes import FakeGenerator


def shell(line: str) -> subprocess.CompletedProcess[str]:
    command = f'seesaw() {{ "{sys.executable}" -m seesaw_cf "$@"; }}; {line}'
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=120)


def test_a_full_disk_below_the_output_is_named() -> None:
    done = shell("seesaw list models > /dev/full")
    assert done.returncode == 1
    assert done.stderr == (
        "error: the output cannot be written: No space left on device. Free some space, or send it somewhere else.\n"
    )


def test_a_closed_pipe_ends_quietly() -> None:
    assert shell("{ seesaw list; echo $? >&2; } | true").stderr == "141\n"


def test_a_terminal_without_unicode_gets_escapes() -> None:
    code = "from seesaw_cf.cli.output import say; say('naïve \\u2603')"
    done = shell(f'PYTHONIOENCODING=ascii "{sys.executable}" -c "{code}"')
    assert (done.returncode, done.stdout) == (0, "na\\xefve \\u2603\n")


@pytest.mark.parametrize("word", ["a\0b", "\udcff"])
@pytest.mark.parametrize("before", [["report"], ["audit", "--model"]])
def test_words_that_no_file_could_hold(before: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*before, word]) == 2
    assert f"error: got {word!a}, expected UTF-8 text without NUL" in capsys.readouterr().err


def raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """`seesaw-cf list` ends in an error."""

    def list_names() -> None:
        """Raise."""
        raise error

    monkeypatch.setattr("seesaw_cf.cli.tools.list_names", list_names)


_RESPONSE = httpx.Response(403, request=httpx.Request("GET", "https://huggingface.co/x/y"))


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/x/y"), "/x/y: No space left on device. Free some space"),
        (PermissionError(errno.EACCES, "Permission denied", "/x"), "/x: Permission denied. Choose a place that you"),
        (OSError(errno.ELOOP, "Too many levels of symbolic links", "/x"), "The links lead in a circle"),
        (GatedRepoError("x/y is restricted", response=_RESPONSE), "is restricted. Ask for access on its page"),
        (LocalEntryNotFoundError("no such file in the cache"), "no such file in the cache. Unset HF_HUB_OFFLINE"),
        (HFValidationError("Repo id must be"), "Repo id must be. Expected a name such as ORG/NAME."),
        (httpx.ConnectError("All attempts failed"), "All attempts failed. Check the address and the network"),
        (safetensors.SafetensorError("header too small"), "header too small. The file of weights is damaged"),
        (pa.ArrowInvalid("no magic bytes"), "no magic bytes. The table is damaged"),
        (MemoryError(), "not enough memory (MemoryError.). Close other programs, give less at once"),
        (pa.ArrowMemoryError("malloc of size 64 failed"), "not enough memory (malloc of size 64 failed.). Close other"),
        (ModuleNotFoundError("No module named 'openai'", name="openai"), "the package 'openai' is not installed"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"), "a text is not UTF-8"),
    ],
)
def test_errors_of_the_libraries_are_explained(
    error: Exception, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    raising(error, monkeypatch)
    assert main(["list"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert message in said
    with pytest.raises(type(error)):
        main(["--debug", "list"])


@pytest.mark.parametrize("error", [KeyError("x"), TypeError("x"), ValueError("x"), ModuleNotFoundError("seesaw_cf.x")])
def test_a_fault_keeps_its_traceback(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    assert explained(error) is None
    raising(error, monkeypatch)
    with pytest.raises(type(error)):
        main(["list"])


def test_interrupted_and_unread(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    raising(KeyboardInterrupt(), monkeypatch)
    assert main(["list"]) == 130
    assert "What was finished is kept" in capsys.readouterr().err
    raising(BrokenPipeError(), monkeypatch)
    assert main(["list"]) == 141
    assert capsys.readouterr().err == ""


def test_a_wrong_name_is_refused_before_torch_is_imported(tmp_path: Path) -> None:
    usual = ["--model", "seesaw-tiny", "--out", str(tmp_path / "out")]
    calls = [["audit", *usual, "--editor", "memitt"], ["audit", *usual, "--editor", "ft", "--editor", "random(fft)"]]
    code = f"import sys; from seesaw_cf.cli import main; print(*map(main, {calls!r}), 'torch' in sys.modules)"
    done = fresh.python("-c", code)
    assert done.stdout == "1 1 False\n"
    assert done.stderr.count("unknown editor") == 2
    assert "Did you mean" in done.stderr


COMMANDS_GONE = {name: use for names, use in gone.COMMANDS.items() for name in names.split("|")}
OPTIONS_GONE = {name: use for names, use in gone.OPTIONS.items() for name in names.split("|")}


@pytest.mark.parametrize(("name", "use"), COMMANDS_GONE.items())
def test_a_removed_command_names_what_to_use(name: str, use: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(name.split()) == 2
    assert f"command {name} was removed: {use}." in capsys.readouterr().err


@pytest.mark.parametrize(("name", "use"), OPTIONS_GONE.items())
def test_a_removed_option_names_what_to_use(name: str, use: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", name]) == 2
    assert f"option {name} was removed: {use}." in capsys.readouterr().err


def test_nothing_that_lives_is_called_removed() -> None:
    """A removed option may live on in another command, never one that has its old sense."""
    assert not set(COMMANDS) & set(COMMANDS_GONE)
    assert {one.name for options in OPTIONS.values() for one in options} & set(OPTIONS_GONE) <= {
        "--metric",
        "--report",
        "--people",
        "--repeats",
        "--examples",
        "--encoder",
    }


UNSCORED = ["--regard", "none", "--attack", "none"]
WRITER = ["--editor", "ike", "--base-url", "http://127.0.0.1:9/v1", "--key-env", "NO_SUCH_KEY"]
OK = "--acknowledge-content"


@pytest.mark.parametrize(
    "words",
    [
        ["texts", "write", "m", *WRITER, "--rate", "local/judge", "--out", "new"],
        ["texts", "rate", "passages.parquet", "--rater", "m", *WRITER[2:], "--out", "new"],
        ["graph", "run", "m", *WRITER[2:], *UNSCORED, "--identities", "Women", "--out", "new", OK],
        ["graph", "run", "m", "--regard", "none", "--attack", "perspective", "--out", "new", OK],
    ],
    ids=["writer", "judge", "crawl", "perspective"],
)
def test_a_missing_key_is_the_first_thing_that_is_said(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for key in ("NO_SUCH_KEY", "PERSPECTIVE_API_KEY"):
        monkeypatch.delenv(key, raising=False)
    write_table(tmp_path / "passages.parquet", PASSAGES.empty_table())
    crawl_identities(FakeGenerator(), find(["Women"]), GraphJob("m", triples=4), tmp_path / "crawl")
    for place in ("AutoModel", "AutoModelForCausalLM", "AutoModelForSequenceClassification", "AutoTokenizer"):
        monkeypatch.setattr(
            f"transformers.{place}.from_pretrained", lambda *_, **__: pytest.fail("a model was loaded before")
        )
    capsys.readouterr()
    assert main(words) == 1
    key = "PERSPECTIVE_API_KEY" if "perspective" in words else "NO_SUCH_KEY"
    assert f"the environment variable {key} is not set" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
