"""A crawl folder: manifest.json, one file of completions per (identity, run), and the tables made of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pandas as pd
import pyarrow as pa

from seesaw_cf.base.errors import RecordError, RunFolderError
from seesaw_cf.base.files import dump_json, safe_name
from seesaw_cf.base.tables import read_table, write_table
from seesaw_cf.base.text import read_json
from seesaw_cf.generation.types import Completion
from seesaw_cf.run.store import Key, Store
from seesaw_cf.texts.graph.settings import KEPT
from seesaw_cf.texts.graph.tables import BIAS, COMPLETIONS, SCORES, TRIPLES
from seesaw_cf.texts.graph.unit import IdentityCrawl

Facts = Mapping[str, object]
"""What a manifest records: name -> plain value."""
# (seed, prompt) -> what was written.
Stored = dict[tuple[int, str], Completion]
_FINISHED = ("complete", "budget spent")


class CrawlCounts(TypedDict):
    """What became of one identity in one run.

    Attributes:
        identity, kind, run: Which.
        status: "complete", "budget spent" or "gave up: ...".
        asks: Completions that were asked for.
        kept: Triples.
        abandoned: Steps without a triple after all tries.
        dropped: Why a completion is not a triple -> how many.
    """

    identity: str
    kind: str
    run: int
    status: str
    asks: int
    kept: int
    abandoned: int
    dropped: dict[str, int]


@dataclass(frozen=True)
class Crawl:
    """A finished crawl, read back.

    Attributes:
        folder: Where it is.
        manifest: What it was made of.
        triples: Columns of `TRIPLES`.
        counts: One row per identity and run.
        scores: Columns of `SCORES`, same rows as `triples`; None before scoring.
        bias: Columns of `BIAS`; None before scoring.
    """

    folder: Path
    manifest: dict[str, Any]
    triples: pd.DataFrame
    counts: list[CrawlCounts]
    scores: pd.DataFrame | None = None
    bias: pd.DataFrame | None = None

    @property
    def name(self) -> str:
        """Name the model, and the edit when there is one."""
        model = str(self.manifest["model"].get("id", "model"))
        edit = self.manifest["editors"].get("delta")
        return f"{model} + {edit.get('name', 'edit')}" if edit else model

    @property
    def rows(self) -> pd.DataFrame:
        """Triples, with their scores side by side where there are any."""
        return self.triples if self.scores is None else self.scored()

    def scored(self) -> pd.DataFrame:
        """Return triples and scores side by side.

        Raises:
            RunFolderError: The crawl has not been scored.
        """
        if self.scores is None:
            raise RunFolderError(
                f"{self.folder} has no scores. Run the same `seesaw-cf graph run` again with --regard or --attack."
            )
        return pd.concat([self.triples, self.scores.drop(columns=["kind", "identity", "run", "step"])], axis=1)


def _name(unit: IdentityCrawl) -> Key:
    """Return the name of a unit's file, with a digest: names may differ in characters that no file name has."""
    digest = hashlib.sha256(unit.identity.name.encode()).hexdigest()[:8]
    return (f"{safe_name(unit.identity.name)}-{digest}-{unit.run}",)


def save_unit(store: Store, unit: IdentityCrawl) -> None:
    """Write all answers to one unit so far.

    Raises:
        StorageError: The disk is full; the file of before stays.
    """
    store.write(_name(unit), pa.Table.from_pylist(unit.rows, COMPLETIONS), status=unit.status)


def load_unit(store: Store, unit: IdentityCrawl) -> Stored:
    """Return the answers to a unit in an earlier, interrupted crawl; faults only when it had finished.

    Raises:
        RunFolderError: The file belongs to another crawl.
    """
    key = _name(unit)
    if not store.has(key):
        return {}
    table, facts = store.read(key)
    return {
        (row["seed"], row["prompt"]): Completion(
            row["text"], row["finish"], row["status"], row["prompt_tokens"], row["new_tokens"]
        )
        for row in table.to_pylist()
        if row["status"] == "ok" or facts["status"] in _FINISHED
    }


def write_tables(folder: Path, units: Sequence[IdentityCrawl], model: str) -> None:
    """Write `triples.parquet` and `counts.json` of a finished crawl; older scores are removed.

    Raises:
        StorageError: The disk is full.
    """
    rows = [
        {**row, "predicate": row["found_predicate"], "object": row["found_object"], "model": model}
        | {"text": f"{row['identity']} {row['found_predicate']} {row['found_object']}"}
        for unit in units
        for row in sorted(unit.rows, key=lambda row: (row["step"], row["attempt"]))
        if row["verdict"] == KEPT
    ]
    table = pa.Table.from_pylist(rows, TRIPLES)
    if not (folder / "triples.parquet").exists() or read_table(folder / "triples.parquet", TRIPLES) != table:
        for name in ("scores.parquet", "bias.parquet", "scorers.json"):
            (folder / name).unlink(missing_ok=True)
        write_table(folder / "triples.parquet", table)
    dump_json(folder / "counts.json", [_counts(unit) for unit in units])


def _counts(unit: IdentityCrawl) -> CrawlCounts:
    dropped = Counter(row["verdict"] for row in unit.rows if row["verdict"] != KEPT)
    return {
        "identity": unit.identity.name,
        "kind": unit.identity.kind,
        "run": unit.run,
        "status": unit.status,
        "asks": len(unit.rows),
        "kept": len(unit.triples),
        "abandoned": unit.abandoned,
        "dropped": dict(sorted(dropped.items())),
    }


def write_scores(folder: Path, scores: pa.Table, bias: pa.Table, scorers: Facts) -> None:
    """Write the scores, and which scorers gave them.

    Raises:
        StorageError: The disk is full.
    """
    write_table(folder / "bias.parquet", bias)
    dump_json(folder / "scorers.json", scorers, sort_keys=True)
    write_table(folder / "scores.parquet", scores)


def read_crawl(folder: Path) -> Crawl:
    """Read a finished crawl.

    Raises:
        RunFolderError: No crawl folder, not finished, or damaged; tells which file and what to do.
    """
    if not (folder / "manifest.json").is_file():
        raise RunFolderError(
            f"{folder} is no crawl folder: manifest.json is missing. Give the folder that `seesaw-cf graph run --out` "
            "wrote."
        )
    if not (folder / "triples.parquet").is_file():
        raise RunFolderError(f"{folder}: the crawl is not finished. Run the same `seesaw-cf graph run` again.")
    try:
        manifest = read_json(folder / "manifest.json", any_number=True)
        if manifest["protocol"] != "stereotype graph":
            raise RecordError(f"manifest.json is of a {manifest['protocol']!r} run.")
        triples = read_table(folder / "triples.parquet", TRIPLES).to_pandas()
        counts = read_json(folder / "counts.json", list)
        scored = (folder / "scores.parquet").exists()
        scores = read_table(folder / "scores.parquet", SCORES).to_pandas() if scored else None
        bias = read_table(folder / "bias.parquet", BIAS).to_pandas() if scored else None
        if scores is not None and len(scores) != len(triples):
            raise RecordError(f"scores.parquet has {len(scores)} rows for {len(triples)} triples.")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFolderError(
            f"{folder}: cannot be read as a crawl ({error}). Run the same `seesaw-cf graph run` again; it asks only "
            "for what is missing."
        ) from error
    return Crawl(folder, manifest, triples, counts, scores, bias)
