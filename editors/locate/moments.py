"""Uncentred second moments C = E[k k^T] of the input of the MLP output projection, for all layers in one pass.

Texts are taken in random order, chunk by chunk. A chunk is tokenised, sorted by length and run in batches that stop at
the last key needed; after each chunk the texts so far are a fair sample, so the sampling error is known and the pass
may end. A pass that is killed continues from its last checkpoint, with any batch size; results are kept on disk and
found again by (model fingerprint, texts, dtype, length). Texts of several chunks are cut into shares; processes with
one cache that ask at the same time each take those that no other one is at.

Source: ROME section 3.1 (C = K K^T), MEMIT section 4.2; each text alone, from position 0, special tokens counted.
"""

from __future__ import annotations

import hashlib
import json
import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from seesaw_cf.base.errors import EditError
from seesaw_cf.base.locks import file_lock
from seesaw_cf.base.retrying import Bar, no_bars
from seesaw_cf.base.types import JsonObject
from seesaw_cf.editors.locate.moment_files import MomentFiles, SecondMoment
from seesaw_cf.editors.locate.moment_sets import describe_set, hash_texts, sets_folder
from seesaw_cf.editors.locate.moment_sums import PARTS, Sums, TextShare, sum_dtype
from seesaw_cf.models.architectures import ModelParts
from seesaw_cf.models.hooks import frozen, hooked, stop_before, watch
from seesaw_cf.models.identity import fingerprint, libraries, tokenizer_hash
from seesaw_cf.models.packing import batches, pad
from seesaw_cf.models.tf32 import exact_products
from seesaw_cf.models.wide import adds_in_float32
from seesaw_cf.scoring.hf_scorer import context_length
from seesaw_cf.scoring.support import shared_limit

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
    """Return second moments of several layers, from the cache or from one pass over the texts.

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
    places = ensure_moments(parts, tokenizer, layers, texts, options, cache)
    return {layer: files.load(layer, parts.key_size(layer)) for layer, files in places.items()}


def ensure_moments(
    parts: ModelParts,
    tokenizer: PreTrainedTokenizerBase,
    layers: Sequence[int],
    texts: Sequence[str],
    options: MomentOptions | None = None,
    cache: Path | None = None,
) -> dict[int, MomentFiles]:
    """Return where the second moments of several layers are, after a pass over the texts if they were not there.

    See `second_moments` for arguments and errors.

    Returns:
        Layer -> the files of a set that has it.
    """
    how = options or MomentOptions()
    length = how.max_length or context_length(parts.model)
    sample = _limit_tokens(tokenizer, _sample(texts, how.sample_size, how.seed), length, how)
    facts = _facts(parts, tokenizer, sample, length)
    key = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:24]
    sets = _Sets((cache / "second_moments" if cache else sets_folder()) / key, key, sample, how)
    if sets.missing(layers):
        with sets.lock():  # the process that held it may have made them
            missing = sets.missing(layers)
        if missing:
            # Named by the layers that were asked for: who goes on when some of them are saved finds the others' sums.
            name = f"{key}, {sets.order}, layers {'-'.join(map(str, sorted(layers)))}"
            _make(
                _Pass(parts, tokenizer, missing, length, how),
                TextShare(sample, sets.whole.folder, name),
                sets,
                facts,
                texts,
            )
    return sets.find(layers)


class _Sets:
    """Where the second moments of a model from some texts are kept.

    Attributes:
        order: What names the texts in their order.
        part: What names the texts of a pass that ended early.
        whole, early: The moments of all texts, and those of a pass that ended early.
    """

    def __init__(self, folder: Path, key: str, sample: Sequence[str], how: MomentOptions) -> None:
        self.order = f"{hash_texts(sample)[:12]}-{how.chunk}"
        self.part = f"{self.order}, within {how.sampling_error}"
        self.whole = MomentFiles(folder, key)
        self.early = MomentFiles(folder / self.part.replace(", within ", "-within-"), f"{key}, {self.part}")
        self._usable = [self.whole] if how.sampling_error is None else [self.whole, self.early]
        self.lock = partial(file_lock, folder.parent / f".{key}.lock", wait=True, required=False)

    def find(self, layers: Sequence[int]) -> dict[int, MomentFiles]:
        """Return the files of each layer that has moments, those of an early end first where they are enough."""
        there = ((layer, files) for layer in layers for files in self._usable if files.path(layer).exists())
        return dict(there)

    def missing(self, layers: Sequence[int]) -> list[int]:
        """Return the layers without moments."""
        there = self.find(layers)
        return [layer for layer in layers if layer not in there]


def _facts(
    parts: ModelParts, tokenizer: PreTrainedTokenizerBase, sample: Sequence[str], length: int | None
) -> JsonObject:
    """Return what second moments depend on."""
    return {
        "model": fingerprint(parts.model),
        "corpus": hash_texts(sorted(sample)),
        "sample_size": len(sample),
        "dtype": str(parts.stream_dtype),
        "max_length": length,
        "tokenizer": tokenizer_hash(tokenizer),
        "libraries": libraries(),
    }


def _make(job: _Pass, corpus: TextShare, sets: _Sets, facts: JsonObject, texts: Sequence[str]) -> None:
    """Sum over the texts, in shares with other processes where the pass has no early end, and save what is missing."""
    how = job.options
    if how.sampling_error is None and not corpus.file("partial").exists():
        job.run_shares(corpus, lambda: bool(sets.missing(job.layers)))
    with sets.lock():
        layers = sets.missing(job.layers)
        if not layers:
            return
        sums, complete = replace(job, layers=layers).run(corpus)
        files = sets.whole if complete else sets.early
        describe_set(files.folder, facts, "" if complete else sets.part, job.parts.model, texts)
        try:
            for layer in layers:
                files.save(layer, sums.moment(layer, job.parts))
        except EditError:  # not finite: nothing can go on from these sums
            corpus.delete_files(how.chunk)
            raise
        if complete:
            corpus.delete_files(how.chunk)


def _sample(texts: Sequence[str], size: int, seed: int) -> list[str]:
    """Draw the texts to use, in the order in which they are used."""
    if isinstance(texts, str):
        raise EditError("the corpus is one string, expected a sequence of texts. Pass corpus=[text, ...].")
    candidates = [text for text in texts if text.strip()]
    if not candidates:
        raise EditError(
            f"second moments need texts, got {len(texts)} of which none has visible characters. Pass corpus=[...]."
        )
    return random.Random(seed).sample(candidates, min(size, len(candidates)))


def _limit_tokens(
    tokenizer: PreTrainedTokenizerBase, sample: list[str], length: int | None, how: MomentOptions
) -> list[str]:
    """Return the first texts that together have `how.tokens` tokens; all when they have fewer, or it is None."""
    used = 0
    for start in range(0, len(sample) if how.tokens is not None else 0, how.chunk):
        encoded = tokenizer(sample[start : start + how.chunk], add_special_tokens=True, verbose=False)["input_ids"]
        for number, ids in enumerate(encoded, start + 1):
            used += len(ids[:length])
            if used >= (how.tokens or 0):
                return sample[:number]
    return sample


def _rows(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], length: int | None) -> list[tuple[int, list[int]]]:
    """Return the part and the tokens of each text of a chunk, longest first."""
    encoded = tokenizer(list(texts), add_special_tokens=True, verbose=False)["input_ids"]
    rows = [(number % PARTS, list(ids)[:length]) for number, ids in enumerate(encoded)]
    return sorted((row for row in rows if row[1]), key=lambda row: -len(row[1]))


@dataclass(frozen=True, slots=True)
class _Pass:
    """What every process of a pass does alike.

    Attributes:
        parts, tokenizer: The model.
        layers: The layers that are summed.
        length: Tokens kept of a text.
        options: How texts are run.
    """

    parts: ModelParts
    tokenizer: PreTrainedTokenizerBase
    layers: list[int]
    length: int | None
    options: MomentOptions

    def run_shares(self, corpus: TextShare, needed: Callable[[], bool]) -> None:
        """Run the shares that no other process is at, then wait for the others.

        Args:
            corpus: The texts of the pass.
            needed: Says whether the moments are still missing; asked under the lock of each share.
        """
        for wait in (False, True):
            for share in corpus.split(self.options.chunk):
                with file_lock(share.file("share").with_suffix(".lock"), wait=wait, required=False) as held:
                    if held and needed():
                        self.run_share(share)

    def run_share(self, share: TextShare) -> None:
        """Write the sums of a share unless they are there, rounded to the type of moments: the same by any process."""
        if not share.file("share").exists():
            sums = Sums.start(self.parts, self.layers, share)
            self.accumulate(share, sums)
            sums.save(share.file("share"), sum_dtype(self.parts))
            sums.checkpoint.unlink(missing_ok=True)

    def run(self, corpus: TextShare) -> tuple[Sums, bool]:
        """Return the sums of all shares, or of the checkpoint and the texts after it, and whether they are complete.

        A pass that may end early takes the first shares that are there. A checkpoint has counted such texts itself.
        """
        sums = Sums.start(self.parts, self.layers, corpus)
        for share in corpus.split(self.options.chunk) if not sums.n_texts else ():
            if self.options.sampling_error is None:
                self.run_share(share)
            if not share.file("share").exists():
                break
            sums.add_saved(share.file("share"), share.owner)
        return sums, self.accumulate(corpus, sums)

    def accumulate(self, share: TextShare, sums: Sums) -> bool:
        """Run the texts that are not in the sums yet; return False when the error was small enough before the last."""
        how, texts, saved = self.options, share.texts, time.monotonic()
        if sums.n_chunks * how.chunk >= len(texts):
            return True
        bar = Bar[object](total=len(texts), initial=sums.n_texts, desc=share.title, unit="text", disable=no_bars())
        model = self.parts.model
        with exact_products(model), frozen(model), torch.no_grad(), bar:
            for start in range(sums.n_chunks * how.chunk, len(texts), how.chunk):
                if how.sampling_error is not None and not sums.n_rows and sums.worst() <= how.sampling_error:
                    sums.save()
                    return False
                rows = _rows(self.tokenizer, texts[start : start + how.chunk], self.length)[sums.n_rows :]
                for group in batches([len(ids) for _, ids in rows], how.batch_tokens, shared_limit(model)):
                    _add_keys(self.parts, [rows[index] for index in group], sums, how.batch_tokens)
                    bar.update(len(group))
                    if time.monotonic() - saved >= how.checkpoint_seconds:
                        sums.save()
                        saved = time.monotonic()
                sums.n_chunks, sums.n_rows = sums.n_chunks + 1, 0
                error, tokens = sums.worst(), sum(sums.tokens)
                bar.set_postfix_str(f"sampling error {error:.2%}")
                counts = (share.title, sums.n_texts, len(texts), tokens, error)
                _LOG.info("%s: %d of %d texts, %d tokens, sampling error %.2g", *counts)
        return True


def _add_keys(parts: ModelParts, rows: Sequence[tuple[int, list[int]]], sums: Sums, batch_tokens: int) -> None:
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
    """Return layer -> keys of every token, (tokens, d_ff), row after row.

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
