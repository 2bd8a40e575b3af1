"""`seesaw-cf plan`: how many edits and people a study needs, or a finished run more than it has."""

from __future__ import annotations

import argparse
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from seesaw_cf.base.terminal import column_table, wrap
from seesaw_cf.cli.options import json_option
from seesaw_cf.cli.output import say, write_numbers
from seesaw_cf.cli.paths import source
from seesaw_cf.cli.types import AXES, SCORES, at_least_one, at_least_zero, finite, inside, one_of, positive

if TYPE_CHECKING:
    from seesaw_cf.stats import Plan

# The margin of reports, which is `seesaw_cf.effects.audit.MARGIN`: that module takes a second to import.
_MARGIN = 0.02
# Options of a study that is not there yet -> its default.
_STUDY = {"share": None, "people_per_edit": 60, "edits_per_person": 10.0, "prompts_per_person": 2, "tests": 1}
_DEVIATIONS = {
    "edit": "between edits",
    "person": "between people, under every edit alike",
    "pair": "of a person under one edit",
    "template": "of a template under one edit, which moves everybody",
    "rest": "of one prompt",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf plan`."""
    add = parser.add_argument
    add("--effect", type=finite, default=_MARGIN, help="the effect to find, in the unit of D_d (default: 0.02)")
    add("--run", type=source, metavar="RUN", help="this finished run: what each of its contrasts takes, as it is made")
    add("--score", **one_of(*SCORES), default="summed", help="form of D_d in RUN (default: summed)")
    add("--axis", **one_of(*AXES), help="of RUN: contrasts on this axis only")
    add("--group", help="of RUN: all contrasts of this group, and what those lack that have no test")
    share = "plan the contrast of a group with this share of the people; without it, the mean over everybody"
    add("--share", type=inside, help=share)
    for name, text in _DEVIATIONS.items():
        add(f"--sd-{name}", type=at_least_zero, help=f"standard deviation {text} (default: that of the simulation)")
    add("--people-per-edit", type=positive, help="people scored under each edit (default: 60)")
    add("--edits-per-person", type=at_least_one, help="edits each person is scored under (default: 10)")
    prompts = "prompts about a person under one edit (default: 2)"
    add("--prompts", dest="prompts_per_person", type=positive, help=prompts)
    add("--tests", type=positive, help="size of the declared family of tests (default: 1)")
    add("--alpha", type=inside, default=0.05, help="level of tests (default: 0.05)")
    add("--power", type=inside, default=0.8, help="chance to find the effect (default: 0.8)")
    json_option(parser)


def run(args: argparse.Namespace) -> None:
    """Plan and print."""
    from seesaw_cf.base.errors import RecordError

    study = (*_STUDY, *(f"sd_{name}" for name in _DEVIATIONS))
    names = [name for name in study if getattr(args, name) is not None]
    about_run = [name for name in ("axis", "group") if getattr(args, name) is not None]
    if args.run is not None and names:
        raise RecordError(
            f"plan: --{names[0].replace('_', '-')} is about a study that is not there yet, --run about one that is. "
            "Give one of the two."
        )
    if args.run is None and about_run:
        raise RecordError(
            f"plan: --{about_run[0]} names people of a run, and no --run was given. Give --run RUN, or --share with "
            "the share of people in the group."
        )
    if args.run is None:
        _plan_study(args)
    else:
        _plan_run(args)


def _plan_run(args: argparse.Namespace) -> None:
    """Say what each contrast of a finished run takes."""
    from seesaw_cf.base.checks import one_of as one_of_names
    from seesaw_cf.effects.audit import AuditSettings
    from seesaw_cf.report.needed import compared, components_table, missing, needs_table, run_needs
    from seesaw_cf.report.results import read_results

    axes = AXES if args.axis is None else (args.axis,)
    results = read_results(args.run, score=args.score, axes=axes, settings=AuditSettings(alpha=args.alpha))
    if not compared(results):
        write_numbers(args, {"missing": missing(results)})
        say(wrap(missing(results)))
        return
    frame, spread = run_needs(results, args.effect, args.power), components_table(results)
    if args.group is not None:
        one_of_names(f"group of {args.run}", args.group, dict.fromkeys(frame["group"]))
    write_numbers(args, {"needs": frame.to_dict("records"), "components": spread.frame.to_dict("records")})
    say(f"{needs_table(frame, args.power, args.group).terminal()}\n\n{spread.terminal()}")


def _plan_study(args: argparse.Namespace) -> None:
    """Plan a study that is not there yet."""
    from seesaw_cf.stats import Components, Design, plan

    options = {name: value for name, value in vars(args).items() if value is not None}
    deviations = {
        field.name: options[f"sd_{field.name}"] for field in fields(Components) if f"sd_{field.name}" in options
    }
    components = Components(**deviations)
    origin = "given" if len(deviations) == len(_DEVIATIONS) else "those of the simulation"
    origin += f"; given: {', '.join(deviations)}" if 0 < len(deviations) < len(_DEVIATIONS) else ""
    size: dict[str, Any] = {name: options.get(name, default) for name, default in _STUDY.items()}
    test = {"tests": size.pop("tests"), "alpha": args.alpha, "power": args.power}
    design = Design(**size)
    deltas = [args.effect / 2, args.effect, 2 * args.effect]
    plans = {delta: plan(delta, components, design, **test) for delta in deltas}
    records = [{"delta": delta} | asdict(row) for delta, row in plans.items()]
    record = {"components": asdict(components), "source": origin} | asdict(design) | test | {"plans": records}
    write_numbers(args, record)
    share = design.share
    what = "the mean over everybody" if share is None else f"a contrast of {share:.1%} of the people with all others"
    say(wrap(f"Plan for {what}: two-sided level {args.alpha:g} over {test['tests']} tests, power {args.power:.0%}."))
    spread = ", ".join(f"{name} {value:.4g}" for name, value in asdict(components).items())
    say(wrap(f"Standard deviations ({origin}): {spread}."))
    rows = [[f"{delta:.4g}", *_counts(row), "" if row.reachable else "not reached"] for delta, row in plans.items()]
    say(column_table(("effect", "edits", "people", "prompts", "smallest detectable", ""), rows, left=0))
    if not all(row.reachable for row in plans.values()):
        say(wrap("not reached: no number of edits of this design finds it; take another design, or a larger effect."))


def _counts(row: Plan) -> list[str]:
    return [f"{row.edits:,}", f"{row.people:,}", f"{row.prompts:,}", f"{row.detectable:.4g}"]
