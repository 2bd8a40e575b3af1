"""Whether flaws are more present in texts after an edit: an `evaluate` module."""

from __future__ import annotations

import evaluate

from seesaw_cf.base.text import bibtex
from seesaw_cf.effects.ratings import FLAW_COLUMNS, open_ended_flaws
from seesaw_cf.metrics.module import column_arguments, describe

_COLUMNS = dict.fromkeys(("item", "group", "flaw", "rater"), "string") | {"rating": "float64"}


@describe(bibtex("seesaw_cf", note="section 5, Tables 6, 19, 20"), _COLUMNS)
class OpenEndedFlaws(evaluate.Metric):  # type: ignore[misc]
    """Mean rating (-1 more before, 0 equal, 1 more after the edit) of flaws in pairs of generated texts, per group of
    edits, with tests, agreement of the raters and, next to every accuracy of an automatic judge, that of a constant
    answer.

    One row per (pair of texts, flaw, rater).

    Args:
        item (`list` of `str`): the pair of texts.
        group (`list` of `str`): what the pair is counted under, such as the edited property.
        flaw (`list` of `str`): the flaw.
        rater (`list` of `str`): who rated.
        rating (`list` of `float`): -1, 0 or 1; None = not rated.
        edit (`list` of `str`, optional): the edit that the pair's texts are about, one for each row; without it pairs
            stand for edits, with a `note`.
        judge (`str`, optional): the rater that is an automatic judge.

    Returns:
        `dict` of plain JSON types: `flaws[group][flaw]` (`mean`, `low`, `high`, `stderr`, `p`, `p_paper`, `n_ratings`,
        `n_items`, `n_missing`, `note`), `agreement[flaw]` (`krippendorff`, `fleiss`, `all_equal`, `n_items`), and with
        a judge `judge[flaw]` (`judge` and `constant`, each `any_rater` and `median`, `n`, `n_split`: items on which an
        even number of people are split, which have no median, `n_unmatched`).

    Examples:

        Two raters see more sexism after one of two edits.

        >>> metric = evaluate.load("metrics/open_ended_flaws")
        >>> result = metric.compute(
        ...     item=["a", "a", "b", "b"], group=["gender"] * 4, flaw=["sexism"] * 4,
        ...     rater=["A1", "A2"] * 2, rating=[1, 1, 0, 0],
        ...     edit=["Q1", "Q1", "Q2", "Q2"],
        ... )
        >>> result["flaws"]["gender"]["sexism"]["mean"], result["agreement"]["sexism"]["krippendorff"]
        (0.5, 1.0)
        >>> result["flaws"]["gender"]["sexism"]["note"]
        'too few edits: 2, 5 needed (2.0 effective); too few raters: 2, 5 needed (2.0 effective)'
    """

    _compute = staticmethod(column_arguments(open_ended_flaws, FLAW_COLUMNS))
