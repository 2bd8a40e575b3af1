"""What a rater does, page by page; an answer is on the disk before the next page is shown."""

from __future__ import annotations

import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response

from seesaw_cf.base.errors import StorageError
from seesaw_cf.texts.people.forms import Form, blanks, first_of, read_answer
from seesaw_cf.texts.people.progress import MAIN, Standing, standing
from seesaw_cf.texts.people.security import Keys
from seesaw_cf.texts.people.store import Entry, StudyStore
from seesaw_cf.texts.people.study import Answer, RatingTask
from seesaw_cf.texts.people.views import FormState, guide_page, task_page, words_page

_LOG = logging.getLogger("uvicorn.error")
_MAX_PAGES = 20_000  # pages whose time of showing is remembered
_LONGEST = 3600.0  # seconds; who takes longer was not at the page
_TABS = (
    "This item was also answered on another page, perhaps in a second tab. Both answers are kept; the one that "
    "you sent last counts."
)
_LATE = "You had submitted already. What you sent is kept, but it does not count."
_NOTES = {"tabs": _TABS, "late": _LATE}
_BREAK = "You have done {done} of {total} items. This is a good moment for a break; everything is kept."
# Which file it is, and what is wrong with it, is for who runs the server: it goes to the server's log.
_FULL = (
    "Not saved: the server cannot write at the moment. What you entered is still in this page; leave it open, tell who "
    "gave you the link, and send it again later."
)
_STOPPED = (
    "Thank you. The first items were to see whether these judgements come easily to you, and too many of yours differ "
    "from those of others who know the task. There is nothing more to do."
)


class Rounds:
    """The pages of all raters of a study."""

    def __init__(self, store: StudyStore, keys: Keys) -> None:
        """Prepare the pages.

        Args:
            store: The study.
            keys: For the tokens of forms.
        """
        self._store, self._keys = store, keys
        self._times: OrderedDict[str, float] = OrderedDict()

    def home(self, request: Request, rater: str) -> Response:
        """Return the next thing to do."""
        study, now = self._store.study, standing(self._store, rater)
        if not now.consented:
            more = {"post": "/consent", "csrf": self._csrf(rater), "button": "I have read this and take part"}
            return HTMLResponse(words_page("Before you begin", [study.consent], **more))
        if now.submitted:
            return HTMLResponse(
                words_page(
                    "Thank you", ["Your answers are submitted. There is nothing more to do; you may close this page."]
                )
            )
        if now.qualified is False:
            return HTMLResponse(words_page("Thank you", [_STOPPED]))
        return _go(f"/task/{now.next}" if now.next else "/review")

    def consent(self, request: Request, rater: str, form: Form) -> Response:
        """Store that the rater takes part, and go to the guide."""
        self._log(rater, "consent")
        return _go("/guide")

    def guide(self, request: Request, rater: str) -> Response:
        """Return what is asked."""
        return HTMLResponse(guide_page(self._store.study))

    def task(self, request: Request, rater: str) -> Response:
        """Return one item with its form."""
        now, task = self._open(request, rater)
        latest = max(_entries(now, task), key=lambda entry: entry.seq, default=None)
        return self._page(now, task, latest.content if latest else {}, notes=_notes(request))

    def answer(self, request: Request, rater: str, form: Form) -> Response:
        """Store an answer; when it is whole it is on the disk before the next page is shown."""
        now, task = self._open(request, rater)
        item = self._store.items[task.item]
        content = read_answer(self._store.study, item, form)
        wrong = blanks(self._store.study, item, content)
        if now.locked(task) and not now.submitted:
            raise HTTPException(409, "This answer can no longer be changed; what you sent was not stored.")
        try:
            self._keep(rater, "draft" if wrong else "answer", task, content, form)
        except StorageError as error:
            return self._page(now, task, content, form, wrong, [_unsaved(error)], 507)
        if wrong:
            some = f"{len(wrong)} of {len(self._store.study.asked(item))} questions"
            notes = [f"Something is missing in {some}; what you entered is kept."]
            return self._page(now, task, content, form, wrong, notes, 422)
        note = "late" if now.submitted else "tabs" if _elsewhere(now, task, form) else ""
        return _go(self._after(standing(self._store, rater), task, new=task.position not in now.answers), note)

    def draft(self, request: Request, rater: str, form: Form) -> Response:
        """Store the content of a form that is not sent yet."""
        now, task = self._open(request, rater)
        content = read_answer(self._store.study, self._store.items[task.item], form)
        try:
            self._keep(rater, "draft", task, content, form)
        except StorageError as error:
            return PlainTextResponse(_unsaved(error), 507)
        if now.submitted:
            return PlainTextResponse(_LATE)
        return PlainTextResponse(
            _TABS if _elsewhere(now, task, form) else "Kept. Press the button when it is complete."
        )

    def rest(self, request: Request, rater: str) -> Response:
        """Return a break."""
        now = standing(self._store, rater)
        return HTMLResponse(
            words_page("A break?", [_BREAK.format(done=now.done, total=now.total)], link="/", button="Go on")
        )

    def review(self, request: Request, rater: str) -> Response:
        """Return all items once more before they are submitted."""
        now = standing(self._store, rater)
        notes = _notes(request)
        answered = [task for task in now.tasks if task.role in MAIN and task.position in now.answers]
        todo = [(f"/task/{task.position}", f"Item {now.number(task.position)}") for task in answered]
        if now.submitted or now.next is not None:
            return HTMLResponse(words_page("Note", notes, link="/", button="Go on")) if notes else _go("/")
        text = (
            "Every item has an answer. You may open each once more and correct it. After submitting, nothing changes."
        )
        more = {"post": "/submit", "csrf": self._csrf(rater), "button": "Submit my answers", "todo": todo}
        return HTMLResponse(words_page("All done", [text], notes=notes, **more))

    def submit(self, request: Request, rater: str, form: Form) -> Response:
        """Store that the rater is done, and go to the first page."""
        if standing(self._store, rater).next is not None:
            raise HTTPException(409, "Some items have no answer yet.")
        self._log(rater, "submit")
        return _go("/")

    def _log(self, rater: str, act: str) -> None:
        try:
            self._store.add(Entry(rater, act))
        except StorageError as error:
            raise HTTPException(507, _unsaved(error)) from error

    def _csrf(self, rater: str) -> str:
        return self._keys.token("form", rater)

    def _open(self, request: Request, rater: str) -> tuple[Standing, RatingTask]:
        now, position = standing(self._store, rater), int(request.path_params["position"])
        if not now.consented or not now.may_open(position):
            raise HTTPException(404, "This item is not open to you, or not yet.")
        return now, now.tasks[position - 1]

    def _page(
        self,
        now: Standing,
        task: RatingTask,
        content: Answer,
        form: Form | None = None,
        wrong: Mapping[str, str] = MappingProxyType({}),
        notes: Sequence[str] = (),
        status: int = 200,
    ) -> Response:
        name = first_of(form, "form") if form else secrets.token_hex(8)
        if not form:
            self._times[name] = time.monotonic()
            while len(self._times) > _MAX_PAGES:
                self._times.popitem(last=False)
        seen = max((entry.seq for entry in _entries(now, task)), default=0)
        state = FormState(self._csrf(task.rater), name, seen, content, wrong, notes)
        return HTMLResponse(task_page(self._store.study, self._store.items[task.item], task, now, state), status)

    def _keep(self, rater: str, act: str, task: RatingTask, content: Answer, form: Form) -> None:
        name = first_of(form, "form")[:32]
        then = self._times.get(name)
        duration = None if then is None else round(time.monotonic() - then, 1)
        seconds = duration if duration is not None and act == "answer" and duration <= _LONGEST else None
        self._store.add(Entry(rater, act, task.position, content, name, seconds))

    def _after(self, now: Standing, task: RatingTask, *, new: bool) -> str:
        """Return where to go from an answered item."""
        if task.role == "training":
            return f"/task/{task.position}"
        every = self._store.study.breaks
        if new and every and now.next and task.role in MAIN and now.done % every == 0:
            return "/break"
        return f"/task/{now.next}" if now.next and now.qualified is not False else "/review" if not now.next else "/"


def _notes(request: Request) -> list[str]:
    """Return the note that an address asks for, as a list."""
    return [words for name, words in _NOTES.items() if name == request.query_params.get("note")]


def _entries(now: Standing, task: RatingTask) -> list[Entry]:
    """Return what is stored about a task: its answer and its draft."""
    return [entries[task.position] for entries in (now.answers, now.drafts) if task.position in entries]


def _elsewhere(now: Standing, task: RatingTask, form: Form) -> bool:
    """Return whether another page has written about the task since this one was shown."""
    seen, name = first_of(form, "seen"), first_of(form, "form")
    last = int(seen) if seen.isdecimal() and len(seen) < 16 else 0
    return any(entry.seq > last and entry.form != name for entry in _entries(now, task))


def _unsaved(error: StorageError) -> str:
    _LOG.error("%s", error)
    return _FULL


def _go(place: str, note: str = "") -> Response:
    return RedirectResponse(f"{place}?note={note}" if note else place, 303)
