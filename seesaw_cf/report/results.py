"""The manifest of a finished run, and the order and words of relations and groups."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import cast

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.groups import ALL, UNKNOWN
from seesaw_cf.records import groups
from seesaw_cf.records.relations import PAIRS, RELATIONS
from seesaw_cf.report.rows import Manifest

# Parts of a run's manifest, by type; a file that was changed by hand is refused.
_DICTS = ("model", "editors", "data", "scoring", "job", "machine", "versions", "edited")
_SECTIONS = dict.fromkeys(_DICTS, dict) | {"notes": list}


def read_manifest(folder: Path) -> Manifest:
    """Return what a finished run recorded about itself.

    Raises:
        RunFolderError: Not a run folder, the run is not finished, or the record is damaged.
    """
    file = folder / "manifest.json"
    if not folder.is_dir():
        raise RunFolderError(f"{folder}: no such folder. Give the folder that `seesaw-cf run --out` wrote.")
    if not file.exists():
        raise RunFolderError(
            f"{folder} has no manifest.json, so it is not a run folder. "
            "Give the folder that `seesaw-cf run --out` wrote."
        )
    missing = [name for name in ("scores.parquet", "edits.parquet") if not (folder / name).exists()]
    if missing:
        n_units = sum(1 for _ in folder.glob("shards/*/*.parquet"))
        raise RunFolderError(
            f"{folder}: the run is not finished ({' and '.join(missing)} missing, {n_units} units done). "
            "Repeat the `seesaw-cf run` command that began it; it continues where it was."
        )
    manifest: JsonObject = read_json(file, error=RunFolderError)
    for key, kind in _SECTIONS.items():
        if key in manifest and not isinstance(manifest[key], kind):
            raise RunFolderError(
                f"{file} is damaged: {key} is {shown(manifest[key])}, expected {kind.__name__}. "
                "Run again into a new folder with --out."
            )
    return cast(Manifest, manifest)


def relation_name(relation_id: str) -> str:
    """Return the papers' word for a relation ("P27" -> "citizenship"); the id itself when it is none of the five."""
    return RELATIONS[relation_id].name if relation_id in RELATIONS else relation_id


def sort_relations(relations: Iterable[str]) -> list[str]:
    """Return relation ids without repeats, in the order of `relations.RELATIONS`, then any other, "all" last."""
    order = list(RELATIONS)
    places = {name: number for number, name in enumerate(order)} | {"all": len(order) + 1}
    return sorted(set(relations), key=lambda name: (places.get(name, len(order)), name))


def sort_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return (edit, effect) pairs without repeats, in the order of Table 7, then any other, ("all", "all") last."""
    places = {pair: number for number, pair in enumerate(PAIRS)} | {("all", "all"): len(PAIRS) + 1}
    return sorted(set(pairs), key=lambda pair: (places.get(pair, len(PAIRS)), pair))


def sort_groups(axis: str, names: Iterable[str]) -> list[str]:
    """Return groups without repeats: "all"; the papers' groups, in their order; any other; "unknown" last."""
    reported = groups.AXES.get(axis, ())
    rank = {name: number for number, name in enumerate((ALL, *reported))} | {UNKNOWN: len(reported) + 2}
    return sorted(set(names), key=lambda name: (rank.get(name, len(reported) + 1), name))
