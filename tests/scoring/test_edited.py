"""Many edited models in one batch: the numbers of apply-and-restore, shared blocks once, weights never written."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import linear
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.errors import DeltaMismatchError
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.hooks import exchanged
from seesaw_cf.models.weights import LowRank, WeightDelta, applied, parameter_hashes
from seesaw_cf.scoring import HFScorer, TrieScorer, make_scorer, score_each
from seesaw_cf.scoring.edited_scorer import EditedScorer
from seesaw_cf.scoring.hf_scorer import obstacle, per_token_deltas
from seesaw_cf.types import ClozeScore
from tests.fakes import every_kind, low_rank
from tests.scoring.models import CONFIGS, make
from tests.scoring.work import clozes, worst


def by_hand(model: PreTrainedModel, tokenizer: Any, jobs: Any) -> list[list[ClozeScore]]:
    found = []
    for delta, asked in jobs:
        with applied(model, delta):
            found.append(HFScorer(model, tokenizer).score(asked))
    return found


@pytest.mark.parametrize("kind", every_kind([kind for kind, (_, layout) in CONFIGS.items() if layout != "plain"]))
def test_together_equals_apply_and_restore_on_every_architecture(kind: str, tokenizer: PreTrainedTokenizerBase) -> None:
    model = make(kind)
    last = model_parts(model).n_layers - 1
    some = clozes(3)
    jobs = [
        (low_rank(model, (last,), 0), some[::2]),
        (low_rank(model, (1, last), 1, rank=3), some[:20]),
        (WeightDelta(), some[::3]),
        (low_rank(model, (last,), 2), []),
        (low_rank(model, (0, last), 3), some[::5]),
    ]
    hashes = parameter_hashes(model)
    engine = EditedScorer(TrieScorer(model, tokenizer, max_tokens=120), "together")
    assert not engine.plan(jobs).reason
    scores = engine.score(jobs)
    assert parameter_hashes(model) == hashes
    expected = by_hand(model, tokenizer, jobs)
    assert max(worst(got, wanted) for got, wanted in zip(scores, expected, strict=True)) < 1e-4
    plain = by_hand(model, tokenizer, [(WeightDelta(), some[::2])])
    assert max(abs(a.logprob - b.logprob) for a, b in zip(scores[0], plain[0], strict=True)) > 1e-2


def test_shared_blocks_are_run_once_for_all_edits(tokenizer: PreTrainedTokenizerBase) -> None:
    model = make("llama", num_hidden_layers=6)
    alone = TrieScorer(model, tokenizer)
    alone.score(clozes())
    nodes = alone.counts.tokens
    scorer = TrieScorer(model, tokenizer)
    EditedScorer(scorer, "together").score([(low_rank(model, (5,), seed), clozes()) for seed in range(8)])
    assert scorer.counts.work == pytest.approx(nodes * (5 / 6 + 8 * 1 / 6), rel=1e-6)
    assert scorer.counts.logit_rows <= 8 * alone.counts.logit_rows


@pytest.mark.parametrize("kind", every_kind([kind for kind, (_, layout) in CONFIGS.items() if layout != "plain"]))
def test_what_lies_below_a_change_is_computed_once(kind: str, tokenizer: PreTrainedTokenizerBase) -> None:
    model, some = make(kind), clozes(3)
    parts = model_parts(model)
    last = parts.n_layers - 1
    for layers in ((last,), (0, last)):
        kept, work = TrieScorer(model, tokenizer, max_tokens=120), [0.0]
        for seed in range(4):
            dense = low_rank(model, layers, seed).dense(parts.weight_name(last))
            jobs = [(WeightDelta({parts.weight_name(at): dense for at in layers}), some)]
            (found,) = EditedScorer(kept, "restore", keep=True).score(jobs)
            (alone,) = EditedScorer(TrieScorer(model, tokenizer, max_tokens=120), "restore").score(jobs)
            assert found == alone
            assert worst(found, by_hand(model, tokenizer, jobs)[0]) < 1e-4
            work.append(kept.counts.work)
        assert np.diff(work)[1:] == pytest.approx(work[1] * (1 - layers[0] / parts.n_layers))
    with torch.no_grad():
        model.get_input_embeddings().weight.mul_(1.5)
    (alone,) = EditedScorer(TrieScorer(model, tokenizer, 120), "restore").score(jobs)
    assert EditedScorer(kept, "restore", keep=True).score(jobs) == [alone]
    assert kept.forget()
    assert not kept.forget()
    assert "forward" not in {name for part in model.modules() for name in vars(part)}


@pytest.mark.parametrize("how", ["adds in place", "reads a weight", "names an input", "shares a weight"])
def test_below_a_change_any_code_gives_its_own_scores(how: str, tokenizer: PreTrainedTokenizerBase) -> None:
    model = make("llama", num_hidden_layers=3)
    _, block, above = model.model.layers
    mlp = block.mlp

    def add(hidden: torch.Tensor, **options: Any) -> torch.Tensor:
        attended, _ = block.self_attn(block.input_layernorm(hidden), **options)
        attended += hidden
        return attended + mlp(block.post_attention_layernorm(attended))

    def inside(hidden: torch.Tensor) -> torch.Tensor:
        return mlp.act_fn(mlp.gate_proj(hidden)) * mlp.up_proj(hidden)

    read, name = (lambda x: linear(inside(x), mlp.down_proj.weight)), (lambda x: mlp.down_proj(input=inside(x)))
    forwards: dict[str, Any] = {
        "adds in place": {block: add},
        "reads a weight": {mlp: read},
        "names an input": {mlp: name},
    }
    if how == "shares a weight":
        above.mlp.down_proj.weight = mlp.down_proj.weight
    engine = EditedScorer(TrieScorer(model, tokenizer), "restore", keep=True)
    with exchanged(forwards.get(how, {})):
        for seed in range(3):
            jobs = [(low_rank(model, (1,), seed), clozes(2))]
            assert worst(engine.score(jobs)[0], by_hand(model, tokenizer, jobs)[0]) < 1e-4


def test_the_same_jobs_give_the_same_bytes(tokenizer: PreTrainedTokenizerBase) -> None:
    model = make("gpt2")
    jobs = [(low_rank(model, (1,), seed), clozes()[seed:]) for seed in range(4)]
    engine = EditedScorer(TrieScorer(model, tokenizer, max_tokens=200), "together")
    first = engine.score(jobs)
    assert engine.score(jobs) == first
    mixed = engine.score([(delta, asked[::-1] * 2) for delta, asked in jobs])
    assert [scores[: len(asked)][::-1] for scores, (_, asked) in zip(mixed, jobs)] == first


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda model, name: {name: torch.zeros_like(model.get_parameter(name))}, "is a full matrix"),
        (
            lambda model, name: {"model.embed_tokens.weight": LowRank(torch.zeros(500, 1), torch.zeros(1, 32))},
            "is not the weight of a linear layer",
        ),
        (
            lambda model, name: {"lm_head.weight": LowRank(torch.zeros(500, 1), torch.zeros(1, 32))},
            "is outside the transformer blocks",
        ),
    ],
)
def test_other_deltas_are_applied_and_restored(change: Any, reason: str, tokenizer: PreTrainedTokenizerBase) -> None:
    model = make("llama", tie_word_embeddings=False)
    delta = WeightDelta(change(model, "model.layers.1.mlp.down_proj.weight"))
    engine = EditedScorer(TrieScorer(model, tokenizer), "together")
    assert reason in engine.plan([(delta, clozes(1))]).reason
    assert engine.score([(delta, clozes(1))]) == [TrieScorer(model, tokenizer).score(clozes(1))]
    with (
        pytest.raises(DeltaMismatchError, match="cannot be applied per token"),
        per_token_deltas(model, [delta], torch.zeros(1)),
    ):
        pass


def test_a_delta_of_another_model_is_refused_and_changes_nothing(tokenizer: PreTrainedTokenizerBase) -> None:
    model = make("llama")
    hashes = parameter_hashes(model)
    wrong = WeightDelta({"model.layers.1.mlp.down_proj.weight": LowRank(torch.zeros(5, 1), torch.zeros(1, 5))})
    for how in ("together", "restore"):
        with pytest.raises(DeltaMismatchError, match=r"shape \(5, 5\), .* has \(32, 48\)"):
            EditedScorer(TrieScorer(model, tokenizer), how).score([(wrong, clozes(1))])
    assert parameter_hashes(model) == hashes
    assert not any(part._forward_hooks or "forward" in vars(part) for part in model.modules())
    assert obstacle(model, WeightDelta({"nowhere.3.weight": LowRank(torch.zeros(1, 1), torch.zeros(1, 1))}))


@pytest.mark.parametrize(
    ("layers", "edits", "people", "how"), [((5,), 8, 7, "together"), ((0,), 1, 7, "restore"), ((0,), 30, 1, "together")]
)
def test_the_plan_takes_the_cheaper_way(
    layers: tuple[int, ...], edits: int, people: int, how: str, tokenizer: PreTrainedTokenizerBase
) -> None:
    model = make("llama", num_hidden_layers=6)
    asked = clozes(people)[: 4 if edits == 30 else None]
    jobs = [(low_rank(model, layers, seed), asked) for seed in range(edits)]
    plan = EditedScorer(TrieScorer(model, tokenizer)).plan(jobs)
    assert (plan.how if plan.together != plan.restore else "restore") == how
    assert "blocks" not in plan.reason


@pytest.mark.parametrize("how", ["plain", "single", "trie"])
def test_low_precision_keeps_a_small_edit_beside_the_weights(how: str, tokenizer: PreTrainedTokenizerBase) -> None:
    """Near 64 bfloat16 has steps of 0.5 and 0.25: adding 0.1 to a weight leaves it what it was, but in an output the
    changes add up where their signs are those of the inputs, and the weights' do not."""
    model = make("llama").to(torch.bfloat16)
    parts = model_parts(model)
    weight = parts.weight(1)
    with torch.no_grad():
        weight.copy_(64 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)).sign())
    kept = weight.detach().clone()
    scorer, _ = make_scorer(model, tokenizer, how)
    some = clozes(2)
    module = model.get_submodule(parts.weight_name(1).removesuffix(".weight"))
    inputs: list[torch.Tensor] = []
    with module.register_forward_pre_hook(lambda _, args: inputs.append(args[0])):
        before = scorer.score(some)
    signs = inputs[-1].flatten(0, -2)[-1].float().sign()
    delta = WeightDelta({parts.weight_name(1): LowRank(torch.linspace(-1, 1, len(weight))[:, None], 0.1 * signs[None])})
    with applied(model, delta):
        assert scorer.score(some) == before
    (after,) = score_each(scorer, model, [(delta, some)])
    assert after != before
    assert torch.equal(weight, kept)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_single_scores_depend_on_nothing_else_asked(dtype: torch.dtype, tokenizer: PreTrainedTokenizerBase) -> None:
    model = make("llama").to(dtype)
    scorer, description = make_scorer(model, tokenizer, "single")
    assert description["max_tokens"] == 1
    some = clozes(3)
    together = scorer.score(some)
    assert together == [scorer.score([cloze])[0] for cloze in some]
    assert together == scorer.score(some[::-1])[::-1]
