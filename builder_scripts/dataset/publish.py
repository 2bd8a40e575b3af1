"""A dataset folder onto the Hub: checked, pushed in one commit, tagged, loaded back and compared."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, cast

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.files import dump_json, write_text
from seesaw_cf.base.hub import check_repo, explained
from seesaw_cf.builder_scripts.dataset.card import CardData, benchmark, published_card
from seesaw_cf.records.card import content_hash

if TYPE_CHECKING:
    from huggingface_hub import HfApi

_VERSION = re.compile(r"\d+\.\d+\.\d+")


@dataclass(frozen=True, slots=True)
class Published:
    """What was pushed.

    Attributes:
        url: Of the repository.
        commit: Hash of the commit.
        version: Tag without "v".
        rows: Config -> rows that were loaded back and are the same.
    """

    url: str
    commit: str
    version: str
    rows: Mapping[str, int]


class _Record(TypedDict):
    """The file seesaw_cf.json: a version, and the content hash of each config."""

    version: str
    configs: dict[str, str]


@dataclass(frozen=True, slots=True)
class _Folder:
    """A checked dataset folder: its card's data, config -> its files, and their hashes."""

    root: Path
    card: CardData
    files: Mapping[str, list[Path]]
    record: _Record

    @property
    def version(self) -> str:
        """Return the version that all configs share."""
        return self.record["version"]


def _checked(root: Path) -> _Folder:
    """Read the card and make sure that it describes the files as they are."""
    from huggingface_hub import DatasetCard

    try:
        card = cast(CardData, DatasetCard.load(root / "README.md").data.to_dict())
    except (OSError, ValueError) as error:
        raise RecordError(
            f"{root}: no README.md with YAML ({error}). Build the folder with seesaw-cf build."
        ) from error
    configs = {str(entry["config_name"]): entry for entry in card.get("configs") or []}
    versions = sorted({str(entry.get("version")) for entry in configs.values()})
    if len(versions) != 1 or not _VERSION.fullmatch(versions[0]):
        raise RecordError(f"{root}/README.md: versions {versions}, expected one major.minor.patch for all configs.")
    files = {name: sorted((root / "data" / name).glob("*.parquet")) for name in configs}
    for name, paths in files.items():
        if not paths or content_hash(paths) not in configs[name].get("description", ""):
            raise RecordError(
                f"{root}: the files of config {name!r} are not those that README.md describes. Build the folder again."
            )
    record: _Record = {"version": versions[0], "configs": {name: content_hash(paths) for name, paths in files.items()}}
    return _Folder(root, card, files, record)


def publish(folder: str | os.PathLike[str], repo: str, *, private: bool | None = None) -> Published:
    """Push a dataset folder with `eval.yaml`, tag the version, and load every config back.

    Args:
        folder: Made by `seesaw-cf build`.
        repo: ORG/NAME; made when it does not exist.
        private: Visibility of a new repository.

    Returns:
        Where it is now. The same folder a second time changes nothing.

    Raises:
        RecordError: The folder is not whole, or what was loaded back differs.
        StorageError: The Hub refuses or does not answer; the repository holds something else, or the version with
            other content.
    """
    from huggingface_hub import HfApi

    check_repo(repo)
    ours = _checked(Path(folder))
    api = HfApi(library_name="seesaw_cf")
    with explained(repo):
        url = str(api.create_repo(repo, repo_type="dataset", private=private, exist_ok=True))
        before = _before(api, repo)
        tags = {ref.name: ref.target_commit for ref in api.list_repo_refs(repo, repo_type="dataset").tags}
    tagged = f"v{ours.version}" in tags
    if tagged and before != ours.record:
        raise StorageError(
            f"{repo} has version {ours.version} already, with other content (now {before and before['version']}). "
            "Build with a higher --version: published versions never change."
        )
    with tempfile.TemporaryDirectory() as work:
        staged = Path(work) / "dataset"
        shutil.copytree(ours.root, staged, ignore=shutil.ignore_patterns(".*", "*.tmp"))
        card = (staged / "README.md").read_text(encoding="utf-8")
        write_text(staged / "README.md", published_card(card, repo, ours.version))
        if declared := benchmark(ours.card.get("pretty_name", repo), ours.files):
            write_text(staged / "eval.yaml", declared)
        dump_json(staged / "seesaw_cf.json", ours.record)
        with explained(repo):
            commit = tags[f"v{ours.version}"] if tagged else _push(api, repo, staged, ours)
    return Published(url, commit, ours.version, _compare(repo, commit, ours))


def _push(api: HfApi, repo: str, staged: Path, ours: _Folder) -> str:
    """Push the staged files in one commit that replaces `data/`, tag it, and return its id."""
    commit = api.upload_folder(
        repo_id=repo, repo_type="dataset", folder_path=staged, commit_message=f"Version {ours.version}",
        delete_patterns=["data/**"],
    )  # fmt: skip
    api.create_tag(repo, repo_type="dataset", tag=f"v{ours.version}", revision=commit.oid, exist_ok=True)
    return str(commit.oid)


def _before(api: HfApi, repo: str) -> _Record | None:
    """Return what the repository says of its last version; None when it is new.

    Raises:
        StorageError: It holds something else.
    """
    from huggingface_hub import hf_hub_download

    names = set(api.list_repo_files(repo, repo_type="dataset")) - {".gitattributes"}
    if not names:
        return None
    if "seesaw_cf.json" not in names:
        raise StorageError(
            f"{repo} exists and holds something else ({', '.join(sorted(names)[:5])}). Choose another name, or "
            "empty the repository on the Hub first."
        )
    file = hf_hub_download(repo, "seesaw_cf.json", repo_type="dataset")
    record: _Record = json.loads(Path(file).read_text(encoding="utf-8"))
    return record


def _compare(repo: str, commit: str, ours: _Folder) -> dict[str, int]:
    """Load every config at the commit and compare it with the local rows, batch by batch."""
    from datasets import load_dataset

    counts = {}
    for name, files in ours.files.items():
        with explained(repo), tempfile.TemporaryDirectory() as cache:
            remote = load_dataset(repo, name, split="test", revision=commit, cache_dir=cache).with_format("arrow")
            local = pa.concat_tables(pq.read_table(path) for path in files)
            digests = [_digest(table) for table in (local, remote[:].cast(local.schema))]
        if digests[0] != digests[1]:
            raise RecordError(
                f"{repo}: config {name!r} loaded back from commit {commit} differs from {ours.root}. Do not use that "
                "version; delete its tag and publish again."
            )
        counts[name] = local.num_rows
    return counts


def _digest(table: pa.Table) -> str:
    """Return the SHA-256 over a table's rows, independent of how it is cut into chunks."""
    digest = hashlib.sha256()
    for start in range(0, table.num_rows, 50):
        digest.update(json.dumps(table.slice(start, 50).to_pylist(), sort_keys=True, default=str).encode())
    return digest.hexdigest()
