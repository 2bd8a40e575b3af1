"""`seesaw-cf build` and `tag`: datasets from a source of facts or from records, and groups for records without."""

from __future__ import annotations

from seesaw_cf.base.fields import OwnFolder
from seesaw_cf.builder_scripts.jobs import Asking, BuildJob, TagJob
from seesaw_cf.cli.output import say
from seesaw_cf.cli.parse import Flat


def build(
    job: Flat[BuildJob] = BuildJob(),
    *,
    out: OwnFolder,
    asking: Flat[Asking] = Asking(),
    push: str = "",
    quiet: bool = False,
) -> None:
    """Make a dataset folder, and publish it.

    Args:
        out: Dataset folder to make.
        push: Publish it as ORG/NAME on the Hub.
        quiet: No progress bars.
    """
    from seesaw_cf.builder_scripts.build import run_build

    say(run_build(job, out, asking, push=push))


def tag(job: Flat[TagJob], *, out: OwnFolder, asking: Flat[Asking] = Asking(), quiet: bool = False) -> None:
    """Tag records and write them into a dataset folder.

    Args:
        out: Dataset folder to make.
        quiet: No progress bars.
    """
    from seesaw_cf.builder_scripts.tag import run_tag

    say(run_tag(job, out, asking))
