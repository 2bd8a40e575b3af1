"""Edits of the embedded sample succeed on the embedded model."""

from __future__ import annotations

from pathlib import Path

import pytest

from seesaw_cf.models.corpus import sample_corpus
from seesaw_cf.models.load import load_model
from seesaw_cf.models.weights import applied
from seesaw_cf.records.load import load_cases
from seesaw_cf.run.edits import edit_units
from seesaw_cf.run.make_editors import make_editor
from seesaw_cf.scoring import HFScorer
from seesaw_cf.types import Case, Cloze


def _prompts(case: Case) -> dict[str, tuple[str, ...]]:
    return {
        "efficacy": (case.request.text,),
        "paraphrase": case.paraphrase_prompts,
        "neighborhood": case.neighborhood_prompts,
    }


@pytest.mark.slow(30)
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("rome", {"efficacy": 0.98, "paraphrase": 0.7, "neighborhood": 0.8}),
        ("memit", {"efficacy": 0.98, "paraphrase": 0.7, "neighborhood": 0.8}),
        ("ft", {"efficacy": 0.9}),
        ("lora", {"efficacy": 0.9}),
    ],
)
def test_edits_of_the_sample(
    name: str, least: dict[str, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path))
    model, tokenizer = load_model("seesaw-tiny", device="cpu")
    cases = load_cases("sample", "cross_subject")[::25]
    editor = make_editor(name, model, {}, sample_corpus()).fit(model, tokenizer)
    edits = edit_units(model, tokenizer, editor, [[case] for case in cases])
    wins: dict[str, list[bool]] = {"efficacy": [], "paraphrase": [], "neighborhood": []}
    for case, edited in zip(cases, edits, strict=True):
        assert edited.delta is not None
        new, true = case.request.target_new.label, case.request.target_true.label
        with applied(model, edited.delta):
            for kind, texts in _prompts(case).items():
                scores = HFScorer(model, tokenizer).score([Cloze(text, word) for text in texts for word in (new, true)])
                gains = [a.logprob - b.logprob for a, b in zip(scores[::2], scores[1::2], strict=True)]
                wins[kind] += [gain < 0 if kind == "neighborhood" else gain > 0 for gain in gains]
    assert len(wins["efficacy"]) == 16
    for kind, share in least.items():
        assert sum(wins[kind]) / len(wins[kind]) >= share, (kind, wins[kind])
