"""Arguments and records that are refused, the words they are refused with, and seeds made of words."""

import contextlib
import dataclasses
import hashlib
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seesaw_cf
from seesaw_cf import types
from seesaw_cf.base import checks
from seesaw_cf.base.text import chance_of, seed_of
from seesaw_cf.errors import RecordError, SeesawError, StorageError, UnknownNameError

LIMITS = st.floats(allow_nan=False)


@given(st.floats() | st.integers() | st.sampled_from(["1", None, True, 10**400]), LIMITS, LIMITS, st.booleans())
def test_a_number_is_taken_when_it_is_finite_and_in_range(value: Any, low: float, high: float, ends: bool) -> None:
    number = type(value) in (int, float) and abs(value) <= sys.float_info.max
    if number and (low <= value <= high if ends else low < value < high):
        assert checks.number("x", value, low, high, ends=ends) == value
    else:
        with pytest.raises(RecordError, match=r"^x is .*expected a finite number"):
            checks.number("x", value, low, high, ends=ends)


@pytest.mark.parametrize("value", [b"x", 3, None, "\ud800", "a\udfffb"])
def test_texts_that_are_refused(value: object) -> None:
    with pytest.raises(RecordError, match="subject is "):
        checks.text("subject", value)


def test_lists_name_the_position_of_what_is_wrong() -> None:
    assert checks.each("texts", ("a", "b"), checks.text) == ("a", "b")
    with pytest.raises(RecordError, match=r"texts\[1\] is 3, expected text"):
        checks.each("texts", ["a", 3], checks.text)
    for value in ("abc", 3, None):
        with pytest.raises(RecordError, match=r"texts is .*, expected a list"):
            checks.each("texts", value, checks.text)


@pytest.mark.parametrize("value", [None, 3, "race ", ["race"], "x" * 10**6])
def test_names_of_any_kind_are_refused_by_name(value: object) -> None:
    with pytest.raises(UnknownNameError, match="unknown axis") as caught:
        checks.one_of("axis", value, ("race", "gender"))
    assert len(str(caught.value)) < 400


PACKAGES = ("effects", "records", "scoring", "sharing", "logs", "editors", "models", "report", "texts.graph")
FUNCTIONS = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in map(importlib.import_module, ("seesaw_cf", *(f"seesaw_cf.{name}" for name in PACKAGES)))
    for name in sorted(set(module.__all__) - {"applied", "register"})  # a context manager, and one without arguments
    if inspect.isfunction(getattr(module, name))
}
ARGUMENTS = [
    (name, parameter.name)
    for name, function in FUNCTIONS.items()
    for parameter in inspect.signature(function).parameters.values()
    if parameter.annotation not in ("Any", "object") and parameter.kind is not parameter.VAR_KEYWORD
]
EVIL: tuple[Any, ...] = (None, True, 3, -1, 10**400, 0.5, np.nan, np.inf, 1j, "", "x", "\udcff", "a\0b", b"x", [], {})
EVIL += ([None], [[1], [1, 2]], ["x", 1], (), {1: 2}, {"a"}, object(), Path("x"), np.array(["x"]), int, print)


@pytest.mark.parametrize(("name", "key"), ARGUMENTS)
def test_an_argument_of_another_type_is_named_in_one_line(name: str, key: str) -> None:
    told = rf"^{FUNCTIONS[name].__name__}: {key} is <object object at \w+>, expected [\w ,']+\.$"
    with pytest.raises(RecordError, match=told) as caught:
        FUNCTIONS[name](**{key: object()})
    assert len(str(caught.value)) < 160


UNTYPED: Any = seesaw_cf
WRONG: dict[str, Callable[[], object]] = {
    "audit: the second argument is 'ft', expected the tokenizer": lambda: UNTYPED.audit("seesaw-tiny", "ft"),
    "audit: model is 5, expected text or PreTrainedModel.": lambda: UNTYPED.audit(5),
    "audit: limit is '6', expected a whole number or None.": lambda: UNTYPED.audit("x", limit="6"),
    "audit: people_per_edit is 0, expected": lambda: UNTYPED.audit("x", changed="y", people_per_edit=0),
    "audit: limit is 0, expected a whole number of at least 1.": lambda: UNTYPED.AuditCallback(limit=0),
    "audit: checkpoints is '9', expected a list, each item a whole": lambda: UNTYPED.audit("x", checkpoints="9"),
    "audit: report is {1: 2}, expected AuditSettings or None.": lambda: UNTYPED.audit("x", report={1: 2}),
    "compare: base is 3, expected text or a path.": lambda: UNTYPED.compare(3, "y"),
    "AuditCallback: every is '5', expected a whole number or None.": lambda: UNTYPED.AuditCallback(every="5"),
    "difference: new is <built-in function print>, expected an array.": lambda: UNTYPED.effects.difference(print, 2),
}


@pytest.mark.parametrize("told", WRONG)
def test_what_is_said_of_a_wrong_argument(told: str) -> None:
    with pytest.raises(RecordError) as caught:
        WRONG[told]()
    assert str(caught.value).startswith(told)
    assert len(str(caught.value)) < 200


RECORDS = [kind for name in types.__all__ if dataclasses.is_dataclass(kind := getattr(types, name))]


@pytest.mark.parametrize("made", RECORDS)
def test_a_record_takes_anything_or_refuses_it_by_an_error_of_the_package(made: Any) -> None:
    names = [field.name for field in dataclasses.fields(made) if field.init]

    @settings(derandomize=True, deadline=None, database=None, max_examples=60)
    @given(st.fixed_dictionaries(dict.fromkeys(names, st.sampled_from(EVIL))))
    def check(values: Mapping[str, Any]) -> None:
        with contextlib.suppress(RecordError, UnknownNameError):
            made(**values)

    check()


def test_seeds_of_a_crawl_differ_in_every_part_and_stay() -> None:
    places = [(s, i, r, n, t) for s in (0, 1) for i in ("a", "b") for r in (0, 1) for n in (0, 1, 11) for t in (0, 1)]
    seeds = [seed_of(*place, bits=31, joined="\x1f") for place in places]
    assert len(set(seeds)) == len(places)
    assert all(0 <= seed < 2**31 for seed in seeds)
    # sha256("0\x1fWomen\x1f0\x1f0\x1f0"), first four bytes, without the last bit.
    assert seed_of(0, "Women", 0, 0, 0, bits=31, joined="\x1f") == 1440640870


def test_a_seed_is_the_first_bits_of_the_hash() -> None:
    digest = hashlib.sha256(b'[0, "a\\u00e9", 2]').digest()  # passages and controls: JSON
    assert seed_of(0, "a\u00e9", 2) == int.from_bytes(digest[:6], "big")
    assert seed_of(0, "a\u00e9", 2, bits=63) == int.from_bytes(digest[:8], "big") >> 1
    digest = hashlib.sha256(b"3\0order\0x").digest()  # pairs that people rate
    assert chance_of(3, "order", "x", bits=56, joined="\0") == int.from_bytes(digest[:7], "big") / 2**56


@given(st.lists(st.one_of(st.integers(), st.text(st.characters(codec=None)))), st.integers(1, 64))
def test_every_text_has_a_seed_and_a_chance_in_range(parts: list[int | str], bits: int) -> None:
    for joined in (None, "\0"):
        assert 0 <= seed_of(*parts, bits=bits, joined=joined) < 2**bits
        assert 0 <= chance_of(*parts, joined=joined) < 1
    assert seed_of(*parts, 1) != seed_of(*parts, 2)


def test_any_values_of_an_audit_are_refused_by_an_error_of_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No model is loaded: what is wrong is said before, and what is right ends at the model."""

    def no_model(*_: Any, **__: Any) -> None:
        raise StorageError("no model is loaded in this test")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("seesaw_cf.run.job.load_model", no_model)
    names = [*inspect.signature(seesaw_cf.audit).parameters][1:]

    @settings(derandomize=True, deadline=None, database=None)
    @given(st.dictionaries(st.sampled_from(names), st.sampled_from(EVIL), min_size=1, max_size=3))
    def check(values: dict[str, Any]) -> None:
        call: dict[str, Any] = {"editor": "ft", "progress": False, **values}
        with pytest.raises(SeesawError):
            seesaw_cf.audit("seesaw-tiny", **call)

    check()
