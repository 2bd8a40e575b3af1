"""An editor that keeps the deltas it made, for the controls of its edits in the same run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from seesaw_cf.base.types import EditRequest
from seesaw_cf.models.editor import Editor, EditorConfig, EditsEach, Model, Requests, Tokenizer
from seesaw_cf.models.weights import WeightDelta


@dataclass(frozen=True)
class Remembered:
    """A fitted editor; what is asked again in the same groups is answered from memory, to the last bit.

    Attributes:
        editor: The editor, for one model.
        limit: Most bytes of deltas that are kept; the oldest go, but for those asked last.
    """

    editor: Editor
    limit: int
    _deltas: dict[tuple[str, tuple[EditRequest, ...]], list[WeightDelta]] = field(default_factory=dict, repr=False)

    @property
    def config(self) -> EditorConfig:
        """The editor's settings."""
        return self.editor.config

    def fit(self, model: Model, tokenizer: Tokenizer) -> Remembered:
        """Return self: the editor is fitted."""
        return self

    def edit(self, model: Model, tokenizer: Tokenizer, requests: Requests) -> WeightDelta:
        """See `seesaw_cf.models.editor.Editor`."""
        return self._remember("edit", requests, lambda: [self.editor.edit(model, tokenizer, requests)])[0]

    def edit_each(self, model: Model, tokenizer: Tokenizer, requests: Requests) -> list[WeightDelta]:
        """See `seesaw_cf.models.editor.EditsEach`; an editor that is none makes one edit after another."""
        editor = self.editor
        if not isinstance(editor, EditsEach):
            return [self.edit(model, tokenizer, [request]) for request in requests]
        return self._remember("edit_each", requests, lambda: editor.edit_each(model, tokenizer, requests))

    def _remember(self, how: str, requests: Requests, make: Callable[[], list[WeightDelta]]) -> list[WeightDelta]:
        key = how, tuple(requests)
        if key not in self._deltas:
            self._deltas[key] = make()
            while len(self._deltas) > 1 and sum(map(_size, self._deltas.values())) > self.limit:
                del self._deltas[next(iter(self._deltas))]
        return self._deltas[key]


def _size(deltas: Sequence[WeightDelta]) -> int:
    """Return how many bytes deltas take."""
    return sum(tensor.nbytes for delta in deltas for tensor in delta.tensors())
