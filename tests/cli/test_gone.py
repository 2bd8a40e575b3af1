"""A command or option that was removed is refused by a message that names what to use instead."""

from __future__ import annotations

import pytest

from seesaw_cf.cli import COMMANDS, gone, main, parser
from seesaw_cf.cli.actions import subcommands


@pytest.mark.parametrize("name", gone.COMMANDS)
def test_a_removed_command_names_what_to_use(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(name.split())
    assert stop.value.code == 2
    assert f"command {name} was removed: {gone.COMMANDS[name]}." in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", gone.OPTIONS)
def test_a_removed_option_names_what_to_use(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["list", name])
    assert stop.value.code == 2
    assert f"option {name} was removed: {gone.OPTIONS[name]}." in " ".join(capsys.readouterr().err.split())


def test_no_living_command_is_called_removed() -> None:
    """A removed command may come back as an action of another one, never under its old name."""
    top = parser(*COMMANDS)
    living = set(COMMANDS) | {
        f"{name} {action}" for name, sub in subcommands(top).items() for action in subcommands(sub)
    }
    assert not living & set(gone.COMMANDS)
