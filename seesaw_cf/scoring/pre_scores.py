"""Scores of the unedited model, computed once per (model, tokenizer, options, clozes), shared by all editors and runs.

Clozes are sorted and cut into blocks; each block is one content-addressed Parquet file in the cache, so a killed run
continues at the next block and another run of the same model reads what is there. Processes that ask the same at the
same time share the work: each scores the blocks that no other one is at, and then reads theirs.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.files import cache_folder
from seesaw_cf.base.system import file_lock
from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.base.types import Cloze, ClozeScore
from seesaw_cf.models.identity import has_own_code
from seesaw_cf.scoring import Scorer

_SCHEMA = pa.schema(
    [
        ("context", pa.string()),
        ("target", pa.string()),
        ("form", pa.string()),
        ("logprob", pa.float64()),
        ("n_tokens", pa.int32()),
        ("greedy", pa.bool_()),
        ("status", pa.string()),
        ("n_greedy", pa.int32()),
        ("first", pa.list_(pa.int32())),
    ]
)
_ASKED, _SCORE = Cloze._fields, ClozeScore._fields


def sort_clozes(clozes: Iterable[Cloze]) -> list[Cloze]:
    """Return distinct clozes in the order of their texts."""
    return sorted(set(clozes))


def blocks(clozes: Iterable[Cloze], size: int = 4096) -> list[list[Cloze]]:
    """Cut distinct clozes, in sorted order, into blocks: the same set gives the same blocks in any order.

    Args:
        clozes: Any; duplicates count once.
        size: Clozes in a block, which is what a killed run loses at most.
    """
    ordered = sort_clozes(clozes)
    return [ordered[start : start + size] for start in range(0, len(ordered), size)]


def pre_scores(
    scorer: Scorer, parts: Sequence[list[Cloze]], identity: Mapping[str, object]
) -> Iterator[dict[Cloze, ClozeScore]]:
    """Yield the scores of one block after the other, from the cache where they are, last those of other processes.

    A block of a process that dies is scored by another one. Of a model with hooks nothing is cached.

    Args:
        scorer: Scores with the unedited model.
        parts: Blocks made by `blocks`.
        identity: What the scores depend on: the model's identity, its dtype, scorer options. JSON-able.
    """
    if (model := getattr(scorer, "model", None)) is not None and has_own_code(model):
        yield from (dict(zip(part, scorer.score(part), strict=True)) for part in parts)
        return
    elsewhere = list[tuple[list[Cloze], Path]]()
    for part in parts:
        text = json.dumps([_SCHEMA.names, dict(identity), part], sort_keys=True)
        file = cache_folder() / "pre" / f"{hashlib.sha256(text.encode()).hexdigest()}.parquet"
        scores = _read(file, part) or _score(scorer, part, file, wait=False)
        if scores is None:
            elsewhere.append((part, file))
            continue
        yield dict(zip(part, scores, strict=True))
    for part, file in elsewhere:
        yield dict(zip(part, _score(scorer, part, file, wait=True) or (), strict=True))


def _score(scorer: Scorer, part: list[Cloze], file: Path, *, wait: bool) -> list[ClozeScore] | None:
    """Return the scores of a block, read or made and cached; None while another process makes them, unless `wait`."""
    lock = file.with_suffix(".lock")
    with file_lock(lock, wait=wait) as mine:
        if not mine:
            return None
        scores = _read(file, part)
        if scores is None:
            scores = scorer.score(part)
            write_table(file, _to_table(part, scores))
        with contextlib.suppress(OSError):  # Windows: while others have it open
            lock.unlink()
    return scores


def _to_table(part: list[Cloze], scores: list[ClozeScore]) -> pa.Table:
    rows = [(*cloze, *score) for cloze, score in zip(part, scores, strict=True)]
    return pa.table([pa.array(column, field.type) for column, field in zip(zip(*rows), _SCHEMA, strict=True)], _SCHEMA)


def _read(file: Path, part: list[Cloze]) -> list[ClozeScore] | None:
    """Return the cached scores of exactly these clozes, or None: a damaged file is a cache miss."""
    if not file.exists():
        return None
    try:
        rows = read_table(file, _SCHEMA).to_pydict()
    except RecordError:
        return None
    if [Cloze(*asked) for asked in zip(*(rows[name] for name in _ASKED))] != part:
        return None
    rows["status"] = list(map(sys.intern, rows["status"]))
    rows["first"] = [None if ids is None else tuple(ids) for ids in rows["first"]]
    return [ClozeScore(*row) for row in zip(*(rows[name] for name in _SCORE))]
