"""Every extra of setup.cfg is asked for in the same words when its package is not there."""

from __future__ import annotations

import configparser
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedModel

from seesaw_cf.base.errors import MissingExtraError, SeesawError
from seesaw_cf.builder_scripts.sources import StoreSource
from seesaw_cf.cli.audit import ability
from seesaw_cf.effects.leme_auto import rouge1
from seesaw_cf.effects.texts import reference_score
from seesaw_cf.generation.api import OpenAIGenerator
from seesaw_cf.models.weights import WeightDelta
from seesaw_cf.run.workers import run_on_ray
from seesaw_cf.sharing import to_peft
from seesaw_cf.texts.graph.folder import export_graphml
from seesaw_cf.texts.graph.scores import find_scorer, fit_topics
from seesaw_cf.texts.training import label_scores

ROOT = Path(__file__).resolve().parents[2]
ASKED: list[tuple[str, str, Callable[[], Any]]] = [
    ("build", "pyoxigraph", lambda: StoreSource("a.nt")),
    ("longform", "sklearn", lambda: label_scores([0], [0], [0], ("a",))),
    ("longform", "sklearn", lambda: reference_score(["a"], [["a"]])),
    ("longform", "rouge_score", lambda: rouge1("a", "a")),
    ("api", "openai", lambda: OpenAIGenerator("http://localhost:9", "m", "").check()),
    ("stereotypes", "networkx", lambda: export_graphml(SimpleNamespace(), Path())),  # type: ignore[arg-type]
    ("stereotypes", "sklearn", lambda: fit_topics(["a b", "c d", "e f"], 2)),
    ("topics", "bertopic", lambda: fit_topics(["a b", "c d", "e f"], 2, method="bertopic")),
    ("toxicity", "detoxify", lambda: find_scorer("attack", "detoxify")),
    ("hub", "peft", lambda: to_peft(WeightDelta({"a.weight": torch.ones(2, 2)}), _model(), "x")),
    ("harness", "lm_eval", lambda: ability(Path("run"), tasks=(), out=Path("out"))),
    ("ray", "ray", lambda: run_on_ray(lambda: None, Path("run"))),  # type: ignore[arg-type, return-value]
]
# For those who work on the package: no code of it imports them.
DEVELOPERS = {"docs", "test"}


def _model() -> PreTrainedModel:
    return GPT2LMHeadModel(GPT2Config(n_layer=1, n_head=1, n_embd=4, vocab_size=4))


def test_the_table_has_every_extra() -> None:
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg", encoding="utf-8")
    users = set(parser["options.extras_require"]) - DEVELOPERS
    assert {extra for extra, _, _ in ASKED} >= users


@pytest.mark.parametrize(("extra", "module", "call"), ASKED, ids=[f"{e}-{m}" for e, m, _ in ASKED])
def test_a_missing_extra_is_named(
    extra: str, module: str, call: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == module]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf"needed for .* cannot be imported \(.*{module}") as caught:
        call()
    assert f"Install it with: pip install 'seesaw_cf[{extra}]'" in str(caught.value)
    assert isinstance(caught.value, SeesawError)
    assert isinstance(caught.value, ImportError)
    assert caught.value.name
