"""Does editing one property of a person cost the model another property of that person? An `evaluate` module."""

from __future__ import annotations

import evaluate

from seesaw_cf.base.text import bibtex
from seesaw_cf.effects import accuracy_of_columns
from seesaw_cf.effects.accuracy import COLUMNS
from seesaw_cf.metrics.module import column_arguments, describe

_COLUMNS = {
    "case_id": "int64",
    **dict.fromkeys(("edit_relation", "effect_relation", "prompt"), "string"),
    **dict.fromkeys(("candidates", "gold"), "list of string"),
    **dict.fromkeys(("pre", "post"), "list of float64"),
}


@describe(bibtex("seesaw_cf", note="section 4.2, Tables 4 and 5"), _COLUMNS)
class CrossPropertyAccuracy(evaluate.Metric):  # type: ignore[misc]
    """Accuracy of a model's first choice for property P2 of a person before and after an edit of property P1 of the
    same person, per pair P1/P2, with a paired test.

    One row per case.

    Args:
        case_id (`list` of `int`): the edit.
        edit_relation, effect_relation (`list` of `str`): the property edited and the property asked for, such as "P21".
        prompt (`list` of `str`): the prompt that was scored.
        candidates (`list` of `list` of `str`): the answers that were scored.
        gold (`list` of `list` of `str`): the answers that are true before the edit; `[]` = the case is left out and
            counted.
        pre, post (`list` of `list` of `float`): log-probabilities of the candidates in nats before and after the edit.
        mode (`str`): "exact" (default) or "paper", the published rule (substring match, unpaired t-test).
        post_prompts (`list` of `str`, optional): prompts of the post-edit scores where they differ from `prompt`.
        n_tokens (`list` of `list` of `int`, optional): tokens per candidate; adds `normalised` (ranked per token).
        pre_prior, post_prior (`list` of `list` of `float`, optional): log-probabilities of the candidates after a
            prompt without the subject; adds `pmi` (ranked by how much the subject raises them).
        groups (`list` of `list` of `str`, optional): group tags of the case's subject; adds `groups`.
        subject (`list` of `str`, optional): the person of each case, where one person stands in several.
        draws (`int`): bootstrap samples of cases in the paper mode, default 2000.
        seed (`int`): seed of that bootstrap, default 0.

    Returns:
        `dict` of plain JSON types: `pairs` ("P21/P101" -> `pre`, `post`, `change`, their intervals, `lost`, `gained`,
        `p`, `pre_mrr`, `post_mrr`, `pre_top5`, `post_top5`, `share`, `log_odds`, `n_odds`, `chance`, `majority`, `n`,
        `n_no_candidate`, `n_no_gold`, `n_unscored`), `average`, `mode`, `method`.

    Examples:

        Three edits of citizenship; the model forgets one of three occupations.

        >>> metric = evaluate.load("metrics/cross_property_accuracy")
        >>> result = metric.compute(
        ...     case_id=[1, 2, 3],
        ...     edit_relation=["P27"] * 3, effect_relation=["P101"] * 3,
        ...     prompt=["Ann's field of work is", "Bob's field of work is", "Cleo's field of work is"],
        ...     candidates=[["physics", "law"]] * 3,
        ...     gold=[["physics"], ["law"], ["physics"]],
        ...     pre=[[-1.0, -2.0], [-3.0, -1.0], [-1.0, -4.0]],
        ...     post=[[-1.0, -2.0], [-3.0, -1.0], [-5.0, -4.0]],
        ... )
        >>> pair = result["pairs"]["P27/P101"]
        >>> pair["pre"], round(pair["post"], 3), pair["lost"], pair["gained"], pair["p"]
        (1.0, 0.667, 1, 0, None)
        >>> pair["note"]  # three people are too few for an interval or a test of the change
        'too few people: 3, 5 needed (3.0 effective)'
    """

    _compute = staticmethod(column_arguments(accuracy_of_columns, COLUMNS))
