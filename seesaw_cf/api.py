"""The whole audit in one call: `seesaw-cf audit` and its report, on models that are named or in memory.

audit = seesaw_cf.audit("seesaw-tiny", editor="memit", limit=8)
audit                       # the first screen, in a notebook or a terminal
audit.tables["contrasts"]   # a data frame
seesaw_cf.audit(base, tokenizer, changed=other)
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import weakref
import webbrowser
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from markupsafe import escape
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import one_of, shown
from seesaw_cf.base.errors import RecordError, StorageError
from seesaw_cf.base.fields import checked
from seesaw_cf.base.retrying import stages
from seesaw_cf.editors import plugins
from seesaw_cf.models.changed import ChangedModel
from seesaw_cf.models.editor import Editor
from seesaw_cf.models.names import EMBEDDED, model_path
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.report import AuditSettings, Report, Screen
from seesaw_cf.report import report as make_report
from seesaw_cf.report.frame import HARM
from seesaw_cf.report.screen import render_page
from seesaw_cf.run.job import make_run
from seesaw_cf.run.jobs import Job, Number, SettingsSource, settings_document
from seesaw_cf.run.prepare import LoadedModel

__all__ = ["Audit", "audit"]

Model = str | PreTrainedModel
"""A name that `seesaw_cf.models.load_model` takes, or a model in memory."""


@dataclass(frozen=True, eq=False)
class Audit:
    """What a change of a model did, overall and by group of people.

    Attributes:
        report: Every number, the screen and the page, see `seesaw_cf.report.Report`.
    """

    report: Report

    @property
    def screen(self) -> Screen:
        """The first screen of the report: the finding, counts beside the control, an example."""
        return self.report.screen

    @property
    def conclusion(self) -> str:
        """The first screen as plain text."""
        return self.screen.terminal()

    @property
    def summary(self) -> pd.DataFrame:
        """One row per editor and level: harm (above 0 is worse) beyond the control, its interval and its verdict.

        `about` is other_facts, other_people_old or other_people_new, by the answer of the edit that is true of them.
        `form` is there where questions were asked in several, `checkpoint` where edits were made one after another.
        """
        rows = self.report.tables.get("levels", pd.DataFrame())
        if rows.empty:
            return rows
        compared = rows["what"] == "beyond"
        rows = rows[rows["decides"].astype(bool) & (compared if compared.any() else ~compared)]
        rows = rows[rows["editor"].isin(self.report.run.audited)]
        keys = list(zip(rows["about"], rows["true_answer"], strict=True))
        sign = [HARM[key] for key in keys]
        ends = np.sort(rows[["low", "high"]].to_numpy(np.float64) * np.array(sign)[:, None], axis=1)
        about = ["_".join(filter(None, key)) for key in keys]
        rows = rows.assign(about=about, harm=rows["value"] * sign + 0.0, low=ends[:, 0], high=ends[:, 1])
        more = ["form"] * (rows["form"].nunique() > 1) + ["checkpoint"] * ("checkpoint" in rows)
        columns = ["editor", "control", "about", *more, "scale", "harm", "low", "high", "verdict"]
        return rows[columns].reset_index(drop=True)

    @property
    def tables(self) -> dict[str, pd.DataFrame]:
        """The tables of the report: levels, groups, contrasts, other_facts, efficacy, edits, answers, unscored."""
        return self.report.tables

    def to_latex(self, table: str = "levels") -> str:
        """Return a table of the report in LaTeX (booktabs).

        Args:
            table: One of `tables`.

        Raises:
            UnknownNameError: The report has no such table.
        """
        own = self.tables[one_of("table", table, self.tables)]
        return str(own.to_latex(index=False, escape=True, float_format="%.3g", na_rep=""))

    def save(self, folder: str | Path) -> Path:
        """Copy the run into a new folder, write its report there, and return the path of the page.

        Raises:
            StorageError: The folder exists, or cannot be written.
        """
        target = Path(folder)
        if target.exists():
            raise StorageError(f"{target} exists, expected a new folder. Name another.")
        target.mkdir(parents=True)
        mode = target.stat().st_mode  # a temporary run's folder is its user's alone
        shutil.copytree(self.report.run.folder, target, dirs_exist_ok=True)
        target.chmod(mode)
        return self._write(target)

    def push_to_hub(self, repo: str, *, public: bool = False, overwrite: bool = False) -> str:
        """Make a static Space on the Hub with the page, `report.json` and the tables; return its address.

        Args:
            repo: "org/name".
            public: Visible to all people; a new Space is private otherwise.
            overwrite: Replace what the Space holds.

        Raises:
            RecordError: A malformed name.
            StorageError: The Hub refused or did not answer, or there is other content.
        """
        from seesaw_cf.sharing import share_page

        with _temporary() as folder:
            self.report.write(Path(folder))
            return share_page(folder, repo, public=public, overwrite=overwrite)

    def check(self, margin: float | None = None) -> None:
        """Raise where a level or a group is shown to be worse off than after the control; for tests of a model.

        Args:
            margin: Points of probability, below 0.25, that do not matter; None = as it was declared.

        Raises:
            HarmError: An AssertionError with the finding.
        """
        settings = self.report.settings
        if margin is None:
            self.report.check()
        else:
            make_report(self.report.run.folder, replace(settings, margin=margin)).check()

    def open(self) -> None:
        """Write the report into the run folder and show its page in the browser."""
        webbrowser.open(self._write(self.report.run.folder).resolve().as_uri())

    def _write(self, folder: Path) -> Path:
        self.report.write(folder / "report")
        return folder / "report" / "report.html"

    def __repr__(self) -> str:
        """The first screen."""
        return self.conclusion

    def _repr_html_(self) -> str:
        page = render_page(self.screen)
        return f'<iframe srcdoc="{escape(page)}" title="Findings" style="width:100%;height:44rem;border:0"></iframe>'


@checked
def audit(
    model: Model,
    tokenizer: object = None,
    *,
    editor: object = (),
    changed: object = None,
    control: str | Sequence[str] = "random",
    control_model: str | Sequence[str] = (),
    control_seeds: int = 3,
    requests: str | Path | None = None,
    data: str | Path = "sample",
    config: str | Sequence[str] = (),
    protocol: str = "single",
    checkpoints: Sequence[int] = (),
    orders: int = 3,
    editor_config: SettingsSource | None = None,
    corpus: str | Path | None = None,
    corpus_limit: int = 100_000,
    moments: str | Path | None = None,
    limit: int | None = None,
    form: str = "plain",
    answers: int | None = None,
    prompts: str = "shared",
    prompts_per_person: Number | None = None,
    people_per_edit: Number | None = None,
    revision: str | None = None,
    dtype: str = "float32",
    device: str = "auto",
    trust_remote_code: bool = False,
    seed: int = 0,
    scorer: str = "auto",
    max_tokens: int | None = None,
    memory: int | str | None = None,
    block: int = 8,
    threads: int | None = None,
    ignore_damage: bool = False,
    save_checkpoints: bool = False,
    keep_deltas: bool = False,
    out: str | Path | None = None,
    report: AuditSettings | None = None,
    progress: bool = True,
) -> Audit:
    """Edit a model, or take models that are already changed, and measure what else changed, by group of people.

    Names and defaults are those of `seesaw-cf audit`.

    Args:
        model: A name, folder or Hub id, or the model itself.
        tokenizer: That of a model in memory; a name brings its own. All other arguments are named.
        editor: An editing method: a name of `seesaw-cf list editors`, "FILE.py", "package.module:Class", a class or an
            object of one; or a list of these.
        changed: A changed model: a path, a Hub id, a `WeightDelta` or a model in memory as it is (of peft, quantised,
            with hooks), alone or in a pair with its tokenizer; or name -> one of these.
        control: Kinds of negative controls: random, identity, unrelated; "none" or () for none.
        control_model: NAME=WHERE of a change that should do nothing, in place of a drawn control of the model NAME.
        control_seeds: Seeds of a control that draws; reports take their mean.
        requests: Record file with the facts that the models were changed for.
        data: "sample", a dataset folder, a record file or a Hub id.
        config: Configs of the data; () for all that are asked.
        protocol: "single": each fact alone; "batch": those of a relation together; "sequential": one after another.
        checkpoints, orders: Of a sequence: numbers of edits after which it is looked at, and orders that are drawn.
        editor_config: {"memit": {"layers": [3]}}, or a JSON file of it.
        corpus, corpus_limit, moments: What second moments are computed from, or where they are.
        limit: Only this many cases of each config, drawn with the seed.
        form: Questions as texts to continue ("plain"), in the model's chat template ("chat"), or "both".
        answers: Let the models write answers, too: to at most so many questions of each kind about an edit.
        prompts, prompts_per_person, people_per_edit: Whom an edit's prompts ask about.
        revision, dtype, device, trust_remote_code: How the model is loaded.
        seed: Of everything that is drawn.
        scorer, max_tokens, memory, block, threads: How it is computed.
        ignore_damage: Go on when an editor's first edits spoil what the model knew of other facts.
        save_checkpoints: Write every edit as a whole model below `out`/checkpoints.
        keep_deltas: Save every edit below `out`/deltas, to share it or to ask it other tasks.
        out: The run folder, which continues where it was; None = one that is removed with the audit.
        report: Margins, level and families of the audit.
        progress: Show progress bars.

    Returns:
        The audit. The model in memory has the same bytes and the same mode afterwards.

    Raises:
        RecordError: A model in memory without a tokenizer, a second argument that is none, nothing to audit, or
            checkpoints of a batch.
        UnknownNameError: No such editor, control or data.
        SeesawError: What the run raises; what was finished is kept in `out`.
    """
    given = {name: value for name, value in locals().items() if name in OPTIONS}
    editors = [_editor(entry) for entry in _several(editor)]
    objects = {name: entry for name, entry in editors if entry is not None}
    own = {name: _settings(entry) for name, entry in objects.items()}
    texts = next((texts for entry in objects.values() if (texts := getattr(entry, "corpus", None)) is not None), None)
    loaded = _loaded(model, tokenizer, texts)
    changes = changed if isinstance(changed, Mapping) else {} if changed is None else {"changed": changed}
    if not editors and not changes:
        raise RecordError(
            "audit: neither `editor` nor `changed` is given, so nothing is audited. Give one, such as editor='memit' "
            "(see `seesaw_cf.editors.EDITORS`) or changed='FOLDER'."
        )
    places = {name: _held(name, change) for name, change in changes.items()}
    held = {name: found for name, (_, found) in places.items() if found is not None}
    with contextlib.ExitStack() as removed:
        folder = Path(out if out is not None else removed.enter_context(_temporary()))
        job = Job(
            model if isinstance(model, str) else base_name(model),
            editors=tuple(name for name, _ in editors),
            controls=_several(control),
            control_models=_several(control_model),
            changed=tuple(f"{name}={where}" for name, (where, _) in places.items()),
            configs=_several(config),
            checkpoints=_several(checkpoints),
            editor_config=(own | settings_document(editor_config)) or None,
            requests=None if requests is None else Path(requests),
            data=str(data),
            moments=None if moments is None else str(moments),
            **given,
        )
        if job.is_dose:
            raise RecordError(
                "audit: a batch at checkpoints gives curves and no report. Run `seesaw-cf audit --protocol "
                "batch --checkpoints ...`, leave checkpoints out, or take protocol='sequential'."
            )
        kept: dict[str, Any] = {"keep_deltas": keep_deltas, "loaded": loaded, "held": held, "objects": objects}
        make_run(job, folder, progress=progress, **kept).complete()
        with stages("tables", 5, silent=not progress):
            finished = Audit(make_report(folder, report))
        weakref.finalize(finished, removed.pop_all().close)
    return finished


# Arguments of `audit` that are fields of `Job` as they are.
OPTIONS = {"control_seeds", "protocol", "orders", "corpus", "corpus_limit", "limit", "prompts", "prompts_per_person"}
OPTIONS |= {"people_per_edit", "revision", "dtype", "device", "trust_remote_code", "seed", "scorer", "max_tokens"}
OPTIONS |= {"form", "answers", "memory", "block", "threads", "ignore_damage", "save_checkpoints"}


def _loaded(model: Model, tokenizer: object, corpus: Sequence[str] | None) -> LoadedModel | None:
    if isinstance(model, str) and tokenizer is None:
        return None
    if tokenizer is not None and not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise RecordError(
            f"audit: the second argument is {_words(tokenizer)}, expected the tokenizer of a model in memory. Name the "
            "others: editor=... for a method that edits, changed=... for a model that is changed already."
        )
    if isinstance(model, str):
        raise RecordError(
            f"audit: a tokenizer was given for the model {model!r}, which brings its own. Leave it out, or give "
            "the model itself."
        )
    if tokenizer is None:
        raise RecordError(
            f"audit: {base_name(model)} is a model in memory, and its tokenizer is missing. Give it as the second "
            "argument."
        )
    if type(model).__module__.startswith("peft."):
        raise RecordError(
            f"audit: the base is a {type(model).__name__}, whose weights are not where editors write. Merge it first "
            "(model.merge_and_unload()), or give its base and the adapter as `changed`."
        )
    return LoadedModel(model, tokenizer, corpus)


def _words(value: object) -> str:
    """Return a text as it is written, and of an object its class: a model is printed on fifty lines."""
    return shown(value) if isinstance(value, str) else f"of the class {type(value).__name__}"


def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="seesaw_cf_")


def base_name(model: PreTrainedModel) -> str:
    """Return the name that loads a model in memory again: that of an embedded one is not its folder."""
    place = str(model.config._name_or_path or type(model).__name__)
    return next((name for name in EMBEDDED if str(model_path(name)) == place), place)


def _several(value: Any) -> tuple[Any, ...]:
    """Return a list as a tuple, and one name or object as a tuple of it."""
    return (value,) if isinstance(value, str) or not isinstance(value, Sequence) else tuple(value)


def _editor(editor: Any) -> tuple[str, Editor | None]:
    """Return the name of an editor, and the editor itself where it is an object."""
    if isinstance(editor, str):
        return editor, None
    return (plugins.add(editor), None) if isinstance(editor, type) else (plugins.add(type(editor)), editor)


def _settings(editor: Editor) -> dict[str, object]:
    """Return the settings of an editor that was given as an object; its controls have them, too."""
    return {field.name: getattr(editor.config, field.name) for field in fields(editor.config)}


def _held(name: str, change: object) -> tuple[str, ChangedModel | None]:
    """Return where a changed model is, and the model itself where it is in memory, with its tokenizer."""
    if isinstance(change, str | Path):
        return str(change), None
    if isinstance(change, WeightDelta):
        return "a WeightDelta in memory", ChangedModel(name, "delta", held=change)
    model, own = change if isinstance(change, tuple) and len(change) == 2 else (change, None)
    if not isinstance(model, torch.nn.Module) or not hasattr(model, "config"):
        raise RecordError(
            f"audit: changed is {_words(change)}, expected a folder, file or Hub id, a WeightDelta, a model in memory "
            "or a pair of it and its tokenizer, or a mapping of names to these."
        )
    held: Any = model
    return f"a {type(model).__name__} in memory", ChangedModel(name, "model in memory", held=held, tokenizer=own)
