"""What a GPU would wait for, counted on a CPU: scoring reads results back once a pass, however much is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from seesaw_cf.models.editor import EditsEach
from seesaw_cf.run.make_editors import make_editor
from seesaw_cf.scoring import HFScorer, Scorer, TrieScorer
from tests.contract.test_editor_contract import SETTINGS
from tests.fakes import REQUESTS, tiny_model, tiny_texts, tiny_tokenizer
from tests.scoring.models import make
from tests.scoring.work import candidates
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
