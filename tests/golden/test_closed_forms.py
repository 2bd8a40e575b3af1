"""Every method against the formulas of its paper, computed apart in `tests.golden.plain` and numpy, in float64.

What shipped golden arrays would show, without arrays: nothing here comes from a run of the code that is tested. Limits
are those of float64: systems of condition 1e7 leave 1e-9, of which `CLOSE` is a thousand times as much, and the
smallest change of a formula or a setting moves the results by 1e-4 and more.
"""

import functools
from typing import Any

import numpy as np
import pytest
import torch

from seesaw_cf.editors import load_editor
from seesaw_cf.editors.ft import FT, FTConfig
from seesaw_cf.editors.mend.factors import Batch, divergence, outer_loss
from seesaw_cf.editors.mend.network import GradientTransform, Matrix, NetworkShape
from seesaw_cf.models.hooks import frozen
from seesaw_cf.models.weights import WeightDelta, applied
from tests.fakes import REQUESTS, TEMPLATES, tiny_model, tiny_texts, tiny_tokenizer
from tests.golden.plain import Array, Plain, adam

CLOSE = 1e-6
KINDS = ("gpt2", "gptj")
"""Weights stored (in, out) and (out, in); both norms compute in float64."""
SHARED: dict[str, Any] = {
    "steps": 4,
    "learning_rate": 0.2,
    "weight_decay": 0.5,
    "kl_factor": 0.5,
    "clamp": 1.5,
    "context_templates": TEMPLATES,
}


@functools.cache
def plain(kind: str) -> Plain:
    """Larger weights than at the start of training: their answers differ, so that every term of a loss counts."""
    model: Any = tiny_model(kind, dtype=torch.float64, initializer_range=0.3)
    return Plain(model.requires_grad_(False), tiny_tokenizer(), TEMPLATES)


@functools.cache
def moment(kind: str, layer: int) -> Array:
    return plain(kind).moment(tiny_texts(), layer)


def edited(kind: str, name: str, requests: Any = REQUESTS, **settings: Any) -> tuple[Any, WeightDelta]:
    """The editor's config and what it gives."""
    cls, own = load_editor(name), plain(kind)
    editor = cls(cls.config_class(**{**SHARED, **settings}), tiny_texts()).fit(own.model, own.tokenizer)
    return editor.config, editor.edit(own.model, own.tokenizer, requests)


def near(delta: WeightDelta, name: str, wanted: Array) -> None:
    found = delta.dense(name).numpy()
    assert found.shape == wanted.shape
    assert np.linalg.norm(found - wanted) < CLOSE * np.linalg.norm(wanted)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stops", [False, True])
def test_values_are_those_of_the_loss_and_adam(kind: str, stops: bool) -> None:
    """v* of ROME, which is W k after the edit, with every term of the loss, the ball, and the stop."""
    own, asked = plain(kind), REQUESTS[1]
    config, delta = edited(kind, "rome", [asked], layers=(1,), steps=8, clamp=0.8)
    if stops:
        logged = edited(kind, "rome", [asked], layers=(1,), steps=5, clamp=0.8)[1].meta["diagnostics"][0]["final_loss"]
        config, delta = edited(kind, "rome", [asked], layers=(1,), steps=8, clamp=0.8, stop_below=logged + 1e-6)
        assert delta.meta["diagnostics"][0]["steps"] == 5
    initial, shift = own.shift(asked, 1, config, "mlp")
    assert np.linalg.norm(shift) > 0.1 * np.linalg.norm(initial), "or nothing is tested"
    with applied(own.model, delta):
        value = own.seen(own.texts(asked)[0], 1)[1]
    assert np.linalg.norm(value - initial - shift) < CLOSE * np.linalg.norm(shift)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("variant", ["published", "consistent_keys", "bare_keys", "without C"])
def test_rome_is_its_rank_one_formula(kind: str, variant: str) -> None:
    own, asked = plain(kind), REQUESTS[0]
    settings = {variant: True} if "_" in variant else {"use_moments": variant == "published"}
    config, delta = edited(kind, "rome", [asked], layers=(1,), **settings)
    seen = [own.seen(text, 1) for text in own.texts(asked)]
    mean_key, mean_value = (np.mean([row[k] for row in seen], axis=0) for k in (0, 1))
    key, value = seen[0][:2]
    initial, shift = own.shift(asked, 1, config, "mlp")
    if variant == "bare_keys":
        mean_key = key
    if variant == "consistent_keys":
        key, value = mean_key, mean_value
    along = mean_key if variant == "without C" else np.linalg.solve(moment(kind, 1), mean_key)
    change = np.outer(along, (initial + shift - value) / (along @ key))
    near(delta, own.name(1), own.stored(1, change))


def spread(kind: str, config: Any, solve: Any, requests: Any = REQUESTS) -> dict[str, Array]:
    """MEMIT's Algorithm 1: an equal share of what is left at each layer, no longer than `max_change`, and read anew."""
    own, top = plain(kind), max(config.layers)
    wanted = np.stack([sum(own.shift(asked, top, config, "stream")) for asked in requests], 1)
    changes: dict[str, Array] = {}
    for number, layer in enumerate(config.layers):
        with own.changed(changes):
            keys = np.stack([own.key(asked, layer, 0.5) for asked in requests], 1)
            now = np.stack([own.seen(own.texts(asked)[0], top)[2] for asked in requests], 1)
        share = (wanted - now) / (len(config.layers) - number)
        change, weight = own.stored(layer, solve(layer, keys) @ share.T), own.model.get_parameter(own.name(layer))
        most = np.inf if config.max_change is None else config.max_change * float(weight.detach().norm())
        changes[own.name(layer)] = change * min(1.0, most / np.linalg.norm(change))
    return changes


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("share", [None, 0.5])
def test_memit_solves_its_normal_equations(kind: str, share: float | None) -> None:
    """Also where the first layer may change by half of what it would: the second one makes up for it."""
    config, delta = edited(kind, "memit", layers=(1, 2), moment_weight=3.0)
    if share is not None:
        first, second = (plain(kind).name(layer) for layer in (1, 2))
        free, weights = delta.norms(), plain(kind).model.get_parameter(first).detach()
        most = share * free[first] / float(weights.norm())
        config, delta = edited(kind, "memit", layers=(1, 2), moment_weight=3.0, max_change=most)
        assert delta.norms()[first] == pytest.approx(share * free[first])
        assert delta.norms()[second] != pytest.approx(free[second], rel=0.01)

    def solve(layer: int, keys: Array) -> Array:
        found: Array = np.linalg.inv(3.0 * moment(kind, layer) + keys @ keys.T) @ keys
        return found

    for name, change in spread(kind, config, solve).items():
        near(delta, name, change)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "for_one"), [(3, False), (1, False), (1, True)])
def test_emmet_meets_its_constraints_up_to_slack(kind: str, n: int, for_one: bool) -> None:
    """Norm weight and slack as large as what they are added to, so that 5 % of either shows."""
    settings: dict[str, Any] = {"moment_weight": 2.0, "norm_weight": 0.01, "slack": 5.0, "slack_for_one": for_one}
    config, delta = edited(kind, "emmet", REQUESTS[:n], layers=(1,), **settings)

    def solve(layer: int, keys: Array) -> Array:
        inverse = np.linalg.inv(2.0 * moment(kind, layer) + 0.01 * np.eye(len(keys)))
        slack = 5.0 if n > 1 or for_one else 0.0
        found: Array = inverse @ keys @ np.linalg.inv(keys.T @ inverse @ keys + slack * np.eye(n))
        return found

    for name, change in spread(kind, config, solve, REQUESTS[:n]).items():
        near(delta, name, change)


@pytest.mark.parametrize("kind", KINDS)
def test_alphaedit_writes_below_its_threshold_and_spares_earlier_keys(kind: str) -> None:
    """The threshold lies 2 % below an eigenvalue: 5 % more would take in another direction."""
    own, (first, *later) = plain(kind), REQUESTS
    values, vectors = np.linalg.eigh(moment(kind, 1))
    place = next(k for k in range(30, 48) if values[k - 1] < values[k] / 1.02)
    threshold = float(values[place] / 1.02)
    cls = load_editor("alphaedit")
    config = cls.config_class(layers=(1,), null_threshold=threshold, norm_weight=0.3, **SHARED)
    editor = cls(config, tiny_texts()).fit(own.model, own.tokenizer)
    editor = editor.remember(own.model, own.tokenizer, [first])
    delta = editor.edit(own.model, own.tokenizer, later)
    projector = vectors[:, :place] @ vectors[:, :place].T
    past = own.key(first, 1, 0.5)[:, None]

    def solve(layer: int, keys: Array) -> Array:
        system = projector @ (keys @ keys.T + past @ past.T) + 0.3 * np.eye(len(keys))
        found: Array = np.linalg.solve(system, projector @ keys)
        return found

    for name, change in spread(kind, config, solve, later).items():
        near(delta, name, change)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("objective", ["last_token", "teacher_forced"])
def test_ft_is_adam_in_a_box(kind: str, objective: Any) -> None:
    """Weight and bias of one projection, with the L2 term, and the box around the old values after every step."""
    own = plain(kind)
    limits: dict[str, Any] = {"learning_rate": 1e-2, "norm_constraint": 2.5e-2, "weight_decay": 0.3, "steps": 5}
    config = FTConfig(layers=(1,), objective=objective, **limits)
    delta = FT(config).edit(own.model, own.tokenizer, REQUESTS)
    names = [own.name(1), own.name(1).replace("weight", "bias")]
    old = [own.model.get_parameter(name).detach().clone() for name in names]

    def loss(values: Any) -> torch.Tensor:
        rows = []
        for asked in REQUESTS:
            ids, whole = own.ids(asked.text), own.ids(f"{asked.text} {asked.target_new.label}")
            fed = ids if objective == "last_token" else whole[:-1]
            given = dict(zip(names, values, strict=True))
            logits = torch.func.functional_call(own.model, given, (torch.tensor([fed]),)).logits[0].log_softmax(-1)
            places = range(len(ids) - 1, len(whole) - 1)
            at = [len(ids) - 1] * len(places) if objective == "last_token" else list(places)
            rows.append(-torch.stack([logits[k, whole[p + 1]] for k, p in zip(at, places, strict=True)]).mean())
        return torch.stack(rows).mean()

    def inside(values: list[torch.Tensor]) -> list[torch.Tensor]:
        return [value.clamp(start - 2.5e-2, start + 2.5e-2) for value, start in zip(values, old, strict=True)]

    new = adam(old, loss, config, inside, steps_at_end=True, decay=0.3)
    assert set(delta.updates) == set(names)
    for name, value, start in zip(names, new, old, strict=True):
        near(delta, name, value - start.numpy())


def test_mend_transforms_factors_as_in_its_paper() -> None:
    """Normalised input and gradient through two low-rank layers that each add clamp(scale * (U V x + b) + shift)."""
    matrix = Matrix("w", 6, 4)
    transform = GradientTransform(
        matrix, NetworkShape((matrix,), rank=3, hidden=1), 2, torch.Generator().manual_seed(0)
    )
    transform = transform.double()
    rng = np.random.default_rng(0)
    state = {name: rng.normal(size=value.shape) for name, value in transform.state_dict().items()}
    for name in ("u_std", "v_std"):
        state[name] = np.abs(state[name]) + 0.5
    transform.load_state_dict({name: torch.tensor(value) for name, value in state.items()})
    u, v = rng.normal(size=(5, 6)), rng.normal(size=(5, 4))
    x = np.concatenate(
        [(u - state["u_mean"]) / (state["u_std"] + 1e-7), (v - state["v_mean"]) / (state["v_std"] + 1e-7)], 1
    )
    for layer in ("mlp.layers.0.", "mlp.layers.1."):
        inner = x @ state[f"{layer}v"].T @ state[f"{layer}u"].T + state[f"{layer}bias"]
        x = x + np.maximum(inner * state[f"{layer}mode_scale.weight"][1] + state[f"{layer}mode_shift.weight"][1], 0)
    with torch.no_grad():
        new_u, new_v = transform(torch.tensor(u), torch.tensor(v), 1)
    np.testing.assert_allclose(new_u, x[:, :6], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(new_v, x[:, 6:], rtol=1e-10, atol=1e-12)


def test_mend_running_statistics_are_mean_and_sample_deviation() -> None:
    matrix = Matrix("w", 6, 4)
    transform = GradientTransform(
        matrix, NetworkShape((matrix,), rank=3, hidden=1), 1, torch.Generator().manual_seed(0)
    )
    rng = np.random.default_rng(1)
    u, v = rng.normal(size=(9, 6)), rng.normal(size=(9, 4))
    for part in (slice(0, 2), slice(2, 9)):
        transform.double().observe(torch.tensor(u[part]), torch.tensor(v[part]))
    for letter, rows in (("u", u), ("v", v)):
        np.testing.assert_allclose(getattr(transform, f"{letter}_mean"), rows.mean(0), rtol=1e-10)
        np.testing.assert_allclose(getattr(transform, f"{letter}_std"), rows.std(0, ddof=1), rtol=1e-10)


def test_mend_losses_are_nll_and_kl_from_the_base() -> None:
    """Of a model whose weight is really written; means over all target tokens, and over all tokens of other texts."""
    own, rng = plain("gptj"), np.random.default_rng(0)
    name = own.name(2)
    outputs, inputs = own.model.get_parameter(name).shape
    u, v = rng.normal(size=(1, 2, inputs)), 0.1 * rng.normal(size=(1, 2, outputs))
    outer, other = own.ids("Ada Lovelace was born in Kraków"), own.ids("Cities too. Marie Curie saw London")
    labels = [-100] * (len(outer) - 2) + outer[-2:]
    batches = [
        Batch(torch.tensor([ids]), torch.ones(1, len(ids)), torch.tensor([known]))
        for ids, known in ((outer, labels), (other, [-100] * len(other)))
    ]
    changes = {name: (torch.tensor(u), torch.tensor(v))}
    with frozen(own.model):
        nll = outer_loss(changes, own.model, batches[0], each_row=False)
        moved = divergence(changes, own.model, batches[1], each_row=False)
    with torch.no_grad():
        before = own.logits(other).log_softmax(-1).numpy()
        with own.changed({name: v[0].T @ u[0]}):
            after, edited_p = own.logits(other).log_softmax(-1).numpy(), own.logits(outer).log_softmax(-1).numpy()
    wanted = -np.mean([edited_p[-3, outer[-2]], edited_p[-2, outer[-1]]])
    assert float(nll) == pytest.approx(wanted, rel=1e-10)
    assert float(moved) == pytest.approx((np.exp(before) * (before - after)).sum(1).mean(), rel=1e-8)
    assert float(moved) > 1e-3, "or nothing is tested"
