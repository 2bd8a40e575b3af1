"""What `seesaw-cf audit` is asked, as plain values; nothing heavy is imported here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import KW_ONLY, asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from seesaw_cf.base.checks import LARGEST, one_of, shown
from seesaw_cf.base.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.base.fields import NameOrPath, OneOf, Positive, Seed, Threads, field_types, memory_size
from seesaw_cf.base.text import parse_json_text, read_json
from seesaw_cf.base.types import DTYPES, SCORERS
from seesaw_cf.editors import EDITORS
from seesaw_cf.editors.control_names import CONTROLS, planned, split_control
from seesaw_cf.editors.plugins import editor_name
from seesaw_cf.models.corpus import LIMIT
from seesaw_cf.records.load import usual_configs

SettingsSource = str | Path | Mapping[str, Mapping[str, object]]
"""Settings of a run's editors, editor -> setting -> value: a JSON file, a JSON text, or the mapping itself."""


def settings_document(settings: SettingsSource | None, expected: str = "settings of editors") -> dict[str, Any]:
    """Return what settings say; {} for None.

    Raises:
        RecordError: Not a JSON object.
        StorageError: The file cannot be read.
    """
    if settings is None or isinstance(settings, Mapping):
        return dict(settings or {})
    is_text = isinstance(settings, str) and settings.lstrip().startswith("{")
    document: dict[str, Any] = (
        parse_json_text(str(settings), "editor settings", dict, expected=expected)
        if is_text
        else read_json(settings, expected=expected)
    )
    return document


Number = int | Literal["all"]


@dataclass(frozen=True, slots=True)
class PromptDesign:
    """How many people and prompts an edit is scored on, see `seesaw_cf.run.prepare.choose_prompts`.

    Attributes:
        prompts_per_person: Prompts about one person; "all" = as many as are recorded.
        people_per_edit: People of each gender who hold one answer; "all" = as many as are recorded.
    """

    prompts_per_person: Number = 2
    people_per_edit: Number = "all"

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if value != "all" and not (type(value) is int and 1 <= value <= LARGEST):
                raise RecordError(f"audit: {name} is {shown(value)}, expected a whole number of at least 1, or 'all'.")


# The default, and the published design: every template, up to 100 holders of each gender (SEESAW-CF, Appendix B).
DESIGNS: Mapping[str, PromptDesign] = {"shared": PromptDesign(), "paper": PromptDesign("all", 100)}

PROTOCOLS = ("single", "batch", "sequential")
CHECKPOINTS = (1, 10, 100)
ENGINES = ("local", "ray")
_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,62}[A-Za-z0-9])?")


def _place(option: str, word: str) -> tuple[str, str]:
    """Return name and place of "NAME=WHERE"; a path must be there."""
    name, _, where = word.partition("=")
    if not where or not _NAME.fullmatch(name):
        raise RecordError(
            f"audit: {option}: got {shown(word)}, expected NAME=FOLDER or NAME=ORG/NAME, the name of 1 to 64 ASCII "
            "letters, digits, '.', '_' and '-', a letter or digit first and last: it names rows and a folder."
        )
    if where.startswith(("/", "./", "../", "~")) and not Path(where).expanduser().exists():
        raise StorageError(f"audit: {option}: {word}: no such file or folder. Check the path.")
    return name, where


@dataclass(frozen=True, slots=True)
class Workers:
    """Who does a job's work, on one machine or several.

    Attributes:
        engine: local: this process. ray: as many workers as the cluster has GPUs, else CPUs, of `threads` CPUs each.
        gpus: ray: GPUs of one worker, such as 0.5 (default: 1 where there are any).
        ray_address: ray: a running cluster, or 'auto' (default: start one here).
    """

    engine: str = "local"
    gpus: float | None = None
    ray_address: str | None = None

    def __post_init__(self) -> None:
        one_of("engine", self.engine, ENGINES)


@dataclass(frozen=True, slots=True)
class Job:
    """What `seesaw-cf audit` does; the fields are its options.

    Attributes:
        model: 'seesaw-tiny', a Hub id, a folder or a GGUF file.
        editors: A name of `seesaw-cf list editors`, FILE.py or module:Class.
        controls: Random, identity, unrelated or none.
        control_seeds: Seeds of a control that draws; reports take their mean.
        changed: Checkpoint, adapter, delta, GGUF or ORG/NAME[@REVISION].
        control_models: Change that should do nothing, the control of the changed model NAME in place of a drawn one.
        requests: Record file: the facts that a model was changed for.
        data: Dataset folder, .json, .parquet or Hub id.
        configs: Config of the data (default: all that an audit asks).
        protocol: Single, batch (of a relation) or sequential.
        checkpoints: Edits to look at, such as 1 10 100; not of single.
        orders: Orders of the facts at checkpoints.
        pairs: Two relations to mix in a batch, such as P27,P101.
        editor_config: JSON file: {"memit": {"layers": [3, 4]}, ...}.
        corpus: Texts for second moments: a file, one a line, FILE.parquet:COLUMN, or ORG/NAME:CONFIG:SPLIT:COLUMN.
        corpus_limit: Most texts of `corpus`, drawn with `seed`.
        moments: Second moments in place of texts: a folder, or ORG/NAME on the Hub.
        limit: Only this many cases of each config, drawn with `seed`.
        form: As plain text, in chat, or both.
        answers: Let the models write answers, too: to at most so many questions of each kind about an edit.
        prompts: Who is asked about: every holder, or as in the papers.
        prompts_per_person: Prompts about each person of an edit (default: 2, all with the paper's design).
        people_per_edit: People of each gender who hold an answer (default: all, 100 with the paper's design).
        revision: Branch, tag or commit of a Hub model.
        dtype: Of weights and sums.
        device: Auto, cpu, cuda:1, ..., or balanced (all GPUs).
        trust_remote_code: Run code from the model's repository.
        seed: Seed of everything that is drawn.
        scorer: Trie: each prefix once. plain: padded batches. single: no batches.
        max_tokens: Tokens in one forward pass (default: what suits the device).
        memory: Memory for scoring on top of the model, such as 4GiB.
        block: Edits that are made and scored together, and redone after a kill.
        threads: CPU threads. Results depend on them in the last digits (default: torch's).
        save_checkpoints: Write every edit as a whole model below OUT/checkpoints.
        ignore_damage: Go on when an editor's first edits spoil what the model knew of other facts.

    Raises:
        RecordError: `limit`, `max_tokens`, `block`, `threads` or a number of the design is not a whole number of at
            least 1, the job audits nothing, or a name cannot be a column of tables.
        UnknownNameError: An editor, control or design is unknown, or the name of a changed model is taken.
        StorageError: There is nothing at the path of a changed model.
    """

    model: NameOrPath
    _: KW_ONLY
    editors: tuple[str, ...] = ()
    controls: tuple[Annotated[str, OneOf((*CONTROLS, "none"))], ...] = ("random",)
    control_seeds: Positive = 3
    changed: tuple[NameOrPath, ...] = ()
    control_models: tuple[NameOrPath, ...] = ()
    requests: Path | None = None
    data: NameOrPath = "sample"
    configs: tuple[str, ...] = ()
    protocol: Annotated[str, OneOf(PROTOCOLS)] = "single"
    checkpoints: tuple[Positive, ...] = ()
    orders: Positive = 3
    pairs: tuple[str, ...] = ()
    editor_config: SettingsSource | None = None
    corpus: NameOrPath | Path | None = None
    corpus_limit: Positive = LIMIT
    moments: NameOrPath | None = None
    limit: Positive | None = None
    form: Annotated[str, OneOf(("plain", "chat", "both"))] = "plain"
    answers: Positive | None = None
    prompts: Annotated[str, OneOf(DESIGNS)] = "shared"
    prompts_per_person: Number | None = None
    people_per_edit: Number | None = None
    revision: str | None = None
    dtype: Annotated[str, OneOf(DTYPES)] = "float32"
    device: str = "auto"
    trust_remote_code: bool = False
    seed: Seed = 0
    scorer: Annotated[str, OneOf(SCORERS)] = "auto"
    max_tokens: Positive | None = None
    block: Positive = 8
    memory: int | str | None = None
    threads: Threads | None = None
    save_checkpoints: bool = False
    ignore_damage: bool = False

    def __post_init__(self) -> None:
        field_types(self, name="audit")
        if not self.editors and not self.changed:
            raise RecordError(
                "audit: neither an editor nor a changed model, so nothing is audited. Name one with --editor NAME (see "
                "`seesaw-cf list editors`), or with --changed NAME=FOLDER."
            )
        if "none" in self.controls and len(self.controls) > 1:
            raise RecordError(f"audit: control is {[*self.controls]}, expected none alone, or kinds. Leave one out.")
        for name in planned(self.names, self.editor_controls):
            one_of("editor", split_control(name)[1] or name, EDITORS)
        if self.save_checkpoints and (not self.editors or "ike" in self.names):
            raise RecordError(
                "audit: save_checkpoints is True, and checkpoints are of edits that change weights: ike changes none, "
                "and changed models are checkpoints already. Leave it out, or name other editors."
            )
        _ = self.prompt_design, self.memory_bytes
        if (self.checkpoints and self.protocol == "single") or (self.pairs and self.protocol != "batch"):
            raise RecordError("audit: checkpoints are for protocols batch and sequential, pairs for batch. Name one.")
        if self.protocol == "sequential":
            self._check_sequence()
        if wrong := [pair for pair in self.mixes if len(set(pair)) != 2 or len(pair) != 2]:
            raise RecordError(f"audit: pairs: got {','.join(wrong[0])}, expected two relations, such as P27,P101.")

    def _check_sequence(self) -> None:
        """Refuse what no edit can be made after."""
        wrong = {
            "changed models": self.changed,
            "ike, which changes no weights": "ike" in self.names,
            "the controls identity and unrelated": set(self.editor_controls) - {"random"},
            "checkpoints as whole models": self.save_checkpoints,
        }
        if refused := [name for name, there in wrong.items() if there]:
            raise RecordError(
                f"audit: protocol is 'sequential', which has no place for {', '.join(refused)}. Leave it out, or "
                "choose 'single'. (Kept deltas are the sum of the edits at each checkpoint.)"
            )

    @property
    def is_dose(self) -> bool:
        """A batch is looked at after some of its edits, for several orders of the facts."""
        return self.protocol == "batch" and bool(self.checkpoints or self.pairs)

    @property
    def mixes(self) -> tuple[tuple[str, ...], ...]:
        """The relations of each of `pairs`."""
        return tuple(tuple(map(str.strip, pair.split(","))) for pair in self.pairs)

    @property
    def asked_configs(self) -> tuple[str, ...]:
        """The configs of the data that are asked."""
        return self.configs or usual_configs(self.data)

    @property
    def memory_bytes(self) -> int | None:
        """The memory for scoring in bytes."""
        return memory_size("audit: memory", self.memory) if isinstance(self.memory, str) else self.memory

    @property
    def names(self) -> tuple[str, ...]:
        """The names of `editors`; those of other packages and of files are imported."""
        return tuple(map(editor_name, self.editors))

    @property
    def editor_controls(self) -> tuple[str, ...]:
        """Kinds of controls of the editors."""
        return tuple(kind for kind in self.controls if kind != "none") if self.editors else ()

    @property
    def changed_places(self) -> dict[str, str]:
        """Where each model of `changed` is, by its name."""
        places: dict[str, str] = {}
        for name, where in map(partial(_place, "changed"), self.changed):
            if {name, name.split("-")[0]} & {*EDITORS, *self.names, *CONTROLS, "unedited", *places}:
                raise UnknownNameError(
                    f"audit: changed: the name {name!r} is that of another model, an editor or a control. Rename it."
                )
            places[name] = where
        return places

    @property
    def control_places(self) -> dict[str, list[str]]:
        """Where the models of `control_models` are, by the name of the changed model."""
        changed, nulls = self.changed_places, dict[str, list[str]]()
        for name, where in map(partial(_place, "control_model"), self.control_models):
            one_of("changed model, for NAME=WHERE of its control,", name, changed)
            nulls.setdefault(name, []).append(where)
        return nulls

    @property
    def changed_controls(self) -> tuple[str, ...]:
        """Kinds of controls of the changed models."""
        return ("random",) if self.changed and "random" in self.controls else ()

    @property
    def prompt_design(self) -> PromptDesign:
        """Which people the prompts are about: the named design with the numbers of this job."""
        named = DESIGNS[self.prompts]
        people = named.people_per_edit if self.people_per_edit is None else self.people_per_edit
        prompts = named.prompts_per_person if self.prompts_per_person is None else self.prompts_per_person
        return PromptDesign(prompts, people)
