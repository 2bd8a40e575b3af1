"""Stereotype knowledge graphs: triples about identities, drawn from a model by prompting alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seesaw_cf.exports import lazy

if TYPE_CHECKING:
    from seesaw_cf.stereotypes.crawl import crawl_identities
    from seesaw_cf.stereotypes.identities import find
    from seesaw_cf.stereotypes.score import score_crawl
    from seesaw_cf.stereotypes.settings import CrawlSettings

__all__ = ["CrawlSettings", "crawl_identities", "find", "score_crawl"]

__getattr__, __dir__ = lazy(
    __name__,
    {
        "CrawlSettings": "seesaw_cf.stereotypes.settings",
        "crawl_identities": "seesaw_cf.stereotypes.crawl",
        "find": "seesaw_cf.stereotypes.identities",
        "score_crawl": "seesaw_cf.stereotypes.score",
    },
)
