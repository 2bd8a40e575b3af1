"""Text: read from files, with errors that name file and line; made into seeds, and into citations."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, NoReturn

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError, SeesawError
from seesaw_cf.base.files import read_bytes
from seesaw_cf.base.types import JsonObject

_KINDS: dict[type, str] = {dict: "an object", list: "a list", str: "a string"}
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


def read_text(path: str | os.PathLike[str], *, error: type[SeesawError] = RecordError) -> str:
    """Return the text of a UTF-8 file, without a byte order mark.

    Args:
        path: The file.
        error: What to raise when its content is wrong.

    Raises:
        StorageError: The file is missing, a folder, or cannot be read.
        RecordError: (or `error`) It is not UTF-8; the message has the line.
    """
    content = read_bytes(path)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as found:
        line = content.count(b"\n", 0, found.start) + 1
        raise error(
            f"{path}, line {line}: byte 0x{content[found.start]:02x} is not UTF-8, expected UTF-8 text. "
            "Convert the file to UTF-8."
        ) from found


def read_json(
    path: str | os.PathLike[str], kind: type = dict, *, error: type[SeesawError] = RecordError, **options: Any
) -> Any:
    """Return the value in a JSON file.

    Args:
        path: The file.
        kind: `dict` or `list`: what must be at the top.
        error: What to raise when its content is wrong.
        **options: `expected` and `any_number`, see `parse_json_text`.

    Raises:
        StorageError: The file is missing, a folder, or cannot be read.
        RecordError: (or `error`) It is not UTF-8, or see `parse_json_text`.
    """
    return parse_json_text(read_text(path, error=error), str(path), kind, error=error, **options)


def parse_json_text(
    text: str,
    where: str,
    kind: type,
    *,
    expected: str = "",
    any_number: bool = False,
    error: type[SeesawError] = RecordError,
) -> Any:
    """Return the value of a JSON text.

    Args:
        text: Of a file or an option.
        where: Its name, for messages.
        kind: `dict` or `list`: what must be at the top.
        expected: What it should hold, for the message, such as '{"memit": {"layers": [3]}}'.
        any_number: NaN and infinity are accepted, as Python writes them.
        error: What to raise when it is wrong.

    Raises:
        RecordError: (or `error`) It is not JSON, nested too deeply, holds NaN or infinity, or has something else at the
            top.
    """
    like = f" Expected {_KINDS.get(kind, kind.__name__)}{f' such as {expected}' if expected else ''}."

    def finite(digits: str) -> float:
        number = float(digits)
        return number if abs(number) != float("inf") else refuse_constant(digits)

    try:
        constant, real = (None, None) if any_number else (refuse_constant, finite)
        value = json.loads(text, object_pairs_hook=unique_keys, parse_constant=constant, parse_float=real)
        if _SURROGATE.search(text):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError as fault:
        raise error(f"{where}: nested too deeply.{like}") from fault
    except UnicodeEncodeError as fault:
        raise error(f"{where}: a text holds half a surrogate pair, which UTF-8 has no bytes for. Repair it.") from fault
    except json.JSONDecodeError as fault:
        raise error(f"{where}: not JSON ({fault}).{like}") from fault
    except ValueError as fault:
        raise error(f"{where}: {fault}.{like}") from fault
    if not isinstance(value, kind):
        raise error(f"{where}: got {shown(value)}.{like}")
    return value


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and infinity in a JSON text, as `parse_constant`.

    Raises:
        ValueError: JSON has no such number.
    """
    raise ValueError(f"{name} is no JSON number")


def unique_keys(pairs: list[tuple[str, object]]) -> JsonObject:
    """Make an object of a JSON text from its pairs, as `object_pairs_hook`.

    Raises:
        ValueError: A key occurs twice: which value is meant cannot be known.
    """
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice in one object")
    return mapping


def seed_of(*parts: object, bits: int = 48, joined: str | None = None) -> int:
    """Return a whole number from 0 to 2**bits - 1 that depends only on `parts`; it is the same on every machine.

    Args:
        parts: Words and numbers.
        bits: At most 64; 48 is what every server's JSON can carry.
        joined: The parts as text with this between them are hashed, not as JSON: what was drawn so stays as it was.
    """
    text = json.dumps(parts) if joined is None else joined.join(map(str, parts))
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") >> (64 - bits)


def chance_of(*parts: object, bits: int = 53, joined: str | None = None) -> float:
    """Return a number in [0, 1) that depends on nothing but `parts`; see `seed_of`."""
    return seed_of(*parts, bits=bits, joined=joined) / float(2**bits)


# The papers that this package follows. Cards of metrics, models and data sets cite from here.

_BIB = Path(__file__).with_name("papers.bib").read_text(encoding="utf-8")
PAPERS = {entry.partition("{")[2].partition(",")[0]: entry for entry in re.split(r"\n\n", _BIB.strip())}
"""Key -> BibTeX entry; the paper of an editor's method has the editor's name."""


def bibtex(*keys: str, note: str = "") -> str:
    """Return BibTeX entries, one after the other.

    Args:
        keys: Out of `PAPERS`.
        note: What of the first paper is meant, such as "section 4.1".
    """
    first, *others = (PAPERS[key] for key in keys)
    return "\n".join([f"{first[:-2]},\n  note = {{{note}}}\n}}" if note else first, *others])
