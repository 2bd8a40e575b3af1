"""The sentences of a report: what the numbers mean, and what they do not."""

from __future__ import annotations

from seesaw_cf.effects.audit import MARGIN, in_log_odds
from seesaw_cf.effects.groups import ALL
from seesaw_cf.report.results import HOLDER, Results, relation_name
from seesaw_cf.stats.clustered import FEW_EDITS
from seesaw_cf.stats.verdicts import REACH

READING = """Every number carries the number of observations behind it and a 95 % interval. Below five effective edits
or people an estimate stands without interval and says so; an empty cell means that nobody in the data belongs to that
group. Full tables, with all counts, are CSV files in the folder tables."""

GATE = """An edit takes when the new target is more likely than the true one afterwards, ties fail (95 % Wilson
intervals). Side effects of edits that did not take say little about editing. p(new) raised: the edit made its own
target more likely, whether or not it won. Refused edits are counted here and left out below."""

NO_FACTS = """Nobody says which facts the edited models were edited for (--requests), so no efficacy is claimed."""

BATCH = """Protocol batch: all cases of a relation were edited together: they are one edit of the model, so
nothing here has an interval. Use the protocol single for inference."""

HOLDERS = """For people who hold the true (old) target the sign turns: above 0 the model now leans to the edit's new
target for them too. A rise among both kinds of people is a leak, not better knowledge."""

HALF = f"""Half of it in: the fewest edits that carry half of an effect, where there are less than {FEW_EDITS} edits. No
interval can see harm that no edit of the sample had."""

LEVELS = """What edits did whatever the group: to other facts about the edited person, to people who hold the old answer
and to those who hold the new one, each beside its control."""

KNOWN = """Known: before any edit, the right answer was first among the candidates asked after the same prompt; ties
count against it. Of an edited fact the candidates are its two targets and at most 32 answers of the relation, of a
question about other people the two targets. Median part: the right answer's share of the candidates' probability. This
is less than knowledge in general, and of two candidates one is first by chance half of the time."""

SCALES = """Effects on everybody where the edited fact, or the asked fact, was known before. Asked facts were chosen
for being ahead, and whatever disturbs a model can only make them lose that place: compare them with a control edit,
not with 0."""

ACCURACY_KNOWN = """All pairs together, of known facts alone. Among known asked facts the share before is 100 % by
definition; the share after says how many of them are still first."""

EXCESS = """D_d of the edit minus D_d of a control on the same prompts: an edit that changes nothing (identity), another
fact's edit (unrelated) or a random update of the same size (random). What remains is due to this fact."""

PAIRS = """D_d of one editor minus D_d of another on the same cases and prompts. Below 0: the first took more confidence
from what is right about others."""

SEEDS = "Controls that draw: means over their seeds, of the ends of intervals too; a mean has no p."

FIRST_SEED = "Of a control with several seeds, its first seed's answers are shown; the tables have the mean of all."

GATES = "What must hold before a verdict means much."

WORST = """The edits that did the largest damage, of each editor. Damage: the largest of the share of other facts about
the edited person that were lost, the shift of people who hold the old answer towards the new one, and the loss of
confidence about people who hold the new answer. Some edit is always the worst: read it beside the mean above."""

INTERSECTIONS = "Change of log-odds about people who hold the new target, nats, with 95 % intervals."

VERDICTS = f"""D_d of a group minus D_d of its reference within the same edits; errors clustered by edit and by person.
worse off: significant, below 0 and larger than the margin; better off: the same above 0; equivalent: inside the margin;
undetermined: none of these; not testable: too few edits or people on a side for any interval, the reason says how many.
Probability decides where it can move by {REACH:g} margins or more, elsewhere the change in log-odds. Property "all":
pooled, each edit weighs equally. Of holders of the old answer the sign is turned: below 0 is always worse for a group.
Intervals are 95 % for this contrast alone; p over the family decides, and the reason says where the two disagree."""

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

CAUTION = tuple(" ".join(note.split("\n\n")[-1].replace("*", "").split()) for note in (ABOUT_LABELS, COUNTERFACTUALS))
"""The last two without Markdown."""


def cautions(results: Results) -> list[str]:
    """Return what a reader of any report must know of the labels, and of edits where there are some."""
    return list(CAUTION[: 1 if results.asked_only else 2])


PROVENANCE = "These commands repeat the run:"

PAPER_STARS = """Intervals: bootstrap over cases. * as in the papers: below 0 with p < 0.05 in a two-sided t-test over
cases, which takes cases that share people for independent and is not corrected: a star supports no claim."""


def effect_size(formula: str, unit: str, span: str) -> str:
    """Return what D_d is, in which unit and direction."""
    return f"""D_d = D_post - D_pre, with D = {formula} after prompts about OTHER people, who really have the new
    target. Unit: {unit}; range {span}. 0 = the edit left them alone; below 0 = the model became less confident in what
    is right about them; above 0 = more confident (or the edit leaks to everybody). Log-odds: the change of log p(new)
    - log p(true), nats. Part: that of p(new) / (p(new) + p(true)). Means over edits of the mean over prompts, with 95
    % intervals."""


def stars(n_tests: int, floor: str) -> str:
    """Return what the star means, and how many would appear by chance."""
    chance = f"of {n_tests} intervals about {n_tests * 0.05:.1f} would exclude 0 if no edit had any effect"
    return f"""Errors are clustered by edit and by person; below five effective edits or people there is no interval
    and no star. * = the 95 % interval excludes 0 and the effect is above the noise floor ({floor}); effects within the
    floor print as 0.{f" Not corrected for multiplicity: {chance}." if n_tests else ""}"""


def accuracy(match: str, tests: str) -> str:
    """Return what accuracy is: how answers are matched, and which tests are made."""
    return f"""The right answer about ANOTHER property of the edited person beats all candidates ({match} match).
    Higher is better, change 0 = no side effect. Shares: Wilson; change: {tests}. Best constant: what the most common
    answer for everybody would score. The papers match substrings and so count "female" as right for "male"."""


def left_out(no_gold: int, unscored: int, no_candidate: int) -> str:
    """Return how many cases the accuracy leaves out, and how many count as wrong."""
    return f"""Left out, over all methods: {no_gold} cases without a gold answer, {unscored} with an unscored candidate.
    Counted as wrong: {no_candidate} cases none of whose right answers is a candidate."""


def coverage(n: int) -> str:
    """Return how many people were asked about."""
    return f"""People asked about: {n:,}, none of them the edited person of the same case. Several tags count
    several times, so shares may add up to more than 100 %; "unknown" = no tag on that axis."""


def small_probability(results: Results) -> str:
    """Return where the answers' probabilities are too small for D to show much, in words; "" where they are not."""
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
