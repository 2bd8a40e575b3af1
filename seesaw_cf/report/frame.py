"""All numbers of a report as one long frame: a row is an estimate of something, about somebody, after an edit.

`what` says of what, `about` about whom:

- "edited_fact": "efficacy_before", "efficacy_after" (the new answer is likelier than the old one), "raised", counts of
  edits that were "refused", "zero" or "not_finite", and each number of `seesaw_cf.effects.success`, such as
  "counterfact ES".
- "other_facts" about the edited person and "other_people": "before", "after", "change", "beyond" (change minus that of
  the control on the same questions) and "turned_wrong" (of the answers that were right before). About other people
  `true_answer` says which answer of the edit is true of them; "contrast" is the change of a group minus that of
  everybody else within the same edits, "beyond" with another editor as control compares two editors.
- "other_facts" by pair of relations: "right_before", "right_after", "right_change" and their company.

Relation `ALL` and axis `ALL` pool everything: a level of the first screen is such a row of "change" and of "beyond".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.retrying import stage
from seesaw_cf.base.types import Estimate
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.accuracy import Accuracy, summarise_accuracy
from seesaw_cf.effects.audit import CONTRAST_COLUMNS, AuditSettings, auditing, independent_tests
from seesaw_cf.effects.estimands import excess_over_control
from seesaw_cf.effects.groups import ALL, AXES, clusters_of
from seesaw_cf.effects.means import CHANGES, GroupMean, group_means
from seesaw_cf.report.pairs import Run, seen_alike
from seesaw_cf.report.verdict_words import BATCH_NOTE, group_verdict, level_verdict
from seesaw_cf.run.edit_table import ASKED_ONLY
from seesaw_cf.stats import (
    adjust,
    case_weights,
    clustered_mean,
    clustered_share,
    mcnemar,
    paired_change,
    proportion,
)
from seesaw_cf.stats.clustered import MIN_EFFECTIVE, half_clusters
from seesaw_cf.stats.simple import above, tolerance
from seesaw_cf.stats.skew import outer_limits
from seesaw_cf.stats.verdicts import REACH

Row = dict[str, Any]
KEYS = (
    *("what", "about", "editor", "control", "relation", "asked", "axis", "group", "reference"),
    *("true_answer", "scale"),
)
NUMBERS = ("value", "low", "high", "p", "p_adjusted")
COLUMNS = (
    *KEYS,
    *NUMBERS,
    *("verdict", "note", "n", "n_edits", "n_people", "half_edits"),
    *("stderr", "df", "margin", "detectable", "reach", "decides", "mirror"),
    *("effective_edits", "effective_people", "tests"),
)
TRUE_ANSWERS: Mapping[str, str] = {"target_new": "new", "target_true": "old", "": ""}
"""What score tables call the answer that is true of a person -> what a report calls it."""
HOLDERS = ("target_true", "target_new")
HARM: Mapping[tuple[str, str], int] = {("other_facts", ""): -1, ("other_people", "old"): 1, ("other_people", "new"): -1}
"""(about, true answer) -> sign of a change for the worse."""
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


def build_frame(run: Run, settings: AuditSettings | None = None) -> pd.DataFrame:
    """Return every number of a report, with the columns `COLUMNS`.

    Args:
        run: A finished run.
        settings: What is declared before looking; the defaults when None.
    """
    settings = settings or AuditSettings()
    settings = replace(settings, noise_floor=run.floor.probability, noise_floor_log_odds=run.floor.log_odds)
    stage("contrasts between groups")
    try:
        opened = None if run.people is None else _auditing(run.people, run, settings)
        decided = opened and opened.__enter__()
    except RecordError:  # nobody with a tag to compare
        opened = decided = None
    try:
        rows = [*_efficacy(run), *_success(run), *_accuracy(run)]
        levels = build_levels(run, settings)
        stage("permutations of labels")
        contrasts = decided() if decided else pd.DataFrame()
    finally:
        if opened:
            opened.__exit__(None, None, None)
    return pd.concat([_frame(rows), levels, _frame(_contrasts(contrasts))], ignore_index=True)


def build_levels(run: Run, settings: AuditSettings) -> pd.DataFrame:
    """Return the rows about other facts and other people, the levels decided."""
    return decide_levels(_frame([*_fact_levels(run), *_people(run, settings)]), run, settings)


def _frame(rows: Iterable[Row]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _auditing(people: pd.DataFrame, run: Run, settings: AuditSettings) -> Any:
    columns = dict.fromkeys([*CONTRAST_COLUMNS, "D_pre", "D_post", *AXES, *clusters_of(run.protocol).values()])
    return auditing(people[list(columns)], settings, clusters=clusters_of(run.protocol))


def row(what: str, about: str, estimate: Estimate, **names: Any) -> Row:
    """Return a row of the frame; keys that are not named stand for everything."""
    keys = dict.fromkeys(KEYS, "") | dict.fromkeys(("relation", "asked", "axis", "group"), ALL)
    found = estimate.columns("value", "low", "high", "p", "stderr", "df", "note")
    counts: Row = {"n": estimate.n, "n_edits": estimate.clusters.get("edit", 0)}
    counts |= {"n_people": estimate.clusters.get("person", 0), "half_edits": 0, "p_adjusted": _NAN, "verdict": ""}
    rest = {"margin": _NAN, "detectable": _NAN, "reach": _NAN, "decides": False, "mirror": False}
    return keys | found | counts | rest | {"what": what, "about": about} | names


def mean_of_seeds(seeds: Sequence[Estimate]) -> Estimate:
    """Return one estimate for all seeds of a control: the means of its numbers and ends; a p has no mean."""
    if len(seeds) == 1:
        return seeds[0]
    names = ("value", "low", "high", "stderr")
    means: Row = {name: _mean([getattr(own, name) for own in seeds]) for name in names}
    return replace(seeds[0], **means, p=_NAN)


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values))


def _blocks(rows: pd.DataFrame, column: str) -> Iterator[tuple[str, pd.DataFrame]]:
    """Yield all rows, then those of each relation."""
    if len(rows):
        yield ALL, rows
    for name, own in rows.groupby(column, sort=True, observed=True):
        yield str(name), own


def codes(names: pd.Series) -> NDArray[np.intp]:
    """Return codes of names; a missing name is one of them."""
    return pd.factorize(names, sort=True, use_na_sentinel=False)[0]


# The edited facts themselves.


def _efficacy(run: Run) -> Iterator[Row]:
    """Yield shares of edits after which the new answer is the likelier one (MEMIT equation 24); ties fail."""
    nats, _ = tolerance(run.manifest)
    if run.efficacy is not None:
        scored = run.efficacy[run.efficacy["status"] == "ok"]
        for editor, own in scored.groupby("editor", sort=False):
            for relation, rows in _blocks(own, "edit_relation"):
                for what, phase in (("efficacy_before", "pre"), ("efficacy_after", "post")):
                    ahead = pd.Series(above(rows[f"{phase}_new"], rows[f"{phase}_true"], nats), rows.index)
                    seeds = [proportion(int(one.sum()), len(one)) for _, one in ahead.groupby(rows["seed"])]
                    found = mean_of_seeds(seeds)
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


def _success(run: Run) -> Iterator[Row]:
    """Yield every number of `seesaw_cf.effects.edit_success`."""
    for editor, success in run.success.items():
        for protocol, numbers in success.numbers.items():
            for name, found in numbers.items():
                if cases := found.clusters["case"]:
                    names = {"editor": editor, "scale": "share", "n_edits": cases}
                    yield row(f"{protocol} {name}", "edited_fact", found, **names)


# Other facts about the edited person.


def _accuracy(run: Run) -> Iterator[Row]:
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
        found = mean_of_seeds([own.estimates[name] for own in seeds])
        scale = "log-odds" if name == "log_odds" else "share"
        yield row(what, "other_facts", found, scale=scale, **({} if name in ("share", "log_odds") else n), **names)
    shares: dict[str, float] = {
        f"right_{rank.replace('pre', 'before').replace('post', 'after')}": _mean([own.ranks[rank] for own in seeds])
        for rank in first.ranks
    }
    shares |= {"right_by_chance": first.chance, "right_by_constant": first.majority}
    counts = {name: _mean([own.counts[name] for own in seeds]) for name in ("lost", "gained")}
    counts |= {name: float(count) for name, count in first.counts.items() if name.startswith("n_")}
    for scale, numbers in (("share", shares), ("count", counts)):
        for what, value in numbers.items():
            yield row(what, "other_facts", Estimate(value), scale=scale, **n, **names)


def _fact_levels(run: Run) -> Iterator[Row]:
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
        person, edit = (codes(own[name]) for name in ("person", "edit"))
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
    code = codes(cluster)
    return replace(clustered_share(values, np.full(len(values), 1 / len(values)), code), n=len(values))


def _fact_change(what: str, rows: pd.DataFrame, before: str, after: str, names: Row) -> Row:
    """Return a mean change of shares; where all answers changed alike, with Newcombe's interval over people."""
    edit, person = (codes(rows[name]) for name in ("edit", "person"))
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


def _people(run: Run, settings: AuditSettings) -> Iterator[Row]:
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


def beyond(people: pd.DataFrame, pairs: Sequence[tuple[str, str]], run: Run, settings: AuditSettings) -> Iterator[Row]:
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


# What is decided.


def decide_levels(frame: pd.DataFrame, run: Run, settings: AuditSettings) -> pd.DataFrame:
    """Add margins, and to the levels p over all levels of an editor (Holm) and a verdict."""
    log_odds = frame["scale"] == "log-odds"
    frame = frame.assign(margin=np.where(log_odds, settings.margin_log_odds, settings.margin))
    frame.loc[frame["scale"] == "count", "margin"] = _NAN
    if run.protocol == "batch":
        estimated = frame["what"].isin(("change", "beyond", "after", "turned_wrong"))
        frame.loc[estimated, ["low", "high", "p", "stderr", "reach"]] = _NAN
        frame.loc[estimated, "note"] = BATCH_NOTE
    everybody = (frame["relation"] == ALL) & (frame["axis"] == ALL) & frame["decides"]
    own = pd.Series([*zip(frame["editor"], frame["control"])], frame.index).isin(set(run.controls))
    levels = frame[everybody & (frame["what"] == "beyond") & own]
    for _, rows in levels.groupby("editor"):
        frame.loc[rows.index, "p_adjusted"] = adjust(rows["p"].to_numpy(np.float64))
    alone = everybody & (frame["what"] == "change") & ~frame["editor"].isin([name for name, _ in run.controls])
    frame.loc[alone & ~frame["editor"].map(is_control).astype(bool), "verdict"] = "no_control"
    floors = {"probability": run.floor.zero_limit("summed"), "log-odds": run.floor.zero_limit_log_odds, "share": 0.0}
    for index in levels.index:
        level = frame.loc[index]
        sign = HARM[level["about"], level["true_answer"]]
        frame.loc[index, ["verdict", "note"]] = level_verdict(level, sign, floors[level["scale"]], settings.alpha)
        if against := _against(frame, level, floors):
            frame.loc[index, "note"] += f"; {against}"
    return frame


def _against(frame: pd.DataFrame, level: pd.Series, floors: Mapping[str, float]) -> str:
    """Return how the scale that does not decide speaks against a verdict; "" where it does not."""
    names = [name for name in KEYS if name != "scale"]
    alike = (frame[names] == level[names]).all(axis=1) & (frame["scale"] != level["scale"])
    for _, other in frame[alike].iterrows():
        if other["low"] * other["high"] <= 0 or abs(other["value"]) <= floors[other["scale"]]:
            continue
        if level["verdict"] in ("worse", "better", "slightly_worse"):
            return f"in {other['scale']} the other way" if level["value"] * other["value"] < 0 else ""
        if abs(other["value"]) > other["margin"] and level["verdict"] in ("no_worse", "undecided"):
            return f"in {other['scale']} it changed by {other['value']:+.3g}, beyond the margin of {other['margin']:g}"
    return ""


def _contrasts(table: pd.DataFrame) -> Iterator[Row]:
    """Yield the contrasts of groups, below 0 where a group came out worse, and their value on the other scale."""
    if "verdict" not in table:
        return
    tests = {name: independent_tests(rows) for name, rows in table.groupby("family")}
    for own in table.to_dict("records"):
        names = {name: own[name] for name in ("editor", "relation", "axis", "group", "reference", "mirror")}
        names |= {"true_answer": TRUE_ANSWERS[own["holds"]], "n": own["n"]}
        for dimension, plural in (("edit", "edits"), ("person", "people")):
            names |= {f"n_{plural}": own["clusters"].get(dimension, 0)}
            names |= {f"effective_{plural}": own["effective"].get(dimension, _NAN)}
        verdict, note = group_verdict(own)
        decided = {name: own[name] for name in (*NUMBERS, "stderr", "df", "margin", "detectable", "scale")}
        decided |= {"verdict": verdict, "note": note, "decides": True, "tests": tests[own["family"]]}
        yield row("contrast", "other_people", Estimate(_NAN), **names) | decided
        other = "probability" if own["scale"] == "log-odds" else "log-odds"
        yield row("contrast", "other_people", Estimate(own[other.replace("-", "_")]), scale=other, **names)
