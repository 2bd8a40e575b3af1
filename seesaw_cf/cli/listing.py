"""`seesaw-cf list`: what there is to choose from."""

from __future__ import annotations

import argparse
import importlib
import inspect
from collections.abc import Callable

from seesaw_cf.cli.output import say
from seesaw_cf.errors import unknown_name
from seesaw_cf.terminal import description_list

__all__ = ["LISTS", "configure", "run"]

Rows = list[tuple[str, ...]]


def configure(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `seesaw-cf list`."""
    parser.add_argument("what", nargs="*", metavar="WHAT", help=f"{', '.join(LISTS)} (default: all of them)")


def run(args: argparse.Namespace) -> None:
    """Prints the lists that were asked for.

    Raises:
        UnknownNameError: There is no such list.
    """
    for what in args.what:
        if what not in LISTS:
            raise unknown_name("list", what, LISTS)
    for what in args.what or LISTS:
        say(f"{what}:\n{description_list(LISTS[what](), indent='  ')}\n")


def _editors() -> Rows:
    # By name, not by import: the library must not depend on the editors.
    found = importlib.import_module("seesaw_cf.editors")
    return [(name, (inspect.getdoc(found.load_editor(name)) or "").split("\n")[0]) for name in found.EDITORS]


def _models() -> Rows:
    from seesaw_cf.pretrained import EMBEDDED

    embedded = [(name, "comes with the package") for name in EMBEDDED]
    return [*embedded, ("FOLDER", "any transformers causal language model"), ("ORG/NAME", "the same, from the Hub")]


def _configs() -> Rows:
    import pyarrow.parquet as pq

    from seesaw_cf.records import CASES
    from seesaw_cf.sample import configs, path

    rows: Rows = []
    for name in configs():
        files = [pq.ParquetFile(file) for file in (path() / "data" / name).glob("*.parquet")]
        runs = all(set(CASES.names) <= set(file.schema_arrow.names) for file in files)
        use = "cases, for `run --config`" if runs else "a table beside the cases"
        rows.append((name, f"{sum(file.metadata.num_rows for file in files):,} rows", use))
    return rows


def _relations() -> Rows:
    from seesaw_cf.relations import RELATIONS, templates

    return [
        (row.id, row.name, row.label, f"{len(templates(row.id, 'cloze'))} cloze templates")
        for row in RELATIONS.values()
    ]


def _groups() -> Rows:
    from seesaw_cf.groups import AXES

    return [(axis, ", ".join((*names, "unknown"))) for axis, names in AXES.items()]


def _metrics() -> Rows:
    from seesaw_cf.registering import METRICS

    return [(name, f'evaluate.load("{name}") after `seesaw-cf register`') for name in METRICS]


LISTS: dict[str, Callable[[], Rows]] = {
    "editors": _editors,
    "models": _models,
    "configs": _configs,
    "relations": _relations,
    "groups": _groups,
    "metrics": _metrics,
}
