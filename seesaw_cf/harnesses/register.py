"""Entries of the tasks for the register of inspect_evals: what to run, from which commit, how many questions.

    python -m seesaw_cf.harnesses.register register --repository https://github.com/ORG/REPO --commit SHA --by NAME

writes one `eval.yaml` a task, in the form of inspect_evals 0.28.0 (`ExternalEvalMetadata`), and prints the two
addresses that its form for submissions asks for. Counts are those of the tasks as they are here.
"""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import yaml
from inspect_ai import Task

import seesaw_cf
from seesaw_cf.base.citations import PAPERS
from seesaw_cf.base.errors import RecordError, SeesawError
from seesaw_cf.base.files import write_text
from seesaw_cf.base.types import JsonObject
from seesaw_cf.harnesses import inspect_tasks

PAPER = PAPERS["seesaw_cf"]
SHARED = (
    "Records are facts of Wikidata with a true and a counterfactual answer, and people's gender, race and region. "
    "Each question is asked with its answers in both orders. The log-probability of each answer's letter as the first "
    "token is scored, as a margin in nats and as the likeliest letter. Intervals are clustered by edit and person."
)
"""The end of both descriptions."""
TASKS: Mapping[str, tuple[str, str]] = {
    "cross_subject": (
        "What an edited fact changes for other people",
        "Measures which of two answers, the old and the new one of an edit, a language model gives for other people.",
    ),
    "cross_property": (
        "What an edited fact changes for other facts of its subject",
        "Measures whether a language model gives the right one of up to four answers about other facts of a person.",
    ),
}
"""Task -> title, and what it measures."""


def register_entry(task: str, repository: str, commit: str, contributors: Sequence[str]) -> JsonObject:
    """Return the entry of a task, as `eval.yaml` holds it.

    Args:
        task: One of `TASKS`.
        repository: Address of the repository that holds this package.
        commit: Its commit, 40 hexadecimal digits: it pins the records, too.
        contributors: Accounts on GitHub.

    Raises:
        RecordError: No whole commit, or no address.
    """
    if not re.fullmatch(r"[0-9a-f]{40}", commit):
        raise RecordError(
            f"--commit: got {commit!r}, expected 40 hexadecimal digits. `git rev-parse HEAD` prints them."
        )
    if not repository.startswith("https://"):
        raise RecordError(f"--repository: got {repository!r}, expected https://github.com/ORG/REPO.")
    title, measures = TASKS[task]
    make: Callable[[], Task] = getattr(inspect_tasks, task)
    return {
        "full_title": title,
        "common_title": f"seesaw_cf {task}",
        "paper_title": re.sub(r"[{}]", "", PAPER["title"]),
        "description": f"{measures} {SHARED}",
        "arxiv": f"https://arxiv.org/abs/{PAPER['eprint']}",
        "contributors": list(contributors),
        "source": {"repository_url": repository, "repository_commit": commit, "maintainers": list(contributors)},
        "tasks": [{"name": task, "dataset_samples": len(make().dataset), "task_path": _path()}],
        "tags": ["bias", "model editing", "log-probabilities"],
    }


def source_line(task: str, repository: str, commit: str) -> str:
    """Return the address of the line where a task is defined, for the form of submissions."""
    line = inspect.getsourcelines(getattr(inspect_tasks, task))[1]
    return f"{repository}/blob/{commit}/{_path()}#L{line}"


def _path() -> str:
    """Return the path of the tasks in the repository."""
    package = Path(seesaw_cf.__file__).parent
    return f"seesaw_cf/{Path(inspect_tasks.__file__).relative_to(package).as_posix()}"


def main() -> None:
    """Write the entries and print the addresses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--repository", required=True)
    parser.add_argument("--commit", required=True)
    parser.add_argument("--by", action="append", required=True, metavar="NAME")
    args = parser.parse_args()
    for task in TASKS:
        try:
            entry = register_entry(task, args.repository, args.commit, args.by)
        except SeesawError as error:
            parser.error(str(error))
        file = args.out / f"seesaw_cf_{task}" / "eval.yaml"
        write_text(file, yaml.safe_dump(entry, sort_keys=False, allow_unicode=True, width=10_000))
        print(f"{file}\n  arXiv: {entry['arxiv']}\n  source: {source_line(task, args.repository, args.commit)}")  # noqa: T201


if __name__ == "__main__":
    main()
