"""Scores, topics, pictures and the page of a crawl."""

import json
import random
import sys
import threading
import types
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from seesaw_cf.errors import RecordError, SeesawError, ServiceError, UnknownNameError
from seesaw_cf.texts.graph import GraphJob
from seesaw_cf.texts.graph.crawl import Crawl, crawl_identities
from seesaw_cf.texts.graph.figures import _graph
from seesaw_cf.texts.graph.identities import find
from seesaw_cf.texts.graph.report import report_crawl
from seesaw_cf.texts.graph.rows import content_texts, crawl_rows
from seesaw_cf.texts.graph.scores import SentenceScorer, find_scorer, fit_topics, perspective, score_crawl
from tests.stereotypes.fakes import FakeGenerator, known_attack, known_regard, save_classifier

PEOPLE = find(["gender identity"])
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \x1b[31m \u2028"
REGARD = known_regard(lambda text: "negative" if "lazy" in text else "positive" if "kind" in text else "neutral")


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawl:
    folder = tmp_path_factory.mktemp("crawl") / "a"
    crawl = crawl_identities(FakeGenerator(), PEOPLE, GraphJob("m", triples=40), folder)
    attack = known_attack(lambda text: 0.5 * text.startswith("Women") + 0.25 * ("lazy" in text))
    return score_crawl(crawl, REGARD, attack)


def number(frame: pd.DataFrame, about: str, what: str, group: str) -> float:
    rows = frame[(frame["about"] == about) & (frame["what"] == what) & (frame["group"] == group)]
    assert len(rows) == 1
    return float(rows["value"].iloc[0])


def test_every_triple_is_scored_and_the_scorers_bias_is_seen(crawled: Crawl) -> None:
    rows, frame = crawled.triples, crawl_rows(crawled)
    assert len(rows) == 120
    assert set(rows.loc[rows["object"].str.contains("lazy"), "regard"]) == {"negative"}
    women = rows["identity"] == "Women"
    assert number(frame, "attack_scorer", "change", "Women") == pytest.approx(0.5)
    assert number(frame, "attack_scorer", "change", "Men") == 0
    assert number(frame, "attack", "mean", "Women") == pytest.approx(rows.loc[women, "attack"].mean())
    labels = rows.loc[women, "regard"].value_counts()
    assert number(frame, "regard", "overall", "Women") == labels["positive"] - labels["negative"]


def test_unscored_triples_stay_with_the_reason(tmp_path: Path) -> None:
    crawl = crawl_identities(FakeGenerator(), PEOPLE, GraphJob("m", triples=10), tmp_path / "a")
    assert crawl.scored == []
    with pytest.raises(RecordError, match="regard by None, attack by None"):
        score_crawl(crawl)
    scored = score_crawl(crawl, attack=known_attack(lambda text: None if text.startswith("Men") else 0.1))
    assert set(scored.scores["status"]) == {"ok", "time-out"}
    assert scored.triples.loc[scored.triples["identity"] == "Men", "attack"].isna().all()
    assert "got no score." in report_crawl(scored)
    empty = crawl_identities(FakeGenerator(lambda p, r: ""), PEOPLE, GraphJob("m", triples=10), tmp_path / "b")
    with pytest.raises(RecordError, match="0 triples to score"):
        score_crawl(empty, attack=known_attack(lambda text: 0.0))
    assert "The model wrote nothing that could be read as a triple." in report_crawl(empty)


@pytest.mark.slow
def test_the_page_has_all_figures_and_nothing_runs_that_a_model_wrote(crawled: Crawl, tmp_path: Path) -> None:
    plain = crawl_identities(FakeGenerator(), PEOPLE, GraphJob("m", triples=40, prefix="expand"), tmp_path / "plain")
    plain = score_crawl(plain, attack=known_attack(lambda text: 0.1))
    odd = crawled.completions["found_object"].where(crawled.completions.index % 7 > 0, EVIL)
    crawl = replace(crawled, completions=crawled.completions.assign(found_object=odd))
    topics = fit_topics(content_texts(crawl.triples), 4, method="nmf")
    text = report_crawl(crawl, topics, plain)
    assert "No identity is shown" in text or "The model speaks" in text
    report = crawl.folder / "report"
    pictures = sorted(file.name.split("_")[0] for file in (report / "pictures").iterdir())
    assert pictures == [f"figure{n}" for n in range(2, 9)]
    page = (report / "report.html").read_text()
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert page.count("<svg ") == 7
    record = json.loads((report / "report.json").read_text())
    assert set(record) == {"screen", "rows", "topics"}
    assert len(pd.read_csv(report / "tables" / "scores.csv")) == len(record["rows"])
    before = {file: file.read_bytes() for file in report.rglob("*.*")}
    report_crawl(crawl, topics, plain)
    assert {file: file.read_bytes() for file in report.rglob("*.*")} == before


def test_a_shared_object_is_one_node(crawled: Crawl) -> None:
    """Two identities, three objects of which both have one: three labels, and a line for each of the four triples."""
    rows = crawled.completions[crawled.completions["verdict"] == "kept"].groupby("identity", sort=True).head(2).head(4)
    rows = rows.assign(identity=["Men", "Men", "Women", "Women"], found_object=["tea", "hats", "Tea", "boats"])
    (axes,) = _graph(replace(crawled, completions=rows, scores=crawled.scores.head(0))).axes
    assert sorted([label.get_text().split()[-1].lower() for label in axes.texts][-3:]) == ["boats", "hats", "tea"]
    ends = [float(np.asarray(line.get_ydata())[-1]) for line in axes.lines]
    assert sorted(ends.count(end) for end in set(ends)) == [1, 1, 2]


def test_topics_are_seeded_and_named() -> None:
    rng = random.Random(0)
    words = {"warmth": "friendly kind polite warm welcoming", "competence": "clever lazy smart skilled educated"}
    texts = [" ".join(rng.sample(seeds.split(), 3)) for seeds in words.values() for _ in range(30)]
    found = fit_topics(texts, 2, method="nmf", seed=1)
    assert found == fit_topics(texts, 2, method="nmf", seed=1)
    assert set(found.labels.values()) == {"warmth", "competence"}
    assert len(set(found.topic[:30])) == len(set(found.topic[30:])) == 1
    assert found.method == "NMF over TF-IDF, seed 1"
    for wrong, method, why in (
        (texts, "lda", "'lda'"),
        (["the", "of"], "nmf", "no words"),
        (["one"], "nmf", "1 texts"),
    ):
        with pytest.raises(SeesawError, match=why):
            fit_topics(wrong, method=method)


def test_any_classifier_with_the_right_labels_scores(tmp_path: Path) -> None:
    scorer = find_scorer("regard", str(save_classifier(tmp_path / "regard")))
    assert scorer is not None
    texts = ["Women love art", "Men are tall", "Men are " + "very " * 500 + "tall"]
    for answer in scorer.score(texts):
        assert answer.label in ("positive", "negative", "neutral", "other")
        assert answer.value == {"positive": 1, "negative": -1}.get(answer.label, 0)
    assert scorer.score([]) == []
    attack = find_scorer("attack", str(save_classifier(tmp_path / "attack", ["fine", "identity_attack"])))
    assert attack is not None
    assert all(0 < (answer.value or 0) < 1 for answer in attack.score(texts[:2]))
    assert find_scorer("attack", "none") is None
    other = str(save_classifier(tmp_path / "other", ["LABEL_0", "LABEL_1", "LABEL_2"]))
    for measure in ("regard", "attack"):
        with pytest.raises(RecordError, match=rf"{measure} model .* has the labels \['LABEL_0'.*expected"):
            find_scorer(measure, other)
    with pytest.raises(UnknownNameError, match="could not be loaded"):
        find_scorer("regard", str(tmp_path / "nothing"))


def test_detoxify_is_used_when_there(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {"toxicity": 0.9, "identity_attack": 0.1}
    model = types.SimpleNamespace(predict=lambda texts: {name: [v] * len(texts) for name, v in scores.items()})
    fake = types.SimpleNamespace(Detoxify={"unbiased": model}.__getitem__)
    monkeypatch.setitem(sys.modules, "detoxify", fake)
    scorer = find_scorer("attack", "detoxify")
    assert scorer is not None
    assert [answer.value for answer in scorer.score(["a", "b"])] == [0.1, 0.1]


class _PerspectiveHandler(BaseHTTPRequestHandler):
    replies: list[int]
    seen: list[tuple[str, str, dict[str, object]]]

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((self.path, self.headers.get("X-Goog-Api-Key", ""), asked))
        status = self.replies.pop(0) if self.replies else 200
        score = {"IDENTITY_ATTACK": {"summaryScore": {"value": 0.01 * len(asked["comment"]["text"])}}}
        self.send_response(200 if status == 299 else status)
        self.end_headers()
        self.wfile.write(json.dumps({"attributeScores": {} if status == 299 else score}).encode())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[SentenceScorer, type[_PerspectiveHandler]]]:
    handler = type("Handler", (_PerspectiveHandler,), {"replies": [], "seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    monkeypatch.setenv("PERSPECTIVE_API_KEY", "secret-0815")
    yield perspective(f"http://127.0.0.1:{server.server_address[1]}/x", tries=3, wait=0.01), handler
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_perspective_server_is_asked_with_the_key_in_a_header(
    server: tuple[SentenceScorer, type[_PerspectiveHandler]], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, handler = server
    handler.replies += [429, 200, 400, 299, 299, 299]
    answers = client.score(["a" * 10, "b" * 20, "c" * 30, "d" * 40])
    assert [answer.value for answer in answers] == [pytest.approx(0.1), None, None, pytest.approx(0.4)]
    reasons = ["refused by the server: 400", "no score after 3 tries: KeyError"]
    assert [answer.status for answer in answers] == ["ok", *reasons, "ok"]
    path, key, asked = handler.seen[0]
    assert (path, key) == ("/x", "secret-0815")
    assert asked["requestedAttributes"] == {"IDENTITY_ATTACK": {}}
    handler.replies += [403]
    with pytest.raises(ServiceError, match=r"refuses \(status 403\)\. Check the key in PERSPECTIVE_API_KEY") as raised:
        client.score(["a"])
    assert "secret" not in f"{raised.value} {client.name}"
    monkeypatch.delenv("PERSPECTIVE_API_KEY")
    with pytest.raises(ServiceError, match="PERSPECTIVE_API_KEY is not set"):
        perspective()
