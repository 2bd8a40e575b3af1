"""The same option has the same name, check and help in every command."""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import fields

import pytest

from seesaw_cf.cli import COMMANDS, GROUPS, from_fields, main, parser
from seesaw_cf.cli.actions import check_names, subcommands
from seesaw_cf.cli.option_groups import MOST_UNGROUPED, OPTION_GROUPS
from seesaw_cf.cli.paths import name_or_source, output_file, output_folder, own_folder, source
from seesaw_cf.run.jobs import ENGINES, PROTOCOLS, Job
from seesaw_cf.texts.job import LemeJob

# What is read here may be written there; a name is a text.
ALIKE: dict[object, object] = dict.fromkeys((source, output_file, output_folder, own_folder), "path")
ALIKE[name_or_source] = None
# A data set for runs, a CSV file for training; a source of facts, a folder of downloads; how many people, their tables;
# a number of pairs, or one for each relation.
OWN_CHECK = {"--data", "--from", "--space", "--raters", "--sample"}


def parsers(found: argparse.ArgumentParser, *words: str) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """The words of each command, and of each command below one, with its parser; the program itself first."""
    yield words, found
    for name, lower in subcommands(found).items():
        yield from parsers(lower, *words, name)


PARSER = parser(*COMMANDS)


def leaves() -> Iterator[tuple[str, argparse.Action]]:
    for words, found in parsers(PARSER):
        for action in found._actions if not subcommands(found) else []:
            yield " ".join(words), action


@pytest.fixture(scope="module")
def actions() -> dict[str, dict[str, argparse.Action]]:
    """Option -> command -> what argparse knows of it."""
    found: dict[str, dict[str, argparse.Action]] = defaultdict(dict)
    for command, action in leaves():
        for name in action.option_strings:
            found[name][command] = action
    return found


def test_every_option_has_a_help(actions: dict[str, dict[str, argparse.Action]]) -> None:
    assert len(actions) > 120
    assert [(name, command) for name, rows in actions.items() for command, act in rows.items() if not act.help] == []


def test_an_option_is_checked_alike_everywhere(actions: dict[str, dict[str, argparse.Action]]) -> None:
    for name, rows in actions.items():
        kinds = {ALIKE.get(act.type, getattr(act.type, "__qualname__", act.type)) for act in rows.values()}
        assert name in OWN_CHECK or len(kinds) == 1, (name, {command: act.type for command, act in rows.items()})


def test_config_and_dose_never_mean_a_file(actions: dict[str, dict[str, argparse.Action]]) -> None:
    assert {act.dest for act in actions["--config"].values()} == {"configs"}
    assert all(isinstance(act, argparse._AppendAction) for act in actions["--config"].values())
    assert set(actions["--dose"]) == {"dose"}


def test_choices_are_those_of_the_library() -> None:
    assert set(PROTOCOLS) == {"single", "batch"}
    assert set(ENGINES) == {"local", "ray"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "--protocol", "singel"], "argument --protocol: unknown value 'singel'. Did you mean 'single'?"),
        (["run", "--control", "randm"], "argument --control: unknown value 'randm'. Did you mean 'random'?"),
        (["list", "editor"], "unknown value 'editor'. Did you mean 'editors'?"),
        (["share", "x", "--repo", "o/n", "--as", "adaptor"], "unknown value 'adaptor'. Did you mean 'adapter'?"),
        (["rum", "--model", "x"], "seesaw-cf: error: unknown command 'rum'. Did you mean 'run'?"),
        (["run", "--limt", "2"], "seesaw-cf run: error: unknown option '--limt'. Did you mean '--limit'"),
        (["graph", "compar", "x"], "seesaw-cf graph: error: unknown command 'compar'. Did you mean 'compare'"),
        (["leme", "run", "--modl=x"], "seesaw-cf leme run: error: unknown option '--modl'. Did you mean '--model'"),
    ],
)
def test_a_misspelt_choice_or_name_is_met_with_the_nearest_before_what_is_missing(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("kind", [Job, LemeJob])
def test_an_option_shows_the_line_of_its_field(kind: type) -> None:
    lines = from_fields.attribute_lines(kind)
    assert set(lines) == {field.name for field in fields(kind)}
    made = argparse.ArgumentParser()
    from_fields.options_from(made, kind)
    helps = {action.dest: action.help for action in made._actions}
    assert all(str(helps[name]).startswith(lines[name]) for name in lines if name not in ("editors", "relationship"))
    assert lines["limit"].startswith("only this many cases of each config, sampled with --seed")


def test_given_options_are_values_of_fields_and_the_others_keep_their_defaults() -> None:
    args = parser("run").parse_args(["run", "--model", "m", "--editor", "ft", "--editor", "rome", "--out", "x"])
    assert Job("m", ("ft", "rome")) == Job(**from_fields.values_of(Job, args))


def _long(action: argparse.Action) -> str:
    """The first long name of an option."""
    return next(name for name in action.option_strings if name.startswith("--"))


def test_a_long_help_has_sections() -> None:
    """Of a long list every option is in one section, in the order of the table; a short list has none."""
    known = [name for names in OPTION_GROUPS.values() for name in names.split()]
    assert len(set(known)) == len(known)
    grouped: dict[str, list[str]] = {}
    for words, found in parsers(PARSER):
        sections = [group for group in found._action_groups if group.title in OPTION_GROUPS]
        titles = [group.title for group in sections]
        assert titles == [title for title in OPTION_GROUPS if title in titles]
        names = [_long(act) for group in sections for act in group._group_actions]
        others = [_long(act) for act in found._optionals._group_actions]
        assert sorted(names + others) == sorted(_long(act) for act in found._actions if act.option_strings)
        assert set(others) <= {"--help"} if sections else len(others) <= MOST_UNGROUPED, words
        grouped |= {" ".join(words): names} if sections else {}
    assert set(grouped) == {"run", "dose", "leme run", "graph run", "flaws judge"}
    assert {name for names in grouped.values() for name in names} == set(known)


def misspelt(name: str) -> str:
    """The name with its last two different neighbours swapped: `--limit` -> `--limti`."""
    at = next(at for at in reversed(range(1, len(name))) if name[at] != name[at - 1])
    return f"{name[: at - 1]}{name[at]}{name[at - 1]}{name[at + 1 :]}"


def refusal(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as stopped:
        check_names(PARSER, words)
    assert stopped.value.code == 2
    return capsys.readouterr().err.partition("error: ")[2]


@pytest.mark.slow
def test_a_misspelt_command_or_option_is_met_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """Of every command and every option there is."""
    for words, found in parsers(PARSER):
        for name in subcommands(found):
            message = refusal([*words, misspelt(name)], capsys)
            assert message.startswith(f"unknown command {misspelt(name)!r}. Did you mean "), words
            assert repr(name) in message.partition(" Known: ")[0], (words, message)
        for name in filter(re.compile("--").match, found._option_string_actions):
            message = refusal([*words, f"{misspelt(name)}=2"], capsys)
            assert message.startswith(f"unknown option {misspelt(name)!r}. Did you mean "), words
            assert repr(name) in message.partition(" Known: ")[0], (words, message)


@pytest.mark.parametrize("value", ["-1", "-inf", "-", "--lim", "--a text", "rum"])
def test_values_and_prefixes_are_no_unknown_names(value: str) -> None:
    check_names(PARSER, ["run", "--limit", value])
    check_names(PARSER, ["run", "--", "--limt"])


def test_commands_that_belong_together_stand_together(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for title, group in GROUPS.items():
        block = text.split(f"{title}:\n")[1].split("\n\n")[0].splitlines()
        assert [line.split()[0] for line in block] == list(group)
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.slow
def test_names_and_options_need_no_model_library() -> None:
    """What takes seconds to import is imported neither for `list` nor for the `--help` of any command."""
    code = (
        "import sys; from seesaw_cf.cli import COMMANDS, main, parser; parser(*COMMANDS); main(['list']);"
        "print(sorted({'torch', 'transformers', 'datasets', 'evaluate', 'pandas', 'scipy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


RUN = ["run", "--model", "x", "--editor", "ft", "--out", "x"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [("4GiB", 4 * 2**30), ("500MB", 500_000_000), ("1.5gib", 3 * 2**29), ("77", 77), ("2 KiB", 2048), ("1TB", 10**12)],
)
def test_amounts_of_memory(text: str, expected: int) -> None:
    assert parser("run").parse_args([*RUN, "--memory", text]).memory == expected


def test_no_amount_of_memory_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser("run").parse_args([*RUN, "--memory", "much"])
    assert "--memory: got 'much', expected an amount of memory such as 4GiB" in capsys.readouterr().err
