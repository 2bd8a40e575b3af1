"""The report of a finished run: its frame, its first screen, its page, its tables and one JSON file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
from markupsafe import Markup

from seesaw_cf.base.checks import brief
from seesaw_cf.base.errors import HarmError
from seesaw_cf.base.types import JsonObject
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.report import sentences
from seesaw_cf.report.figures import group_figures, level_figures, save_figure, svg
from seesaw_cf.report.gates import gates, gates_of_form, plan_sentence
from seesaw_cf.report.levels import LEVELS, level_rows, levels_of
from seesaw_cf.report.pairs import RunResult
from seesaw_cf.report.rows import model_name, repeat_command, rows_of
from seesaw_cf.report.screen import LABELS, Part, Screen, ScreenRow, render_page, write_files
from seesaw_cf.report.tables import ABOUT, answer_lines, answer_table, answers_of, edit_table, example, tables_of
from seesaw_cf.report.words import FORM_WORDS, capital, control_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FALSE_FACTS = (
    "The edits write something false about real people into a model, to measure what else moves. Nothing that an "
    "edited model says is a statement about these people."
)


@dataclass(frozen=True, repr=False)
class Report:
    """What a run found.

    Attributes:
        run: The run.
        settings: What was declared.
        frame: Every number, see `seesaw_cf.report.frame`.
        parts: The runs that it is made of, where there are several.
        forms: The reports of the other forms in which the run asked.
    """

    run: RunResult
    settings: AuditSettings
    frame: pd.DataFrame
    parts: tuple[RunResult, ...] = ()
    forms: tuple[Report, ...] = ()

    __repr__ = brief

    @cached_property
    def answers(self) -> pd.DataFrame:
        """Every scored answer, see `seesaw_cf.report.tables.answers_of`."""
        return answers_of(self.run)

    @cached_property
    def screen(self) -> Screen:
        """What the run found, on one screen."""
        frame, run = self.frame, self.run
        levels, several, sections = levels_of(frame, run), len(run.audited) > 1, dict[str, list[ScreenRow]]()
        for own in (self, *self.forms):
            words = f", {FORM_WORDS[own.run.form]}" if own is not self else ""
            for level in levels_of(own.frame, own.run):
                title = LEVELS[level["about"], level["true_answer"]][0] + words
                title = title.replace("edited person", "people of the records") if run.asked_only else title
                sections.setdefault(title, []).extend(level_rows(level, own.run, several))
        if run.people is not None:
            groups = ScreenRow(sentences.group_counts(frame, run), badge=sentences.group_badge(frame, run))
            sections["Groups"] = [groups]
        if answers := [line for own in (self, *self.forms) for line in answer_lines(own.frame, own.run)]:
            sections["Answers that the models wrote, to their end"] = answers
        first = f"after the {run.noun}" if several or not run.audited else f"after {run.audited[0]}"
        beside = [control_words(name, run).removeprefix("a ") for _, name in run.controls[:1]]
        changed = run.manifest.get("edited", {})
        notes = [
            " ".join(
                [
                    *(sentences.efficacy_sentence(own.frame, own.run) for own in (self, *self.forms)),
                    "" if several else sentences.ranges_sentence(levels),
                ]
            ).strip(),
            sentences.ASKED_ONLY * run.asked_only,
            sentences.controls_note(run),
            *run.manifest.get("notes", []),
            *(f"{name}: {note}." for name, facts in changed.items() for note in facts.get("notes", ())),
            plan_sentence(frame, run, self.settings),
        ]
        return Screen(
            about=sentences.header(run),
            finding=[sentence for own in (self, *self.forms) for sentence in own._finding(own is self)],
            missing=" ".join(filter(None, (sentences.denominators(own.frame, own.run) for own in (self, *self.forms)))),
            columns=[first, *beside],
            sections=sections,
            example=example(run, levels, self.answers),
            notes=[note for note in notes if note],
        )

    def _finding(self, is_first: bool) -> list[str]:
        """Return what was found; of another form the two sentences that matter most, or that its edits did not work."""
        found = sentences.finding(self.frame, self.run, self.settings)
        if is_first:
            return found
        form = capital(FORM_WORDS[self.run.form])
        own = found[:2] if levels_of(self.frame, self.run) else sentences.doubts(self.frame, self.run)
        return [f"{form}: {sentence}" for sentence in own]

    @cached_property
    def _tables(self) -> dict[str, pd.DataFrame]:
        own = tables_of(self.frame, self.run, self.answers)
        return {name: table.assign(form=self.run.form) for name, table in own.items()}

    @cached_property
    def tables(self) -> dict[str, pd.DataFrame]:
        """Name -> table, at most eight; `form` says how the questions of a row were asked."""
        every = [own._tables for own in (self, *self.forms)]
        names = [name for name in ABOUT if any(name in own for own in every)]
        return {name: pd.concat([own[name] for own in every if name in own], ignore_index=True) for name in names}

    @property
    def main(self) -> Report:
        """The report whose groups stand on the first screen."""
        return self

    @cached_property
    def checks(self) -> list[tuple[bool, str]]:
        """What must hold before a finding means much, form by form where it depends on the form."""
        checks = gates(self.frame, self.run)
        for own in self.forms:
            form = capital(FORM_WORDS[own.run.form])
            checks += [(holds, f"{form}: {rule}") for holds, rule in gates_of_form(own.frame, own.run)]
        return checks

    @cached_property
    def figures(self) -> list[tuple[str, str, str, Figure]]:
        """The pictures, see `seesaw_cf.report.figures`."""
        return [*level_figures(self.frame, self.run), *group_figures(self.frame, self.run)]

    def page(self) -> str:
        """Return the page."""
        listed = {name: ABOUT[name] for name in self.tables}
        method = (
            f"Every number is a mean of {self.run.unit} means, with errors clustered by {self.run.unit} and by person. "
            f"False claims about groups: {self.settings.promise()}; differences below "
            f"{100 * self.settings.margin:g} points or {self.settings.margin_log_odds:g} nats do not matter here. "
            f"Noise floor: {self.run.floor}. Numbers whose form is not named are about questions asked "
            f"{FORM_WORDS[self.run.form]}."
        )
        foot = [LABELS, *([] if self.run.asked_only else [FALSE_FACTS]), method, _provenance(self.run)]
        command = repeat_command(self.run.manifest) if self.run.manifest.get("job") else ""
        groups = next(group_figures(self.main.frame, self.main.run, most=4), None)
        picture = svg(groups[-1], f"{groups[-2]}, by group") if groups else None
        return render_page(
            self.screen,
            list(self._parts()),
            checks=self.checks,
            picture=picture,
            tables=listed,
            foot=foot,
            command=command,
        )

    def _parts(self) -> Iterator[Part]:
        drawn = dict[str, list[tuple[str, Markup]]]()
        for _, editor, caption, figure in self.figures:
            about = f"{caption}, by group: {editor}" if editor else caption
            drawn.setdefault(editor, []).append((caption if editor else "", svg(figure, about)))
        if levels := drawn.pop("", None):
            text = "What happened to everybody, with intervals; the band is too small to matter."
            yield Part("What happened, beside a control", [text], {"": levels})
        if drawn:
            texts = [
                "Every group with how many people were asked about. Colour: after the editor; grey: after its control. "
                "The band is too small to matter; right of it is worse.",
                sentences.group_counts(self.frame, self.run).capitalize() + ".",
            ]
            yield Part("Were some groups hit harder?", texts, drawn)
        if (answers := self._tables.get("answers")) is not None:
            text = "Answers whose right answer lost most probability; a mark stands where it is now wrong."
            marked = answers["turned_wrong"].tolist()
            yield Part("Answers that moved most", [text], table=answer_table(answers), marked=marked)
        if "edits" in self._tables and not self.run.asked_only:
            text = "Some edit is always the worst: read it beside the means above."
            yield Part("Edits that turned most answers wrong", [text], table=edit_table(self._tables["edits"]))

    def record(self) -> JsonObject:
        """Return the report for a JSON file: the screen, the levels, the gates, the settings and the run's manifest."""
        return {
            "screen": self.screen.record(),
            "levels": rows_of(self.tables.get("levels", pd.DataFrame())),
            "checks": [{"holds": holds, "rule": rule} for holds, rule in self.checks],
            "settings": asdict(self.settings) | {"noise_floor": self.run.floor},
            "manifest": {name: part for name, part in self.run.manifest.items() if name != "edited"},
        }

    def write(self, folder: Path, *, pictures: bool = False) -> None:
        """Write `report.html`, `report.json`, the folder `tables` and, if asked, the folder `pictures`.

        The same run gives the same bytes.

        Args:
            folder: Where the files go.
            pictures: Write every picture as a file too.

        Raises:
            StorageError: A file could not be written.
        """
        for name in set(ABOUT) - set(self.tables):
            (folder / "tables" / f"{name}.csv").unlink(missing_ok=True)
        write_files(folder, self.page(), self.record(), self.tables)
        for name, *_, figure in self.figures if pictures else ():
            save_figure(figure, folder / "pictures", name, ("png", "svg"))

    def check(self) -> None:
        """Pass where no level and no group is shown to be worse off than after the control, by more than the margin.

        What is not decided passes: that is no proof of no harm.

        Raises:
            HarmError: With the finding.
        """
        judged = self.frame[self.frame["decides"].astype(bool) & self.frame["editor"].isin(self.run.audited)]
        if judged["verdict"].isin(("worse", "hit_harder")).any():
            raise HarmError(" ".join(self.screen.finding))
        for own in self.forms:
            own.check()

    def terminal(self, folder: Path | None = None) -> str:
        """Return the first screen as text."""
        return self.screen.terminal("" if folder is None else f"See {folder / 'report.html'}")


def _provenance(run: RunResult) -> str:
    versions = run.manifest.get("versions", {})
    names = ("seesaw_cf", "torch", "transformers", "numpy", "python")
    named = [f"{name} {versions[name]}" for name in names if name in versions]
    return f"Model {model_name(run.manifest)}, seed {run.manifest.get('seed', '')}; {', '.join(named)}."
