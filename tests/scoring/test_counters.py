"""What a GPU would wait for, counted on a CPU: results are read once a pass. Scarce memory makes passes smaller."""

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from transformers import PreTrainedTokenizerBase

import seesaw_cf.scoring.edited_scorer
import seesaw_cf.scoring.hf_scorer
from seesaw_cf.models.editor import EditsEach
from seesaw_cf.run.make_editors import make_editor
from seesaw_cf.scoring import EditedScorer, HFScorer, Scorer, TrieScorer
from seesaw_cf.scoring.encode import encode_many
from seesaw_cf.scoring.forward import logit_bytes, token_bytes
from tests.contract.test_editor_contract import SETTINGS
from tests.fakes import REQUESTS, low_rank, tiny_model, tiny_texts, tiny_tokenizer
from tests.scoring.models import make
from tests.scoring.test_edited import by_hand
from tests.scoring.work import candidates, clozes, worst
from tests.tokenizer_styles import byte_level

# Methods of a tensor after which the host has waited for the device.
READS = ("cpu", "item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__")


class Reads(TorchFunctionMode):
    """Count reads of tensors, and float64 of tensors that were not read before: not every device has it."""

    def __init__(self, on_read: Callable[[], object] = object) -> None:
        super().__init__()
        self.counts, self.host, self.on_read = Counter[str](), list[Any](), on_read

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        self.counts[name] += name in READS
        if name == "cpu":
            self.host.append(result)
            self.on_read()
        self.counts["wide"] += name == "double" and not any(args[0] is tensor for tensor in self.host)
        return result


class Kernels(TorchDispatchMode):
    """Count matrix products and attentions."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.counts = Counter[str]()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        self.counts[name] += name in ("linear", "matmul", "mm", "addmm", "bmm", "baddbmm")
        return func(*args, **(kwargs or {}))


def counted(scorer: Scorer, n: int) -> tuple[Counter[str], Counter[str]]:
    scorer.score(candidates(n))  # what is made once
    with Reads() as reads, Kernels() as kernels:
        scorer.score(candidates(n))
    return +reads.counts, +kernels.counts


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
@pytest.mark.parametrize(("make_scorer", "reads"), [(TrieScorer, READS), (HFScorer, ("cpu", "item", "numpy"))])
def test_a_pass_is_read_once_whatever_is_asked(
    kind: str, make_scorer: Callable[..., Scorer], reads: Sequence[str]
) -> None:
    scorer = make_scorer(make(kind), byte_level(bos=True))
    (few, few_kernels), (many, many_kernels) = counted(scorer, 5), counted(scorer, 60)
    assert [many[name] for name in reads] == [few[name] for name in reads]
    assert few_kernels == many_kernels
    assert few_kernels
    assert 0 < few["cpu"] <= 3
    assert few["wide"] == many["wide"] == 0


@pytest.mark.parametrize("name", ["memit", "emmet", "alphaedit"])
def test_edits_made_together_take_the_passes_of_one(name: str) -> None:
    model, tokenizer, passes = tiny_model("llama"), tiny_tokenizer(), list[int]()
    settings = {**SETTINGS[name], "layers": (1, 2), "steps": 2, "stop_below": 0.0}
    editor = make_editor(name, model, settings, tiny_texts()).fit(model, tokenizer)
    assert isinstance(editor, EditsEach)
    model.register_forward_pre_hook(lambda *_: passes.append(1))
    counts = []
    for n in (1, 3):
        passes.clear()
        editor.edit_each(model, tokenizer, REQUESTS[:n])
        counts.append(len(passes))
    assert counts[0] == counts[1] > 0


def _scarce_logits(model: Any, rows: int) -> list[int]:
    """Refuses memory for the logits of more than `rows` tokens, as a GPU would; what it refused, as it happens."""
    refused: list[int] = []

    def check(head: Any, args: tuple[Any, ...]) -> None:
        if (asked := args[0].numel() // head.in_features) > rows:
            refused.append(asked)
            raise torch.OutOfMemoryError("CUDA out of memory")

    model.get_output_embeddings().register_forward_pre_hook(check)
    return refused


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_logits_that_do_not_fit_make_passes_smaller(dtype: torch.dtype, tokenizer: PreTrainedTokenizerBase) -> None:
    """The largest single piece of memory is what a GPU refuses first."""
    model = make("llama").to(dtype)
    scorer = TrieScorer(model, tokenizer)
    expected = scorer.score(candidates(60))
    refused = _scarce_logits(model, 20)
    assert worst(scorer.score(candidates(60)), expected) < (1e-4 if dtype == torch.float32 else 0.2)
    assert refused


def test_edits_go_one_after_the_other_when_memory_runs_out(
    tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    model = make("llama")
    jobs = [(low_rank(model, (2,), seed), clozes(2)) for seed in range(3)]

    def fails(*_: Any) -> Any:
        raise RuntimeError("[enforce fail at alloc_cpu.cpp:124] DefaultCPUAllocator: can't allocate memory")

    monkeypatch.setattr(seesaw_cf.scoring.edited_scorer, "hidden_below", fails)
    with caplog.at_level(logging.WARNING):
        scores = EditedScorer(TrieScorer(model, tokenizer), "together").score(jobs)
    expected = by_hand(model, tokenizer, jobs)
    assert max(worst(got, wanted) for got, wanted in zip(scores, expected, strict=True)) < 1e-4
    assert caplog.messages == ["out of memory with 3 edits at once; going on one after the other"]


def test_a_budget_bounds_tokens_and_logits(tokenizer: PreTrainedTokenizerBase) -> None:
    model = make("llama")
    budget = 40 * token_bytes(model) + 40 * logit_bytes(model)
    scorer = TrieScorer(model, tokenizer, memory=budget)
    assert scorer.tokens_per_pass < TrieScorer(model, tokenizer).tokens_per_pass
    work = clozes()
    assert worst(scorer.score(work), HFScorer(model, tokenizer).score(work)) < 1e-4
    sizes: list[int] = []
    model.get_input_embeddings().register_forward_pre_hook(lambda _, args: sizes.append(args[0].numel()))
    scorer.score(work)
    assert len(sizes) > 1
    assert max(sizes) <= max(scorer.tokens_per_pass, 4 * 20)


def test_edited_models_keep_the_budget_with_many_texts(
    tokenizer: PreTrainedTokenizerBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A small budget cuts the texts into slabs; numbers are those of one slab, and each text is encoded once a slab."""
    model = make("llama")
    jobs = [(low_rank(model, (2,), seed), clozes(3)[seed:]) for seed in range(2)]
    expected = EditedScorer(TrieScorer(model, tokenizer), "together").score(jobs)
    monkeypatch.setattr(TrieScorer, "texts_at_once", 10)
    sizes = []

    def counted(tokenizer: Any, some: Any, limit: Any = None) -> Any:
        sizes.append(len(some))
        return encode_many(tokenizer, some, limit)

    monkeypatch.setattr(seesaw_cf.scoring.hf_scorer, "encode_many", counted)
    found = EditedScorer(TrieScorer(model, tokenizer), "together").score(jobs)
    assert max(sizes) <= 10
    assert sum(sizes) == len({cloze for _, asked in jobs for cloze in asked})
    assert max(worst(got, wanted) for got, wanted in zip(found, expected, strict=True)) < 1e-4
