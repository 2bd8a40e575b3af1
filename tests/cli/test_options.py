"""The table of commands and options: how many, what each says, and how a wrong one is met."""

import json
import shlex
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from seesaw_cf.cli import COMMANDS, main
from seesaw_cf.cli.help import RARE
from seesaw_cf.cli.parse import bind, load_command
from seesaw_cf.report.rows import repeat_command
from seesaw_cf.run.jobs import Job
from seesaw_cf.run.manifest import public_options
from tests import fresh
from tests.cli.commands import OPTIONS

# Where second moments are taken from, and that they are what is shared.
OWN_SENSE = {"--form", "--moments"}


def text(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(words) == 0
    return capsys.readouterr().out


def test_there_are_few_names_and_few_options() -> None:
    assert len({name.split()[0] for name in COMMANDS}) <= 15
    assert len(COMMANDS) <= 20
    names = {one.name for options in OPTIONS.values() for one in options if one.name.startswith("--")}
    assert len(names) <= 120
    assert set(RARE.split()) >= {one.name for options in OPTIONS.values() for one in options if one.rare}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_fits_one_screen(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = text(*name.split(), "--help", capsys=capsys).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    everything = text(*name.split(), "--help", "-v", capsys=capsys)
    for one in OPTIONS[name]:
        assert one.text, one
        assert one.name in everything
    assert max(map(len, everything.splitlines())) <= 80
    assert name in text(name.split()[0], "--help", capsys=capsys)


def test_an_option_takes_the_same_everywhere() -> None:
    labels: dict[str, set[str]] = defaultdict(set)
    for options in OPTIONS.values():
        for one in options:
            labels[one.name].add(one.label.rstrip("."))
    assert {name: found for name, found in labels.items() if len(found) > 1 and name not in OWN_SENSE} == {}


AUDIT = ["audit", "m", "--editor", "ft", "--out", "x"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*AUDIT, "--protocol", "singel"], "unknown protocol 'singel'. Did you mean 'single'?"),
        ([*AUDIT, "--control", "randm"], "unknown control 'randm'. Did you mean 'random'?"),
        (["list", "editor"], "unknown list 'editor'. Did you mean 'editors'?"),
        (["share", "x", "--repo", "o/n", "--form", "adaptor"], "'adaptor'. Did you mean 'adapter'?"),
        (["audt", "--model", "x"], "unknown command 'audt'. Did you mean 'audit'?"),
        (["audit", "--limt", "2"], "unknown option '--limt'. Did you mean '--limit'"),
        ([*AUDIT, "--limit", "0"], "--limit is 0, expected a whole number of at least 1."),
        ([*AUDIT, "--changed", "a=/no/such"], "--changed: a=/no/such: no such file or folder. Check the path."),
        ([*AUDIT, "--limit", "1.5"], "--limit: got '1.5', expected a whole number of at least 1."),
        ([*AUDIT, "--threads", "1025"], "--threads is 1025, expected a whole number from 1 to 1024."),
        ([*AUDIT, "--limit"], "--limit: the value is missing."),
        ([*AUDIT[:2], "n", *AUDIT[2:]], "got 'n', expected options after it or nothing."),
        (["audit", "--out", "x"], "MODEL is missing."),
        (["texts", "report", "--people", "x"], "give RUN, or --people FILE"),
        (["compare", "a", "b", "--out", "x", "--margin", "nan"], "--margin is nan, expected a finite number"),
        (["setup", "--prune", "-1"], "--prune is -1.0, expected a finite number of at least 0."),
    ],
)
def test_wrong_words_are_met_in_two_lines(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) in (1, 2)
    said = capsys.readouterr().err
    assert message in said
    assert len(said) <= 160 * (2 if "Known: " in said else 1)


def test_given_options_are_values_of_fields_and_the_others_keep_their_defaults() -> None:
    words = ["m", "--editor", "ft", "--editor", "rome", "--out", "x"]
    assert bind("audit", load_command("audit:audit"), words).arguments["job"] == Job("m", editors=("ft", "rome"))
    same = ["--model", "m", "--editor", "ft", "rome", "--out=x", "--people-per-edit", "all"]
    job = Job("m", editors=("ft", "rome"), people_per_edit="all")
    assert bind("audit", load_command("audit:audit"), same).arguments["job"] == job


def test_the_command_of_a_report_repeats_the_job(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    changed, config = (f"mine={tmp_path}/own",), {"ft": {"steps": 1}}
    job = Job("m", editors=("ft",), changed=changed, protocol="batch", checkpoints=(1, 10), pairs=("P27,P101",),
              limit=3, editor_config=config, ignore_damage=True, memory="4GiB", dtype="bfloat16",
              people_per_edit=9)  # fmt: skip
    program, command, *words = shlex.split(repeat_command({"job": public_options(job)}))
    assert (program, command) == ("seesaw-cf", "audit")
    found = bind("audit", load_command("audit:audit"), words).arguments["job"]
    assert replace(found, editor_config=json.loads(found.editor_config)) == job


@pytest.mark.slow
def test_no_help_loads_a_model_library() -> None:
    code = (
        "import sys; from seesaw_cf.cli import COMMANDS, main; main(['list']);"
        "[main([*name.split(), '--help']) for name in COMMANDS];"
        "print(sorted({'torch', 'transformers', 'datasets', 'evaluate'} & set(sys.modules)))"
    )
    assert fresh.python("-c", code).stdout.splitlines()[-1] == "[]"
