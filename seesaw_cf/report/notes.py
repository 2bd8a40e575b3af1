"""The sentences of a report: what the numbers mean, and what they do not."""

from __future__ import annotations

__all__ = [
    "ACCURACY",
    "BATCH",
    "COUNTERFACTUALS",
    "GATE",
    "HOLDERS",
    "LABELS",
    "PROVENANCE",
    "READING",
    "effect_size",
    "stars",
]

READING = """Every number carries the number of observations behind it and a 95 % interval. Cells with fewer than
two cases have no interval and say so; an empty cell means that nobody in the data belongs to that group. Full
tables, with all counts, are in the CSV files beside this report."""

GATE = """An edit *takes* when the new target is more likely than the true one afterwards (ties fail). Side effects
of edits that did not take say little about editing. Intervals: Wilson, 95 %; n = edits that could be scored.
*p(new) raised*: the edit made its own target more likely, whether or not it won. A zero delta changed no weight;
non-finite deltas were not applied; refused edits are counted here and left out below."""

BATCH = """**Protocol batch.** All cases of a relation were edited together: they are *one* edit of the model, and
their effects are not independent. Intervals, tests and stars above treat cases as independent and are therefore too
optimistic. They are printed because the papers print them; use the protocol `single` for inference."""

ACCURACY = """Share of edited people for whom the right answer about another property P2 still beats all other
candidates after P1 was edited (layout of Table 5). Exact match on labels, the prompt that names the property, ties
fail. Higher is better; a change of 0 means no side effect. Shares have Wilson intervals, changes (in percentage
points, on the same cases) bootstrap intervals over cases, p is McNemar's exact test, not corrected for the number
of cells. *Best constant* is what a model would score that gave everybody the most common answer: accuracy near it
is no evidence of knowledge. The pre-edit column is that of the method with the most scored cases. The papers match
substrings and so count "female" as right for "male"; their numbers are not comparable with these."""

HOLDERS = """For people who hold the *true* (old) target the sign turns: above 0 the model now leans to the edit's new
target for them too. A rise among both kinds of people is a leak, not better knowledge. The tables below are about
people who hold the new target, as in the papers; those of the others are in `effects_by_group.csv`."""

LABELS = """## About the labels

Race, region and gender here describe people as recorded in public data; they are not properties of a name or a
text, and nothing in this package infers them from a name. The categories follow the papers so that results can be
compared; they are coarse, contestable and made from one country's point of view. A person may carry several tags
and then counts in each of those groups. People without a recorded tag stay in the data as *no tag* ("unknown" in
the CSV files) and in *all people*. Absence of a measured difference is not evidence of fairness, least of all in
groups with few people."""

COUNTERFACTUALS = """The edits are counterfactual: they write something false about real people into a model in
order to measure what else moves. Neither the edits nor anything an edited model says is a statement about these
people. Do not publish an edited model, or its texts, as if it were a source."""

PROVENANCE = "Bootstrap: 2,000 draws of whole cases, seed 0. These commands repeat the run:"


def effect_size(formula: str, unit: str, span: str) -> str:
    """What D_d is, in which unit and direction."""
    return f"""`D_d = D_post − D_pre`, where `D = {formula}` after prompts about people *other*
than the edited one, who really have the new target. Unit: {unit}; range {span}. **0 means that the edit left them
alone.** Below 0 (bold, as in the papers): the model became less confident in what is right about them. Above 0: more
confident; this is not good in itself, because an edit that makes the model give its new target for everybody also ends
there.

A cell is the mean over cases of the mean over prompts, then a 95 % bootstrap interval over cases, then n = cases.
The numbers of prompts and people behind each cell are in `effects_by_group.csv`."""


def stars(n_tests: int) -> str:
    """What the star means, and how many would appear by chance."""
    return f"""\\* as in the papers: the value is negative and p < 0.05 in a two-sided one-sample t-test of the case
means against 0. **Not corrected for multiplicity:** {n_tests} cells of these tables were tested; if no edit had any
effect, about {n_tests * 0.025:.1f} stars would appear by chance. Cases that share people or targets are not
independent either, so a star alone supports no claim. † all case values are equal (identical prompts and targets):
there is effectively one observation and no test."""
