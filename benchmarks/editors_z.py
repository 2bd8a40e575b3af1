"""z of many edits at once against the published loop, one edit at a time, in the same run.

    OMP_NUM_THREADS=1 python benchmarks/editors_z.py [--edits 8] [--rounds 3] [--device cpu]

The loop is MEMIT's compute_z: all seven prompts padded, the whole model run, the vocabulary's log-softmax at every
position twice, one optimiser per edit.
"""

from __future__ import annotations

import argparse

import torch
from torch import Tensor
from transformers import PreTrainedModel

from benchmarks.editors_common import TEMPLATES, gpt2, interleaved, relative, report, requests, tokenizer
from seesaw_cf.editors.locate.optimise import optimise
from seesaw_cf.editors.locate.positions import PreparedEdit, prepare
from seesaw_cf.editors.memit import MEMITConfig
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.hooks import frozen
from seesaw_cf.models.tensors import pad


def published(model: PreTrainedModel, edit: PreparedEdit, config: MEMITConfig) -> Tensor:
    """z of one edit as the published program computes it."""
    layer, device = max(config.layers), model.device
    rows = [*edit.rows, edit.anchor]
    ids, mask = pad([row.ids for row in rows], device)
    lookups = [row.lookup for row in rows]
    labels = torch.full((len(edit.rows), ids.shape[1]), -100, device=device)
    for number, row in enumerate(edit.rows):
        labels[number, len(row.ids) - len(row.targets) : len(row.ids)] = torch.tensor(row.targets, device=device)
    delta = torch.zeros(model.config.n_embd, device=device, dtype=model.dtype, requires_grad=True)
    optimiser = torch.optim.Adam([delta], lr=config.learning_rate)
    start: Tensor | None = None
    before: Tensor | None = None
    seen: dict[str, Tensor] = {}

    def add(_: object, __: object, output: Tensor) -> Tensor:
        nonlocal start
        start = output[0, lookups[0]].detach().clone() if start is None else start
        changed = output.clone()
        for number, place in enumerate(lookups):
            changed[number, place] = changed[number, place] + delta
        return changed

    def keep(_: object, __: object, output: Tensor) -> None:
        seen["top"] = output

    handles = [
        model.transformer.h[layer].register_forward_hook(add),
        model.transformer.h[-1].register_forward_hook(keep),
    ]
    try:
        for step in range(config.steps):
            optimiser.zero_grad()
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
            now = torch.stack([logits[len(rows) - 1, lookups[-1]]]).log_softmax(1)
            before = now.detach().clone() if before is None else before
            log_p = model.lm_head(model.transformer.ln_f(seen["top"][: len(edit.rows)])).log_softmax(2)
            chosen = log_p.gather(2, labels.clamp(min=0)[..., None])[..., 0] * (labels != -100)
            nll = (-chosen.sum(1) / len(edit.rows[0].targets)).mean()
            kl = config.kl_factor * (now.exp() * (now - before)).sum()
            assert start is not None
            loss = nll + kl + config.weight_decay * delta.norm() / start.norm() ** 2
            if loss < config.stop_below or step == config.steps - 1:
                break
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                limit = config.clamp * start.norm()
                if delta.norm() > limit:
                    delta.mul_(limit / delta.norm())
    finally:
        for handle in handles:
            handle.remove()
    assert start is not None
    return (start + delta).detach()


def main() -> None:
    """Times both and writes benchmarks/results/editors_z.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--layers", type=int, default=14)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--layer", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", default="editors_z")
    given = parser.parse_args()
    model, names = gpt2(given.layers, given.width).to(given.device), tokenizer()
    config = MEMITConfig(layers=(given.layer,), context_templates=TEMPLATES, batch_tokens=8192)
    edits = [prepare(model, names, request, TEMPLATES) for request in requests(given.edits)]
    parts = model_parts(model)

    def together() -> Tensor:
        with frozen(model):
            target = optimise(parts, edits, given.layer, config).target
        if given.device != "cpu":
            torch.cuda.synchronize()
        return target

    def one_by_one() -> list[Tensor]:
        with frozen(model):
            found = [published(model, edit, config) for edit in edits]
        if given.device != "cpu":
            torch.cuda.synchronize()
        return found

    errors = relative(list(together()), one_by_one())
    variants = {"published_loop": one_by_one, "together": together}
    times = interleaved(variants, given.rounds)
    settings = {**vars(given), "steps": config.steps, "vocabulary": model.config.vocab_size}
    report(given.out, settings, times, "published_loop", "together", z_relative_error_max=max(errors))


if __name__ == "__main__":
    main()
