"""URLs as messages and files may show them."""

from __future__ import annotations

import re

# A path keeps one of the two slashes.
_USER = re.compile(r"(?<=\w\w)(:/{1,2})[^\s/?#'\"<>]+@")  # with or without a password
_QUERY = re.compile(r"(?<=\w\w)(:/{1,2}[^\s?#'\"<>]*[?#])[^\s'\"<>]+")  # or a fragment


def hide_secrets(text: str) -> str:
    """Return a text with the users, passwords, queries and fragments of its URLs as "***", also of chained URLs (`a::s3://...`).

    Signatures and tokens are in queries and behind "#". Other text is as before.
    """
    return _QUERY.sub(r"\1***", _USER.sub(r"\1***@", text)) if ":/" in text else text
