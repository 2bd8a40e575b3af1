"""Laws of the methods, equality of the fast and the plain path, and input that is refused."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from seesaw_cf.editors import load_editor
from seesaw_cf.editors.locate.checks import shortened
from seesaw_cf.editors.locate.fitted import factorise
from seesaw_cf.editors.locate.optimise import optimise
from seesaw_cf.editors.locate.positions import MEMIT_STARTS, InputRow, encode_text, prepare, sample_templates
from seesaw_cf.editors.locate.spread import keys_of
from seesaw_cf.editors.memit import MEMIT, MEMITConfig
from seesaw_cf.editors.rome import ROME, ROMEConfig
from seesaw_cf.errors import EditError
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.hooks import frozen
from seesaw_cf.models.identity import fingerprint
from seesaw_cf.models.tensors import free_memory, physical_memory
from seesaw_cf.models.weights import WeightDelta, applied
from tests.contract.test_editor_contract import QUICK, make
from tests.fakes import REQUESTS, TEMPLATES, request, tiny_model, tiny_texts, tiny_tokenizer, trained_model
from tests.tokenizer_styles import byte_level

SETTINGS: dict[str, Any] = {"steps": 8, "learning_rate": 0.1, "weight_decay": 1e-3, "context_templates": TEMPLATES}


@pytest.mark.parametrize("name", ["rome", "memit", "emmet", "alphaedit"])
def test_many_at_once_equal_one_at_a_time(name: str) -> None:
    """In float64, where Adam does not magnify rounding; the shared batch only changes the order of sums."""
    model, tokenizer = tiny_model("gpt2", dtype=torch.float64), tiny_tokenizer()
    editor = make(name, model, **{**QUICK[name], "steps": 8, "layers": (1,) if name == "rome" else (1, 2)})
    together = editor.edit_each(model, tokenizer, REQUESTS)
    for asked, delta in zip(REQUESTS, together):
        alone = editor.edit(model, tokenizer, [asked])
        assert len(delta.updates) == len(editor.config.layers)
        for weight in delta.updates:
            assert (delta.dense(weight) - alone.dense(weight)).norm() < 1e-9 * alone.dense(weight).norm()
        assert delta.meta["requests"] == alone.meta["requests"]
        assert delta.meta["diagnostics"][0]["steps"] == alone.meta["diagnostics"][0]["steps"]


def test_finished_edits_leave_the_batch() -> None:
    """Edits that stop at different steps end where they end alone."""
    model, tokenizer = tiny_model("llama", dtype=torch.float64), tiny_tokenizer()
    parts = model_parts(model)
    edits = [prepare(model, tokenizer, asked, TEMPLATES) for asked in REQUESTS]
    base = MEMITConfig(layers=(1,), **{**SETTINGS, "steps": 12})
    with frozen(model):
        free = optimise(parts, edits, 1, base)
        small = optimise(parts, edits, 1, replace(base, batch_tokens=1))
        limits = sorted(loss[6][0] for loss in free.losses)
        config = replace(base, stop_below=limits[1])
        together = optimise(parts, edits, 1, config)
        alone = [optimise(parts, [edit], 1, config) for edit in edits]
    assert torch.allclose(free.shift, small.shift, rtol=1e-9, atol=1e-12), "small batches change nothing"
    steps = [len(loss) for loss in together.losses]
    assert len(set(steps)) > 1
    for index, single in enumerate(alone):
        assert steps[index] == len(single.losses[0])
        assert torch.allclose(together.shift[index], single.shift[0], rtol=1e-9, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.02, 0.1, 1000.0])
def test_rome_finds_its_value_within_the_longest_change(share: float) -> None:
    """Its change is never longer, fits as well as one that is shortened later, and a wide bound is none."""
    model, tokenizer = tiny_model("llama", dtype=torch.float64), tiny_tokenizer()
    free, bounded = (
        ROME(
            ROMEConfig(layers=(1,), max_change=most, **{**SETTINGS, "steps": 25, "weight_decay": 0.0}), tiny_texts()
        ).fit(model, tokenizer)
        for most in (None, share)
    )
    for asked in REQUESTS:
        long, short = (editor.edit(model, tokenizer, [asked]) for editor in (free, bounded))
        (name,) = short.updates
        most = share * float(model.get_parameter(name).detach().norm())
        if long.norms()[name] <= most:
            assert torch.equal(short.dense(name), long.dense(name))
        else:
            facts = short.meta["diagnostics"][0]
            assert short.norms()[name] == pytest.approx(most)
            assert facts["shift_norm"] == pytest.approx(most * abs(facts["key_along_direction"]))
            rows = prepare(model, tokenizer, asked, TEMPLATES).rows
            cut = WeightDelta(shortened(model, long.updates, share))
            assert mean_loss(model, rows, short) < mean_loss(model, rows, cut) + 1e-3


def mean_loss(model: Any, rows: Sequence[InputRow], delta: WeightDelta) -> float:
    """Mean over rows of -log p of their targets, in nats, with a change."""
    losses = []
    with applied(model, delta), torch.no_grad():
        for row in rows:
            log_p = model(torch.tensor([row.ids])).logits[0, -len(row.targets) :].log_softmax(-1)
            losses.append(-float(log_p[range(len(row.targets)), row.targets].mean()))
    return fmean(losses)


def test_alphaedit_leaves_the_rest_alone_and_keeps_its_cache() -> None:
    """The update is orthogonal to known directions, and `edit` never grows the cache."""
    model, tokenizer = tiny_model("llama", dtype=torch.float64), tiny_tokenizer()
    cls = load_editor("alphaedit")
    everything = cls.config_class(layers=(1,), null_threshold=1e9, norm_weight=1.0, **SETTINGS)
    moment = cls(everything, tiny_texts()).fit(model, tokenizer).fitted.moments[1].matrix
    middle = float(torch.linalg.eigvalsh(moment)[20:22].mean())
    editor = cls(replace(everything, null_threshold=middle), tiny_texts()).fit(model, tokenizer)
    basis = editor.bases[1]
    assert basis.shape[1] == 21
    delta = editor.edit(model, tokenizer, REQUESTS[:1])
    change = next(iter(delta.updates.values())).dense()
    assert (change - change @ basis @ basis.T).norm() < 1e-10 * change.norm()
    assert not editor.past
    with applied(model, delta):
        grown = editor.remember(model, tokenizer, REQUESTS[:1])
        keys = keys_of(model_parts(model), [prepare(model, tokenizer, REQUESTS[0], TEMPLATES)], 1, 4096)
    assert torch.allclose(grown.past[1], keys)
    assert not editor.past
    with pytest.raises(EditError, match=r"below null_threshold=1e-30 .*Raise null_threshold"):
        cls(cls.config_class(layers=(1,), null_threshold=1e-30, **SETTINGS), tiny_texts()).fit(model, tokenizer)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 6), st.integers(2, 12), st.floats(0.1, 100), st.integers(0, 10**6))
def test_woodbury_equals_the_dense_solve(n: int, size: int, weight: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    root = torch.randn(size, 2 * size, generator=generator, dtype=torch.float64)
    moment, keys = root @ root.T / size, torch.randn(size, n, generator=generator, dtype=torch.float64)
    groups = [keys, keys[:, :1]]
    for own, fast in zip(groups, factorise(moment, "test").regularised(groups, weight), strict=True):
        dense = torch.linalg.solve(weight * moment + own @ own.T, own)
        assert (fast - dense).norm() <= 1e-8 * dense.norm()


def test_singular_moments_get_a_reported_ridge(caplog: pytest.LogCaptureFixture) -> None:
    moment = torch.diag(torch.tensor([1.0, 1.0, 0.0]))
    assert factorise(moment, "layer 3").ridge == pytest.approx(1e-6 * 2 / 3)
    assert "layer 3 is singular" in caplog.text
    few = torch.randn(3, 200, generator=torch.Generator().manual_seed(0)) + 1.0
    assert 0 < factorise(few.T @ few, "layer 3").ridge < 1e-3 * float((few.T @ few).diagonal().mean())
    assert factorise(few.T @ few - 1e-6 * torch.eye(200) * 50, "layer 3").ridge > 0  # rounding below zero
    with pytest.raises(EditError, match="not positive semi-definite"):
        factorise(-moment, "layer 3")
    with pytest.raises(EditError, match="not finite"):
        factorise(moment * float("nan"), "layer 3")


@pytest.mark.slow
@pytest.mark.parametrize("starts", [MEMIT_STARTS, (("", 3), ("The next", 6), ("", 5))])
def test_templates_grown_side_by_side_are_those_of_one_after_the_other(starts: tuple[tuple[str, int], ...]) -> None:
    model, tokenizer = trained_model("llama"), tiny_tokenizer()
    generator = torch.Generator().manual_seed(7)
    expected = ["{}"]
    for start, n_new in starts:
        ids = list(encode_text(tokenizer, start)) or [tokenizer.bos_token_id]
        for _ in range(n_new):
            with torch.no_grad():
                top = model(torch.tensor([ids])).logits[0, -1].topk(5)
            ids.append(int(top.indices[int(torch.multinomial(top.values.softmax(-1), 1, generator=generator))]))
        text = " ".join(str(tokenizer.decode(ids, skip_special_tokens=True)).split())
        expected.append(f"{text}. {{}}")
    before = torch.get_rng_state()
    assert sample_templates(model_parts(model), tokenizer, starts, 7) == tuple(expected)
    assert torch.equal(before, torch.get_rng_state())


def test_templates_start_from_the_end_of_text_where_no_token_begins_one() -> None:
    parts, named = model_parts(tiny_model("qwen2")), byte_level(bos=True)
    unnamed = byte_level(bos=True)
    unnamed.bos_token, unnamed.eos_token = None, named.bos_token
    assert (unnamed.bos_token_id, unnamed.eos_token_id) == (None, 1)
    templates = [sample_templates(parts, tokenizer, (("", 3), ("", 3)), 0) for tokenizer in (named, unnamed)]
    assert templates[0] == templates[1]


def test_bare_prompt_is_always_first() -> None:
    assert MEMITConfig(layers=(1,), context_templates=("So. {}", "{}")).context_templates == ("{}", "So. {}")
    for wrong in ({"context_templates": ("{}", "no place")}, {"steps": 0}):
        with pytest.raises(EditError, match="expected"):
            MEMITConfig(layers=(1,), **wrong)


@pytest.mark.parametrize(
    ("line", "folder", "limit", "used", "cache"),
    [
        ("0::/job/step", "job", "memory.max", "memory.current", "inactive_file"),
        ("0::/../elsewhere/on/the/host", ".", "memory.max", "memory.current", "inactive_file"),
        ("4:memory:/docker/1a8e", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ],
)
def test_memory_is_what_a_container_or_a_job_may_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, folder: str, limit: str, used: str, cache: str
) -> None:
    """Of 1,000 KiB 700 are used, 100 of them a cache of files: 400 are left, and 90 where the machine has no more."""
    for name in ("_MEMORY", "_OWN_GROUPS", "_GROUPS"):
        monkeypatch.setattr(f"seesaw_cf.models.tensors.{name}", tmp_path / name)
    group = tmp_path / "_GROUPS" / folder
    group.mkdir(parents=True)
    (tmp_path / "_OWN_GROUPS").write_text(f"9:cpu:/job/step\n{line}\n")
    (group / limit).write_text(f"{1000 * 1024}\n")
    (group / used).write_text(f"{700 * 1024}\n")
    (group / "memory.stat").write_text(f"anon {600 * 1024}\n{cache} {100 * 1024}\n")
    assert physical_memory() == 1000 * 1024
    (tmp_path / "_MEMORY").write_text("MemAvailable:    900 kB\n")
    assert free_memory(torch.device("cpu")) == 400 * 1024
    (tmp_path / "_MEMORY").write_text("MemAvailable:    90 kB\n")
    assert free_memory(torch.device("cpu")) == 90 * 1024
    (group / limit).write_text("max\n")
    assert physical_memory() > 1000 * 1024


def test_batch_tokens_bound_what_is_optimised_at_once() -> None:
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    parts = model_parts(model)
    edits = [prepare(model, tokenizer, asked, TEMPLATES) for asked in REQUESTS]

    def most(batch_tokens: int) -> int:
        """The largest number of tokens, padding included, that block 3 is run on with gradients."""
        seen = [0]

        def note(_: Any, args: Any, kwargs: Any) -> None:
            hidden = args[0] if args else kwargs["hidden_states"]
            seen.append(hidden.shape[:-1].numel() * torch.is_grad_enabled())

        handle = parts.block(3).register_forward_pre_hook(note, with_kwargs=True)
        with frozen(model):
            optimise(parts, edits, 1, MEMITConfig(layers=(1,), **{**SETTINGS, "steps": 2}, batch_tokens=batch_tokens))
        handle.remove()
        return max(seen)

    assert 0 < most(1) < most(4096)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ft", "rome", "memit", "emmet", "alphaedit"])
def test_requests_that_cannot_be_meant_are_refused(name: str) -> None:
    model, tokenizer = trained_model("gpt2"), tiny_tokenizer()
    editor = make(name, model, **QUICK[name])
    before = fingerprint(model)
    for asked, message in (
        ([request(new="Kraków")], r"target_new equal to target_true \('Kraków'\).*allow_identity"),
        ([request(), request(new="Paris")], r"contradict each other.*'London'.*'Paris'"),
        ([request(), request("{} comes from", new="Paris")], "contradict each other"),
        ([], "no requests"),
    ):
        with pytest.raises(EditError, match=message):
            editor.edit(model, tokenizer, asked)
    allowed = make(name, model, **{**QUICK[name], "allow_identity": True})
    assert allowed.edit(model, tokenizer, [request(new="Kraków")]).is_finite()
    assert fingerprint(model) == before


@pytest.mark.parametrize("name", ["ft", "memit", "rome"])
def test_a_loss_that_is_not_a_number_is_an_error(name: str) -> None:
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    editor = make(name, model, **QUICK[name])
    with torch.no_grad():
        model.lm_head.weight[5] = float("nan")
    before = fingerprint(model)
    with pytest.raises(EditError, match=r"the loss is nan (at step|in pass) 1.*The model is unchanged"):
        editor.edit(model, tokenizer, [request()])
    assert fingerprint(model) == before


def test_fit_must_come_first_and_needs_texts() -> None:
    model, tokenizer = tiny_model("llama"), tiny_tokenizer()
    with pytest.raises(EditError, match=r"edit was called before fit.*editor\.fit\(model, tokenizer\)"):
        MEMIT(MEMITConfig(layers=(1,), **SETTINGS), tiny_texts()).edit(model, tokenizer, [request()])
    with pytest.raises(EditError, match=r"MEMIT needs texts.*corpus=\[\.\.\.\].*dataset="):
        MEMIT(MEMITConfig(layers=(1,), context_templates=TEMPLATES)).fit(model, tokenizer)
    without = ROME(ROMEConfig(layers=(1,), use_moments=False, **SETTINGS)).fit(model, tokenizer)
    assert without.edit(model, tokenizer, [request()]).is_finite()
    with pytest.raises(EditError, match="expected exactly one"):
        ROMEConfig(layers=(1, 2))
