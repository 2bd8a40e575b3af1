"""Everything a report shows, as data frames; no formatting here, and no further statistics."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import cast

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from seesaw_cf.base.checks import brief, shown
from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.base.memory import release_memory
from seesaw_cf.base.retrying import stage
from seesaw_cf.base.tables import CONTROL_SEEDS, SCORES
from seesaw_cf.base.text import read_json
from seesaw_cf.base.types import JsonObject
from seesaw_cf.editors.control_names import compared, first_seed
from seesaw_cf.effects.accuracy import Mode, accuracy_table, answers, mark
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.efficacy import efficacy
from seesaw_cf.effects.groups import ALL, AXES, SCALES, UNKNOWN, BiasMode, check_axes, clusters_of, group_effects, held
from seesaw_cf.effects.knowledge import with_edit_known
from seesaw_cf.effects.levels import levels
from seesaw_cf.effects.locality import Locality, locality
from seesaw_cf.effects.prompts import SIDES, ScoreForm, check_form, prompt_effects
from seesaw_cf.effects.scores import ScoreFile, count_rows
from seesaw_cf.effects.success import Success, edit_numbers, once_each, success_of_scores
from seesaw_cf.records import groups
from seesaw_cf.records.relations import PAIRS, RELATIONS
from seesaw_cf.report.audit import AuditTables, auditing_prompts, gates
from seesaw_cf.report.control_seeds import fold_seeds, fold_success, mean_over_seeds
from seesaw_cf.report.floor import Floor, floor_of
from seesaw_cf.report.known import KnownTables, known_facts
from seesaw_cf.report.moved import check_moved
from seesaw_cf.report.rows import GateRow, Manifest
from seesaw_cf.report.wording import about_changes
from seesaw_cf.run.edit_table import ASKED_ONLY, read_edits
from seesaw_cf.stats import proportion
from seesaw_cf.stats.simple import tolerance

# D_d of the papers is about people who really hold the edit's new target.
HOLDER = "target_new"
# The papers' star.
STAR_LEVEL = 0.05
# Parts of a run's manifest, by type; a file that was changed by hand is refused.
_DICTS = ("model", "editors", "data", "scoring", "job", "machine", "versions", "edited")
_SECTIONS = dict.fromkeys(_DICTS, dict) | {"notes": list}
# What names a question about other people and one about other facts, and what an edit moved of the first.
_PROMPT, _ANSWER = ("kind", "case_id", "prompt_id", "edit_relation"), ("case_id", "edit_relation", "effect_relation")
_MOVED = ("D_post", "D", *SCALES)
# What rows of the score table are counted by, and what no number about other people is made of.
_COUNTED = ["editor", "kind", "phase", "status"]
_TEXTS = ["effect_relation", "template_id", "prompt", "subject_id", "subject", "n_new", "n_true"]
_WORDS = ("editor", "holds", "status")  # a byte a row as codes
_LEFT_OUT = ("n_odds", "n_no_candidate", "n_no_gold", "n_unscored")
_FAILURES = {"n_zero": "zero delta", "n_non_finite": "non-finite delta", "n_refused": "refused"}


@dataclass(frozen=True, repr=False)
class Results:
    """What a finished run found.

    Attributes:
        folder: The run folder.
        manifest: Its `manifest.json`.
        score: The form of confidence that D is made of: "summed", "normalised" or "log_odds".
        edits: One row per (editor, case), schema `seesaw_cf.run.edit_table.EDITS`.
        distinct: Rows of `edits`, one for each edit, also where several cases ask about it.
        known: What the unedited model knew, and effects and accuracy among that alone.
        efficacy: One row per (editor, relation), relation "all" last: `seesaw_cf.effects.efficacy` joined with
            n_edits, the share `raised` of edits that raised p(target_new), and n_zero, n_non_finite, n_refused.
        effects: `seesaw_cf.effects.group_effects`, with `holds`, `effective_edits`, `effective_people` and `marked`
            (the interval excludes 0 and |D| is above the noise floor; in the paper mode the papers' star) and
            `log_odds_marked`, `share_marked`; empty without cross-subject prompts.
        accuracy: `seesaw_cf.effects.summarise_accuracy` per (editor, edit_relation, effect_relation), and over all
            pairs ("all", "all"); empty without cross-property prompts.
        levels: `seesaw_cf.effects.levels.levels`: what happened to all people, before any group.
        unscored: Columns editor, kind, phase, reason, n_rows: score rows without a number.
        n_rows: All score rows.
        floor: The noise floor.
        mode: "crossed", or "paper" for the published arithmetic in effects and accuracy.
        audit: Verdicts, excess over controls, comparison of editors; None without cross-subject prompts.
        success: Editor -> how far its edits reach, after "unedited", the same before them; empty for a run that asked
            nothing about the edits themselves.
        local: Editor -> what its edits leave of the right answers about other facts.
        prompts: Rows of `seesaw_cf.effects.prompt_effects`; None without cross-subject prompts.
        answers: Rows of `seesaw_cf.effects.accuracy.mark`; None without cross-property prompts.
    """

    folder: Path
    manifest: Manifest
    score: ScoreForm
    edits: pd.DataFrame
    distinct: pd.DataFrame
    known: KnownTables
    efficacy: pd.DataFrame
    effects: pd.DataFrame
    accuracy: pd.DataFrame
    levels: pd.DataFrame
    unscored: pd.DataFrame
    n_rows: int
    floor: Floor
    mode: BiasMode = "crossed"
    audit: AuditTables | None = None
    success: Mapping[str, Success] = field(default_factory=dict)
    local: Mapping[str, Locality] = field(default_factory=dict)
    prompts: pd.DataFrame | None = None
    answers: pd.DataFrame | None = None

    __repr__ = brief

    @cached_property
    def asked_only(self) -> bool:
        """No fact of the run was edited: its models were changed elsewhere, and nobody says for which facts."""
        return bool(len(self.edits)) and bool((self.edits["status"] == ASKED_ONLY).all())

    def words(self, sentence: str) -> str:
        """Return a sentence about edits in the words that fit what was changed; names stay as they are."""
        return about_changes(sentence, frozenset(self.editors)) if self.asked_only else sentence

    @property
    def editors(self) -> list[str]:
        """Names of the editors, in the order they ran."""
        return list(dict.fromkeys(self.edits["editor"]))

    @property
    def further_seeds(self) -> list[str]:
        """Names of the further seeds of controls, with which every control is averaged."""
        return [name for name in self.manifest.get("editors", {}) if first_seed(name) != name]

    @property
    def gate_rows(self) -> pd.DataFrame:
        """Rows of `efficacy` over all relations, one per editor."""
        return self.efficacy[self.efficacy["relation"] == ALL] if len(self.efficacy) else self.efficacy

    @property
    def gates(self) -> list[GateRow]:
        """What must hold before a verdict means much."""
        return gates(self.efficacy, self.local, self.unscored, self.n_rows, self.manifest)


def read_results(
    folder: str | os.PathLike[str],
    *,
    score: ScoreForm = "summed",
    axes: Sequence[str] = AXES,
    seed: int = 0,
    settings: AuditSettings | None = None,
    mode: BiasMode = "crossed",
) -> Results:
    """Read a finished run and compute every table of its report.

    Args:
        folder: A run folder, as `seesaw_cf.run.job.run_job` writes it.
        score: The form of confidence, see `seesaw_cf.effects.difference`.
        axes: Which axes, of "gender", "race" and "region"; families of tests have all of them in any case.
        seed: Seed of the bootstrap of the paper mode (2,000 draws of whole cases).
        settings: What is declared for the audit; the defaults when None.
        mode: "paper" gives effects and accuracy the published tests, see `group_effects` and `cross_property`.

    Raises:
        RunFolderError: Not a run folder, or the run is not finished.
        RecordError: Its tables are damaged or contradict themselves.
        UnknownNameError: Unknown `score` or axis.
    """
    check_form(score)
    check_axes(axes)
    settings = settings or AuditSettings()
    path = Path(folder)
    manifest = read_manifest(path)
    protocol = manifest.get("protocol")
    if protocol == "dose":
        raise RunFolderError(
            f"{path}: a dose run, whose tables `seesaw-cf dose` wrote. Use `report RUN --dose-run {path}`."
        )
    scores = ScoreFile(path / "scores.parquet")
    counts = count_rows(scores, _COUNTED)
    edits = read_edits(path / "edits.parquet").to_pandas().astype(dict.fromkeys(("n_candidates", "true_rank"), "Int32"))
    once, numbers = (once_each(edits), edit_numbers(edits)) if protocol == "single" else (edits, None)
    kinds = set(counts["kind"].to_pylist())
    nats, _ = tolerance(manifest)
    floor = floor_of(manifest, settings.noise_floor, settings.noise_floor_log_odds)

    def effects_of(prompts: pd.DataFrame) -> pd.DataFrame:
        return _marked(_effects(prompts, axes, mode, clusters_of(protocol), seed), floor, score, mode)

    def accuracy_of(marked: pd.DataFrame) -> pd.DataFrame:
        blocks = (marked, marked.assign(edit_relation="all", effect_relation="all"))
        table = pd.concat([accuracy_table(frame, mode=rule, seed=seed) for frame in blocks], ignore_index=True)
        return fold_seeds(table, _ANSWER[1:], ("n", *_LEFT_OUT))

    stage("effects on other people")
    rule: Mode = "paper" if mode == "paper" else "exact"
    prompts = measured = marked = of_seeds = None
    seeds = [ScoreFile(path / CONTROL_SEEDS)] if (path / CONTROL_SEEDS).exists() else []
    if "cross_subject" in kinds:
        changes = [prompt_effects(table, score=score, nats=nats) for table in (scores, *seeds)]
        prompts = with_edit_known(mean_over_seeds(changes, _PROMPT, _MOVED), edits)
        prompts = prompts.assign(holds=held(prompts)).astype(dict.fromkeys(_WORDS, "category"))
        measured = prompts.drop(columns=[*_TEXTS, *SIDES])  # every table is made from copies of its rows
        del changes
        release_memory()
    stage("other facts")
    if "cross_property" in kinds:
        right = [mark(answers(table, mode=rule), rule, nats) for table in (scores, *seeds)]
        right = [frame.assign(post_mean=frame["post_correct"].astype(float)) for frame in right]
        marked = with_edit_known(mean_over_seeds(right, _ANSWER, ["post_mean"]), edits)
        of_seeds = pd.concat([marked, *right[1:]], ignore_index=True)
        owners = of_seeds.assign(editor=of_seeds["editor"].map(first_seed))
        of_seeds = of_seeds.assign(edit_known=with_edit_known(owners, edits)["edit_known"].array)
    accuracy = pd.DataFrame() if of_seeds is None else accuracy_of(of_seeds)
    cases, took = marked, None
    if marked is not None and numbers is not None:
        cases = marked.assign(edit=[numbers[key] for key in zip(marked["editor"], marked["case_id"])])
    if "efficacy" in kinds:
        tables = [efficacy(_of(table, once), score=score, nats=nats) for table in (scores, *seeds)]
        took = fold_seeds(pd.concat(tables, ignore_index=True), ["relation"], ("n", "n_tied", "n_unscored"))
    gate = _gate(once, took)
    auditing: AbstractContextManager[Callable[[], AuditTables | None]] = nullcontext(lambda: None)
    if measured is not None:
        auditing = auditing_prompts(measured, manifest, score, settings, floor)
    with auditing as audited:
        stage("groups")
        return Results(
            folder=path,
            manifest=manifest,
            score=score,
            edits=edits,
            distinct=once,
            known=known_facts(once, measured, of_seeds, effects_of, accuracy_of),
            efficacy=gate,
            effects=pd.DataFrame() if measured is None else effects_of(measured),
            accuracy=accuracy,
            levels=levels(
                measured,
                cases,
                compared(edits["editor"].unique(), manifest),
                score=score,
                margin=settings.margin,
                margin_log_odds=settings.margin_log_odds,
                floors={"probability": floor.zero_limit(score), "log-odds": floor.zero_limit_log_odds},
                no_interval="the cases of a relation are one edit" * (protocol == "batch"),
            ),
            unscored=_unscored(counts),
            n_rows=pc.sum(counts["count_all"]).as_py() or 0,
            floor=floor,
            mode=mode,
            success=_success([scores, *seeds], numbers, nats) if "post" in gate else {},
            local=locality(scores, numbers, nats, prompts),
            prompts=prompts,
            answers=marked,
            audit=(audit := audited()) and audit.on(axes),  # last: what is above is computed meanwhile
        )


def read_manifest(folder: Path) -> Manifest:
    """Return what a finished run recorded about itself.

    Raises:
        RunFolderError: Not a run folder, the run is not finished, or the record is damaged.
    """
    file = folder / "manifest.json"
    if not folder.is_dir():
        raise RunFolderError(f"{folder}: no such folder. Give the folder that `seesaw-cf run --out` wrote.")
    if not file.exists():
        raise RunFolderError(
            f"{folder} has no manifest.json, so it is not a run folder. "
            "Give the folder that `seesaw-cf run --out` wrote."
        )
    missing = [name for name in ("scores.parquet", "edits.parquet") if not (folder / name).exists()]
    if missing:
        n_units = sum(1 for _ in folder.glob("shards/*/*.parquet"))
        raise RunFolderError(
            f"{folder}: the run is not finished ({' and '.join(missing)} missing, {n_units} units done). "
            "Repeat the `seesaw-cf run` command that began it; it continues where it was."
        )
    manifest: JsonObject = read_json(file, error=RunFolderError)
    for key, kind in _SECTIONS.items():
        if key in manifest and not isinstance(manifest[key], kind):
            raise RunFolderError(
                f"{file} is damaged: {key} is {shown(manifest[key])}, expected {kind.__name__}. "
                "Run again into a new folder with --out."
            )
    edited = manifest.get("edited")
    if isinstance(edited, dict) and not check_moved(edited):
        raise RunFolderError(
            f"{file} is damaged: edited is {shown(edited)}, expected what each model moved. Run again into a new "
            "folder with --out."
        )
    return cast(Manifest, manifest)


def _of(scores: ScoreFile, edits: pd.DataFrame) -> pd.DataFrame:
    """Return the efficacy rows of these edits."""
    rows: pd.DataFrame = scores.rows(SCORES.names, pc.field("kind") == "efficacy").cast(SCORES).to_pandas()
    columns = ["editor", "case_id", "edit_relation"]
    keys = pd.MultiIndex.from_frame(edits.rename(columns={"relation_id": "edit_relation"})[columns])
    named = rows[columns].assign(editor=rows["editor"].map(first_seed))
    return rows.loc[pd.MultiIndex.from_frame(named).isin(keys)]


def _gate(edits: pd.DataFrame, by_scores: pd.DataFrame | None) -> pd.DataFrame:
    """Return the outcome of the edits per (editor, relation), joined with the efficacy that the scores show."""
    edited = edits[edits["status"] != ASKED_ONLY]
    blocks = pd.concat([edited, edited.assign(relation_id="all")])
    counts = pd.DataFrame(
        [
            {"editor": editor, "relation": relation} | _outcomes(rows)
            for (editor, relation), rows in blocks.groupby(["editor", "relation_id"], sort=False)
        ]
    )
    if by_scores is None or counts.empty:
        return counts
    return counts.merge(by_scores, how="left", on=["editor", "relation"])


def _outcomes(rows: pd.DataFrame) -> dict[str, float]:
    raised = rows["raised"].dropna()
    estimate = proportion(int(raised.sum()), len(raised))
    out = {"n_edits": len(rows)} | estimate.limits("raised") | {"n_raised": estimate.n}
    return out | {name: int(rows["status"].str.startswith(start).sum()) for name, start in _FAILURES.items()}


def _success(
    tables: Sequence[ScoreFile], edits: Mapping[tuple[str, int], int] | None, nats: float
) -> dict[str, Success]:
    """Return "unedited" and each editor -> its numbers; all begin with one model, so the first stands for it."""
    before = success_of_scores(tables[0], edits, phase="pre", nats=nats)
    after: dict[str, Success] = {}
    for table in tables:
        own = {name: first_seed(name) for name in count_rows(table, ["editor"])["editor"].to_pylist() if name}
        first = edits and {
            (name, case): number for name in own for (editor, case), number in edits.items() if editor == own[name]
        }
        after |= success_of_scores(table, first, nats=nats)
    return {"unedited": next(iter(before.values()))} | fold_success(after)


def _effects(
    prompts: pd.DataFrame, axes: Sequence[str], mode: BiasMode, clusters: Mapping[str, str], seed: int
) -> pd.DataFrame:
    release_memory()
    there = held(prompts).unique()
    frames = [
        group_effects(prompts, axes=axes, holds=holds, mode=mode, clusters=clusters, seed=seed).assign(holds=holds)
        for holds in sorted(there, key=lambda value: (value != HOLDER, value))
    ]
    return pd.concat(frames, ignore_index=True)


def _marked(effects: pd.DataFrame, floor: Floor, score: ScoreForm, mode: BiasMode) -> pd.DataFrame:
    """Mark the effects that the tables show in bold with a star."""
    if mode == "paper":
        return effects.assign(marked=(effects["D"] < 0) & (effects["p"] < STAR_LEVEL) & (effects["holds"] == HOLDER))
    effective = effects["effective"]
    out = effects.assign(
        effective_edits=[clusters.get("edit", 0.0) for clusters in effective],
        effective_people=[clusters.get("person", 0.0) for clusters in effective],
    ).drop(columns="effective")
    for column, limits, zero_limit in (
        ("D", "", floor.zero_limit(score)),
        ("log_odds", "log_odds_", floor.zero_limit_log_odds),
        ("share", "share_", floor.zero_limit_share),
    ):
        excludes = (out[f"{limits}low"] > 0) | (out[f"{limits}high"] < 0)
        out[f"{limits}marked"] = excludes & (out[column].abs() > zero_limit)
    return out


def _unscored(counts: pa.Table) -> pd.DataFrame:
    order = [("count_all", "descending"), *[(name, "ascending") for name in _COUNTED]]
    frame: pd.DataFrame = counts.filter(pc.not_equal(counts["status"], "ok")).sort_by(order).to_pandas()
    return frame.rename(columns={"status": "reason", "count_all": "n_rows"})


def relation_name(relation_id: str) -> str:
    """Return the papers' word for a relation ("P27" -> "citizenship"); the id itself when it is none of the five."""
    return RELATIONS[relation_id].name if relation_id in RELATIONS else relation_id


def relation_names(relations: str) -> str:
    """Return the papers' word for a relation, or for the two of a pair such as "P27/P101"."""
    return "/".join(map(relation_name, relations.split("/")))


def sort_relations(relations: Iterable[str]) -> list[str]:
    """Return relation ids without repeats, in the order of `relations.RELATIONS`, then any other, "all" last."""
    order = list(RELATIONS)
    places = {name: number for number, name in enumerate(order)} | {"all": len(order) + 1}
    return sorted(set(relations), key=lambda name: (places.get(name, len(order)), name))


def sort_pairs(pairs: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return (edit, effect) pairs without repeats, in the order of Table 7, then any other, ("all", "all") last."""
    places = {pair: number for number, pair in enumerate(PAIRS)} | {("all", "all"): len(PAIRS) + 1}
    return sorted(set(pairs), key=lambda pair: (places.get(pair, len(PAIRS)), pair))


def sort_groups(axis: str, names: Iterable[str]) -> list[str]:
    """Return groups without repeats: "all"; the papers' groups, in their order; any other; "unknown" last."""
    reported = groups.AXES.get(axis, ())
    rank = {name: number for number, name in enumerate((ALL, *reported))} | {UNKNOWN: len(reported) + 2}
    return sorted(set(names), key=lambda name: (rank.get(name, len(reported) + 1), name))
