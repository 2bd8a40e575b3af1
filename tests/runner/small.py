"""A small job for the runner's tests: a random Llama, nine cases, and an editor that needs no fitting.

Run as a program it is killed with SIGKILL at a chosen edit, as a power cut would do:
`python -m tests.runner.small OUT [EDITS_BEFORE_THE_KILL]`.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.models.identity import fingerprint
from seesaw_cf.models.weights import LowRank, WeightDelta
from seesaw_cf.run.manifest import RunManifest
from seesaw_cf.run.runner import Run
from seesaw_cf.scoring import HFScorer
from seesaw_cf.types import AttributePrompt, Case, EditRequest, Entity
from tests.tokenizer_styles import byte_level

PEOPLE = ("Ada Lovelace", "Marie Curie", "Zora Neale Hurston", "Toni Morrison", "Chinua Achebe")
PARAMETER = "model.layers.1.mlp.down_proj.weight"


def model(vocab_size: int = 500, width: int = 16) -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes: Any = {"hidden_size": width, "intermediate_size": 2 * width}
    sizes |= {"num_hidden_layers": 2, "num_attention_heads": 2}
    config = LlamaConfig(vocab_size=vocab_size, **sizes, max_position_embeddings=64, initializer_range=0.2)
    return LlamaForCausalLM(config).eval()


def save(folder: Path) -> Path:
    """Write the model and its tokenizer."""
    model().save_pretrained(folder)
    byte_level(bos=False).save_pretrained(folder)
    return folder


def cases() -> list[Case]:
    made = []
    for number in range(9):
        relation, prompt, new, true = (
            ("P19", "{} was born in", "London", "Paris"),
            ("P21", "{}'s gender is", "female", "male"),
            ("P103", "The mother tongue of {} is", "Polish", "English"),
        )[number % 3]
        others = [name for name in PEOPLE if name != PEOPLE[number % 5]]
        prompts = tuple(
            AttributePrompt(prompt.format(name), Entity(f"Q{index}", name), holds="target_new", gender=("women",))
            for index, name in enumerate(others)
        )
        request = EditRequest(prompt, PEOPLE[number % 5], relation, Entity(None, new), Entity(None, true))
        made.append(Case(number, request, attribute_prompts=prompts))
    return made


@dataclass(frozen=True)
class Nudge:
    """Adds a rank-1 update made from the request's text; keeps count of its edits and dies at the asked one."""

    config: Any = field(default_factory=dict)
    die_at: int = -1
    seen: list[str] = field(default_factory=list)

    def fit(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Nudge:
        return self

    def edit(self, model: Any, tokenizer: Any, requests: Sequence[EditRequest]) -> WeightDelta:
        if len(self.seen) == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.seen.append(requests[0].text)
        rows, columns = model.get_parameter(PARAMETER).shape
        generator = torch.Generator().manual_seed(sum(map(ord, requests[0].text)))
        left, right = torch.randn(rows, 1, generator=generator), torch.randn(1, columns, generator=generator)
        return WeightDelta({PARAMETER: LowRank(0.1 * left, right)})


def manifest(model: PreTrainedModel, /, **changes: Any) -> RunManifest:
    values: dict[str, Any] = {
        "model": {"id": "small", "fingerprint": fingerprint(model), "tokenizer": "t", "dtype": "float32"},
        "editors": {"nudge": {}},
        "data": {"source": "small"},
        "protocol": "single",
        "seed": 0,
        "scoring": {},
    }
    return RunManifest(**{**values, **changes})


def run(out: Path, used: dict[str, Any] | None = None, ignore_damage: bool = False, **changes: Any) -> dict[str, Any]:
    base = model()
    used = used or {"nudge": Nudge()}
    tokenizer = byte_level(bos=False)
    own: dict[str, Any] = {"progress": False, "ignore_damage": ignore_damage}
    Run(base, tokenizer, HFScorer(base, tokenizer), used, cases(), manifest(base, **changes), out, **own).complete()
    return used


def main(out: str, die_at: str = "-1") -> None:
    torch.set_num_threads(1)
    run(Path(out), {"nudge": Nudge(die_at=int(die_at))})


if __name__ == "__main__":
    main(*sys.argv[1:])
