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

__all__ = ["CompareJob", "CrawlSettings", "GraphJob"]
__all__ += ["compare_graphs", "crawl_identities", "find", "run_graph", "score_crawl"]

_HOME = dict.fromkeys(("CompareJob", "CrawlSettings", "GraphJob"), "seesaw_cf.texts.graph.settings")
_HOME |= dict.fromkeys(("compare_graphs", "run_graph"), "seesaw_cf.texts.graph.run")
_HOME |= {"crawl_identities": "seesaw_cf.texts.graph.crawl", "find": "seesaw_cf.texts.graph.identities"}
__getattr__, __dir__ = lazy(__name__, _HOME | {"score_crawl": "seesaw_cf.texts.graph.scores"})
