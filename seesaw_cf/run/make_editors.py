"""Editors of a run, from their names and a file of settings; a control is made together with what it wraps."""

from __future__ import annotations

import contextlib
import copy
import hashlib
from collections.abc import Mapping, Sequence

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.checks import one_of, shown
from seesaw_cf.base.errors import EditError, RecordError
from seesaw_cf.base.text import seed_of
from seesaw_cf.base.types import Case, JsonObject
from seesaw_cf.editors import load_editor
from seesaw_cf.editors.control_names import CONTROLS, seed_number, split_control
from seesaw_cf.editors.locate.config import preset_config, with_settings
from seesaw_cf.editors.locate.moments import model_facts, moment_facts, moments_folder
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.editor import (
    AvoidsCases,
    Editor,
    HasLayers,
    LearnsFromCases,
    Overrides,
    ReadsTexts,
    Settings,
)
from seesaw_cf.run.jobs import SettingsSource, settings_document


def make_editor(
    name: str,
    model: PreTrainedModel,
    overrides: Settings,
    corpus: Sequence[str] | None,
    spare: Sequence[Case] = (),
    cases: Sequence[Case] = (),
    others: Mapping[str, Editor] | None = None,
) -> Editor:
    """Build an editor from its name, the preset for the model and the settings to change.

    Args:
        name: Out of `seesaw_cf.editors.EDITORS`, or a control such as "identity(memit)".
        model: Decides the preset; its weights are not read.
        overrides: Setting -> value, as in a JSON file; for a control see `settings_of`.
        corpus: Texts for the editor.
        spare: Cases about people who are not evaluated; in-context editing takes its demonstrations from them.
        cases: The cases of the run; `unrelated` never edits a person a case asks about.
        others: Finished editors; a control wraps its own out of them.

    Raises:
        UnknownNameError: No such editor, or its config has no such setting.
        EditError: A setting that cannot be used.
    """
    kind, wrapped = split_control(name)
    cls = load_editor(kind or name)
    around = {"editor": wrapped} if kind and wrapped else {}
    config = preset_config(kind or name, cls.config_class, model, {**overrides, **around})
    # A control's editor is made like any other, so that it learns and needs the same.
    inner = (others or {}).get(wrapped) if around else None
    if around and inner is None:
        inner = make_editor(wrapped, model, config.settings, corpus, spare, cases)
    return _with_cases(cls(config, corpus=corpus, **({} if inner is None else {"inner": inner})), spare, cases)


def make_editors(
    names: Sequence[str],
    model: PreTrainedModel,
    overrides: Overrides,
    corpus: Sequence[str] | None,
    spare: Sequence[Case] = (),
    cases: Sequence[Case] = (),
    objects: Mapping[str, Editor] = {},
) -> dict[str, Editor]:
    """Build the editors of a run; a control wraps its own out of them.

    Args:
        names: Of the editors, controls after what they wrap.
        model, corpus, spare, cases: See `make_editor`.
        overrides: See `settings_of`.
        objects: Name -> editor that was given as an object: used as it is, with texts where it has none.

    Raises:
        SeesawError: See `make_editor`.
    """
    editors: dict[str, Editor] = {}
    for name in names:
        if name in objects:
            editor = objects[name]
            if corpus is not None and getattr(editor, "corpus", ()) is None:
                editor = copy.copy(editor)
                object.__setattr__(editor, "corpus", corpus)  # of a frozen dataclass, too
            editors[name] = _with_cases(editor, spare, cases)
        else:
            editors[name] = make_editor(name, model, settings_of(name, overrides), corpus, spare, cases, editors)
    return editors


def _with_cases(editor: Editor, spare: Sequence[Case], cases: Sequence[Case]) -> Editor:
    """Return the editor with the cases that it learns from and those that it avoids; see `make_editor`."""
    editor = editor.learn(spare) if spare and isinstance(editor, LearnsFromCases) else editor
    return editor.avoid(cases) if isinstance(editor, AvoidsCases) else editor


def object_facts(editor: Editor) -> JsonObject:
    """Return what tells an editor that was given as an object from its class with the same settings; {} for nothing."""
    own = {name: value for name, value in vars(editor).items() if name not in ("config", "corpus")}
    return {"attributes": hashlib.sha256(repr(sorted(own.items())).encode()).hexdigest()} if own else {}


def settings_of(name: str, overrides: Overrides) -> Settings:
    """Return an editor's settings in a run; a control also has those of its editor, a numbered one its own seed.

    Args:
        name: An editor's name, or a control's such as "identity(memit)".
        overrides: Editor or kind of control -> setting -> value.
    """
    kind, wrapped = split_control(name)
    own = dict(overrides.get(kind or name, {}))
    if (number := seed_number(name)) > 1:
        own["seed"] = seed_of(own.get("seed", 0), number, bits=32)
    return own | {"editor": wrapped, "settings": dict(overrides.get(wrapped, {}))} if kind and wrapped else own


def editor_settings(
    source: SettingsSource | None, names: Sequence[str], moments: str | None = None, seed: int | None = None
) -> dict[str, JsonObject]:
    """Return the settings of a run's editors: those given, then the run's second moments and seed.

    Args:
        source: JSON; None = no settings. Second moments and seeds that it names stay.
        names: The run's editors, controls among them.
        moments: For every editor that needs second moments, see `moments_folder`; None = computed from texts.
        seed: For every kind of control.

    Raises:
        RecordError: Not JSON, or something else than settings.
        StorageError: The file cannot be read, or there are no such second moments.
        UnknownNameError: It names an editor that the run does not have.
    """
    example = '{"memit": {"layers": [3, 4]}}'
    parts = dict.fromkeys(part for name in names for part in split_control(name) if part)
    settings: dict[str, JsonObject] = {}
    for name, own in settings_document(source, example).items():
        if not isinstance(own, dict):
            raise RecordError(f"{source}: {name!r} is {shown(own)}, expected an object of settings such as {example}.")
        if one_of("editor of this run", name, parts) in CONTROLS and own.keys() & {"editor", "settings"}:
            raise RecordError(
                f"{source}: {name!r} says what it wraps, but a control of a run wraps each of its editors "
                f"with that editor's settings. Leave out 'editor' and 'settings'."
            )
        settings[name] = dict(own)
    for part in parts:
        if moments and "moments" in getattr(load_editor(part).config_class, "__dataclass_fields__", ()):
            settings[part] = {"moments": moments} | settings.get(part, {})
        if seed is not None and part in CONTROLS:
            settings[part] = {"seed": seed} | settings.get(part, {})
    for own in settings.values():
        if isinstance(named := own.get("moments"), str):
            moments_folder(named)
    return settings


def moments_facts(overrides: Overrides, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> JsonObject:
    """Return what a manifest records of the second moments that settings name: {} for none.

    Raises:
        StorageError: They are of another model.
    """
    named = {name: str(settings["moments"]) for name, settings in overrides.items() if settings.get("moments")}
    expected = model_facts(model, tokenizer) if named else {}
    facts = {name: moment_facts(moments_folder(text), expected) for name, text in named.items()}
    return {"moments": facts} if facts else {}


def check_editors(editors: Mapping[str, Editor], model: PreTrainedModel) -> None:
    """Refuse editors that cannot do what a run asks.

    Args:
        editors: Name -> editor, not fitted.
        model: Its layers.

    Raises:
        EditError: A control cannot be made.
        UnsupportedModelError: No row for the architecture, or a missing layer.
    """
    if ("random", "ike") in map(split_control, editors):
        raise EditError(
            "random(ike): in-context editing changes no weights, so there is no norm that a random change could "
            "match. Use the controls identity or unrelated for ike."
        )
    for editor in editors.values():
        if isinstance(config := editor.config, HasLayers):
            model_parts(model, config.architecture).check_layers(config.layers, type(config).__name__)


def check_texts(names: Sequence[str], overrides: Overrides, objects: Mapping[str, Editor] = {}) -> None:
    """Refuse editors that learn from texts, for a run that has none; told from their settings, before there is a model.

    Args:
        names: Of the run's editors; controls need what their editor needs.
        overrides: See `settings_of`.
        objects: Name -> editor that was given as an object.

    Raises:
        EditError: Names the editors, and tells how texts are given.
    """
    needy = []
    for name in dict.fromkeys(split_control(name)[1] or name for name in names):
        config: object = objects[name].config if name in objects else None
        if config is None and hasattr(kind := load_editor(name).config_class, "needs_texts"):
            with contextlib.suppress(TypeError):  # a plugin's with more that has no default: it says what it needs
                config = with_settings(kind(layers=(0,)), overrides.get(name, {}))
        if isinstance(config, ReadsTexts) and config.needs_texts:
            needy.append(name)
    if needy:
        raise EditError(
            f"{', '.join(needy)}: texts are needed (second moments of the edited layers, or training), got none. Give "
            "some that the model knows with --corpus: a text file with one text a line, thousands of lines."
        )
