"""Adding a run to a leaderboard: a data set on the Hub with one file of rows for each run."""

from __future__ import annotations

import json
import os
from pathlib import Path

from seesaw_cf.errors import StorageError
from seesaw_cf.io.hub import check_repo, explained
from seesaw_cf.sharing.leaderboard_rows import FORM, Row, read_rows, rows_of, rows_text
from seesaw_cf.sharing.verify import verify_run

_MARK = "leaderboard.json"  # what makes a repository a leaderboard
_CARD = """---
configs:
- config_name: default
  data_files:
  - split: train
    path: submissions/*.jsonl
tags:
- seesaw-cf
- model-editing
- fairness
- leaderboard
---
# {name}

Side effects of knowledge edits, one row for each model and editor, with n, 95 % intervals and the negative controls of
each editor beside it. A row is added by

```bash
seesaw-cf submit RUN --to {repo}
```

which computes every number again from the run's score table, compares the run's tables with its shards, and puts their
SHA-256 into the row. Whoever doubts a row asks its submitter for the run: `seesaw-cf submit RUN --to {repo} --dry-run`
must give the same numbers and hashes. `seesaw-cf leaderboard {repo} --out leaderboard.html` shows them all.
"""


def submission(run: str | os.PathLike[str]) -> tuple[str, list[Row]]:
    """The file of a run in a leaderboard, and its rows; nothing leaves the machine.

    Raises:
        RunFolderError, RecordError: See `seesaw_cf.sharing.verify.verify_run`.
    """
    verified = verify_run(run)
    return f"submissions/{verified.digest}.jsonl", rows_of(verified)


def submit(run: str | os.PathLike[str], repo: str, *, public: bool = False) -> tuple[str, list[Row]]:
    """Verifies a run and adds its rows to a leaderboard, in one commit.

    Args:
        run: The folder of a finished run, shards included.
        repo: "org/name" of a data set; made when it does not exist.
        public: Everybody may see a new one; it is private otherwise.

    Returns:
        The address of the leaderboard, and the rows.

    Raises:
        RunFolderError, RecordError: The run is not finished, or its tables are not what was measured.
        StorageError: The run is there already, the repository is no leaderboard, or the Hub refused or did not answer.
    """
    check_repo(repo)
    file, rows = submission(run)
    from huggingface_hub import CommitOperationAdd, HfApi

    api = HfApi(library_name="seesaw_cf")
    with explained(repo):
        url = str(api.create_repo(repo, repo_type="dataset", private=not public, exist_ok=True))
        about = api.dataset_info(repo)
        there = {entry.rfilename for entry in about.siblings or ()} - {".gitattributes"}
        if there and _MARK not in there:
            raise StorageError(
                f"{repo} exists and holds something else ({', '.join(sorted(there)[:5])}). Choose another name for the "
                "leaderboard."
            )
        if file in there:
            raise StorageError(f"{repo} has this run already ({file}). Nothing was published.")
        added = {file: rows_text(rows)}
        if not there:
            added |= {_MARK: json.dumps({"form": FORM}) + "\n", "README.md": _CARD.format(name=repo, repo=repo)}
        api.create_commit(
            repo,
            [CommitOperationAdd(path, text.encode("utf-8")) for path, text in added.items()],
            commit_message=f"Run {Path(file).stem[:12]}, verified by seesaw_cf",
            repo_type="dataset",
            parent_commit=about.sha,
        )
    return url, rows


def fetch_leaderboard(source: str, revision: str | None = None) -> list[Row]:
    """The rows of a leaderboard.

    Args:
        source: A folder with `submissions/`, or "org/name" of a data set.
        revision: Branch, tag or commit of the data set.

    Raises:
        RecordError: A malformed name, or a row that is none.
        StorageError: There is no leaderboard, or the Hub did not answer.
    """
    folder = Path(source)
    if not folder.is_dir():
        check_repo(source)
        from huggingface_hub import snapshot_download

        with explained(source, reading=True):
            patterns = [_MARK, "submissions/*.jsonl"]
            place = snapshot_download(source, repo_type="dataset", revision=revision, allow_patterns=patterns)
        folder = Path(place)
    rows = read_rows(folder)
    if not rows:
        raise StorageError(
            f"{source}: no rows in submissions/. Give a leaderboard that `seesaw-cf submit RUN --to ORG/NAME` made, or "
            "a folder with one."
        )
    return rows
