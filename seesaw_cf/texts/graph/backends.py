"""A local model, edited or not, and a server, as a crawl needs them: what writes, and facts for the manifest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from seesaw_cf.generation.types import Ask, Completion, Generator, Sampling
from seesaw_cf.models.delta_files import load_delta
from seesaw_cf.texts.graph.crawl import ModelFacts


@dataclass(frozen=True)
class _WithContext:
    """Generator that puts the text of an in-context edit before every prompt."""

    inner: Generator
    context: str
    name: str

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        from seesaw_cf.generation.hf import with_context

        return self.inner.generate([with_context(ask, self.context) for ask in asks], sampling)


@contextmanager
def local(
    name: str,
    delta: Path | None = None,
    *,
    revision: str | None = None,
    dtype: str = "float32",
    device: str = "auto",
    rows: int = 64,
    trust_remote_code: bool = False,
) -> Iterator[tuple[Generator, ModelFacts]]:
    """Load a transformers model and keep it edited while the block runs when `delta` is given.

    The edit is written into the weights and taken back (`seesaw_cf.models.weights.applied`), so that base and
    edited model go through the same arithmetic.

    Args:
        name: "seesaw-tiny", a Hub id or a folder.
        delta: Folder of a `WeightDelta`.
        revision, dtype, device, trust_remote_code: As for `seesaw_cf.models.load.load_model`.
        rows: Completions written at once.

    Raises:
        UnknownNameError: The model cannot be loaded.
        DeltaMismatchError: The delta was made on another model.
    """
    from seesaw_cf.generation.hf import HFGenerator
    from seesaw_cf.models.identity import fingerprint, model_facts
    from seesaw_cf.models.load import load_model
    from seesaw_cf.models.weights import applied

    model, tokenizer = load_model(
        name, revision=revision, dtype=dtype, device=device, trust_remote_code=trust_remote_code
    )
    facts = model_facts(name, model, tokenizer, revision, dtype)
    generator = HFGenerator(model, tokenizer, rows=rows)
    if delta is None:
        yield generator, ModelFacts(facts)
        return
    edit = load_delta(delta, model)
    with applied(model, edit):
        about = {"name": delta.name, "editor": edit.meta.get("editor"), "fingerprint": fingerprint(model)}
        about["context"] = edit.context
        named = _WithContext(generator, edit.context, f"{name} + {delta.name}")
        yield named, ModelFacts(facts, json.loads(json.dumps(about, default=str)))


def served(model: str, base_url: str, *, key_env: str) -> tuple[Generator, ModelFacts]:
    """Return a model behind an OpenAI-compatible server.

    Args:
        model: Its name there.
        base_url: Such as "http://localhost:8000/v1".
        key_env: Environment variable that holds the key, "" = none is needed.

    Raises:
        ServiceError: The key is missing or is none.
        MissingExtraError: The package `openai` is not installed.
    """
    from seesaw_cf.generation.api import OpenAIGenerator

    generator = OpenAIGenerator(base_url, model, api_key_env=key_env)
    generator.check()
    return generator, ModelFacts({"id": generator.name})
