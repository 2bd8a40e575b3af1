"""Fresh processes that start at once: forked from a server that has imported the libraries and nothing of this package.

Importing torch and transformers costs each process some eight seconds, more than most commands take on the embedded
model. Everything else is as after `python -m ...` or `python -c ...`: own folder, arguments, streams, modules, end.
"""

import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

__all__ = ["code", "command", "module", "python", "snippet", "start"]

# What many commands import. A library that is missing is passed over here; the command that needs it says so.
LIBRARIES = [
    "transformers.models.llama.modeling_llama",
    "transformers.conversion_mapping",
    "datasets",
    "evaluate",
    "scipy.stats",
    "sklearn.decomposition",
    "sklearn.feature_extraction.text",
    "networkx",
    "matplotlib.backends.backend_agg",
]


def python(*words: str, ends: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """`python WORDS`, which imports everything anew and ends with this exit code; options are those of `subprocess`."""
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=600, check=False, **options)
    assert done.returncode == ends, done.stdout[-1000:] + done.stderr[-3000:]
    return done


def command(words: Sequence[str], cwd: Path) -> tuple[int | None, str]:
    """`python -m seesaw_cf WORDS` in a folder: its exit code (negative: a signal), and what it said on both streams."""
    return _finish(module, ("seesaw_cf", *words), cwd)


def snippet(text: str, cwd: Path) -> tuple[int | None, str]:
    """`python -W error::FutureWarning:seesaw_cf -c TEXT` in a folder; answers as `command`."""
    return _finish(code, (text,), cwd)


def start(work: Callable[..., None], words: Sequence[str], cwd: Path, said: str = os.devnull) -> BaseProcess:
    """A process in a folder that does `module(*words)` or `code(*words)`, its streams appended to the file `said`."""
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(LIBRARIES)
    process = server.Process(target=_begin, args=(said, cwd, dict(os.environ), work, words))
    process.start()
    return process


def module(name: str, *words: str) -> None:
    """As `python -m NAME WORDS`."""
    sys.argv = [name, *words]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


def code(text: str, *words: str) -> None:
    """As `python -W error::FutureWarning:seesaw_cf -c TEXT WORDS`."""
    warnings.filterwarnings("error", category=FutureWarning, module=r"seesaw_cf\Z")
    sys.argv = ["-c", *words]
    exec(compile(text, "<string>", "exec"), {"__name__": "__main__"})


def _finish(work: Callable[..., None], words: Sequence[str], cwd: Path) -> tuple[int | None, str]:
    with tempfile.NamedTemporaryFile("r", encoding="utf-8", errors="replace") as said:
        process = start(work, words, cwd, said.name)
        process.join()
        return process.exitcode, said.read()


def _begin(
    said: str, cwd: Path, environment: Mapping[str, str], work: Callable[..., None], words: Sequence[str]
) -> None:
    """In the new process: the streams, the variables, and the folder in the place of the checkout on the path."""
    for stream in (1, 2):
        os.dup2(os.open(said, os.O_WRONLY | os.O_APPEND), stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(cwd)
    sys.path[0] = ""
    work(*words)
