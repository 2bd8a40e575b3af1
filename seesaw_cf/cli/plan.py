"""`seesaw-cf plan`: how many edits and people a study needs."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import TYPE_CHECKING

from seesaw_cf.base.terminal import column_table, wrap
from seesaw_cf.cli.options import json_option
from seesaw_cf.cli.output import say, write_numbers
from seesaw_cf.cli.paths import source
from seesaw_cf.cli.types import AXES, SCORES, at_least_one, at_least_zero, finite, inside, one_of, positive

if TYPE_CHECKING:
    from seesaw_cf.stats import Components, Plan


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options of `seesaw-cf plan`."""
    add = parser.add_argument
    add("--effect", type=finite, required=True, help="the effect to find, in the unit of D_d (probability or nats)")
    add("--run", type=source, metavar="RUN", help="estimate the spread from this finished run")
    add("--score", **one_of(*SCORES), default="summed", help="form of D_d in RUN (default: summed)")
    add("--axis", **one_of(*AXES), help="of --group")
    add("--group", help="plan the contrast of this group with all others; without it, the mean over everybody")
    add("--share", type=inside, help="share of people in the group (default: as in RUN, else 0.2)")
    for name, text in (("edit", "between edits"), ("person", "between people"), ("prompt", "left over")):
        add(
            f"--sd-{name}",
            type=at_least_zero,
            help=f"standard deviation {text} (default: from RUN, else that of the simulation)",
        )
    add("--people-per-edit", type=positive, default=60, help="people scored under each edit (default: 60)")
    add("--edits-per-person", type=at_least_one, default=10, help="edits each person is scored under (default: 10)")
    add("--tests", type=positive, default=1, help="size of the declared family of tests (default: 1)")
    add("--alpha", type=inside, default=0.05, help="level of tests (default: 0.05)")
    add("--power", type=inside, default=0.8, help="chance to find the effect (default: 0.8)")
    json_option(parser)


def run(args: argparse.Namespace) -> None:
    """Plan and print."""
    from seesaw_cf.stats import Design, plan

    components, share, source = _spread(args)
    design = Design(args.people_per_edit, args.edits_per_person, share)
    test = {"tests": args.tests, "alpha": args.alpha, "power": args.power}
    deltas = [args.effect / 2, args.effect, 2 * args.effect]
    plans = {delta: plan(delta, components, design, **test) for delta in deltas}
    records = [{"delta": delta} | asdict(row) for delta, row in plans.items()]
    record = {"components": asdict(components), "source": source} | asdict(design) | test | {"plans": records}
    write_numbers(args, record)
    what = "the mean over everybody" if share is None else f"a contrast of {share:.1%} of the people with all others"
    say(wrap(f"Plan for {what}: two-sided level {args.alpha:g} over {args.tests} tests, power {args.power:.0%}."))
    about = (
        f"Standard deviations ({source}): edits {components.edit:.4g}, people {components.person:.4g}, prompts "
        f"{components.prompt:.4g}."
    )
    say(wrap(about))
    rows = [[f"{delta:.4g}", *_counts(row), "" if row.reachable else "not reached"] for delta, row in plans.items()]
    say(column_table(("effect", "edits", "people", "prompts", "smallest detectable", ""), rows, left=0))
    if not all(row.reachable for row in plans.values()):
        say(wrap("not reached: no number of edits of this design finds it; take another design, or a larger effect."))


def _counts(row: Plan) -> list[str]:
    return [f"{row.edits:,}", f"{row.people:,}", f"{row.prompts:,}", f"{row.detectable:.4g}"]


def _spread(args: argparse.Namespace) -> tuple[Components, float | None, str]:
    """Standard deviations, share of the group, and where they come from."""
    from dataclasses import replace

    from seesaw_cf.base.errors import RecordError
    from seesaw_cf.effects import run_components
    from seesaw_cf.stats import Components

    contrast = args.group is not None or args.share is not None
    if args.run is None and (args.group is not None or args.axis is not None):
        raise RecordError(
            "plan: --group and --axis name people of a run, and no --run was given. Give --run RUN, or --share with "
            "the share of people in the group."
        )
    if args.run is None:
        components, share, source = (
            Components(),
            args.share if args.share is not None else 0.2,
            "those of the simulation",
        )
    else:
        if (args.group is None) != (args.axis is None):
            raise RecordError("plan: --group needs --axis, and --axis needs --group; give both or neither.")
        components, share, _ = run_components(args.run, axis=args.axis, group=args.group, score=args.score)
        source = f"estimated from {args.run}"
    deviations = {
        name: value for name in ("edit", "person", "prompt") if (value := getattr(args, f"sd_{name}")) is not None
    }
    if args.share is not None:
        share = args.share
    source = "given" if len(deviations) == 3 else f"{source}; given: {', '.join(deviations)}" if deviations else source
    return replace(components, **deviations), share if contrast else None, source
