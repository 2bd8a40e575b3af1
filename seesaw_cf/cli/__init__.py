"""The command line: `seesaw-cf COMMAND ...`. A command is a function; what it takes are its options.

A row of `GROUPS` declares a command. Its module is imported only when it is asked for.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence

from seesaw_cf import __version__
from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import HarmError, SeesawError, unknown_name
from seesaw_cf.base.files import reading
from seesaw_cf.base.retrying import quiet, say_when_waiting
from seesaw_cf.cli import gone
from seesaw_cf.cli.help import WAYS_IN, command_help, commands_help
from seesaw_cf.cli.output import UsageError, explained, finish, say

__all__ = ["COMMANDS", "GROUPS", "main"]

FIRST_LINE = 1.0  # seconds of silence
_EVERYWHERE = {"-h", "--help", "-v", "--verbose", "--debug"}

# Group -> command -> (module and function, what it does).
GROUPS: dict[str, dict[str, tuple[str, str]]] = {
    "Audit a change": {
        "audit": ("audit:audit", "edit a model, or take a changed one: what else changed, and for whom"),
        "report": ("audit:report", "the report of a finished run again, or of several side by side"),
        "compare": ("audit:compare", "logs of lm_eval or inspect_ai before and after a change of the model"),
        "ability": ("audit:ability", "tasks of lm_eval before and after the edits of a run"),
        "study": ("audit:study", "models x editors x records from one file: run and compared"),
    },
    "What edited models write": {
        "texts write": ("texts:write", "passages before and after edits, rated and reported if asked"),
        "texts rate": ("texts:rate", "let judges and classifiers rate the texts of a run"),
        "texts report": ("texts:report", "the papers' tables of a run, of people and judges, of released files"),
        "texts train": ("texts:train", "a classifier of claims or a rater, measured on unseen samples"),
        "people export": ("texts:export", "tasks for people, in Label Studio or a spreadsheet"),
        "people import": ("texts:import_answers", "what people answered, as the tables that judges write"),
        "graph run": ("texts:crawl", "a stereotype graph drawn out of a model, edited or not, with its report"),
        "graph compare": ("texts:compare_crawls", "what an edit changed in it, identity by identity, against controls"),
    },
    "An editor of your own": {
        "new": ("tools:new", "files of an editor to start from, with its test"),
        "check": ("tools:check", "whether an editor keeps its promises"),
    },
    "Data": {
        "build": ("share:build", "a dataset from Wikidata, another source or the sample; or from records as they are"),
        "tag": ("share:tag", "groups, candidates and gold answers for records without"),
    },
    "Share and set up": {
        "share": ("share:share", "an edit, a report or second moments onto the Hub, with a card"),
        "setup": ("tools:setup", "make load_dataset and evaluate.load find seesaw_cf from anywhere"),
        "list": ("tools:list_names", "editors, models, configs, relations, groups and metrics"),
    },
}
COMMANDS = {name: row for group in GROUPS.values() for name, row in group.items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: Arguments without the program's name; those of the process when None.

    Returns:
        0 on success, 1 after an error that is explained on stderr, 2 after words that are no command, 130 after Ctrl-C,
        3 where --fail-if met its condition, 141 when the output is not read any more (as in `| head`).
    """
    words = list(sys.argv[1:] if argv is None else argv)
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # Arrow's own keeps what was freed
    try:
        _run(words)
        finish()
    except BrokenPipeError:
        return 141
    except KeyboardInterrupt:
        sys.stderr.write("\nstopped. What was finished is kept; run the same command again to continue.\n")
        return 130
    except UsageError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    except Exception as error:  # what is not explained is raised again
        message = None if "--debug" in words else explained(error)
        if message is None:
            raise
        sys.stderr.write(f"error: {message}\n")
        return 3 if isinstance(error, HarmError) else 1
    return 0


def _run(words: list[str]) -> None:
    everywhere = {word for word in words if word in _EVERYWHERE}
    words = [word for word in words if word not in _EVERYWHERE]
    asks = bool(everywhere & {"-h", "--help"})
    below = [name for name in COMMANDS if [name.split()[0]] == words and name != words[0]]
    if not words or (asks and below):
        titles = {
            title: {name: about for name, (_, about) in group.items() if not words or name in below}
            for title, group in GROUPS.items()
        }
        say(commands_help({title: group for title, group in titles.items() if group}) if asks else WAYS_IN)
        return
    if words == ["--version"]:
        say(f"seesaw-cf {__version__}")
        return
    name, rest = find_command(words)
    target, about = COMMANDS[name]
    from seesaw_cf.cli.parse import bind, given, in_options, load_command
    from seesaw_cf.cli.paths import check_paths

    function = load_command(target)
    if asks:
        say(command_help(name, about, function, everything=bool(everywhere & {"-v", "--verbose"})))
        return
    bound = bind(name, function, rest)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    logging.getLogger("seesaw_cf").setLevel(logging.INFO if everywhere & {"-v", "--verbose"} else logging.NOTSET)
    silent = bool(bound.arguments.get("quiet"))
    begins = "" if silent else f"seesaw-cf {name}: loading libraries and data ...\n"
    read = check_paths(given(function, bound))
    with quiet(silent), reading(read), say_when_waiting(lambda: begins, FIRST_LINE, sys.stderr.write):
        try:
            function(*bound.args, **bound.kwargs)
        except SeesawError as error:
            error.args = (in_options(str(error), function),)
            raise


def find_command(words: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command that words begin with, of one word or two, and the words after it.

    Raises:
        UsageError: There is none, or it was removed; or a word is no text.
    """
    for word in words:
        if "\0" in word or any("\ud800" <= char <= "\udfff" for char in word):
            raise UsageError(f"got {shown(word)}, expected UTF-8 text without NUL characters.")
    for name in (" ".join(words[:2]), words[0]):
        if name in COMMANDS:
            return name, list(words[len(name.split()) :])
        if removed := gone.instead("command", name, gone.COMMANDS):
            raise UsageError(removed)
    below = [name for name in COMMANDS if name.startswith(f"{words[0]} ")]
    if below:
        raise UsageError(f"{words[0]} is followed by one of: {', '.join(name.split()[1] for name in below)}.")
    raise UsageError(str(unknown_name("command", words[0], dict.fromkeys(name.split()[0] for name in COMMANDS))))
