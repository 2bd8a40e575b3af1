"""The pages of raters, from link to submission, and everything that must not get through them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient

from seesaw_cf.errors import RecordError
from seesaw_cf.texts.people.export import export_study
from seesaw_cf.texts.people.forms import LONGEST
from seesaw_cf.texts.people.make import KINDS
from seesaw_cf.texts.people.making import Settings
from seesaw_cf.texts.people.progress import GoldJudgements, standing
from seesaw_cf.texts.people.security import Keys, Limit, Place
from seesaw_cf.texts.people.serving import links
from seesaw_cf.texts.people.store import StudyStore
from seesaw_cf.texts.people.web import LARGEST, make_app

from .studies import HOST, HOSTILE, R1, R2, Form, Rater, answered, any_answer, raters, study

Serve = Callable[..., tuple[StudyStore, list[Rater]]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Makes a study, or takes a file, and opens it for raters who have not entered."""
    with ExitStack() as stack:

        def made(
            kind: str | Path = "flaws", access: dict[str, Any] | None = None, **more: Any
        ) -> tuple[StudyStore, list[Rater]]:
            file = kind if isinstance(kind, Path) else study(tmp_path, kind, **more)
            store, look = stack.enter_context(StudyStore(file)), stack.enter_context(StudyStore(file, readonly=True))
            return store, raters(store, look, **(access or {}))

        yield made


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_rater_goes_from_link_to_submission(serve: Serve, kind: str) -> None:
    store, (one, other) = serve(kind)
    assert "Open the link that you were given" in one.open("/").texts
    one.enter()
    assert "Training" in one.page.texts
    tasks = store.tasks[R1]
    assert one.work(any_answer) == len(tasks)
    assert "All done" in one.page.texts
    assert len([link for link in one.page.links if link.startswith("/task/")]) == standing(store, R1).total
    one.send()
    assert "Your answers are submitted" in one.page.texts
    assert standing(store, R1).submitted
    assert other.browser.cookies.get("rater") is None
    assert not store.entries(R2)


def test_training_says_what_others_say_and_is_not_asked_again(serve: Serve) -> None:
    _, (one, _) = serve()
    one.enter()
    one.send(**{name: ["equal"] for name in one.page.choices})
    assert "What others would say" in one.page.texts
    assert "Sexism" in one.page.texts
    assert "more in text B; you said: " in " ".join(one.page.texts.split())
    assert not one.page.action
    one.open(one.page.links[-1])
    assert "Training: 2 of 2" in one.page.texts


@pytest.mark.slow
def test_back_and_correct_until_submitted(serve: Serve) -> None:
    store, (one, _) = serve(training=False)
    one.enter()
    one.work(any_answer, 2)
    one.open("/task/1")
    said = {name: values[0] for name, values in one.page.fields.items() if name in one.page.choices}
    assert set(said.values()) <= {"B", "unsure"}, "it is filled as it was answered"
    one.send(sexism=["A"])
    assert one.page.action == "/task/3"
    one.work(any_answer)
    one.send()
    assert standing(store, R1).answers[1].content["sexism"] == "A"
    locked = one.browser.get("/task/1").text
    assert locked.count(" disabled>") == locked.count("<fieldset")
    assert "data-task" not in locked.partition("<script>")[0], "nothing of it is sent by the script"
    assert "can no longer be changed" in one.open("/task/1").texts
    assert "minute" not in one.page.texts.partition("Subject")[0], "no time is left"
    before = len(store.entries(R1))
    page = one.page
    one.send(sexism=["B"])
    assert "submitted already. What you sent is kept, but it does not count" in one.page.texts
    assert page.action == "/task/1"
    assert len(store.entries(R1)) == before + 1
    assert standing(store, R1).answers[1].content["sexism"] == "A"


def test_an_incomplete_form_is_kept_and_named(serve: Serve) -> None:
    store, (one, _) = serve("claims", training=False)
    one.enter()
    name = next(iter(one.page.choices))
    one.send(**{name: ["supports"]})
    assert one.status == 422
    assert "mark at least one sentence, or the words, that say so" in one.page.texts
    assert "not answered yet" in one.page.texts
    assert one.page.fields[name] == ["supports"]
    assert standing(store, R1).next == 1
    one.open("/")
    assert one.page.fields[name] == ["supports"], "also on the next day"


def test_two_tabs_are_told_and_both_answers_kept(serve: Serve) -> None:
    store, (one, _) = serve(training=False)
    one.enter()
    tab = Rater(one.browser, one.link)
    tab.open("/task/1")
    one.send(**any_answer(one.page))
    tab.send(**{**any_answer(tab.page), "sexism": ["A"]})
    assert "second tab. Both answers are kept; the one that you sent last counts" in tab.page.texts
    log = [entry for entry in store.entries(R1) if entry.act == "answer"]
    assert [entry.content["sexism"] for entry in log] == ["B", "A"]
    again = tab.browser.post("/task/1/draft", data={**one.page.fields, "seen": ["0"], "sexism": ["equal"]})
    assert "second tab" in again.text
    tab.open("/task/1")
    tab.send()
    assert "second tab" not in tab.page.texts, "who has seen the last answer is not warned"


def test_drafts_are_kept_and_do_not_count(serve: Serve) -> None:
    store, (one, _) = serve("writing", training=False)
    one.enter()
    said = one.browser.post(one.page.action + "/draft", data={**one.page.fields, "subject": ["Half a sen"]})
    assert (said.status_code, said.text) == (200, "Kept. Press the button when it is complete.")
    assert standing(store, R1).next == 1
    assert one.open("/task/1").fields["subject"] == ["Half a sen"]


def test_a_restarted_server_knows_everybody(serve: Serve, tmp_path: Path) -> None:
    store, (one, _) = serve(training=False)
    one.enter()
    one.work(any_answer, 2)
    waiting = one.page
    store.close()
    again, (fresh, _) = serve(tmp_path / "tasks.study")
    fresh.browser.cookies.update(one.browser.cookies)
    fresh.page = waiting
    fresh.send(**any_answer(waiting))
    assert standing(again, R1).done == 3, "a page from before the restart is good"


def test_no_item_is_skipped_and_no_other_rater_is_seen(serve: Serve) -> None:
    store, (one, other) = serve(training=False)
    one.enter()
    assert "not open to you" in one.open("/task/2").texts
    assert [one.browser.get(f"/task/{place}").status_code for place in (0, 2, 999)] == [404] * 3
    one.open("/task/1")
    one.send(**any_answer(one.page), comment=["my own words"])
    other.enter()
    other.work(any_answer)
    assert "my own words" not in other.page.texts
    one.open("/task/1")
    stolen = {**one.page.fields, **any_answer(one.page)}
    assert other.browser.post("/task/1", data=stolen).status_code == 403, "the token of a form is one rater's"
    assert {entry.rater for entry in store.entries(R1)} == {R1}


def test_why_a_request_is_refused_is_where_the_script_looks(serve: Serve) -> None:
    _, (one, _) = serve(training=False, access={"burst": 12.0, "rate": 0.001})
    one.enter()
    stale = {**one.page.fields, "csrf": ["0"]}
    draft = one.browser.post("/task/1/draft", data=stale)
    assert (draft.status_code, draft.headers["content-type"]) == (403, "text/plain; charset=utf-8")
    assert draft.text.startswith("This form is not from these pages")
    page = [one.browser.post("/task/1", data=stale) for _ in range(12)][-1]
    assert page.status_code == 429
    assert int(page.headers["retry-after"]) > 900
    assert '<p class="alert" role="alert">That was too much at once' in page.text


def test_the_longest_texts_fit_in_a_form(serve: Serve) -> None:
    store, (one, _) = serve("writing", training=False)
    one.enter()
    one.send(subject=["\u6f22" * LONGEST], related=["\u5b57" * LONGEST])
    assert one.status == 200
    assert len(standing(store, R1).answers[1].content["related"]) == LONGEST


def test_gold_judgements_that_are_not_asked_do_not_count(tmp_path: Path) -> None:
    file = answered(study(tmp_path, "survey", "a.study", training=False), R1)
    with StudyStore(file, readonly=True) as store:
        export_study(store, tmp_path / "expert")
    gold = tmp_path / "expert" / "ratings.parquet"
    blind = study(
        tmp_path, "survey", "b.study", training=False, gold=gold, sample=0, settings=Settings(blind_edit=True)
    )
    answered(blind, R1)
    with StudyStore(blind, readonly=True) as store:
        now = standing(store, R1)
        assert now.gold.right == now.gold.asked > 0
        assert now.qualified


@pytest.mark.parametrize(("kind", "table"), [("survey", "ratings"), ("claims", "annotations"), ("flaws", "flaws")])
def test_gold_by_several_raters_is_refused(tmp_path: Path, kind: str, table: str) -> None:
    file = answered(study(tmp_path, kind, "a.study", training=False))
    with StudyStore(file, readonly=True) as store:
        export_study(store, tmp_path / "expert")
    with pytest.raises(RecordError, match=r"answers by 2 raters \(.*R1-5eed00, .*R2-5eed00\), expected one"):
        study(tmp_path, kind, "b.study", gold=tmp_path / "expert" / f"{table}.parquet")


@pytest.mark.slow
def test_gold_items_qualify_or_stop(tmp_path: Path, serve: Serve) -> None:
    first = study(tmp_path, "flaws", "expert.study", training=False, raters=1)
    store, (expert,) = serve(first)
    expert.enter()
    expert.work(lambda form: {name: ["equal"] for name in form.choices} | {"edit_reflected": ["no"]})
    export_study(store, tmp_path / "expert")
    gold = tmp_path / "gold.parquet"
    pq.write_table(pq.read_table(tmp_path / "expert" / "flaws.parquet").slice(0, 14), gold)
    store, (good, bad) = serve(study(tmp_path, "flaws", "b.study", training=False, gold=gold))
    assert [task.role for task in store.tasks[R1][:3]] == ["gold", "gold", "item"] or store.tasks[R1][2].role != "gold"
    good.enter()
    good.work(lambda form: {name: ["equal"] for name in form.choices} | {"edit_reflected": ["no"]})
    assert "All done" in good.page.texts
    assert standing(store, R1).gold == GoldJudgements(((True,) * 7,) * 2)
    bad.enter()
    bad.work(any_answer)
    assert "too many of yours differ" in bad.page.texts
    bad.open("/task/3")
    assert bad.status == 404
    assert "can no longer be changed" in bad.open("/task/1").texts
    done = export_study(store, tmp_path / "out")
    assert done.raters == [R1]
    assert done.left_out == {R2: "gold items: 0 of 14 right, too few"}


def test_breaks_progress_and_time(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr("seesaw_cf.texts.people.rounds.time.monotonic", lambda: clock[0])
    _, (one, _) = serve(training=False, breaks=2, deal={"duplicates": 0.0, "attention": 0})
    one.enter()
    for _ in range(3):
        one.open("/")
        clock[0] += 90
        one.send(**any_answer(one.page))
        if "A break?" in one.page.texts:
            assert "You have done 2 of 4 items" in one.page.texts
    one.open("/")
    assert "3 of 4 done; about 2 minutes left" in one.page.texts
    clock[0] += 10**6
    one.send(**any_answer(one.page))
    assert "All done" in one.page.texts


def test_a_full_disk_keeps_the_form(serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    store, (one, _) = serve(training=False)
    one.enter()
    pages = store._base.execute("PRAGMA page_count").fetchone()[0]
    store._base.execute(f"PRAGMA max_page_count = {pages}")
    full = {**any_answer(one.page), "comment": ["w" * 19_000]}
    one.send(**full)
    assert one.status == 507
    assert "Not saved: the server cannot write" in one.page.texts
    assert str(store.path) not in one.page.texts, "raters need not know where"
    assert str(store.path) in caplog.text, "who runs the server does"
    assert "send it again" in one.page.texts
    assert one.page.fields["comment"] == ["w" * 19_000]
    assert one.browser.post("/task/1/draft", data={**one.page.fields}).status_code == 507
    store._base.execute(f"PRAGMA max_page_count = {pages + 1000}")
    one.send()
    assert standing(store, R1).done == 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_hostile_text_is_shown_and_does_nothing(serve: Serve, kind: str) -> None:
    store, (one, _) = serve(kind, training=False, text=HOSTILE, deal={"attention": 0})
    for item in store.items.values():  # every text that a page may show
        object.__setattr__(item, "told", (*item.told, ("Note", (HOSTILE,))))
    one.enter()
    seen = 0
    while one.page.action.startswith("/task/"):
        page = one.browser.get(one.page.action).text
        assert page.count("<script") == 1
        assert "<img" not in page
        assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in page
        assert "alert(1)" in one.page.texts
        one.send(**{**any_answer(one.page), "comment": [HOSTILE]})
        seen += 1
        one.open("/")
    assert seen == len(store.tasks[R1])


def test_strangers_and_foreign_names_are_refused(serve: Serve, tmp_path: Path) -> None:
    store, (one, _) = serve(access={"bad_links": 3})
    assert one.browser.get("/", headers={"host": "evil.example"}).status_code == 421
    assert one.browser.get("/", headers={"host": f"{HOST}.evil.example"}).status_code == 421
    codes = [one.browser.get(f"/enter/{'0' * 40}").status_code for _ in range(5)]
    assert codes == [404, 404, 404, 429, 429]
    one.enter()
    assert one.status == 200, "a right link always opens"
    assert one.browser.get("/status/x").status_code == 429
    post = {name: value for name, value in one.page.fields.items() if name != "csrf"}
    assert one.browser.post("/task/1", data=post).status_code == 403
    assert one.browser.post("/task/1", data={**post, "csrf": ["0" * 40]}).status_code == 403
    assert one.browser.post("/task/1", content=b"x=" + b"y" * LARGEST).status_code == 413
    assert one.browser.post("/task/1", content=b"\xff\xfe=1").status_code in (400, 403)
    assert one.browser.post("/task/1", content="&".join(f"a{n}=1" for n in range(3000))).status_code == 400
    assert one.browser.put("/task/1").status_code == 405
    assert one.browser.get("/nothing").status_code == 404
    one.browser.cookies.set("rater", "é" * 5)
    assert [entry.act for entry in store.entries()] == ["consent"]


def test_cookies_and_headers_are_strict(serve: Serve) -> None:
    store, (one, _) = serve()
    path = re.sub(r"^https?://[^/]+", "", one.link)
    answer = one.browser.get(path)
    assert "HttpOnly" in answer.headers["set-cookie"]
    assert "SameSite=strict" in answer.headers["set-cookie"]
    assert "Secure" not in answer.headers["set-cookie"]
    assert store.secret not in answer.text + answer.headers["set-cookie"]
    assert one.link.rsplit("/", 1)[1] not in answer.headers["set-cookie"], "the link is not the cookie"
    said = answer.headers["content-security-policy"]
    assert said.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in said
    assert "frame-ancestors 'none'" in said
    for name, value in (
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
        ("x-frame-options", "DENY"),
    ):
        assert one.browser.get("/health").headers[name] == value
    with StudyStore(store.path) as own, StudyStore(store.path, readonly=True) as look:
        app = make_app(own, look, Place(url="https://study.example.org"))
        answer = TestClient(app, "https://study.example.org").get(path)
        assert "Secure" in answer.headers["set-cookie"]


def test_one_rater_cannot_flood(serve: Serve) -> None:
    _, (one, other) = serve(access={"burst": 5.0, "rate": 0.001})
    one.open(re.sub(r"^https?://[^/]+", "", one.link))
    codes = [one.browser.get("/guide").status_code for _ in range(8)]
    assert codes == [200] * 5 + [429] * 3
    other.open(re.sub(r"^https?://[^/]+", "", other.link))
    assert other.browser.get("/guide").status_code == 200


def test_the_status_page_counts_and_needs_its_link(serve: Serve) -> None:
    store, (one, _) = serve()
    one.enter()
    one.work(any_answer)
    one.send()
    place = re.sub(r"^https?://[^/]+", "", links(store, Place())["status"])
    page = one.browser.get(place).text
    total = standing(store, R1).total
    assert f"flaws: {total} of {2 * total} items have an answer" in page
    assert one.browser.get("/status/" + "0" * 40).status_code == 404


def test_tokens_are_good_for_one_use_and_one_study() -> None:
    keys, other = Keys("secret", ["R1", "R2"]), Keys("secret2", ["R1"])
    tokens = {keys.token(use, rater) for use in ("link", "cookie", "form", "status") for rater in ("R1", "R2", "")}
    assert len(tokens) == 12
    assert keys.rater_of("link", keys.token("link", "R2")) == "R2"
    for wrong in (keys.token("cookie", "R2"), other.token("link", "R1"), "", "é\udcff"):
        assert keys.rater_of("link", wrong) is None


def test_a_limit_fills_again_and_forgets_nobody_early() -> None:
    clock = [0.0]
    limit = Limit(2, 0.5, lambda: clock[0])
    assert [limit.wait("a") for _ in range(3)] == [0, 0, 2]
    assert limit.wait("b") == 0
    clock[0] = 2.0
    assert limit.wait("a") == 0
    assert limit.wait("a") > 0
    clock[0] = -100.0
    assert limit.wait("b") >= 0, "a clock that went back lets nobody in for free"


def test_pages_are_read_as_forms() -> None:
    form = Form(
        '<form action="/x"><input type="radio" name="a" value="1" checked><textarea name="t">hi</textarea></form>'
    )
    assert (form.action, form.fields, form.choices) == ("/x", {"a": ["1"], "t": ["hi"]}, {"a": ["1"]})


def test_a_page_that_is_not_there_says_so_and_a_wrong_link_leads_nowhere(serve: Serve) -> None:
    _, (one, _) = serve()
    assert "Open the link that you were given" in one.open("/").texts
    assert one.page.links == ["#main"], "without a link there is nothing to go back to"
    assert "no such link" in one.open("/enter/0000").texts
    assert one.page.links == ["#main"]
    one.enter()
    for place in ("/nothing", "/submit", "/consent"):  # the last two can be sent, not opened
        assert "There is no such page." in one.open(place).texts
        assert "/" in one.page.links


def test_training_says_what_was_said_and_what_is_close_enough(serve: Serve) -> None:
    _, (one, _) = serve("survey")
    one.enter()
    one.send(**{name: ["6"] for name in one.page.choices})
    said = " ".join(one.page.texts.split())
    assert re.search(r"agree; you said: Agree(, which is close enough)?|Agree [(]as you said[)]", said, re.I)
    assert "with a keyboard: 1 to 7" in one.open("/guide").texts.lower()
