"""Writing with many edited models at once against one edit after the other.

    OMP_NUM_THREADS=1 python benchmarks/generation.py [--edits 8] [--asks 2] [--tokens 40] [--rounds 3]

Every edit is asked for a subject passage and a related one, as in LEME. The loop applies one delta, writes its texts in
one batch and takes the delta back; `transformers_loop` does the same with `model.generate`. Deltas have rank 1 in four
MLPs, as MEMIT makes them. Both ways write the same texts, which is checked.
"""

from __future__ import annotations

import argparse

import torch

from benchmarks.editors_common import TINY, gpt2, interleaved, report, requests, tokenizer
from seesaw_cf.generation import Ask, HFGenerator, Sampling
from seesaw_cf.models.load import load_model
from seesaw_cf.models.weights import LowRank, WeightDelta, applied

WORDS = ("Write an essay about {}\nInclude the following information:\n- occupation", "{} is", "In the city, {} was")


def main() -> None:
    """Times the ways and writes benchmarks/results/generation[_gpt2].json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--edits", type=int, default=8)
    parser.add_argument("--asks", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--model", choices=("seesaw-tiny", "gpt2"), default="seesaw-tiny")
    given = parser.parse_args()
    model = load_model(str(TINY), device="cpu")[0] if given.model == "seesaw-tiny" else gpt2()
    path = (
        "model.layers.{}.mlp.down_proj.weight" if given.model == "seesaw-tiny" else "transformer.h.{}.mlp.c_proj.weight"
    )
    noise, weights = torch.Generator().manual_seed(0), dict(model.named_parameters())
    # No end of text: every way writes the same number of tokens.
    model.generation_config.eos_token_id = None
    words = tokenizer()
    words.eos_token_id = None
    generator = HFGenerator(model, words)

    def delta() -> WeightDelta:
        updates = {}
        for block in range(1, 5):
            name = path.format(block)
            rows, columns = weights[name].shape
            left = torch.randn(rows, 1, generator=noise)
            updates[name] = LowRank(left, 0.02 * torch.randn(1, columns, generator=noise))
        return WeightDelta(updates)

    sampling = Sampling(max_new_tokens=given.tokens)
    jobs = []
    for number, request in enumerate(requests(given.edits)):
        asks = [Ask(WORDS[k % len(WORDS)].format(request.subject), 100 * number + k) for k in range(given.asks)]
        jobs.append((delta(), asks))

    def together() -> list[list[str]]:
        return [[found.text for found in row] for row in generator.generate_each(jobs, sampling)]

    def loop() -> list[list[str]]:
        written = []
        for edit, asks in jobs:
            with applied(model, edit):
                written.append([found.text for found in generator.generate(asks, sampling)])
        return written

    def transformers_loop() -> None:
        words.padding_side = "left"
        for edit, asks in jobs:
            batch = words([str(ask.prompt) for ask in asks], return_tensors="pt", padding=True)
            with applied(model, edit), torch.inference_mode():
                model.generate(  # type: ignore[operator]
                    input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], do_sample=True, top_k=50,
                    top_p=0.95, temperature=0.9, max_new_tokens=given.tokens, pad_token_id=0, eos_token_id=None,
                )  # fmt: skip

    same = sum(a == b for one, other in zip(together(), loop(), strict=True) for a, b in zip(one, other, strict=True))
    variants = {"loop": loop, "together": together, "transformers_loop": transformers_loop}
    times = interleaved(variants, given.rounds)
    facts: dict[str, object] = {"texts_equal": f"{same} of {given.edits * given.asks}"}
    facts["speedup_over_transformers"] = times["transformers_loop"]["wall_s"] / times["together"]["wall_s"]
    name = "generation" if given.model == "seesaw-tiny" else "generation_gpt2"
    report(name, vars(given), times, "loop", "together", **facts)


if __name__ == "__main__":
    main()
