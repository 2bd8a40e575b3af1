"""Uncentred second moments C = E[k k^T] of the input of the MLP output projection, for all layers in one pass.

Texts are taken in random order, chunk by chunk. A chunk is tokenised, sorted by length and run in batches that stop at
the last key needed; after each chunk the texts so far are a fair sample, so the sampling error is known and the pass
may end. A pass that is killed continues from its last checkpoint, with any batch size; results are kept on disk and
found again by (model fingerprint, texts, dtype, length). Texts of several chunks are cut into shares; processes with
one cache that ask at the same time each take those that no other one is at.

Source: ROME section 3.1 (C = K K^T), MEMIT section 4.2; each text alone, from position 0, special tokens counted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.locks import file_lock
from seesaw_cf.base.retrying import Bar, no_bars
from seesaw_cf.editors.locate.moment_files import MomentFiles, SecondMoment, read, write
from seesaw_cf.editors.locate.moment_sets import describe_set, hash_texts, sets_folder
from seesaw_cf.editors.locate.solve import all_finite
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.hooks import frozen, hooked, stop_before, watch
from seesaw_cf.models.identity import fingerprint, libraries, tokenizer_hash
from seesaw_cf.models.packing import batches, pad
from seesaw_cf.models.tf32 import exact_products
from seesaw_cf.models.wide import adds_in_float32, float64_device, wide_product
from seesaw_cf.scoring.hf_scorer import context_length
from seesaw_cf.scoring.support import rope_limit

# Running sums of a pass over texts: products of keys, what the sampling error is known from, how far the pass is.

PARTS = 8
"""Random parts of the sample that are compared."""
_PROBES = 32
"""Random directions along which they are compared (the sampling error)."""
_BLOCKS = 6
"""Blocks of columns of a large matrix: 42 % of the products are above the diagonal; more blocks are narrow and slow."""
_LEAST = 256
"""Columns of a block at least."""
SHARES = 8
"""Shares of the texts at most: processes that can take part in a pass."""
_FACTS = ("tokens", "n_texts", "n_chunks", "n_rows")


@dataclass
class Sums:
    """Running sums of an unfinished pass; how far it is does not depend on the size of its batches."""

    layers: list[int]
    checkpoint: Path
    owner: str
    products: dict[int, Tensor]
    probed: dict[int, Tensor]  # (parts, d_ff, probes): sums of k k^T times random directions, for each part
    tokens: list[int]  # of each part
    n_texts: int = 0
    n_chunks: int = 0  # finished
    n_rows: int = 0  # done of the next chunk, longest first
    directions: dict[int, Tensor] = field(default_factory=dict)

    @classmethod
    def start(cls, parts: ModelParts, layers: list[int], share: Share) -> Sums:
        """Zero sums, or those of a checkpoint of the same texts in the same order."""
        sums = cls(list(layers), share.file("partial"), share.owner, {}, {}, [0] * PARTS)
        for layer in layers:
            size, device = parts.key_size(layer), parts.weight(layer).device
            place = float64_device(device)
            sums.products[layer] = torch.zeros(size, size, dtype=torch.float64, device=place)
            sums.probed[layer] = torch.zeros(PARTS, size, _PROBES, dtype=torch.float64, device=place)
            drawn = torch.randn(size, _PROBES, generator=torch.Generator().manual_seed(size))
            sums.directions[layer] = drawn.to(device, _wide(parts))
        if sums.checkpoint.exists():
            sums.take(sums.checkpoint, share.owner)
        return sums

    def take(self, file: Path, owner: str) -> None:
        """Add sums that were saved, of the same layers."""
        names = [f"{kind}{layer}" for kind in ("product", "probed") for layer in self.layers]
        tensors, facts = read(file, owner, names, _FACTS)
        for layer in self.layers:
            self.products[layer] += tensors[f"product{layer}"].to(self.products[layer].device)
            self.probed[layer] += tensors[f"probed{layer}"].to(self.probed[layer].device)
        self.tokens = [old + new for old, new in zip(self.tokens, facts["tokens"], strict=True)]
        for name in _FACTS[1:]:
            setattr(self, name, getattr(self, name) + facts[name])

    def add(self, layer: int, keys: Sequence[Tensor], counts: Sequence[Sequence[int]]) -> None:
        """Add tokens of a layer.

        Args:
            layer: Which one.
            keys: (tokens, d_ff) of each forward pass, those of part 0 first.
            counts: Tokens of each part, for each forward pass.
        """
        total = self.products[layer]
        for columns in _blocks(len(total)):
            rows = slice(columns.start, None)
            panel = wide_product(keys[0][:, rows].T, keys[0][:, columns])
            for more in keys[1:]:
                if adds_in_float32(more):
                    panel += wide_product(more[:, rows].T, more[:, columns])
                else:
                    panel.addmm_(more[:, rows].T, more[:, columns])
            total[rows, columns] += panel.to(total.device)
        for passed, sizes in zip(keys, counts, strict=True):
            wide = passed.to(self.directions[layer].dtype)
            along = wide @ self.directions[layer]
            for number, (part, probes) in enumerate(zip(wide.split(list(sizes)), along.split(list(sizes)))):
                self.probed[layer][number] += (part.T @ probes).to(total.device)

    def save(self, file: Path | None = None, dtype: torch.dtype = torch.float64) -> None:
        """Write the checkpoint, or another file with products of a type, whole or not at all."""
        tensors = {f"product{layer}": product.to(dtype).cpu() for layer, product in self.products.items()}
        tensors |= {f"probed{layer}": probed.cpu() for layer, probed in self.probed.items()}
        write(file or self.checkpoint, tensors, self.owner, {name: getattr(self, name) for name in _FACTS})

    def error(self, layer: int) -> float:
        """Standard error of the mean over tokens, relative: each part's residual, as of a ratio of two sums."""
        probed, used = self.probed[layer], sum(count > 0 for count in self.tokens)
        if used < 2:
            return math.nan
        total, counts = probed.sum(0), torch.tensor(self.tokens).to(probed)[:, None, None]
        residual = probed - total * (counts / sum(self.tokens))
        return float((used / (used - 1)) ** 0.5 * residual.norm() / total.norm())

    def worst(self) -> float:
        """The largest error of any layer; NaN when one is."""
        return max(map(self.error, self.layers), key=lambda error: (math.isnan(error), error))

    def moment(self, layer: int, parts: ModelParts) -> SecondMoment:
        """The moment of the texts so far."""
        total = sum(self.tokens)
        matrix = self.products[layer] / total
        if not all_finite(matrix):
            raise EditError(
                f"second moment of layer {layer} is not finite after {total} tokens: activations overflow in "
                f"{parts.stream_dtype}. Load the model in bfloat16 or float32."
            )
        return SecondMoment(_mirrored(matrix.to(_wide(parts))).cpu(), total, self.n_texts, self.error(layer))


@dataclass(frozen=True, slots=True)
class Share:
    """Texts that one process runs.

    Attributes:
        texts: In the order in which they are run.
        folder: Where its sums are kept.
        owner: What the sums depend on.
        title: What a progress bar says.
    """

    texts: Sequence[str]
    folder: Path
    owner: str
    title: str = "second moments"

    def file(self, kind: str) -> Path:
        """A file of this share."""
        return self.folder / f"{kind}-{hashlib.sha256(self.owner.encode()).hexdigest()[:12]}.safetensors"

    def forget(self, chunk: int) -> None:
        """Delete the files of these texts and of their shares."""
        for share in (self, *self.cut(chunk)):
            for file in (share.file("partial"), share.file("share")):
                for own in (file, file.with_suffix(".lock")):
                    with contextlib.suppress(OSError):  # Windows: while others have it open
                        own.unlink()

    def cut(self, chunk: int) -> list[Share]:
        """Cut into shares of whole chunks; none where there is one chunk."""
        chunks = -(-len(self.texts) // chunk)
        count = min(chunks, SHARES)
        ends = [chunks * number // count * chunk for number in range(count + 1)]
        cuts = [self.texts[start:end] for start, end in pairwise(ends)] if count > 1 else []
        names = (f", share {number} of {count}" for number in range(1, count + 1))
        return [
            Share(texts, self.folder, self.owner + name, self.title + name)
            for texts, name in zip(cuts, names, strict=False)
        ]


def _wide(parts: ModelParts) -> torch.dtype:
    """The type of sums within a batch, and of moments."""
    return torch.promote_types(parts.stream_dtype, torch.float32)


def _blocks(size: int) -> Iterator[slice]:
    """The blocks of columns of a (size, size) matrix."""
    width = max(_LEAST, -(-size // _BLOCKS))
    return (slice(start, min(start + width, size)) for start in range(0, size, width))


def _mirrored(matrix: Tensor) -> Tensor:
    """Fill in, in place, what is above the diagonal blocks."""
    for block in _blocks(len(matrix)):
        matrix[block, block.stop :] = matrix[block.stop :, block].T
    return matrix


_LOG = logging.getLogger(__name__)
_CPU_TOKENS = 1024
"""Tokens of a forward pass on a CPU: more do not run faster there, and are padded more."""


@dataclass(frozen=True, slots=True)
class MomentOptions:
    """Which texts are used, and how.

    Attributes:
        sample_size: Most texts used.
        max_length: Tokens kept of each text; None = the model's context length.
        seed: Of the draw, and of the order in which texts are run.
        batch_tokens: Tokens per forward pass.
        sampling_error: End the pass after the first chunk of texts at which `relative_error` of no layer is above
            this; None = use all texts. Such moments are kept apart from those of all texts, which are taken when they
            are there already; the sums stay, so that a later call with a lower value goes on from them.
        chunk: Texts that are sorted by length together, and between two looks at the sampling error: fewer end a pass
            sooner, more leave less padding.
        checkpoint_seconds: Time between checkpoints of an unfinished pass, which take as much disk as the sums.
        tokens: Texts are drawn until they have this many tokens; None = `sample_size` texts.
    """

    sample_size: int = 100_000
    max_length: int | None = None
    seed: int = 0
    batch_tokens: int = 4096
    sampling_error: float | None = None
    chunk: int = 1000
    checkpoint_seconds: float = 600.0
    tokens: int | None = None


def second_moments(
    parts: ModelParts,
    tokenizer: PreTrainedTokenizerBase,
    layers: Sequence[int],
    texts: Sequence[str],
    options: MomentOptions | None = None,
    cache: Path | None = None,
) -> dict[int, SecondMoment]:
    """Second moments of several layers, from the cache or from one pass over the texts.

    Args:
        parts: The model.
        tokenizer: Its tokenizer; texts are encoded with special tokens, as the published programs do.
        layers: The layers wanted.
        texts: The corpus; `options.sample_size` of them are drawn when there are more.
        options: Which of them, and how; the defaults when None.
        cache: Folder for results and checkpoints; None = `cache_folder()`.

    Returns:
        Layer -> moment.

    Raises:
        EditError: No usable text, or activations that are not finite.
        StorageError: A cached file is damaged or belongs to something else.
    """
    places = moment_files(parts, tokenizer, layers, texts, options, cache)
    return {layer: files.load(layer, parts.key_size(layer)) for layer, files in places.items()}


def moment_files(
    parts: ModelParts,
    tokenizer: PreTrainedTokenizerBase,
    layers: Sequence[int],
    texts: Sequence[str],
    options: MomentOptions | None = None,
    cache: Path | None = None,
) -> dict[int, MomentFiles]:
    """Where the second moments of several layers are, after a pass over the texts if they were not there.

    See `second_moments` for arguments and errors.

    Returns:
        Layer -> the files of a set that has it.
    """
    how = options or MomentOptions()
    length = how.max_length or context_length(parts.model)
    sample = _within(tokenizer, _sample(texts, how.sample_size, how.seed), length, how)
    facts = {
        "model": fingerprint(parts.model),
        "corpus": hash_texts(sorted(sample)),
        "sample_size": len(sample),
        "dtype": str(parts.stream_dtype),
        "max_length": length,
        "tokenizer": tokenizer_hash(tokenizer),
        "libraries": libraries(),
    }
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]
    order = f"{hash_texts(sample)[:12]}-{how.chunk}"
    part = f"{order}, within {how.sampling_error}"
    whole = MomentFiles((cache / "second_moments" if cache else sets_folder()) / key, key)
    early = MomentFiles(whole.folder / part.replace(", within ", "-within-"), f"{key}, {part}")
    usable = [whole] if how.sampling_error is None else [early, whole]

    def places() -> dict[int, MomentFiles]:
        return {layer: files for layer in layers for files in reversed(usable) if files.path(layer).exists()}

    def missing() -> list[int]:
        there = places()
        return [layer for layer in layers if layer not in there]

    alone = partial(file_lock, whole.folder.parent / f".{key}.lock", wait=True, required=False)
    if absent := missing():
        with alone():
            absent = missing()  # whoever held the lock may have made them
    if not absent:
        return places()
    every = Share(sample, whole.folder, f"{key}, {order}, layers {'-'.join(map(str, absent))}")
    shares, early_end = every.cut(how.chunk), how.sampling_error is not None
    run = partial(_run_share, parts, tokenizer, absent, length, how)
    for wait in (False, True):  # those that others are at come last
        for share in () if early_end or every.file("partial").exists() else shares:
            with file_lock(share.file("share").with_suffix(".lock"), wait=wait, required=False) as mine:
                if mine and missing():
                    run(share)
    with alone():
        if wanted := [layer for layer in missing() if layer in absent]:
            sums = Sums.start(parts, absent, every)
            # A checkpoint of the whole pass has counted texts of shares: it goes on by itself.
            for share in shares if not sums.n_texts else ():
                if not early_end:
                    run(share)
                if not share.file("share").exists():
                    break
                sums.take(share.file("share"), share.owner)
            finished = _accumulate(parts, tokenizer, every, length, how, sums)
            target = whole if finished else early
            describe_set(target.folder, facts, "" if finished else part, parts.model, texts)
            try:
                for layer in wanted:
                    target.save(layer, sums.moment(layer, parts))
            except EditError:  # not finite: nothing can go on from these sums
                every.forget(how.chunk)
                raise
            if finished:
                every.forget(how.chunk)
    return places()


def _run_share(
    parts: ModelParts,
    tokenizer: PreTrainedTokenizerBase,
    layers: list[int],
    length: int | None,
    how: MomentOptions,
    share: Share,
) -> None:
    """Write the sums of a share where they are not there, in the type of moments: the same whoever runs it."""
    if not share.file("share").exists():
        sums = Sums.start(parts, layers, share)
        _accumulate(parts, tokenizer, share, length, how, sums)
        sums.save(share.file("share"), _wide(parts))
        sums.checkpoint.unlink(missing_ok=True)


def _sample(texts: Sequence[str], size: int, seed: int) -> list[str]:
    """The texts to use, in the order in which they are used."""
    if isinstance(texts, str):
        raise EditError("the corpus is one string, expected a sequence of texts. Pass corpus=[text, ...].")
    candidates = [text for text in texts if text.strip()]
    if not candidates:
        raise EditError(
            f"second moments need texts, got {len(texts)} of which none has visible characters. Pass corpus=[...]."
        )
    return random.Random(seed).sample(candidates, min(size, len(candidates)))


def _within(tokenizer: PreTrainedTokenizerBase, sample: list[str], length: int | None, how: MomentOptions) -> list[str]:
    """The first texts that together have `how.tokens` tokens; all when they have fewer, or no number is given."""
    used = 0
    for start in range(0, len(sample) if how.tokens is not None else 0, how.chunk):
        encoded = tokenizer(sample[start : start + how.chunk], add_special_tokens=True, verbose=False)["input_ids"]
        for number, ids in enumerate(encoded, start + 1):
            used += len(ids[:length])
            if used >= (how.tokens or 0):
                return sample[:number]
    return sample


def _rows(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], length: int | None) -> list[tuple[int, list[int]]]:
    """The part and the tokens of each text of a chunk, longest first."""
    encoded = tokenizer(list(texts), add_special_tokens=True, verbose=False)["input_ids"]
    rows = [(number % PARTS, list(ids)[:length]) for number, ids in enumerate(encoded)]
    return sorted((row for row in rows if row[1]), key=lambda row: -len(row[1]))


def _accumulate(
    parts: ModelParts,
    tokenizer: PreTrainedTokenizerBase,
    share: Share,
    length: int | None,
    how: MomentOptions,
    sums: Sums,
) -> bool:
    """Run the texts that are not in the sums yet; False when the error was small enough before the last chunk."""
    saved = time.monotonic()
    bar = Bar[object](total=len(share.texts), initial=sums.n_texts, desc=share.title, unit="text", disable=no_bars())
    with exact_products(parts.model), frozen(parts.model), torch.no_grad(), bar:
        for start in range(sums.n_chunks * how.chunk, len(share.texts), how.chunk):
            if how.sampling_error is not None and not sums.n_rows and sums.worst() <= how.sampling_error:
                sums.save()
                return False
            rows = _rows(tokenizer, share.texts[start : start + how.chunk], length)[sums.n_rows :]
            for group in batches([len(ids) for _, ids in rows], how.batch_tokens, rope_limit(parts.model)):
                _add(parts, [rows[index] for index in group], sums, how.batch_tokens)
                bar.update(len(group))
                if time.monotonic() - saved >= how.checkpoint_seconds:
                    sums.save()
                    saved = time.monotonic()
            sums.n_chunks, sums.n_rows = sums.n_chunks + 1, 0
            error, tokens = sums.worst(), sum(sums.tokens)
            bar.set_postfix_str(f"sampling error {error:.2%}")
            _LOG.info(
                "%s: %d of %d texts, %d tokens, sampling error %.2g",
                share.title,
                sums.n_texts,
                len(share.texts),
                tokens,
                error,
            )
    return True


def _add(parts: ModelParts, rows: Sequence[tuple[int, list[int]]], sums: Sums, batch_tokens: int) -> None:
    """Add (part, tokens) of at most `batch_tokens` tokens with padding."""
    most = min(batch_tokens, _CPU_TOKENS) if parts.model.device.type == "cpu" else batch_tokens
    groups = [sorted(rows[index] for index in group) for group in batches([len(ids) for _, ids in rows], most)]
    passes = [_keys(parts, [ids for _, ids in group], sums.layers) for group in groups]
    counts = [[sum(len(ids) for part, ids in group if part == number) for number in range(PARTS)] for group in groups]
    for layer in sums.layers:
        sums.add(layer, [keys.pop(layer) for keys in passes], counts)
    sums.tokens = [old + sum(new) for old, new in zip(sums.tokens, zip(*counts))]
    sums.n_texts += len(rows)
    sums.n_rows += len(rows)


def _keys(parts: ModelParts, rows: Sequence[Sequence[int]], layers: Sequence[int]) -> dict[int, Tensor]:
    """Layer -> keys of every token, (tokens, d_ff), row after row.

    The model gets no mask: padding is on the right, where no token of a causal model looks.
    """
    ids, _ = pad(rows, parts.model.device)
    width = ids.shape[1]
    places = torch.cat([torch.arange(len(row)) + number * width for number, row in enumerate(rows)])
    seen: dict[str, Tensor] = {}
    modules = {str(layer): parts.mlp_out(layer) for layer in layers}
    with hooked([*watch(seen, modules), stop_before(modules[str(max(layers))])]):
        parts.model(input_ids=ids, use_cache=False)
    by_layer = {}
    for layer in layers:
        keys = seen[str(layer)].flatten(0, -2)
        keys = keys if len(keys) == len(places) else keys.index_select(0, places.to(keys.device))
        by_layer[layer] = keys if adds_in_float32(keys) else keys.to(torch.promote_types(keys.dtype, torch.float32))
    return by_layer
