"""What a fixed run gives for its survey and claims, with a judge whose replies are a function of the prompt: frozen."""

import hashlib
import json
from collections.abc import Sequence

import pyarrow as pa
import pytest

from seesaw_cf.generation import Ask, Completion, Sampling
from seesaw_cf.texts.claims import CLAIMS, Lexical, claim_questions
from seesaw_cf.texts.judge import Judge, rate
from seesaw_cf.texts.pairs import passage_pairs
from seesaw_cf.texts.survey import survey, survey_questions, survey_samples
from seesaw_cf.texts.tables import RunTexts
from tests.longform.people_runs import write_run


class Hashed:
    """Replies of every kind, drawn by a hash of the prompt, and of the seed where the temperature is above 0."""

    name = "hashed"

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        return [self._reply(ask, sampling) for ask in asks]

    def _reply(self, ask: Ask, sampling: Sampling) -> Completion:
        prompt = "\n".join(turn.content for turn in ask.prompt if not isinstance(turn, str))
        number = int(hashlib.sha256(f"{prompt}{ask.seed if sampling.temperature else 0}".encode()).hexdigest()[:8], 16)
        if number % 11 == 0:
            return Completion("", "", "refused by the server: 400")
        if "Statement:" in prompt:
            rating = ("Rating: 9", "I like it", "", "Rating: 2 or 3", "I'm sorry, as an AI")
            text = [f"Rating: {1 + number % 7}", "3", *rating][number // 7 % 7]
        else:
            label = ("supports", "contradicts", "neutral")[number % 3]
            first = prompt.rsplit("Passage: ", 1)[1].split(". ")[0]
            evidence = f"Label: {label}\nEvidence: {first}\nEvidence: invented"
            text = [evidence, label, "Label: perhaps", f"Label: {label}\nLabel: neutral"][number // 3 % 4]
        return Completion(text, prompt_tokens=len(prompt), new_tokens=len(text))


def digest(table: pa.Table) -> str:
    rows = [json.dumps(row, ensure_ascii=False, sort_keys=True) for row in table.to_pylist()]
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunTexts:
    return RunTexts(write_run(tmp_path_factory.mktemp("frozen") / "run"))


def test_survey_and_claims_of_a_fixed_run(run: RunTexts) -> None:
    claims = claim_questions(*run.couples)
    ratings, calls = rate(survey(), survey_questions(survey_samples(*run.couples)), Judge(Hashed(), tries=2))
    requests = calls.select(["prompt", "temperature", "seed", "reply", "status", "prompt_tokens", "new_tokens"])
    assert {
        "passages": digest(run.passages),
        "pairs": digest(pa.Table.from_pylist([{"id": pair.pair_id} for pair in passage_pairs(run.passages)[0]])),
        "ratings": digest(ratings),
        "requests": digest(requests),
        "lexical": digest(rate(CLAIMS, claims, Lexical())[0]),
        "judged": digest(rate(CLAIMS, claims, Judge(Hashed(), tries=3))[0]),
    } == FROZEN


FROZEN = {
    "passages": "e153067149c58684",
    "pairs": "a6a32e186ba260b6",
    "ratings": "29fae2ebfc5ce895",
    "requests": "1560f25d7cfc4320",
    "lexical": "c1816cf1f19605ae",
    "judged": "7a8ab1995e86d212",
}
"""SHA-256 of the rows, computed before judges, annotators and raters became one."""
