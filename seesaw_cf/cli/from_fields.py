"""Options made from the fields of a dataclass: names, types and defaults are the fields', the docstring is the help."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Collection, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

from seesaw_cf.base.types import DTYPES, SCORERS
from seesaw_cf.cli import types
from seesaw_cf.cli.paths import name_or_source, source
from seesaw_cf.editors import EDITORS
from seesaw_cf.editors.control_names import CONTROLS
from seesaw_cf.run.design import DESIGNS
from seesaw_cf.run.jobs import ENGINES

# The check of a field whose annotation does not say it; others have the check of `_BY_TYPE`.
_CHECKS: dict[str, Any] = {
    **dict.fromkeys(("model", "changed", "nulls", "data", "corpus", "moments", "generation", "raters"), name_or_source),
    **dict.fromkeys(("annotator", "judge", "judge_examples", "judge_wording"), name_or_source),
    **dict.fromkeys(("people", "judge_shots", "top_k", "budget"), types.count),
    **dict.fromkeys(("prompts_per_person", "holders"), types.positive_or_all),
    "editor_config": name_or_source,
    "memory": types.memory_size,
    "pairs": types.relation_pair,
    "seed": types.seed,
    "threads": types.threads,
    "top_p": types.share,
}
_BY_TYPE = {"int": types.positive, "float": types.at_least_zero, "Path": source, "str": None}
_CHOICES = {
    "dtype": DTYPES,
    "engine": ENGINES,
    "controls": (*CONTROLS, "none"),
    "design": tuple(DESIGNS),
    "protocol": ("single", "batch"),
    "scorer": SCORERS,
    "wording": ("essay", "article"),
    "chat": ("auto", "yes", "no"),
}
_METAVARS = {
    "prompts_per_person": "N|all",
    "holders": "N|all",
    **dict.fromkeys(("changed", "nulls"), "NAME=WHERE"),
    "requests": "FILE",
    "moments": "FOLDER",
}
_HELPS = {"editors": f"editing method, out of {', '.join(EDITORS)}; FILE.py or package.module:Class. Repeatable"}
_NAMES = {"wording": "prompt", "relationship": "no-relationship"}
# Second names of options.
_ALIASES = {"changed": ("--edited",)}


def options_from(
    parser: argparse.ArgumentParser,
    kind: type[Any],
    names: Collection[str] = (),
    *,
    required: Collection[str] = (),
    helps: Mapping[str, str] = {},
) -> None:
    """Add an option for each field of a dataclass.

    Args:
        parser: Of the command.
        kind: The dataclass. A field that is a tuple makes an option that may be repeated.
        names: Fields that become options; all when empty.
        required: Fields that must be given though they have a default.
        helps: Field -> help in place of its line in the docstring.
    """
    lines = {**attribute_lines(kind), **_HELPS, **helps}
    for field in fields(kind):
        if not names or field.name in names:
            needed = field.name in required or field.default is MISSING
            how = {"required": True} if needed else {}
            flags = (f"--{_name(field)}", *_ALIASES.get(field.name, ()))
            parser.add_argument(*flags, **_keywords(field, lines[field.name]) | how)


def values_of(kind: type[Any], args: argparse.Namespace) -> dict[str, Any]:
    """Return the parsed options that are fields of a dataclass; what was not given keeps its default."""
    values = {field.name: getattr(args, field.name, None) for field in fields(kind)}
    return {name: tuple(v) if isinstance(v, list) else v for name, v in values.items() if v is not None}


def attribute_lines(kind: type[Any]) -> dict[str, str]:
    """Return field -> help, from `Attributes:` of the docstring, the first letter small and no full stop."""
    block = inspect.cleandoc(kind.__doc__ or "").partition("Attributes:\n")[2].partition("\n\n")[0]
    lines = re.findall(r"^ {4}(\w+): (.+(?:\n {5,}.+)*)", block, re.MULTILINE)
    options = {f"`{field.name}`": f"--{_name(field)}" for field in fields(kind)}
    texts = {name: " ".join(text.split()).rstrip(".").replace("%", "%%") for name, text in lines}
    texts = {n: re.sub("`[a-z_]+`", lambda word: options.get(word[0], word[0]), text) for n, text in texts.items()}
    return {name: text[0].lower() + text[1:] if _is_word(text) else text for name, text in texts.items()}


def _is_word(text: str) -> bool:
    """Return whether a text begins with a plain word, not with a name such as CPU or OpenAI."""
    first = text.split()[0][1:]
    return first == first.lower()


def _name(field: Field[Any]) -> str:
    """Return the name of an option: that of the field, singular when the option may be repeated."""
    name = _NAMES.get(field.name, field.name).replace("_", "-")
    return name.removesuffix("s") if str(field.type).startswith("tuple") else name


def _keywords(field: Field[Any], text: str) -> dict[str, Any]:
    """Return what `add_argument` takes for a field."""
    common: dict[str, Any] = {"dest": field.name, "help": text}
    if field.type == "bool":
        return common | (
            {"action": "store_false", "help": f"do not {text}"} if field.default else {"action": "store_true"}
        )
    if str(field.type).startswith("tuple"):
        common |= {"action": "append", "metavar": _name(field).upper()}
    else:
        common |= {"default": None if field.default is MISSING else field.default}
        has_default = field.default not in (None, MISSING, "") and "(default" not in text
        common |= {"help": f"{text} (default: {field.default})"} if has_default else {}
    common |= {"metavar": _METAVARS[field.name]} if field.name in _METAVARS else {}
    if field.name in _CHOICES:
        return common | types.one_of(*_CHOICES[field.name])
    word = re.search("int|float|str|Path", str(field.type))
    return common | {"type": _CHECKS.get(field.name, _BY_TYPE[word[0] if word else "str"])}
