"""Scores, GraphML and pictures of a crawl."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from seesaw_cf.errors import RecordError, RunFolderError, SeesawError, ServiceError, UnknownNameError
from seesaw_cf.texts.graph.changes import content_texts, regard_and_attack, topic_results
from seesaw_cf.texts.graph.crawl import crawl_identities
from seesaw_cf.texts.graph.draw import _graph, draw
from seesaw_cf.texts.graph.folder import Crawl
from seesaw_cf.texts.graph.graph import export_graphml
from seesaw_cf.texts.graph.identities import find
from seesaw_cf.texts.graph.score import MASK, score_crawl
from seesaw_cf.texts.graph.scorers import (
    Detoxifier,
    Perspective,
    attack_classifier,
    regard_classifier,
)
from seesaw_cf.texts.graph.settings import CrawlSettings
from seesaw_cf.texts.graph.topics import fit_topics
from tests.stereotypes.classifiers import KnownAttack, KnownRegard, save_classifier
from tests.stereotypes.fakes import FakeGenerator

PEOPLE = find(["gender identity"])
EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \x1b[31m \u2028"


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawl:
    folder = tmp_path_factory.mktemp("crawl") / "a"
    found = crawl_identities(FakeGenerator(), PEOPLE, CrawlSettings(triples=40), folder)
    attack = KnownAttack(lambda text: 0.5 * text.startswith("Women") + 0.25 * ("lazy" in text))
    regard = KnownRegard(lambda text: "negative" if "lazy" in text else "positive" if "kind" in text else "neutral")
    return score_crawl(found, regard, attack, contents=12)


def test_every_triple_is_scored_also_masked_and_the_scorers_bias_is_seen(crawled: Crawl) -> None:
    rows = crawled.scored()
    assert len(rows) == 120
    lazy = rows["object"].str.contains("lazy")
    assert set(rows.loc[lazy, "regard"]) == {"negative"}
    assert (rows["regard"] == rows["regard_masked"]).all()
    women = rows["identity"] == "Women"
    assert ((rows["attack"] - rows["attack_masked"]).round(9)[women] == 0.5).all()
    found = regard_and_attack(crawled, draws=200)["gender identity"]
    scorer = found["attack_scorer"]
    assert (scorer["Women"]["value"], scorer["Women"]["n"], scorer["Men"]["value"]) == (0.5, 12, 0.0)
    expected = rows[women]["attack"].mean()
    assert found["attack"]["identities"]["Women"]["mean"] == pytest.approx(expected)
    assert json.loads((crawled.folder / "scorers.json").read_text())["mask"] == MASK


def test_unscored_triples_stay_with_the_reason(tmp_path: Path) -> None:
    found = crawl_identities(FakeGenerator(), PEOPLE, CrawlSettings(triples=10), tmp_path / "a")
    with pytest.raises(RunFolderError, match="has no scores"):
        found.scored()
    with pytest.raises(RecordError, match="neither a regard nor an attack scorer"):
        score_crawl(found)
    scored = score_crawl(found, attack=KnownAttack(lambda text: None if text.startswith("Men") else 0.1)).scored()
    assert set(scored["status"]) == {"ok", "attack: time-out"}
    assert scored[scored["identity"] == "Men"]["attack"].isna().all()
    empty = crawl_identities(FakeGenerator(lambda p, r: ""), PEOPLE, CrawlSettings(triples=10), tmp_path / "b")
    with pytest.raises(RecordError, match=r"no triples to score; counts\.json says why"):
        score_crawl(empty, attack=KnownAttack(lambda text: 0.0))


def test_graph_files_round_trip_with_provenance_and_odd_text(crawled: Crawl, tmp_path: Path) -> None:
    export_graphml(crawled, tmp_path / "g.graphml")
    read = nx.read_graphml(tmp_path / "g.graphml")
    assert read.number_of_edges() == len(crawled.triples)
    edge = next(iter(read.out_edges("identity: Women", data=True)))[2]
    assert {"predicate", "strategy", "run", "step", "seed", "attack", "regard"} <= set(edge)
    odd = replace(crawled, triples=crawled.triples.assign(object=EVIL))
    assert export_graphml(odd, tmp_path / "odd.graphml").number_of_nodes() == len(PEOPLE) + 1
    assert "object: </script>" in str(nx.read_graphml(tmp_path / "odd.graphml").nodes)


@pytest.mark.slow
def test_all_figures_are_drawn(crawled: Crawl, tmp_path: Path) -> None:
    plain = crawl_identities(FakeGenerator(), PEOPLE, CrawlSettings(triples=40, prefix_start=False), tmp_path / "plain")
    plain = score_crawl(plain, attack=KnownAttack(lambda text: 0.1))
    topics = fit_topics(content_texts(crawled.triples), 4, method="nmf")
    results = {"scores": regard_and_attack(crawled, 100), "topics": topic_results(crawled.triples, topics, draws=100)}
    made = draw(crawled, tmp_path / "figures", results, topics=topics, plain=plain)
    assert [name.split("_")[0] for name in sorted(made)] == [f"figure{n}" for n in range(2, 9)]
    for name in made:
        assert (tmp_path / "figures" / name).read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / "figures" / name).stat().st_size > 8000
    results = {"topics": topic_results(crawled.triples, topics, min_triples=41, draws=50)}
    few = draw(replace(crawled, scores=None), tmp_path / "few", results, topics=topics)
    assert list(few) == ["figure2_graph.png"]


def test_a_shared_object_is_one_node(crawled: Crawl) -> None:
    """Two identities, three objects of which both have one: three labels, and a line for each of the four triples."""
    rows = crawled.triples.groupby("identity", sort=True).head(2).groupby("identity", sort=True).head(2).head(4)
    rows = rows.assign(identity=["Men", "Men", "Women", "Women"], object=["tea", "hats", "Tea", "boats"])
    (axes,) = _graph(replace(crawled, triples=rows, scores=None), 0).axes
    labels = [
        label.get_text().partition("\u2192")[2].strip().lower() for label in axes.texts if "\u2192" in label.get_text()
    ]
    assert sorted(labels) == ["boats", "hats", "tea"]
    assert len(axes.lines) == 4
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
    with pytest.raises(UnknownNameError, match="unknown topic method 'lda'"):
        fit_topics(texts, method="lda")
    with pytest.raises(RecordError, match="no words are left"):
        fit_topics(["the", "of"], 2, method="nmf")
    with pytest.raises(RecordError, match="1 texts and 8 topics"):
        fit_topics(["one"])


def test_bertopic_or_the_extra_that_is_missing() -> None:
    try:
        import bertopic  # noqa: F401
    except ImportError:
        with pytest.raises(SeesawError, match=r"seesaw_cf\[topics\]"):
            fit_topics(["one two", "three four"], 2, method="bertopic")


def test_any_classifier_with_the_right_labels_scores_regard(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "regard")
    scorer = regard_classifier(str(folder))
    first, long, second = scorer.score(["Women love art", "Men are " + "very " * 500 + "tall", "Men are tall"])
    assert long.status == f"longer than the 126 tokens that {folder} reads"
    assert set(first.values) == {"positive", "negative", "neutral", "other"}
    assert sum(first.values.values()) == pytest.approx(1, abs=1e-5)
    assert first.values != second.values
    assert scorer.score([]) == []


def test_classifiers_with_other_labels_are_refused_or_mapped(tmp_path: Path) -> None:
    folder = save_classifier(tmp_path / "other", ["LABEL_0", "LABEL_1", "LABEL_2"])
    with pytest.raises(RecordError, match=r"has the labels \['LABEL_0'.*missing \['negative', 'neutral', 'positive'\]"):
        regard_classifier(str(folder))
    meaning = {"LABEL_0": "negative", "LABEL_1": "neutral", "LABEL_2": "positive"}
    assert set(regard_classifier(str(folder), meaning).score(["Men"])[0].values) == set(meaning.values())
    with pytest.raises(RecordError, match=r"not understood \['LABEL_2'\]"):
        regard_classifier(str(folder), {"LABEL_0": "negative", "LABEL_1": "neutral"})
    with pytest.raises(RecordError, match="expected 'identity_attack' among them"):
        attack_classifier(str(folder))
    assert 0 < attack_classifier(str(folder), "LABEL_1").score(["Men"])[0].values["attack"] < 1
    with pytest.raises(UnknownNameError, match="could not be loaded"):
        regard_classifier(str(tmp_path / "nothing"))


def test_detoxify_is_used_when_there_and_named_when_not() -> None:
    class Predicts:
        def predict(self, texts: list[str]) -> dict[str, list[float]]:
            return {"toxicity": [0.9] * len(texts), "identity_attack": [0.1] * len(texts)}

    assert [s.values for s in Detoxifier(model=Predicts()).score(["a", "b"])] == [{"attack": 0.1}] * 2
    try:
        import detoxify  # noqa: F401
    except ImportError:
        with pytest.raises(SeesawError, match=r"seesaw_cf\[toxicity\]"):
            Detoxifier().score(["a"])


class _PerspectiveHandler(BaseHTTPRequestHandler):
    replies: list[int]
    seen: list[tuple[str, str, dict[str, object]]]

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.seen.append((self.path, self.headers.get("X-Goog-Api-Key", ""), asked))
        status = self.replies.pop(0) if self.replies else 200
        value = 0.01 * len(asked["comment"]["text"])
        scores = {} if status == 299 else {"IDENTITY_ATTACK": {"summaryScore": {"value": value}}}
        body = json.dumps({"attributeScores": scores}).encode()
        self.send_response(200 if status == 299 else status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def perspective(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Perspective, type[_PerspectiveHandler]]]:
    handler = type("Handler", (_PerspectiveHandler,), {"replies": [], "seen": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    monkeypatch.setenv("TEST_KEY", "secret-0815")
    yield Perspective(f"http://127.0.0.1:{server.server_address[1]}/x", "TEST_KEY", tries=3, wait=0.01), handler
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_perspective_server_is_asked_with_the_key_in_a_header(
    perspective: tuple[Perspective, type[_PerspectiveHandler]], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, handler = perspective
    handler.replies += [429, 200, 400, 299, 299, 299]
    found = client.score(["a" * 10, "b" * 20, "c" * 30, "d" * 40])
    assert [s.values.get("attack") for s in found] == [pytest.approx(0.1), None, None, pytest.approx(0.4)]
    assert [s.status for s in found] == [
        "ok",
        "refused by the server: 400",
        "no score after 3 tries: KeyError",
        "ok",
    ]
    path, key, asked = handler.seen[0]
    assert (path, key) == ("/x", "secret-0815")
    assert asked["requestedAttributes"] == {"IDENTITY_ATTACK": {}}
    assert "secret" not in client.name
    handler.replies += [403]
    with pytest.raises(
        ServiceError, match=r"refuses \(status 403\)\. Check the address and the key in TEST_KEY"
    ) as raised:
        client.score(["a"])
    assert "secret" not in str(raised.value)
    monkeypatch.delenv("TEST_KEY")
    with pytest.raises(ServiceError, match="TEST_KEY is not set"):
        client.score(["a"])


def test_scores_are_thrown_away_when_the_triples_change(tmp_path: Path) -> None:
    found = crawl_identities(FakeGenerator(), PEOPLE, CrawlSettings(triples=10), tmp_path / "a")
    score_crawl(found, attack=KnownAttack(lambda text: 0.1))
    assert isinstance(
        crawl_identities(FakeGenerator(), PEOPLE, CrawlSettings(triples=10), tmp_path / "a").scores, pd.DataFrame
    )
    other = FakeGenerator(lambda prompt, rng: f" word {rng.random()}")
    for file in (tmp_path / "a" / "completions").glob("Men-*"):
        file.unlink()
    assert crawl_identities(other, PEOPLE, CrawlSettings(triples=10), tmp_path / "a").scores is None
