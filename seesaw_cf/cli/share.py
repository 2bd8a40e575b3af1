"""`seesaw-cf build` and `tag`: datasets; `share`: an edit of a run, the page of its report, or second moments."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from seesaw_cf.base.errors import EditError, RecordError
from seesaw_cf.base.fields import Count, NameOrPath, OneOf, OwnFolder, Positive, field_types
from seesaw_cf.builder_scripts import Asking, BuildJob, TagJob
from seesaw_cf.cli.output import say
from seesaw_cf.cli.parse import Flat


@dataclass(frozen=True)
class ShareJob:
    """What is shared, in which form, and where it goes.

    Attributes:
        repo: Repository to make on the Hub, of an edit or of second moments.
        space: Static Space to make, of the page of a report. Private without --public.
        form: Delta: small. adapter: LoRA, for peft. checkpoint: the whole model.
        editor: Which editor of the run; with --moments whose layers.
        unit: Which edit: the name of its folder below RUN/deltas/EDITOR.
        base_model: Hub name of the unedited model, when a folder was used.
        public: Make a public one.
        overwrite: Replace what the repository holds.
        moments: RUN is a model: compute second moments for editors, keep them, and publish them with --repo.
        corpus: Texts, one a line: a file, FILE.jsonl:COLUMN, FILE.parquet:COLUMN or ORG/NAME:CONFIG:SPLIT:COLUMN.
        corpus_limit: Most texts of it.
        layers: Blocks from 0, in place of --editor.
        tokens: Stop at so many (default: all texts).
    """

    repo: str | None = None
    space: str | None = None
    form: Annotated[str, OneOf(("delta", "adapter", "checkpoint"))] = "delta"
    editor: str | None = None
    unit: str | None = None
    base_model: str | None = None
    public: bool = False
    overwrite: bool = False
    moments: bool = False
    corpus: NameOrPath | None = None
    corpus_limit: Positive = 100_000
    layers: tuple[Count, ...] = ()
    tokens: Positive | None = None

    def __post_init__(self) -> None:
        """Refuse another form, and numbers below 1."""
        field_types(self)


def share(run: NameOrPath, /, *, job: Flat[ShareJob] = ShareJob()) -> None:
    """Push an edit with its card, a page or second moments, and print the address.

    Args:
        run: A run (made with --keep-deltas for --repo), the folder of a delta, or with --moments a model.
    """
    if job.moments:
        _moments(run, job)
        return
    if (job.repo is None) == (job.space is None):
        raise RecordError("share: give --repo ORG/NAME for an edit, or --space ORG/NAME for the page of a report.")
    from seesaw_cf.sharing import ShareOptions, share_page
    from seesaw_cf.sharing import share as share_edit

    if job.space is not None:
        say(share_page(Path(run), job.space, public=job.public, overwrite=job.overwrite))
        return
    if job.public:
        raise RecordError("share: --public is for --space. A repository is as your account says, expected without it.")
    options = ShareOptions(base_model=job.base_model, editor=job.editor, unit=job.unit)
    say(share_edit(Path(run), str(job.repo), job.form, options, overwrite=job.overwrite))


def _moments(model_name: str, job: ShareJob) -> None:
    from seesaw_cf.editors import load_editor
    from seesaw_cf.editors.locate.fitted import check_tokens
    from seesaw_cf.editors.locate.moments import MomentOptions, second_moments
    from seesaw_cf.models.architectures import model_parts
    from seesaw_cf.models.corpus import corpus_of
    from seesaw_cf.models.load import load_model

    corpus = corpus_of(job.corpus, model_name, job.corpus_limit, 0)
    if corpus is None:
        raise EditError(f"share --moments: {model_name} comes without texts. Give some that it knows with --corpus.")
    if not job.layers and job.editor is None:
        raise RecordError("share --moments: give --editor NAME, or --layers N ...")
    model, tokenizer = load_model(model_name)
    parts = model_parts(model)
    kind = None if job.layers else load_editor(str(job.editor)).config_class.for_model(model)
    layers = job.layers or getattr(kind, "moment_layers", ())
    if not layers:
        raise EditError(f"{job.editor} needs no second moments. Expected rome, memit, emmet or alphaedit.")
    parts.check_layers(layers, "moments")
    how = MomentOptions(job.corpus_limit, seed=0, tokens=job.tokens)
    found = second_moments(parts, tokenizer, sorted(set(layers)), corpus, how)
    check_tokens(found, "moments")
    for layer, moment in found.items():
        say(f"layer {layer}: {moment.n_texts:,} texts, {moment.n_tokens:,} tokens")
    folder = found[layers[0]].file.parent
    say(f"use them with `--moments {shlex.quote(str(folder))}`; the same texts find them without")
    if job.repo is not None:
        from seesaw_cf.sharing.moments import push_moments

        say(push_moments(folder, job.repo, base_model=job.base_model, public=job.public, overwrite=job.overwrite))


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
