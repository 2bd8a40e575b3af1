"""The graph as a graph: GraphML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pandas as pd

from seesaw_cf.base.errors import need
from seesaw_cf.base.files import atomic_path
from seesaw_cf.texts.graph.folder import Crawl

# What XML 1.0 has no characters for.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FACTS = ("strategy", "run", "step", "attempt", "seed", "regard", "attack", "regard_masked", "attack_masked")


def export_graphml(crawl: Crawl, file: Path) -> Any:
    """Write GraphML, for Gephi, Cytoscape, igraph, and return the `networkx.MultiDiGraph`.

    Identities and objects are nodes, "identity: NAME" and "object: TEXT", as one text can be both; objects that differ
    in case only are one node. Triples are edges with predicate, strategy, run, step, seed, and scores.

    Raises:
        MissingExtraError: networkx is not installed.
        StorageError: The disk is full.
    """
    with need("networkx", extra="stereotypes", what_for="graphs"):
        import networkx as nx
    graph = nx.MultiDiGraph(model=crawl.name, crawl=crawl.folder.name)
    for row in crawl.rows.to_dict("records"):
        names = {name: _NOT_XML.sub("\ufffd", row[name]) for name in ("identity", "predicate", "object")}
        subject, thing = f"identity: {names['identity']}", f"object: {names['object'].casefold()}"
        graph.add_node(subject, label=names["identity"], kind=row["kind"], part="identity")
        if thing not in graph:
            graph.add_node(thing, label=names["object"], kind="", part="object")
        facts = {name: row[name] for name in _FACTS if name in row and pd.notna(row[name])}
        graph.add_edge(subject, thing, predicate=names["predicate"], **facts)
    with atomic_path(file) as temporary:
        nx.write_graphml(graph, temporary)
    return graph
