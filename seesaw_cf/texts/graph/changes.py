"""What an edit did to the graph: two crawls with common random numbers, identity by identity."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.errors import RunFolderError
from seesaw_cf.base.terminal import quantity
from seesaw_cf.base.types import JsonObject, TableRow
from seesaw_cf.effects.regard import attack_summary, overall_regard, scorer_bias
from seesaw_cf.effects.topics import MIN_TRIPLES, topic_disparity
from seesaw_cf.stats import adjust_families, clustered_mean
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.stats.plain import as_json
from seesaw_cf.texts.graph.folder import Crawl, Facts
from seesaw_cf.texts.graph.score import VALUE
from seesaw_cf.texts.graph.topics import Topics, fit_topics

# The numbers of one scored crawl: what tables, pictures and comparisons are made of.

ClassNumbers = Mapping[str, Any]
"""What was measured of one class or identity, as a metric's plain JSON record."""


def clusters(frame: pd.DataFrame) -> list[int] | None:
    """Return the run of every triple when there are enough runs to cluster by, else None."""
    return frame["run"].tolist() if frame["run"].nunique() >= MIN_EFFECTIVE else None


def content_texts(triples: pd.DataFrame) -> list[str]:
    """Return what topics are made of: predicate and object, without the identity."""
    return [f"{p} {o}" for p, o in zip(triples["predicate"], triples["object"])]


_METRICS: Mapping[str, Callable[..., object]] = {
    "regard": overall_regard,
    "regard_masked": overall_regard,
    "attack": attack_summary,
    "attack_masked": attack_summary,
}


def regard_and_attack(crawl: Crawl, draws: int = 2000) -> dict[str, ClassNumbers]:
    """Return class -> what was measured of its identities.

    Returns:
        Per class: `regard`, `regard_masked` (see `overall_regard`), `attack`, `attack_masked` (see `attack_summary`),
        `regard_scorer`, `attack_scorer` (see `scorer_bias`); only what was scored.

    Raises:
        RunFolderError: The crawl has not been scored.
    """
    frame = crawl.scored()
    out: dict[str, ClassNumbers] = {}
    for kind, rows in frame.groupby("kind", sort=True):
        numbers: dict[str, ClassNumbers] = {}
        for column, measure in _METRICS.items():
            if rows[column].notna().any():
                values = [None if pd.isna(value) else value for value in rows[column]]
                numbers[column] = as_json(measure)(rows["identity"].tolist(), values, clusters(rows), draws=draws)
        out[str(kind)] = numbers | _scorers(crawl, str(kind))
    return out


def _scorers(crawl: Crawl, kind: str) -> dict[str, ClassNumbers]:
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
) -> dict[str, ClassNumbers]:
    """Return class -> `topic_disparity` of its identities.

    Args:
        triples: Rows of a crawl.
        topics: Fitted on `content_texts(triples)`.
        min_triples: Fewest triples for which an identity's shares are shown.
        draws, seed: Of the bootstrap.
    """
    frame = triples.assign(topic=topics.topic)
    return {
        str(kind): as_json(topic_disparity)(
            rows["identity"].tolist(),
            rows["topic"].tolist(),
            clusters(rows),
            min_triples=min_triples,
            draws=draws,
            seed=seed,
        )
        for kind, rows in frame.groupby("kind", sort=True)
    }


ALL = "all identities"
COLUMNS = ("against", "measure", "identity", "base", "edited", "change", "low", "high", "p", "p_adjusted", "n", "note")


def differences(a: Facts, b: Facts) -> list[str]:
    """Return what decides which triples are found and differs between two manifests, edit aside: one line each."""
    reasons = []
    for path in ("model", "data", "settings", "seed", "protocol"):
        left, right = _flat({path: a.get(path)}), _flat({path: b.get(path)})
        for name in sorted({*left, *right}):
            if left.get(name) != right.get(name):
                reasons.append(f"{name}: {left.get(name)!r} and {right.get(name)!r}")
    return reasons


def _flat(value: object, path: str = "") -> JsonObject:
    if isinstance(value, Mapping):
        parts = [_flat(item, f"{path}.{key}" if path else str(key)) for key, item in value.items()]
        return {name: item for part in parts for name, item in part.items()}
    return {path: value}


def check_comparable(base: Crawl, others: Mapping[str, Crawl], force: bool = False) -> list[str]:
    """Refuse to compare crawls that were made differently.

    Args:
        base: The crawl to compare with.
        others: What it is -> crawl.
        force: Compare all the same.

    Returns:
        The differences, one line each; to be shown with the results.

    Raises:
        RunFolderError: There are differences, and `force` is not given.
    """
    lines = [
        f"{base.folder.name} and {crawl.folder.name} ({what}) differ in {line}"
        for what, crawl in others.items()
        for line in differences(base.manifest, crawl.manifest)
    ]
    if lines and not force:
        raise RunFolderError(
            "these crawls were not made alike, so that their difference is not the edit's:\n  "
            + "\n  ".join(lines)
            + "\nCrawl again with the same settings, or compare them all the same with --force."
        )
    return lines


def changes(
    base: Crawl,
    edited: Crawl,
    controls: Mapping[str, Crawl] | None = None,
    *,
    topics: Topics | None = None,
    n_topics: int = 8,
    permutations: int = 500,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the change in regard, attack, topic mix and graph overlap per identity, and against control edits.

    Regard and attack are differences of means. The base crawl cancels in a difference of differences, so "against a
    control" is the edited crawl minus the control's crawl. Rows that share a run (five runs or more) or, with fewer, a
    step of one run share their random numbers and are one cluster.

    Args:
        base: Crawl of the unedited model.
        edited: Crawl of the edited model, with the same settings.
        controls: Name -> crawl of a control edit, such as "identity edit", "random edit".
        topics: Fitted on the triples of base, edited and controls, in this order; fitted here when None.
        n_topics: How many are fitted.
        permutations: Shuffles of the test of the topic mix.
        seed: Of topics and shuffles.

    Returns:
        Columns `COLUMNS`; `against` is "base" or a control, p_adjusted is Holm over the identities of one measure and
        one comparison. Measures: "regard" (-1..1), "attack" (0..1), "topics" (Jensen-Shannon divergence of the topic
        mixes in nats; change = divergence minus what shuffling phases gives) and "overlap" (Dice: share of triples
        of both graphs that both have; 1 = the same graph; no test).
    """
    crawls = {"base": base, "edited": edited, **(controls or {})}
    frames = {name: _rows(crawl) for name, crawl in crawls.items()}
    texts = [text for frame in frames.values() for text in content_texts(frame)]
    topic = iter((topics or fit_topics(texts, n_topics, seed=seed)).topic)
    for frame in frames.values():
        frame["topic"] = list(islice(topic, len(frame)))
    rows = []
    for against in [name for name in frames if name != "edited"]:
        rows += _against(against, frames[against], frames["edited"], permutations, seed)
    table = adjust_families(pd.DataFrame(rows), ["against", "measure", "scope"])
    return table[list(COLUMNS)]


def _rows(crawl: Crawl) -> pd.DataFrame:
    frame = crawl.rows.copy()
    regard = frame["regard"] if "regard" in frame else pd.Series(None, frame.index, dtype=object)
    frame["regard_value"] = [VALUE.get(label, np.nan) for label in regard]
    if "attack" not in frame:
        frame["attack"] = np.nan
    frame["key"] = list(zip(frame["run"], frame["predicate"].str.casefold(), frame["object"].str.casefold()))
    return frame


def _against(against: str, a: pd.DataFrame, b: pd.DataFrame, permutations: int, seed: int) -> list[TableRow]:
    out = []
    for name in [*sorted({*a["identity"], *b["identity"]}), ALL]:
        left, right = (frame if name == ALL else frame[frame["identity"] == name] for frame in (a, b))
        pooled = pd.concat([left.assign(after=False), right.assign(after=True)], ignore_index=True)
        fixed = {"against": against, "identity": name, "scope": name == ALL}
        for measure, column in (("regard", "regard_value"), ("attack", "attack")):
            if len(scored := pooled[pooled[column].notna()]):
                out.append(fixed | {"measure": measure} | _difference(scored, column, name == ALL))
        out.append(fixed | {"measure": "topics"} | _topic_change(pooled, permutations, seed))
        out.append(fixed | {"measure": "overlap"} | _overlap(pooled, left, right, name == ALL))
    return out


def _clusters(pooled: pd.DataFrame, everybody: bool) -> tuple[dict[str, NDArray[np.intp]], str]:
    """Return the clusters of triples that share random numbers, and a note when there are few runs.

    A cluster is a run over all identities or, with few runs, a step of one identity's run; with `everybody` also an
    identity.
    """
    runs = pooled["run"].nunique()
    enough = runs >= MIN_EFFECTIVE
    codes = {"run": _codes(pooled, ["run"])} if enough else {"step": _codes(pooled, ["identity", "run", "step"])}
    if everybody:
        codes["identity"] = _codes(pooled, ["identity"])
    note = f"{quantity(runs, 'run')}: steps are taken for independent; use five runs or more"
    return codes, "" if enough else note


def _codes(pooled: pd.DataFrame, columns: Sequence[str]) -> NDArray[np.intp]:
    return pooled.groupby(list(columns), sort=False).ngroup().to_numpy().astype(np.intp)


def _nothing(note: str, n: int) -> TableRow:
    return dict.fromkeys(("base", "edited", "change", "low", "high", "p"), float("nan")) | {"n": n, "note": note}


def _difference(pooled: pd.DataFrame, column: str, everybody: bool) -> TableRow:
    after = pooled["after"].to_numpy(bool)
    if after.all() or not after.any():
        return _nothing("no triples on one side", len(pooled))
    values = pooled[column].to_numpy(np.float64)
    parts = [part / part.sum() for part in (after.astype(np.float64), (~after).astype(np.float64))]
    codes, note = _clusters(pooled, everybody)
    mean = clustered_mean(values, parts, codes)
    sides = {"base": float(values[~after].mean()), "edited": float(values[after].mean()), "change": mean.value}
    notes = {"note": "; ".join(filter(None, (mean.note, note)))}
    return sides | mean.columns("low", "high", "p", "n") | notes


def _overlap(pooled: pd.DataFrame, left: pd.DataFrame, right: pd.DataFrame, everybody: bool) -> TableRow:
    """Return Dice's coefficient, as the mean over the triples of both graphs of "the other one also has it"."""
    if pooled.empty:
        return _nothing("no triples", 0)
    have = [set(zip(frame["identity"], frame["key"])) for frame in (left, right)]
    own = zip(pooled["identity"], pooled["key"], pooled["after"])
    shared = np.array([(name, key) in have[not after] for name, key, after in own], dtype=np.float64)
    codes, note = _clusters(pooled, everybody)
    mean = clustered_mean(shared, [np.full(len(shared), 1 / len(shared))], codes)
    row = _nothing("; ".join(filter(None, (mean.note, note))), mean.n)
    return row | {"change": mean.value, "low": mean.low, "high": mean.high}


def _topic_change(pooled: pd.DataFrame, permutations: int, seed: int) -> TableRow:
    """Return the Jensen-Shannon divergence of two topic mixes, and how large it is by chance.

    For chance, the two sides of whole clusters are swapped.
    """
    pooled = pooled[pooled["topic"] >= 0]
    after = pooled["after"].to_numpy(bool)
    if after.all() or not after.any():
        return _nothing("no topics on one side", len(pooled))
    codes, few = _clusters(pooled, everybody=False)
    (cluster,) = codes.values()
    topic = pd.factorize(pooled["topic"])[0]
    cells = np.zeros((int(cluster.max()) + 1, 2, int(topic.max()) + 1))
    np.add.at(cells, (cluster, after.astype(int), topic), 1)
    value = _divergence(cells.sum(axis=0))
    rng = np.random.default_rng(seed)
    permuted = np.empty(permutations)
    for number in range(permutations):
        swapped = np.where((rng.random(len(cells)) < 0.5)[:, None, None], cells[:, ::-1], cells)
        permuted[number] = _divergence(swapped.sum(axis=0))
    p = (1 + int((permuted >= value - 1e-12).sum())) / (1 + permutations)
    low, high = np.quantile(permuted, [0.025, 0.975])
    note = f"interval: less the middle 95 % of chance, {low:.3f} to {high:.3f} ({permutations} swaps of the sides)"
    note = "; ".join(filter(None, (note, few)))
    chance = float(permuted.mean())
    sides = {"base": chance, "edited": value, "change": value - chance}
    return _nothing(note, len(pooled)) | sides | {"low": value - float(high), "high": value - float(low), "p": p}


def _divergence(counts: NDArray[np.float64]) -> float:
    """Return the Jensen-Shannon divergence in nats of two rows of counts; NaN when a row is empty."""
    if (counts.sum(axis=1) == 0).any():
        return float("nan")
    shares = counts / counts.sum(axis=1, keepdims=True)
    middle = shares.mean(axis=0)
    safe = np.where(shares > 0, shares / np.where(middle > 0, middle, 1), 1)
    return float((shares * np.log(safe)).sum() / 2)
