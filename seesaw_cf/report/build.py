"""A run's numbers as rows of the frame: its edits, other facts about the edited people, and other people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.retrying import stage
from seesaw_cf.base.types import Estimate
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.accuracy import Accuracy, summarise_accuracy
from seesaw_cf.effects.audit import AuditSettings, auditing
from seesaw_cf.effects.estimands import excess_over_control
from seesaw_cf.effects.means import ALL, CHANGES, GroupMean, clusters_of, group_means
from seesaw_cf.report.frame import COLUMNS, TRUE_ANSWERS, Row, contrast_rows, decide_levels, row
from seesaw_cf.report.pairs import RunResult, seen_alike
from seesaw_cf.report.repeats import mean, mean_estimate
from seesaw_cf.run.edit_table import ASKED_ONLY
from seesaw_cf.stats import case_weights, clustered_mean, clustered_share, mcnemar, paired_change, proportion
from seesaw_cf.stats.clustered import MIN_EFFECTIVE, half_clusters, outer_limits
from seesaw_cf.stats.simple import above, tolerance
from seesaw_cf.stats.verdicts import REACH

HOLDERS = ("target_true", "target_new")
_NAN = float("nan")
_ANSWER = ["case_id", "edit_relation", "effect_relation"]
_FAILURES = {"zero": "zero delta", "not_finite": "non-finite delta", "refused": "refused"}
_RIGHT: Mapping[str, str] = {  # estimate of `Accuracy` -> what
    "pre": "right_before",
    "post": "right_after",
    "change": "right_change",
    "share": "right_share",
    "log_odds": "right_log_odds",
}


def build_frame(run: RunResult, settings: AuditSettings | None = None) -> pd.DataFrame:
    """Return every number of a report, with the columns `COLUMNS`.

    Args:
        run: A finished run.
        settings: What is declared before looking; the defaults when None.
    """
    settings = settings or AuditSettings()
    settings = replace(settings, noise_floor=run.floor.probability, noise_floor_log_odds=run.floor.log_odds)
    stage("contrasts between groups")
    with ExitStack() as stack:
        decided = None
        if run.people is not None:
            with suppress(RecordError):  # nobody with a tag to compare
                decided = stack.enter_context(auditing(run.people, settings, clusters=clusters_of(run.protocol)))
        rows = [*_efficacy(run), *_success(run), *_accuracy(run)]
        levels = build_levels(run, settings)
        stage("permutations of labels")
        contrasts = [] if decided is None else [*contrast_rows(decided())]
    first, last = (pd.DataFrame(part, columns=list(COLUMNS)) for part in (rows, contrasts))
    return pd.concat([first, levels, last], ignore_index=True)


def build_levels(run: RunResult, settings: AuditSettings) -> pd.DataFrame:
    """Return the rows about other facts and other people, the levels decided."""
    rows = [*_fact_levels(run), *_people(run, settings)]
    return decide_levels(pd.DataFrame(rows, columns=list(COLUMNS)), run, settings)


def _blocks(rows: pd.DataFrame, column: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield all rows, then those of each relation."""
    if len(rows):
        yield ALL, rows
    for name, own in rows.groupby(column, sort=True, observed=True):
        yield str(name), own


def _codes(names: pd.Series) -> NDArray[np.intp]:
    """Return codes of names; a missing name is one of them."""
    return pd.factorize(names, sort=True, use_na_sentinel=False)[0]


# The edited facts themselves.


def _efficacy(run: RunResult) -> Iterator[Row]:
    """Yield shares of edits after which the new answer is the likelier one (MEMIT equation 24); ties fail."""
    nats, _ = tolerance(run.manifest)
    if run.efficacy is not None:
        scored = run.efficacy[run.efficacy["status"] == "ok"]
        for editor, own in scored.groupby("editor", sort=False):
            for relation, rows in _blocks(own, "edit_relation"):
                for what, phase in (("efficacy_before", "pre"), ("efficacy_after", "post")):
                    ahead = pd.Series(above(rows[f"{phase}_new"], rows[f"{phase}_true"], nats), rows.index)
                    seeds = [proportion(int(one.sum()), len(one)) for _, one in ahead.groupby(rows["seed"])]
                    found = mean_estimate(seeds)
                    names = {"editor": editor, "relation": relation, "scale": "share", "n_edits": found.n}
                    yield row(what, "edited_fact", found, **names)
    edited = run.distinct[run.distinct["status"] != ASKED_ONLY]
    for editor, own in edited.groupby("editor", sort=False):
        for relation, rows in _blocks(own, "relation_id"):
            raised = rows["raised"].dropna()
            names = {"editor": editor, "relation": relation, "n_edits": len(rows)}
            yield row("raised", "edited_fact", proportion(int(raised.sum()), len(raised)), scale="share", **names)
            known = rows.drop_duplicates("case_id")["known"].dropna().astype(bool)
            yield row("known_before", "edited_fact", proportion(int(known.sum()), len(known)), scale="share", **names)
            for what, start in _FAILURES.items():
                count = int(rows["status"].str.startswith(start).sum())
                yield row(what, "edited_fact", Estimate(count, n=len(rows)), scale="count", **names)


def _success(run: RunResult) -> Iterator[Row]:
    """Yield every number of `seesaw_cf.effects.edit_success`."""
    for editor, success in run.success.items():
        for protocol, numbers in success.numbers.items():
            for name, found in numbers.items():
                if cases := found.clusters["case"]:
                    names = {"editor": editor, "scale": "share", "n_edits": cases}
                    yield row(f"{protocol} {name}", "edited_fact", found, **names)


# Other facts about the edited person.


def _accuracy(run: RunResult) -> Iterator[Row]:
    """Yield how many right answers there were before and after, by pair of relations and over all."""
    if run.facts is None:
        return
    pairs = run.facts.assign(pair=run.facts["edit_relation"] + "/" + run.facts["effect_relation"])
    for editor, own in pairs.groupby("editor", sort=False):
        for pair, rows in _blocks(own, "pair"):
            seeds = [summarise_accuracy(one) for _, one in rows.groupby("seed")]
            relation, _, asked = pair.partition("/")
            yield from _right(seeds, {"editor": editor, "relation": relation, "asked": asked or ALL})


def _right(seeds: Sequence[Accuracy], names: Row) -> Iterator[Row]:
    first, n = seeds[0], {"n": seeds[0].counts["n"]}
    for name, what in _RIGHT.items():
        found = mean_estimate([own.estimates[name] for own in seeds])
        scale = "log-odds" if name == "log_odds" else "share"
        yield row(what, "other_facts", found, scale=scale, **({} if name in ("share", "log_odds") else n), **names)
    shares: dict[str, float] = {
        f"right_{rank.replace('pre', 'before').replace('post', 'after')}": mean([own.ranks[rank] for own in seeds])
        for rank in first.ranks
    }
    shares |= {"right_by_chance": first.chance, "right_by_constant": first.majority}
    counts = {name: mean([own.counts[name] for own in seeds]) for name in ("lost", "gained")}
    counts |= {name: float(count) for name, count in first.counts.items() if name.startswith("n_")}
    for scale, numbers in (("share", shares), ("count", counts)):
        for what, value in numbers.items():
            yield row(what, "other_facts", Estimate(value), scale=scale, **n, **names)


def _fact_levels(run: RunResult) -> Iterator[Row]:
    """Yield the level of other facts: edits weigh equally, errors are clustered by the edited person."""
    if run.facts is None:
        return
    counted = run.facts[run.facts["status"].isin(("ok", "unanswerable"))]
    counted = counted.assign(before=counted["pre_correct"].astype(float), after=counted["post_correct"].astype(float))
    after = counted.groupby(["editor", *_ANSWER], sort=False)["after"].mean()
    first = counted[counted["seed"] == 1]
    first = first.assign(after=after.reindex(pd.MultiIndex.from_frame(first[["editor", *_ANSWER]])).to_numpy())
    by_editor = {str(editor): own.sort_values(_ANSWER) for editor, own in first.groupby("editor", sort=False)}
    for editor, own in by_editor.items():
        names: Row = {"editor": editor, "scale": "share", "n_edits": own["edit"].nunique(), "decides": True}
        person, edit = (_codes(own[name]) for name in ("person", "edit"))
        weights = case_weights(edit, np.ones(len(own), bool))
        share = clustered_share(own["after"].to_numpy(), weights, person, fewest=MIN_EFFECTIVE)
        counts = {"n": len(own), "n_people": int(own["person"].nunique())}
        yield row("before", "other_facts", Estimate(float(weights @ own["before"])), **names | counts)
        yield row("after", "other_facts", share, **names | counts)
        yield _fact_change("change", own, "before", "after", names)
        was_right = own[own["before"] > 0.5]
        lost = (1 - was_right["after"]).to_numpy()
        yield row("turned_wrong", "other_facts", _share_by(lost, was_right["person"]), **names | {"n": len(lost)})
        for control in [control for name, control in run.controls if name == editor and control in by_editor]:
            both = own.merge(by_editor[control][[*_ANSWER, "after"]], on=_ANSWER, suffixes=("", "_control"))
            if len(both):
                yield _fact_change("beyond", both, "after_control", "after", names | {"control": control})


def _share_by(values: np.ndarray, cluster: pd.Series) -> Estimate:
    """Return an unweighted share of answers with Wilson's interval, worth as many as their clusters allow."""
    if not len(values):
        return Estimate(_NAN, note="no answer was right before")
    code = _codes(cluster)
    return replace(clustered_share(values, np.full(len(values), 1 / len(values)), code), n=len(values))


def _fact_change(what: str, rows: pd.DataFrame, before: str, after: str, names: Row) -> Row:
    """Return a mean change of shares; where all answers changed alike, with Newcombe's interval over people."""
    edit, person = (_codes(rows[name]) for name in ("edit", "person"))
    change, weights = (rows[after] - rows[before]).to_numpy(), case_weights(edit, np.ones(len(rows), bool))
    found = clustered_mean(change, [weights], {"person": person})
    if found.note.startswith("all values equal") and seen_alike(rows[before], rows[after]):
        people = min(found.effective.values())
        low, high = paired_change(rows[before].to_numpy() > 0.5, rows[after].to_numpy() > 0.5, people)
        found = replace(found, low=low, high=high, p=mcnemar(round(people) if found.value else 0, 0), note="")
    half = int(half_clusters(change[:, None] * weights[:, None], edit)[0])
    names = names | {"n_edits": int(edit.max()) + 1, "half_edits": half, "reach": _reach(found)}
    return row(what, "other_facts", found, **names)


# Other people.


def _people(run: RunResult, settings: AuditSettings) -> Iterator[Row]:
    """Yield what happened to everybody and to each group of people, and what of it is beyond the control's."""
    if run.people is None:
        return
    clusters = clusters_of(run.protocol)
    audited = [name for name in run.editors if not is_control(name)]
    for holds in [name for name in (*HOLDERS, "") if name in set(run.people["holds"])]:
        rows = run.people[run.people["holds"] == holds]
        names: Row = {"true_answer": TRUE_ANSWERS[holds]}
        for found in group_means(rows, holds=holds, clusters=clusters):
            yield from _mean_rows("change", found, settings, names)
        if holds:
            yield from _turned(rows, names)
    yield from beyond(run.people, [*run.controls, *combinations(sorted(audited), 2)], run, settings)


def beyond(
    people: pd.DataFrame, pairs: Sequence[tuple[str, str]], run: RunResult, settings: AuditSettings
) -> Iterator[Row]:
    """Yield what editors did to people beyond what others did on the same questions.

    Args:
        people: Rows of `seesaw_cf.effects.prompt_effects`.
        pairs: (editor, its control or another editor).
        run: For how its edits were made.
        settings: As declared.
    """
    clusters = clusters_of(run.protocol)
    for holds in HOLDERS:
        rows = people[people["holds"] == holds]
        for editor, other in pairs:
            pair = rows[rows["editor"].isin((editor, other))]
            if pair["editor"].nunique() < 2:
                continue
            excess = excess_over_control(pair, other)
            names = {"true_answer": TRUE_ANSWERS[holds], "editor": editor, "control": other}
            for found in group_means(excess, holds=holds, clusters=clusters):
                yield from _mean_rows("beyond", found, settings, names)


def _mean_rows(what: str, found: GroupMean, settings: AuditSettings, names: Row) -> Iterator[Row]:
    keys = {"editor": found.editor, "relation": found.relation, "axis": found.axis, "group": found.group} | names
    decides = "log-odds" if found.states["likelier_before"] < REACH * settings.margin else "probability"
    if what == "change":
        for state in ("before", "after"):
            counts = {"n": found.changes["probability"].n}
            yield row(state, "other_people", Estimate(found.states[state]), scale="probability", **counts, **keys)
    for scale in CHANGES if what == "change" else list(CHANGES)[:2]:
        estimate = found.changes[scale]
        own = {"scale": scale, "decides": scale == decides, "half_edits": found.half[scale]}
        own |= {"reach": _reach(estimate), "n_edits": found.n_edits}
        yield row(what, "other_people", estimate, **own, **keys)


def _turned(rows: pd.DataFrame, names: Row) -> Iterator[Row]:
    """Yield the share of answers about other people, right before the edit, that were wrong after it; ties fail."""
    sign = -1 if names["true_answer"] == "old" else 1
    right = rows[(rows["status"] == "ok") & (sign * rows["D_pre"] > 0)]
    for editor, own in right.groupby("editor", sort=False, observed=True):
        wrong = (sign * own["D_post"] <= 0).to_numpy(float)
        found = _share_by(wrong, own["case_id"])
        counts = {"n_edits": own["case_id"].nunique(), "n_people": own["person"].nunique()}
        yield row("turned_wrong", "other_people", found, editor=editor, scale="share", **counts, **names)


def _reach(found: Estimate) -> float:
    """Return the end of the 90 % interval that is farther from 0."""
    ends = outer_limits(found.value, found.stderr, stats.t.isf(0.05, found.df), found.skew)
    ends = ends if np.isfinite(found.stderr) else (found.low, found.high)  # type: ignore[assignment]
    return float(np.abs(ends).max())
