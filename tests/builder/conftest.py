"""The embedded facts as a source, and the cases made from them once."""

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.base.retrying import say_when_waiting
from seesaw_cf.builder_scripts import BuildOptions, endpoint
from seesaw_cf.builder_scripts.cases import cross_property, cross_subject
from seesaw_cf.builder_scripts.edits import Edit, generate, read_seeds
from seesaw_cf.builder_scripts.embedded import store as facts_store
from seesaw_cf.builder_scripts.facts import Facts
from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.builder_scripts.sparql import Parameter
from seesaw_cf.records.relations import RELATIONS
from seesaw_cf.types import Case
from tests.builder.embedded import SMALL_OPTIONS, small_tables, write_small
from tests.builder.worlds import invented_world
from tests.records.samples import Named, rewrite

PREFIXES = """@prefix wd: <http://www.wikidata.org/entity/> .
@prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix p: <http://www.wikidata.org/prop/> .
@prefix ps: <http://www.wikidata.org/prop/statement/> .
@prefix wikibase: <http://wikiba.se/ontology#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
HOLDERS: dict[str, Parameter] = {
    "property": "P27", "value": "Q30", "gender": "Q6581072", "language": "en", "seed": 0, "limit": 5,
}  # fmt: skip


@pytest.fixture
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint is named as silent after a tenth of a second."""
    monkeypatch.setattr(endpoint, "say_when_waiting", partial(say_when_waiting, after=0.1))


@pytest.fixture(scope="session")
def store() -> StoreSource:
    return facts_store(*small_tables())


@pytest.fixture(scope="session")
def facts(store: StoreSource) -> Facts:
    return Facts(store, SMALL_OPTIONS)


@pytest.fixture(scope="session")
def edits(facts: Facts) -> dict[str, list[Edit]]:
    return {relation_id: generate(facts, relation_id) for relation_id in RELATIONS}


@pytest.fixture(scope="session")
def subject_cases(facts: Facts, edits: dict[str, list[Edit]]) -> list[Case]:
    return list(cross_subject(facts, [edit for found in edits.values() for edit in found]))


@pytest.fixture(scope="session")
def property_cases(facts: Facts, edits: dict[str, list[Edit]]) -> list[Case]:
    return list(cross_property(facts, edits, 1001))


@pytest.fixture
def small(tmp_path: Path) -> Callable[..., Facts]:
    """Makes facts out of a few Turtle lines."""

    def make(turtle: str, **options: object) -> Facts:
        path = tmp_path / "facts.ttl"
        path.write_text(PREFIXES + turtle, encoding="utf-8")
        return Facts(StoreSource(path), BuildOptions(**options))  # type: ignore[arg-type]

    return make


def serve(folder: Path, data: Path) -> Iterator[str]:
    """Loads a file into a store in `folder` and serves it read-only on a free loopback port; yields the query URL."""
    program = shutil.which("oxigraph", path=str(Path(sys.executable).parent)) or shutil.which("oxigraph")
    if program is None:
        pytest.skip("the program oxigraph is not installed (pip install oxigraph)")
    database = str(folder / "database")
    subprocess.run([program, "load", "--location", database, "--file", str(data)], check=True, capture_output=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [program, "serve-read-only", "--location", database, "--bind", address]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
        try:
            _wait(address, server)
            yield f"http://{address}/query"
        finally:
            server.terminate()


def _wait(address: str, server: subprocess.Popen[bytes]) -> None:
    host, port = address.split(":")
    for _ in range(200):
        assert server.poll() is None, "oxigraph ended"
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("oxigraph did not answer within 10 s")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a real SPARQL server that holds the sample."""
    folder = tmp_path_factory.mktemp("server")
    yield from serve(folder, write_small(folder / "small.nt"))


def record(case_id: int, subject: str, relation: str, new: Named, true: Named, prompt: str) -> Any:
    lists = ("paraphrase_prompts", "neighborhood_prompts", "attribute_prompts", "generation_prompts")
    edit = rewrite(subject, prompt, relation, new, true)
    return {"case_id": case_id, "pararel_idx": 1, "requested_rewrite": edit} | {name: [] for name in lists}


FRENCH, ENGLISH, PHYSICS, JAZZ = ("French", "Q150"), ("English", "Q1860"), ("physics", "Q413"), ("jazz", "Q8341")
RECORDS = [
    record(7, "Danielle Example", "P103", ENGLISH, FRENCH, "The mother tongue of {} is"),
    record(11, 'Léon "Q" Örtlich', "P101", JAZZ, PHYSICS, "{} works in the field of"),
    record(12, "Danielle Example", "P103", ENGLISH, FRENCH, "{}, a native"),
]


@pytest.fixture(scope="session")
def edits_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("edits") / "counterfact.json"
    path.write_text(json.dumps(RECORDS), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, edits_file: Path) -> Path:
    path = tmp_path_factory.mktemp("world") / "world.ttl"
    path.write_text(PREFIXES + "".join(invented_world(1500, read_seeds([edits_file]))), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def world_server(tmp_path_factory: pytest.TempPathFactory, world: Path) -> Iterator[str]:
    yield from serve(tmp_path_factory.mktemp("server"), world)
