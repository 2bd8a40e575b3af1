"""A finished run of any size with invented scores, made column by column."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from seesaw_cf.base.files import atomic_path, write_text
from seesaw_cf.base.tables import SCORES
from seesaw_cf.records.groups import AXES
from seesaw_cf.records.relations import PAIRS, RELATIONS, templates
from seesaw_cf.run.store import write_edits

__all__ = ["EDITORS", "write_synthetic_run"]

EDITORS = ("memit", "ft", "random(memit)")
_PEOPLE = 100  # asked about per case: half hold the new answer, half the true one
_ANSWERS = 12  # candidates of a question about another property
_ORDER = [(phase, role) for phase in ("pre", "post") for role in ("target_new", "target_true")]
_ROWS_PER_GROUP = 250_000  # as runs write them
_UNTAGGED, _TWICE = 0.2, 0.1  # share of people without a tag of an axis, and with two

Places = NDArray[np.intp]


def write_synthetic_run(folder: Path, prompts: int, editors: Sequence[str] = EDITORS, seed: int = 0) -> int:
    """Writes a run about five relations, three axes of groups, the edited facts and other properties.

    Args:
        folder: Where to.
        prompts: About other people, over all editors; rounded up to whole cases of a hundred.
        editors: Names; their effects differ, a control has none.
        seed: Of every draw.

    Returns:
        Rows of the score table.
    """
    cases = -(-prompts // (_PEOPLE * len(editors)))
    rng = np.random.default_rng(seed)
    relation = np.arange(cases) % len(RELATIONS)
    people = _people(4 * _PEOPLE + cases, rng)
    asked = np.stack([rng.choice(people.num_rows, _PEOPLE, replace=False) for _ in range(cases)])
    shift = rng.normal(0, 0.3, (len(editors), people.num_rows))
    edits, n_rows = [], 0
    with (
        atomic_path(folder / "scores.parquet") as file,
        pq.ParquetWriter(file, SCORES, compression="zstd") as writer,
    ):
        for number, editor in enumerate(editors):
            size = 0.02 if "(" in editor else 0.4 + 0.2 * number
            change = size * (rng.normal(-1, 1, asked.shape) + shift[number][asked])
            for table in (
                _others(editor, relation, people, asked, change),
                _own(editor, relation, rng.normal(0 if "(" in editor else 6, 1, cases)),
                _properties(editor, relation, rng),
            ):
                writer.write_table(table, row_group_size=_ROWS_PER_GROUP)
                n_rows += table.num_rows
            edits += [_edit(editor, case, str(list(RELATIONS)[relation[case]])) for case in range(cases)]
    write_edits(folder / "edits.parquet", edits)
    write_text(folder / "manifest.json", json.dumps(_manifest(editors, cases)))
    return n_rows


def _people(n: int, rng: np.random.Generator) -> pa.Table:
    """Invented people, some without a tag of an axis and some with two."""
    columns: dict[str, Any] = {"subject_id": [f"Q{i}" for i in range(n)], "subject": [f"Person {i}" for i in range(n)]}
    for axis, groups in AXES.items():
        first, second = rng.integers(len(groups), size=(2, n))
        draw = rng.random(n)
        columns[axis] = [
            [] if share < _UNTAGGED else sorted({groups[one], groups[two]} if share > 1 - _TWICE else {groups[one]})
            for share, one, two in zip(draw, first, second)
        ]
    return pa.table(columns, schema=pa.schema([SCORES.field(name) for name in columns]))


def _others(editor: str, relation: Places, people: pa.Table, asked: Places, change: NDArray[np.float64]) -> pa.Table:
    """Questions about other people; log-odds of the new answer change by `change`, with a noise of each question."""
    case, place = (index.ravel() for index in np.indices(asked.shape))
    draw = np.random.default_rng(1).uniform(0.2, 4, (2, case.size))  # before the edit all editors' models are one
    true = -draw[0]
    new = -draw[0] - draw[1] + np.where(place % 2 == 0, 2.0, 0.0)
    values = np.stack([new, true, new + change.ravel(), true], axis=1)
    names = list(RELATIONS)
    template = [templates(name, "cloze")[0] for name in names]
    who = people.take(pa.array(asked.ravel()))
    text = [template[relation[c]].fill(name) for c, name in zip(case, who["subject"].to_pylist())]
    return _rows(
        editor,
        case,
        relation,
        values,
        kind="cross_subject",
        prompt_id=pa.array(place, pa.int32()),
        template_id=pa.array([template[relation[c]].id for c in case]),
        prompt=pa.array(text),
        holds=pa.array(np.where(place % 2 == 0, "target_new", "target_true")),
        **{name: who[name] for name in who.column_names},
    )


def _own(editor: str, relation: Places, gain: NDArray[np.float64]) -> pa.Table:
    """The edited facts themselves."""
    case = np.arange(relation.size)
    before = -np.random.default_rng(2).uniform(1, 4, case.size)
    values = np.stack([before - 2, before, before - 2 + gain, before], axis=1)
    text = pa.array([templates(list(RELATIONS)[r], "cloze")[0].fill(f"Subject {c}") for c, r in zip(case, relation)])
    return _rows(editor, case, relation, values, kind="efficacy", prompt=text)


def _rows(
    editor: str, case: Places, relation: Places, values: NDArray[np.float64], *, kind: str, **columns: Any
) -> pa.Table:
    """Four rows for each prompt: before and after, new and true answer; `values` is (prompts, 4)."""
    each = np.repeat(np.arange(case.size), len(_ORDER))
    phase, role = (pa.array([side[i] for side in _ORDER]).take(pa.array(np.tile(range(4), case.size))) for i in (0, 1))
    sides = {"phase": phase, "role": role, "target": role, "logprob": pa.array(np.minimum(values, -1e-3).ravel())}
    described = {name: column.take(pa.array(each)) for name, column in columns.items()}
    return _table(editor, case[each], relation[case[each]], {"kind": kind, **described, **sides})


def _properties(editor: str, relation: Places, rng: np.random.Generator) -> pa.Table:
    """Another property of the edited people, of every pair that the papers ask about, for one case in ten."""
    names = list(RELATIONS)
    found = []
    for edited, wanted in PAIRS:
        cases = np.flatnonzero(relation == names.index(edited))[::10]
        case, phase, answer = (index.ravel() for index in np.indices((cases.size, 2, _ANSWERS)))
        question = templates(wanted, "property")[0]
        before = np.random.default_rng(3).normal(-5, 1, (cases.size, 1, _ANSWERS))
        values = before + rng.normal(0, 1, (cases.size, 2, _ANSWERS)) * np.array([0, 1])[:, None]
        values[:, :, 0] += 2
        columns: dict[str, Any] = {
            "kind": "cross_property",
            "effect_relation": pa.array([wanted] * case.size),
            "prompt": pa.array([question.fill(f"Subject {cases[c]}") for c in case]),
            "template_id": pa.array([question.id] * case.size),
            "subject": pa.array([f"Subject {cases[c]}" for c in case]),
            "role": pa.array(["candidate"] * case.size),
            "target": pa.array([f"answer {a}" for a in answer]),
            "gold": pa.array(answer == 0),
            "phase": pa.array(np.where(phase == 0, "pre", "post")),
            "logprob": pa.array(np.minimum(values, -1e-3).ravel()),
        }
        found.append(_table(editor, cases[case], relation[cases[case]], columns))
    return pa.concat_tables(found)


def _table(editor: str, case: Places, relation: Places, columns: dict[str, Any]) -> pa.Table:
    """The columns of a score table; what is not said is null, or what every row has."""
    n = case.size
    ids = pa.array(list(RELATIONS)).take(pa.array(relation))
    same = {"editor": editor, "kind": columns.pop("kind"), "status": "ok"}
    made = {name: pa.array([value]).take(pa.array(np.zeros(n, np.int64))) for name, value in same.items()}
    made |= {"case_id": pa.array(case), "edit_relation": ids, "n_tokens": pa.array(np.ones(n, np.int32))}
    made |= {"prompt_id": pa.array(np.zeros(n, np.int32)), **columns}
    empty = {"effect_relation": "", "template_id": "", "subject_id": "", "subject": "", "holds": ""}
    made |= {name: pa.array([value] * n) for name, value in empty.items() if name not in made}
    return pa.table([_cast(made.get(field.name), field, n) for field in SCORES], schema=SCORES)


def _cast(column: Any, field: pa.Field, n: int) -> Any:
    return pa.nulls(n, field.type) if column is None else column.cast(field.type)


def _edit(editor: str, case: int, relation: str) -> dict[str, Any]:
    """A row of the edits; every second fact was known before."""
    return {
        "editor": editor, "case_id": case, "relation_id": relation, "effect_relation_id": "", "status": "ok",
        "subject": f"Subject {case}", "target_true": "one answer", "target_new": "another", "delta_norm": 1.0 + case,
        "new_pre": -4.0, "true_pre": -2.0, "new_post": -1.0, "true_post": -2.0,
        "candidates": ["one answer", "another"], "candidates_pre": [-2.0, -1.0 - 2 * (case % 2)],
    }  # fmt: skip


def _manifest(editors: Sequence[str], cases: int) -> dict[str, Any]:
    return {
        "model": {"id": "synthetic", "revision": "", "dtype": "float32", "fingerprint": "ab" * 32},
        "editors": {name: {} for name in editors},
        "data": {"source": "synthetic", "configs": ["cross_subject"], "cases": cases, "sha256": "ef" * 32},
        "protocol": "single",
        "seed": 0,
        "job": {"model": "synthetic", "editors": list(editors)},
        "machine": {"platform": "", "noise": {"p99": 1e-6, "p99_probability": 1e-7}},
        "versions": {"seesaw_cf": "0.1.0"},
        "edited": {},
        "notes": [],
    }
