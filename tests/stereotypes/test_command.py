"""The command with the embedded model and with a real server on loopback."""

import json
import time
from pathlib import Path

import pytest
import torch

from seesaw_cf.cli import main
from seesaw_cf.generation import HFGenerator, OpenAIGenerator
from seesaw_cf.models.load import load_model
from seesaw_cf.models.weights import LowRank, WeightDelta
from seesaw_cf.sharing import save_delta
from seesaw_cf.texts.graph import GraphJob
from seesaw_cf.texts.graph.crawl import SAMPLING, crawl_identities, read_crawl
from seesaw_cf.texts.graph.identities import find
from tests import fresh
from tests.generation.server import KEY, Fault, OpenAIServer
from tests.stereotypes.fakes import save_classifier

OK = "--acknowledge-content"
RUN = ["graph", "run", "seesaw-tiny", "--identities", "Women", "Men", "--triples", "8", "--quiet", OK]
RUN[3:3] = ["--regard", "none", "--attack", "none", "--topic-method", "nmf"]


def test_the_warning_comes_first_and_must_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN[:-1], "--out", str(tmp_path / "a")]) == 1
    said = capsys.readouterr().err
    assert said.index("WARNING") < said.index("give --acknowledge-content when you have read the warning")
    assert not (tmp_path / "a").exists()


@pytest.mark.slow(40)
def test_a_graph_from_the_embedded_model_scored_and_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model, _ = load_model("seesaw-tiny", device="cpu")
    name = next(n for n, p in model.named_parameters() if n.endswith("layers.2.mlp.down_proj.weight"))
    rows, columns = dict(model.named_parameters())[name].shape
    rng = torch.Generator().manual_seed(0)
    change = LowRank(torch.randn(rows, 1, generator=rng), torch.randn(1, columns, generator=rng))
    save_delta(WeightDelta({name: change}, {"editor": "random"}), "delta", model)
    save_delta(WeightDelta({name: LowRank(0 * change.left, change.right)}, {"editor": "identity"}), "zero", model)
    folder = str(save_classifier(tmp_path / "regard"))
    attack = str(save_classifier(tmp_path / "attack", ["fine", "identity_attack"]))
    scored = [*RUN, "--regard", folder, "--attack", attack]
    assert main([*scored, "--out", "a"]) == 0
    shown = capsys.readouterr().out
    assert "16 triples about 2 identities in 1 run" in shown
    assert "Women" in shown
    report = {str(file.relative_to("a/report")) for file in Path("a/report").rglob("*.*")}
    assert report >= {"report.html", "report.json", "tables/scores.csv", "tables/triples.csv"}
    assert {"graph.graphml", "completions.parquet", "scores.parquet"} <= {file.name for file in Path("a").iterdir()}
    assert main([*scored, "--delta", "delta", "--out", "b"]) == 0
    assert main([*scored, "--delta", "zero", "--out", "z"]) == 0
    base, edited, zero = (read_crawl(tmp_path / folder).triples for folder in "abz")
    assert base["text"].tolist() == zero["text"].tolist()
    assert base["text"].tolist() != edited["text"].tolist()
    assert base["seed"].isin(edited["seed"]).any()
    compared = ["graph", "compare", "a", "b", "--identity-control", "z", "--topic-method", "nmf", "--out", "c"]
    assert main(compared) == 0
    record = json.loads((tmp_path / "c" / "report.json").read_text())
    assert {row["control"] for row in record["rows"]} == {"", "identity edit"}
    assert set(record["screen"]["sections"]) == {"After the edit", "Beyond the identity edit"}
    assert main(["graph", "run", *RUN[2:], "--triples", "7", "--out", "a"]) == 1
    assert "settings.triples: the folder has 8, this run 7" in capsys.readouterr().err
    assert main(["graph", "compare", "a", "nowhere"]) == 1
    assert "nowhere: no such folder" in capsys.readouterr().err
    assert main([*RUN, "--regard", attack, "--out", "a"]) == 1
    assert "has the labels ['fine', 'identity_attack']" in capsys.readouterr().err


@pytest.mark.slow(40)
def test_three_identities_killed_and_continued(tmp_path: Path) -> None:
    words = [*RUN, "--identities", "gender identity", "--triples", "20"]
    program = "import sys; from seesaw_cf.cli import main; main(sys.argv[1:])"
    running = fresh.start(fresh.code, [program, *words, "--out", "a"], tmp_path)
    for _ in range(2400):
        if not running.is_alive() or any((tmp_path / "a").glob("cache/*/*.json")):
            break
        time.sleep(0.05)
    running.kill()
    running.join()
    assert running.exitcode == -9
    assert not (tmp_path / "a" / "completions.parquet").exists()
    started = time.process_time()
    assert main([*words, "--out", str(tmp_path / "whole")]) == 0
    assert time.process_time() - started < 180
    assert main([*words, "--out", str(tmp_path / "a")]) == 0
    whole, again = (read_crawl(tmp_path / name) for name in ("whole", "a"))
    assert len(whole.triples) == 60
    assert again.completions.equals(whole.completions)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> OpenAIServer:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return OpenAIServer(*load_model("seesaw-tiny", device="cpu"), name="seesaw-tiny")


@pytest.mark.slow
def test_a_server_gives_the_triples_of_the_local_model_despite_faults_and_refusals(
    server: OpenAIServer, tmp_path: Path
) -> None:
    settings, people = GraphJob("m", triples=6), find(["Women", "Men"])
    local = crawl_identities(
        HFGenerator(*load_model("seesaw-tiny", device="cpu")), people, settings, tmp_path / "local"
    )
    no_choices = json.dumps({"id": "1", "object": "text_completion", "created": 0, "model": "m", "choices": []})
    faults = [Fault(429, wait=0.01), Fault(body=no_choices), Fault(body="{"), Fault(500)]
    with server:
        generator = OpenAIGenerator(server.url, "seesaw-tiny")
        server.faults += faults
        found = crawl_identities(generator, people, settings, tmp_path / "served")
        server.faults += [Fault(text="I'm sorry, but I cannot help with that."), Fault(400)]
        refused = crawl_identities(generator, people, settings, tmp_path / "refused")
    assert found.triples["text"].tolist() == local.triples["text"].tolist()
    assert any(why.startswith("refusal: ") for why in refused.dropped())
    assert any(why.startswith("no text: refused by the server: 400") for why in refused.dropped())
    assert refused.counts()["triples"].tolist() == [6, 6]
    assert all(KEY not in file.read_bytes().decode("latin-1") for file in tmp_path.rglob("*.*"))
    assert all(asked["temperature"] == SAMPLING.temperature and "seed" in asked for asked in server.seen)


def test_an_edit_on_a_server_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--base-url", "http://127.0.0.1:9/v1", "--delta", "somewhere", "--out", "a"]) == 1
    assert "--delta edits a local model" in capsys.readouterr().err
