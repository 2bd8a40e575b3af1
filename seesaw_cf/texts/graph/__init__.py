"""Stereotype knowledge graphs: triples about identities, drawn from a model by prompting alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw_cf.base.system import lazy

if TYPE_CHECKING:
    from seesaw_cf.texts.graph.crawl import crawl_identities
    from seesaw_cf.texts.graph.identities import find
    from seesaw_cf.texts.graph.run import compare_graphs, run_graph
    from seesaw_cf.texts.graph.scores import score_crawl
    from seesaw_cf.texts.graph.settings import CompareJob, CrawlSettings, GraphJob

__all__ = [
    "CompareJob",
    "CrawlSettings",
    "GraphJob",
    "compare_graphs",
    "crawl_identities",
    "find",
    "run_graph",
    "score_crawl",
]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "CompareJob": "seesaw_cf.texts.graph.settings",
        "CrawlSettings": "seesaw_cf.texts.graph.settings",
        "GraphJob": "seesaw_cf.texts.graph.settings",
        "compare_graphs": "seesaw_cf.texts.graph.run",
        "crawl_identities": "seesaw_cf.texts.graph.crawl",
        "find": "seesaw_cf.texts.graph.identities",
        "run_graph": "seesaw_cf.texts.graph.run",
        "score_crawl": "seesaw_cf.texts.graph.scores",
    },
)
