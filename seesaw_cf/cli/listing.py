"""`seesaw-cf list`: what there is to choose from."""

from __future__ import annotations

import ast
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from seesaw_cf.base.fields import OneOf
from seesaw_cf.base.terminal import description_list
from seesaw_cf.cli.output import say

Rows = list[tuple[str, ...]]
_NAMES = ("editors", "models", "samples", "configs", "relations", "groups", "metrics")


def list_names(lists: tuple[Annotated[str, OneOf(_NAMES)], ...] = (), /) -> None:
    """Print what there is to choose from.

    Args:
        lists: Which lists: editors, models, samples, configs, relations, groups, metrics (default: all of them).
    """
    for name in lists or _NAMES:
        say(f"{name}:\n{description_list(LISTS[name](), indent='  ')}\n")


def _editors() -> Rows:
    from seesaw_cf.editors import EDITORS
    from seesaw_cf.editors.plugins import is_own

    return [
        (name, _first_line(*str(place).split(":")) if is_own(name) else f"{place}, of another package")
        for name, place in EDITORS.items()
    ]


def _first_line(module: str, name: str) -> str:
    """Return the first sentence about a class, read from the source: importing it takes seconds."""
    spec = importlib.util.find_spec(module)
    source = Path(str(spec and spec.origin)).read_text(encoding="utf-8")
    kind = next(node for node in ast.parse(source).body if isinstance(node, ast.ClassDef) and node.name == name)
    return (ast.get_docstring(kind) or "").split("\n")[0]


def _models() -> Rows:
    from seesaw_cf.models.names import EMBEDDED

    return [
        *((name, "comes with the package") for name in EMBEDDED),
        ("FOLDER", "any transformers causal language model"),
        ("FILE.gguf", "the same in a GGUF file; needs gguf and accelerate"),
        ("ORG/NAME", "the same, from the Hub"),
    ]


def _samples() -> Rows:
    import pyarrow.parquet as pq

    from seesaw_cf.records.sample import SAMPLE, configs, path

    files = (path() / "data" / "demographics").glob("*.parquet")
    ids = [id for file in files for id in pq.ParquetFile(file).read(["id"])["id"].to_pylist()]
    with_qid = sum(id.startswith("Q") for id in ids)
    return [(SAMPLE, f"{len(ids)} people, {with_qid} with a Wikidata QID", ", ".join(configs()))]


def _configs() -> Rows:
    import pyarrow.parquet as pq

    from seesaw_cf.records import CASES
    from seesaw_cf.records.load import CASE_CONFIGS
    from seesaw_cf.records.sample import configs, path

    rows: Rows = []
    for name in configs():
        files = [pq.ParquetFile(file) for file in (path() / "data" / name).glob("*.parquet")]
        runs = all(set(CASES.names) <= set(file.schema_arrow.names) for file in files)
        use = "cases, for `audit --config`" if runs else "a table beside the cases"
        use = "cases, for `texts write --config`" if name in CASE_CONFIGS and not runs else use
        rows.append((name, f"{sum(file.metadata.num_rows for file in files):,} rows", use))
    return rows


def _relations() -> Rows:
    from seesaw_cf.records.relations import RELATIONS, templates

    return [
        (row.id, row.name, row.label, f"{len(templates(row.id, 'cloze'))} cloze templates")
        for row in RELATIONS.values()
    ]


def _groups() -> Rows:
    from seesaw_cf.records.groups import AXES

    return [(axis, ", ".join((*names, "unknown"))) for axis, names in AXES.items()]


def _metrics() -> Rows:
    from seesaw_cf.metrics.register import METRICS

    return [(name, f'evaluate.load("{name}") after `seesaw-cf setup`') for name in METRICS]


LISTS: dict[str, Callable[[], Rows]] = {
    "editors": _editors,
    "models": _models,
    "samples": _samples,
    "configs": _configs,
    "relations": _relations,
    "groups": _groups,
    "metrics": _metrics,
}
