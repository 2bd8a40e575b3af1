"""Trains the embedded model `seesaw-tiny` from scratch on the sample's facts, measures it and writes its card.

    python -m benchmarks.tiny_model.train

Half an hour on a CPU core that multiplies bfloat16; on the same machine it ends with the same weights.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from tqdm import tqdm
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from benchmarks.tiny_model.card import write_card
from benchmarks.tiny_model.corpus import Person, documents, read_people
from seesaw_cf.base.files import write_text

ROOT = Path(__file__).resolve().parents[2]
BOS, EOS = "<s>", "</s>"
TOKENIZER_STREAM, SHIPPED_STREAM = -1, -3  # streams of `documents`; training step n uses stream n, the card uses -2


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """Everything that decides the weights, together with the people.

    Attributes:
        vocab_size: Entries of the byte-level BPE vocabulary.
        hidden_size, intermediate_size, layers, heads: Shape of the Llama model. The MLPs are wide on purpose: edits
            are written into them, and wide keys keep people apart.
        context: Longest input in tokens.
        steps: Optimiser steps.
        tokens: Tokens in one step.
        learning_rate, warmup, weight_decay: AdamW, linear warm-up, cosine to a tenth.
        names_hidden: Share of training rows in which a name is seen through its last token only; see `batch`.
        seed: Seeds the weights, the corpus and what is held out.
    """

    vocab_size: int = 4096
    hidden_size: int = 128
    intermediate_size: int = 768
    layers: int = 5
    heads: int = 4
    context: int = 256
    steps: int = 8000
    tokens: int = 2048
    learning_rate: float = 3e-3
    warmup: int = 100
    weight_decay: float = 0.1
    names_hidden: float = 0.8
    seed: int = 0


def make_tokenizer(texts: Iterator[str], settings: TrainSettings) -> PreTrainedTokenizerFast:
    """Train a byte-level BPE tokenizer that puts BOS first; a word's space belongs to the word ("Ġfield")."""
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=settings.vocab_size,
        special_tokens=[BOS, EOS],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    raw.train_from_iterator(texts, trainer)
    raw.post_processor = processors.TemplateProcessing(
        single=f"{BOS} $A", pair=f"{BOS} $A $B", special_tokens=[(BOS, raw.token_to_id(BOS))]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token=BOS,
        eos_token=EOS,
        pad_token=EOS,
        clean_up_tokenization_spaces=False,
        model_max_length=settings.context,
    )


def make_model(settings: TrainSettings, vocab_size: int) -> LlamaForCausalLM:
    """Return a Llama with tied embeddings and random weights; BOS is token 0, EOS and padding token 1."""
    torch.manual_seed(settings.seed)
    config = LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=settings.hidden_size,
        intermediate_size=settings.intermediate_size,
        num_hidden_layers=settings.layers,
        num_attention_heads=settings.heads,
        num_key_value_heads=settings.heads,
        max_position_embeddings=settings.context,
        initializer_range=0.04,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=1,
    )
    return LlamaForCausalLM(config)


@cache
def name_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds the longest name at each place of a text."""
    return re.compile("|".join(sorted(map(re.escape, names), key=len, reverse=True)))


def batch(
    people: Sequence[Person], tokenizer: PreTrainedTokenizerFast, settings: TrainSettings, step: int
) -> tuple[Tensor, Tensor]:
    """Return the token ids and attention mask of one step, a function of the step alone.

    Documents are packed as "BOS document EOS" and the last one of a row is cut. Every eighth step has rows of the full
    context, the rest short rows, which are cheap and put many documents at the very beginning.

    In `settings.names_hidden` of the rows no token outside a name sees any but the name's last token. What is known
    about a person must then be found there, which is where causal tracing finds it in large models (Meng et al. 2022,
    section 2) and where editors write.

    Returns:
        Ids (rows, length) and a mask (rows, 1, length, length), True where a token may be seen.
    """
    length = settings.context if step % 8 == 7 else 64
    source = documents(people, settings.seed, stream=step)
    names = name_pattern(tuple(p.name for p in people))
    ids: list[list[int]] = []
    mentions: list[list[int]] = []
    while len(ids) * length < settings.tokens:
        row: list[int] = []
        named: list[int] = []
        while len(row) < length:
            text = next(source)
            encoded = tokenizer(text, return_offsets_mapping=True)
            row += [*encoded["input_ids"], 1]
            named += [*_mentions(names, text, encoded["offset_mapping"], len(row)), 0]
        ids.append(row[:length])
        mentions.append(named[:length])
    rng = random.Random(f"{settings.seed}/{step}/rows")
    hide = torch.tensor([rng.random() < settings.names_hidden for _ in ids])
    return torch.tensor(ids), _mask(torch.tensor(mentions), hide)


def _mentions(names: re.Pattern[str], text: str, offsets: Sequence[tuple[int, int]], first: int) -> list[int]:
    """Return for each token the number of the mention of a name it belongs to, unique in the row, or 0."""
    mentions = [0] * len(offsets)
    for number, name in enumerate(names.finditer(text), start=first):
        for place, (_, end) in enumerate(offsets):
            if name.start() < end <= name.end():
                mentions[place] = number
    return mentions


def _mask(mentions: Tensor, hide: Tensor) -> Tensor:
    """(rows, 1, length, length): causal; where `hide`, inner tokens of a name are seen from within it only."""
    length = mentions.shape[1]
    inner = torch.zeros_like(mentions, dtype=torch.bool)
    inner[:, :-1] = (mentions[:, :-1] > 0) & (mentions[:, :-1] == mentions[:, 1:])
    outside = mentions[:, :, None] != mentions[:, None, :]
    unseen = outside & inner[:, None, :] & hide[:, None, None]
    return (torch.ones(length, length, dtype=torch.bool).tril() & ~unseen)[:, None]


def learning_rate(settings: TrainSettings, step: int) -> float:
    """The learning rate of a step: linear warm-up to `settings.learning_rate`, then a cosine down to a tenth of it."""
    if step < settings.warmup:
        return settings.learning_rate * (step + 1) / settings.warmup
    progress = (step - settings.warmup) / max(1, settings.steps - settings.warmup)
    return settings.learning_rate * (0.1 + 0.45 * (1 + math.cos(math.pi * progress)))


def _optimizer(model: nn.Module, settings: TrainSettings) -> torch.optim.AdamW:
    wide = [p for p in model.parameters() if p.ndim > 1]
    flat = [p for p in model.parameters() if p.ndim == 1]
    decays = ((wide, settings.weight_decay), (flat, 0.0))
    groups = [{"params": tensors, "weight_decay": decay} for tensors, decay in decays]
    return torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.98))


def train(
    people: Sequence[Person], tokenizer: PreTrainedTokenizerFast, settings: TrainSettings, every: int = 200
) -> tuple[LlamaForCausalLM, float]:
    """Train from random weights.

    Args:
        people: The people of the training facts.
        tokenizer: From `make_tokenizer`.
        settings: All hyper-parameters.
        every: Steps that the loss is a mean of.

    Returns:
        The model in eval mode, and the mean training loss of the last `every` steps in nats per token.
    """
    model = make_model(settings, len(tokenizer)).train()
    optimizer = _optimizer(model, settings)
    losses: list[float] = []
    bar = tqdm(range(settings.steps), unit="step")
    for step in bar:
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(settings, step)
        ids, mask = batch(people, tokenizer, settings, step)
        with torch.autocast("cpu", torch.bfloat16):  # products only: the weights and their steps are float32
            logits = model(input_ids=ids, attention_mask=mask, use_cache=False).logits
        loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1).float(), ids[:, 1:].flatten())
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses = [*losses[-every + 1 :], loss.item()]
        bar.set_postfix(loss=f"{losses[-1]:.3f}")
    return model.eval(), sum(losses) / len(losses)


def hash_people(people: Sequence[Person]) -> str:
    """Return a short fingerprint of the facts, kept in the card."""
    return hashlib.sha256(repr(people).encode()).hexdigest()[:16]


def main() -> None:
    """Train the model, write its folder, measure it and write its card (command line)."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--people", type=Path, default=ROOT / "builder_scripts" / "sample" / "people.tsv")
    parser.add_argument("--out", type=Path, default=ROOT / "seesaw_cf" / "models" / "seesaw-tiny")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    settings, people = TrainSettings(), read_people(options.people)
    texts = documents(people, settings.seed, stream=TOKENIZER_STREAM)
    tokenizer = make_tokenizer(islice(texts, 20_000), settings)
    model, loss = train(people, tokenizer, settings)
    model.generation_config = GenerationConfig(bos_token_id=0, eos_token_id=1, pad_token_id=1)
    model.save_pretrained(options.out)
    tokenizer.save_pretrained(options.out)
    corpus = islice(documents(people, settings.seed, SHIPPED_STREAM), 2000)
    write_text(options.out / "corpus.txt", "".join(f"{text}\n" for text in corpus))
    facts = {"final training loss (nats per token)": f"{loss:.3f}", "people.tsv": hash_people(people)}
    write_card(options.out, people, dataclasses.asdict(settings), facts)


if __name__ == "__main__":
    main()
