"""Sets of second moments on the Hub: a data set with one file for each layer, `set.json` and a card.

What is fetched is checked before it is put into the cache: the SHA-256 of each file, the key that `set.json` must have
and every file be marked with, shapes and numbers. The model's fingerprint is checked when the set is used.
"""

from __future__ import annotations

import math
import os
import tempfile
from pathlib import Path

from seesaw_cf.base.errors import StorageError
from seesaw_cf.base.files import atomic_path, dump_json, write_text
from seesaw_cf.base.hub import check_repo, explained
from seesaw_cf.base.terminal import markdown_table
from seesaw_cf.base.text import read_json
from seesaw_cf.editors.locate.moment_sets import (
    ORIGIN,
    RECORD,
    MomentRecord,
    MomentSet,
    find_set,
    read_set,
    sets_folder,
)
from seesaw_cf.models.gguf import file_sha256
from seesaw_cf.sharing.card import escaped
from seesaw_cf.sharing.hub import base_name, push_folder


def push_moments(
    name: str, repo: str, *, base_model: str | None = None, public: bool = False, overwrite: bool = False
) -> str:
    """Publish a set as a data set on the Hub, with a card, in one commit; the same set again changes nothing.

    Args:
        name: See `find_set`.
        repo: ORG/NAME.
        base_model: Name of the model on the Hub; needed when the set was made with a local folder.
        public: Make a new repository public; private otherwise.
        overwrite: Replace what the repository holds.

    Returns:
        The address of the repository.

    Raises:
        RecordError: The name of the repository or the model is malformed.
        StorageError: The set does not exist, a file of it is damaged, or the Hub refused or did not answer.
    """
    check_repo(repo)
    moments = find_set(name)
    base = base_name(base_model or moments.record["model"].get("id") or "")
    _check_files(moments)
    files = {moments.files.path(layer).name: file_sha256(moments.files.path(layer)) for layer in moments.layers}
    record: MomentRecord = {**moments.record, "model": {**moments.record["model"], "id": base}, "files": files}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for file in files:
            (folder / file).symlink_to((moments.folder / file).resolve())
        dump_json(folder / RECORD, record)
        write_text(folder / "README.md", _card(repo, moments, record))
        message = "Second moments, made with seesaw_cf"
        return push_folder(folder, repo, not public, overwrite, kind="dataset", message=message)


def pull_moments(repo: str, revision: str | None = None) -> MomentSet:
    """Fetch a published set into the cache, where `fit` finds it for the same texts, or by the repository's name.

    Args:
        repo: ORG/NAME.
        revision: Branch, tag or commit; the newest when None.

    Returns:
        The set, checked.

    Raises:
        RecordError: The name of the repository is malformed.
        StorageError: The repository has no moments, they are damaged or another's, or the Hub or the disk failed.
    """
    root = sets_folder()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".pull-", dir=root) as temporary:
            sha, files = _fetch(repo, revision, Path(temporary))
            moments = read_set(Path(temporary))
            _check_files(moments)
            place = moments.place(root)
            for file in [*files, RECORD]:
                with atomic_path(place / file) as target:
                    os.replace(Path(temporary) / file, target)
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(
            f"{root}: the moments of {repo} cannot be written ({error.strerror or error}). Make room there, or set "
            "SEESAW_CF_CACHE to a folder on another disk."
        ) from error
    for other in root.glob(f"**/{ORIGIN}"):  # an older state of the same repository
        if other.parent != place and read_json(other).get("repository") == repo:
            other.unlink()
    dump_json(place / ORIGIN, {"repository": repo, "revision": sha, "files": files})
    return read_set(place)


def published_set(repo: str) -> tuple[MomentRecord, str]:
    """Return the content of a repository's `set.json`, and the commit.

    Raises:
        RecordError, StorageError: See `pull_moments`.
    """
    with tempfile.TemporaryDirectory() as temporary:
        sha = _fetch_record(repo, None, Path(temporary))
        return read_set(Path(temporary)).record, sha


def described(record: MomentRecord) -> dict[str, str]:
    """Return what a set is of, in words: model, dtype, corpus, texts, part."""
    facts, model, corpus = record["facts"], record["model"], record["corpus"]
    revision = f" at {model['revision']}" if model.get("revision") else ""
    source = "no file: texts given in Python, or the model's own"
    if corpus.get("source"):
        source = f"{corpus['source']}, SHA-256 {corpus.get('sha256', '')}"
    part = str(record["part"]).rpartition("within ")[2]
    return {
        "model": f"{model.get('id') or 'a local folder'}{revision}",
        "fingerprint": str(facts["model"]),
        "dtype": str(facts["dtype"]).removeprefix("torch."),
        "tokenizer": str(facts["tokenizer"]),
        "libraries": ", ".join(f"{name} {version}" for name, version in facts["libraries"].items()),
        "corpus": source,
        "texts": f"{facts['sample_size']:,} texts, SHA-256 {facts['corpus']}" + (f", to error {part}" if part else ""),
        "length": f"at most {facts['max_length']} tokens of a text" if facts["max_length"] else "whole texts",
    }


def _fetch(repo: str, revision: str | None, folder: Path) -> tuple[str, dict[str, str]]:
    """Return the commit and the files that were put into a folder, their hashes checked."""
    from huggingface_hub import HfApi

    sha = _fetch_record(repo, revision, folder)
    listed = read_set(folder).record.get("files")
    files = {f"layer-{number}.safetensors": "" for number in range(10_000)}  # no name is taken from the repository
    if not isinstance(listed, dict) or not listed or not set(listed) <= set(files):
        raise StorageError(f"data set {repo}: its {RECORD} lists no files layer-N.safetensors. {_AGAIN}")
    for file, expected in listed.items():
        with explained(repo, reading=True):
            HfApi(library_name="seesaw_cf").hf_hub_download(
                repo, file, repo_type="dataset", revision=sha, local_dir=folder
            )
        if (got := file_sha256(folder / file)) != expected:
            raise StorageError(
                f"data set {repo}: {file} has SHA-256 {got[:12]}, expected {str(expected)[:12]}: it is damaged or was "
                f"changed. Nothing was kept. {_AGAIN}"
            )
    return sha, {str(file): str(digest) for file, digest in listed.items()}


def _fetch_record(repo: str, revision: str | None, folder: Path) -> str:
    """Put `set.json` into a folder; the commit."""
    from huggingface_hub import HfApi

    check_repo(repo)
    api = HfApi(library_name="seesaw_cf")
    with explained(repo, reading=True):
        about = api.dataset_info(repo, revision=revision)
        if not any(entry.rfilename == RECORD for entry in about.siblings or ()):
            raise StorageError(
                f"data set {repo}: no second moments in it (no {RECORD}). Expected a repository that "
                "`seesaw-cf moments push` made."
            )
        api.hf_hub_download(repo, RECORD, repo_type="dataset", revision=about.sha, local_dir=folder)
    return str(about.sha)


def _check_files(moments: MomentSet) -> None:
    """Read every file of a set: whole, of this key, of its layer, square and finite."""
    if not moments.layers:
        raise StorageError(f"{moments.folder}: no files layer-N.safetensors. {_AGAIN}")
    for layer in moments.layers:
        try:
            moments.files.load(layer)
        except StorageError as error:
            raise StorageError(f"second moments cannot be used: {error}") from error


def _card(repo: str, moments: MomentSet, record: MomentRecord) -> str:
    """Return the text of README.md; every text of the record is escaped."""
    rows = []
    for layer in moments.layers:
        facts, file = moments.files.outline(layer), moments.files.path(layer).name
        error = "unknown" if math.isnan(facts["relative_error"]) else f"{facts['relative_error']:.2%}"
        counts = f"{facts['n_texts']:,}", f"{facts['n_tokens']:,}"
        rows.append([str(layer), *counts, error, f"`{file}`", f"`{record['files'][file]}`"])
    origin = [(name, escaped(text)) for name, text in described(record).items()]
    about = markdown_table(["what", "value"], origin, left=2)
    table = markdown_table(["layer", "texts", "tokens", "sampling error", "file", "SHA-256"], rows, left=6)
    model = record["model"]["id"]
    return f"""---
tags:
- seesaw-cf
- model-editing
- second-moments
viewer: false
---
# {escaped(repo.split("/")[-1])}

Uncentred second moments C = E[k kᵀ] of the inputs k of the MLP output projections of {escaped(model)}, for editing it
with ROME, MEMIT, EMMET or AlphaEdit. Averages over tokens: no text can be read from them.

{about}

{table}

The sampling error is the relative standard error of C in Frobenius norm. To use them:

```bash
seesaw-cf moments pull {repo}
seesaw-cf run --model MODEL --editor memit --moments {repo} --out runs/memit
```

They are refused for a model with other weights, configuration, dtype or tokenizer.
"""


_AGAIN = "Fetch it again, or ask its owner to publish it again with `seesaw-cf moments push`."
