"""Checkpoints that the authors' programs made, audited from their folders (../shared/reference/editing_golden).

A stored change is added to its base and saved by transformers alone, as those programs save; its audit then gives the
log-probabilities that were computed beside the authors' run.
"""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch

from seesaw_cf.run.workers import run_job
from tests.golden import reference as golden
from tests.runner.test_edited import job_of, records

pytestmark = pytest.mark.slow

RUNS = [("gpt2", "rome_r0"), ("gpt2", "ft_r0"), ("llama", "memit_b8"), ("mistral", "rome_r0"), ("gptj", "emmet_b8")]
EVERY = [
    *((name, m) for name in golden.MODELS for m in ("rome_r1", "memit_r0", "r_rome_r0", "alphaedit_b8", "emmet_r0")),
    *(("llama", m) for m in ("ft_nobos_r0", "alphaedit_seq4x2", "ft_targetnew_r1")),
    *(("gpt2", m) for m in ("ft_b8", "rome_seq3", "orig_rome_r0")),
]


@pytest.fixture(scope="module")
def root(reference: Callable[..., Path]) -> Path:
    return reference("editing_golden")


@pytest.mark.parametrize(
    ("name", "method"), [*RUNS, *(pytest.param(*run, marks=pytest.mark.exhaustive) for run in EVERY)]
)
def test_an_audit_of_their_checkpoint_gives_their_numbers(
    root: Path, name: str, method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEESAW_CF_CACHE", str(tmp_path / "cache"))
    cases, (arrays, _) = golden.entry(root, name, method)["cases"], golden.arrays_of(root, name, method)
    golden.load.cache_clear()  # its weights are written below
    model, tokenizer = golden.load(root, name)
    changed = golden.stored_deltas(arrays)
    with torch.no_grad():
        for parameter in changed:
            model.get_parameter(parameter).add_(torch.tensor(golden.dense(arrays, parameter)))
    model.save_pretrained(tmp_path / "edited")
    tokenizer.save_pretrained(tmp_path / "edited")
    golden.load.cache_clear()
    file = records(tmp_path, *golden.requests(root, cases))
    job = job_of(root / "models" / name, tmp_path / "edited", limit=1, data="sample", requests=file)
    run_job(job, tmp_path / "run", progress=False)
    pairs = golden.read(root / "requests.json")["pairs"]
    stored = {
        (pair["prompt"], pair["target"].strip()): (before, after)
        for pair, before, after in zip(pairs, arrays["logp_pre"], arrays["logp_post"], strict=True)
    }
    table = pq.read_table(tmp_path / "run" / "scores.parquet").to_pylist()
    asked = [row for row in table if row["kind"] == "efficacy"]
    assert len(asked) == 4 * len(cases)
    limit = golden.limit(root, name, method, "logp_post_max_abs")
    for row in asked:
        wanted = stored[row["prompt"], row["target"]][row["phase"] == "post"]
        assert abs(row["logprob"] - wanted) < limit, (row["prompt"], row["target"], row["phase"])
