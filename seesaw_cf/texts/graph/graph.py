"""The graph as a graph: GraphML and JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd

from seesaw_cf.base.errors import need
from seesaw_cf.base.files import atomic_path, write_text
from seesaw_cf.texts.graph.folder import Crawl

# What XML 1.0 has no characters for.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def to_graph(crawl: Crawl) -> Any:
    """Return a `networkx.MultiDiGraph` with identities and objects as nodes, triples as edges with their provenance.

    Nodes are named "identity: NAME" and "object: TEXT", as one text can be both. Objects that differ in case only are
    one node. Edges carry predicate, strategy, run, step, seed, and the scores where there are any.

    Raises:
        MissingExtraError: networkx is not installed.
    """
    with need("networkx", extra="stereotypes", what_for="graphs"):
        import networkx as nx
    graph = nx.MultiDiGraph(model=crawl.name, crawl=crawl.folder.name)
    for row in crawl.rows.to_dict("records"):
        subject, thing = f"identity: {_xml(row['identity'])}", f"object: {_xml(row['object'].casefold())}"
        graph.add_node(subject, label=_xml(row["identity"]), kind=row["kind"], part="identity")
        if thing not in graph:
            graph.add_node(thing, label=_xml(row["object"]), kind="", part="object")
        names = ("strategy", "run", "step", "attempt", "seed", "regard", "attack", "regard_masked", "attack_masked")
        facts = {name: row[name] for name in names if name in row and pd.notna(row[name])}
        graph.add_edge(subject, thing, predicate=_xml(row["predicate"]), **facts)
    return graph


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def export_graphml(crawl: Crawl, file: Path) -> None:
    """Write GraphML, for Gephi, Cytoscape, igraph.

    Raises:
        StorageError: The disk is full.
    """
    graph = to_graph(crawl)
    import networkx as nx

    with atomic_path(file) as temporary:
        nx.write_graphml(graph, temporary)


def export_json(crawl: Crawl, file: Path) -> None:
    """Write networkx's node-link JSON, with the crawl's manifest and count next to the graph.

    Raises:
        StorageError: The disk is full.
    """
    graph = to_graph(crawl)
    import networkx as nx

    linked = nx.node_link_data(graph, edges="edges")
    whole = {**linked, "manifest": crawl.manifest, "counts": crawl.counts}
    write_text(file, json.dumps(whole, ensure_ascii=False, default=lambda value: value.item()) + "\n")
