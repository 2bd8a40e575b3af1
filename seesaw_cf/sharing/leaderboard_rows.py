"""Rows of a leaderboard: one for each editor of a run, with its controls and hashes of what it was made from."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from seesaw_cf.checks import field_types, instance, shown
from seesaw_cf.editors.control_names import compared, is_control
from seesaw_cf.errors import RecordError
from seesaw_cf.io.hub import public_name
from seesaw_cf.io.text import read_json_lines
from seesaw_cf.report.results import Results
from seesaw_cf.sharing.numbers import numbers_of
from seesaw_cf.sharing.verify import Verified, run_digest
from seesaw_cf.versions import versions

FORM = 1
"""Of the rows; a reader refuses another one."""
_ROUNDING = 1e-9  # of a mean


@dataclass(frozen=True, slots=True)
class Measured:
    """A number about an editor or one of its controls.

    Attributes:
        editor: Which of them.
        measure, about: See `seesaw_cf.sharing.numbers.Number`.
        share: In 0..1, more is better; else an effect, of which 0 is best.
        value: The number, with its 95 % interval; `low` and `high` are None where there is none.
        n: Of how many questions it is the mean.
    """

    editor: str
    measure: str
    about: str
    share: bool
    value: float
    low: float | None
    high: float | None
    n: int

    def __post_init__(self) -> None:
        """Refuses another kind of value.

        Raises:
            RecordError: A field is of another type or not finite, a share is outside 0..1, or an interval is none.
        """
        field_types(self)
        ends = (self.value if self.low is None else self.low, self.value if self.high is None else self.high)
        least, most = (-_ROUNDING, 1 + _ROUNDING) if self.share else (-math.inf, math.inf)
        if self.n < 1 or not least <= ends[0] <= ends[1] <= most or not least <= self.value <= most:
            raise RecordError(
                f"{shown(self.measure)}: {self.value} from {self.low} to {self.high} of {self.n}, expected at least "
                f"one question, an interval from low to high{', all of it a share in 0..1' if self.share else ''}."
            )


@dataclass(frozen=True, slots=True)
class Row:
    """What a leaderboard knows of an editor.

    Attributes:
        form: `FORM`.
        run: `seesaw_cf.sharing.verify.Verified.digest` of the run.
        model, revision, dtype, weights: The unedited model, and the SHA-256 of its weights.
        editor, settings: The method, and its settings as JSON.
        protocol, seed, edits: How, and how many different edits were made.
        data, data_revision, configs, data_sha256: What was asked.
        manifest_sha256, scores_sha256, edits_sha256: Of the run's files.
        checked: What was computed again before the row was made.
        seesaw_cf: Version that made the row.
        numbers: The editor's, then those of its controls.
    """

    form: int
    run: str
    model: str
    revision: str
    dtype: str
    weights: str
    editor: str
    settings: str
    protocol: str
    seed: int
    edits: int
    data: str
    data_revision: str
    configs: str
    data_sha256: str
    manifest_sha256: str
    scores_sha256: str
    edits_sha256: str
    checked: str
    seesaw_cf: str
    numbers: tuple[Measured, ...]

    def __post_init__(self) -> None:
        """Refuses another kind of value.

        Raises:
            RecordError: A field is of another type.
        """
        field_types(self)


def rows_of(run: Verified) -> list[Row]:
    """One row for each editor that is no control.

    Raises:
        RecordError: There is no editor with a number.
    """
    results = run.results
    made: Mapping[str, Any] = results.manifest
    model, data = made.get("model", {}), made.get("data", {})
    controls = compared(results.editors, made)
    rows = []
    for editor in (name for name in results.editors if not is_control(name)):
        beside = [control for name, control in controls if name == editor]
        numbers = [one for name in (editor, *beside) for one in _measured(results, name)]
        if not numbers:
            continue
        source = str(data.get("source", ""))
        rows.append(
            Row(
                form=FORM,
                run=run.digest,
                model=public_name(str(model.get("id", ""))),
                revision=str(model.get("revision") or ""),
                dtype=str(model.get("dtype", "")),
                weights=str(model.get("fingerprint", "")),
                editor=editor,
                settings=json.dumps(made.get("editors", {}).get(editor, {}), sort_keys=True),
                protocol=str(made.get("protocol", "")),
                seed=int(made.get("seed", 0)),
                edits=int((results.distinct["editor"] == editor).sum()),
                data=source if data.get("revision") else Path(source).name,  # a local path says nothing elsewhere
                data_revision=str(data.get("revision") or ""),
                configs=",".join(map(str, data.get("configs", ()))),
                data_sha256=str(data.get("sha256", "")),
                **{f"{name.partition('.')[0]}_sha256": digest for name, digest in run.hashes.items()},
                checked=", ".join(run.checked),
                seesaw_cf=str(versions()["seesaw_cf"]),
                numbers=tuple(numbers),
            )
        )
    if not rows:
        raise RecordError(f"{results.folder}: no editor of this run has a number, so there is nothing to submit.")
    return rows


def _measured(results: Results, editor: str) -> Iterable[Measured]:
    for one in numbers_of(results, editor):
        low, high = (float(end) if math.isfinite(end) else None for end in (one.low, one.high))
        yield Measured(editor, one.name, one.about, one.share, float(one.value), low, high, one.n)


def rows_text(rows: Sequence[Row]) -> str:
    """JSON lines; the same rows give the same bytes."""
    return "".join(json.dumps(asdict(row), ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def read_rows(folder: Path) -> list[Row]:
    """The rows of `submissions/*.jsonl`, each checked: nothing in them is trusted.

    Raises:
        RecordError: A line is no row, of another form, or not of the run that its file is named after.
        StorageError: A file cannot be read.
    """
    files = sorted((folder / "submissions").glob("*.jsonl"))
    return [_of_run(where, file.stem, _row(where, found)) for file in files for where, found in read_json_lines(file)]


def _of_run(where: str, stem: str, row: Row) -> Row:
    digest = run_digest([row.manifest_sha256, row.scores_sha256, row.edits_sha256])
    for name, got in (("its file is named", stem), ("its run is", row.run)):
        if got != digest:
            raise RecordError(
                f"{where}: {name} {shown(got)}, expected {digest}, the SHA-256 over the row's hashes of manifest, "
                "scores and edits. The row or its file was changed: remove the file from submissions/, or submit the "
                "run again."
            )
    return row


def _row(where: str, found: dict[str, object]) -> Row:
    if found.get("form") != FORM:
        raise RecordError(
            f"{where}: a row of form {shown(found.get('form'))}, expected {FORM}. Install a newer seesaw_cf, or remove "
            "the file."
        )
    try:
        numbers = tuple(Measured(**one) for one in instance(where, found["numbers"], list, "a list of numbers"))
        return Row(**{**found, "numbers": numbers})  # type: ignore[arg-type]
    except (TypeError, KeyError, RecordError) as error:
        raise RecordError(f"{where}: no row of a leaderboard ({error}). Remove the file from submissions/.") from error
