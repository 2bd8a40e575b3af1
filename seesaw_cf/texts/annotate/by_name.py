"""Annotators by name or folder."""

from __future__ import annotations

from pathlib import Path

from seesaw_cf.base.public import checked
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.texts.annotate.annotate import Annotator
from seesaw_cf.texts.annotate.lexical import LexicalAnnotator


def measured(name: str) -> JsonObject:
    """Return what a run keeps of its annotator: its name, and the report of its training, empty without one.

    Args:
        name: See `load_annotator`.
    """
    file = Path(name) / "report.json"
    return {"name": name, "report": read_json(file, any_number=True) if file.is_file() else {}}


@checked
def load_annotator(name: str | Path, *, device: str = "cpu") -> Annotator:
    """Load an annotator.

    Args:
        name: "lexical", or the folder or Hub id of a sequence classifier: one that `seesaw-cf leme train-annotator`
            made, or any three-way NLI model.
        device: A torch device.

    Raises:
        UnknownNameError: The model cannot be loaded or has other labels.
    """
    if str(name) == "lexical":
        return LexicalAnnotator()
    from seesaw_cf.texts.annotate.encoder import load_classifier

    return load_classifier(str(name), device=device)
