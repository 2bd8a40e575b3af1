"""Every command, snippet and notebook of README and docs/ is run, in an empty folder, as a reader would run it."""

import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from docs.tools.hooks import generated
from docs.tools.notebooks import FOLDER, notebook_page
from seesaw_cf.cli import COMMANDS

from .. import fresh
from .stand_ins import StandIns

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
MADE = {ROOT / "docs" / name for name in generated()}  # only in the site
# Pages that `make exhaustive` runs: what they show is what `make slow` runs in tests of the same commands.
WEEKLY = {"building", "editors", "longform", "papers", "performance", "related", "sharing"}
WEEKLY |= {"statistics", "stereotypes", "study"}
LONGEST = {"README": 500}  # seconds: they begin first
RUN_PAGES = [
    pytest.param(
        page, marks=[pytest.mark.slow(LONGEST.get(page.stem, 60))] + [pytest.mark.exhaustive] * (page.stem in WEEKLY)
    )
    for page in PAGES
]
BLOCK = re.compile(r"^```(bash|python|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
UNFILLED = re.compile(r"ORG/|YOUR_|https?://(?!127\.0\.0\.1)")
# First words of commands that are not run inside the tests, and why.
NOT_RUN = {
    "make": "runs this test itself; `make -n` shows that the target exists",
    "git": "clones this repository",
    "pip": "installs this package",
    "python": "a benchmark: takes minutes and writes into the checkout; its file must exist",
    "benchmarks/study/texts.sh": "downloads a Debian package",
}
FEW_EDITS = ("--number", "P21=4", "P101=4", "P27=4", "P19=4", "P103=4")
# A file that docs/papers.md says a command makes.
FILE = re.compile(r"`((?:data|audit|dose|long|long-tables)/[\w./-]+)`")
BARE = re.compile(r"`(\w+\.(?:csv|png))`")
# In short: the page's own command, with fewer folds, passes, samples and cases.
SHORTER = {
    "serve": ("--port", "0", "--idle", "0.1"),
    "dose": ("--orders", "1"),
    "api_run": ("--limit", "1"),
    "runs/real": ("--limit", "1"),
    "classifier": ("--folds", "0"),
    "rater": ("--folds", "2"),
    "build sample": FEW_EDITS,
    "seesaw": FEW_EDITS,
    "seesaw-qlever": FEW_EDITS,
}


def _blocks(page: Path) -> list[tuple[str, str]]:
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def _lines(text: str) -> list[str]:
    lines = (line.split("  #")[0].strip() for line in text.replace("\\\n", " ").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _of_other_pages() -> set[str]:
    """Files that the pages which docs/papers.md sends a reader to say their commands write."""
    pages = ((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("longform", "study"))
    return {name for page in pages for name in BARE.findall(page)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_is_known(page: Path) -> None:
    for command in [line for kind, text in _blocks(page) if kind == "bash" for line in _lines(text)]:
        words = shlex.split(command)
        assert words[0] == "seesaw-cf" or words[0] in NOT_RUN, f"no test runs: {command}"
        if words[0] == "seesaw-cf":
            assert words[1] in {name.split()[0] for name in COMMANDS}, command
        if words[0] == "make":
            subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, check=True, capture_output=True)
        if words[0] == "python":
            named = words[2].replace(".", "/") + ".py" if words[1] == "-m" else words[1]
            assert (ROOT / named).exists(), command


@pytest.mark.parametrize("page", RUN_PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_and_snippet_runs_in_order(
    page: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with StandIns(tmp_path, tmp_path_factory.mktemp("stand-ins")) as stand_ins:
        for kind, text in _blocks(page):
            if kind == "python":
                code, said = fresh.snippet(text, tmp_path)
                assert code == 0, f"{text}\n{said}"
                continue
            if kind == "yaml":  # its first line is a comment with the name of the file
                (tmp_path / text.splitlines()[0].removeprefix("# ")).write_text(text, encoding="utf-8")
                continue
            for command in _lines(text):
                words = shlex.split(stand_ins.fill(command))
                words += next((extra for name, extra in SHORTER.items() if set(name.split()) <= set(words)), ())
                assert not UNFILLED.search(" ".join(words)), f"no stand-in: {command}"
                if words[0] not in NOT_RUN:
                    code, said = stand_ins.run(words)
                    assert code == 0, f"{command}\n{said}"
    if page.name == "papers.md":
        assert not [name for name in FILE.findall(page.read_text(encoding="utf-8")) if not (tmp_path / name).exists()]
        made = {file.name for file in tmp_path.rglob("*.*")}
        assert set(BARE.findall(page.read_text(encoding="utf-8"))) - made <= _of_other_pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pictures_and_linked_files_are_there(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists() or page.parent / target in MADE, target


NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
RUN = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from docs.tools.notebooks import run_notebook
Path("printed.json").write_text(json.dumps(run_notebook(Path({file!r}), Path("."))))
"""


def _cells(file: Path) -> list[dict[str, Any]]:
    return [cell for cell in json.loads(file.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def _words(text: str) -> list[str]:
    """Without numbers, whose last digits depend on the machine, and the white space that fits columns to them."""
    return re.sub(r"(?<!\w)[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?", "#", text).split()


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_calls_audit_imports_from_packages_and_stores_what_it_printed(file: Path) -> None:
    text = "\n".join("".join(cell["source"]) for cell in _cells(file))
    assert "seesaw_cf." in text
    assert not re.search(r"^from seesaw_cf\.(cli|\w+\.)", text, re.MULTILINE)
    assert all(cell["execution_count"] is None for cell in _cells(file))
    assert {output["output_type"] for cell in _cells(file) for output in cell["outputs"]} <= {"stream"}
    page, book = notebook_page(file), json.loads(file.read_text(encoding="utf-8"))
    assert all("".join(cell["source"]) in page for cell in book["cells"])
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])


@pytest.mark.slow(60)
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_and_prints_what_it_says(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    code, said = fresh.snippet(RUN.format(root=str(FOLDER.parents[1]), file=str(file)), tmp_path)
    assert code == 0, said
    printed = json.loads((tmp_path / "printed.json").read_text(encoding="utf-8"))
    stored = ["".join("".join(output["text"]) for output in cell["outputs"]) for cell in _cells(file)]
    assert [_words(text) for text in printed] == [_words(text) for text in stored]


@pytest.mark.slow(400)
def test_a_real_model_is_audited_while_it_is_tuned(tmp_path: Path) -> None:
    """The first tutorial with SmolLM2 in place of the toy model: numbers of its own in the same lines."""
    model = next((Path.home() / ".cache" / "seesaw_cf" / "models").glob("smollm2-135m-q4-*"), None)
    if model is None:
        pytest.skip("`python -m benchmarks.real_model` has not written SmolLM2")
    book = (FOLDER / "finetune.ipynb").read_text(encoding="utf-8").replace("seesaw-tiny", str(model))
    (tmp_path / "finetune.ipynb").write_text(book.replace("limit=40", "limit=8"), encoding="utf-8")
    code, said = fresh.snippet(RUN.format(root=str(ROOT), file=str(tmp_path / "finetune.ipynb")), tmp_path)
    assert code == 0, said
    log = json.loads((tmp_path / "printed.json").read_text(encoding="utf-8"))[2]
    assert [line.split()[0] for line in log.splitlines()[2:]] == ["32", "64"]
    assert "nan" not in log.lower()
