"""What `--explain` prints: how many questions are answered by the cache, and how each block of edits is scored."""

from __future__ import annotations

import contextlib
import logging
import sys
from collections.abc import Iterator, Sequence
from logging.handlers import BufferingHandler

Line = tuple[int, str]
"""Level and text of a line of the log."""

log = logging.getLogger(__name__)

_PLANS = logging.getLogger("seesaw_cf.scoring.edited_scorer")
_EXPLAINED = (log, _PLANS, logging.getLogger("seesaw_cf.scoring.pre_scores"))


def explain() -> None:
    """Let the lines through that are left out otherwise."""
    for logger in _EXPLAINED:
        logger.setLevel(logging.INFO)


@contextlib.contextmanager
def log_prefix(work: str) -> Iterator[None]:
    """Put `work` before every line on how edits are scored; a scorer that knows one way only adds nothing.

    Args:
        work: What the edits belong to, such as "memit, case P27-00000004 and 7 more".
    """
    named = []

    def name(record: logging.LogRecord) -> bool:
        record.msg, record.args = f"{work}: {record.getMessage()}", ()
        named.append(record)
        return True

    _PLANS.addFilter(name)
    try:
        yield
    finally:
        _PLANS.removeFilter(name)
    if not named:
        log.info("%s: one after the other, weights restored (the scorer knows no other way)", work)


@contextlib.contextmanager
def capture_log() -> Iterator[list[Line]]:
    """Collect log lines while the block runs, in a process without a visible log; the list is filled when it ends."""
    lines: list[Line] = []
    handler, levels = BufferingHandler(sys.maxsize), [logger.level for logger in _EXPLAINED]
    handler.setLevel(logging.INFO)
    explain()
    for logger in _EXPLAINED:
        logger.addHandler(handler)
    try:
        yield lines
    finally:
        for logger, level in zip(_EXPLAINED, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)
        lines += [(record.levelno, record.getMessage()) for record in handler.buffer]


def announce(notes: Sequence[str]) -> None:
    """Log what a user should know before a run begins."""
    log_lines([(logging.WARNING, note) for note in notes])


def log_lines(lines: Sequence[Line]) -> None:
    """Log lines that were collected elsewhere."""
    for level, text in lines:
        log.log(level, "%s", text)
