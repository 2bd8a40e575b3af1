"""Whether an edit works, generalises and stays local, per protocol: an `evaluate` module."""

from __future__ import annotations

import evaluate

from seesaw_cf.base.text import bibtex
from seesaw_cf.effects.prompts import SIDES
from seesaw_cf.effects.success import COLUMNS, Success, edit_success
from seesaw_cf.effects.tables import Columns
from seesaw_cf.metrics.module import column_arguments, describe

_COLUMNS = {
    "case_id": "int64",
    "test": "string",
    **dict.fromkeys((*SIDES, "tokens_right", "tokens_kept", "n_tokens", "generated"), "float64"),
}


def _success(columns: Columns) -> Success:
    """Return a tie is what it is for float32: columns do not say which model they are from."""
    return edit_success(columns)


@describe(bibtex("memit", note="appendix C"), _COLUMNS)
class EditSuccess(evaluate.Metric):  # type: ignore[misc]
    """CounterFact's ES, PS, NS, S and magnitudes, zsRE's efficacy, paraphrase, specificity and score, EasyEdit-style
    rewrite, rephrase, locality and portability, and greedy exact match: the same words mean different things, so every
    number names its protocol.

    One row per (case, prompt). Leave what was not measured at None: its numbers are None.

    Args:
        case_id (`list` of `int`): the edit.
        test (`list` of `str`): "rewrite", "paraphrase", "neighborhood" or "portability".
        pre_new, pre_true, post_new, post_true (`list` of `float`): log-probabilities of the targets, nats.
        tokens_right (`list` of `float`): tokens of the expected answer that are the first choice under teacher forcing.
        tokens_kept (`list` of `float`): first choices that are the same as before the edit.
        n_tokens (`list` of `float`): tokens of the expected answer.
        generated (`list` of `float`): 1 when greedy generation gives exactly the expected answer, else 0.

    Returns:
        `dict` of plain JSON types: `counterfact`, `zsre`, `easyedit`, `generation`, each with `protocol` (its meaning)
        and numbers with `value`, `low`, `high`, `n_prompts`, `n_cases`, `note`; `n_rows`, `n_empty`.

    Examples:

        One edit: it took, one of two paraphrases follows, the neighbour stayed true. S = 3 / (1/1 + 1/0.5 + 1/1) =
        0.75.

        >>> metric = evaluate.load("metrics/edit_success")
        >>> unknown = [None] * 4
        >>> result = metric.compute(
        ...     case_id=[1] * 4, test=["rewrite", "paraphrase", "paraphrase", "neighborhood"],
        ...     pre_new=[-5.0] * 4, pre_true=[-1.0] * 4,
        ...     post_new=[-0.1, -0.5, -4.0, -6.0], post_true=[-3.0, -2.0, -1.0, -0.5],
        ...     tokens_right=unknown, tokens_kept=unknown, n_tokens=unknown, generated=unknown,
        ... )
        >>> [result["counterfact"][name]["value"] for name in ("ES", "PS", "NS", "S", "already_true")]
        [1.0, 0.5, 1.0, 0.75, 0.0]
        >>> result["zsre"]["efficacy"]["value"] is None
        True
    """

    _compute = staticmethod(column_arguments(_success, COLUMNS))
