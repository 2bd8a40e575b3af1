"""A run stops when an editor's first edits spoil what the model knew of others, and goes on when told to."""

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from seesaw_cf.effects.answers import Locality
from seesaw_cf.errors import EditError
from seesaw_cf.models import WeightDelta
from seesaw_cf.run import store
from seesaw_cf.types import Estimate
from tests.runner import small


def run(out: Path, name: str = "nudge", ignore_damage: bool = False, **changes: Any) -> list[str]:
    """The texts that were edited."""
    editor = small.Nudge()
    small.run(out, {name: editor}, ignore_damage, editors={name: {}}, **changes)
    return editor.seen


@pytest.fixture(autouse=True)
def _collapse(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = Locality("neighbours", 0.66, 0.11, 40, Estimate(0.125, 0.02, 0.47, n=8))
    monkeypatch.setattr(store, "locality", lambda *_: {"nudge": counts, "identity(nudge)": counts})


_NUMBERS = (
    r"nudge: its first 8 edits spoil what the model knew of others: neighbours right 66% before, 11% after "
    r"\(n = 40\); 12% \[2%, 47%\] of 8 edits leave at least half of those right"
)


@pytest.mark.slow
def test_it_stops_after_the_first_edits_and_keeps_them(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    out = tmp_path / "run"
    with pytest.raises(EditError, match=f"^{_NUMBERS}, expected an upper end of at least 50%.*--ignore-damage"):
        run(out)
    assert len(list(out.glob("shards/nudge/*.parquet"))) == 8
    with pytest.raises(EditError, match=_NUMBERS):
        run(out)
    assert len(list(out.glob("shards/nudge/*.parquet"))) == 8, "repeating the command makes no more edits"
    assert not caplog.messages
    assert len(run(out, ignore_damage=True)) == 1
    assert [message for message in caplog.messages if "spoil" in message]
    assert (out / "scores.parquet").exists()


def test_controls_and_editors_with_no_edit_left_do_not_stop(tmp_path: Path) -> None:
    assert len(run(tmp_path / "control", "identity(nudge)")) == 9
    relations = len({case.request.relation_id for case in small.cases()})
    with pytest.raises(EditError, match="nudge"):
        run(tmp_path / "batch", protocol="batch", settings={"block": 1})
    assert len(list((tmp_path / "batch").glob("shards/nudge/*.parquet"))) == 1 < relations


@dataclass(frozen=True)
class Careless(small.Nudge):
    """Leaves something behind."""

    slip: str = ""

    def edit(self, model: Any, tokenizer: Any, requests: Any) -> WeightDelta:
        if self.slip == "hooks":
            model.lm_head.register_forward_hook(lambda *_: None)
        if self.slip == "buffers":
            model.model.rotary_emb.original_inv_freq.mul_(2)
        if self.slip == "config":
            model.config.rms_norm_eps *= 10
        if self.slip == "exit":
            sys.exit(0)
        return super().edit(model, tokenizer, requests)


@pytest.mark.parametrize(
    ("slip", "message"),
    [
        ("hooks", "careless: its first edit left other hooks than before"),
        ("buffers", "careless: its first edit left other buffers than before"),
        ("config", "careless: its first edit left other config than before"),
        ("exit", r"careless: it ended the program .sys.exit.0.., expected an edit"),
    ],
)
def test_an_editor_that_changes_more_than_weights_is_stopped_at_its_first_edit(
    slip: str, message: str, tmp_path: Path
) -> None:
    editor = Careless(slip=slip)
    with pytest.raises(EditError, match=message):
        small.run(tmp_path / "run", {"careless": editor}, settings={"block": 2})
    assert len(editor.seen) in (0, 2)
    assert not list((tmp_path / "run" / "shards").rglob("*.parquet"))
