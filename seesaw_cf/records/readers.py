"""Record readers of other packages and of files: functions that return cases, and what these must keep."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Sequence

from seesaw_cf.base.checks import instance, items
from seesaw_cf.base.errors import RecordError, SeesawError
from seesaw_cf.base.plugins import Plugged, Plugin, Plugins, entries, failure, has_arguments
from seesaw_cf.base.types import Case
from seesaw_cf.records.arrow import cases_to_table, table_to_cases
from seesaw_cf.records.checks import CASE_FLAGS, PROMPT_FLAGS, count_flags, flag_cases

READERS: Plugged = entries("seesaw_cf.records")
"""Name -> "module:function": readers of installed packages with an entry point in the group `seesaw_cf.records`."""


def _reads(plugin: Plugin) -> bool:
    return inspect.isfunction(plugin) and next(iter(inspect.signature(plugin).parameters), "") == "config"


PLUGINS = Plugins(
    noun="record reader",
    known=READERS,
    marks=_reads,
    mark="functions with the argument `config`",
    clauses={
        "it is a function of one argument, `config`": lambda plugin: _reads(plugin) and has_arguments(plugin, "", "x")
    },
    error=RecordError,
    page="docs/building.md",
)


def read_with(source: str, config: str) -> list[Case]:
    """Return the cases that a reader returns.

    Args:
        source: A key of `READERS`, "FILE.py", "FILE.py:function" or "package.module:function".
        config: What the reader is asked for.

    Raises:
        SeesawError: See `Plugins.name`.
        RecordError: The reader fails, or returns something else than cases with a number each.
    """
    reader = PLUGINS.load(PLUGINS.name(source))
    where = f"record reader {source}"
    try:
        cases = items(f"{where}: its result", reader(config), "a list of cases")
    except SeesawError:
        raise
    except Exception as error:  # what another author wrote can fail in any way
        raise RecordError(f"{where}: {failure(error, inspect.getsourcefile(reader) or '')}. Correct it.") from error
    read = [
        instance(f"{where}: item {number}", case, Case, "a seesaw_cf.types.Case") for number, case in enumerate(cases)
    ]
    if not read:
        raise RecordError(f"{where}: no cases for the config {config!r}, expected at least one.")
    return read


def check_reader(source: str, config: str) -> dict[str, str]:
    """Check every clause of the contract of record readers.

    Args:
        source, config: See `read_with`.

    Returns:
        Clause -> what breaks it, "" where it holds. A clause that an earlier one makes impossible to check is left out.
    """
    try:
        cases = read_with(source, config)
    except SeesawError as error:
        return {"it returns cases": str(error)}
    again, stored = read_with(source, config), table_to_cases(cases_to_table(cases))
    repeated = sorted(number for number, count in Counter(case.case_id for case in cases).items() if count > 1)
    return {
        "it returns cases": "",
        "each case has a number of its own": f"case_id {repeated[0]} occurs twice" if repeated else "",
        "it returns the same cases in the same order each time": _difference(cases, again),
        "written to Parquet and read, they are the same cases": _difference(cases, stored),
        "no case or prompt is damaged": _damage(cases),
    }


def _difference(cases: Sequence[Case], others: Sequence[Case]) -> str:
    if len(cases) != len(others):
        return f"{len(cases)} cases, then {len(others)}"
    return next((f"case {one.case_id} differs" for one, other in zip(cases, others) if one != other), "")


def _damage(cases: Sequence[Case]) -> str:
    counts = {name: count for table in count_flags(flag_cases(cases)) for name, count in table.items()}
    return "; ".join(f"{count} times: {(PROMPT_FLAGS | CASE_FLAGS).get(name, name)}" for name, count in counts.items())
