"""A command or option that was removed is refused by a message that names what to use instead."""

from __future__ import annotations

import pytest

from seesaw_cf.cli import COMMANDS, gone, main
from tests.cli.commands import OPTIONS

COMMANDS_GONE = {name: use for names, use in gone.COMMANDS.items() for name in names.split("|")}
OPTIONS_GONE = {name: use for names, use in gone.OPTIONS.items() for name in names.split("|")}


@pytest.mark.parametrize(("name", "use"), COMMANDS_GONE.items())
def test_a_removed_command_names_what_to_use(name: str, use: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(name.split()) == 2
    assert f"command {name} was removed: {use}." in capsys.readouterr().err


@pytest.mark.parametrize(("name", "use"), OPTIONS_GONE.items())
def test_a_removed_option_names_what_to_use(name: str, use: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", name]) == 2
    assert f"option {name} was removed: {use}." in capsys.readouterr().err


def test_nothing_that_lives_is_called_removed() -> None:
    """A removed option may live on in another command, never one that has its old sense."""
    assert not set(COMMANDS) & set(COMMANDS_GONE)
    assert {one.name for options in OPTIONS.values() for one in options} & set(OPTIONS_GONE) <= {
        "--metric",
        "--report",
        "--people",
        "--examples",
        "--encoder",
    }
