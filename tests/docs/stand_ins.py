"""What a reader of the documentation fills in: servers on loopback, a small chat model, small tables.

Each is made when a command first names it, so a page without placeholders costs nothing.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Self
from unittest.mock import patch

from seesaw_cf.effects.instruments import ITEMS

from .. import fresh
from ..builder.conftest import serve
from ..builder.embedded import write_small
from ..conftest import ROOT
from ..generation.models import chat_model, chat_tokenizer
from ..generation.server import JudgeServer
from ..hub_server import Hub
from ..longform.training_models import annotation_rows, save_tiny_encoder, write_csv
from ..stereotypes.fakes import save_classifier

__all__ = ["StandIns"]

PEOPLE = [("Ann", "Rome"), ("Bob", "Paris"), ("Cleo", "Oslo"), ("Dan", "Bonn"), ("Eve", "Lima"), ("Fay", "Cairo")]
KEY = {"OPENAI_API_KEY": "sk-of-a-reader"}


class StandIns:
    """A context manager, whose servers stop at the end: commands run in `folder`, where the tables they name are."""

    def __init__(self, folder: Path, private: Path) -> None:
        self.folder, self._private = folder, private
        self._open = ExitStack()
        self._hub: Hub | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def fill(self, command: str) -> str:
        """The command with every placeholder replaced by its stand-in."""
        for text, make in PLACEHOLDERS.items():
            if text in command:
                command = command.replace(text, make(self))
        return command

    def run(self, words: Sequence[str]) -> tuple[int | None, str]:
        """`seesaw-cf ...`: its exit code, and what it said on both streams.

        Where the Hub is needed it is a new process, since HF_ENDPOINT is read when the libraries are imported.
        """
        if self._hub is None:
            with patch.dict(os.environ, KEY):
                return fresh.command(words[1:], self.folder)
        done = subprocess.run(
            [sys.executable, "-m", "seesaw_cf", *words[1:]],
            cwd=self.folder,
            env={**self._hub.environment("hf_write"), **KEY, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    def organisation(self) -> str:
        """From now on commands speak to an empty Hub, and may write there."""
        self._hub = self._hub or self._open.enter_context(Hub(self._private / "hub"))
        return "acme/"

    @cached_property
    def api(self) -> JudgeServer:
        """A server that takes any key, and none."""
        return self._open.enter_context(JudgeServer(chat_model(), chat_tokenizer(), key=""))

    @cached_property
    def sparql(self) -> str:
        """The URL of a SPARQL server that holds the embedded facts."""
        self._private.mkdir(parents=True, exist_ok=True)
        return self._open.enter_context(contextmanager(serve)(self._private, write_small(self._private / "small.nt")))

    def nli(self) -> str:
        """A folder with a random classifier of the three labels."""
        return str(save_classifier(self._private / "nli", ("entailment", "neutral", "contradiction")))

    def encoder(self) -> str:
        """A folder with a random encoder."""
        return str(save_tiny_encoder(self._private / "encoder"))

    def annotations(self) -> str:
        """Forty annotated claims about eight people."""
        write_csv(self.folder / "annotations.csv", annotation_rows())
        return "annotations.csv"

    def references(self) -> str:
        """One text about each value of gender."""
        rows = [{"target_id": id, "samples": [{"text": "A person."}]} for id in ("Q6581072", "Q6581097")]
        (self.folder / "references.json").write_text(json.dumps(rows), encoding="utf-8")
        return "references.json"

    def ratings(self) -> str:
        """Two ratings of every item of six samples about people who share nothing."""
        rows = [
            {"sample_id": name, "item": item.name, "rating": str(1 + (number + rater) % 7), "rater": f"r{rater}"}
            | {"main": f"{name} lives in {city}.", "related": f"{city} is {name}'s city.", "subject": name}
            | {"new_fact": f"{name} lives in {city}", "old_facts": f"{name} sings in {city}", "related_entity": city}
            for number, (name, city) in enumerate(PEOPLE)
            for item in ITEMS
            for rater in range(2)
        ]
        write_csv(self.folder / "ratings.csv", rows)
        return "ratings.csv"


# Text of a command -> its stand-in.
PLACEHOLDERS: dict[str, Callable[[StandIns], str]] = {
    "ORG/": StandIns.organisation,
    "YOUR_MAIL": lambda _: "somebody@example.org",
    "YOUR_JUDGE": lambda here: here.api.name,
    "YOUR_MODEL": lambda here: here.api.name,
    "YOUR_ANNOTATIONS.csv": StandIns.annotations,
    "YOUR_RATINGS.csv": StandIns.ratings,
    "YOUR_REFERENCES.json": StandIns.references,
    "YOUR_NLI": StandIns.nli,
    "YOUR_ENCODER": StandIns.encoder,
    "http://localhost:8000/v1": lambda here: here.api.url,
    "https://query.wikidata.org/sparql": lambda here: here.sparql,
    "https://qlever.cs.uni-freiburg.de/api/wikidata": lambda here: here.sparql,
}
