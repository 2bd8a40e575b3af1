"""What the scoring benchmarks score, with what, and what they compare with."""

from __future__ import annotations

import csv
import itertools
import json
import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.pytorch_utils import Conv1D

from seesaw_cf.models.architectures import transformer_blocks
from seesaw_cf.scoring.encode import encode_many
from seesaw_cf.scoring.layout import unique_nodes
from seesaw_cf.types import Cloze

VOCABULARY = 16_000
PROPERTY = ("{}'s field of work is", "{} works in the area of")
PLACES = ("London", "Paris", "New York City", "Vienna", "Manchester", "Tianjin", "Bingley", "Santiago de Chile")


def released(folder: Path, count: int) -> dict[str, list[Cloze]]:
    """The first cases of the released files: every field of work for each subject, every cross-subject prompt."""
    cases = json.loads((folder / "seesaw_cf_P19_P101.json").read_text(encoding="utf-8"))[:count]
    with (folder / "fow.csv").open(encoding="utf-8") as file:
        fields = [row["String"] for row in csv.DictReader(file)]
    edits = [(case["requested_rewrite"], case["attribute_prompts"]) for case in cases]
    return {
        "cross-property": [
            Cloze(template.format(edit["subject"]), field)
            for edit, _ in edits
            for template in PROPERTY
            for field in fields
        ],
        "cross-subject": [
            Cloze(prompt, edit[role]["str"])
            for edit, prompts in edits
            for prompt in prompts
            for role in ("target_new", "target_true")
        ],
    }


def gender(folder: Path | None) -> list[Cloze]:
    """Gender prompts, the same people in every case, two answers each."""
    if folder is None:
        people = sorted({cloze.context.split(" was born")[0] for cloze in invented(2)["cross-subject"]})
        prompts = [f"{name}'s gender is" for name in people]
    else:
        cases = json.loads((folder / "seesaw_cf_P21_P101.json").read_text(encoding="utf-8"))
        prompts = list(dict.fromkeys(prompt for case in cases for prompt in case["attribute_prompts"]))
    return [Cloze(prompt, answer) for prompt in prompts for answer in ("female", "male")]


def sample(count: int) -> dict[str, list[Cloze]]:
    """The same from the embedded sample."""
    from seesaw_cf.records.load import load_cases
    from seesaw_cf.run.questions import questions

    return {
        config.replace("_", "-"): [q.cloze for case in load_cases("sample", config)[:count] for q in questions(case)]
        for config in ("cross_property", "cross_subject")
    }


def invented(count: int) -> dict[str, list[Cloze]]:
    """Made-up people and fields, where neither the released files nor the packages that read the sample are at hand."""
    parts = ("an", "bel", "cor", "dra", "el", "fin", "gar", "hol", "im", "jor", "kal", "lun", "mar", "nes", "or")
    names = [f"{a.title()}{b} {c.title()}{a}{b}" for a in parts for b in parts for c in parts if len({a, b, c}) == 3]
    fields = [f"{first} {second}" for first in ("applied", "pure", "modern", "early") for second in names[::53][:55]]
    return {
        "cross-property": [
            Cloze(t.format(name), field) for name in names[:count] for t in PROPERTY for field in fields
        ],
        "cross-subject": [
            Cloze(f"{name} was born in", place)
            for case in range(count)
            for name in names[200 * case % 2000 :][:200]
            for place in (PLACES[case % 8], PLACES[(case + 3) % 8])
        ],
    }


def workloads(folder: Path | None, count: int) -> tuple[str, dict[str, list[Cloze]]]:
    """Where the clozes come from, and the two kinds of them."""
    if folder is not None:
        return "released", released(folder, count)
    try:
        return "sample", sample(count)
    except ImportError:
        return "invented", invented(count)


def tokenizer(kind: str, work: Sequence[Cloze]) -> PreTrainedTokenizerBase:
    """A byte-level BPE. Real tokenizers lie between the two kinds.

    Args:
        kind: "work": 6,000 tokens learnt from the work itself, so that most names are one or two tokens a word.
            "english": learnt from Python's own manual, the English prose that is on every machine; it has not seen the
            names, so they are cut into pieces of two or three letters.
        work: What will be scored.
    """
    texts = sorted({f"{c.context} {c.target}" for c in work}) if kind == "work" else sorted(topics.values())
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=6000 if kind == "work" else VOCABULARY,
        special_tokens=["<e>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<e>", eos_token="<e>", pad_token="<e>")


def small_model(kind: str, layers: int = 8, width: int = 512) -> PreTrainedModel:
    """Random weights, 25M parameters in the blocks: speed does not depend on what a model knows."""
    torch.manual_seed(0)
    ids: dict[str, Any] = {"bos_token_id": 0, "eos_token_id": 0, "vocab_size": VOCABULARY}
    made: PreTrainedModel
    if kind == "gpt2":
        made = GPT2LMHeadModel(GPT2Config(n_embd=width, n_layer=layers, n_head=width // 64, **ids))
    else:
        inner = (width * 8 // 3 + 63) // 64 * 64
        heads: dict[str, Any] = {"num_hidden_layers": layers, "num_attention_heads": width // 64}
        made = LlamaForCausalLM(LlamaConfig(hidden_size=width, intermediate_size=inner, **heads, **ids))
    made.train(False)
    return made


def published_loop(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, work: Sequence[Cloze], together: int
) -> list[float]:
    """As the published programs score: one forward pass per prompt (its two targets padded) or per candidate.

    All logits are computed, and log-probabilities are read one by one.
    """
    found = []
    for start in range(0, len(work), together):
        part = work[start : start + together]
        heads = [len(tokenizer(cloze.context)["input_ids"]) for cloze in part]
        batch = tokenizer([f"{c.context} {c.target}" for c in part], padding=True, return_tensors="pt")
        with torch.no_grad():
            logits = model(**{key: value.to(model.device) for key, value in batch.items()}).logits
        for row, head in enumerate(heads):
            total = 0.0
            for place in range(head, int(batch["attention_mask"][row].sum())):
                token = int(batch["input_ids"][row, place])
                total += torch.log_softmax(logits[row, place - 1].float(), dim=0)[token].item()
            found.append(total)
    return found


def lm_eval_scores(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, work: Sequence[Cloze], batch: int
) -> list[float]:
    """By EleutherAI's harness; an optional dependency of the benchmark (pip install lm-eval)."""
    from lm_eval.api.instance import Instance  # type: ignore[import-not-found, unused-ignore]
    from lm_eval.models.huggingface import HFLM  # type: ignore[import-not-found, unused-ignore]

    harness = HFLM(pretrained=model, tokenizer=tokenizer, batch_size=batch)
    requests = [
        Instance("loglikelihood", {}, (cloze.context, f" {cloze.target}"), index) for index, cloze in enumerate(work)
    ]
    return [score for score, _ in harness.loglikelihood(requests, disable_tqdm=True)]


def bound_products(
    model: PreTrainedModel, facts: dict[str, float], passes: int
) -> list[tuple[float, Callable[[], Any]]]:
    """The unavoidable FLOPs as plain matrix products of the model's own shapes, evenly mixed.

    Args:
        model: Gives shapes, device and dtype.
        facts: From `bound_flops`.
        passes: Products have as many rows as those of so many forward passes.

    Returns:
        Each product, done once already, and what part of its time counts: rows are rounded up.
    """
    head = model.get_output_embeddings()
    kinds = Counter((tuple(layer.weight.shape), isinstance(layer, Conv1D)) for layer in _block_layers(model))
    wanted = [(*kind, count, facts["unique_tokens"]) for kind, count in kinds.items()]
    found = []
    for shape, inputs_first, count, needed in [*wanted, (tuple(head.weight.shape), False, 1, facts["asked_nodes"])]:
        rows, times = math.ceil(needed / passes), count * passes
        stored = torch.randn(shape, device=model.device, dtype=model.dtype)
        weight = stored if inputs_first else stored.T
        given = torch.randn(rows, weight.shape[0], device=model.device, dtype=model.dtype)
        out = torch.empty(rows, weight.shape[1], device=model.device, dtype=model.dtype)
        product = partial(torch.mm, given, weight, out=out)
        product()
        found += [(n / times, needed / passes / rows, product) for n in range(times)]
    return [(part, product) for _, part, product in sorted(found, key=itemgetter(0))]


def bound_seconds(model: PreTrainedModel, facts: dict[str, float], rows: int) -> float:
    """Seconds of the unavoidable products of at most so many rows, one after the other."""
    passes = math.ceil(facts["unique_tokens"] / rows)
    return sum(part * cpu_or_wall(product, model) for part, product in bound_products(model, facts, passes))


def beside_bound(
    model: PreTrainedModel, facts: dict[str, float], do: Callable[[], Any], passes: int
) -> tuple[float, float]:
    """Seconds of something, and of the unavoidable products done a few at a time before each of the model's blocks.

    A machine that others share changes its speed by a third within seconds; this close to each other both see the same.

    Args:
        model: On a CPU.
        facts: From `bound_flops`.
        do: Runs the model.
        passes: Forward passes that it makes.
    """
    blocks = transformer_blocks(model) or ()
    products = bound_products(model, facts, passes)
    share, spent, bound = len(products) / (passes * len(blocks)), 0.0, 0.0
    calls, rest = itertools.count(1), iter(products)

    def some(*_: Any) -> None:
        nonlocal spent, bound
        done = next(calls)
        for part, product in itertools.islice(rest, round(share * done) - round(share * (done - 1))):
            seconds = cpu_or_wall(product, model)
            spent += seconds
            bound += part * seconds

    handles = [block.register_forward_pre_hook(some) for block in blocks]
    try:
        seconds = cpu_or_wall(do, model) - spent
    finally:
        for handle in handles:
            handle.remove()
    return seconds, bound + sum(part * cpu_or_wall(product, model) for part, product in rest)


def _block_layers(model: PreTrainedModel) -> list[Any]:
    """The layers whose matrices every token is multiplied with."""
    head = model.get_output_embeddings()
    return [part for part in model.modules() if type(part) in (torch.nn.Linear, Conv1D) and part is not head]


def cpu_or_wall(do: Callable[[], Any], model: PreTrainedModel) -> float:
    """Seconds of CPU time on a CPU (others share it), of wall time on a GPU."""
    if model.device.type == "cpu":
        start = time.process_time()
        do()
        return time.process_time() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    do()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def bound_flops(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, work: Sequence[Cloze]) -> dict[str, float]:
    """FLOPs that cannot be avoided: each unique trie token through the blocks, one logit row per asked node."""
    items = list(encode_many(tokenizer, work).asked)
    nodes = unique_nodes(items)
    asked = len({item.ids[:place] for item in items for place in range(item.start, len(item.ids))})
    head = model.get_output_embeddings().weight
    inside = sum(layer.weight.numel() for layer in _block_layers(model))
    return {
        "pairs": float(len(work)),
        "naive_tokens": float(sum(len(item.ids) for item in items)),
        "unique_tokens": float(nodes),
        "asked_nodes": float(asked),
        "flops": 2.0 * inside * nodes + 2.0 * head.numel() * asked,
    }
