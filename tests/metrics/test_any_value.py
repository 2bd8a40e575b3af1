"""Any value in any column or option of a metric: plain JSON or a message of this package, nothing else."""

import inspect
import json
import math
import re
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from seesaw_cf.errors import SeesawError
from seesaw_cf.metrics.register import METRICS
from tests.metrics.test_inputs import COLUMNS, numbers_of, options_of, unopened

CELLS: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 10**400, 2**63, 0.5, -0.5, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, 1j),
    *("", " ", "x", "none", "women", "\udcff", "a\0b", "x" * 3000, "مريم", b"x", object()),
    *([], [None], ["x"], ["x", "x"], [""], [1.0, "x"], [math.nan], [[-1.0]], (), {}, {"x": 1}, {"a"}),
    *(np.float64(-1.0), np.array([-1.0, -2.0]), np.array("x"), np.datetime64("2026-01-01")),
)
WHOLE: tuple[Any, ...] = (
    *CELLS,
    *(np.zeros((2, 3)), np.array([1.0, math.nan]), pd.Series([1.0, None]), pd.DataFrame({"x": [1]}), iter([1, 2])),
)


@st.composite
def damaged(draw: st.DrawFn, name: str) -> dict[str, Any]:
    """Fitting rows and options of a metric, after one to three faults."""
    columns: dict[str, Any] = {key: list(column) for key, column in COLUMNS[name].items()}
    parameters = inspect.signature(unopened(name)._compute).parameters
    options = [key for key in parameters if key not in columns and key != "self"]
    given_options = dict(options_of(name))
    rows = len(next(iter(columns.values())))
    for fault in draw(st.lists(st.sampled_from(FAULTS), min_size=1, max_size=3)):
        column = draw(st.sampled_from(sorted(columns)))
        if fault == "cell" and isinstance(columns[column], list) and columns[column]:
            columns[column][draw(st.integers(0, len(columns[column]) - 1))] = draw(st.sampled_from(CELLS))
        elif fault == "column":
            columns[column] = draw(st.sampled_from(WHOLE))
        elif fault == "same":
            columns[column] = [draw(st.sampled_from(CELLS))] * rows
        elif fault == "shorter" and isinstance(columns[column], list):
            columns[column] = columns[column][:-1]
        elif fault == "no rows":
            columns = {key: [] for key in columns}
        elif fault == "twice":
            columns = {key: values * 2 if isinstance(values, list) else values for key, values in columns.items()}
        elif fault == "option" and options:
            given_options[draw(st.sampled_from(options))] = draw(st.sampled_from(WHOLE))
    return columns | given_options


FAULTS = ("cell", "cell", "column", "same", "shorter", "no rows", "twice", "option", "option")


def answer(compute: Callable[..., Any], columns: dict[str, Any], seconds: float = 20) -> str:
    """JSON or a message; anything else, and a call that does not end, is an error of this function."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"no answer after {seconds} s: {columns!r:.500}")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return json.dumps(compute(**columns), allow_nan=False)
    except SeesawError as error:
        return str(error).encode("utf-8").decode("utf-8")
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("name", METRICS)
def test_damaged_columns_give_a_result_or_a_message(name: str) -> None:
    @settings(derandomize=True, deadline=None, database=None, phases=[Phase.generate])
    @given(damaged(name))
    def answered(columns: dict[str, Any]) -> None:
        assert answer(unopened(name)._compute, columns)

    answered()


@pytest.mark.parametrize("name", METRICS)
def test_the_column_of_a_cell_of_another_kind_is_named(name: str) -> None:
    for column, values in COLUMNS[name].items():
        given_columns = COLUMNS[name] | {column: [*values[:-1], 1j]}
        with pytest.raises(SeesawError, match=rf"(?s)\b{column}\b.* is .*, expected "):
            unopened(name)._compute(**given_columns, **options_of(name))


@pytest.mark.parametrize(
    "name", [name for name in METRICS if "draws" in inspect.signature(unopened(name)._compute).parameters]
)
def test_no_samples_leave_out_intervals_and_nothing_else(name: str) -> None:
    options = {key: value for key, value in options_of(name).items() if key != "draws"}
    few, none = (unopened(name)._compute(**COLUMNS[name], **options, draws=draws) for draws in (50, 0))
    few, none = numbers_of(few), numbers_of(none)
    assert none.keys() == few.keys()
    resampled = re.compile(r".*/(\w*low|\w*high|stderr|expected|corrected|p|p_adjusted|method)")
    assert {path for path in few if few[path] != none[path] and not resampled.fullmatch(path)} == set()
