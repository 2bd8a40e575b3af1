"""An audit during training: what a fine-tune does to other facts and other people, every so many steps.

trainer = Trainer(model, args, train_dataset=texts, processing_class=tokenizer)
trainer.add_callback(seesaw_cf.AuditCallback(trainer, every=500))
"""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel, Trainer, TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from seesaw_cf.api import OPTIONS, Audit, Model, audit, base_name
from seesaw_cf.base import checks
from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.fields import checked
from seesaw_cf.run.jobs import Job


class AuditCallback(TrainerCallback):
    """Compare the model in training with its base, and log the harm beyond a random change of the same size.

    The numbers are `audit/ABOUT`, harm of which above 0 is worse, and `audit/ABOUT_low` and `_high`, its 95 % interval;
    ABOUT is `other_facts`, `other_people_old` or `other_people_new`, by the answer of the edits that is true of them,
    and ends in the form of the question, as in `other_facts_prefill`, where several are asked.
    The process of rank 0 audits, with the whole model in its memory; training goes on as if nothing had been asked.

    Attributes:
        audits: Step -> audit.
    """

    @checked
    def __init__(
        self,
        trainer: Trainer | None = None,
        *,
        every: int | None = None,
        base: Model | None = None,
        limit: int = 20,
        **options: object,
    ) -> None:
        """Say what is audited.

        Args:
            trainer: Logs the numbers to whatever it reports to; None = they stand in `state.log_history` only.
            every: Steps between audits; None = once, at the end.
            base: The model before training; None = the one that the model in training was loaded from.
            limit: Cases of each config that ask the questions.
            options: Further arguments of `seesaw_cf.audit`, such as `data` or `requests`.

        Raises:
            RecordError: A number of steps below 1, or an option that no audit could be made with; when training begins,
                a Trainer without a tokenizer, or a model in training without a name where `base` is None.
            TypeError: `audit` has no such option.
        """
        if every is not None:
            checks.whole("AuditCallback: every", every, low=1)
        self.trainer, self.every, self.base = trainer, every, base
        self.options: dict[str, Any] = {"limit": limit, "control_seeds": 1, "progress": False} | options
        inspect.signature(audit).bind("", changed="", **self.options)
        Job("model", changed=("step=",), **{name: self.options[name] for name in OPTIONS & self.options.keys()})
        self.audits: dict[int, Audit] = {}

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **objects: Any
    ) -> None:
        """Refuse what could not be audited later."""
        model: PreTrainedModel = objects["model"]
        if objects.get("processing_class") is None:
            raise RecordError("AuditCallback: the Trainer has no tokenizer. Give it as its `processing_class`.")
        if self.base is None and not model.config._name_or_path:
            raise RecordError("AuditCallback: the model in training has no name. Give what it was before as `base`.")
        self.base = self.base or base_name(model)

    def on_step_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **objects: Any
    ) -> None:
        """Audit, where it is time."""
        if self.every is not None and state.global_step % self.every == 0:
            logs = control.should_log
            self._audit(state, **objects)
            control.should_log = logs  # what the audit logs does not stand for the loss of this step

    def on_train_end(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **objects: Any
    ) -> None:
        """Audit the trained model, unless its last step was."""
        if state.global_step not in self.audits:
            self._audit(state, **objects)

    def _audit(self, state: TrainerState, model: PreTrainedModel, processing_class: Any, **_: Any) -> None:
        if not state.is_world_process_zero or self.base is None:
            return
        base = (self.base,) if isinstance(self.base, str) else (self.base, processing_class)
        training, step, options = model.training, f"step-{state.global_step}", dict(self.options)
        if options.get("out") is not None:
            options["out"] = Path(options["out"]) / step  # each is a run of its own
        model.eval()
        try:
            with torch.random.fork_rng(), torch.no_grad():
                found = audit(*base, changed={step: (model, processing_class)}, **options)
        finally:
            model.train(training)
        self.audits[state.global_step] = found
        numbers = _numbers(found)
        if self.trainer is not None:
            self.trainer.log(numbers)
        else:
            state.log_history.append({**numbers, "step": state.global_step})


def _numbers(found: Audit) -> dict[str, float]:
    numbers: dict[str, float] = {}
    for row in found.summary.to_dict("records"):
        named = {"": row["harm"], "_low": row["low"], "_high": row["high"]}
        about = "_".join(row[key] for key in ("about", "form") if key in row)
        numbers |= {f"audit/{about}{end}": float(value) for end, value in named.items() if math.isfinite(value)}
    return numbers
