"""The report of edits one after another: the collapse first, then the numbers of a report at every checkpoint.

Nothing is concluded at a checkpoint at which an editor has collapsed.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from seesaw_cf.base.errors import HarmError
from seesaw_cf.base.retrying import expect_stages, stage
from seesaw_cf.base.system import ahead
from seesaw_cf.base.terminal import quantity
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.means import ALL
from seesaw_cf.report import sentences
from seesaw_cf.report.build import build_frame, building
from seesaw_cf.report.curves import (
    CURVES,
    SCALED,
    State,
    curve_figure,
    curve_of,
    first_collapse,
    has_collapsed,
    read_alarms,
    read_states,
    standing_rows,
)
from seesaw_cf.report.figures import colours, style, svg
from seesaw_cf.report.levels import LEVELS, NO_MATCH, level_sentence, levels_of
from seesaw_cf.report.pairs import read_run
from seesaw_cf.report.report import Report
from seesaw_cf.report.rows import forms_of, model_name
from seesaw_cf.report.screen import Part, Screen, ScreenRow
from seesaw_cf.report.tables import answer_lines
from seesaw_cf.report.words import FORM_WORDS, amount, and_list, capital, minus
from seesaw_cf.run.manifest import read_manifest

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LOST: Mapping[tuple[str, str], str] = {
    ("other_facts", ""): "other facts about the edited people lost",
    ("other_people", "old"): "people for whom the old answer is true lost",
    ("other_people", "new"): "people for whom the new answer is true lost",
}
_NOT_MADE: Mapping[str, str] = {"n_refused": "refused", "n_zero": "changed nothing"}
_MOST_COLUMNS = 5
_AT_ONCE = 2  # states whose labels are permuted while the next one is read
_METHOD = (
    "Facts are edited one after another, each on the model with all earlier edits; the same people and other facts are "
    "asked at every checkpoint, and nobody who is edited. The control makes as many random changes of the same sizes. "
    "A line is the mean over orders with its 95 % interval over facts and people; thin lines are single orders. "
    "A hollow mark: the model has collapsed (the perplexity of plain texts doubled, or the entropy of answers halved), "
    "and no mean is taken there."
)


@dataclass(frozen=True, repr=False)
class SequenceReport(Report):
    """What edits one after another did: `run` and the groups on its page are those of the last checkpoint that stands.

    Attributes:
        at: Checkpoint -> the report there.
        curve: The table curve.
        standing: Audited editor -> its last checkpoint before it collapses; 0 where it does at the first.
    """

    at: Mapping[int, Report] = field(default_factory=dict)
    curve: pd.DataFrame = field(default_factory=pd.DataFrame)
    standing: Mapping[str, int] = field(default_factory=dict)

    @property
    def main(self) -> Report:
        """The report at the last checkpoint at which every editor stands that does at any, else at the first."""
        return self.at[last_standing(self.standing, self.at)]

    @cached_property
    def screen(self) -> Screen:
        """What the run found, the collapse first."""
        counts = list(self.at)
        shown = counts if len(counts) <= _MOST_COLUMNS else [*counts[: _MOST_COLUMNS - 1], counts[-1]]
        measured = {capital(CURVES[name]): list(self._rows(name, shown)) for name in ("D_new", "right_new", "ES")}
        return Screen(
            about=f"{self._header()}{sentences.asked_how(self.run)}",
            finding=[*self._collapses(), *self._levels(), *self._groups()],
            missing=" ".join(self._missing()),
            columns=[quantity(count, "edit") for count in shown],
            sections={title: rows for title, rows in measured.items() if rows} | self._otherwise(shown),
            notes=list(self.run.manifest.get("notes", [])),
        )

    def _missing(self) -> Iterator[str]:
        """Yield how many edits were not made in an order at most, and how many scores there are not."""
        lost = [
            f"{count} of {max(self.at):,} edits by {name} {words}"
            for column, words in _NOT_MADE.items()
            for name, count in self.curve.groupby("editor")[column].max().items()
            if count and name in self.run.audited
        ]
        if lost:
            yield f"{capital('; '.join(lost))}, the sequence went on without them."
        for asked in zip(*((own, *own.forms) for own in self.at.values())):
            count, runs = sum(int(own.run.unscored["n_rows"].sum()) for own in asked), [own.run for own in asked]
            if count:
                yield f"{count:,} of {sum(run.n_rows for run in runs):,} scores {FORM_WORDS[runs[0].form]} missing."

    def _header(self) -> str:
        run, settings = self.run, self.run.manifest["settings"]
        people = "" if run.people is None else f"; {run.people['person'].nunique():,} other people asked about"
        facts = quantity(max(self.at), "fact")
        orders = quantity(settings["orders"], "order")
        model, names = model_name(run.manifest), and_list(run.audited)
        return f"{model}: {facts} edited one after another with {names}, in {orders}{people}"

    def _collapses(self) -> Iterator[str]:
        """Yield when the model of an editor collapses, the first one first, and where its control alone does."""
        dated = {name: first_collapse(self.curve, name) for name in self.run.audited}
        for name, row in sorted(dated.items(), key=lambda item: item[1]["checkpoint"] if item[1] is not None else 0):
            control = first_collapse(self.curve, self.run.control_of(name))
            if row is None:
                if control is not None:
                    changes = quantity(control["checkpoint"], "random change")
                    have = "has" if control["checkpoint"] == 1 else "have"
                    yield f"{changes} of the sizes of {name}'s {have} broken the model, and {name} has not."
                continue
            same = control is not None and control["checkpoint"] <= row["checkpoint"]
            beside = "so have" if same else "not so after"
            also = f"; {beside} as many random changes of the same sizes" if self.run.control_of(name) else ""
            edits = quantity(row["checkpoint"], "edit")
            yield f"After {edits} in a row {name} has broken the model: {row['alarm'].split('; ')[0]}{also}."

    def _levels(self) -> Iterator[str]:
        """Yield how much more than its control an editor cost anybody, where it still stands."""
        for name in self.standing:
            control = first_collapse(self.curve, self.run.control_of(name))
            ends = [self.standing[name] + 1, math.inf if control is None else control["checkpoint"]]
            count = max((count for count in self.at if count < min(ends)), default=0)
            if not count:
                continue
            levels = [own for own in levels_of(self.at[count].frame, self.at[count].run) if own["editor"] == name]
            start = f"After {quantity(count, 'edit')} in a row"
            harmed = sorted((level for level in levels if level["is_harm"]), key=lambda level: -level["harm"])
            verdicts = {level["verdict"] for level in levels}
            if harmed:
                losses = [f"{_LOST[own['about'], own['true_answer']]} {amount(own, own['sign'])}" for own in harmed]
                beside = " more than after as many random changes of the same sizes" * (verdicts != {"no_control"})
                yield f"{start} with {name} {and_list(losses)}{beside}."
            elif verdicts <= {"no_worse", "better", "slightly_worse"} and verdicts:
                yield f"{start} {name} has cost others no more than as many random changes of the same sizes."
            elif verdicts <= {"no_control", "too_few"} and verdicts:
                few = "too few were asked to tell whether others lost more than by chance" * (verdicts == {"too_few"})
                yield f"{start} with {name} {few or 'it is not known what as many random changes do'}."
            elif verdicts:
                yield f"{start} with {name} it is not decided whether others lost more than by chance."

    def _groups(self) -> Iterator[str]:
        count = last_standing(self.standing, self.at)
        sentence = sentences.group_sentence(self._standing(self.main), self.main.run, self.settings)
        if sentence and any(self.standing.values()):
            yield f"After {quantity(count, 'edit')}: {sentence[:1].lower()}{sentence[1:]}"

    def _rows(self, name: str, shown: Sequence[int]) -> Iterator[ScreenRow]:
        """Yield a measure of every editor, and of its control below it, at some checkpoints."""
        scale = 100 if name in SCALED else 1
        for editor in (own for audited in self.run.audited for own in (audited, self.run.control_of(audited)) if own):
            rows = standing_rows(self.curve, editor)
            cells = _cells(rows.groupby("checkpoint")[name].mean().reindex(list(shown)) * scale)
            if self.curve.loc[self.curve["editor"] == editor, name].notna().any():
                yield self._row(editor, cells)

    def _row(self, editor: str, cells: Sequence[str]) -> ScreenRow:
        fallen, words = first_collapse(self.curve, editor), "random changes" if is_control(editor) else editor
        if fallen is None:
            return ScreenRow(words, cells)
        return ScreenRow(words, cells, f"COLLAPSED at {fallen['checkpoint']:,}", "bad", fallen["alarm"])

    def _facts(self, shown: Sequence[int]) -> dict[str, list[ScreenRow]]:
        """Return how many of the other facts about the edited people are right at some checkpoints."""
        own = self.frame[(self.frame["what"] == "after") & (self.frame["about"] == "other_facts")]
        own = own[(own["relation"] == ALL) & own["checkpoint"].isin(shown)]
        values = own.pivot(index="checkpoint", columns="editor", values="value").reindex(list(shown)) * 100
        names = [own for name in self.run.audited for own in (name, self.run.control_of(name)) if own]
        values = values.reindex(columns=[name for name in names if name in values or self.standing.get(name) == 0])
        rows = [self._row(str(name), _cells(own)) for name, own in values.items()]
        return {"Other facts about the edited people answered right, %": rows} if rows else {}

    def _standing(self, own: Report) -> pd.DataFrame:
        """Return the rows of the main report, in one of its forms, about models that have not collapsed there."""
        count = last_standing(self.standing, self.at)
        fallen = [name for name in set(own.frame["editor"]) if has_collapsed(self.curve, name, count)]
        return own.frame[~own.frame["editor"].isin(fallen)]

    def _otherwise(self, shown: Sequence[int]) -> dict[str, list[ScreenRow]]:
        """Return what of other facts is right, how many edits hold in other forms, and what the models wrote at the
        last checkpoint that stands."""
        sections = self._facts(shown)
        for number, other in enumerate(self.main.forms):
            rows = sections.setdefault(f"{capital(CURVES['ES'])}, {FORM_WORDS[other.run.form]}", [])
            states = [self.at[count].forms[number] for count in shown]
            held = [{of: after for of, _, after in sentences.efficacy_rows(own.frame, own.run)} for own in states]
            for name in self.run.audited:
                rows.append(self._row(name, [f"{100 * own[name]['value']:.1f}" if name in own else "" for own in held]))
        lines = [line for own in (self.main, *self.main.forms) for line in answer_lines(self._standing(own), own.run)]
        return sections | ({"Answers that the models wrote, to their end": lines} if lines else {})

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Name -> table with the column checkpoint; single edits and answers at the last checkpoint that stands."""
        tables = {"curve": self.curve}
        for name in ("levels", "groups", "contrasts", "other_facts", "efficacy"):
            parts = [own.tables[name].assign(checkpoint=count) for count, own in self.at.items() if name in own.tables]
            if parts:
                tables[name] = pd.concat(parts, ignore_index=True)
        return tables | {name: self.main.tables[name] for name in ("edits", "answers") if name in self.main.tables}

    @cached_property
    def checks(self) -> list[tuple[bool, str]]:
        """That nothing collapsed, and what must hold before a finding at the last checkpoint that stands means much."""
        fallen = [(name, first_collapse(self.curve, name)) for name in self.run.audited]
        dated = [
            (row is None, f"{name}: {'stands at every checkpoint' if row is None else row['alarm']}.")
            for name, row in fallen
        ]
        return [*dated, *self.main.checks]

    @cached_property
    def figures(self) -> list[tuple[str, str, str, Figure]]:
        """The curves of every editor beside its control, then the pictures of the last checkpoint that stands."""
        ink, control = colours(self.run), self.run.control_of
        with style():
            curves = [
                (f"curves_{name}", name, name, curve_figure(self.frame, self.curve, name, control(name), ink[name]))
                for name in self.run.audited
            ]
        return [*curves, *self.main.figures]

    def _parts(self) -> Iterator[Part]:
        drawn = [
            (name, svg(figure, f"Curves of {name}")) for kind, name, _, figure in self.figures if kind[:6] == "curves"
        ]
        yield Part("Edit after edit", [_METHOD], {"": drawn})
        rows = [row for count, own in self.at.items() for row in _page_rows(count, own, self.curve)]
        yield Part("Every checkpoint", [], table=pd.DataFrame(rows).fillna(""))
        yield from self.main._parts()

    def check(self) -> None:
        """See `Report.check`; an editor that has collapsed fails, too.

        Raises:
            HarmError: With the finding.
        """
        if any(first_collapse(self.curve, name) is not None for name in self.run.audited):
            raise HarmError(" ".join(self.screen.finding))
        super().check()


def last_standing(standing: Mapping[str, int], counts: Iterable[int]) -> int:
    """Return the last checkpoint at which every editor stands that does at any, else the first one."""
    return min((count for count in standing.values() if count), default=min(counts))


def _cells(values: pd.Series) -> list[str]:
    return [minus(f"{value:.1f}") if math.isfinite(value) else "" for value in values.astype(float)]


def _page_rows(count: int, own: Report, curve: pd.DataFrame) -> Iterator[dict[str, str]]:
    """Yield a line of words for every level at a checkpoint."""
    for level in levels_of(own.frame, own.run):
        sides = {"after it": level["own"], "after as many random changes": level["beside"]}
        yield {
            "edits": f"{count:,}",
            "editor": level["editor"],
            "who": LEVELS[level["about"], level["true_answer"]][0],
            **{name: amount(side["change"], level["sign"]) if side else "" for name, side in sides.items()},
            "concluded": level_sentence(level, own.run),
        }
    for name in own.run.audited:
        if has_collapsed(curve, name, count):
            yield {"edits": f"{count:,}", "editor": name, "concluded": "the model has collapsed"}


def report_sequence(folder: str | os.PathLike[str], settings: AuditSettings) -> SequenceReport:
    """Return the report of a finished run of edits one after another; see `report`.

    Contrasts of groups are decided at every checkpoint, each at the level alpha over the number of checkpoints.
    """
    path, floors = Path(folder), (settings.noise_floor, settings.noise_floor_log_odds)
    manifest = read_manifest(path)
    counts = manifest["settings"]["checkpoints"]
    expect_stages(2 * len(counts) * len(forms_of(manifest)))
    settings = replace(settings, alpha=settings.alpha / len(counts))
    units, states, made = read_alarms(path), list[State](), dict[int, list[Report]]()
    for state, frame in _frames(path, floors, settings, units):
        states += [state] * (state.run.form == forms_of(manifest)[0])
        made.setdefault(state.checkpoint, []).append(Report(state.run, settings, frame))
    curve, standing = curve_of(units, states), dict.fromkeys(states[0].run.audited, 0)
    standing |= {name: count for count, name in product(made, standing) if not has_collapsed(curve, name, count)}
    whole = {count: replace(first, forms=tuple(more)) for count, (first, *more) in made.items()}
    at = {count: without_collapsed(own, curve, count) for count, own in whole.items()}
    frame = pd.concat([own.frame for own in at.values()], ignore_index=True)
    return SequenceReport(at[last_standing(standing, at)].run, settings, frame, at=at, curve=curve, standing=standing)


def _frames(
    path: Path, floors: tuple[float | None, float | None], settings: AuditSettings, units: pd.DataFrame
) -> Iterator[tuple[State, pd.DataFrame]]:
    """Yield each state, form by form, with its numbers; labels of one are permuted while the next one is read."""
    with ExitStack() as stack:
        begun = list[tuple[State, Callable[[], pd.DataFrame]]]()
        for form in ("", *forms_of(read_manifest(path))[1:]):
            for state in ahead(read_states(path, floors, form)):
                fallen = [name for name in state.run.editors if has_collapsed(units, name, state.checkpoint)]
                begun.append((state, stack.enter_context(building(state.run, settings, fallen))))
                for first, built in begun[:-_AT_ONCE]:
                    yield first, built().assign(checkpoint=first.checkpoint)
                begun = begun[-_AT_ONCE:]
        yield from ((state, built().assign(checkpoint=state.checkpoint)) for state, built in begun)


def without_collapsed(own: Report, curve: pd.DataFrame, count: int) -> Report:
    """Return a report at a checkpoint without the numbers of models that have collapsed: no mean is taken over them."""
    frame = own.frame
    for name in own.run.editors:
        if has_collapsed(curve, name, count):
            frame = frame[frame["editor"] != name].copy()
            beside = frame["control"] == name
            frame.loc[beside & (frame["verdict"] != ""), "verdict"] = NO_MATCH
            frame.loc[beside, ["value", "low", "high", "p", "p_adjusted", "stderr", "df", "reach"]] = math.nan
            frame.loc[beside, ["note", "half_edits"]] = "", 0
    return replace(own, frame=frame, forms=tuple(without_collapsed(each, curve, count) for each in own.forms))


def report(run_folder: str | os.PathLike[str], settings: AuditSettings | None = None) -> Report:
    """Read a finished run and compute its report.

    Args:
        run_folder: A run folder.
        settings: What is declared before looking: margins, level, family, permutations, noise floors.

    Raises:
        RunFolderError: Not a run folder, or the run is not finished.
        RecordError: Its tables are damaged.
    """
    settings, manifest = settings or AuditSettings(), read_manifest(Path(run_folder))
    if manifest.get("protocol") == "sequential":
        return report_sequence(run_folder, settings)
    expect_stages(4 * len(forms_of(manifest)) + 1)
    floors = (settings.noise_floor, settings.noise_floor_log_odds)
    first = read_run(run_folder, floors)
    others = (read_run(run_folder, floors, form) for form in forms_of(first.manifest)[1:])
    runs = [first, *(run for run in others if run.n_rows)]  # of a changed model there may be no edit to ask about
    made, *asked_otherwise = (Report(run, settings, build_frame(run, settings)) for run in runs)
    stage("pages")
    return replace(made, forms=tuple(asked_otherwise))
