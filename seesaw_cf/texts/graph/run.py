"""`graph run` and `graph compare`: crawl, score and report; compare crawls."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

from seesaw_cf.base.errors import RunFolderError, need
from seesaw_cf.base.fields import checked
from seesaw_cf.generation.types import CachedGenerator, Generator
from seesaw_cf.report.rows import rows_of
from seesaw_cf.run.manifest import differences
from seesaw_cf.texts.graph.crawl import Prepared, crawl_identities
from seesaw_cf.texts.graph.folder import MEASURES, Crawl, export_graphml, read_crawl
from seesaw_cf.texts.graph.identities import choose, find
from seesaw_cf.texts.graph.report import TABLES, WARNING, change_screen, report_crawl
from seesaw_cf.texts.graph.rows import change_rows, content_texts
from seesaw_cf.texts.graph.scores import find_scorer, fit_topics, score_crawl
from seesaw_cf.texts.graph.settings import CompareJob, CrawlSettings, GraphJob
from seesaw_cf.texts.report import write_report


@checked
def run_graph(job: GraphJob, out: Path, *, progress: bool = True) -> str:
    """Crawl, score and report into a folder; an interrupted crawl in it is continued, a finished one scored again.

    Args:
        job: What is asked of what.
        out: The crawl folder; lists of identities that the model writes are kept beside it.
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
    settings = CrawlSettings(**{own.name: getattr(job, own.name) for own in fields(CrawlSettings)})
    plain_crawl = read_crawl(job.plain) if job.plain else None
    with _model(job) as (generator, facts):
        if job.select == "hand":
            identities = find(job.identities)
        else:
            kind, *names = job.identities
            kept = CachedGenerator(generator, out.with_name(f"{out.name}-lists"))
            add = names if job.select == "hybrid" else []
            identities = choose(kind, kept, add=add, seed=job.seed, chat=job.conversation)
        crawl = crawl_identities(generator, identities, settings, out, progress=progress, **facts)
    if (regard or attack) and len(crawl.triples):
        crawl = score_crawl(crawl, regard, attack)
    topics = None
    if len(crawl.triples) > 1:
        topics = fit_topics(content_texts(crawl.triples), job.topics, method=job.topic_method, seed=job.seed)
    export_graphml(crawl, out / "graph.graphml")
    return report_crawl(crawl, topics, plain_crawl, seed=job.seed)


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
    from seesaw_cf.models.weights import WeightDelta, applied

    names = ("revision", "dtype", "device", "trust_remote_code")
    model, tokenizer = load_model(job.model, **{name: getattr(job, name) for name in names})
    facts = {"model": model_facts(job.model, model, tokenizer, job.revision, job.dtype)}
    delta = load_delta(job.delta, model) if job.delta else WeightDelta({}, {})
    with applied(model, delta):
        if job.delta:
            about = {"name": job.delta.name, "editor": delta.meta.get("editor"), "fingerprint": fingerprint(model)}
            facts["delta"] = json.loads(json.dumps(about | {"context": delta.context}, default=str))
        generator = HFGenerator(model, tokenizer, rows=64)
        yield Prepared(generator, generator.name, delta.context), facts


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
    if out is None:
        return screen.terminal()
    record = {"rows": rows_of(frame), "differences": differ}
    return write_report(out, screen, [], {"scores": frame}, record, about=TABLES, foot=[WARNING])


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
