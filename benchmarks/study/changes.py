"""The two changes of stage 7: SmolLM2 rounded to 4 bits, and with a LoRA that was trained and merged.

    python -m benchmarks.study.changes --corpus foldoc.txt --out changes

Writes `changes/nf4` (needs bitsandbytes) and `changes/merged` (needs peft), folders for `seesaw-cf audit --changed`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from seesaw_cf.models import load_model

BASE = "smollm2-135m-q4"
STEPS, ROWS, TOKENS, RANK, RATE = 48, 4, 96, 8, 5e-4


def round_to_4_bits(out: Path) -> None:
    """Write the model as it computes after its weights were rounded to NF4 (4 bits), in float32.

    Args:
        out: A new folder.
    """
    config = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32)
    base, tokenizer = load_model(BASE)
    model = AutoModelForCausalLM.from_pretrained(base.name_or_path, quantization_config=config, device_map="cpu")
    model.dequantize().save_pretrained(out)
    tokenizer.save_pretrained(out)


def merge_lora(texts: list[str], out: Path) -> list[float]:
    """Train a LoRA on texts, merge it, write the model, and return the loss of each step in nats a token.

    Args:
        texts: One a row, the longest ones cut to 96 tokens; `STEPS` times `ROWS` of them are drawn with seed 0.
        out: A new folder.
    """
    import peft

    model, tokenizer = load_model(BASE)
    torch.manual_seed(0)
    settings = peft.LoraConfig(r=RANK, lora_alpha=2 * RANK, target_modules=["q_proj", "v_proj", "down_proj"])
    adapted = peft.get_peft_model(model, settings)
    optimiser = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad], lr=RATE)
    drawn = np.random.default_rng(0).permutation(len(texts))[: STEPS * ROWS]
    losses = []
    for rows in drawn.reshape(STEPS, ROWS):
        own = [texts[row] for row in rows]
        batch = tokenizer(own, return_tensors="pt", padding=True, truncation=True, max_length=TOKENS)
        labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
        loss = adapted(**batch, labels=labels).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.item())
    adapted.merge_and_unload().save_pretrained(out)
    tokenizer.save_pretrained(out)
    return losses


def main() -> None:
    """Write both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True, help="texts, one a line")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    losses = merge_lora(given.corpus.read_text(encoding="utf-8").splitlines(), given.out / "merged")
    print(f"loss {np.mean(losses[:8]):.2f} in the first 8 steps, {np.mean(losses[-8:]):.2f} in the last 8")
    round_to_4_bits(given.out / "nf4")


if __name__ == "__main__":
    main()
