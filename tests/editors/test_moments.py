"""Second moments: the definition, one pass for all layers, the cache, resuming, stopping early, and damaged files."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from transformers import PreTrainedModel

from seesaw_cf.editors.locate.moment_files import MomentFiles, SecondMoment, write
from seesaw_cf.editors.locate.moment_sums import Sums, TextShare
from seesaw_cf.editors.locate.moments import MomentOptions, second_moments
from seesaw_cf.editors.memit import MEMIT, MEMITConfig
from seesaw_cf.errors import EditError, StorageError
from seesaw_cf.models.architectures import model_parts
from seesaw_cf.models.hooks import hooked, watch
from tests.fakes import TINY, request, tiny_model, tiny_texts, tiny_tokenizer
from tests.scoring.test_head import Gpu

LOCATE = "seesaw_cf.editors.locate"


def compute(
    kind: str, folder: Path, layers: tuple[int, ...] = (0, 2), on_batch: Any = None, **options: Any
) -> dict[int, SecondMoment]:
    """Moments of a tiny model; `on_batch` is called with the number of texts before each forward pass."""
    dtype = options.pop("dtype", torch.float32)
    texts = options.pop("texts", tiny_texts())
    model = tiny_model(kind, dtype=dtype)
    if on_batch is not None:
        model.register_forward_pre_hook(lambda _, args, fed: on_batch(len(fed["input_ids"])), with_kwargs=True)
    return second_moments(model_parts(model), tiny_tokenizer(), layers, texts, MomentOptions(**options), folder)


@pytest.mark.slow
@pytest.mark.parametrize("kind", TINY)
def test_equals_the_definition_text_by_text(kind: str, tmp_path: Path) -> None:
    model = tiny_model(kind, dtype=torch.float64)
    parts = model_parts(model)
    found = compute(kind, tmp_path, dtype=torch.float64, batch_tokens=64)
    for layer, moment in found.items():
        total, count = torch.zeros(48, 48, dtype=torch.float64), 0
        for text in tiny_texts():
            seen: dict[str, torch.Tensor] = {}
            with torch.no_grad(), hooked(watch(seen, {"k": parts.mlp_out(layer)})):
                model(torch.tensor([tiny_tokenizer()(text)["input_ids"]]))
            keys = seen["k"].reshape(-1, 48)
            total += keys.T @ keys
            count += len(keys)
        assert moment.n_tokens == count
        assert moment.n_texts == len(tiny_texts())
        assert torch.allclose(moment.matrix, total / count, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("size", [48, 700])
def test_sums_stay_within_the_stated_bound_of_float64_sums(size: int) -> None:
    """|difference| <= n u mean |k_i k_j|, n the tokens of a batch; also where there are several blocks of columns."""
    parts = model_parts(tiny_model("llama", intermediate_size=size))
    sums = Sums.start(parts, [0], TextShare([], Path("nowhere"), "key"))
    batches = [torch.randn(n, size, generator=torch.Generator().manual_seed(n)) for n in (500, 300, 7)]
    counts = [[len(keys) - 7, *[1] * 7] for keys in batches]
    sums.add(0, batches[:2], counts[:2])
    sums.add(0, batches[2:], counts[2:])
    sums.tokens = [sum(of_part) for of_part in zip(*counts)]
    every = torch.cat(batches).double()
    found = sums.moment(0, parts).matrix.double()
    bound = (800 + 1) * torch.finfo(torch.float32).eps / 2 * (every.abs().T @ every.abs()) / len(every)
    assert ((found - every.T @ every / len(every)).abs() <= bound).all()
    assert sums.error(0) > 0


def test_a_device_that_adds_in_float32_takes_keys_of_half_precision_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = compute("llama", tmp_path / "widened", dtype=torch.bfloat16, batch_tokens=64)
    for module in (f"{LOCATE}.moments", f"{LOCATE}.moment_sums", "seesaw_cf.models.wide"):
        monkeypatch.setattr(f"{module}.adds_in_float32", lambda tensor: tensor.dtype == torch.bfloat16)
    with Gpu() as gpu:
        found = compute("llama", tmp_path / "as they are", dtype=torch.bfloat16, batch_tokens=64)
    assert gpu.products > 0
    for layer, moment in found.items():
        torch.testing.assert_close(moment.matrix, expected[layer].matrix, rtol=1e-5, atol=1e-6)
        assert moment.relative_error == pytest.approx(expected[layer].relative_error, rel=1e-4)


def test_batch_size_changes_only_rounding(tmp_path: Path) -> None:
    small, large = (compute("llama", tmp_path / str(n), batch_tokens=n)[2].matrix for n in (32, 4096))
    assert (small - large).norm() < 1e-6 * large.norm()


@pytest.mark.slow
def test_sampling_error_is_near_the_true_one(tmp_path: Path) -> None:
    """Against the moment of many more texts of the same kind; within a factor of three."""
    words = [word for text in tiny_texts() for word in text.split()]
    draw = random.Random(0)
    many = [" ".join(draw.choices(words, k=8)) for _ in range(3000)]
    truth = compute("llama", tmp_path, (1,), texts=many)[1].matrix
    part = compute("llama", tmp_path, (1,), texts=many[:100])[1]
    real = float((part.matrix - truth).norm() / truth.norm())
    assert real / 3 < part.relative_error < real * 3


def test_found_again_under_a_key_of_everything_that_matters(tmp_path: Path) -> None:
    first = compute("llama", tmp_path)
    run: list[int] = []
    again = compute("llama", tmp_path, on_batch=run.append)
    assert not run
    assert all(torch.equal(first[layer].matrix, again[layer].matrix) for layer in first)
    for other in (
        {"texts": tiny_texts()[1:]},
        {"sample_size": 10},
        {"max_length": 5},
        {"dtype": torch.float64},
        {"layers": (0, 1)},
    ):
        run.clear()
        compute("llama", tmp_path, on_batch=run.append, **other)
        assert run


@pytest.mark.slow
@pytest.mark.parametrize(("chunk", "together"), [(1000, 1), (10, 2)])
def test_workers_that_start_together_run_every_text_once(chunk: int, together: int, tmp_path: Path) -> None:
    """A single chunk one of them, while the other waits; of several both, and the sums are those of one alone."""
    alone = compute("llama", tmp_path / "alone", chunk=chunk)
    meeting, run = threading.Barrier(2, timeout=1 if together == 1 else 30), dict[int, int]()

    def moments(model: PreTrainedModel) -> dict[int, SecondMoment]:
        options = MomentOptions(chunk=chunk)
        return second_moments(model_parts(model), tiny_tokenizer(), (0, 2), tiny_texts(), options, tmp_path)

    def count(_: object, __: object, fed: dict[str, torch.Tensor]) -> None:
        if threading.get_ident() not in run:
            with suppress(threading.BrokenBarrierError):  # the other one is not in the pass
                meeting.wait()
        run[threading.get_ident()] = run.get(threading.get_ident(), 0) + len(fed["input_ids"])

    models = [tiny_model("llama"), tiny_model("llama")]
    for model in models:
        model.register_forward_pre_hook(count, with_kwargs=True)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(moments, models))
    assert len(run) == together
    assert sum(run.values()) == len(tiny_texts())
    for moment in found:
        assert all(torch.equal(moment[layer].matrix, alone[layer].matrix) for layer in alone)
        assert all(moment[layer].relative_error == alone[layer].relative_error for layer in alone)
    assert not [*tmp_path.rglob("partial*"), *tmp_path.rglob("share*")]


def dying(after: int, folder: Path, **options: Any) -> None:
    """Starts a pass that writes a checkpoint after every batch and is killed after some of them."""
    left = iter(range(after))

    def dies(_: int) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compute("llama", folder, on_batch=dies, checkpoint_seconds=0.0, **options)


@pytest.mark.parametrize("chunk", [1000, 10])
@pytest.mark.parametrize("after", [1, 3])
def test_a_killed_pass_goes_on_where_it_was(chunk: int, after: int, tmp_path: Path) -> None:
    whole = compute("llama", tmp_path / "whole", batch_tokens=64, chunk=chunk)
    dying(after, tmp_path / "killed", batch_tokens=64, chunk=chunk)
    run: list[int] = []
    rest = compute("llama", tmp_path / "killed", on_batch=run.append, batch_tokens=64, chunk=chunk)
    assert 0 < sum(run) < len(tiny_texts())
    for layer in whole:
        assert torch.equal(rest[layer].matrix, whole[layer].matrix)
        assert rest[layer].relative_error == whole[layer].relative_error
    assert not list((tmp_path / "killed").rglob("partial*"))


def test_killed_between_two_layers_the_sums_of_the_others_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, save, saved = compute("llama", tmp_path / "whole", chunk=10), MomentFiles.save, list[int]()

    def once(files: MomentFiles, layer: int, moment: SecondMoment) -> None:
        if saved:
            raise KeyboardInterrupt
        saved.append(layer)
        save(files, layer, moment)

    monkeypatch.setattr(MomentFiles, "save", once)
    with pytest.raises(KeyboardInterrupt):
        compute("llama", tmp_path, chunk=10)
    monkeypatch.setattr(MomentFiles, "save", save)
    run: list[int] = []
    rest = compute("llama", tmp_path, on_batch=run.append, chunk=10)
    assert not run
    assert all(torch.equal(rest[layer].matrix, whole[layer].matrix) for layer in whole)
    assert not [*tmp_path.rglob("partial*"), *tmp_path.rglob("share*")]


@pytest.mark.parametrize("resumed", [16, 200, 4096])
@pytest.mark.parametrize("chunk", [1000, 10])
def test_a_killed_pass_goes_on_with_batches_of_another_size(chunk: int, resumed: int, tmp_path: Path) -> None:
    whole = compute("llama", tmp_path / "whole", batch_tokens=64, chunk=chunk)
    dying(3, tmp_path / "killed", batch_tokens=64, chunk=chunk)
    rest = compute("llama", tmp_path / "killed", batch_tokens=resumed, chunk=chunk)
    for layer, moment in whole.items():
        assert (rest[layer].n_tokens, rest[layer].n_texts) == (moment.n_tokens, moment.n_texts)
        assert (rest[layer].matrix - moment.matrix).norm() < 1e-6 * moment.matrix.norm()
        assert rest[layer].relative_error == pytest.approx(moment.relative_error, rel=1e-4)


def random_texts(n: int) -> list[str]:
    """Texts of one to fifteen words."""
    words = [word for text in tiny_texts() for word in text.split()]
    draw = random.Random(0)
    return [" ".join(draw.choices(words, k=draw.randint(1, 15))) for _ in range(n)]


def test_a_pass_ends_when_the_sampling_error_is_small_enough(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger=second_moments.__module__)
    texts = random_texts(400)
    whole = compute("llama", tmp_path / "whole", texts=texts, chunk=25)
    assert [line.split(" texts, ")[0] for line in caplog.messages] == [
        f"second moments, share {share} of 8: {done} of 50" for share in range(1, 9) for done in (25, 50)
    ]
    wanted = 2 * max(moment.relative_error for moment in whole.values())
    caplog.clear()
    early = compute("llama", tmp_path / "early", texts=texts, sampling_error=wanted, chunk=25)
    assert caplog.messages[-1].endswith(f"sampling error {max(m.relative_error for m in early.values()):.2g}")
    for layer, moment in early.items():
        assert moment.n_texts in range(50, 300, 25)  # four times fewer texts double the error
        assert moment.relative_error <= wanted
        real = (moment.matrix - whole[layer].matrix).norm() / whole[layer].matrix.norm()
        assert wanted / 4 < real < wanted * 2
    assert len(caplog.messages) == early[0].n_texts // 25


def test_the_texts_so_far_are_a_fair_sample(tmp_path: Path) -> None:
    """Also when the corpus is sorted: a pass that took texts in their order, or by length, would show it."""
    texts = sorted(random_texts(400), key=len)
    mean = compute("llama", tmp_path, (1,), texts=texts)[1].n_tokens / 400
    part = compute("llama", tmp_path / "part", (1,), texts=texts, sampling_error=1.0, chunk=25)[1]
    assert part.n_texts == 25
    assert part.n_tokens / 25 == pytest.approx(mean, rel=0.25)
    first = compute("llama", tmp_path / "first", (1,), texts=texts[:25])[1]
    assert first.n_tokens / 25 < 0.5 * mean


def test_moments_of_some_texts_are_kept_apart(tmp_path: Path) -> None:
    run: list[int] = []
    options: dict[str, Any] = {"texts": random_texts(300), "layers": (1,), "chunk": 50, "on_batch": run.append}
    rough = compute("llama", tmp_path, sampling_error=0.5, **options)[1]
    assert rough.n_texts == sum(run) == 50
    assert torch.equal(compute("llama", tmp_path, sampling_error=0.5, **options)[1].matrix, rough.matrix)
    assert sum(run) == 50
    finer = compute("llama", tmp_path, sampling_error=0.8 * rough.relative_error, **options)[1]
    assert sum(run) == finer.n_texts > 50  # it went on from the sums of the rough one
    whole = compute("llama", tmp_path, **options)[1]
    assert whole.n_texts == sum(run) == 300
    assert compute("llama", tmp_path, sampling_error=0.5, **options)[1].n_texts == 50
    assert compute("llama", tmp_path, sampling_error=0.1, **options)[1].n_texts == 300  # all of them serve as well
    assert not list(tmp_path.rglob("partial*"))


@pytest.mark.slow
@pytest.mark.parametrize("killed", [True, False], ids=["killed", "ended early"])
def test_a_pass_of_shares_beside_one_that_may_end_early_counts_no_text_twice(killed: bool, tmp_path: Path) -> None:
    """The other one leaves its checkpoint while the shares are run."""
    texts, run = random_texts(100), list[int]()
    whole = compute("llama", tmp_path / "whole", texts=texts, chunk=10)

    def other(_: int) -> None:
        run.append(1)
        if len(run) == 3:
            early: dict[str, Any] = {"texts": texts, "chunk": 10}
            if killed:
                dying(2, tmp_path / "both", sampling_error=1e-9, **early)
            else:
                compute("llama", tmp_path / "both", sampling_error=0.9, **early)
            assert list((tmp_path / "both").rglob("partial*"))

    found = compute("llama", tmp_path / "both", texts=texts, chunk=10, on_batch=other)
    for layer, moment in whole.items():
        assert (found[layer].n_tokens, found[layer].n_texts) == (moment.n_tokens, moment.n_texts)
        assert (found[layer].matrix - moment.matrix).norm() < 1e-6 * moment.matrix.norm()
    assert not [*(tmp_path / "both").rglob("partial*"), *(tmp_path / "both").rglob("share*")]


def test_a_killed_pass_of_shares_goes_on_when_it_may_end_early(tmp_path: Path) -> None:
    texts, run = random_texts(100), list[int]()
    dying(4, tmp_path, texts=texts, chunk=10)
    assert len(list(tmp_path.rglob("share-*.safetensors"))) == 3
    early = compute("llama", tmp_path, texts=texts, chunk=10, sampling_error=1e-9, on_batch=run.append)
    assert early[2].n_texts == 100
    assert sum(run) == 70  # three shares of one chunk each were there
    assert not [*tmp_path.rglob("partial*"), *tmp_path.rglob("share*")]


def test_sums_that_are_not_finite_leave_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{LOCATE}.moment_sums.all_finite", lambda _: False)
    with pytest.raises(EditError, match="second moment of layer 0 is not finite"):
        compute("llama", tmp_path, chunk=10)
    assert not [*tmp_path.rglob("partial*"), *tmp_path.rglob("share*")]


def test_a_sampling_error_that_is_not_reached_takes_all_texts(tmp_path: Path) -> None:
    whole, asked = compute("llama", tmp_path / "whole"), compute("llama", tmp_path, sampling_error=1e-9)
    assert torch.equal(whole[2].matrix, asked[2].matrix)
    assert compute("llama", tmp_path)[2].n_texts == len(tiny_texts())


def test_editors_take_a_sampling_error_and_report_what_was_used() -> None:
    model, tokenizer, texts = tiny_model("llama"), tiny_tokenizer(), random_texts(1100)
    config = MEMITConfig(layers=(1, 2), context_templates=("{}",), steps=2, sampling_error=0.5)
    delta = MEMIT(config, texts).fit(model, tokenizer).edit(model, tokenizer, [request()])
    facts = delta.meta["second_moments"]
    assert sorted(facts) == ["1", "2"]
    assert all(fact["n_texts"] == 1000 and 0 < fact["relative_error"] <= 0.5 for fact in facts.values())
    assert all(fact["n_tokens"] > 1000 for fact in facts.values())
    with pytest.raises(EditError, match=r"MEMITConfig: sampling_error is -0\.1, expected a number above 0"):
        MEMITConfig(layers=(1,), sampling_error=-0.1)


def test_damaged_and_foreign_files_are_errors(tmp_path: Path) -> None:
    compute("llama", tmp_path)
    file = next(tmp_path.rglob("layer-0.safetensors"))
    good = file.read_bytes()
    file.write_bytes(good[: len(good) // 2])
    with pytest.raises(StorageError, match=r"layer-0\.safetensors could not be read.*Delete the file"):
        compute("llama", tmp_path)
    compute("gpt2", tmp_path / "other")
    foreign = next((tmp_path / "other").rglob("layer-0.safetensors"))
    file.write_bytes(foreign.read_bytes())
    with pytest.raises(StorageError, match=r"belongs to .* expected .*Delete the file"):
        compute("llama", tmp_path)
    file.write_bytes(file.with_name("layer-2.safetensors").read_bytes())
    with pytest.raises(StorageError, match=r"belongs to '.*, layer 2', expected '.*, layer 0'.*Delete the file"):
        compute("llama", tmp_path)


def test_a_changed_byte_is_an_error(tmp_path: Path) -> None:
    first = compute("llama", tmp_path)
    file = next(tmp_path.rglob("layer-0.safetensors"))
    good = file.read_bytes()
    data = 8 + int.from_bytes(good[:8], "little")
    for place in (data, data + 1001, len(good) - 1, good.index(b"n_texts"), good.index(b"matrix")):
        file.write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        with pytest.raises(
            StorageError, match=r"layer-0\.safetensors has SHA-256 .*damaged or changed.*Delete the file"
        ):
            compute("llama", tmp_path)
    file.write_bytes(good)
    assert torch.equal(compute("llama", tmp_path)[0].matrix, first[0].matrix)


def test_files_that_lack_something_are_errors(tmp_path: Path) -> None:
    files = MomentFiles(tmp_path, "key")
    matrix, facts = torch.eye(4), {"n_tokens": 9, "n_texts": 3, "relative_error": 0.1}
    write(files.path(1), {"matrix": matrix}, "key, layer 1", facts)
    assert torch.equal(files.load(1, 4).matrix, matrix)
    write(files.path(1), {"other": matrix}, "key, layer 1", facts)
    with pytest.raises(StorageError, match=r"holds \[.*'other'.*\], expected matrix as well\. Delete the file"):
        files.load(1, 4)
    write(files.path(1), {"matrix": matrix}, "key, layer 1", {"n_texts": 3})
    with pytest.raises(StorageError, match=r"expected n_tokens, relative_error as well\. Delete the file"):
        files.load(1, 4)
    save_file({"matrix": matrix}, files.path(1), metadata={"owner": "key, layer 1"})
    with pytest.raises(StorageError, match=r"expected None: it was damaged or changed.*Delete the file"):
        files.load(1, 4)
    write(files.path(1), {"matrix": matrix}, "key, layer 1", facts)
    with pytest.raises(StorageError, match=r"matrix of shape \(4, 4\), expected finite numbers of shape \(5, 5\)"):
        files.load(1, 5)


def test_a_damaged_checkpoint_is_an_error(tmp_path: Path) -> None:
    dying(3, tmp_path, batch_tokens=64)
    file = next(tmp_path.rglob("partial*"))
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(StorageError, match=r"partial-.*has SHA-256 .*Delete the file and run again"):
        compute("llama", tmp_path)


def test_texts_must_be_texts(tmp_path: Path) -> None:
    with pytest.raises(EditError, match="got 2 of which none"):
        compute("llama", tmp_path, texts=["", " "])
    with pytest.raises(EditError, match="one string, expected a sequence"):
        compute("llama", tmp_path, texts="Marie Curie")
