"""The pages of a study as a Starlette application: who may see them, and which page does what."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from http import HTTPStatus
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route

from seesaw_cf.base.web import Guard
from seesaw_cf.texts.people.forms import Form, first_of
from seesaw_cf.texts.people.rounds import Rounds
from seesaw_cf.texts.people.security import Keys, Limit, Place
from seesaw_cf.texts.people.status import status_of
from seesaw_cf.texts.people.store import StudyStore
from seesaw_cf.texts.people.views import POLICY, status_page, words_page

LARGEST = 512 * 1024
"""Bytes of a form; the longest answer has two texts of 20,000 letters, each up to 9 bytes once it is URL-encoded."""
_COOKIE = "rater"


def make_app(store: StudyStore, look: StudyStore, place: Place) -> Starlette:
    """Return the application.

    Args:
        store: The study.
        look: The same, read-only, for the status page.
        place: Where it is served, and how often a rater may ask.
    """
    keys = Keys(store.secret, store.study.raters)
    site, pages = _Site(look, place, keys), Rounds(store, keys)
    routes = [
        Route("/", site.asked(pages.home)),
        Route("/enter/{token}", site.enter),
        Route("/status/{token}", site.status),
        Route("/health", lambda request: PlainTextResponse("ok")),
        Route("/consent", site.sent(pages.consent), methods=["POST"]),
        Route("/guide", site.asked(pages.guide)),
        Route("/task/{position:int}", site.asked(pages.task), methods=["GET"]),
        Route("/task/{position:int}", site.sent(pages.answer), methods=["POST"]),
        Route("/task/{position:int}/draft", site.sent(pages.draft), methods=["POST"]),
        Route("/break", site.asked(pages.rest)),
        Route("/review", site.asked(pages.review)),
        Route("/submit", site.sent(pages.submit), methods=["POST"]),
    ]
    reason = "This server is not known under that name. Open it as the link you were given says."
    headers = {"content-security-policy": POLICY, "referrer-policy": "same-origin"}
    guard = Middleware(Guard, place.hosts, headers, PlainTextResponse(reason, 421))
    return Starlette(routes=routes, middleware=[guard], exception_handlers={HTTPException: _refused})


async def read_form(request: Request) -> Form:
    """Return the fields of a posted form.

    Raises:
        HTTPException: 413 for more than `LARGEST` bytes, 400 for a body that is not a form.
    """
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST:
            raise HTTPException(
                413, f"More than {LARGEST} bytes were sent; nothing of it was stored. Shorten the text."
            )
    try:
        return parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=2000, errors="strict")
    except ValueError as error:
        raise HTTPException(400, "What was sent is no form of these pages; nothing was stored.") from error


async def _refused(request: Request, error: Exception) -> Response:
    """Return the reason where the page's script finds it: all that a draft gets, and the alert of a page."""
    failure = error if isinstance(error, HTTPException) else HTTPException(500)
    if request.url.path.endswith("/draft"):
        return PlainTextResponse(failure.detail, failure.status_code, failure.headers)
    reason = "There is no such page." if failure.detail == HTTPStatus(failure.status_code).phrase else failure.detail
    outside = failure.status_code == 401 or request.url.path.startswith(("/enter/", "/status/"))
    back = {} if outside else {"link": "/", "button": "Back to your items"}
    page = words_page("This page cannot be shown", [], notes=[reason], **back)
    return HTMLResponse(page, failure.status_code, failure.headers)


class _Site:
    """Who asks: links, cookies, tokens of forms."""

    def __init__(self, look: StudyStore, place: Place, keys: Keys) -> None:
        self._look, self._keys, self._secure = look, keys, place.url.startswith("https:")
        self._busy, self._bad = Limit(place.burst, place.rate), Limit(place.bad_links, 0.1)

    def asked(self, page: Callable[[Request, str], Response]) -> Callable[[Request], Awaitable[Response]]:
        """Return a page that only a rater may see."""

        async def answer(request: Request) -> Response:
            return await run_in_threadpool(page, request, self._rater(request))

        return answer

    def sent(self, act: Callable[[Request, str, Form], Response]) -> Callable[[Request], Awaitable[Response]]:
        """Return a form that only a rater may send, from a page of this server."""

        async def answer(request: Request) -> Response:
            rater, form = self._rater(request), await read_form(request)
            if not self._keys.fits(first_of(form, "csrf"), "form", rater):
                raise HTTPException(403, "This form is not from these pages; nothing was stored. Open your link again.")
            return await run_in_threadpool(act, request, rater, form)

        return answer

    def _rater(self, request: Request) -> str:
        rater = self._keys.rater_of("cookie", request.cookies.get(_COOKIE, ""))
        if rater is None:
            raise HTTPException(401, "Open the link that you were given; it lets you in. Cookies must be allowed.")
        if (wait := self._busy.wait(rater)) > 0:
            raise HTTPException(429, "That was too much at once; nothing was stored. Wait a moment and try again.",
                                {"Retry-After": str(round(wait) + 1)})  # fmt: skip
        return rater

    async def enter(self, request: Request) -> Response:
        """Open a secret link: set the rater's cookie and welcome them.

        The page is shown instead of a redirect, since the cookie is not sent along from elsewhere.
        """
        rater = self._keys.rater_of("link", request.path_params["token"])
        if rater is None:
            raise self._bad_link(request)
        text = "This link is yours alone. Keep it: it takes you back to where you were."
        response = HTMLResponse(words_page(f"Welcome, {rater}", [text], link="/", button="Go on"))
        response.set_cookie(
            _COOKIE,
            self._keys.token("cookie", rater),
            max_age=90 * 24 * 3600,
            httponly=True,
            samesite="strict",
            secure=self._secure,
        )
        return response

    def _bad_link(self, request: Request) -> HTTPException:
        wait = self._bad.wait(request.client.host if request.client else "")
        if wait:
            return HTTPException(429, "Too many wrong links. Wait a minute.", {"Retry-After": str(round(wait) + 1)})
        return HTTPException(404, "There is no such link. Copy it whole, as you were given it.")

    async def status(self, request: Request) -> Response:
        """Return how far all raters are, for who runs the study; the file is read and cannot be written."""
        if not self._keys.fits(request.path_params["token"], "status"):
            raise self._bad_link(request)
        return HTMLResponse(status_page(self._look.study, await run_in_threadpool(status_of, self._look)))
