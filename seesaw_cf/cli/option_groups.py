"""Sections of a long `--help`: which option belongs to which, in every command alike."""

from __future__ import annotations

import argparse

from seesaw_cf.cli.actions import subcommands

# A list up to this length is read at a glance.
MOST_UNGROUPED = 20

OPTION_GROUPS = {
    "model": "--model --revision --dtype --device --trust-remote-code --base-url --key-env",
    "editing": "--editor --editor-config --corpus --corpus-limit --moments --control --control-seeds"
    " --protocol --anyway --changed --null --requests",
    "data": "--data --config --limit --design --prompts-per-person --holders --dose --repeats --pair"
    " --people --text --passage --sample --seed",
    "writing": "--prompt --no-relationship --generation --samples --max-new-tokens --temperature --top-k --top-p"
    " --repetition-penalty --chat",
    "scoring": "--scorer --max-tokens --block --memory --threads --rater --annotator --flaws"
    " --wording --swap --judge --judge-url --judge-key-env --judge-shots --judge-examples --judge-tries"
    " --judge-wording",
    "several processes": "--engine --gpus --ray-address",
    "output": "--out --report --pictures --paper --open --quiet --verbose --keep-deltas --checkpoints",
}


def group_options(parser: argparse.ArgumentParser) -> None:
    """Move the options of a command, and of each below it, into sections where there are many.

    argparse has no public way to move an option, and a section made while options are added would be declared in
    every command.
    """
    for lower in subcommands(parser).values():
        group_options(lower)
    ungrouped = parser._optionals._group_actions
    if len(ungrouped) <= MOST_UNGROUPED:
        return
    for title, names in OPTION_GROUPS.items():
        members = [action for action in ungrouped if set(action.option_strings) & set(names.split())]
        if members:
            parser.add_argument_group(title)._group_actions += members
    grouped = [action for group in parser._action_groups[2:] for action in group._group_actions]
    ungrouped[:] = [action for action in ungrouped if action not in grouped]
