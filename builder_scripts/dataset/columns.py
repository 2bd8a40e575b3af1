"""What every column of every config means, for cards and machine-readable metadata."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from seesaw_cf.builder_scripts.dataset.statistics import markdown


def _columns() -> dict[str, dict[str, str]]:
    meanings: dict[str, dict[str, str]] = defaultdict(dict)
    with (Path(__file__).parent / "columns.tsv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            for config in row["configs"].split(","):
                meanings[config][row["column"]] = row["meaning"]
    return dict(meanings)


COLUMNS: Mapping[str, Mapping[str, str]] = _columns()
"""Config -> column -> what it means; configs with the same columns share their rows of `columns.tsv`."""


def type_name(kind: pa.DataType) -> str:
    """Return a short name of a column's type: "text", "number", "list of text", "record", "list of records"."""
    if pa.types.is_list(kind):
        return f"list of {type_name(kind.value_type)}".replace("record", "records")
    names = {pa.types.is_struct: "record", pa.types.is_boolean: "yes or no", pa.types.is_string: "text"}
    return next((name for test, name in names.items() if test(kind)), "number")


def columns_section(schemas: Mapping[str, pa.Schema]) -> str:
    """Return the columns of configs as Markdown tables (name, type, meaning); configs with the same columns share one.

    Args:
        schemas: Config -> its columns.
    """
    shared: dict[str, list[str]] = {}
    for config, schema in schemas.items():
        rows = [[f"`{field.name}`", type_name(field.type), COLUMNS[config][field.name]] for field in schema]
        shared.setdefault(markdown(["Column", "Type", "Meaning"], rows).replace("---:", "---"), []).append(config)
    return "\n\n".join(f"{', '.join(f'`{name}`' for name in names)}\n\n{table}" for table, names in shared.items())
