"""`graph run` and `graph compare`: crawl, score and report; compare crawls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seesaw_cf.base.errors import RecordError, RunFolderError, need
from seesaw_cf.base.fields import checked
from seesaw_cf.base.files import write_text
from seesaw_cf.base.text import read_json
from seesaw_cf.generation.types import Ask, Completion, Generator, Sampling
from seesaw_cf.run.manifest import differences
from seesaw_cf.texts.graph.crawl import crawl_identities
from seesaw_cf.texts.graph.folder import MEASURES, Crawl, export_graphml, read_crawl
from seesaw_cf.texts.graph.identities import Identity, choose, find
from seesaw_cf.texts.graph.report import change_screen, report_crawl, write_pages
from seesaw_cf.texts.graph.rows import change_rows, content_texts
from seesaw_cf.texts.graph.scores import find_scorer, score_crawl
from seesaw_cf.texts.graph.settings import CompareJob, GraphJob
from seesaw_cf.texts.graph.topics import fit_topics


@checked
def run_graph(job: GraphJob, out: Path, *, progress: bool = True) -> str:
    """Crawl, score and report into a folder; an interrupted crawl in it is continued, a finished one scored again.

    Args:
        job: What is asked of what.
        out: The crawl folder.
        progress: Show a bar.

    Returns:
        The first screen as text.

    Raises:
        SeesawError: See `crawl_identities`, `find_scorer`, `read_crawl`.
    """
    with need("networkx or scikit-learn", extra="stereotypes", what_for="graphs"):
        import networkx  # noqa: F401
        import sklearn  # noqa: F401
    device = "cpu" if job.device == "auto" else job.device
    regard, attack = (find_scorer(name, getattr(job, name), device) for name in MEASURES)
    settings = job.crawl_settings()
    plain_crawl = read_crawl(job.plain) if job.plain else None
    with _model(job) as (generator, facts):
        identities = _identities(job, out, generator)
        crawl = crawl_identities(generator, identities, settings, out, progress=progress, **facts)
    if (regard or attack) and len(crawl.triples):
        crawl = score_crawl(crawl, regard, attack)
    topics = None
    if len(crawl.triples) > 1:
        topics = fit_topics(content_texts(crawl.triples), job.topics, method=job.topic_method, seed=job.seed)
    export_graphml(crawl, out / "graph.graphml")
    return report_crawl(crawl, topics, plain_crawl, seed=job.seed)


@dataclass(frozen=True)
class _Edited:
    """Generator whose weights are edited, and that puts the text of an in-context edit before every prompt."""

    inner: Generator
    context: str
    name: str

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        from seesaw_cf.generation.hf import with_context

        return self.inner.generate([with_context(ask, self.context) for ask in asks], sampling)


@contextmanager
def _model(job: GraphJob) -> Iterator[tuple[Generator, dict[str, Any]]]:
    """Yield what writes, edited while the block runs when a delta is given, and facts for the manifest."""
    if job.base_url:
        from seesaw_cf.generation.api import OpenAIGenerator

        server = OpenAIGenerator(job.base_url, job.model, api_key_env=job.key_env)
        server.check()
        yield server, {}
        return
    from seesaw_cf.generation.hf import HFGenerator
    from seesaw_cf.models.delta_files import load_delta
    from seesaw_cf.models.identity import fingerprint, model_facts
    from seesaw_cf.models.load import load_model
    from seesaw_cf.models.weights import applied

    names = ("revision", "dtype", "device", "trust_remote_code")
    model, tokenizer = load_model(job.model, **{name: getattr(job, name) for name in names})
    facts = {"model": model_facts(job.model, model, tokenizer, job.revision, job.dtype)}
    generator = HFGenerator(model, tokenizer, rows=64)
    if job.delta is None:
        yield generator, facts
        return
    delta = load_delta(job.delta, model)
    with applied(model, delta):
        about = {"name": job.delta.name, "editor": delta.meta.get("editor"), "fingerprint": fingerprint(model)}
        about = json.loads(json.dumps(about | {"context": delta.context}, default=str))
        yield _Edited(generator, delta.context, f"{job.model} + {job.delta.name}"), facts | {"delta": about}


def _identities(job: GraphJob, out: Path, generator: Generator) -> tuple[Identity, ...]:
    """Return the identities named by hand, or those that the model lists; its lists are kept to continue the crawl."""
    if job.select == "hand":
        return find(job.identities)
    file = out.parent / f"{out.name}-selection.json"
    if file.exists():
        try:
            return tuple(Identity(*row) for row in read_json(file)["identities"])
        except (ValueError, KeyError, TypeError) as error:
            raise RecordError(f"{file}: no selection of identities ({error!r}). Delete it to ask again.") from error
    kind, *names = job.identities
    chosen = choose(kind, job.select, generator, add=names, seed=job.seed, chat=job.conversation)
    lists = [completion.text for completion in chosen.completions]
    identities = [[row.name, row.kind] for row in chosen.identities]
    record = {"identities": identities, "counts": chosen.counts, "lists": lists}
    write_text(file, json.dumps(record, ensure_ascii=False, indent=1) + "\n")
    return chosen.identities


@checked
def compare_graphs(job: CompareJob, out: Path | None = None) -> str:
    """Compare the crawls of a model before and after an edit, beside those of control edits.

    Args:
        job: Which crawls, and how.
        out: Folder of the report; none is written when None.

    Returns:
        The first screen as text.

    Raises:
        SeesawError: A folder is no finished crawl, or they were made differently.
    """
    folders = {"identity edit": job.identity_control, "random edit": job.random_control}
    controls = {name: read_crawl(path) for name, path in folders.items() if path}
    base, edited = read_crawl(job.base), read_crawl(job.edited)
    differ = check_comparable(base, {"edited": edited, **controls}, job.force)
    texts = [text for crawl in (base, edited, *controls.values()) for text in content_texts(crawl.triples)]
    topics = fit_topics(texts, job.topics, method=job.topic_method, seed=job.seed)
    frame = change_rows(base, edited, controls, topics=topics, seed=job.seed)
    screen = change_screen(base, edited, frame, differ)
    return (
        screen.terminal() if out is None else write_pages(out, screen, [], {"scores": frame}, {"differences": differ})
    )


def check_comparable(base: Crawl, others: Mapping[str, Crawl], force: bool = False) -> list[str]:
    """Refuse to compare crawls that were made differently, edits aside.

    Args:
        base: The crawl to compare with.
        others: What it is -> crawl.
        force: Compare all the same.

    Returns:
        The differences, one line each; to be shown with the results.

    Raises:
        RunFolderError: There are differences, and `force` is not given.
    """
    parts = ("model", "data", "settings", "seed")
    of_base, *of_others = ({name: crawl.manifest.get(name) for name in parts} for crawl in (base, *others.values()))
    lines = [
        f"{base.folder.name} and {crawl.folder.name} ({what}) differ in {place}: {left!r} and {right!r}"
        for (what, crawl), manifest in zip(others.items(), of_others, strict=True)
        for place, left, right in differences(of_base, manifest)
    ]
    if lines and not force:
        raise RunFolderError(
            "these crawls were not made alike, so that their difference is not the edit's:\n  "
            + "\n  ".join(lines)
            + "\nCrawl again with the same settings, or compare them all the same with --force."
        )
    return lines
