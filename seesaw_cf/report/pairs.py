"""From the files of a finished run to one row per question, before and after; nothing is derived again later."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from seesaw_cf.base.checks import brief, one_of
from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.base.retrying import stage
from seesaw_cf.base.system import release_memory
from seesaw_cf.base.tables import CONTROL_SEEDS, read_table, table_of
from seesaw_cf.base.types import Estimate
from seesaw_cf.editors.control_names import compared, first_seed, is_control, seed_number, split_control
from seesaw_cf.effects.answers import Locality, answers, locality, mark
from seesaw_cf.effects.free_answers import ANSWERS, JUDGED, mark_answers
from seesaw_cf.effects.means import held
from seesaw_cf.effects.prompts import prompt_effects
from seesaw_cf.effects.success import Success, edit_numbers, once_each, success_of_scores
from seesaw_cf.effects.tables import ScoreFile, Scores, count_rows
from seesaw_cf.report.rows import Floor, Manifest, floor_of, forms_of
from seesaw_cf.run.manifest import RunFolder
from seesaw_cf.run.store import ASKED_ONLY, EDITS
from seesaw_cf.stats.simple import tolerance

CONTROL_ORDER = ("random", "unrelated", "identity")
"""Which control decides where an editor has several."""
_PROMPT = ["editor", "kind", "case_id", "prompt_id", "edit_relation"]
_MOVED = ["D_post", "D", "log_odds", "share"]
COUNTED = ["editor", "kind", "phase", "status"]
_WORDS = ("editor", "holds", "status")  # a byte a row as codes


MIXED = "mixed"
"""Protocol of several runs whose edits were made in several ways."""


@dataclass(frozen=True, repr=False)
class RunResult:
    """A finished run as pairs: every question before and after each edit.

    Attributes:
        folder, manifest: Where it is, and what it recorded about itself.
        edits: One row per (editor, case), schema `seesaw_cf.run.store.EDITS`.
        people: Rows of `seesaw_cf.effects.prompt_effects` about other people, of a control the means over its seeds;
            None where nobody was asked about.
        facts: Rows of `seesaw_cf.effects.answers.mark` about other facts of the edited person, of all seeds, with
            `seed` and `edit`, the first case about the same edit; None where none was asked.
        efficacy: Rows of `seesaw_cf.effects.prompt_effects` of the edits' own prompts, of all seeds, with `seed`.
        success: Editor -> how far its edits reach, after "unedited"; empty where nothing about edits was asked.
        local: Editor -> what its edits leave of the right answers about other facts.
        unscored: Columns editor, kind, phase, reason, n_rows: score rows without a number.
        n_rows: All score rows.
        floor: The noise floor.
        names: Editor in the files -> what it is called here, where that differs.
        form: How all of it was asked, one of `seesaw_cf.base.types.FORMS`.
        written: Rows of `seesaw_cf.effects.free_answers.mark_answers` in this form; None where no answers were written.
    """

    folder: Path
    manifest: Manifest
    edits: pd.DataFrame
    people: pd.DataFrame | None
    facts: pd.DataFrame | None
    efficacy: pd.DataFrame | None
    success: Mapping[str, Success]
    local: Mapping[str, Locality]
    unscored: pd.DataFrame
    n_rows: int
    floor: Floor
    names: Mapping[str, str] = field(default_factory=dict)
    form: str = "plain"
    written: pd.DataFrame | None = None

    __repr__ = brief

    @property
    def editors(self) -> list[str]:
        """Names of the editors and their controls, in the order they ran."""
        return list(dict.fromkeys(self.edits["editor"]))

    @property
    def audited(self) -> list[str]:
        """The editors that are no control; all of them where there is no other."""
        return [name for name in self.editors if not is_control(name)] or self.editors

    @property
    def protocol(self) -> str:
        """How edits were made: "single", "batch", "sequential", or `MIXED` of several runs."""
        return str(self.manifest.get("protocol"))

    @cached_property
    def controls(self) -> list[tuple[str, str]]:
        """(editor, its control), the control that decides first."""
        pairs = compared(self.editors, self.manifest)
        return sorted(pairs, key=lambda pair: CONTROL_ORDER.index(split_control(pair[1])[0]))

    def control_of(self, editor: str) -> str:
        """Return the control that decides about an editor, "" where it has none."""
        return next((name for of, name in self.controls if of == editor), "")

    @cached_property
    def distinct(self) -> pd.DataFrame:
        """Rows of `edits`, one for each edit, also where several cases ask about it."""
        return self.edits if self.protocol == "batch" else once_each(self.edits)

    @cached_property
    def asked_only(self) -> bool:
        """No fact was edited: the models were changed elsewhere, and it is not recorded for which facts."""
        return bool(len(self.edits)) and bool((self.edits["status"] == ASKED_ONLY).all())

    def is_changed(self, name: str) -> bool:
        """Return whether a model was changed elsewhere, by no edit of this run."""
        return name in self.manifest.get("edited", {})

    def together(self, name: str) -> bool:
        """Return whether the edits of a relation by this editor were made together; see `seesaw_cf.report.several`."""
        return bool(self.manifest.get("protocols", {}).get(name, self.protocol) == "batch")

    @property
    def noun(self) -> str:
        """What was done to the model, for sentences."""
        return "change" if self.asked_only else "edit"

    @property
    def unit(self) -> str:
        """What a mean is over: edits, or of a model that was changed elsewhere the facts it was asked."""
        return "fact" if self.asked_only else "edit"


def read_run(
    folder: str | os.PathLike[str], floors: tuple[float | None, float | None] = (None, None), form: str = ""
) -> RunResult:
    """Read a finished run in one form.

    Args:
        folder: A run folder.
        floors: Noise floors in probability and log-odds; None takes what the run measured.
        form: How it was asked; "" = the form of its main tables.

    Raises:
        RunFolderError: Not a run folder, or the run is not finished.
        RecordError: Its tables are damaged or contradict themselves.
    """
    path = Path(folder)
    manifest: Manifest = RunFolder.open(path).manifest
    if manifest.get("protocol") == "dose":
        raise RunFolderError(f"{path}: a dose run, whose report is in {path / 'report'}.")
    first, *_ = forms_of(manifest)
    one_of("form", form := form or first, forms_of(manifest))
    files = [path / table_of(name, form * (form != first)) for name in ("scores.parquet", CONTROL_SEEDS)]
    scores, *_ = tables = [ScoreFile(file) for file in files if file.exists()]
    counts = count_rows(scores, COUNTED)
    kinds = set(counts["kind"].to_pylist())
    edits = read_table(path / "edits.parquet", EDITS).to_pandas()
    edits = edits.astype(dict.fromkeys(("n_candidates", "true_rank"), "Int32"))
    numbers = edit_numbers(edits) if manifest.get("protocol") == "single" else None
    nats, _ = tolerance(manifest)
    changed = set(manifest.get("edited", {}))
    stage("effects on other people")
    people = people_of(tables, changed) if "cross_subject" in kinds else None
    stage("other facts")
    facts = facts_of(tables, nats, numbers, changed) if "cross_property" in kinds else None
    efficacy = efficacy_of(tables, edits if numbers is None else once_each(edits)) if "efficacy" in kinds else None
    return RunResult(
        folder=path,
        manifest=manifest,
        edits=edits,
        people=people,
        facts=facts,
        efficacy=efficacy,
        success={} if efficacy is None else _success(tables, numbers, nats),
        local=locality(scores, numbers, nats, people),
        unscored=unscored_of(counts),
        n_rows=pc.sum(counts["count_all"]).as_py() or 0,
        floor=floor_of(manifest, *floors),
        form=form,
        written=read_answers(path, form),
    )


def read_answers(folder: Path, form: str, where: pc.Expression | None = None) -> pd.DataFrame | None:
    """Return what the models of a run wrote in a form, marked; None where no answers were written."""
    if not (file := folder / "answers.parquet").exists():
        return None
    rows: pd.DataFrame = read_table(file, ANSWERS, filters=where).to_pandas()
    judged = folder / "judged.parquet"
    return mark_answers(rows[rows["form"] == form], read_table(judged, JUDGED).to_pandas() if judged.exists() else None)


def people_of(tables: Sequence[Scores], changed: set[str]) -> pd.DataFrame:
    """Return the rows `people` of a run from its score tables: the first, and those of further seeds."""
    rows = mean_over_seeds([prompt_effects(table) for table in tables])
    rows = rows.assign(holds=held(rows)).astype(dict.fromkeys(_WORDS, "category"))
    release_memory()
    return distinct_questions(rows, changed)


def mean_over_seeds(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of the first table with the mean change over all seeds where an editor is a control of several.

    Args:
        tables: One row per editor and question, of each control those of its first seed; then, where there are any,
            rows of its other seeds, such as "random(memit, 2)".
    """
    rows, *others = tables
    if not others:
        return rows
    further = pd.concat(others)
    named = further.assign(editor=further["editor"].map(first_seed))[[*_PROMPT, *_MOVED]]
    drawn = rows["editor"].isin(named["editor"].unique())
    means = pd.concat([rows.loc[drawn, named.columns], named]).groupby(_PROMPT, sort=False)[_MOVED].mean()
    out = rows.astype(dict.fromkeys(_MOVED, float))
    out.loc[drawn, _MOVED] = means.reindex(pd.MultiIndex.from_frame(rows.loc[drawn, _PROMPT])).to_numpy()
    return out


def _of_changed(rows: pd.DataFrame, changed: set[str]) -> pd.Series:
    """Return which rows are of models that were changed elsewhere, or of controls of them."""
    return rows["editor"].map(lambda name: bool({name, split_control(name)[1]} & changed)).astype(bool)


def distinct_questions(rows: pd.DataFrame, changed: set[str]) -> pd.DataFrame:
    """Return rows in which facts that ask a changed model the same are one fact, and each question is asked once.

    A model that was changed elsewhere does not change with the fact: facts with the same relation and answers ask the
    same people the same thing, and their answers are equal. Counted as several they would make intervals too short.

    Args:
        rows: Rows of `seesaw_cf.effects.prompt_effects`.
        changed: Editors that are such models, or controls of them.
    """
    own = _of_changed(rows, changed)
    if not own.any():
        return rows
    question, out = ["edit_relation", "target_new", "target_true"], rows.copy()
    out.loc[own, "case_id"] = rows.loc[own].groupby(question, observed=True, dropna=False)["case_id"].transform("min")
    question = ["kind", "case_id", "edit_relation", "person", "prompt"]
    numbers = out.loc[own].groupby(question, observed=True, dropna=False).ngroup()  # facts numbered their own ones
    out.loc[own, "prompt_id"] = numbers.astype(rows["prompt_id"].dtype)
    again = out.duplicated(["editor", "case_id", "prompt_id"]) & own
    return out[~again].reset_index(drop=True)


def facts_of(
    tables: Sequence[Scores], nats: float, numbers: Mapping[tuple[str, int], int] | None, changed: set[str]
) -> pd.DataFrame:
    """Return the rows `facts` of a run."""
    rows = pd.concat([mark(answers(table), nats=nats) for table in tables], ignore_index=True)
    rows = _with_seeds(rows)
    edit = rows["case_id"] if numbers is None else [numbers[key] for key in zip(rows["editor"], rows["case_id"])]
    again = rows.duplicated(["editor", "seed", "person", "effect_relation", "prompt_post"]) & _of_changed(rows, changed)
    return rows.assign(edit=edit)[~again].reset_index(drop=True)


def _with_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows with the number of the seed, and the name of a control's first one."""
    editor = rows["editor"].astype(object)
    return rows.assign(seed=editor.map(seed_number), editor=editor.map(first_seed))


def efficacy_of(tables: Sequence[Scores], edits: pd.DataFrame) -> pd.DataFrame:
    """Return the rows `efficacy` of a run, of these edits."""
    rows = _with_seeds(pd.concat([prompt_effects(table, kind="efficacy") for table in tables], ignore_index=True))
    keys = pd.MultiIndex.from_frame(edits[["editor", "case_id", "relation_id"]])
    return rows[pd.MultiIndex.from_frame(rows[["editor", "case_id", "edit_relation"]]).isin(keys)]


def _success(
    tables: Sequence[ScoreFile], numbers: Mapping[tuple[str, int], int] | None, nats: float
) -> dict[str, Success]:
    """Return "unedited" and each editor -> its numbers; all begin with one model, so the first stands for it."""
    before = success_of_scores(tables[0], numbers, phase="pre", nats=nats)
    seeds: dict[str, list[Success]] = {"unedited": [next(iter(before.values()))]}
    for table in tables:
        own = [(name, first_seed(name)) for name in count_rows(table, ["editor"])["editor"].to_pylist() if name]
        keys = numbers and {(name, key[1]): n for name, first in own for key, n in numbers.items() if key[0] == first}
        for name, success in success_of_scores(table, keys, nats=nats).items():
            seeds.setdefault(first_seed(name), []).append(success)
    return {name: mean_success(own) for name, own in seeds.items()}


def mean_success(seeds: Sequence[Success]) -> Success:
    """Return the means of numbers over seeds or orders."""
    means = {
        protocol: {name: mean_estimate([seed.numbers[protocol][name] for seed in seeds]) for name in numbers}
        for protocol, numbers in seeds[0].numbers.items()
    }
    return replace(seeds[0], numbers=means)


def mean_estimate(seeds: Sequence[Estimate]) -> Estimate:
    """Return one estimate for all seeds of a control: the means of its numbers and ends; a p has no mean."""
    if len(seeds) == 1:
        return seeds[0]
    names = ("value", "low", "high", "stderr")
    ends: dict[str, Any] = {name: sum(getattr(own, name) for own in seeds) / len(seeds) for name in names}
    return replace(seeds[0], **ends, p=float("nan"))


def unscored_of(counts: pa.Table) -> pd.DataFrame:
    """Return the rows `unscored` of a run from counts of its score rows."""
    order: Any = [("count_all", "descending"), *[(name, "ascending") for name in COUNTED]]
    frame: pd.DataFrame = counts.filter(pc.not_equal(counts["status"], "ok")).sort_by(order).to_pandas()
    return frame.rename(columns={"status": "reason", "count_all": "n_rows"})
