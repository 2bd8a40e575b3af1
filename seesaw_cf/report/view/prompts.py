"""Every prompt of a run with its four log-probabilities, in a database on disk that a page is read from.

The score table is read as a stream and paired by DuckDB in limited memory, so that a run of any size opens.
"""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from seesaw_cf.base.errors import RecordError, StorageError, need
from seesaw_cf.base.tables import CONTROL_SEEDS, LATER, SCORES
from seesaw_cf.editors.control_names import CONTROLS, compared, first_seed, is_control, split_control
from seesaw_cf.effects.groups import AXES, UNKNOWN
from seesaw_cf.effects.prompts import SIDES
from seesaw_cf.effects.scores import UNEDITED
from seesaw_cf.report.results import read_manifest, sort_groups, sort_relations
from seesaw_cf.report.rows import Manifest
from seesaw_cf.report.table import Row
from seesaw_cf.run.edit_table import read_edits

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

EDITED = tuple(f"edited_{axis}" for axis in AXES)
"""Columns of the recorded groups of the edited person."""
GROUPS = (*AXES, *EDITED)
"""Columns of groups: of the person asked about, and of the edited one."""

_MEMORY = "512MB"
_THREADS = 2
# Answers of a prompt out of `SIDES` -> the condition on its row.
_CELLS = {
    f"{phase}_{side}": f"phase = '{phase}' AND role = 'target_{side}'" for phase, side in (s.split("_") for s in SIDES)
}
_KEYS = "editor, kind, edit_relation, effect_relation, case_id, prompt_id"
_NO_EDITOR = ", ".join(f"'{name}'" for name in UNEDITED)


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of a finished run.

    Attributes:
        folder: The run folder.
        manifest: Its record.
        base: Tables `prompts` (one row per editor, kind, case and prompt; log-probabilities in nats, `log_odds` the
            change of log p(new) - log p(true), `harm` the same for the worse of what is right, the change of the
            editor's controls under the name of their kind; groups of the person asked about and, `EDITED`, of the
            edited one; of a control with several seeds the means of its log-probabilities over them),
            `candidates` (one row per editor, case, prompt and answer) and `edits`.
        choices: Column of `prompts` -> what occurs in it, in the order of a report.
        controls: Kinds of controls of the run.
        total: How many prompts there are.
    """

    folder: Path
    manifest: Manifest
    base: DuckDBPyConnection
    choices: Mapping[str, tuple[str, ...]]
    controls: tuple[str, ...]
    total: int

    def rows(self, sql: str, values: Mapping[str, object]) -> list[Row]:
        """Return the rows of a query with named parameters; threads may ask at once."""
        cursor = self.base.cursor().execute(sql, dict(values))
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


@contextlib.contextmanager
def open_prompts(run: str | os.PathLike[str]) -> Iterator[Prompts]:
    """Read a run once and yield what pages are made of; the database is deleted at the end, the run never touched.

    Raises:
        RunFolderError: Not a run folder, or the run is not finished.
        RecordError: A table is truncated, misses columns or contradicts itself.
        StorageError: The disk is too full for the database.
        MissingExtraError: DuckDB is not installed.
    """
    with need("duckdb", extra="view", what_for="seesaw-cf view", otherwise="report.html needs nothing"):
        import duckdb
    folder = Path(run)
    manifest = read_manifest(folder)
    file, edits = folder / "scores.parquet", read_edits(folder / "edits.parquet")
    files = [file, *(seeds for seeds in [folder / CONTROL_SEEDS] if seeds.exists())]
    for table in files:
        _check_columns(table)
    with (
        tempfile.TemporaryDirectory(prefix="seesaw-cf-view-") as temporary,
        duckdb.connect(str(Path(temporary) / "prompts.duckdb")) as base,
    ):
        base.execute(f"SET memory_limit = '{_MEMORY}'; SET threads = {_THREADS}; SET preserve_insertion_order = false")
        try:
            _fill(base, _linked(files, Path(temporary)), edits, manifest)
        except duckdb.Error as error:
            raise _unreadable(file, error) from error
        base.execute("SET enable_external_access = false; SET lock_configuration = true")
        [(total,)] = base.execute("SELECT count(*) FROM prompts").fetchall()
        choices = _choices(base, edits)
        kinds = {split_control(name)[0] for name in choices["editor"]}
        yield Prompts(folder, manifest, base, choices, tuple(kind for kind in CONTROLS if kind in kinds), total)


def _check_columns(file: Path) -> None:
    """Refuse anything but a score table before it is read."""
    try:
        names = pq.read_schema(file).names
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from error
    if missing := [name for name in SCORES.names if name not in (*names, *LATER)]:
        raise RecordError(
            f"{file}: columns {missing} are missing; it has {names}. "
            "It was written by something else or another version; make it again."
        )


def _linked(files: Sequence[Path], folder: Path) -> str:
    """Return the files as an SQL list, by names that are neither patterns nor partitions."""
    for file in files:
        (folder / file.name).symlink_to(file.resolve())
    names = [glob.escape(str(folder / file.name)).replace("'", "''") for file in files]
    return "[" + ", ".join(f"'{name}'" for name in names) + "]"


def _unreadable(file: Path, error: Exception) -> Exception:
    message = " ".join(str(error).split())[:300]
    if "No space left" in message or "max_temp_directory_size" in message:
        return StorageError(f"{tempfile.gettempdir()}: no room for the prompts of {file} ({message}). Set TMPDIR.")
    return RecordError(f"{file}: not a whole Parquet file ({message}). Delete it and make it again.")


def _fill(base: DuckDBPyConnection, scores: str, edits: pa.Table, manifest: Manifest) -> None:
    """Make the tables; `scores` is an SQL list of files."""
    source = f"read_parquet({scores}, hive_partitioning = false, union_by_name = true)"
    base.execute(f"CREATE TEMP VIEW scores AS SELECT * FROM {source}")
    base.register("made", edits)
    base.execute(_ROWS)
    base.execute(f"CREATE TEMP TABLE seeds AS SELECT {_KEYS}, {_described()} FROM own GROUP BY ALL")
    [(copies,)] = base.execute("SELECT coalesce(max(most), 0) FROM seeds").fetchall()
    if copies > 1:
        raise RecordError(
            "scores.parquet: a (case, prompt, target, phase) occurs more than once for an editor. Drop the copies, or "
            "give merged runs different editor names."
        )
    names = [row[0] for row in base.execute("SELECT DISTINCT editor FROM scores WHERE editor <> ''").fetchall()]
    editors = list(dict.fromkeys(map(first_seed, names)))
    base.execute("CREATE TEMP TABLE named (editor VARCHAR, first VARCHAR, is_control BOOLEAN)")
    values = [(name, first_seed(name), is_control(name)) for name in [*names, ""]]
    base.executemany("INSERT INTO named VALUES (?, ?, ?)", values)
    base.execute(_MEANS)
    base.execute(_CHANGED)
    base.execute("CREATE TEMP TABLE controls (editor VARCHAR, sort VARCHAR, control VARCHAR)")
    pairs = [(editor, split_control(control)[0], control) for editor, control in compared(editors, manifest)]
    base.executemany("INSERT INTO controls VALUES (?, ?, ?)", [*pairs, ("", "", "")])
    base.execute("CREATE TABLE edits AS SELECT * FROM made")
    base.execute(_SUBJECTS)
    base.execute(_BESIDE)
    base.execute(_CANDIDATES)
    base.unregister("made")
    base.execute(
        "DROP VIEW own; DROP VIEW scores; DROP TABLE seeds; DROP TABLE paired; DROP TABLE changed; DROP TABLE subjects"
    )


def _described() -> str:
    """Return the SQL for the columns of a prompt: what it is, and its answers, each with its status."""
    words = [f"any_value({name}) AS {name}" for name in ("prompt", "subject_id", "subject", "holds")]
    words += [f"coalesce(list_filter(any_value({axis}), lambda tag: tag <> ''), []) AS {axis}" for axis in AXES]
    words += [f"any_value(target) FILTER (role = 'target_{side}') AS target_{side}" for side in ("new", "true")]
    for side, cell in _CELLS.items():
        words.append(f"max(logprob) FILTER ({cell} AND status = 'ok') AS {side}")
        words.append(f"min(coalesce(status, 'missing')) FILTER ({cell}) AS why_{side}")
    return ", ".join(
        [*words, f"greatest({', '.join(f'count(*) FILTER ({cell})' for cell in _CELLS.values())}) AS most"]
    )


def _status() -> str:
    """Return `status` of `seesaw_cf.effects.prompts` as SQL: "ok", or the first answer without a number, and why."""
    cases = " ".join(
        f"WHEN {side} IS NULL OR NOT isfinite({side}) THEN '{side}: ' || "
        f"CASE coalesce(why_{side}, 'missing') WHEN 'ok' THEN 'not finite' ELSE coalesce(why_{side}, 'missing') END"
        for side in SIDES
    )
    return f"CASE {cases} ELSE 'ok' END"


# Rows with two targets; pre-edit rows that all editors share are given to each that has none of its own.
_ROWS = f"""
CREATE TEMP TABLE editors AS
  SELECT editor, bool_or(phase = 'pre') AS has_pre FROM scores WHERE editor IS NOT NULL
  GROUP BY editor HAVING bool_or(phase = 'post');
CREATE TEMP VIEW own AS
  SELECT scores.* FROM scores JOIN editors USING (editor) WHERE role IN ('target_new', 'target_true')
  UNION ALL
  SELECT scores.* REPLACE (editors.editor AS editor) FROM scores, editors
  WHERE role IN ('target_new', 'target_true') AND phase = 'pre' AND NOT has_pre
    AND coalesce(scores.editor, '') IN ({_NO_EDITOR})
"""
# One row for all seeds of a control.
_TEXTS = ("prompt", "subject_id", "subject", "holds", *AXES, "target_new", "target_true")
_MEANS = f"""
CREATE TEMP TABLE paired AS
  SELECT {_KEYS.replace("editor", "first AS editor")},
    {", ".join(f"any_value({name}) AS {name}" for name in _TEXTS)},
    {", ".join(f"avg({side}) AS {side}, min(why_{side}) AS why_{side}" for side in SIDES)}
  FROM seeds JOIN named USING (editor) GROUP BY ALL
"""
# The right answer: of people what they hold; of neighbours the true target; of the edit what it is to write.
_HARM = """CASE WHEN holds = 'target_true' OR kind = 'neighborhood' THEN log_odds
    WHEN holds = 'target_new' OR kind IN ('efficacy', 'paraphrase', 'portability') THEN -log_odds END"""
_CHANGED = f"""
CREATE TEMP TABLE changed AS
  WITH scored AS (SELECT * EXCLUDE ({", ".join(f"why_{side}" for side in SIDES)}), {_status()} AS status,
    pre_new - pre_true AS odds_pre, post_new - post_true AS odds_post,
    CASE WHEN {_status()} = 'ok' THEN (post_new - pre_new) - (post_true - pre_true) END AS log_odds
  FROM paired)
  SELECT *, {_HARM} AS harm FROM scored
"""
_TAGS = ", ".join(f"max(list_filter({axis}, lambda tag: tag <> '')) AS {axis}" for axis in AXES)
# What is recorded of edited people, found by their identifiers alone: two people may have one name.
_SUBJECTS = f"""
CREATE TEMP TABLE subjects AS
  WITH own AS (
    SELECT DISTINCT edit_relation, case_id, subject_id FROM scores
    WHERE kind IN ('efficacy', 'paraphrase', 'cross_property') AND subject_id <> ''
  ), tagged AS (SELECT subject_id, {_TAGS} FROM scores WHERE subject_id <> '' GROUP BY ALL)
  SELECT edit_relation, case_id, {", ".join(f"coalesce(max({axis}), []) AS edited_{axis}" for axis in AXES)}
  FROM own JOIN tagged USING (subject_id) GROUP BY ALL
"""
_SAME = ("kind", "edit_relation", "effect_relation", "case_id", "prompt_id")
_OF_CONTROLS = ", ".join(f"any_value(log_odds) FILTER (sort = '{kind}') AS {kind}" for kind in CONTROLS)
_BESIDE = f"""
CREATE TABLE prompts AS
  WITH said AS (
    SELECT relation_id, case_id, any_value(subject || ': ' || target_true || ' \u2192 ' || target_new) AS edit
    FROM edits GROUP BY ALL
  ), beside AS (
    SELECT controls.editor, {", ".join(_SAME)}, {_OF_CONTROLS}
    FROM controls JOIN changed ON changed.editor = controls.control GROUP BY ALL
  )
  SELECT mine.*, {", ".join(CONTROLS)}, named.is_control, coalesce(edit, '') AS edit,
    coalesce(nullif(mine.subject, ''), mine.subject_id, '') AS person,
    {", ".join(f"coalesce({name}, []) AS {name}" for name in EDITED)}
  FROM changed mine
  JOIN named ON named.editor = mine.editor
  LEFT JOIN beside ON beside.editor = mine.editor
    AND {" AND ".join(f"beside.{name} IS NOT DISTINCT FROM mine.{name}" for name in _SAME)}
  LEFT JOIN said ON said.relation_id = mine.edit_relation AND said.case_id = mine.case_id
  LEFT JOIN subjects ON subjects.edit_relation = mine.edit_relation AND subjects.case_id = mine.case_id
"""
_CANDIDATES = """
CREATE TABLE candidates AS
  SELECT first AS editor, edit_relation, effect_relation, case_id, prompt_id, target, bool_or(gold) AS gold,
    avg(logprob) FILTER (phase = 'pre' AND status = 'ok') AS pre,
    avg(logprob) FILTER (phase = 'post' AND status = 'ok') AS post
  FROM scores JOIN named ON named.editor = coalesce(scores.editor, '') WHERE role = 'candidate' GROUP BY ALL
"""


def _choices(base: DuckDBPyConnection, edits: pa.Table) -> dict[str, tuple[str, ...]]:
    def values(what: str) -> list[str]:
        return [
            row[0] for row in base.execute(f"SELECT DISTINCT {what} AS v FROM prompts ORDER BY v").fetchall() if row[0]
        ]

    ran = list(dict.fromkeys(edits["editor"].to_pylist()))
    groups = {
        name: tuple(sort_groups(name.removeprefix("edited_"), [*values(f"unnest({name})"), UNKNOWN])) for name in GROUPS
    }
    return {
        "editor": tuple(sorted(values("editor"), key=lambda name: ran.index(name) if name in ran else len(ran))),
        "kind": tuple(values("kind")),
        "relation": tuple(sort_relations(values("edit_relation"))),
        "holds": tuple(values("holds")),
        **groups,
    }
