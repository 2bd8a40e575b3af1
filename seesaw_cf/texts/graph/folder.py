"""A crawl folder: the manifest, everything the model wrote, the scores of its sentences; and the graph as GraphML."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import pandas as pd

from seesaw_cf.base.checks import shown
from seesaw_cf.base.errors import RecordError, RunFolderError, need
from seesaw_cf.base.files import atomic_path
from seesaw_cf.base.tables import Int32, read_table, schema_of
from seesaw_cf.run.manifest import RunFolder
from seesaw_cf.texts.graph.settings import CrawlSettings

KEPT = "kept"  # verdict on a triple
ASKS_PER_TRIPLE = 10  # most asks of an identity in a run
PROTOCOL = "stereotype graph"
COMPLETED, SCORED = "completions.parquet", "scores.parquet"
MASK = "Some people"
_CONTENTS = 40  # sentences of a class that are scored about every identity of it
MEASURES = ("regard", "attack")
# What XML 1.0 has no characters for.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PLACE = ["kind", "identity", "run", "step", "attempt", "strategy", "predicate", "object", "prompt", "seed"]
_FACTS = ("predicate", "strategy", "run", "step", "attempt", "seed", *MEASURES)


class CompletionRow(TypedDict):
    """A row of `COMPLETIONS`: everything a model wrote, one row per ask.

    kind: the protected class. run: which independent repetition. strategy: "start" (the template of section 2, with a
    start predicate), "object" (Table 1, object diversity: the predicate is given, from an earlier triple) or
    "predicate" (Table 1, predicate diversity: the model chooses it). predicate: what was given, None when the model was
    to choose. verdict: "kept", or why it is not a triple. status: "ok" or why the text is missing.
    """

    kind: str
    identity: str
    run: Int32
    step: Int32
    attempt: Int32
    strategy: str
    predicate: str | None
    prompt: str
    seed: int
    text: str
    finish: str
    status: str
    prompt_tokens: Int32 | None
    new_tokens: Int32 | None
    verdict: str
    found_predicate: str
    found_object: str


class _ScoreRow(TypedDict):
    """A row of `SCORES`: one sentence by one scorer.

    measure: "regard" or "attack". label: "positive", "negative", "neutral" or "other", of a regard. value: 1, -1 or 0
    of a regard, else 0..1; None where the scorer gave nothing, and status says why.
    """

    measure: str
    scorer: str
    sentence: str
    label: str | None
    value: float | None
    status: str


COMPLETIONS = schema_of(CompletionRow)
SCORES = schema_of(_ScoreRow)


@dataclass(frozen=True)
class Crawl:
    """A finished crawl.

    Attributes:
        folder: Where it is.
        manifest: What it was made of.
        name: The model, and the edit when there is one.
        limit: Triples that are enough of an identity in a run.
        seed: Of everything random.
        completions: Columns of `COMPLETIONS`.
        scores: Columns of `SCORES`; none before scoring.
    """

    folder: Path
    manifest: Mapping[str, Any]
    name: str
    limit: int
    seed: int
    completions: pd.DataFrame
    scores: pd.DataFrame

    @property
    def scored(self) -> tuple[str, ...]:
        """The measures that were scored."""
        return tuple(name for name in MEASURES if (self.scores["measure"] == name).any())

    @cached_property
    def triples(self) -> pd.DataFrame:
        """One row per triple: where it came from, its sentence `text`, and its scores.

        Regard is a label, `regard_value` its number.
        """
        frame = self.completions.assign(unit=self.completions.groupby(["identity", "run"], sort=False).ngroup())
        frame = frame[frame["verdict"] == KEPT].sort_values(["unit", "step", "attempt"], kind="stable")
        frame = frame.assign(predicate=frame["found_predicate"], object=frame["found_object"])
        frame = frame.assign(text=frame["identity"] + " " + frame["predicate"] + " " + frame["object"])
        frame = frame[[*_PLACE, "text"]].reset_index(drop=True)
        for measure in self.scored:
            scores = self.scores_of(measure)
            frame[measure] = frame["text"].map(scores["label" if measure == "regard" else "value"])
            frame[f"{measure}_value"] = frame["text"].map(scores["value"])
        return frame

    def scores_of(self, measure: str) -> pd.DataFrame:
        """Return label and value of every sentence that one scorer was asked about, by sentence."""
        return self.scores[self.scores["measure"] == measure].drop_duplicates("sentence").set_index("sentence")

    def counts(self) -> pd.DataFrame:
        """Return what became of each identity in each run: asks, triples, steps without a triple, and how it ended."""
        frame = self.completions.assign(triples=self.completions["verdict"] == KEPT)
        own = frame.groupby(["kind", "identity", "run"], sort=False)
        counts = own.agg(triples=("triples", "sum"), asks=("step", "size"), abandoned=("step", "nunique")).reset_index()
        spent = np.where(counts["asks"] >= ASKS_PER_TRIPLE * self.limit, "budget spent", "gave up")
        status = np.where(counts["triples"] >= self.limit, "complete", spent)
        return counts.assign(abandoned=counts["abandoned"] - counts["triples"], status=status)

    def dropped(self) -> dict[str, int]:
        """Return why completions are no triples, and how many."""
        reasons = self.completions.loc[self.completions["verdict"] != KEPT, "verdict"].value_counts()
        return {str(reason): int(count) for reason, count in reasons.items()}


def exchanged_sentences(crawl: Crawl) -> pd.DataFrame:
    """Return sentences of each class, drawn from its triples, about every identity of the class and about `MASK`.

    Returns:
        kind, identity, content (number of the sentence) and sentence.
    """
    rows = []
    for kind, triples in crawl.triples.groupby("kind", sort=True):
        contents = sorted(set(zip(triples["predicate"], triples["object"])))
        drawn = random.Random(crawl.seed).sample(contents, min(_CONTENTS, len(contents)))
        for name in [MASK, *sorted(triples["identity"].unique())]:
            rows += [(kind, name, at, f"{name} {link} {thing}") for at, (link, thing) in enumerate(drawn)]
    return pd.DataFrame(rows, columns=["kind", "identity", "content", "sentence"])


def read_crawl(folder: Path) -> Crawl:
    """Read a finished crawl.

    Raises:
        RunFolderError: No crawl folder, not finished, or damaged; tells which file and what to do.
    """
    opened = RunFolder.open(folder, "graph run", (COMPLETED,))
    manifest: Mapping[str, Any] = opened.manifest
    try:
        if manifest["protocol"] != PROTOCOL:
            raise RecordError(f"manifest.json is of a {shown(manifest['protocol'])} run")
        edit = manifest["editors"].get("delta")
        name = " + ".join([manifest["model"]["id"], *([edit["name"]] if edit else [])])
        settings = CrawlSettings(triples=manifest["settings"]["triples"], seed=manifest["seed"])
        completions = read_table(opened / COMPLETED, COMPLETIONS).to_pandas()
        scores = read_table(opened / SCORED, SCORES) if (opened / SCORED).exists() else SCORES.empty_table()
        nulls = completions.drop(columns=["predicate", "prompt_tokens", "new_tokens"]).isna().any()
        if nulls.any():
            raise RecordError(f"{COMPLETED}: {nulls.idxmax()} is missing in a row")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        remedy = "Run the same `seesaw-cf graph run` again; it asks only for what is missing."
        raise RunFolderError(f"{folder}: cannot be read as a crawl ({error!r}). {remedy}") from error
    return Crawl(folder, manifest, name, settings.triples, settings.seed, completions, scores.to_pandas())


def export_graphml(crawl: Crawl, file: Path) -> None:
    """Write GraphML, for Gephi, Cytoscape, igraph.

    Identities and objects are nodes, "identity: NAME" and "object: TEXT", as one text can be both; objects that differ
    in case only are one node. Triples are edges with predicate, strategy, run, step, seed, and scores.

    Raises:
        MissingExtraError: networkx is not installed.
        StorageError: The disk is full.
    """
    with need("networkx", extra="stereotypes", what_for="graphs"):
        import networkx as nx
    graph = nx.MultiDiGraph(model=_NOT_XML.sub("\ufffd", crawl.name), crawl=crawl.folder.name)
    for row in crawl.triples.replace(_NOT_XML, "\ufffd", regex=True).to_dict("records"):
        subject, thing = f"identity: {row['identity']}", f"object: {row['object'].casefold()}"
        graph.add_node(subject, label=row["identity"], kind=row["kind"], part="identity")
        if thing not in graph:
            graph.add_node(thing, label=row["object"], kind="", part="object")
        graph.add_edge(subject, thing, **{name: row[name] for name in _FACTS if name in row and pd.notna(row[name])})
    with atomic_path(file) as temporary:
        nx.write_graphml(graph, temporary)
