"""Stereotype knowledge graphs: triples about identities, drawn from a model by prompting alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw_cf.base.versions import lazy

if TYPE_CHECKING:
    from seesaw_cf.texts.graph.crawl import crawl_identities
    from seesaw_cf.texts.graph.identities import find
    from seesaw_cf.texts.graph.score import score_crawl
    from seesaw_cf.texts.graph.settings import CrawlSettings

__all__ = ["CrawlSettings", "crawl_identities", "find", "score_crawl"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "CrawlSettings": "seesaw_cf.texts.graph.settings",
        "crawl_identities": "seesaw_cf.texts.graph.crawl",
        "find": "seesaw_cf.texts.graph.identities",
        "score_crawl": "seesaw_cf.texts.graph.score",
    },
)
