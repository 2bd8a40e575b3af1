"""Small trained tokenizers in the styles that real models use."""

from collections.abc import Callable

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

TEXTS = [
    "Ada Lovelace was born in London. The mother tongue of Marie Curie was Polish.",
    "Zora Neale Hurston's gender was female. Toni Morrison is a citizen of the United States of America.",
    "Chinua Achebe works in the field of literature and C. V. Raman specialized in physics.",
    "São Paulo, Kraków and Düsseldorf are cities; 東京 too.",
] * 3


def byte_level(*, bos: bool, vocabulary: int = 500) -> PreTrainedTokenizerBase:
    """Byte-level BPE: GPT-2's style, or Llama 3's with `bos`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<|endoftext|>", "<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>" if bos else "<|endoftext|>",
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
    )


def sentencepiece_like(*, vocabulary: int = 400) -> PreTrainedTokenizerBase:
    """Llama 2's style: a BOS token, "▁" for spaces, one more "▁" before every text, bytes for the rest."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))],
        show_progress=False,
    )
    words = [word for text in TEXTS for word in text.split()]
    tokenizer.train_from_iterator(words, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="</s>"
    )


STYLES: dict[str, Callable[[], PreTrainedTokenizerBase]] = {
    "byte_level": lambda: byte_level(bos=False),
    "byte_level_bos": lambda: byte_level(bos=True),
    "sentencepiece": sentencepiece_like,
}
