"""Settings that ROME, MEMIT, EMMET and AlphaEdit share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from transformers import PreTrainedModel

from seesaw_cf.checks import LAST_SEED, field_types, whole
from seesaw_cf.editors.arch import Architecture
from seesaw_cf.editors.presets import DEFAULTS
from seesaw_cf.errors import EditError, SettingError, UnknownNameError, unknown_name

__all__ = ["LocateThenEditConfig", "changed", "configured", "settle"]


@dataclass(frozen=True, kw_only=True)
class LocateThenEditConfig:
    """How a new value is found for the subject's last token, and from which texts second moments are taken.

    Attributes:
        layers: Blocks whose MLP output projection is edited, from 0.
        learning_rate: Of Adam.
        steps: Most forward passes of the optimisation; the last one makes no step.
        weight_decay: Factor of ||shift|| / ||initial||^2 in the loss (the norm itself, as published).
        clamp: The shift stays in a ball of this radius times ||initial||.
        kl_factor: Weight of KL(now || before) at the subject's last token of `kl_prompt`.
        stop_below: An edit whose loss is below is finished.
        loss_layer: The block whose output the loss reads through final norm and head; None = the last one.
        kl_prompt: Template with "{}" for the subject.
        context_templates: Templates with "{}" for the prompt; the bare "{}" is put first when absent. None = sampled
            from the model itself by `fit`, as published, with `seed`.
        sample_size: Most texts used for the second moments; a larger corpus is sampled with `seed`.
        max_length: Tokens kept of each text; None = the model's context length.
        sampling_error: `fit` ends the pass over the texts once the relative standard error of every layer's second
            moment (Frobenius norm) is at most this, looking every 1,000 texts; None = use all texts.
        dataset: Where `fit` reads texts from when the editor was given none: a Hub data set such as
            "wikimedia/wikipedia:20231101.en", or another form of `seesaw_cf.corpus.Corpus`.
        seed: For sampled templates and sampled texts.
        batch_tokens: Tokens per forward pass, a quarter of it where gradients are needed (memory against speed; results
            agree to rounding).
        factor_memory: Cholesky factors of second moments (4 bytes an entry) are kept between edits while they take at
            most this share of the model's size; beyond, each is made anew when its layer's turn comes.
        allow_identity: Accept target_new == target_true (the identity control).
        architecture: Row for a model type that the table lacks.
    """

    layers: tuple[int, ...]
    learning_rate: float = 0.5
    steps: int = 25
    weight_decay: float = 0.5
    clamp: float = 0.75
    kl_factor: float = 0.0625
    stop_below: float = 0.05
    loss_layer: int | None = None
    kl_prompt: str = "{} is a"
    context_templates: tuple[str, ...] | None = None
    sample_size: int = 100_000
    max_length: int | None = None
    sampling_error: float | None = None
    dataset: str | None = None
    seed: int = 0
    batch_tokens: int = 4096
    factor_memory: float = 0.1
    allow_identity: bool = False
    architecture: Architecture | None = None

    @property
    def moment_layers(self) -> tuple[int, ...]:
        """Blocks whose second moments `fit` computes."""
        return self.layers

    @property
    def needs_texts(self) -> bool:
        """Whether `fit` needs a corpus."""
        return bool(self.moment_layers) and self.dataset is None

    def __post_init__(self) -> None:
        """Checks numbers and templates; lists become tuples.

        Raises:
            EditError: A setting no edit could run with.
        """
        settle(self)
        templates = self.context_templates
        if templates is not None and "{}" not in templates[:1]:
            object.__setattr__(self, "context_templates", ("{}", *(t for t in templates if t != "{}")))
        for template in (*(templates or ()), self.kl_prompt):
            if template.count("{}") != 1:
                raise EditError(
                    f"{type(self).__name__}: template {template!r} has {template.count('{}')} '{{}}' placeholders, "
                    "expected exactly one. Write e.g. 'I think so. {}'."
                )


def settle(config: Any) -> None:
    """Makes lists (from JSON) tuples and refuses what cannot work; for `__post_init__` of any editor config.

    Raises:
        SettingError: A field of another type than its annotation, a number that is not finite or out of range.
    """
    where = type(config).__name__
    for entry in fields(config):
        value = getattr(config, entry.name)
        if isinstance(value, list):
            object.__setattr__(config, entry.name, tuple(value))
        if entry.name == "architecture" and isinstance(value, dict):
            row: dict[str, Any] = {key: tuple(part) if isinstance(part, list) else part for key, part in value.items()}
            try:
                object.__setattr__(config, entry.name, Architecture(**row))
                field_types(config.architecture, error=SettingError)
            except TypeError as error:
                raise SettingError(f"{where}: architecture {row} cannot be used ({error}).") from error
    field_types(config, error=SettingError)
    for entry in fields(config):
        value = getattr(config, entry.name)
        if entry.name in _POSITIVE and value is not None and not value > 0:
            raise SettingError(f"{where}: {entry.name} is {value!r}, expected a number above 0.")
        if entry.name == "seed":
            whole(f"{where}: seed", value, 0, LAST_SEED, error=SettingError)


def configured(editor: str, kind: Any, model: PreTrainedModel, settings: Mapping[str, Any]) -> Any:
    """The preset of an editor for a model, with some of its fields changed; a warning only if layers are guessed.

    Args:
        editor: The editor's name.
        kind: Its config class.
        model: Decides the preset.
        settings: See `changed`.

    Raises:
        UnknownNameError, EditError: See `changed`.
    """
    given = editor in DEFAULTS and "layers" in settings
    return changed(kind.for_model(model, quiet=True) if given else kind.for_model(model), settings)


def changed(config: Any, settings: Mapping[str, Any]) -> Any:
    """A config with some of its fields changed, from plain values such as those of a JSON file.

    Args:
        config: Any editor's config; left as it is.
        settings: Field -> value; lists stand for tuples, and objects for the fields to change of a nested config.

    Returns:
        A config of the same class.

    Raises:
        UnknownNameError: A field the config does not have; near names are suggested.
        EditError: A value of another type than the field's, or one that no edit could run with.
    """
    where, known = type(config).__name__, [entry.name for entry in fields(config)]
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if name not in known:
            error: UnknownNameError = unknown_name(f"setting of {where}", name, known)
            raise error
        old = getattr(config, name)
        nested = is_dataclass(old)
        expected = (dict,) if nested else next((kinds for kind, kinds in _PLAIN if isinstance(old, kind)), ())
        if expected and value is not None and type(value) not in expected:
            raise SettingError(
                f"{where}: {name} is {value!r}, expected {' or '.join(kind.__name__ for kind in expected)} such as "
                f"{old!r}."
            )
        values[name] = changed(old, value) if nested else value
    try:
        return replace(config, **values)
    except TypeError as error:
        raise SettingError(f"{where}: the settings {values} cannot be used ({error}). See its docstring.") from error


_POSITIVE = (
    *("steps", "learning_rate", "clamp", "norm_constraint"),
    *("batch_size", "batch_tokens", "sample_size", "sampling_error"),
)
"""Fields of any config that must be above 0 when they are given."""

_PLAIN: tuple[tuple[type[Any], tuple[type[Any], ...]], ...] = (
    (bool, (bool,)),
    (int, (int,)),
    (float, (float, int)),
    (str, (str,)),
    (tuple, (list, tuple)),
    (dict, (dict,)),
)
"""What a field holds -> what may replace it."""
