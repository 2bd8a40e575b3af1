"""A real encoder of a few thousand weights, and rows that it can learn."""

import csv
import re
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

WORDS = re.findall(
    r"\S+",
    "[PAD] [UNK] [CLS] [SEP] . , ann bob cleo dan eve fay gus hal rome paris oslo bonn lima lives in works sings is "
    "was born a painter the city place of birth main passage related : new fact as if true written does not contradict",
)
NAMES = ("Ann", "Bob", "Cleo", "Dan", "Eve", "Fay", "Gus", "Hal")
CITIES = ("Rome", "Paris", "Oslo", "Bonn", "Lima")


def save_tiny_encoder(folder: Path) -> Path:
    """A BERT with two layers of width 16 whose vocabulary is `WORDS`."""
    raw = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    raw.normalizer = normalizers.Lowercase()
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        model_max_length=64,
    )  # fmt: skip
    torch.manual_seed(0)
    shape: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    shape["intermediate_size"] = 32
    model = BertModel(BertConfig(vocab_size=len(WORDS), max_position_embeddings=64, **shape))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def annotation_rows(names: tuple[str, ...] = NAMES) -> list[dict[str, str]]:
    """Five rows of each person: two supported, two contradicted claims, one that the passage leaves open."""
    rows = []
    for number, name in enumerate(names):
        here, there, other = (CITIES[(number + shift) % len(CITIES)] for shift in (0, 1, 2))
        passage = f"{name} lives in {here}. {name} sings. {name} works in {there}."
        claims = {
            f"{name} lives in {here}": "supports",
            f"{name} works in {there}": "supports",
            f"{name} lives in {other}": "contradicts",
            f"{name} works in {other}": "contradicts",
            f"{name} is a painter": "neutral",
        }
        rows += [
            {"premise": passage, "claim": claim, "classification": label, "sample_id": name}
            for claim, label in claims.items()
        ]
    return rows


def write_csv(path: Path, rows: list[dict[str, str]]) -> Path:
    """The rows as CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
