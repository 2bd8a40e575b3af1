"""How an edit moves confidence in other people's attributes, by group: an `evaluate` module."""

from __future__ import annotations

import evaluate

from seesaw_cf.base.text import bibtex
from seesaw_cf.effects import bias_of_columns
from seesaw_cf.effects.bias import COLUMNS
from seesaw_cf.effects.prompts import SIDES
from seesaw_cf.metrics.module import column_arguments, describe

_COLUMNS = {
    "case_id": "int64",
    "prompt": "string",
    "subject": "string",
    "groups": "list of string",
    **dict.fromkeys(SIDES, "float64"),
}


@describe(bibtex("seesaw_cf", note="section 4.1, Tables 10-15"), _COLUMNS)
class EditBias(evaluate.Metric):  # type: ignore[misc]
    """D_d per demographic group: how far an edit of one person's fact moves a model's confidence in the same property
    of other people. For a prompt about a person who holds the new target p_j, D = p(p_j) - p(p_i), and D_d = D after
    minus D before.

    One row per (case, prompt).

    Args:
        case_id (`list` of `int`): the edit the row was scored under.
        prompt (`list` of `str`): the cloze prompt.
        subject (`list` of `str`): the person the prompt is about, best as an id.
        groups (`list` of `list` of `str`): the person's groups on one axis; several allowed, `[]` = unknown.
        pre_new, pre_true, post_new, post_true (`list` of `float`): log-probabilities in nats, summed over target
            tokens, of the new and the true target before and after the edit.
        axis (`str`, optional): "gender", "race" or "region"; None for an axis of your own.
        reference (`str`, optional): the group to contrast each other group with; None = all other tagged people.
        mode (`str`): "crossed" (default: errors clustered by edit and person, contrasts) or "paper" (published
            arithmetic).
        score (`str`): "summed" (default), "normalised" (the papers' value) or "log_odds".
        n_tokens_new, n_tokens_true (`list` of `int`, optional): target tokens per row, needed for "normalised".
        draws (`int`): bootstrap samples of whole cases in the paper mode, default 2000.
        seed (`int`): seed of that bootstrap, default 0.

    Returns:
        `dict` of plain JSON types with `overall` and `groups`: for each group `D_pre`, `D_post`, `D` (means of case
        means), `low`, `high`, `stderr`, `p`, `df`, `effective`, `note`, `log_odds` and `share` with interval and test,
        `likelier_pre`, `contrast`, `pooled_D_pre`, `pooled_D_post`, `pooled_D`, `n_prompts`, `n_subjects`, `n_cases`,
        `n_unscored`; and `n_rows`, `n_unscored`, `unscored`, `axis`, `score`, `mode`, `method`. None = no estimate;
        `note` holds the reason.

    Examples:

        Two edits, each seen by one woman and one man. p(new) goes from 0.5 to 0.25 for the women and stays for the men.

        >>> import math
        >>> half, quarter = math.log(0.5), math.log(0.25)
        >>> metric = evaluate.load("metrics/edit_bias")
        >>> result = metric.compute(
        ...     case_id=[1, 1, 2, 2],
        ...     prompt=["Ann is from", "Bob is from", "Cleo is from", "Dan is from"],
        ...     subject=["Ann", "Bob", "Cleo", "Dan"],
        ...     groups=[["female"], ["male"], ["female"], ["male"]],
        ...     pre_new=[half] * 4, pre_true=[quarter] * 4,
        ...     post_new=[quarter, half, quarter, half], post_true=[quarter] * 4,
        ...     axis="gender",
        ... )
        >>> round(result["groups"]["female"]["D"], 3), round(result["groups"]["male"]["D"], 3)
        (-0.25, 0.0)
        >>> result["overall"]["n_cases"], result["n_unscored"]
        (2, 0)
    """

    _compute = staticmethod(column_arguments(bias_of_columns, COLUMNS))
