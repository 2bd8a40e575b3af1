"""MEND's hyper-network: turns the gradient of an edit into a better one, token by token.

One `GradientTransform` for each distinct weight shape, with a separate scale and shift for each matrix of that shape.
Names inside the state dict are those of the published checkpoints.

Source: Mitchell et al. 2022, arXiv 2110.11309, section 3; constants as in the mend repository (nn.py, algs/mend.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.serialization import get_unsafe_globals_in_checkpoint, safe_globals
from transformers.pytorch_utils import Conv1D

from seesaw_cf.base.errors import EditError, RecordError, StorageError
from seesaw_cf.editors.tensor_files import load_tensors, save_tensors
from seesaw_cf.models.editor import Model
from seesaw_cf.models.tensors import in_float64

Factors = Mapping[str, tuple[Tensor, Tensor]]
"""Parameter name -> (inputs (B, T, in), gradients with respect to outputs (B, T, out)); zero rows are no tokens."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """One edited weight matrix, stored either way round."""

    name: str
    inputs: int
    outputs: int

    @property
    def shape_key(self) -> str:
        """Which transform serves it; written as the published checkpoints write it."""
        return f"({self.inputs}, {self.outputs})"


@dataclass(frozen=True, slots=True)
class NetworkShape:
    """What decides the shapes of a network's weights.

    Attributes:
        matrices: The edited matrices; their order numbers the modes of each shape.
        rank: Rank of each layer's matrix, at most its size.
        hidden: Hidden layers; there are hidden + 1 layers in all.
    """

    matrices: tuple[Matrix, ...]
    rank: int = 1920
    hidden: int = 1


class _Layer(nn.Module):
    """x + max(0, scale * (u v x + bias) + shift), scale and shift by mode; the identity at the start."""

    def __init__(self, size: int, rank: int, modes: int, generator: torch.Generator) -> None:
        super().__init__()
        rank = min(rank, size)
        self.u = nn.Parameter(torch.zeros(size, rank))
        self.v = nn.Parameter(torch.randn(rank, size, generator=generator))
        self.bias = nn.Parameter(torch.zeros(size))
        self.mode_shift = nn.Embedding.from_pretrained(torch.zeros(modes, size), freeze=False)
        self.mode_scale = nn.Embedding.from_pretrained(torch.ones(modes, size), freeze=False)

    def forward(self, x: Tensor, mode: int) -> Tensor:
        inner = x @ self.v.T @ self.u.T + self.bias
        # clamp and not relu: its gradient at exactly 0, where training starts, is 1
        gated: Tensor = (inner * self.mode_scale.weight[mode] + self.mode_shift.weight[mode]).clamp(min=0)
        return x + gated


class GradientTransform(nn.Module):
    """Normalise (input, gradient) of each token by running statistics; send both through one MLP.

    Attributes:
        u_mean, u_std, u_s: Mean, standard deviation and sum of squared deviations of inputs, (in,).
        v_mean, v_std, v_s: The same of gradients, (out,).
        k: Number of tokens seen, (1,).
    """

    k: Tensor

    def __init__(self, matrix: Matrix, shape: NetworkShape, modes: int, generator: torch.Generator) -> None:
        super().__init__()
        for letter, size in (("u", matrix.inputs), ("v", matrix.outputs)):
            for what in ("mean", "std", "s"):
                self.register_buffer(f"{letter}_{what}", torch.zeros(size))
        self.register_buffer("k", torch.zeros(1))
        size = matrix.inputs + matrix.outputs
        layers = [_Layer(size, shape.rank, modes, generator) for _ in range(shape.hidden + 1)]
        self.mlp = nn.ModuleDict({"layers": nn.ModuleList(layers)})  # named as in published files

    def forward(self, u: Tensor, v: Tensor, mode: int) -> tuple[Tensor, Tensor]:
        """Transform N tokens: (N, in) and (N, out) of the same kind as given."""
        pairs = (("u", u), ("v", v))
        normal = [(x - self.get_buffer(f"{s}_mean")) / (self.get_buffer(f"{s}_std") + 1e-7) for s, x in pairs]
        rows = torch.cat(normal, -1)
        for layer in self.mlp["layers"]:  # type: ignore[attr-defined]
            rows = layer(rows, mode)
        new_u, new_v = rows.split([u.shape[-1], v.shape[-1]], -1)
        return new_u, new_v

    @torch.no_grad()
    def observe(self, u: Tensor, v: Tensor) -> None:
        """Add N tokens to the running statistics, all at once (Chan et al. 1979; equals one by one to rounding)."""
        n, old = len(u), self.k.clone()
        if n == 0:
            return
        self.k += n
        before, every = in_float64(old), in_float64(self.k)
        for letter, rows in (("u", in_float64(u)), ("v", in_float64(v))):
            mean, squares, std = (self.get_buffer(f"{letter}_{what}") for what in ("mean", "s", "std"))
            shift = rows.mean(0) - in_float64(mean)
            more = (rows - rows.mean(0)).square().sum(0) + shift.square() * before * n / every
            squares.copy_(in_float64(squares) + more)
            mean.copy_(in_float64(mean) + shift * n / every)
            std.copy_((squares / (self.k - 1).clamp(min=1)).sqrt())


class MENDNetwork(nn.Module):
    """All transforms of one model, and one learned step size for each edited matrix.

    Attributes:
        shape: What it was made for.
        mend: Shape key -> transform.
        edit_lrs: (matrices,), signed: a trained network may step against the sign it is given.
    """

    def __init__(self, shape: NetworkShape, edit_lr: float = 1e-4, seed: int = 0) -> None:
        """Make an untrained network: the identity on normalised gradients.

        Args:
            shape: Matrices, rank, hidden layers.
            edit_lr: First value of every step size.
            seed: For the random factors.
        """
        super().__init__()
        self.shape = shape
        generator = torch.Generator().manual_seed(seed)
        groups: dict[str, list[Matrix]] = {}
        for matrix in shape.matrices:
            groups.setdefault(matrix.shape_key, []).append(matrix)
        self._modes = {matrix.name: mode for group in groups.values() for mode, matrix in enumerate(group)}
        self.mend = nn.ModuleDict(
            {key: GradientTransform(group[0], shape, len(group), generator) for key, group in groups.items()}
        )
        self.edit_lrs = nn.Parameter(torch.full((len(shape.matrices),), edit_lr))

    def forward(self, factors: Factors, *, observe: bool = False) -> dict[str, tuple[Tensor, Tensor]]:
        """Transform the factors of edits; the step size is multiplied into the second.

        The change of a matrix is the sum over tokens of the outer products of its two answers, added to the weight.

        Args:
            factors: See `Factors`.
            observe: Add the tokens to the running statistics first, matrix by matrix (training).

        Returns:
            Of the same shapes, zero without a token, in the network's dtype.

        Raises:
            EditError: Fewer than two tokens were ever observed: there is nothing to normalise by.
        """
        changes = {}
        for matrix, step in zip(self.shape.matrices, self.edit_lrs, strict=True):
            u, v, mask = _tokens(*factors[matrix.name], step.device)
            transform = cast(GradientTransform, self.mend[matrix.shape_key])
            if observe:
                transform.observe(u[mask], v[mask])
            if float(transform.k) < 2:
                raise EditError(
                    f"MEND: the running statistics of {matrix.shape_key} come from {int(transform.k)} token(s), "
                    "expected at least 2. Train the network, or load a trained one."
                )
            new_u, new_v = transform(u[mask].to(step.dtype), v[mask].to(step.dtype), self._modes[matrix.name])
            changes[matrix.name] = (_spread(new_u, mask), _spread(step * new_v, mask))
        return changes

    def check(self, model: nn.Module, where: str) -> None:
        """Refuse a model with matrices other than those this network was made for.

        Raises:
            EditError: A matrix is missing or has another shape.
        """
        shapes = {name: sorted(parameter.shape) for name, parameter in model.named_parameters()}
        known = self.shape.matrices
        wrong = [f"{m.name} {m.shape_key}" for m in known if shapes.get(m.name) != sorted((m.inputs, m.outputs))]
        if wrong:
            raise EditError(
                f"{where}: this MEND network was trained for another model, which has {', '.join(wrong)}. Load the "
                "network of this model, or train one with fit."
            )


def _tokens(u: Tensor, v: Tensor, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """Return the factors in float32 at least, and which (B, T) are tokens: neither part all zero."""
    wide = torch.promote_types(u.dtype, torch.float32)
    u, v = u.to(device, wide), v.to(device, wide)
    return u, v, (u != 0).any(-1) & (v != 0).any(-1)


def _spread(rows: Tensor, mask: Tensor) -> Tensor:
    """Put rows (N, size) back to their places in (B, T, size), zero elsewhere."""
    return rows.new_zeros(*mask.shape, rows.shape[-1]).masked_scatter(mask[..., None], rows)


def matrices_of(names: Sequence[str], model: nn.Module) -> tuple[Matrix, ...]:
    """Return the named weights of a model as matrices."""
    shapes = {name: model.get_parameter(name).shape for name in names}
    return tuple(Matrix(name, *(shape if inputs_first(model, name) else shape[::-1])) for name, shape in shapes.items())


def inputs_first(model: nn.Module, name: str) -> bool:
    """Return whether a weight is stored as (in, out), as in Conv1D modules, and not as (out, in)."""
    return isinstance(model.get_submodule(name.removesuffix(".weight")), Conv1D)


def save_network(network: MENDNetwork, file: Path, facts: Mapping[str, object] | None = None) -> None:
    """Write a network and JSON-able facts, such as the training settings, into one safetensors file.

    Raises:
        StorageError: The file cannot be written.
    """
    save_tensors(file, network.state_dict(), {**asdict(network.shape), "facts": facts or {}})


def load_network(file: Path) -> MENDNetwork:
    """Read a network back, bit for bit, in eval mode.

    Raises:
        StorageError: No such file, a damaged one, or a file of something else.
    """
    tensors, facts = load_tensors(file)
    try:
        matrices = tuple(Matrix(**matrix) for matrix in facts["matrices"])
        network = MENDNetwork(NetworkShape(matrices, facts["rank"], facts["hidden"]))
        network.load_state_dict(tensors)
    except (KeyError, TypeError, RuntimeError) as error:
        raise StorageError(f"{file}: no MEND network ({error}). Check `weights`, or train one.") from error
    return network.eval()


# Networks as their authors saved them: a pickle of {"model": state dict, "opt": ..., ...}, with the configuration of
# the language model in it. Only tensors and plain containers are read; every other object becomes an empty stand-in.
# Source: Mitchell et al. 2022, the mend repository (trainer.py, algs/mend.py: `state_dict`).

_LAYER = re.compile(r"mend\..+\.mlp\.layers\.(\d+)\.u")


class _StandIn:
    """What every class and function of a file is replaced by: it takes anything and does nothing."""

    def __init__(self, *_: object, **__: object) -> None:
        pass


def load_published(file: Path, names: Sequence[str], model: Model) -> MENDNetwork:
    """Read a network that the authors' program or EasyEdit saved, in eval mode.

    Args:
        file: The file. Nothing in it is imported or called.
        names: The edited weights in the order of its training: step sizes have no other names.
        model: The language model, for the sizes of these weights.

    Raises:
        StorageError: There is no file.
        RecordError: It holds something else, or was trained for other weights.
    """
    if not file.exists():
        raise StorageError(f"{file}: no such file. Check `weights`.")
    try:
        stand_ins: list[Any] = [(_StandIn, name) for name in get_unsafe_globals_in_checkpoint(str(file))]
        with safe_globals(stand_ins):
            archive = torch.load(file, map_location="cpu", weights_only=True)
        tensors = {re.sub(r"^gtn\.", "mend.", name): value for name, value in archive.get("model", archive).items()}
        state = {name: tensors[name].float() for name in tensors if name == "edit_lrs" or name.startswith("mend.")}
        ranks = {match[1]: state[match[0]].shape[1] for match in map(_LAYER.fullmatch, state) if match}
        network = MENDNetwork(NetworkShape(matrices_of(names, model), max(ranks.values()), len(ranks) - 1))
        network.load_state_dict(state)
    except Exception as error:  # of a damaged file anything may come
        raise RecordError(
            f"{file}: no MEND network of {', '.join(names)} in the format of torch.save since 1.6, or it is "
            f"damaged or holds commands ({str(error)[:200]}). Download it again from its authors, or set `layers` or "
            "`matrices` to the weights that it was trained for, in their order."
        ) from error
    return network.eval()
