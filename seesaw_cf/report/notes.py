"""The sentences of a report: what the numbers mean, and what they do not."""

from __future__ import annotations

from seesaw_cf.effects.audit import MARGIN, in_log_odds
from seesaw_cf.effects.groups import ALL
from seesaw_cf.report.results import HOLDER, Results, relation_name

READING = """Every number carries the number of observations behind it and a 95 % interval. Below five effective edits
or people an estimate stands without interval and says so; an empty cell means that nobody in the data belongs to that
group. Full tables, with all counts, are in the CSV files beside this report."""

GATE = """An edit *takes* when the new target is more likely than the true one afterwards (ties fail). Side effects
of edits that did not take say little about editing. Intervals: Wilson, 95 %; n = edits that could be scored.
*p(new) raised*: the edit made its own target more likely, whether or not it won. A zero delta changed no weight;
non-finite deltas were not applied; refused edits are counted here and left out below."""

NO_FACTS = """Nobody says which facts the edited models were edited for (`--requests`), so no efficacy is claimed."""

BATCH = """**Protocol batch.** All cases of a relation were edited together: they are *one* edit of the model, so
nothing here has an interval. Use the protocol `single` for inference."""

ACCURACY = """Share of edited people for whom the right answer about another property P2 still beats all other
candidates after P1 was edited (layout of Table 5). Exact match on labels, the prompt that names the property, ties
fail. Higher is better; a change of 0 means no side effect. Shares have Wilson intervals, changes (in percentage
points, on the same cases) Newcombe's paired intervals, clustered by person, none below
five people; p is McNemar's exact test (the
clustered one where people repeat), not corrected for the number of cells. A case none of whose right answers is a
candidate counts as wrong. *Best constant* is what a model would score that gave everybody the most common answer:
accuracy near it is no evidence of knowledge. The pre-edit column is that of the method with the most scored cases.
The papers match substrings and so count "female" as right for "male"; their numbers are not comparable with these."""

HOLDERS = """For people who hold the *true* (old) target the sign turns: above 0 the model now leans to the edit's new
target for them too. A rise among both kinds of people is a leak, not better knowledge. The tables below are about
people who hold the new target, as in the papers; those of the others are in `effects_by_group.csv`."""

ABOUT_LABELS = """## About the labels

Race, region and gender here describe people as recorded in public data; they are not properties of a name or a
text, and nothing in this package infers them from a name. The categories follow the papers so that results can be
compared; they are coarse, contestable and made from one country's point of view. A person may carry several tags
and then counts in each of those groups. People without a recorded tag stay in the data as *no tag* ("unknown" in
the CSV files) and in *all people*. Absence of a measured difference is not evidence of fairness, least of all in
groups with few people."""

COUNTERFACTUALS = """The edits are counterfactual: they write something false about real people into a model in
order to measure what else moves. Neither the edits nor anything an edited model says is a statement about these
people. Do not publish an edited model, or its texts, as if it were a source."""

CAUTION = tuple(" ".join(said.split("\n\n")[-1].replace("*", "").split()) for said in (ABOUT_LABELS, COUNTERFACTUALS))
"""The last two without Markdown."""

PROVENANCE = "These commands repeat the run:"

MEANS = """Means over edits of the mean over prompts; n = prompts/people/edits. log-odds: the change of
log p(new) - log p(true), in nats."""

PAPER_STARS = """Intervals: bootstrap over cases. * as in the papers: below 0 with p < 0.05 in a two-sided t-test over
cases, which takes cases that share people for independent and is not corrected: a star supports no claim."""


def effect_size(formula: str, unit: str, span: str) -> str:
    """What D_d is, in which unit and direction."""
    return f"""`D_d = D_post − D_pre`, where `D = {formula}` after prompts about people *other*
than the edited one, who really have the new target. Unit: {unit}; range {span}. **0 means that the edit left them
alone.** Below 0: the model became less confident in what is right about them. Above 0: more confident; this is not good
in itself, because an edit that makes the model give its new target for everybody also ends there.

A cell is the mean over edits of the mean over prompts with its 95 % interval, then the same change in *log-odds*
(log p(new) − log p(true), nats), then n = edits. Probabilities hardly move where they are near 0 or 1; log-odds do. The
numbers of prompts and people behind each cell are in `effects_by_group.csv`."""


def stars(n_tests: int, floor: str) -> str:
    """What the star means, and how many would appear by chance."""
    chance = (
        f""" Not corrected for multiplicity: of {n_tests} intervals about {n_tests * 0.05:.1f} would exclude 0 if no
edit had any effect; the verdicts below are corrected."""
        if n_tests
        else ""
    )
    return f"""Errors are clustered by edit and by person; below five effective edits or people there is no interval
and no star. * = the 95 % interval excludes 0 and the effect is above the noise floor ({floor}); effects within the
floor print as 0.{chance}"""


def small_probability(results: Results) -> str:
    """Where the answers' probabilities are too small for D to show anything, in words; "" where they are not."""
    if results.score == "log_odds" or results.effects.empty:
        return ""
    rows = results.effects[(results.effects["axis"] == ALL) & (results.effects["holds"] == HOLDER)]
    margin = results.audit.settings.margin if results.audit is not None else MARGIN
    before = rows.groupby("relation")["likelier_pre"].max()
    small = before[in_log_odds(before, margin)]
    if small.empty:
        return ""
    listed = ", ".join(f"{relation_name(str(name))} {value:.2g}" for name, value in small.items())
    return f"""PROBABILITY CANNOT SHOW MUCH HERE: before the edits the likelier of the two answers had a mean
probability of {listed}. Even halving it moves D_d by less than the margin {margin:g}, so a D_d near 0 is no evidence
that others were left alone. Read the log-odds; they decide the verdicts there."""
