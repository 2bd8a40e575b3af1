"""What raters see: the values behind every page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from seesaw_cf.base.types import JsonObject
from seesaw_cf.report.html.render import REPORTS, PageTemplate, policy, render
from seesaw_cf.texts.people.forms import agrees, expected
from seesaw_cf.texts.people.make import KINDS
from seesaw_cf.texts.people.progress import MAIN, Standing
from seesaw_cf.texts.people.spans import sentence_spans, word_spans
from seesaw_cf.texts.people.status import RaterStatus, status_table
from seesaw_cf.texts.people.study import Answer, RatingItem, RatingStudy, RatingTask

_PAGES = Path(__file__).parent / "pages"
_LOOK = PageTemplate(
    (*REPORTS.styles, _PAGES / "annotate.css"),
    (_PAGES / "annotate.js",),
    _PAGES,
    "form-action 'self'; connect-src 'self'",
)
POLICY = policy(_LOOK) + "; frame-ancestors 'none'"
_ROLES = {"training": "Training", "gold": "First items"}


@dataclass(frozen=True, slots=True)
class FormState:
    """What a form is filled with.

    Attributes:
        csrf, form: Its tokens.
        seen: The last entry about the task that the rater has seen.
        answers: Question -> value.
        wrong: Question -> what is wanted.
        notes: Shown above the item.
    """

    csrf: str
    form: str
    seen: int
    answers: Answer
    wrong: Mapping[str, str]
    notes: Sequence[str] = ()


def words_page(title: str, parts: Sequence[str], **more: object) -> str:
    """Return a page of text, with a button, a link or a list where they are given."""
    blank: JsonObject = {"notes": (), "help": (), "examples": (), "todo": (), "post": "", "csrf": ""}
    parts = [paragraph for part in parts for paragraph in _paragraphs(part)]
    return render("words.html", {**blank, "link": "", "button": "", "title": title, "parts": parts, **more}, _LOOK)


def _paragraphs(text: str) -> list[str]:
    """Split plain text into its paragraphs; their lines are joined, but for those of a list."""
    joined = (re.sub(r"(?<=\S)[ \t]*\n(?![ \t]*[-*\d])", " ", part) for part in re.split(r"\n\s*\n", text.strip()))
    return [part.strip() for part in joined if part.strip()]


def guide_page(study: RatingStudy) -> str:
    """Return what is asked, what counts, and the examples."""
    help = [question for question in study.questions if question.help]
    examples = KINDS[study.kind].examples
    keys = [f"With a keyboard: {KINDS[study.kind].keys}"] if KINDS[study.kind].keys else []
    parts = [*study.task, *keys]
    return words_page("What is asked", parts, help=help, examples=examples, link="/", button="Go on")


def status_page(study: RatingStudy, statuses: Sequence[RaterStatus]) -> str:
    """Return how far the raters are, for who runs the study."""
    return render("status.html", {"title": "Status", "status": status_table(study, statuses)}, _LOOK)


def task_page(study: RatingStudy, item: RatingItem, task: RatingTask, now: Standing, state: FormState) -> str:
    """Return one item with its form; a training item that is answered with the answers of other people."""
    marked = any(text.marked for text in item.texts)
    questions = study.asked(item)
    trained = task.role == "training" and task.position in now.answers and not state.wrong
    values = {
        "title": _title(task, now),
        "where": _where(task, now),
        "back": f"/task/{task.position - 1}" if task.position > 1 else "",
        "now": now,
        "state": state,
        "item": item,
        "texts": item.shown(task.first),
        "sentences": _sentences(item.texts[0].body) if marked else [],
        "passage": item.texts[0].body if marked else "",
        "questions": questions,
        "action": f"/task/{task.position}",
        "said": {question.name: state.answers.get(question.name) for question in questions},
        "locked": now.locked(task),
        "keys": KINDS[study.kind].keys,
        "feedback": _feedback(study, item, task, now) if trained else None,
        "why": item.gold.why if item.gold else "",
        "onward": f"/task/{now.next}" if now.next else "/review",
    }
    return render("task.html", values, _LOOK)


def _sentences(text: str) -> list[list[tuple[int, int, str]]]:
    """Return the words of each sentence: where they begin and end, and what they are."""
    return [[(*word, text[slice(*word)]) for word in word_spans(text, span)] for span in sentence_spans(text)]


def _title(task: RatingTask, now: Standing) -> str:
    if task.role in MAIN:
        return f"Item {now.number(task.position)} of {now.total}"
    own = [other.position for other in now.tasks if other.role == task.role]
    return f"{_ROLES[task.role]}: {own.index(task.position) + 1} of {len(own)}"


def _where(task: RatingTask, now: Standing) -> str:
    left = now.minutes_left
    time = "" if left is None else f"; about {left} minute{'s' if left > 1 else ''} left"
    return f"{now.done} of {now.total} done{time}"


def _feedback(
    study: RatingStudy, item: RatingItem, task: RatingTask, now: Standing
) -> list[tuple[object, object, object, bool]]:
    """Return, question by question, the right answer, the rater's, and whether they agree."""
    right, answer = expected(item, task), now.answers[task.position].content
    return [
        (question, value, own := answer.get(question.name), agrees(own, value, exactly=False))
        for question in study.asked(item)
        if (value := right.get(question.name)) is not None
    ]
