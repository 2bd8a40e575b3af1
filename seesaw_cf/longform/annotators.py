"""Annotators by name or folder."""

from __future__ import annotations

from pathlib import Path

from seesaw_cf.errors import StorageError
from seesaw_cf.longform.annotate import Annotator
from seesaw_cf.longform.annotators_folder import read_settings
from seesaw_cf.longform.annotators_lexical import LexicalAnnotator

__all__ = ["load_annotator"]


def load_annotator(name: str | Path, *, device: str = "cpu") -> Annotator:
    """Loads an annotator.

    Args:
        name: "lexical", "nli:ID_OR_FOLDER" for a zero-shot NLI model, or a folder made by `train_annotator`.
        device: A torch device.

    Raises:
        StorageError: The folder is missing, damaged, or holds another kind of instrument.
        UnknownNameError: The NLI model cannot be loaded or has other labels.
    """
    if str(name) == "lexical":
        return LexicalAnnotator()
    if str(name).startswith("nli:"):
        from seesaw_cf.longform.annotators_encoder import load_nli

        return load_nli(str(name).removeprefix("nli:"), device=device)
    folder = Path(name)
    kind = read_settings(folder)["kind"]
    if kind == "match":
        from seesaw_cf.longform.annotators_match import load_match

        return load_match(folder, device)
    if kind == "pair":
        from seesaw_cf.longform.annotators_encoder import load_pair

        return load_pair(folder, device)
    raise StorageError(
        f"{folder}: holds a {kind!r}, expected an annotator. Give a folder made by `seesaw-cf leme train-annotator`, "
        "'lexical' or 'nli:MODEL'."
    )
