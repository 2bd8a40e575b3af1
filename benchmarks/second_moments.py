"""The pass over texts against its limit: a forward pass up to the last edited block plus the sums themselves.

    OMP_NUM_THREADS=1 python -m benchmarks.second_moments [--model NAME] [--texts 600] [--rounds 2]

The limit has no padding, no hook but the one that ends it, and no bookkeeping: rows of one length (the mean of a batch
of the pass) up to the last key, and K^T K of as many tokens for each layer. It is measured on a GPT-2 with random
weights and on SmolLM2 where that is on the machine; on the GPT-2 also against the published procedure, one pass for
each layer.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from benchmarks.editors_common import RESULTS, TINY, gpt2, interleaved, machine, relative, tokenizer
from seesaw_cf.base.files import write_text
from seesaw_cf.editors.locate.moments import MomentOptions, second_moments
from seesaw_cf.models.architectures import ModelParts, model_parts
from seesaw_cf.models.hooks import frozen, hooked, stop_after, stop_before, watch
from seesaw_cf.models.load import load_model
from seesaw_cf.models.packing import batches, pad

LENGTH, CPU_TOKENS = 256, 1024  # of a text; of a forward pass
Layers = tuple[int, ...]


def published(
    parts: ModelParts, names: PreTrainedTokenizerBase, layers: Layers, texts: list[str], batch_tokens: int
) -> dict[int, Tensor]:
    """For each layer: tokenise, run groups of 100 texts sorted by length up to the layer, sum in float32."""
    found = {}
    for layer in layers:
        total, count = torch.zeros(parts.key_size(layer), parts.key_size(layer)), 0
        for start in range(0, len(texts), 100):
            rows = [list(names(text)["input_ids"])[:LENGTH] for text in texts[start : start + 100]]
            for group in batches([len(row) for row in rows], batch_tokens):
                ids, mask = pad([rows[index] for index in group], parts.model.device)
                seen: dict[str, Tensor] = {}
                module = parts.mlp_out(layer)
                with torch.no_grad(), hooked([*watch(seen, {"keys": module}), stop_after(module)]):
                    parts.model(input_ids=ids, attention_mask=mask, use_cache=False)
                keys = seen["keys"][mask.bool()]
                total += keys.T @ keys
                count += len(keys)
        found[layer] = total / count
    return found


def level_batches(rows: list[list[int]]) -> list[Tensor]:
    """Batches with the rows and the tokens of those that the pass makes, all rows of a batch of one length."""
    made = []
    for start in range(0, len(rows), 1000):
        chunk = rows[start : start + 1000]
        for group in batches([len(row) for row in chunk], CPU_TOKENS):
            mean = round(sum(len(chunk[index]) for index in group) / len(group))
            made.append(torch.randint(5, 1000, (len(group), mean), generator=torch.Generator().manual_seed(start)))
    return made


def measure(
    parts: ModelParts, names: PreTrainedTokenizerBase, layers: Layers, texts: list[str], given: argparse.Namespace
) -> dict[str, Any]:
    """Interleaved times of the pass, of both parts of its limit, and of the published procedure."""
    level = level_batches([list(ids)[:LENGTH] for ids in names(texts)["input_ids"]])
    keys = {layer: torch.randn(max(ids.numel() for ids in level), parts.key_size(layer)) for layer in layers}

    def forward() -> None:
        with frozen(parts.model), torch.no_grad():
            for ids in level:
                with hooked([stop_before(parts.mlp_out(max(layers)))]):
                    parts.model(input_ids=ids, use_cache=False)

    def sums() -> None:
        totals = {layer: torch.zeros(len(of.T), len(of.T)) for layer, of in keys.items()}
        for ids in level:
            for layer, of in keys.items():
                totals[layer] += of[: ids.numel()].T @ of[: ids.numel()]

    def one_pass() -> list[Tensor]:
        with tempfile.TemporaryDirectory() as folder:
            options = MomentOptions(batch_tokens=given.batch_tokens, max_length=LENGTH)
            found = second_moments(parts, names, layers, texts, options, Path(folder))
        return [found[layer].matrix for layer in layers]

    def per_layer() -> list[Tensor]:
        return list(published(parts, names, layers, texts, given.batch_tokens).values())

    variants: dict[str, Callable[[], Any]] = {"forward": forward, "sums": sums, "one_pass": one_pass}
    errors = {}
    if parts.row.orientation == "conv1d":
        errors = {"relative_difference_max": max(relative(one_pass(), per_layer()))}
        variants["per_layer"] = per_layer
    times = interleaved(variants, given.rounds)
    tokens, kinds = sum(ids.numel() for ids in level), ("wall_s", "cpu_s")
    share = {kind: (times["forward"][kind] + times["sums"][kind]) / times["one_pass"][kind] for kind in kinds}
    rates = {name: {kind: round(tokens / taken[kind]) for kind in kinds} for name, taken in times.items()}
    return {
        "layers": list(layers),
        "tokens": tokens,
        "times": times,
        "tokens_per_second": rates,
        "share_of_the_limit": share,
        **errors,
    }


def small_gpt2(texts: list[str], given: argparse.Namespace) -> dict[str, Any]:
    """A GPT-2 with random weights."""
    return measure(model_parts(gpt2()), tokenizer(), (3, 4, 5), texts, given)


def smollm2(texts: list[str], given: argparse.Namespace) -> dict[str, Any]:
    """SmolLM2; it must be on the machine (`seesaw-cf fetch smollm2-135m-q4`)."""
    model, names = load_model("smollm2-135m-q4", progress=False)
    return measure(model_parts(model), names, (4, 5, 6, 7, 8), texts, given)


MODELS = {"gpt2, random weights": small_gpt2, "smollm2-135m-q4": smollm2}


def main() -> None:
    """Measures models and writes them into benchmarks/results/second_moments.json; others stay in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", action="append", choices=MODELS)
    parser.add_argument("--texts", type=int, default=600)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    given = parser.parse_args()
    texts = (TINY / "corpus.txt").read_text(encoding="utf-8").splitlines()[: given.texts]
    file = RESULTS / "second_moments.json"
    for name in given.model or MODELS:
        settings = {key: value for key, value in vars(given).items() if key != "model"}
        found = {"settings": settings, **MODELS[name](texts, given), **machine()}
        text = json.dumps({**json.loads(file.read_text(encoding="utf-8")), name: found}, indent=1)
        write_text(file, text + "\n")
        print(text)


if __name__ == "__main__":
    main()
