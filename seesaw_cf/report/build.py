"""A run's numbers as rows of the frame: its edits, other facts about the edited people, and other people."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
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
from seesaw_cf.effects.accuracy import summarise_accuracy
from seesaw_cf.effects.audit import AuditSettings, auditing
from seesaw_cf.effects.estimands import excess_over_control
from seesaw_cf.effects.free_answers import summarise_answers
from seesaw_cf.effects.means import CHANGES, clusters_of, group_means
from seesaw_cf.report.frame import COLUMNS, TRUE_ANSWERS, Row, contrast_rows, decide_levels, row
from seesaw_cf.report.pairs import RunResult, mean_estimate
from seesaw_cf.report.rows import forms_of
from seesaw_cf.run.store import ASKED_ONLY
from seesaw_cf.stats.bootstrap import Floats
from seesaw_cf.stats.clustered import MIN_EFFECTIVE, case_weights, clustered_mean, half_clusters, outer_limits
from seesaw_cf.stats.simple import above, clustered_share, mcnemar, paired_change, proportion, tolerance
from seesaw_cf.stats.verdicts import REACH

HOLDERS = ("target_true", "target_new")
_ANSWER = ["case_id", "edit_relation", "effect_relation"]
_FAILURES = {"zero": "zero delta", "not_finite": "non-finite delta", "refused": "refused"}
# Estimate of `Accuracy` -> what.
_RIGHT = {"pre": "right_before", "post": "right_after", "change": "right_change", "share": "right_share"}
_RIGHT["log_odds"] = "right_log_odds"


def build_frame(run: RunResult, settings: AuditSettings | None = None) -> pd.DataFrame:
    """Return every number of a report, with the columns `COLUMNS`.

    Args:
        run: A finished run.
        settings: What is declared before looking; the defaults when None.
    """
    with building(run, settings or AuditSettings()) as built:
        return built()


@contextmanager
def building(
    run: RunResult, settings: AuditSettings, fallen: Sequence[str] = ()
) -> Iterator[Callable[[], pd.DataFrame]]:
    """Permute labels on other threads while the block goes on; the call returns what `build_frame` does.

    Args:
        run: A finished run.
        settings: What is declared before looking.
        fallen: Editors whose groups are not compared.
    """
    settings = replace(settings, noise_floor=run.floor.probability, noise_floor_log_odds=run.floor.log_odds)
    stage("contrasts between groups")
    with ExitStack() as stack:
        decided = None
        if run.people is not None:
            people = run.people[~run.people["editor"].isin(fallen)] if fallen else run.people
            with suppress(RecordError):  # nobody with a tag to compare
                decided = stack.enter_context(auditing(people, settings, clusters=clusters_of(run.protocol)))
            del people  # a copy, while labels are permuted
        rows = [*_efficacy(run), *_success(run), *_accuracy(run), *_written(run)]
        levels = build_levels(run, settings)

        def build() -> pd.DataFrame:
            stage("permutations of labels")
            contrasts = [] if decided is None else [*contrast_rows(decided())]
            first, last = (pd.DataFrame(part, columns=list(COLUMNS)) for part in (rows, contrasts))
            parts = [part for part in (first, levels, last) if len(part)]  # an empty one would make numbers objects
            return pd.concat(parts, ignore_index=True).assign(form=run.form)

        yield build


def build_levels(run: RunResult, settings: AuditSettings) -> pd.DataFrame:
    """Return the rows about other facts and other people, the levels decided."""
    rows = [*_fact_levels(run), *_people(run, settings)]
    return decide_levels(pd.DataFrame(rows, columns=list(COLUMNS)), run, settings)


def _blocks(rows: pd.DataFrame | None, **columns: str) -> Iterator[tuple[Row, pd.DataFrame]]:
    """Yield the rows of each editor, and then those of each relation, with their names."""
    for editor, own in () if rows is None else rows.groupby("editor", sort=False):
        yield {"editor": editor}, own
        for key, part in own.groupby(list(columns.values()), sort=True, observed=True):
            yield {"editor": editor, **dict(zip(columns, key, strict=True))}, part


# The edited facts themselves.


def _efficacy(run: RunResult) -> Iterator[Row]:
    """Yield shares of edits after which the new answer is the likelier one (MEMIT equation 24); ties fail."""
    nats, _ = tolerance(run.manifest)
    scored = None if run.efficacy is None else run.efficacy[run.efficacy["status"] == "ok"]
    for names, rows in _blocks(scored, relation="edit_relation"):
        for what, phase in (("efficacy_before", "pre"), ("efficacy_after", "post")):
            ahead = pd.Series(above(rows[f"{phase}_new"], rows[f"{phase}_true"], nats), rows.index)
            found = mean_estimate([proportion(int(one.sum()), len(one)) for _, one in ahead.groupby(rows["seed"])])
            yield row(what, "edited_fact", found, scale="share", n_edits=found.n, **names)
    edited = run.distinct[run.distinct["status"] != ASKED_ONLY]
    for names, rows in _blocks(edited, relation="relation_id"):
        orders = [own for _, own in rows.groupby("order")] if "order" in rows else [rows]
        known = rows.drop_duplicates("case_id")["known"]
        flagged = {"raised": [own["raised"] for own in orders], "known_before": [known]}
        for what, flags in flagged.items() if run.form == forms_of(run.manifest)[0] else ():
            given = [own.dropna().astype(bool) for own in flags]
            share = mean_estimate([proportion(int(own.sum()), len(own)) for own in given])
            yield row(what, "edited_fact", share, scale="share", n_edits=len(orders[0]), **names)
        for what, start in _FAILURES.items():
            count = Estimate(int(rows["status"].str.startswith(start).sum()), n=len(rows))
            yield row(what, "edited_fact", count, scale="count", n_edits=len(rows), **names)


def _success(run: RunResult) -> Iterator[Row]:
    """Yield every number of `seesaw_cf.effects.edit_success`."""
    for editor, success in run.success.items():
        for protocol, numbers in success.numbers.items():
            for name, found in numbers.items():
                if cases := found.clusters["case"]:
                    names = {"editor": editor, "scale": "share", "n_edits": cases}
                    yield row(f"{protocol} {name}", "edited_fact", found, **names)


def _written(run: RunResult) -> Iterator[Row]:
    """Yield what the models wrote, by kind of questions, beside the teacher-forced numbers of the same questions."""
    if run.written is not None:
        for (editor, kind), rows in run.written.groupby(["editor", "kind"], sort=False):
            for name, scale, found in summarise_answers(rows):
                names = {"editor": editor, "asked": kind, "scale": scale, "n_edits": rows["edit"].nunique()}
                yield row(name, "answers", found, **names)


# Other facts about the edited person.


def _accuracy(run: RunResult) -> Iterator[Row]:
    """Yield how many right answers there were before and after, by pair of relations and over all."""
    for names, rows in _blocks(run.facts, relation="edit_relation", asked="effect_relation"):
        seeds = [summarise_accuracy(one) for _, one in rows.groupby("seed")]
        first, n = seeds[0], seeds[0].counts["n"]
        for name, what in _RIGHT.items():
            found = mean_estimate([own.estimates[name] for own in seeds])
            yield row(what, "other_facts", found, scale="log-odds" if name == "log_odds" else "share", **names)
        shares = {"right_by_chance": [first.chance], "right_by_constant": [first.majority]}
        for rank in first.ranks:
            when = rank.replace("pre", "before").replace("post", "after")
            shares[f"right_{when}"] = [own.ranks[rank] for own in seeds]
        counts = {what: [own.counts[what] for own in seeds] for what in first.counts if what != "n"}
        for what, values in (shares | counts).items():
            mean = Estimate(float(np.mean(values)), n=n)
            yield row(what, "other_facts", mean, scale="share" if what in shares else "count", **names)


def _fact_levels(run: RunResult) -> Iterator[Row]:
    """Yield the level of other facts: edits weigh equally, errors are clustered by the edited person."""
    if run.facts is None:
        return
    counted = run.facts[run.facts["status"].isin(("ok", "unanswerable"))]
    counted = counted.assign(before=counted["pre_correct"].astype(float), after=counted["post_correct"].astype(float))
    counted["after"] = counted.groupby(["editor", *_ANSWER], sort=False)["after"].transform("mean")
    first = counted[counted["seed"] == 1]
    for editor, rows in first.groupby("editor", sort=False):
        own, names = rows.sort_values(_ANSWER), {"editor": str(editor), "scale": "share", "decides": True}
        counts = {"n": len(own), "n_people": own["person"].nunique(), "n_edits": own["edit"].nunique()}
        weights = case_weights(_codes(own["edit"]), np.ones(len(own), bool))
        share = clustered_share(own["after"].to_numpy(), weights, _codes(own["person"]), fewest=MIN_EFFECTIVE)
        yield row("before", "other_facts", Estimate(float(weights @ own["before"])), **names, **counts)
        yield row("after", "other_facts", share, **names, **counts)
        yield _fact_change("change", own, "before", names)
        was_right = own[own["before"] > 0.5]
        lost = _turned_wrong(1 - was_right["after"].to_numpy(), was_right["person"])
        yield row("turned_wrong", "other_facts", lost, **names | {"n_edits": counts["n_edits"]})
        for control in [control for name, control in run.controls if name == editor]:
            beside = first.loc[first["editor"] == control, [*_ANSWER, "after"]]
            if len(both := own.merge(beside, on=_ANSWER, suffixes=("", "_control"))):
                yield _fact_change("beyond", both, "after_control", names | {"control": control})


def _codes(names: pd.Series) -> NDArray[np.intp]:
    """Return codes of names; a missing name is one of them."""
    return pd.factorize(names, sort=True, use_na_sentinel=False)[0]


def _turned_wrong(wrong: Floats, cluster: pd.Series) -> Estimate:
    """Return an unweighted share of answers with Wilson's interval, worth as many as their clusters allow."""
    if not len(wrong):
        return Estimate(float("nan"), note="no answer was right before")
    return replace(clustered_share(wrong, np.full(len(wrong), 1 / len(wrong)), _codes(cluster)), n=len(wrong))


def _fact_change(what: str, rows: pd.DataFrame, before: str, names: Row) -> Row:
    """Return a mean change of shares; where all answers changed alike, with Newcombe's interval over people."""
    edit, person = (_codes(rows[name]) for name in ("edit", "person"))
    first, last = rows[before].to_numpy(), rows["after"].to_numpy()
    change, weights = last - first, case_weights(edit, np.ones(len(rows), bool))
    found = clustered_mean(change, [weights], {"person": person})
    if found.note.startswith("all values equal") and np.isin([first, last], (0, 1)).all():  # no means over seeds
        people = min(found.effective.values())
        low, high = paired_change(first > 0.5, last > 0.5, people)
        found = replace(found, low=low, high=high, p=mcnemar(round(people) if found.value else 0, 0), note="")
    half = int(half_clusters(change[:, None] * weights[:, None], edit)[0])
    names = names | {"n_edits": int(edit.max()) + 1, "half_edits": half, "reach": _reach(found)}
    return row(what, "other_facts", found, **names)


# Other people.


def _people(run: RunResult, settings: AuditSettings) -> Iterator[Row]:
    """Yield what happened to everybody and to each group of people, and what of it is beyond the control's."""
    if run.people is None:
        return
    for holds in [name for name in (*HOLDERS, "") if name in set(run.people["holds"])]:
        rows, names = run.people[run.people["holds"] == holds], {"true_answer": TRUE_ANSWERS[holds]}
        yield from _mean_rows("change", rows, holds, run, settings, names)
        sign = -1 if holds == "target_true" else 1
        right = rows[(rows["status"] == "ok") & (sign * rows["D_pre"] > 0)]
        for editor, own in right.groupby("editor", sort=False, observed=True) if holds else ():
            found = _turned_wrong(np.where(sign * own["D_post"] <= 0, 1.0, 0.0), own["case_id"])  # ties fail
            counts = {"n_edits": own["case_id"].nunique(), "n_people": own["person"].nunique()}
            yield row("turned_wrong", "other_people", found, editor=editor, scale="share", **counts, **names)
    audited = [name for name in run.editors if not is_control(name)]
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
    for holds in HOLDERS:
        rows = people[people["holds"] == holds]
        for editor, other in pairs:
            pair = rows[rows["editor"].isin((editor, other))]
            if pair["editor"].nunique() == 2:
                names = {"true_answer": TRUE_ANSWERS[holds], "editor": editor, "control": other}
                yield from _mean_rows("beyond", excess_over_control(pair, other), holds, run, settings, names)


def _mean_rows(
    what: str, rows: pd.DataFrame, holds: str, run: RunResult, settings: AuditSettings, names: Row
) -> Iterator[Row]:
    """Yield means of everybody and of groups: of a change on every scale, with what there was before and after."""
    found = group_means(rows, holds=holds, clusters=clusters_of(run.protocol))
    for keys, changes, half, states, n_edits in found:
        decides = "log-odds" if states["likelier_before"] < REACH * settings.margin else "probability"
        for state in ("before", "after") if what == "change" else ():
            mean = Estimate(states[state], n=changes["probability"].n)
            yield row(state, "other_people", mean, scale="probability", **keys | names)
        for scale in list(CHANGES)[: 3 if what == "change" else 2]:
            own = {"scale": scale, "decides": scale == decides, "half_edits": half[scale], "n_edits": n_edits}
            yield row(what, "other_people", changes[scale], reach=_reach(changes[scale]), **own, **keys | names)


def _reach(found: Estimate) -> float:
    """Return the end of the 90 % interval that is farther from 0."""
    if not np.isfinite(found.stderr):
        return max(abs(found.low), abs(found.high))
    ends = outer_limits(found.value, found.stderr, stats.t.isf(0.05, found.df), found.skew)
    return float(np.abs(ends).max())
