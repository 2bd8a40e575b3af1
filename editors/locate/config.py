"""Settings that the methods share, and how they are made from presets and from plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import ClassVar, Self, TypeVar

from seesaw_cf.base.errors import EditError, SettingError, unknown_name
from seesaw_cf.base.fields import AboveZero, AtLeastZero, Positive, Seed, field_types
from seesaw_cf.editors.locate.presets import DEFAULTS, preset
from seesaw_cf.models.architectures import Architecture
from seesaw_cf.models.editor import Dataclass, EditorConfig, Model, Settings

C = TypeVar("C", bound=EditorConfig)
D = TypeVar("D", bound=Dataclass)


@dataclass(frozen=True, kw_only=True)
class CheckedConfig:
    """Settings that are checked when they are made."""

    def __post_init__(self) -> None:
        """Check types and numbers; lists become tuples."""
        check_settings(self)

    @classmethod
    def for_model(cls, model: Model) -> Self:
        """Return the settings that are the same for every model."""
        return cls()


@dataclass(frozen=True, kw_only=True)
class MethodConfig(CheckedConfig):
    """Settings of every method that has presets.

    Attributes:
        layers: Blocks with an edited MLP output projection, from 0.
        learning_rate: Of Adam.
        steps: Most passes of the optimisation; of locate-then-edit methods the last one makes no step.
        weight_decay: Of Adam (an L2 term on what is trained); of locate-then-edit methods the factor of
            ||shift|| / ||initial||^2 in the loss (the norm itself, as published).
        max_change: A change longer (Frobenius norm) than this share of its weight is shortened; None = no limit.
        stop_below: An edit, or a batch of fine-tuning, with a loss below this is finished (nats per target token).
        seed: For what is random: sampled templates and texts, LoRA's first factor.
        allow_identity: Accept target_new == target_true (the identity control).
        architecture: Row for a model type absent from the table.
    """

    editor: ClassVar[str] = ""
    """The method's name in `seesaw_cf.editors.EDITORS` and in the table of presets; a subclass gives it."""
    layers: tuple[int, ...]
    learning_rate: AboveZero = 0.5
    steps: Positive = 25
    weight_decay: AtLeastZero = 0.0
    max_change: AboveZero | None = None
    stop_below: float = 0.05
    seed: Seed = 0
    allow_identity: bool = False
    architecture: Architecture | None = None

    @classmethod
    def for_model(cls, model: Model) -> Self:
        """Return the published settings for a known model; a stated rule, with a warning, otherwise (see `preset`).

        Raises:
            UnknownNameError: The class is of no editor that has published settings; call it of `ROMEConfig`, ...
        """
        return cls(**preset(cls.editor, model))


@dataclass(frozen=True, kw_only=True)
class LocateThenEditConfig(MethodConfig):
    """How a new value is found for the subject's last token, and from which texts second moments are taken.

    Attributes:
        clamp: The shift stays in a ball of this radius times ||initial||.
        kl_factor: Weight of KL(now || before) at the subject's last token of `kl_prompt`.
        loss_layer: The block with the output that the loss reads through final norm and head; None = the last one.
        kl_prompt: Template with "{}" for the subject.
        context_templates: Templates with "{}" for the prompt; the bare "{}" is put first when absent. None = sampled
            from the model itself by `fit`, as published, with `seed`.
        sample_size: Most texts used for the second moments; a larger corpus is sampled with `seed`.
        max_length: Tokens kept of each text; None = the model's context length.
        dataset: Where `fit` reads texts from when the editor was given none: a Hub data set such as
            "wikimedia/wikipedia:20231101.en", or another form of `seesaw_cf.models.corpus.Corpus`.
        moments: Second moments that are there already, in place of texts: a folder, or ORG/NAME on the Hub.
        batch_tokens: Tokens per forward pass, a quarter of it where gradients are needed (memory against speed; results
            agree to rounding).
        factor_memory: Cholesky factors of second moments (8 bytes an entry) are kept between edits while they take at
            most this share of the memory that is free after `fit`; beyond, each is made anew in its layer's turn.
    """

    weight_decay: AtLeastZero = 0.5
    clamp: AboveZero = 0.75
    kl_factor: AtLeastZero = 0.0625
    loss_layer: int | None = None
    kl_prompt: str = "{} is a"
    context_templates: tuple[str, ...] | None = None
    sample_size: Positive = 100_000
    max_length: int | None = None
    dataset: str | None = None
    moments: str | None = None
    batch_tokens: Positive = 4096
    factor_memory: AtLeastZero = 0.25

    @property
    def moment_layers(self) -> tuple[int, ...]:
        """Blocks for which `fit` computes second moments."""
        return self.layers

    @property
    def needs_texts(self) -> bool:
        """Whether `fit` needs a corpus."""
        return bool(self.moment_layers) and self.dataset is None and self.moments is None

    def __post_init__(self) -> None:
        """Check numbers and templates; lists become tuples.

        Raises:
            EditError: A setting no edit could run with.
        """
        super().__post_init__()
        templates = self.context_templates
        if templates is not None and "{}" not in templates[:1]:
            object.__setattr__(self, "context_templates", ("{}", *(t for t in templates if t != "{}")))
        for template in (*(templates or ()), self.kl_prompt):
            if template.count("{}") != 1:
                raise EditError(
                    f"{type(self).__name__}: template {template!r} has {template.count('{}')} '{{}}' placeholders, "
                    "expected exactly one. Write e.g. 'I think so. {}'."
                )


def check_settings(config: Dataclass) -> None:
    """Make lists (from JSON) tuples and refuse what cannot work; for `__post_init__` of any editor config.

    Raises:
        SettingError: A field of another type than its annotation, a number that is not finite or out of range.
    """
    for entry in fields(config):
        value = getattr(config, entry.name)
        if isinstance(value, list):
            object.__setattr__(config, entry.name, tuple(value))
        if entry.name == "architecture" and isinstance(value, dict):
            object.__setattr__(config, entry.name, _architecture(type(config).__name__, value))
    field_types(config, error=SettingError)


def _architecture(where: str, row: Settings) -> Architecture:
    settings = {key: tuple(part) if isinstance(part, list) else part for key, part in row.items()}
    try:
        architecture = Architecture(**settings)  # type: ignore[arg-type]
        field_types(architecture, error=SettingError)
    except TypeError as error:
        raise SettingError(f"{where}: architecture {settings} cannot be used ({error}).") from error
    return architecture


def preset_config(editor: str, kind: type[C], model: Model, settings: Settings) -> C:
    """Return the preset of an editor for a model, with some of its fields changed; warn only if layers are guessed.

    Args:
        editor: The editor's name.
        kind: Its config class.
        model: Decides the preset.
        settings: See `with_settings`.

    Raises:
        UnknownNameError, EditError: See `with_settings`.
    """
    has_layers = editor in DEFAULTS and "layers" in settings
    config = kind(**preset(editor, model, quiet=True)) if has_layers else kind.for_model(model)
    return with_settings(config, settings)


def with_settings(config: D, settings: Settings) -> D:
    """Return a config with some of its fields changed, from plain values such as those of a JSON file.

    Args:
        config: Any editor's config; left as it is.
        settings: Field -> value; lists stand for tuples, and objects for the fields to change of a nested config.

    Returns:
        A config of the same class.

    Raises:
        UnknownNameError: A field the config does not have; near names are suggested.
        SettingError: (an EditError) A value of another type than the field's, or one that no edit could run with.
    """
    where, names = type(config).__name__, [entry.name for entry in fields(config)]
    values = {}
    for name, value in settings.items():
        if name not in names:
            raise unknown_name(f"setting of {where}", name, names)
        nested = is_dataclass(getattr(config, name)) and isinstance(value, Mapping)
        values[name] = with_settings(getattr(config, name), value) if nested else value  # type: ignore[arg-type]
    return replace(config, **values)
