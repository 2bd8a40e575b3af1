"""The numbers of a crawl, and of what an edit changed, as rows of the one frame.

`about` is the measure: "regard" (-1..1), "attack" (0..1), either with "_scorer" (what the name alone does to the score
of the same sentences), "topics", "prefix" or "overlap". `axis` is the protected class, `group` the
identity, `asked` a topic, `control` the crawl that an edited crawl is set beside ("" = that of the unedited model).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import rel_entr

from seesaw_cf.base.terminal import quantity
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.means import ALL
from seesaw_cf.effects.regard import QUANTILES, attack_summary, overall_regard, prefix_effect, scorer_bias
from seesaw_cf.effects.topics import topic_disparity
from seesaw_cf.report.frame import COLUMNS, Row, row
from seesaw_cf.report.rows import rows_of
from seesaw_cf.stats.clustered import MIN_EFFECTIVE, clustered_mean
from seesaw_cf.stats.multiple import adjust
from seesaw_cf.texts.graph.crawl import Crawl
from seesaw_cf.texts.graph.scores import MASK, Topics, exchanged_sentences

WORSE: Mapping[str, int] = {"regard": -1, "attack": 1}
"""Measure -> sign of a change for the worse."""
_NAN = float("nan")
_ENDS = ("low", "high", "stderr", "p", "n", "note")


def content_texts(triples: pd.DataFrame) -> list[str]:
    """Return what topics are made of: predicate and object, without the identity."""
    return (triples["predicate"] + " " + triples["object"]).tolist()


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
    frame = crawl.triples.assign(**{"topic": topics.topic} if topics else {})
    if frame["run"].nunique() >= MIN_EFFECTIVE:
        frame["cluster"] = frame["run"]
    for kind, triples in frame.groupby("kind", sort=True):
        for measure in crawl.scored:
            rows += _scores(measure, str(kind), triples)
        rows += _scorers(crawl, str(kind))
        rows += _topics(str(kind), triples, seed) if topics else []
    if plain is not None and "attack" in crawl.scored and "attack" in plain.scored:
        rows += _prefixes(crawl, plain)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _estimate(value: float, found: Mapping[str, Any]) -> Estimate:
    """Return a number with what is known of it."""
    return Estimate(value, **{name: found[name] for name in _ENDS if name in found})


def _scores(about: str, kind: str, triples: pd.DataFrame) -> Iterator[Row]:
    regard, columns = about == "regard", triples.filter(["identity", about, "cluster"])
    if columns[about].isna().all():
        return
    found = overall_regard(columns) if regard else attack_summary(columns)
    for name, own in found["identities"].items():
        names, test = {"axis": kind, "group": name, "scale": "share"}, own["contrast"]
        yield row("mean", about, _estimate(own["normalised" if regard else "mean"], own), **names)
        tested = {"reference": "others", "decides": True, "p_adjusted": test["p_adjusted"]}
        contrast = row("contrast", about, _estimate(test["value"], test), **names, **tested)
        yield contrast | {"verdict": _verdict(contrast)}
        for what in ("overall",) if regard else (*QUANTILES, "iqr"):
            limits = Estimate(own[what], own[f"{what}_low"], own[f"{what}_high"], n=own["n"])
            yield row(what, about, limits, **names | {"scale": "count" if regard else "share"})


def _verdict(test: Mapping[str, Any]) -> str:
    p, worse = test["p_adjusted"], WORSE[test["about"]]
    if np.isnan(p):
        return "too_few"
    return "undecided" if p >= 0.05 else "worse" if test["value"] * worse > 0 else "better"


def _scorers(crawl: Crawl, kind: str) -> Iterator[Row]:
    """Yield what the name alone does to a score: the mean change when the same sentence is about this identity."""
    for measure in crawl.scored:
        scored = exchanged_sentences(crawl).query("kind == @kind")
        scored["value"] = scored["sentence"].map(crawl.scores_of(measure)["value"])
        values = scored.pivot(index="content", columns="identity", values="value")
        changes = values.sub(values.pop(MASK), axis="index").melt(ignore_index=False, value_name="change").dropna()
        for name, (bias, p) in scorer_bias(changes.reset_index()).items() if len(changes) else ():
            names = {"axis": kind, "group": name, "scale": "share", "p_adjusted": p}
            yield row("change", f"{measure}_scorer", bias, **names)


def _prefixes(crawl: Crawl, plain: Crawl) -> Iterator[Row]:
    """Yield what the prepended texts do to attack scores (Figure 5)."""
    pooled = pd.concat([crawl.triples.assign(prefixed=True), plain.triples.assign(prefixed=False)])
    for kind, effect in prefix_effect(pooled[["kind", "identity", "attack", "prefixed"]]).items():
        names, counts = {"axis": kind, "scale": "share"}, [effect["n_with"], effect["n_without"]]
        for side, n in zip(("with", "without"), counts, strict=True):
            yield row(side, "prefix", Estimate(effect[f"mean_{side}"], n=n), **names)
        difference = _estimate(effect["difference"], effect)
        yield row("difference", "prefix", difference, **names, p_adjusted=effect["p_adjusted"])
        rank = Estimate(_NAN, p=effect["p_rank"], n=sum(counts))
        yield row("rank", "prefix", rank, **names, p_adjusted=effect["p_rank_adjusted"])


def _topics(kind: str, triples: pd.DataFrame, seed: int) -> Iterator[Row]:
    for name, own in topic_disparity(triples.filter(["identity", "topic", "cluster"]), seed=seed)["identities"].items():
        names = {"axis": kind, "group": name, "scale": "nats"}
        found = own["relative_entropy"] or {"corrected": _NAN, "p_adjusted": _NAN}
        entropy = _estimate(found["corrected"], found | {"n": own["n"], "note": own["note"]})
        yield row("relative_entropy", "topics", entropy, **names, p_adjusted=found["p_adjusted"])
        for topic, share in (own["shares"] or {}).items():
            yield row("share", "topics", Estimate(**share, n=own["n"]), **names | {"asked": topic, "scale": "share"})
        for ending, key in (("raw", "value"), ("by_chance", "expected")) if own["shares"] else ():
            yield row(f"relative_entropy_{ending}", "topics", Estimate(found[key], n=own["n"]), **names)


# What an edit changed.


def change_rows(
    base: Crawl, edited: Crawl, controls: Mapping[str, Crawl] = {}, *, topics: Topics, draws: int = 500, seed: int = 0
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
        draws: Shuffles of the test of the topic mix.
        seed: Of the shuffles.

    Returns:
        Rows "before", "after" and "change" ("beyond" a control). For topics these are the Jensen-Shannon divergence of
        the mixes by chance and as it is, in nats, and their difference; for overlap there is "change" alone: Dice, the
        share of triples of both graphs that both have. p_adjusted is Holm over the identities of one measure and one
        comparison.
    """
    crawls = {"": base, "edited": edited, **controls}
    triples = pd.concat({name: crawl.triples for name, crawl in crawls.items()}, names=["crawl"]).reset_index("crawl")
    triples = triples.assign(topic=topics.topic, predicate=triples["predicate"].str.casefold())
    triples["key"] = triples.assign(object=triples["object"].str.casefold()).groupby(_SAME).ngroup()
    rows = [
        own | {"control": control, "editor": edited.name}
        for control in ("", *controls)
        for own in _changes(triples[triples["crawl"].isin(["edited", control])], control, draws, seed)
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    tests = frame[frame["decides"].astype(bool)]
    for _, own in tests.groupby([tests["control"], tests["about"], tests["group"] == ALL]):
        frame.loc[own.index, "p_adjusted"] = adjust(own["p"].tolist())
    return frame.assign(
        verdict=[_verdict(own) if own["decides"] and own["about"] in WORSE else "" for own in rows_of(frame)]
    )


_SAME = ["identity", "run", "predicate", "object"]  # triples with these alike are one


def _changes(triples: pd.DataFrame, control: str, draws: int, seed: int) -> Iterator[Row]:
    what = "beyond" if control else "change"
    triples = triples.assign(after=triples["crawl"] == "edited").sort_values("after", kind="stable")
    measures = [name for name in WORSE if f"{name}_value" in triples]
    for name in [*sorted(triples["identity"].unique()), ALL]:
        own = triples if name == ALL else triples[triples["identity"] == name]
        names = {"axis": ALL if name == ALL else own["kind"].iloc[0], "group": name, "scale": "share"}
        parts = {about: own.dropna(subset=f"{about}_value") for about in measures}
        for about, rows in (parts | {"topics": own[own["topic"] >= 0]}).items():
            if rows["after"].nunique() < 2:
                note = "no triples on one side"
                yield row(what, about, Estimate(_NAN, n=len(rows), note=note), decides=True, **names)
            elif about == "topics":
                yield from _topic_change(rows, what, draws, seed, names | {"scale": "nats"})
            else:
                yield from _difference(rows, about, what, names)
        # Dice's coefficient: the mean over the triples of both graphs of "the other one also has it".
        shared = own.groupby("key")["after"].transform("nunique") == 2
        yield row(what, "overlap", _clustered(own, shared, [np.full(len(own), 1 / len(own))], name), **names, p=_NAN)


def _units(triples: pd.DataFrame) -> tuple[list[str], str]:
    """Return the columns that tell which triples share random numbers, and a note when there are few runs.

    They are those of a run over all identities or, with few runs, of a step of one identity's run.
    """
    runs = triples["run"].nunique()
    if runs >= MIN_EFFECTIVE:
        return ["run"], ""
    return ["identity", "run", "step"], f"{quantity(runs, 'run')}: steps are taken for independent; use five or more"


def _codes(triples: pd.DataFrame, columns: list[str]) -> NDArray[np.intp]:
    return triples.groupby(columns, sort=False).ngroup().to_numpy().astype(np.intp)


def _clustered(triples: pd.DataFrame, values: pd.Series, parts: list[NDArray[np.float64]], name: str) -> Estimate:
    """Return a mean, or a difference of means, clustered by what shares random numbers, everybody's by identity too."""
    columns, few = _units(triples)
    codes = {columns[-1]: _codes(triples, columns)}
    codes |= {"identity": _codes(triples, ["identity"])} if name == ALL else {}
    found = clustered_mean(values.to_numpy(np.float64), parts, codes)
    return replace(found, note="; ".join(filter(None, (found.note, few))))


def _difference(triples: pd.DataFrame, about: str, what: str, names: Row) -> Iterator[Row]:
    after, values = triples["after"].to_numpy(bool), triples[f"{about}_value"]
    for state, side in (("before", ~after), ("after", after)):
        yield row(state, about, Estimate(float(values[side].mean()), n=int(side.sum())), **names)
    change = _clustered(triples, values, [side / side.sum() for side in (after, ~after)], names["group"])
    yield row(what, about, change, decides=True, **names)


def _topic_change(triples: pd.DataFrame, what: str, draws: int, seed: int, names: Row) -> Iterator[Row]:
    """Yield the Jensen-Shannon divergence of two topic mixes, how large it is by chance, and the rest.

    For chance, the two sides of whole clusters are swapped.
    """
    (columns, few), n = _units(triples), len(triples)
    cluster, topic = _codes(triples, columns), _codes(triples, ["topic"])
    cells = np.zeros((cluster.max() + 1, 2, topic.max() + 1))
    np.add.at(cells, (cluster, triples["after"].to_numpy(int), topic), 1)
    value = float(_divergence(cells.sum(axis=0)))
    swapped = np.random.default_rng(seed).random((draws, len(cells))) < 0.5
    permuted = _divergence(cells.sum(axis=0) + np.tensordot(swapped, cells[:, ::-1] - cells, axes=1))
    p = (1 + int((permuted >= value - 1e-12).sum())) / (1 + draws)
    chance, (low, high) = float(permuted.mean()), np.quantile(permuted, [0.025, 0.975]).tolist()
    note = f"interval: less the middle 95 % of chance, {low:.3f} to {high:.3f} ({draws} swaps of the sides)"
    change = Estimate(value - chance, value - high, value - low, p=p, n=n, note="; ".join(filter(None, (note, few))))
    yield row("before", "topics", Estimate(chance, n=n), **names)
    yield row("after", "topics", Estimate(value, n=n), **names)
    yield row(what, "topics", change, decides=True, **names)


def _divergence(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the Jensen-Shannon divergence of two rows of counts (..., 2, topics) in nats."""
    shares = counts / counts.sum(axis=-1, keepdims=True)
    return np.asarray(rel_entr(shares, shares.mean(axis=-2, keepdims=True)).sum(axis=(-2, -1)) / 2)
