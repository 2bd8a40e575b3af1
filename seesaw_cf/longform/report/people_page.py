"""`report.html` of people's answers about long texts: conclusion, ratings and claims as forest plots, every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from seesaw_cf.longform.report.collected import Collected
from seesaw_cf.longform.report.page_measures import claims_plot, methods, share_said, survey_plot, took
from seesaw_cf.longform.report.sections import findings_of
from seesaw_cf.longform.report.values import BASELINE
from seesaw_cf.page.findings import Findings
from seesaw_cf.page.forest import key_colours
from seesaw_cf.report import text
from seesaw_cf.report.table import Table

# Kind of answers -> column of the answer, column of who gave it, what it is called.
_ANSWERS = {
    "ratings": ("rating", "rater", "ratings"),
    "annotations": ("label", "annotator", "labels of claims"),
    "failures": ("present", "rater", "answers about failure modes"),
}
_AGREEMENT = {
    "survey_agreement": ("type", "all", "the survey"),
    "claim_agreement": ("claim", "all", "claims"),
}
_UNEDITED = (BASELINE, "human")
_METHOD = (
    "Means are means of case means over all people, with 95 % intervals clustered by case. none is the unedited model, "
    "human are passages that people wrote.",
    "Ratings go from 1 (strongly disagree) to 7 (strongly agree). Claims are what is recorded about the people: the "
    "edited fact, what it replaced, and facts that the edit does not touch (ground truth).",
)


def people_findings(people: Collected, sections: Sequence[Table], facts: Mapping[str, Any]) -> Findings:
    """What the page says.

    Args:
        people: Tables of people.
        sections: See `seesaw_cf.longform.report.people_survey.people_sections`.
        facts: What was recorded about the report.
    """
    frames = {one.name: one.frame for one in sections}
    survey, claims = (_by_people(frames.get(name), who) for name, who in (("survey", "rater"), ("claims", "annotator")))
    measures = {"survey": survey, "labels": claims}
    answers = [people.get(kind).to_pandas() for kind in _ANSWERS]
    names = [str(name) for frame in answers for name in frame["editor"]]
    colours = key_colours([BASELINE, *names])
    cases = {case for frame in answers for case in frame["case_id"]}
    editors = [name for name in dict.fromkeys(names) if name not in _UNEDITED]
    edited = f"Texts of {len(cases)} cases, after edits by {', '.join(editors) or 'nobody'}."
    return findings_of(
        "Long texts, as people rate them",
        (edited, took(measures), _contradicted(claims), _not_known(people), _sure(people, frames)),
        [survey_plot(survey, colours), claims_plot(claims, colours)],
        sections,
        _METHOD,
        facts,
    )


def _by_people(frame: pd.DataFrame | None, who: str) -> pd.DataFrame | None:
    return None if frame is None else frame.assign(**{who: "people"})


def _contradicted(claims: pd.DataFrame | None) -> str:
    """Facts that the edit does not touch."""
    if claims is None:
        return "Nothing is known about facts that the edits do not touch: nobody marked claims."
    chosen = claims.query("claim_kind == 'ground_truth' and label == 'contradicts'")
    shares = [f"{row['method']}, texts about the {row['passage']}: {share_said(row)}" for row in methods(chosen)]
    return f"Claims about untouched facts that are contradicted – {'; '.join(shares) or 'nobody marked any'}."


def _not_known(people: Collected) -> str:
    parts = []
    for kind, (column, who, name) in _ANSWERS.items():
        table = people.get(kind)
        if not table.num_rows:
            parts.append(f"no {name}")
            continue
        parts += [f"{n} of {table.num_rows} {name} are missing"] if (n := table[column].null_count) else []
        if len(set(table[who].to_pylist())) < 2:
            parts.append(f"{name} by one person: nothing is known about agreement")
    sentence = "; ".join(parts) or "nothing is missing"
    return f"{sentence[0].upper()}{sentence[1:]}."


def _sure(people: Collected, frames: Mapping[str, pd.DataFrame]) -> str:
    counts = []
    for kind, (column, who, name) in _ANSWERS.items():
        table = people.get(kind)
        if table.num_rows:
            n = table.num_rows - table[column].null_count
            raters = len(set(table[who].to_pylist()))
            counts.append(f"{n} {name} by {raters} {'person' if raters == 1 else 'people'}")
    agreed = [
        f"Krippendorff's alpha on {title} " + text.minus(text.estimate(row["alpha"], row["low"], row["high"]))
        for name, (by, whole, title) in _AGREEMENT.items()
        if name in frames
        for row in frames[name].to_dict("records")
        if row[by] == whole and row["alpha"] == row["alpha"]
    ]
    return f"{'; '.join([*counts, *agreed])}; 95 % intervals clustered by case."
