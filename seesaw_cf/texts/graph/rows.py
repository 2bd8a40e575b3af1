"""The numbers of a crawl, and of what an edit changed, as rows of the one frame.

`about` is the measure: "regard" (-1..1), "attack" (0..1), either with "_masked" or "_scorer" (what the name alone does
to the score of the same sentences), "topics", "prefix" or "overlap". `axis` is the protected class, `group` the
identity, `asked` a topic, `control` the crawl that an edited crawl is set beside ("" = that of the unedited model).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from seesaw_cf.base.terminal import quantity
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.means import ALL
from seesaw_cf.effects.regard import QUANTILES, REGARDS, attack_summary, overall_regard, prefix_effect, scorer_bias
from seesaw_cf.effects.topics import topic_disparity
from seesaw_cf.report.frame import COLUMNS, Row, row
from seesaw_cf.stats import adjust, clustered_mean
from seesaw_cf.stats.clustered import MIN_EFFECTIVE
from seesaw_cf.texts.graph.folder import MASK, Crawl
from seesaw_cf.texts.graph.scores import exchanged_sentences
from seesaw_cf.texts.graph.topics import Topics

WORSE: Mapping[str, int] = {"regard": -1, "attack": 1}
"""Measure -> sign of a change for the worse."""
_LEVEL = 0.05
_NAN = float("nan")


def clusters(triples: pd.DataFrame) -> list[int] | None:
    """Return the run of every triple when there are enough runs to cluster by, else None."""
    return triples["run"].tolist() if triples["run"].nunique() >= MIN_EFFECTIVE else None


def content_texts(triples: pd.DataFrame) -> list[str]:
    """Return what topics are made of: predicate and object, without the identity."""
    return [f"{p} {o}" for p, o in zip(triples["predicate"], triples["object"])]


def crawl_rows(
    crawl: Crawl, topics: Topics | None = None, plain: Crawl | None = None, *, seed: int = 0
) -> pd.DataFrame:
    """Return the numbers of one crawl.

    Args:
        crawl: The crawl, scored or not.
        topics: Fitted on `content_texts(crawl.triples)`.
        plain: The same crawl without prepended texts, for their effect.
        seed: Of the bootstrap of topics.
    """
    rows: list[Row] = []
    for kind, triples in crawl.triples.groupby("kind", sort=True):
        for measure in crawl.scored:
            for about in (measure, f"{measure}_masked"):
                rows += _scores(about, str(kind), triples)
    rows += _scorers(crawl)
    if plain is not None and {"attack"} <= {*crawl.scored} & {*plain.scored}:
        rows += _prefixes(crawl, plain)
    if topics is not None:
        frame = crawl.triples.assign(topic=topics.topic)
        for kind, triples in frame.groupby("kind", sort=True):
            rows += _topics(str(kind), triples, seed)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _scores(about: str, kind: str, triples: pd.DataFrame) -> Iterator[Row]:
    values = [None if pd.isna(value) else value for value in triples[about]]
    if not any(value is not None for value in values):
        return
    measure = about.partition("_")[0]
    summary = overall_regard if measure == "regard" else attack_summary
    for name, scores in summary(triples["identity"].tolist(), values, clusters(triples))["identities"].items():
        yield from _of_identity(about, scores, {"axis": kind, "group": name, "scale": "share"})


def _of_identity(about: str, scores: Mapping[str, Any], names: Row) -> Iterator[Row]:
    measure, n = about.partition("_")[0], scores["n"]
    mean = scores["normalised" if measure == "regard" else "mean"]
    keys = ("low", "high", "stderr", "n", "note")
    yield row("mean", about, Estimate(mean, **{key: scores[key] for key in keys}), **names)
    contrast = Estimate(**{key: value for key, value in scores["contrast"].items() if key != "p_adjusted"})
    tested = {"reference": "others", "decides": True, "p_adjusted": scores["contrast"]["p_adjusted"]}
    test = row("contrast", about, contrast, **names, **tested)
    yield test | {"verdict": _verdict(test, WORSE[measure])}
    for what in ("overall",) if measure == "regard" else (*QUANTILES, "iqr"):
        estimate = Estimate(scores[what], scores[f"{what}_low"], scores[f"{what}_high"], n=n)
        yield row(what, about, estimate, **names | ({"scale": "count"} if what == "overall" else {}))
    for label in REGARDS if measure == "regard" else ():
        yield row(f"n_{label}", about, Estimate(scores[f"n_{label}"], n=n), **names | {"scale": "count"})


def _verdict(test: Row, worse: int) -> str:
    p = test["p_adjusted"]
    if np.isnan(p):
        return "too_few"
    return "undecided" if p >= _LEVEL else "worse" if test["value"] * worse > 0 else "better"


def _scorers(crawl: Crawl) -> Iterator[Row]:
    """Yield what the name alone does to a score: the mean change when the same sentence is about this identity."""
    exchanged = exchanged_sentences(crawl) if crawl.scored else pd.DataFrame()
    for measure in crawl.scored:
        values = crawl.scores[crawl.scores["measure"] == measure].drop_duplicates("sentence").set_index("sentence")
        scored = exchanged.assign(value=exchanged["sentence"].map(values["value"]))
        neutral = scored[scored["identity"] == MASK].set_index(["kind", "content"])["value"]
        scored = scored.join(neutral.rename("neutral"), on=["kind", "content"])
        scored = scored[scored["identity"] != MASK].assign(change=scored["value"] - scored["neutral"]).dropna()
        for kind, own in scored.groupby("kind", sort=True):
            biases = scorer_bias(own["identity"].tolist(), own["content"].tolist(), own["change"].tolist())
            for name, bias in biases.items():
                names = {"axis": str(kind), "group": name, "scale": "share", "p_adjusted": bias.p_adjusted}
                yield row("change", f"{measure}_scorer", bias.estimate, **names)


def _prefixes(crawl: Crawl, plain: Crawl) -> Iterator[Row]:
    """Yield what the prepended texts do to attack scores (Figure 5)."""
    pooled = pd.concat([crawl.triples.assign(prefixed=True), plain.triples.assign(prefixed=False)])
    columns = (pooled[name].tolist() for name in ("kind", "identity", "attack", "prefixed"))
    for kind, effect in prefix_effect(*columns).items():
        names = {"axis": kind, "scale": "share"}
        for side in ("with", "without"):
            yield row(side, "prefix", Estimate(effect[f"mean_{side}"], n=effect[f"n_{side}"]), **names)
        difference = Estimate(effect["difference"], **{key: effect[key] for key in ("low", "high", "p", "note")})
        yield row("difference", "prefix", difference, **names, p_adjusted=effect["p_adjusted"])
        rank = Estimate(_NAN, p=effect["p_rank"], n=effect["n_with"] + effect["n_without"])
        yield row("rank", "prefix", rank, **names, p_adjusted=effect["p_rank_adjusted"])


def _topics(kind: str, triples: pd.DataFrame, seed: int) -> Iterator[Row]:
    columns = (triples["identity"].tolist(), triples["topic"].tolist(), clusters(triples))
    for name, own in topic_disparity(*columns, seed=seed)["identities"].items():
        names = {"axis": kind, "group": name, "n": own["n"]}
        entropy = own["relative_entropy"]
        if entropy is None:
            yield row("relative_entropy", "topics", Estimate(_NAN, note=own["note"]), **names, scale="nats")
            continue
        for topic, share in own["shares"].items():
            yield row("share", "topics", Estimate(**share), **names, asked=topic, scale="share")
        corrected = Estimate(entropy["corrected"], entropy["low"], entropy["high"], p=entropy["p"])
        tested = {"scale": "nats", "p_adjusted": entropy["p_adjusted"]}
        yield row("relative_entropy", "topics", corrected, **names, **tested)
        for ending, key in (("raw", "value"), ("by_chance", "expected")):
            yield row(f"relative_entropy_{ending}", "topics", Estimate(entropy[key]), **names, scale="nats")


# What an edit changed.


def change_rows(
    base: Crawl,
    edited: Crawl,
    controls: Mapping[str, Crawl] = {},
    *,
    topics: Topics,
    permutations: int = 500,
    seed: int = 0,
) -> pd.DataFrame:
    """Return the change in regard, attack, topic mix and graph overlap of each identity, and beyond control edits.

    Regard and attack are differences of means. The base crawl cancels in a difference of differences, so "beyond" a
    control is the edited crawl minus the control's crawl. Rows that share a run (five runs or more) or, with fewer, a
    step of one run share their random numbers and are one cluster.

    Args:
        base: Crawl of the unedited model.
        edited: Crawl of the edited model, with the same settings.
        controls: Name -> crawl of a control edit, such as "identity edit", "random edit".
        topics: Fitted on the triples of base, edited and controls, in this order.
        permutations: Shuffles of the test of the topic mix.
        seed: Of the shuffles.

    Returns:
        Rows "before", "after" and "change" ("beyond" a control). For topics these are the Jensen-Shannon divergence of
        the mixes by chance and as it is, in nats, and their difference; for overlap there is "change" alone: Dice, the
        share of triples of both graphs that both have. p_adjusted is Holm over the identities of one measure and one
        comparison.
    """
    crawls = {"": base, "edited": edited, **controls}
    numbers = iter(topics.topic)
    frames = {}
    for name, crawl in crawls.items():
        triples = crawl.triples.assign(topic=list(islice(numbers, len(crawl.triples))))
        keys = [triples["run"], triples["predicate"].str.casefold(), triples["object"].str.casefold()]
        frames[name] = triples.assign(key=pd.Series(list(zip(*keys)), triples.index, dtype=object))
    rows = [
        own | {"control": control, "editor": edited.name}
        for control in ("", *controls)
        for own in _changes(frames[control], frames["edited"], "beyond" if control else "change", permutations, seed)
    ]
    families: dict[tuple[str, str, bool], list[Row]] = {}
    for own in rows:
        if own["decides"]:
            families.setdefault((own["control"], own["about"], own["group"] == ALL), []).append(own)
    for tests in families.values():
        for own, p in zip(tests, adjust([own["p"] for own in tests]), strict=True):
            own["p_adjusted"] = float(p)
            own["verdict"] = _verdict(own, WORSE[own["about"]]) if own["about"] in WORSE else ""
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _changes(a: pd.DataFrame, b: pd.DataFrame, what: str, permutations: int, seed: int) -> Iterator[Row]:
    for name in [*sorted({*a["identity"], *b["identity"]}), ALL]:
        left, right = (frame if name == ALL else frame[frame["identity"] == name] for frame in (a, b))
        pooled = pd.concat([left.assign(after=False), right.assign(after=True)], ignore_index=True)
        kinds = pooled["kind"].unique()
        names = {"axis": kinds[0] if name != ALL else ALL, "group": name, "scale": "share"}
        for measure in WORSE:
            column = "regard_value" if measure == "regard" else measure
            if column in pooled and len(scored := pooled[pooled[column].notna()]):
                yield from _difference(scored, column, what, {"about": measure, **names})
        yield from _topic_change(pooled, what, permutations, seed, names | {"scale": "nats"})
        yield _overlap(pooled, left, right, what, names)


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


def _noted(estimate: Estimate, note: str) -> Row:
    return {"note": "; ".join(filter(None, (estimate.note, note)))}


def _difference(pooled: pd.DataFrame, column: str, what: str, names: Row) -> Iterator[Row]:
    after = pooled["after"].to_numpy(bool)
    if after.all() or not after.any():
        yield row(what, estimate=Estimate(_NAN, n=len(pooled), note="no triples on one side"), decides=True, **names)
        return
    values = pooled[column].to_numpy(np.float64)
    for state, chosen in (("before", ~after), ("after", after)):
        yield row(state, estimate=Estimate(float(values[chosen].mean()), n=int(chosen.sum())), **names)
    parts = [part / part.sum() for part in (after.astype(np.float64), (~after).astype(np.float64))]
    codes, note = _clusters(pooled, names["group"] == ALL)
    change = clustered_mean(values, parts, codes)
    yield row(what, estimate=change, decides=True, **names) | _noted(change, note)


def _overlap(pooled: pd.DataFrame, left: pd.DataFrame, right: pd.DataFrame, what: str, names: Row) -> Row:
    """Return Dice's coefficient, as the mean over the triples of both graphs of "the other one also has it"."""
    have = [set(zip(frame["identity"], frame["key"])) for frame in (left, right)]
    own = zip(pooled["identity"], pooled["key"], pooled["after"])
    shared = np.array([(name, key) in have[not after] for name, key, after in own], dtype=np.float64)
    codes, note = _clusters(pooled, names["group"] == ALL)
    share = clustered_mean(shared, [np.full(len(shared), 1 / len(shared))], codes)
    return row(what, "overlap", share, **names) | _noted(share, note) | {"p": _NAN}


def _topic_change(pooled: pd.DataFrame, what: str, permutations: int, seed: int, names: Row) -> Iterator[Row]:
    """Yield the Jensen-Shannon divergence of two topic mixes, how large it is by chance, and the rest.

    For chance, the two sides of whole clusters are swapped.
    """
    pooled = pooled[pooled["topic"] >= 0]
    after = pooled["after"].to_numpy(bool)
    if after.all() or not after.any():
        none = Estimate(_NAN, n=len(pooled), note="no topics on one side")
        yield row(what, "topics", none, decides=True, **names)
        return
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
    chance = float(permuted.mean())
    yield row("before", "topics", Estimate(chance, n=len(pooled)), **names)
    yield row("after", "topics", Estimate(value, n=len(pooled)), **names)
    change = Estimate(value - chance, value - float(high), value - float(low), p=p, n=len(pooled), note=note)
    yield row(what, "topics", change, decides=True, **names) | _noted(change, few)


def _divergence(counts: NDArray[np.float64]) -> float:
    """Return the Jensen-Shannon divergence in nats of two rows of counts; NaN when a row is empty."""
    if (counts.sum(axis=1) == 0).any():
        return _NAN
    shares = counts / counts.sum(axis=1, keepdims=True)
    middle = shares.mean(axis=0)
    safe = np.where(shares > 0, shares / np.where(middle > 0, middle, 1), 1)
    return float((shares * np.log(safe)).sum() / 2)
