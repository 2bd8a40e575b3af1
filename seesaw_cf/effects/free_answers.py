"""Answers that a model wrote by itself: which answer a text names, and how far that is from teacher-forced numbers.

Under teacher forcing an answer is compared with one other, or token by token behind its own beginning; written by the
model, greedily and to its natural end, it is one text among all. Source: QAEdit (arXiv 2502.11177), which found 38.5 %
of edits in free answers where teacher forcing reports 96.8 %.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa

from seesaw_cf.base.types import Estimate
from seesaw_cf.stats.clustered import case_weights, clustered_mean
from seesaw_cf.stats.simple import clustered_share

_STRINGS = pa.list_(pa.string())
# edit: the first case about the same edit. right, wrong: spellings of the answers that count as right, and of other
# known answers. likelier: the likeliest right answer is likelier than every wrong one that was asked; first_choice:
# share of its tokens that are the model's first choice under teacher forcing; both null without scores. finish: "stop",
# "length" or "" without a text.
ANSWERS: pa.Schema = pa.schema(
    [
        *((name, pa.string()) for name in ("editor", "form", "kind", "phase", "edit_relation", "effect_relation")),
        ("case_id", pa.int64()),
        ("edit", pa.int64()),
        ("prompt_id", pa.int32()),
        *((name, pa.string()) for name in ("subject_id", "subject", "holds", "prompt")),
        ("right", _STRINGS),
        ("wrong", _STRINGS),
        ("likelier", pa.bool_()),
        ("first_choice", pa.float64()),
        *((name, pa.string()) for name in ("text", "finish", "status")),
        ("new_tokens", pa.int32()),
    ]
)
"""`answers.parquet`: one row for each answer that a model wrote, before and after an edit."""
JUDGED: pa.Schema = pa.schema(
    {"prompt": pa.string(), "right": _STRINGS, "text": pa.string(), "rater": pa.string()}
    | {"gives_it": pa.bool_(), "reply": pa.string(), "status": pa.string()}
)
"""`judged.parquet`: whether a judge reads a right answer in a text, each text of a question once; null: no verdict."""
_REFUSAL = re.compile(
    r"\b(i('m| am) (sorry|unable|not able)|i (cannot|can't|can not|do not|don't) (know|have|answer|provide|assist|help|"
    r"complete)|as an? (ai|language model))\b"
)
OUTCOMES = ("right", "wrong", "refused", "empty", "failed", "other")
"""What a text is: it names a right answer first, or another known one; else it is one of these. "failed": no text."""


def plain_text(text: str) -> str:
    """Return a text in lower case without accents, typographic apostrophes and repeated white space."""
    letters = unicodedata.normalize("NFKD", text.replace("\u2019", "'"))
    return " ".join("".join(char for char in letters if not unicodedata.combining(char)).casefold().split())


def _bare(text: str) -> str:
    return plain_text(text).strip(" .,;:!?\"'*")


def named_first(text: str, right: Sequence[str], wrong: Sequence[str]) -> str:
    """Return whether the known answer that a text names first, as whole words, is "right" or "wrong"; "" for none.

    Of answers that begin at one place the longest counts, so that "Niger" is not read in "Nigeria", nor "Guinea" in
    "Guinea-Bissau" or in a known "Equatorial Guinea". A spelling on both sides counts for neither.
    """
    sides = {plain_text(name): "right" for name in right}
    for name in map(plain_text, wrong):
        sides[name] = "" if sides.get(name) in ("right", "") else "wrong"
    names = sorted((name for name, side in sides.items() if name and side), key=len, reverse=True)
    pattern = rf"(?<!\w)(?<!\w-)(?:{'|'.join(map(re.escape, names))})(?!\w|-\w)"
    found = re.search(pattern, plain_text(text)) if names else None
    return sides[found.group()] if found else ""


def mark_answers(rows: pd.DataFrame, judged: pd.DataFrame | None = None) -> pd.DataFrame:
    """Mark what was written.

    Args:
        rows: Rows of `ANSWERS`.
        judged: Rows of `JUDGED`; of several judges the last one's count.

    Returns:
        The rows with `outcome`, one of `OUTCOMES`, `exact` (nothing but a right answer was written), `certain` (nothing
        but one that is known to be right or wrong), `unfinished` (the token limit came before the end) and `judged`
        (1.0 where a judge reads a right answer, NaN where none was asked or none said).
    """
    outcomes, exact, certain = [], [], []
    for text, status, right, wrong in zip(rows["text"], rows["status"], rows["right"], rows["wrong"], strict=True):
        plain = plain_text(text)
        other = "refused" if _REFUSAL.search(plain) else "other" if plain else "empty"
        outcomes.append("failed" if status != "ok" else named_first(text, right, wrong) or other)
        bare, names, others = _bare(text), set(map(_bare, right)), set(map(_bare, wrong))
        exact.append(bare in names)
        certain.append(bool(bare) and (bare in names) != (bare in others))
    said = dict[tuple[object, ...], float]()
    if judged is not None:
        keys = zip(judged["prompt"], map(tuple, judged["right"]), judged["text"], strict=True)
        said = dict(zip(keys, judged["gives_it"].astype(float), strict=True))
    asked = zip(rows["prompt"], map(tuple, rows["right"]), rows["text"], strict=True)
    rows = rows.assign(outcome=outcomes, exact=exact, certain=certain, unfinished=rows["finish"] == "length")
    return rows.assign(judged=[said.get(key, float("nan")) for key in asked])


def summarise_answers(rows: pd.DataFrame) -> Iterator[tuple[str, str, Estimate]]:
    """Yield (name, scale, number) of the answers of one editor to one kind of questions in one form.

    Every edit weighs equally, and errors are clustered by edit. "written" and "exact" are shares of texts, "likelier"
    and "first_choice" the teacher-forced numbers of the same questions, "gap" likelier minus written, "gap_tokens"
    first_choice minus written; "written_before" is the share before the edit. "judged" is the share of texts in which a
    judge reads a right answer, "judge_error" how often it is wrong about texts, before or after, that are nothing but a
    known answer. The rest are counts of texts.

    Args:
        rows: Rows of `mark_answers`, before and after.
    """
    shares = {"written": rows["outcome"].eq("right"), "exact": rows["exact"], "likelier": rows["likelier"]}
    shares = {name: values.astype(float) for name, values in (shares | {"first_choice": rows["first_choice"]}).items()}
    post, named = (rows["phase"] == "post").to_numpy(), "written"
    yield "written_before", "share", _mean(shares[named][~post], rows["edit"][~post], is_share=True)
    for name, values in shares.items():
        yield name, "share", _mean(values[post], rows["edit"][post], is_share=True)
    for name, forced in (("gap", "likelier"), ("gap_tokens", "first_choice")):
        gap = _mean((shares[forced] - shares[named])[post], rows["edit"][post])
        yield name, "share", replace(gap, low=max(gap.low, -1.0), high=min(gap.high, 1.0))  # of two shares
    if rows["judged"].notna().any():
        yield "judged", "share", _mean(rows["judged"][post], rows["edit"][post], is_share=True)
        known = rows[rows["certain"]]
        yield "judge_error", "share", _mean((known["judged"] - known["exact"]).abs(), known["edit"], is_share=True)
    after = rows[post]
    counts = {name: int((after["outcome"] == name).sum()) for name in OUTCOMES[1:]}
    for name, count in (counts | {"unfinished": int(after["unfinished"].sum())}).items():
        yield name, "count", Estimate(count, n=len(after))


def _mean(values: pd.Series, cases: pd.Series, *, is_share: bool = False) -> Estimate:
    numbers, codes = values.to_numpy(np.float64), pd.factorize(cases)[0]
    used = np.isfinite(numbers)
    if not used.any():
        return Estimate(float("nan"), note="nothing was asked")
    numbers, weights = np.where(used, numbers, 0.0), case_weights(codes, used)
    return clustered_share(numbers, weights, codes) if is_share else clustered_mean(numbers, [weights], {"edit": codes})
