"""Second moments of several layers in one pass against the published procedure, one pass per layer, on equal tokens.

OMP_NUM_THREADS=1 python benchmarks/second_moments.py [--texts 2000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.editors_common import TINY, gpt2, interleaved, relative, report, tokenizer
from seesaw_cf.editors.locate.moments import MomentOptions, second_moments
from seesaw_cf.models.architectures import ModelParts, model_parts
from seesaw_cf.models.hooks import hooked, stop_after, watch
from seesaw_cf.models.packing import batches, pad

LAYERS = (3, 4, 5)


def published(parts: ModelParts, texts: list[str], batch_tokens: int) -> dict[int, Tensor]:
    """For each layer: tokenise, run groups of 100 texts sorted by length up to the layer, sum in float32."""
    names, found = tokenizer(), {}
    for layer in LAYERS:
        total, count = torch.zeros(parts.key_size(layer), parts.key_size(layer)), 0
        for start in range(0, len(texts), 100):
            rows = [list(names(text)["input_ids"])[:256] for text in texts[start : start + 100]]
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


def main() -> None:
    """Times both and writes benchmarks/results/second_moments.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch-tokens", type=int, default=4096)
    given = parser.parse_args()
    parts = model_parts(gpt2())
    texts = (TINY / "corpus.txt").read_text(encoding="utf-8").splitlines()[: given.texts]

    def one_pass() -> list[Tensor]:
        with tempfile.TemporaryDirectory() as folder:
            options = MomentOptions(batch_tokens=given.batch_tokens)
            found = second_moments(parts, tokenizer(), LAYERS, texts, options, Path(folder))
        return [found[layer].matrix for layer in LAYERS]

    def per_layer() -> list[Tensor]:
        return list(published(parts, texts, given.batch_tokens).values())

    errors = relative(one_pass(), per_layer())
    times = interleaved({"per_layer": per_layer, "one_pass": one_pass}, given.rounds)
    tokens = sum(len(tokenizer()(text)["input_ids"]) for text in texts)
    settings = {**vars(given), "layers": list(LAYERS), "tokens": tokens}
    report("second_moments", settings, times, "per_layer", "one_pass", relative_difference_max=max(errors))


if __name__ == "__main__":
    main()
