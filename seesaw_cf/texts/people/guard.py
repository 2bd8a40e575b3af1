"""Forms as they arrive: how much may be sent, and one field of them."""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.exceptions import HTTPException
from starlette.requests import Request

Form = dict[str, list[str]]

LARGEST = 512 * 1024
"""Bytes of a form; the longest answer has two texts of 20,000 letters, each up to 9 bytes once it is URL-encoded."""


async def read_form(request: Request) -> Form:
    """Return the fields of a posted form.

    Raises:
        HTTPException: 413 for more than `LARGEST` bytes, 400 for a body that is not a form.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            raise HTTPException(
                413, f"More than {LARGEST} bytes were sent; nothing of it was stored. Shorten the text."
            )
    try:
        return parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=2000, errors="strict")
    except ValueError as error:
        raise HTTPException(400, "What was sent is no form of these pages; nothing was stored.") from error


def first_of(form: Form, name: str) -> str:
    """Return the value of a field that is there once; "" when it is not there."""
    return (form.get(name) or [""])[0]
