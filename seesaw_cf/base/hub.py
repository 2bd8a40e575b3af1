"""Talking to the Hugging Face Hub: names of repositories, and its errors in words that say what to do."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seesaw_cf.base.errors import RecordError, StorageError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""An organisation, or a repository within it."""

_REASONS = {
    401: "there is no such repository, or no valid token. Check the name, run `hf auth login` or set HF_TOKEN",
    403: "this token lacks the right to write there, or to read it. Use one that has it",
    404: "there is no such organisation, repository or file for this token. Check the name and the token's rights",
    409: "the repository exists and cannot be used. Choose another name",
    412: "someone else pushed in the meantime. Run the same command again",
}


def check_repo(repo: str) -> None:
    """Refuse a malformed name.

    Raises:
        RecordError: Not ORG/NAME in the Hub's letters.
    """
    parts = repo.split("/")
    if len(parts) != 2 or not all(NAME.fullmatch(part) for part in parts) or len(repo) > 96:
        raise RecordError(
            f"repository {repo!r}: expected ORG/NAME of ASCII letters, digits, '.', '_' and '-', at most 96 characters."
        )


def public_name(name: str) -> str:
    """Return a Hub name as it is, also of a folder of the Hub's cache; of another path the last part.

    The rest of a path means nothing elsewhere and tells about the machine.
    """
    parts = name.split("/")
    if cached := next((part for part in reversed(Path(name).parts) if part.startswith("models--")), ""):
        parts = cached.split("--", 2)[1:]
        name = "/".join(parts)
    return name if len(parts) <= 2 and all(NAME.fullmatch(part) for part in parts) else Path(name).name


def download(source: str, what: str, remedy: str, **wanted: Any) -> Path:
    """Download a repository named "ORG/NAME" or "ORG/NAME@REVISION", and return its folder.

    Args:
        source: As it was given.
        what: What is not there, such as "no such folder, and the Hub gives no model of that id".
        remedy: What to check where the Hub may be asked.
        **wanted: Of `huggingface_hub.snapshot_download`.

    Raises:
        StorageError: It cannot be had.
    """
    from huggingface_hub import snapshot_download

    name, _, revision = source.partition("@")
    try:
        return Path(snapshot_download(name, revision=revision or None, **wanted))
    except Exception as error:  # a malformed id, no network, no rights, no such repository
        offline = "HF_HUB_OFFLINE is set: unset it, or download it first" if os.environ.get("HF_HUB_OFFLINE") else ""
        raise StorageError(
            f"{source}: {what} ({type(error).__name__}). Check the path; {offline or remedy}."
        ) from error


@contextmanager
def explained(repo: str, *, reading: bool = False) -> Iterator[None]:
    """Turn the Hub client's errors into one that tells what to do. Quote nothing of the request.

    Args:
        repo: ORG/NAME that the block talks to the Hub about.
        reading: The block fetches; otherwise it publishes.

    Raises:
        StorageError: The Hub refused (rights, names, other pushes) or did not answer.
    """
    from huggingface_hub.errors import (
        HfHubHTTPError,
        LocalEntryNotFoundError,
        LocalTokenNotFoundError,
        OfflineModeIsEnabled,
    )
    from huggingface_hub.errors import HTTPError as NoAnswer  # type: ignore[attr-defined]  # httpx or httpx2

    refused, action = ("give", "fetched") if reading else ("take", "published")
    try:
        yield
    except (HfHubHTTPError, LocalTokenNotFoundError) as error:
        status = error.response.status_code if isinstance(error, HfHubHTTPError) else 401
        reason = _REASONS.get(status, "see https://status.huggingface.co, then run the same command again")
        raise StorageError(
            f"the Hub refused to {refused} {repo} (HTTP {status}): {reason}. Nothing was {action}."
        ) from error
    except (NoAnswer, OfflineModeIsEnabled, LocalEntryNotFoundError, RuntimeError) as error:
        # RuntimeError: how huggingface_hub reports a large file whose upload failed
        raise StorageError(
            f"the Hub did not {refused} the files of {repo} ({type(error.__cause__ or error).__name__}). Check the "
            f"network, HF_ENDPOINT and HF_HUB_OFFLINE, then run the same command again. Nothing was {action}."
        ) from error
