"""What a run found, in sentences: every one is a function of rows of the frame, in one vocabulary.

A reader needs no statistics: a sentence says what happened, to whom, compared with what, by how much, and what is not
known. The noun is "edit" or "change". Harm is always above 0; no size is named whose interval holds 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd

from seesaw_cf.base.terminal import quantity
from seesaw_cf.editors.control_names import NULLS, is_control, split_control
from seesaw_cf.effects.audit import AuditSettings
from seesaw_cf.effects.groups import ALL
from seesaw_cf.report.frame import HARM
from seesaw_cf.report.pairs import Run
from seesaw_cf.report.results import relation_name
from seesaw_cf.report.rows import rows_of
from seesaw_cf.report.verdict_words import RARE
from seesaw_cf.stats.clustered import FEW_EDITS

CONTROL_WORDS: Mapping[str, str] = {
    "random": "a random {noun} of the same size",
    "identity": "the same {noun} to the right answer",
    "unrelated": "an edit of an unrelated fact",
}
LEVELS: Mapping[tuple[str, str], tuple[str, str]] = {  # (about, true answer) -> title, what the numbers are
    ("other_facts", ""): ("Other facts about the edited person", "still right"),
    ("other_people", "old"): ("People for whom the old answer is true", "false answer's gain"),
    ("other_people", "new"): ("People for whom the new answer is true", "right answer's loss"),
}
BADGES: Mapping[str, str] = {
    "worse": "WORSE",
    "slightly_worse": "a little worse",
    "no_worse": "no worse",
    "better": "less harm",
    "undecided": "not decided",
    "too_few": "too few to tell",
    "no_control": "no comparison",
}
SEVERITY: Mapping[str, str] = {"worse": "bad", "slightly_worse": "bad", "no_worse": "same", "better": "good"}
# Level -> least harm (share of what was right before; probability; five nats count as 1) -> what the model does.
_HARMS: Mapping[tuple[str, str], Sequence[tuple[float, str]]] = {
    ("other_facts", ""): (
        (0.9, "forgets nearly all other facts about {person}"),
        (0.5, "forgets most other facts about {person}"),
        (0.1, "forgets some other facts about {person}"),
        (0.0, "forgets a few other facts about {person}"),
    ),
    ("other_people", "old"): (
        (1.0, "also gives the new answer for people for whom the old one is true"),
        (0.1, "is much less sure about people for whom the old answer is true"),
        (0.0, "is less sure about people for whom the old answer is true"),
    ),
    ("other_people", "new"): (
        (0.1, "is much less sure about people for whom the new answer is true"),
        (0.0, "is less sure about people for whom the new answer is true"),
    ),
}
_WHO: Mapping[str, str] = {"old": "for whom the old answer is true", "new": "for whom the new answer is true"}
_NATS_PER_UNIT = 5  # margins: 0.1 nats stand for 0.02 in probability


@dataclass(frozen=True)
class Level:
    """What one editor did to everybody on one level, beside the control that decides.

    Attributes:
        about, true_answer, editor: Which level of whom.
        rows: "before", "after", "change", "beyond", "turned_wrong" -> its row on the deciding scale, if any.
        control: The same of the control: "after", "change", "turned_wrong".
        sign: Of a change for the worse.
    """

    about: str
    true_answer: str
    editor: str
    rows: Mapping[str, pd.Series]
    control: Mapping[str, pd.Series]
    sign: int

    @property
    def decided(self) -> pd.Series:
        """The row that has the verdict: beyond the control, or the change alone."""
        return self.rows.get("beyond", self.rows["change"])

    @property
    def verdict(self) -> str:
        """One of `seesaw_cf.report.verdict_words.LEVEL_VERDICTS`."""
        return str(self.decided["verdict"] or "no_control")

    @property
    def harm(self) -> float:
        """Size for the worse, in margins."""
        size = self.sign * float(self.decided["value"]) / float(self.decided["margin"])
        return size if math.isfinite(size) else 0.0

    @property
    def is_harm(self) -> bool:
        """Whether it is shown to be worse: than the control, or without one than before."""
        row = self.decided
        alone = self.verdict == "no_control" and self.sign * row["value"] > row["margin"]
        return self.verdict == "worse" or bool(alone and row["low"] * row["high"] > 0)

    @property
    def title(self) -> str:
        """Who or what it is about."""
        return LEVELS[self.about, self.true_answer][0]


def levels_of(frame: pd.DataFrame, run: Run) -> list[Level]:
    """Return the levels of every audited editor, on the scale that decides, by level and then by editor."""
    everybody = frame[(frame["relation"] == ALL) & (frame["axis"] == ALL)]
    found = []
    for about, true_answer in LEVELS:
        own = everybody[(everybody["about"] == about) & (everybody["true_answer"] == true_answer)]
        for editor in run.audited:
            control = next((name for of, name in run.controls if of == editor), "")
            beyond = own[(own["what"] == "beyond") & (own["editor"] == editor) & (own["control"] == control)]
            decides = beyond[beyond["decides"].astype(bool)]
            scale = decides["scale"].iloc[0] if len(decides) else None
            rows = _by_what(own[own["editor"] == editor], scale) | ({"beyond": decides.iloc[0]} if scale else {})
            if "change" in rows and math.isfinite(rows["change"]["value"]):
                beside = _by_what(own[own["editor"] == control], rows["change"]["scale"]) if scale else {}
                found.append(Level(about, true_answer, editor, rows, beside, HARM[about, true_answer]))
    return found


def _by_what(rows: pd.DataFrame, scale: str | None) -> dict[str, pd.Series]:
    """Return each row of a level by its name: changes on one scale, the deciding one where none is given."""
    out = {}
    for _, row in rows.iterrows():
        chosen = row["decides"] if scale is None else row["scale"] == scale
        if row["what"] in ("before", "after", "turned_wrong") or (row["what"] == "change" and chosen):
            out[str(row["what"])] = row
    return out


# Numbers in words.


def amount(row: Mapping[str, object] | pd.Series, sign: int = 1, interval: bool = True) -> str:
    """Return a size with its interval: "36 points [24, 49]", "4.0 points [2.3, 6.3]" or "0.31 nats [0.2, 0.4]"."""
    scale = 1.0 if row["scale"] == "log-odds" else 100.0
    unit = "nats" if row["scale"] == "log-odds" else "points"
    value, low, high = (sign * scale * float(row[name]) for name in ("value", "low", "high"))  # type: ignore[arg-type]
    low, high = min(low, high), max(low, high)
    digits = digits_for(value, low, high)
    ends = f" [{low:.{digits}f}, {high:.{digits}f}]" if interval and math.isfinite(low) else ""
    return minus(f"{value:.{digits}f} {unit}{ends}")


def digits_for(*numbers: float) -> int:
    """Return how many decimals show two digits of the largest number; at most 4, and none above 10."""
    largest = max((abs(number) for number in numbers if math.isfinite(number)), default=0.0)
    return 0 if largest >= 10 else int(min(4, max(1, 1 - math.floor(math.log10(largest))))) if largest > 0 else 1


def minus(text: str) -> str:
    """Return text with typographic minus signs, and none before a 0."""
    return text.replace("-", "\u2212") if any(digit in text for digit in "123456789") else text.replace("-", "")


def percent(value: float) -> str:
    """Return a share in whole per cent, with as many digits as matter near 0 and 1."""
    if not math.isfinite(value):
        return "\u2013"
    rest = min(value, 1 - value)
    digits = 0 if rest >= 0.01 or rest == 0 else 1 if rest >= 0.001 else 2
    return f"{100 * value:.{digits}f} %"


def and_list(words: Sequence[str], last: str = "and") -> str:
    """Return words as a list in a sentence."""
    return f"{', '.join(words[:-1])} {last} {words[-1]}" if len(words) > 1 else words[0]


def capital(text: str) -> str:
    """Return a sentence with a capital letter."""
    return text[:1].upper() + text[1:]


# Levels.


def control_words(control: str, run: Run) -> str:
    """Return what a control is: "a random edit of the same size"; another editor is its name."""
    kind, of = split_control(control)
    facts = run.manifest.get("edited", {}).get(of, {})
    if kind == "random" and facts.get("null") == "given":
        return f"the change that was given as {of}'s control"
    return CONTROL_WORDS[kind].format(noun=run.noun) if kind else control


def level_sentence(level: Level, run: Run) -> str:
    """Return whether an editor did more harm on a level than its control did, and by how much."""
    row, sign = level.decided, level.sign
    size = amount(row, sign)
    if level.verdict == "no_control":
        worse = level.harm > 0
        size = amount(row, sign if worse else -sign)
        return f"Changed for the {'worse' if worse else 'better'} by {size}; no control {run.noun} was made."
    control = control_words(str(row["control"]), run)
    margin = amount({"scale": row["scale"], "value": row["margin"], "low": np.nan, "high": np.nan})
    seen = f"seen {size} worse" if level.harm > 0 else f"seen {amount(row, -sign)} less harm"
    words = {
        "worse": f"Worse than {control} by {size}.",
        "slightly_worse": f"A little worse than {control}, by {size}: below the {margin} declared to matter.",
        "no_worse": f"No worse than {control}: within {margin}, {size}.",
        "better": f"Less harm than {control}, by {amount(row, -sign)}.",
        "undecided": f"Not decided: {seen} than {control}, which chance can do.",
        "too_few": f"Too few to tell: {row['note']}.",
    }[level.verdict]
    if level.verdict == "undecided" and RARE in row["note"]:
        words = f"Not decided: no worse than {control} by {margin} so far, but {row['n_edits']} {run.noun}s {RARE}."
    against = [part for part in str(row["note"]).split("; ") if part.startswith("in ")]
    return words + "".join(f" But {part}." for part in against)


def level_counts(level: Level, run: Run) -> str:
    """Return what a level is made of: "80 questions, 54 people, 69 edits; half of the damage comes from 13 of them"."""
    row = level.decided
    counts = f"{quantity(row['n'], 'question')}, {quantity(row['n_people'], 'person', 'people')}, "
    counts += quantity(row["n_edits"], run.noun)
    few = bool(row["n_edits"] < FEW_EDITS and level.is_harm and row["half_edits"] > 0)
    return counts + (f"; half of the damage comes from {row['half_edits']} of {row['n_edits']} {run.noun}s" * few)


def level_numbers(level: Level) -> list[tuple[str, str, str]]:
    """Return (measure, after the editor, after its control) of a level: natural frequencies, then points."""
    lines = []
    turned, beside = level.rows.get("turned_wrong"), level.control.get("turned_wrong")
    if turned is not None and turned["n"]:
        of_facts = level.about == "other_facts"
        words = f"still right, of {turned['n']:,}" if of_facts else f"turned wrong, of {turned['n']:,}"
        lines.append((words, _count(turned, of_facts), _count(beside, of_facts)))
    if level.about == "other_people":
        unit = "nats" if level.rows["change"]["scale"] == "log-odds" else "points"
        measure = f"{LEVELS[level.about, level.true_answer][1]}, {unit}"
        own, control = (_signed(row, level.sign) for row in (level.rows["change"], level.control.get("change")))
        lines.append((measure, own, control))
    return lines


def _count(row: pd.Series | None, kept: bool) -> str:
    if row is None or not row["n"]:
        return ""
    share = 1 - row["value"] if kept else row["value"]
    return f"{round(share * row['n']):,}"


def _signed(row: pd.Series | None, sign: int) -> str:
    if row is None or not math.isfinite(row["value"]):
        return ""
    value = sign * row["value"] * (1 if row["scale"] == "log-odds" else 100)
    return minus(f"{value:.{digits_for(value)}f}")


# The first sentence.


def harm_phrase(level: Level, person: str) -> str:
    """Return what the model does on a level that is worse, by the size of the difference."""
    row = level.decided
    size = level.sign * row["value"] / (_NATS_PER_UNIT if row["scale"] == "log-odds" else 1)
    if level.about == "other_facts" and (before := level.rows["before"]["value"]):
        size /= before
    largest = 1.0 if row["scale"] != "log-odds" else 0.1  # odds alone do not say what the model answers
    return next(words for least, words in _HARMS[level.about, level.true_answer] if size >= least <= largest).format(
        person=person
    )


def subject(editors: Sequence[str], run: Run) -> str:
    """Return how a sentence about editors begins."""
    names = and_list(editors, "or")
    if run.asked_only:
        return f"the model {names}" if len(editors) == 1 else f"each of the models {and_list(editors)}"
    return f"after all {names} edits together" if run.protocol == "batch" else f"after one {names} edit"


def finding(frame: pd.DataFrame, run: Run, settings: AuditSettings) -> list[str]:
    """Return what a run found, what must be known first standing first: a few sentences of plain words."""
    levels = levels_of(frame, run)
    if not levels:
        return ["Nothing was asked but the edits themselves.", *doubts(frame, run)]
    named = len(group_claims(frame, run)) > 0
    sentences = [*broken(run), *(doubts(frame, run) if _mostly_failed(frame, run) else [])]
    if all(is_control(name) for name in run.audited):
        sentences.append(f"Only control edits were made, {len(run.distinct):,}.")
    by_editor = {name: [level for level in levels if level.editor == name] for name in run.audited}
    order = sorted(by_editor, key=lambda name: -max((own.harm for own in by_editor[name] if own.is_harm), default=0.0))
    alike = groupby(order, key=lambda name: _what_happened(by_editor[name], run))
    clauses = [(words, list(names)) for words, names in alike if words]
    harmless = not any(level.is_harm for level in levels)
    group = group_sentence(frame, run, settings)
    sentences += [group] if named and harmless else []
    sentences += [_clause(words, names, run) for words, names in clauses]
    if any(level.verdict == "no_control" for level in levels) and any(level.is_harm for level in levels):
        sentences.append(f"Without a control it is not known whether any {run.noun} of that size does the same.")
    sentences += [] if named and harmless else [group]
    return [*sentences, *([] if _mostly_failed(frame, run) else doubts(frame, run))]


def _what_happened(levels: Sequence[Level], run: Run) -> str:
    """Return what one editor did to the model, the largest harm first."""
    person = (
        "the people of the records"
        if run.asked_only
        else "the edited people"
        if run.protocol == "batch"
        else "that person"
    )
    harmed = sorted((level for level in levels if level.is_harm), key=lambda level: -level.harm)
    if harmed:
        model = "" if run.asked_only else "the model "
        return f"{model}{and_list([harm_phrase(level, person) for level in harmed])}"
    if not levels:
        return ""
    verdicts = {level.verdict for level in levels}
    if "slightly_worse" in verdicts:
        worst = max((own for own in levels if own.verdict == "slightly_worse"), key=lambda own: own.harm)
        margin = amount(
            {"scale": worst.decided["scale"], "value": worst.decided["margin"], "low": np.nan, "high": np.nan}
        )
        control = control_words(str(worst.decided["control"]), run)
        size = amount(worst.decided, worst.sign, interval=False)
        return f"the answers are a little worse than after {control}: {size}, below the {margin} declared to matter"
    if verdicts <= {"no_worse", "better"}:
        control = control_words(str(levels[0].decided["control"]), run)
        return f"nothing that was asked is worse than after {control}{_largest_count(levels)}"
    if verdicts == {"no_control"}:
        return f"nothing that was asked is shown to be worse{_largest_count(levels)}"
    if verdicts == {"too_few"}:
        return f"too little was asked to tell what chance does{_largest_count(levels)}: {levels[0].decided['note']}"
    return f"it is not decided whether more got worse than by chance{_largest_count(levels)}"


def _largest_count(levels: Sequence[Level]) -> str:
    """Return how many answers turned wrong, of the level where it is the largest share."""
    turned = [level.rows["turned_wrong"] for level in levels if "turned_wrong" in level.rows]
    turned = [row for row in turned if row["n"]]
    if not turned:
        return ""
    count = sum(round(row["value"] * row["n"]) for row in turned)
    return f" ({count:,} of {sum(row['n'] for row in turned):,} right answers turned wrong)"


def _clause(words: str, editors: Sequence[str], run: Run) -> str:
    start = subject(editors, run)
    joined = ": " if run.asked_only and not words.startswith(("forgets", "is ", "also")) else " "
    return capital(f"{start}{joined if run.asked_only else ' '}{words}.")


def broken(run: Run) -> list[str]:
    """Return a sentence on each editor whose edits damage the model as a whole."""
    return [
        f"Most edits by {editor} break the model: {local.others} right {percent(local.before)} before, "
        f"{percent(local.after)} after."
        for editor, local in run.local.items()
        if local.collapsed and not is_control(editor)
    ]


# Did the edits work?


def efficacy_rows(frame: pd.DataFrame, run: Run) -> Iterator[tuple[str, pd.Series, pd.Series]]:
    """Yield (editor, before, after): shares of edits whose new answer is the likelier one."""
    own = frame[(frame["relation"] == ALL) & frame["what"].isin(("efficacy_before", "efficacy_after"))]
    for editor in run.audited:
        rows = {str(row["what"]): row for _, row in own[own["editor"] == editor].iterrows()}
        if len(rows) == 2:
            yield editor, rows["efficacy_before"], rows["efficacy_after"]


def _mostly_failed(frame: pd.DataFrame, run: Run) -> bool:
    return any(after["value"] <= 0.5 for _, _, after in efficacy_rows(frame, run) if not run.asked_only)


def doubts(frame: pd.DataFrame, run: Run) -> list[str]:
    """Return sentences on editors whose edits did not work, or are not shown to."""
    if run.asked_only:
        return []
    found = []
    for editor, _, after in efficacy_rows(frame, run):
        if editor in run.changed or after["low"] > 0.5:
            continue
        failed = "did not work" if after["high"] <= 0.5 else "are not shown to work"
        found.append(f"Edits by {editor} {failed}: {round(after['value'] * after['n'])} of {after['n']}.")
    return found


def efficacy_sentence(frame: pd.DataFrame, run: Run) -> str:
    """Return how many edits worked: "The new answer is the likelier one after 137 of 137 memit edits (1 before)."."""
    parts = []
    for editor, before, after in efficacy_rows(frame, run):
        count, first = (round(row["value"] * row["n"]) for row in (after, before))
        parts.append(f"{count} of {after['n']} {editor} edits ({first} before)")
    if parts:
        return f"The new answer is the likelier one after {', '.join(parts)}."
    return "" if run.asked_only else "Whether the edits worked was not measured."


# What is missing.


def denominators(frame: pd.DataFrame, run: Run) -> str:
    """Return what was refused, unscored or untagged; "" where nothing was."""
    status = run.distinct["status"].groupby(run.distinct["editor"], sort=False)
    parts = []
    for start, words in (
        ("refused", "refused"),
        ("non-finite delta", "not finite"),
        ("zero delta", "without any change"),
    ):
        for name, own in status:
            if count := int(own.str.startswith(start).sum()):
                parts.append(f"{count} of {len(own):,} edits by {name} {words}")
    if missing := int(run.unscored["n_rows"].sum()):
        parts.append(f"{missing:,} of {run.n_rows:,} scores missing")
    people = run.people
    if people is not None and (lost := int((people["status"] != "ok").sum())):
        parts.append(f"{lost:,} of {len(people):,} questions about other people left out")
    if run.protocol == "batch":
        parts.append("all edits of a relation were made together: nothing here has an interval")
    return f"{capital('; '.join(parts))}." if parts else ""


# Groups.


def tests(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the contrasts of groups on the scale that decides."""
    return frame[(frame["what"] == "contrast") & frame["decides"].astype(bool)]


def group_claims(frame: pd.DataFrame, run: Run) -> pd.DataFrame:
    """Return the contrasts that say a group was hit harder, one for each set of people, the largest first.

    On an axis with two labels the row of the label that lost is kept. What the control shows as well is left out, and
    so are groups of another axis that are the same people.
    """
    own = tests(frame)
    shown = own[own["verdict"].isin(("hit_harder", "slightly_harder"))]
    key = ["relation", "axis", "group", "true_answer"]
    controls = set(map(tuple, shown.loc[shown["editor"].map(is_control).astype(bool), key].to_numpy()))
    claims = shown[shown["editor"].isin(run.audited)]
    claims = claims[np.array([tuple(row) not in controls for row in claims[key].to_numpy()], bool)]
    claims = claims.assign(size=-claims["value"].abs() / claims["margin"], whole=claims["relation"] != ALL)
    claims = claims.sort_values(["whole", "verdict", "size"], kind="stable")
    return claims.drop_duplicates(["editor", "relation", "true_answer", "value", "n", "n_people"])


def group_sentence(frame: pd.DataFrame, run: Run, settings: AuditSettings) -> str:
    """Return which groups were hit harder, or that none is shown to be, and what could have been missed."""
    own = tests(frame)
    own = own[own["editor"].isin(run.audited) & ~own["mirror"].astype(bool)]
    if own.empty:
        return "Groups of people were not compared." if run.people is not None else ""
    claims = group_claims(frame, run)
    hard = claims[claims["verdict"] == "hit_harder"]
    if len(hard):
        groups = list(dict.fromkeys(map(_who, rows_of(hard))))
        more = and_list(groups[1:3] + [f"{len(groups) - 3} more groups"] * (len(groups) > 3)) if groups[1:] else ""
        first = claim(hard.iloc[0], hard["editor"].nunique() > 1 or len(run.audited) > 1)
        return f"{first}{f'; also {more}' * bool(more)}."
    verdicts = set(own["verdict"])
    if verdicts == {"too_few"}:
        return "Too few people were asked about to compare groups."
    if verdicts <= {"equal", "too_few"}:
        return f"No group was hit harder by {settings.margin * 100:g} points or more."
    undecided = own[own["verdict"] == "undecided"]
    return f"No group is shown to be hit harder.{_missed(undecided)}"


def _missed(undecided: pd.DataFrame) -> str:
    for scale, factor, unit in (("probability", 100, "points"), ("log-odds", 1, "nats")):
        sizes = undecided.loc[undecided["scale"] == scale, "detectable"].dropna()
        if len(sizes):
            size = factor * sizes.median()
            return f" (Differences under {size:.{0 if size >= 1.5 else digits_for(size)}f} {unit} could be missed.)"
    return ""


def claim(row: pd.Series, several: bool) -> str:
    """Return a group that was hit harder: "Women for whom the old answer is true were hit harder by 5 points [..]"."""
    where = "" if row["relation"] == ALL else f" in edits of {relation_name(row['relation'])}"
    size = f" by {amount(row, -1)}" if row["n_edits"] >= FEW_EDITS else ""
    who, editor = capital(_who(row)), f" ({row['editor']})" * several
    return f"{who} {_WHO[row['true_answer']]} were hit harder than others{size}{where}{editor}"


def _who(row: Mapping[str, Any] | pd.Series) -> str:
    form = {"race": "{} people", "region": "people from {}"}.get(row["axis"], "{}")
    return form.format(row["group"])


def group_counts(frame: pd.DataFrame, run: Run) -> str:
    """Return the contrasts of groups in counts: "180 compared, 0 hit harder; 127 have too few people"."""
    own = tests(frame)
    own = own[own["editor"].isin(run.audited) & ~own["mirror"].astype(bool)]
    if own.empty:
        return "none compared"
    counts = own["verdict"].value_counts()
    few, harder = int(counts.get("too_few", 0)), int(counts.get("hit_harder", 0) + counts.get("slightly_harder", 0))
    parts = [f"{len(own) - few:,} compared", f"{harder} hit harder"]
    parts += [
        f"{counts[name]} {words}" for name, words in (("equal", "equal"), ("hit_less", "hit less")) if counts.get(name)
    ]
    return ", ".join(parts) + (f"; {few} have too few people" if few else "")


def header(run: Run) -> str:
    """Return the model, what was done to it and who was asked about, in one line."""
    model = run.manifest.get("model", {})
    facts = run.distinct["case_id"].nunique()
    names = and_list(run.audited)
    how = {"batch": "all together"}.get(run.protocol, "one at a time")
    people = 0 if run.people is None else run.people.loc[run.people["status"] == "ok", "person"].nunique()
    asked = f"; {quantity(people, 'other')} asked" * bool(people)
    if run.asked_only:
        return f"{model.get('id')} against {names}: {quantity(facts, 'fact')} asked{asked}"
    return f"{model.get('id')}: {quantity(facts, 'fact')} edited with {names}, {how}{asked}"


def controls_note(run: Run) -> str:
    """Return what the random control of a changed model is, where its kind is recorded."""
    kinds = {name: facts.get("null") for name, facts in run.manifest.get("edited", {}).items()}
    return " ".join(f"The control of {name}: {NULLS[kind]}." for name, kind in kinds.items() if kind in NULLS)
