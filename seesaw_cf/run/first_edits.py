"""A look at an editor's first edits: a run does not go on for hours with an editor that breaks the model."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict

import pandas as pd
import pyarrow as pa
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.base.errors import EditError
from seesaw_cf.editors.contract import state_of
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.locality import LEAST_LOCAL, locality
from seesaw_cf.effects.success import edit_numbers
from seesaw_cf.run.store import Store
from seesaw_cf.run.units import Unit
from seesaw_cf.stats.simple import tolerance

log = logging.getLogger(__name__)

EDITS_TOGETHER = 8  # units whose edits are made in one go, and that show whether an editor leaves others alone


def check_first_edits(store: Store, editor: str, units: Sequence[Unit], finished: Sequence[Unit], anyway: bool) -> None:
    """Stop a run when an editor spoils, by its first edits (or first batch), what the model knew of other facts.

    Controls are not looked at.

    Args:
        store: The finished units of the run.
        editor: The editor to check.
        units: All units.
        finished: Those that have just been finished; the first edits are looked at when some are among them.
        anyway: Warn instead, as is done when no edit by the editor is left to make.

    Raises:
        EditError: See above; what is finished is kept.
    """
    single = store.manifest.protocol == "single"
    first = units[: EDITS_TOGETHER if single else 1]
    keys = [(editor, unit.key) for unit in first]
    if is_control(editor) or not any(unit in first for unit in finished) or not all(map(store.has, keys)):
        return
    tables, facts = zip(*map(store.read, keys), strict=True)
    numbers = edit_numbers(pd.DataFrame([row for unit in facts for row in unit["edits"]])) if single else None
    nats, _ = tolerance(asdict(store.manifest))
    counts = locality(pa.concat_tables(tables), numbers, nats).get(editor)
    if counts is None or not counts.collapsed:
        return
    text = f"{editor}: its first {counts.local.n} edits spoil what the model knew of others: {counts}"
    if anyway or all(store.has((editor, unit.key)) for unit in units):
        log.warning("%s.", text)
        return
    raise EditError(
        f"{text}, expected an upper end of at least {LEAST_LOCAL:.0%}. Make smaller steps (learning_rate, clamp or "
        "max_change in --editor-config), take another editor, or repeat the command with "
        "--anyway. What is finished is kept."
    )


@contextlib.contextmanager
def no_side_effects(editor: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Iterator[None]:
    """Refuse edits, made inside the block, that changed more of the model than its weights, or the tokenizer.

    Raises:
        EditError: Names what changed.
    """
    before = state_of(model, tokenizer)
    yield
    after = state_of(model, tokenizer)
    if changed := [part for part, value in before.items() if value != after[part]]:
        raise EditError(
            f"{editor}: its first edit left other {', '.join(changed)} than before, so what is scored afterwards is "
            "another model. Correct the editor; `seesaw-cf check-editor` says what an edit must leave as it was."
        )
