"""A generator can be gone through once: what takes any iterable reads it once, what needs a list refuses it unread."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seesaw_cf.errors import SeesawError
from seesaw_cf.models import WeightDelta
from seesaw_cf.records import cases_to_table
from tests.core.fitting_objects import made_cases
from tests.core.public_surface import needed
from tests.core.test_fuzz_public import LIGHT, SURFACE, WITHOUT, arguments
from tests.report.runs import cases

# (function, argument)
ANY_ITERABLE = [
    (name, parameter.name)
    for name in SURFACE
    for parameter in inspect.signature(SURFACE[name]).parameters.values()
    if "Iterable[" in str(parameter.annotation)
]
LISTS = [
    (name, parameter.name)
    for name in sorted(set(LIGHT) - WITHOUT)
    for parameter in needed(SURFACE[name])
    if str(parameter.annotation).startswith("Sequence[")
]
# Two items at least, where the fitting value has fewer: with one, an item that is lost is all of them.
LONGER: dict[str, Any] = {
    "names": [f"model.layers.{layer}.mlp.down_proj.weight" for layer in (1, 3)],
    "layers": [0, 1],
    "gender_ids": ["Q6581097", "Q6581072"],
    "ethnic_group_ids": ["Q49085", "Q7325"],
    "rows": [
        {"pre": "a", "post": "b", "flaw": "sexism", "rater": rater, "change": change}
        for rater, change in (("A", 1), ("B", 0))
    ],
}


def written(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def plain(found: Any) -> Any:
    """What can be compared with ==."""
    if isinstance(found, WeightDelta):
        return found.meta
    return found.to_pylist() if isinstance(found, pa.Table) else found


def test_functions_of_iterables_are_found() -> None:
    assert ("records.cases_to_table", "cases") in ANY_ITERABLE
    assert len(ANY_ITERABLE) > 10
    assert len(LISTS) > 20


@pytest.mark.parametrize(("name", "key"), ANY_ITERABLE)
def test_a_generator_gives_what_the_list_gives(
    name: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result, and the files, whose paths are the same seen from where each call is made."""
    results = []
    for way in (list, iter):
        here = tmp_path / "here"
        here.mkdir()
        monkeypatch.chdir(here)
        made = arguments(name, {})
        items = LONGER.get(key) or list(made[key])
        results.append((plain(SURFACE[name](**made | {key: way(items)})), written(here)))
        here.rename(tmp_path / way.__name__)
    assert results[0] == results[1]


@pytest.mark.parametrize(("name", "key"), LISTS)
def test_a_list_is_asked_for_before_anything_is_read(
    name: str, key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    made = arguments(name, {})
    items = list(made[key])
    generator = (item for item in items)
    with pytest.raises(SeesawError, match=rf"{key}\b"):
        SURFACE[name](**made | {key: generator})
    assert len(list(generator)) == len(items), "the refused generator can still be made a list"
    assert not list(tmp_path.iterdir())


def test_cases_one_after_the_other() -> None:
    """Read once and in order, also when each case is made only when it is asked for."""
    asked: list[int] = []

    def stream() -> Iterator[Any]:
        for case in made_cases():
            asked.append(case.case_id)
            yield case

    once = stream()
    table = cases_to_table(once)
    assert table.equals(cases_to_table(made_cases()))
    assert asked == [case.case_id for case in made_cases()]
    assert cases_to_table(once).num_rows == 0
    assert cases_to_table(case for case in cases(("P27",), 2, 2)).num_rows == 2
