"""The numbers of one scored crawl: what tables, pictures and comparisons are made of."""

from __future__ import annotations

from typing import Any

import pandas as pd

from seesaw_cf.effects.regard import attack_summary, overall_regard
from seesaw_cf.effects.scorers import scorer_bias
from seesaw_cf.effects.topics import MIN_TRIPLES, topic_disparity
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.plain import as_json
from seesaw_cf.stereotypes.folder import Crawl
from seesaw_cf.stereotypes.topics import Topics

Found = dict[str, Any]  # what was measured of one class, in plain JSON types


def clusters(frame: pd.DataFrame) -> pd.Series | None:
    """The run of every triple when there are enough runs to cluster by, else None."""
    return frame["run"] if frame["run"].nunique() >= MIN_EFFECTIVE else None


def content_texts(triples: pd.DataFrame) -> list[str]:
    """What topics are made of: predicate and object, without the identity."""
    return [f"{p} {o}" for p, o in zip(triples["predicate"], triples["object"])]


def regard_and_attack(crawl: Crawl, draws: int = 2000) -> dict[str, Found]:
    """Class -> what was measured of its identities.

    Returns:
        Per class: `regard`, `regard_masked` (see `overall_regard`), `attack`, `attack_masked` (see `attack_summary`),
        `regard_scorer`, `attack_scorer` (see `scorer_bias`); only what was scored.

    Raises:
        RunFolderError: The crawl has not been scored.
    """
    frame, out = crawl.scored(), {}
    for kind, rows in frame.groupby("kind", sort=True):
        names, group = rows["identity"].tolist(), _listed(clusters(rows))
        numbers: Found = {}
        for column in ("regard", "regard_masked"):
            if rows[column].notna().any():
                numbers[column] = as_json(overall_regard)(names, _or_none(rows[column]), group, draws=draws)
        for column in ("attack", "attack_masked"):
            if rows[column].notna().any():
                numbers[column] = as_json(attack_summary)(names, _or_none(rows[column]), group, draws=draws)
        out[str(kind)] = numbers | _scorers(crawl, str(kind))
    return out


def _or_none(column: pd.Series) -> list[Any]:
    return [None if pd.isna(value) else value for value in column]


def _scorers(crawl: Crawl, kind: str) -> Found:
    bias = crawl.bias if crawl.bias is not None else pd.DataFrame(columns=["kind", "scorer"])
    parts = {name: bias[(bias["kind"] == kind) & (bias["scorer"] == name)] for name in ("regard", "attack")}
    return {
        f"{name}_scorer": as_json(scorer_bias)(
            rows["identity"].tolist(), rows["content"].tolist(), rows["change"].tolist()
        )
        for name, rows in parts.items()
        if len(rows)
    }


def topic_results(
    triples: pd.DataFrame, topics: Topics, *, min_triples: int = MIN_TRIPLES, draws: int = 1000, seed: int = 0
) -> dict[str, Found]:
    """Class -> `topic_disparity` of its identities.

    Args:
        triples: Rows of a crawl.
        topics: Fitted on `content_texts(triples)`.
        min_triples: Fewest triples of an identity whose shares are shown.
        draws, seed: Of the bootstrap.
    """
    frame = triples.assign(topic=topics.topic)
    return {
        str(kind): as_json(topic_disparity)(
            rows["identity"].tolist(),
            rows["topic"].tolist(),
            _listed(clusters(rows)),
            min_triples=min_triples,
            draws=draws,
            seed=seed,
        )
        for kind, rows in frame.groupby("kind", sort=True)
    }


def _listed(column: pd.Series | None) -> list[int] | None:
    return None if column is None else column.tolist()
