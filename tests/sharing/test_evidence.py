"""Evidence from a finished run: the numbers of the card are those of the score table."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from seesaw_cf.errors import RecordError, StorageError, UnknownNameError
from seesaw_cf.sharing import prepare_repo, run_evidence, save_delta
from seesaw_cf.tables import SCORES, write_table

from .tiny import low_rank_delta, tiny


def _rows(editor: str, case: int, kind: str, shift: float, **extra: Any) -> list[dict[str, Any]]:
    """log p(new) = -4 and log p(true) = -2 before; p(new) rises by `shift` nats."""
    common = {
        "editor": editor, "case_id": case, "edit_relation": "P27", "effect_relation": "", "kind": kind, "prompt_id": 0,
        "template_id": "t", "prompt": "x", "subject_id": f"Q{case}", "subject": f"S{case}", "gender": ["woman"],
        "race": [], "region": [], "holds": "target_new", "gold": None, "n_tokens": 1, "greedy": False, "status": "ok",
    } | extra  # fmt: skip
    logprobs = {("target_new", "pre"): -4.0, ("target_true", "pre"): -2.0}
    logprobs |= {("target_new", "post"): -4.0 + shift, ("target_true", "post"): -2.0}
    return [
        {**common, "role": role, "target": role, "phase": phase, "logprob": value}
        for (role, phase), value in logprobs.items()
    ]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four edits by memit of which three take (shift 3 > 2), shifts of other people 1, 1, 1 and 2; one edit by ft."""
    rows = [row for case in range(4) for row in _rows("memit", case, "efficacy", 3.0 if case else 1.0)]
    rows += [row for case in range(4) for row in _rows("memit", case, "cross_subject", 2.0 if case == 3 else 1.0)]
    rows += _rows("ft", 0, "efficacy", 0.0)
    folder = tmp_path / "run"
    folder.mkdir()
    write_table(folder / "scores.parquet", pa.Table.from_pylist(rows, SCORES))
    data = {"source": str(folder), "configs": ["cross_subject"]}
    manifest = {"model": {"id": "org/base", "revision": "", "dtype": "float32"}, "protocol": "single", "data": data}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def test_efficacy_and_bias_with_their_intervals(run: Path) -> None:
    found = run_evidence(run, "memit", draws=200)
    assert found.results["efficacy pre edit"].value == 0
    after = found.results["efficacy post edit"]
    assert (after.value, after.n) == (0.75, 4)
    assert 0 < after.low < 0.75 < after.high < 1
    everybody = found.results["bias D P27, everybody"]
    # D = change of p(new) - p(true): e^(-4 + shift) - e^-4 for shifts 1, 1, 1 and 2.
    wanted = (3 * (math.exp(-3) - math.exp(-4)) + math.exp(-2) - math.exp(-4)) / 4
    assert everybody.value == pytest.approx(wanted)
    assert everybody.n_clusters == 4
    assert everybody.low <= everybody.value <= everybody.high
    assert found.results["bias D P27, gender woman"].value == pytest.approx(wanted)
    assert (found.data, found.config, found.protocol) == ("run", "cross_subject", "single")  # no local path


def test_an_editor_without_bias_rows_still_has_its_efficacy(run: Path) -> None:
    found = run_evidence(run, "ft", draws=20)
    assert set(found.results) == {"efficacy pre edit", "efficacy post edit"}
    assert found.results["efficacy post edit"].n == 1


def test_a_shared_run_takes_evidence_and_base_from_its_folder(run: Path, tmp_path: Path) -> None:
    save_delta(low_rank_delta(tiny("llama"), "llama"), run / "deltas" / "memit" / "P27", tiny("llama"))
    prepare_repo(run, "org/name", tmp_path / "repository")
    card = (tmp_path / "repository" / "README.md").read_text()
    assert "| efficacy post edit | 0.7500 |" in card
    assert "org/base" in card
    assert str(tmp_path) not in card
    assert math.isfinite(float(card.split("| efficacy post edit | ")[1].split(" ")[0]))


def test_unfinished_damaged_and_unknown_are_named(run: Path) -> None:
    with pytest.raises(UnknownNameError, match="'memit'"):
        run_evidence(run, "memitt")
    file = run / "scores.parquet"
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(RecordError, match="not a whole Parquet file"):
        run_evidence(run, "memit")
    file.unlink()
    with pytest.raises(StorageError, match="no such file"):
        run_evidence(run, "memit")
