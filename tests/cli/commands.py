"""Every command, with what it takes: the material of the tests beside."""

from collections.abc import Callable
from typing import Any

from seesaw_cf.cli import COMMANDS
from seesaw_cf.cli.help import Option, options
from seesaw_cf.cli.parse import arguments, load_command

FUNCTIONS: dict[str, Callable[..., None]] = {name: load_command(target) for name, (target, _) in COMMANDS.items()}
OPTIONS: dict[str, list[Option]] = {name: [*options(function)] for name, function in FUNCTIONS.items()}
ARGUMENTS: dict[str, list[Any]] = {name: arguments(function) for name, function in FUNCTIONS.items()}
