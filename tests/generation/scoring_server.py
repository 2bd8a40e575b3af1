"""A server on loopback that gives log-probabilities of prompts, in the wire formats of vLLM and of SGLang."""

from __future__ import annotations

import random
from typing import Any

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.scoring.encode import leading_specials
from tests.generation.server import KEY, OpenAIServer


class ScoringServer(OpenAIServer):
    """`/v1/completions` with echo and logprobs, and `/generate` with return_logprob.

    Attributes:
        longest: Tokens of a prompt that are kept, the last ones; None = all.
        noise: Nats by which log-probabilities move by chance.
        numbers: Write tokens as "token_id:17".
    """

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str = "tiny", key: str = KEY
    ) -> None:
        super().__init__(model, tokenizer, name, key)
        self.model, self.tokenizer = model, tokenizer
        self.longest: int | None = None
        self.noise = 0.0
        self.numbers = False
        self.under_way = self.most_under_way = 0

    def scored(self, path: str, asked: dict[str, Any]) -> dict[str, Any] | None:
        """The answer, computed by one forward pass."""
        if path == "/v1/completions" and asked.get("echo") and asked.get("logprobs"):
            return self._counted(lambda: self._completion(*self._passed(asked["prompt"])))
        if path == "/generate" and asked.get("return_logprob"):
            return self._counted(lambda: self._native(*self._passed(asked["text"])))
        return None

    def _counted(self, answer: Any) -> Any:
        with self.lock:
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            with self.lock:
                return answer()
        finally:
            self.under_way -= 1

    def _passed(self, text: str) -> tuple[list[int], torch.Tensor]:
        """Ids of the prompt and the log-probabilities at each place, (n, vocabulary)."""
        ids = [*leading_specials(self.tokenizer), *self.tokenizer(text, add_special_tokens=False)["input_ids"]]
        ids = ids[-self.longest :] if self.longest else ids
        with torch.inference_mode():
            logits = self.model(input_ids=torch.tensor([ids])).logits[0].float()
        return ids, logits.log_softmax(-1) + random.uniform(-1, 1) * self.noise

    def _word(self, number: int) -> str:
        return f"token_id:{number}" if self.numbers else str(self.tokenizer.decode([number]))

    def _completion(self, ids: list[int], logprobs: torch.Tensor) -> dict[str, Any]:
        best = logprobs.argmax(-1).tolist()
        every = [*ids, best[-1]]
        own = [None, *(float(logprobs[place, number]) for place, number in enumerate(every[1:]))]
        tops = [None]
        for place, number in enumerate(every[1:]):
            # vLLM has the token itself there, too; the likelier one last, since order must not matter.
            pair = {self._word(number): own[place + 1], self._word(best[place]): float(logprobs[place, best[place]])}
            tops.append(pair)  # type: ignore[arg-type]
        words = [self._word(number) for number in every]
        parts = {"tokens": words, "token_logprobs": own, "top_logprobs": tops, "text_offset": [0] * len(words)}
        usage = {"prompt_tokens": len(ids), "completion_tokens": 1, "total_tokens": len(every)}
        choice = {"index": 0, "text": "".join(words), "logprobs": parts, "finish_reason": "length"}
        return {"id": "1", "object": "text_completion", "model": self.name, "choices": [choice], "usage": usage}

    def _native(self, ids: list[int], logprobs: torch.Tensor) -> dict[str, Any]:
        best = logprobs.argmax(-1).tolist()
        own = [(None, ids[0], self._word(ids[0]))]
        tops: list[Any] = [None]
        for place, number in enumerate(ids[1:]):
            own.append((float(logprobs[place, number]), number, self._word(number)))  # type: ignore[arg-type]
            tops.append([(float(logprobs[place, best[place]]), best[place], self._word(best[place]))])
        return {"text": "", "meta_info": {"input_token_logprobs": own, "input_top_logprobs": tops}}
