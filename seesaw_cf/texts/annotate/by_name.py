"""Annotators by name or folder."""

from __future__ import annotations

from pathlib import Path

from seesaw_cf.base.arguments import check_public
from seesaw_cf.base.checks import check_path
from seesaw_cf.base.errors import StorageError
from seesaw_cf.base.text import read_json
from seesaw_cf.texts.annotate.annotate import Annotator
from seesaw_cf.texts.annotate.folder import read_settings, remember
from seesaw_cf.texts.annotate.lexical import LexicalAnnotator
from seesaw_cf.texts.annotate.reports import AnnotatorReport, NamedReport

SHIPPED = "trained"  # the name of the annotator that comes with the package


def shipped_folder() -> Path:
    """Return the folder of the package's trained annotator: a forest over words, its card, its held-out figures."""
    return Path(__file__).parents[2] / "models" / "leme-annotator"


def measured(name: str) -> NamedReport:
    """Return what a run keeps of its annotator: its name, and the report of its training when it was trained.

    Args:
        name: See `load_annotator`.
    """
    file = (shipped_folder() if name == SHIPPED else check_path(name)) / "report.json"
    report: AnnotatorReport = read_json(file, any_number=True) if file.is_file() else {}
    return {"name": name, "report": report}


def load_annotator(name: str | Path, *, device: str = "cpu") -> Annotator:
    """Load an annotator.

    Args:
        name: "trained" (comes with the package), "lexical", "nli:ID_OR_FOLDER" for a zero-shot NLI model, or a folder
            made by `train_annotator`.
        device: A torch device.

    Raises:
        StorageError: The folder is missing, damaged, or holds another kind of instrument.
        UnknownNameError: The NLI model cannot be loaded or has other labels.
    """
    if str(name) == "lexical":
        return LexicalAnnotator()
    if str(name).startswith("nli:"):
        from seesaw_cf.texts.annotate.encoder import load_nli

        return load_nli(str(name).removeprefix("nli:"), device=device)
    folder = shipped_folder() if str(name) == SHIPPED else Path(name)
    kind = read_settings(folder)["kind"]
    if kind == "match":
        from seesaw_cf.texts.annotate.match import load_match

        return remember(load_match(folder, device), folder)
    if kind == "pair":
        from seesaw_cf.texts.annotate.encoder import load_pair

        return remember(load_pair(folder, device), folder)
    raise StorageError(
        f"{folder}: holds a {kind!r}, expected an annotator. Give a folder made by `seesaw-cf leme train-annotator`, "
        "'trained', 'lexical' or 'nli:MODEL'."
    )


check_public(globals())
