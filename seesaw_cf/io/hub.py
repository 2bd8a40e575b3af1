"""Talking to the Hugging Face Hub: names of repositories, and its errors in words that say what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from seesaw_cf.arguments import check_public
from seesaw_cf.errors import RecordError, StorageError

__all__ = ["NAME", "check_repo", "explained"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
"""An organisation, or a repository within it."""

_REASONS = {
    401: "no valid token. Run `hf auth login`, or set HF_TOKEN to a token with write access",
    403: "this token lacks the right to write there. Use a token with write access to that organisation",
    404: "there is no such organisation or repository for this token. Check the name and the token's rights",
    409: "the repository exists and cannot be used. Choose another name",
    412: "someone else pushed in the meantime. Run the same command again",
}


def check_repo(repo: str) -> None:
    """Refuses a malformed name.

    Raises:
        RecordError: Not ORG/NAME in the Hub's letters.
    """
    parts = repo.split("/")
    if len(parts) != 2 or not all(NAME.fullmatch(part) for part in parts) or len(repo) > 96:
        raise RecordError(
            f"repository {repo!r}: expected ORG/NAME of ASCII letters, digits, '.', '_' and '-', at most 96 characters."
        )


@contextmanager
def explained(repo: str) -> Iterator[None]:
    """Turns the Hub client's errors into one that says what to do; nothing of the request is quoted.

    Args:
        repo: ORG/NAME that the block talks to the Hub about.

    Raises:
        StorageError: The Hub refused (rights, names, other pushes) or did not answer.
    """
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled
    from huggingface_hub.errors import HTTPError as NoAnswer  # type: ignore[attr-defined]  # httpx or httpx2

    try:
        yield
    except HfHubHTTPError as error:
        status = error.response.status_code
        reason = _REASONS.get(status, "see https://status.huggingface.co, then run the same command again")
        raise StorageError(
            f"the Hub refused to take {repo} (HTTP {status}): {reason}. Nothing was published."
        ) from error
    except LocalTokenNotFoundError as error:
        raise StorageError(f"the Hub refused to take {repo}: {_REASONS[401]}. Nothing was published.") from error
    except (NoAnswer, OfflineModeIsEnabled) as error:
        raise StorageError(
            f"the Hub did not answer for {repo} ({type(error).__name__}). Check the network, HF_ENDPOINT and "
            "HF_HUB_OFFLINE, then run the same command again. Nothing was published."
        ) from error
    except RuntimeError as error:  # how huggingface_hub reports a large file whose upload failed
        raise StorageError(
            f"the Hub did not take the files of {repo} ({type(error.__cause__ or error).__name__}). Check the network, "
            "then run the same command again. Nothing was published."
        ) from error


check_public(globals())
