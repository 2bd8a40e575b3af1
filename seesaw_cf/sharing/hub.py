"""Publishing an edit as a repository on the Hugging Face Hub. Tokens are read by huggingface_hub and never written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.errors import EditError, RecordError, StorageError
from seesaw_cf.base.files import write_text
from seesaw_cf.base.hub import NAME, check_repo, explained
from seesaw_cf.base.text import read_json
from seesaw_cf.models.adapters import to_peft
from seesaw_cf.models.delta_files import describe, load_delta, merge_and_save, save_delta
from seesaw_cf.models.weights import BaseFacts, WeightDelta
from seesaw_cf.sharing.card import SCORES_FILE, card, result_entries
from seesaw_cf.sharing.evidence import Evidence, edit_evidence

FORMS = ("delta", "adapter", "checkpoint")
_MESSAGE = "Edited model, made with seesaw_cf"


@dataclass(frozen=True, slots=True)
class ShareOptions:
    """What belongs to an edit that is shared, and which one it is.

    Attributes:
        model: The unedited base; loaded as the run's manifest or the delta's folder states when None and needed.
        tokenizer: Needed for a checkpoint; loaded with the model.
        evidence: What was measured about this edit; taken from the run folder when None.
        base_model: Name of the base on the Hub; needed when the model came from a local path.
        editor, unit: Which delta of a run folder that has several.
        rank: Rank of an adapter, see `to_peft`.
    """

    model: PreTrainedModel | None = None
    tokenizer: PreTrainedTokenizerBase | None = None
    evidence: Evidence | None = None
    base_model: str | None = None
    editor: str | None = None
    unit: str | None = None
    rank: int | None = None


def share(
    source: WeightDelta | str | os.PathLike[str],
    repo: str,
    as_: str = "delta",
    options: ShareOptions | None = None,
    *,
    private: bool | None = None,
    overwrite: bool = False,
) -> str:
    """Create a repository on the Hub, write the card and push an edit in one commit.

    Sharing the same edit again changes nothing. The endpoint is HF_ENDPOINT, the token HF_TOKEN or the one of
    `hf auth login`, as everywhere in huggingface_hub.

    Args:
        source: A delta, a folder that `save_delta` wrote, or a run folder with `deltas/EDITOR/UNIT/`.
        repo: "org/name".
        as_: "delta" (small, refuses another base), "adapter" (LoRA, loaded by peft) or "checkpoint" (the whole model).
        options: What belongs to the edit, and which one it is.
        private: Make a private repository; the account's default when None.
        overwrite: Replace what the repository holds.

    Returns:
        The address of the repository.

    Raises:
        UnknownNameError: `as_` is unknown.
        EditError: The edit cannot take that form, is zero, or holds numbers that are not finite.
        RecordError: The name of the repository or base is malformed, a file is damaged, or no one delta is meant.
        StorageError: The Hub refused (rights, other content there) or did not answer.
    """
    one_of("form to share an edit in", as_, FORMS)
    check_repo(repo)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "repository"
        prepare_repo(source, repo, folder, as_, options)
        return push_folder(folder, repo, private, overwrite)


def prepare_repo(
    source: WeightDelta | str | os.PathLike[str],
    repo: str,
    folder: str | os.PathLike[str],
    as_: str = "delta",
    options: ShareOptions | None = None,
) -> None:
    """Write what `share` would push into a local folder, card included; nothing leaves the machine.

    See `share` for arguments and errors.
    """
    how = options or ShareOptions()
    model, tokenizer, evidence = how.model, how.tokenizer, how.evidence
    where, origin = _located(source, how.editor, how.unit)
    base = base_name(how.base_model or origin.get("id") or _own(model))
    if isinstance(source, WeightDelta):
        delta = source
    else:
        run = where.parents[2] if where.parent.parent.name == "deltas" else where
        if evidence is None and (run / "manifest.json").exists():
            evidence = edit_evidence(run, where.parent.name, where.name)
        if model is None and as_ != "delta":
            model, tokenizer = _load(where, origin)
        delta = load_delta(where, model)
    _check_worth(delta)
    if as_ == "delta":
        save_delta(delta, folder, model, base_model=base)
    elif model is None:
        raise EditError(
            "an adapter or a checkpoint needs the unedited base. Pass model=... (and tokenizer=...) to share."
        )
    elif as_ == "adapter":
        to_peft(delta, model, folder, base_model=base, rank=how.rank)
    elif tokenizer is not None:
        merge_and_save(model, tokenizer, delta, folder, base_model=base)
    else:
        raise EditError("a checkpoint needs the tokenizer beside the model. Pass tokenizer=... to share.")
    text = card(repo, as_, describe(delta, model, base), base, evidence)
    write_text(Path(folder) / "README.md", text)
    if evidence is not None and evidence.scores is not None:
        rows = (json.dumps(row, ensure_ascii=False) for row in evidence.scores.to_pylist())
        write_text(Path(folder) / SCORES_FILE, "\n".join(rows) + "\n")
    if entries := result_entries(evidence, repo):
        write_text(Path(folder) / ".eval_results" / "seesaw_cf.yaml", json.dumps(entries, indent=1))  # JSON is YAML


class ModelOrigin(TypedDict, total=False):
    """What loads the base of an edit, by the names of a run's manifest."""

    id: str | None
    revision: str | None
    dtype: str


def _check_worth(delta: WeightDelta) -> None:
    if not delta.is_finite():
        raise EditError("this delta holds numbers that are not finite; the edit failed. Do not share it; edit again.")
    if delta.is_zero():
        raise EditError("this delta changes nothing; there is nothing to share. Check the edit's efficacy.")


def _located(
    source: WeightDelta | str | os.PathLike[str], editor: str | None, unit: str | None
) -> tuple[Path, ModelOrigin]:
    """Return the folder of the one delta that is meant, and the id, revision and dtype of its base."""
    if isinstance(source, WeightDelta):
        return Path(), _base_of(source.meta.get("base"))
    place = Path(source)
    if (place / "manifest.json").exists():
        return _delta_of_run(place, editor, unit), read_json(place / "manifest.json").get("model", {})
    if not (place / "delta.json").exists():
        raise StorageError(
            f"{place}: holds neither manifest.json nor delta.json; expected a run folder (made by `seesaw-cf audit "
            "--keep-deltas --out FOLDER ...`) or the folder of one delta. Check the path."
        )
    return place, _base_of(read_json(place / "delta.json").get("base"))


def _base_of(facts: BaseFacts | None) -> ModelOrigin:
    """Return what a delta records about its base, by the names of a run's manifest."""
    base: BaseFacts = facts or {}
    return {"id": base.get("model_id"), "revision": base.get("revision"), "dtype": base.get("dtype") or "float32"}


def _delta_of_run(run: Path, editor: str | None, unit: str | None) -> Path:
    """Return the folder of the one delta of a run that fits."""
    deltas = sorted(file.parent for file in run.glob("deltas/*/*/delta.json"))
    fits = [p for p in deltas if editor in (None, p.parent.name) and unit in (None, p.name)]
    if not deltas:
        raise StorageError(f"{run}: this run kept no deltas (deltas/EDITOR/UNIT/). Run again with --keep-deltas.")
    if len(fits) != 1:
        names = ", ".join(f"{place.parent.name}/{place.name}" for place in (fits or deltas)[:5])
        raise RecordError(
            f"{run}: {len(fits)} deltas fit, expected one of {names}, named EDITOR/UNIT. Say which with "
            "editor and unit (--editor, --unit)."
        )
    return fits[0]


def _load(where: Path, origin: ModelOrigin) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    name = origin.get("id")
    if not name:
        raise EditError(
            f"{where}: the base of this delta was not recorded; an adapter or a checkpoint needs it. "
            "Pass model=... (and tokenizer=...) to share, or share it as a delta (--form delta)."
        )
    from seesaw_cf.models.load import load_model

    return load_model(name, revision=origin.get("revision") or None, dtype=origin.get("dtype", "float32"))


def _own(model: PreTrainedModel | None) -> str:
    return "" if model is None else str(model.config._name_or_path or "")


def base_name(name: str) -> str:
    """Refuse local paths: they mean nothing elsewhere and tell about the machine."""
    parts = name.split("/")
    if not name or len(parts) > 2 or not all(NAME.fullmatch(part) for part in parts) or os.path.exists(name):
        raise RecordError(
            f"base model {name!r}: expected the name readers can load it by, such as 'org/name'. "
            "Pass base_model=... (--base-model)."
        )
    return name


def push_folder(
    folder: Path, repo: str, private: bool | None, overwrite: bool, *, kind: str = "model", message: str = _MESSAGE
) -> str:
    """Make a repository hold exactly the files of a folder, in one commit.

    Args:
        folder: With the card as README.md.
        repo: ORG/NAME; made when it does not exist.
        private: Visibility of a new repository; the account's default when None.
        overwrite: Replace other content.
        kind: "model", "dataset" or "space" (a static one).
        message: Of the commit.

    Returns:
        The address of the repository.

    Raises:
        StorageError: The Hub refused or did not answer, or there is other content.
    """
    from huggingface_hub import HfApi

    api = HfApi(library_name="seesaw_cf")
    with explained(repo):
        sdk = "static" if kind == "space" else None
        url = str(api.create_repo(repo, repo_type=kind, private=private, exist_ok=True, space_sdk=sdk))
        tree = api.list_repo_tree(repo, recursive=True, repo_type=kind)
        entries = {entry.path: entry for entry in tree if hasattr(entry, "blob_id")}
        entries.pop(".gitattributes", None)
        others = [path for path, entry in entries.items() if not _same(folder / path, entry)]
        if others and not overwrite:
            raise StorageError(
                f"{repo} exists and holds other content ({', '.join(others[:5])}{', ...' if len(others) > 5 else ''}). "
                "Choose another name, or pass overwrite=True (--overwrite) to replace it."
            )
        ours = {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}
        if others or not ours <= set(entries):
            gone = [path for path in others if path not in ours] or None
            api.upload_folder(
                repo_id=repo, folder_path=folder, repo_type=kind, commit_message=message, delete_patterns=gone
            )
    return url


def _same(file: Path, entry: Any) -> bool:
    """Return whether the file in the repository is, byte for byte, the one about to be pushed."""
    if not file.is_file():
        return False
    content = file.read_bytes()
    if entry.lfs is not None:
        return bool(hashlib.sha256(content).hexdigest() == entry.lfs.sha256)
    return bool(hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest() == entry.blob_id)


# Publishing the page of a report as a static Space on the Hugging Face Hub.


def share_page(folder: str | os.PathLike[str], repo: str, *, public: bool = False, overwrite: bool = False) -> str:
    """Make a Space that shows a report, in one commit: the page that was looked at here, and the tables it links to.

    Args:
        folder: The folder of a report (of a run, a comparison or a study), or a run folder with `report/` in it.
        repo: "org/name".
        public: Visible to all people; a new Space is private otherwise.
        overwrite: Replace what the Space holds.

    Returns:
        The address of the Space.

    Raises:
        RecordError: A malformed name.
        StorageError: The folder has no report, or the Hub refused or did not answer.
    """
    check_repo(repo)
    pages = _report_folder(Path(folder))
    with tempfile.TemporaryDirectory() as temporary:
        space = Path(temporary) / "space"
        space.mkdir()
        shutil.copyfile(pages / "report.html", space / "index.html")
        for file in (pages / "report.json", *sorted(pages.glob("tables/*.csv"))):
            if file.is_file():
                place = space / file.relative_to(pages)
                place.parent.mkdir(exist_ok=True)
                shutil.copyfile(file, place)
        write_text(space / "README.md", _card(repo))
        return push_folder(space, repo, not public, overwrite, kind="space", message="Report, made with seesaw_cf")


def _report_folder(source: Path) -> Path:
    for folder in (source, source / "report"):
        if (folder / "report.html").is_file():
            return folder
    raise StorageError(
        f"{source}: no report.html there nor in its folder report. Write it with `seesaw-cf report RUN`, look at it, "
        "and give the folder it is in."
    )


def _card(repo: str) -> str:
    return f"""---
title: {json.dumps(repo.split("/")[-1])}
sdk: static
app_file: index.html
tags:
- seesaw-cf
- model-editing
- fairness
---

A report of side effects of knowledge edits on answers about other people, made with `seesaw_cf`. The
page asks no network and keeps nothing. The edits are counterfactual: neither they nor anything an edited model says is
a statement about the people named.
"""
