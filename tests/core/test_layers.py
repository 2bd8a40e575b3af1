"""Who may import whom: the right-hand column of the folder table, checked on the source text."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINKS = ("editors", "metrics", "builder_scripts")

# Folder -> what its files may import of this package (prefixes after "seesaw_cf.").
ALLOWED: dict[str, tuple[str, ...]] = {
    "editors": (
        "editors",
        "waiting",
        "types",
        "errors",
        "checks",
        "weights",
        "scoring",
        "files",
        "textfiles",
        "prescores",
        "controls",
        "corpus",
    ),
    "metrics": (
        "metrics",
        "citations",
        "effects",
        "stats",
        "errors",
        "checks",
        "types",
        "groups",
        "relations",
        "tables",
    ),
}
# Heavy packages that metrics, tables and statistics must work without.
LIGHT = (
    "citations",
    "types",
    "errors",
    "checks",
    "files",
    "textfiles",
    "hub",
    "relations",
    "controls",
    "tolerance",
    "groups",
    "tables",
    "effects",
    "stats",
    "records",
    "questions",
)


def _sources(folder: Path) -> list[Path]:
    return [file for file in folder.rglob("*.py") if "__pycache__" not in file.parts]


def _imports(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _library() -> list[Path]:
    return [file for file in _sources(ROOT / "seesaw_cf") if file.relative_to(ROOT / "seesaw_cf").parts[0] not in LINKS]


def test_the_library_never_imports_editors_metrics_or_builders() -> None:
    found = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in _library()
        for name in _imports(file)
        if name.startswith(tuple(f"seesaw_cf.{link}" for link in LINKS)) or name.split(".")[0] in LINKS
    ]
    assert found == []


@pytest.mark.parametrize("folder", ALLOWED)
def test_editors_and_metrics_import_only_what_they_may(folder: str) -> None:
    allowed = tuple(f"seesaw_cf.{name}" for name in ALLOWED[folder])
    found = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in _sources(ROOT / folder)
        for name in _imports(file)
        if name.startswith("seesaw_cf.") and not name.startswith(allowed)
    ]
    assert found == []


def test_metrics_and_tables_never_import_torch() -> None:
    light = [file for file in _library() if file.relative_to(ROOT / "seesaw_cf").parts[0].removesuffix(".py") in LIGHT]
    assert len(light) >= len(LIGHT) - 2
    heavy = ("torch", "transformers", "seesaw_cf.weights", "seesaw_cf.scoring")
    found = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in [*light, *_sources(ROOT / "metrics")]
        for name in _imports(file)
        if name.startswith(heavy) and "perplexity" not in file.name
    ]
    assert found == []


def test_no_network_code_in_scoring_or_metrics() -> None:
    network = ("requests", "httpx", "httpx2", "urllib", "socket", "http", "huggingface_hub", "SPARQLWrapper")
    found = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in [*_sources(ROOT / "seesaw_cf" / "scoring"), *_sources(ROOT / "metrics")]
        for name in _imports(file)
        if name.split(".")[0] in network
    ]
    assert found == []


def test_nothing_pickles_or_trusts_remote_code_by_itself() -> None:
    for file in [*_library(), *(source for link in LINKS for source in _sources(ROOT / link))]:
        text = file.read_text(encoding="utf-8")
        assert "pickle" not in {name.split(".")[0] for name in _imports(file)}, file
        assert "torch.load(" not in text, file
        assert "trust_remote_code=True" not in text, file


def test_no_loading_script_name() -> None:
    """`datasets` takes seesaw_cf/seesaw_cf.py for a loading script and refuses the whole folder."""
    assert not (ROOT / "seesaw_cf" / "seesaw_cf.py").exists()
