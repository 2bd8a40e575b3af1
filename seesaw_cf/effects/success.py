"""Did the edit work, generalise and stay local? One set of numbers per protocol, because the protocols disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from seesaw_cf.base.checks import one_of
from seesaw_cf.base.types import Estimate, JsonObject, Phase
from seesaw_cf.effects.prompts import PAIRED, SIDES, check_logprobs, pair_targets
from seesaw_cf.effects.tables import (
    Columns,
    Kind,
    Scores,
    as_frame,
    by_editor,
    floats,
    ids,
    labels,
    read_columns,
    refuse_rows,
)
from seesaw_cf.stats.clustered import case_weights, clustered_mean
from seesaw_cf.stats.simple import BOUNDS, above, clustered_share

TESTS = ("rewrite", "paraphrase", "neighborhood", "portability")
PROTOCOLS = {
    "counterfact": "relative probability of two given answers, ties fail (MEMIT appendix C.2)",
    "zsre": "teacher-forced share of target tokens that are the model's first choice (MEMIT appendix C.1)",
    "easyedit": "teacher-forced token shares; locality = share of tokens unchanged by the edit, right or wrong",
    "generation": "greedy generation, exact match",
}
_ZSRE = ("efficacy", "paraphrase", "specificity")
# protocol -> number -> (test, column of per-prompt values)
NUMBERS: dict[str, dict[str, tuple[str, str]]] = {
    "counterfact": {
        "ES": ("rewrite", "new_wins"),
        "PS": ("paraphrase", "new_wins"),
        "NS": ("neighborhood", "true_wins"),
        "EM": ("rewrite", "new_margin"),
        "PM": ("paraphrase", "new_margin"),
        "NM": ("neighborhood", "true_margin"),
        "already_true": ("rewrite", "new_won_before"),
        "still_true": ("rewrite", "true_wins"),
    },
    "zsre": {name: (test, "token_share") for name, test in zip(_ZSRE, TESTS)},
    "easyedit": {
        "rewrite": ("rewrite", "token_share"),
        "rephrase": ("paraphrase", "token_share"),
        "locality": ("neighborhood", "kept_share"),
        "portability": ("portability", "token_share"),
    },
    "generation": {test: (test, "generated") for test in TESTS},
}
MARGINS = ("EM", "PM", "NM")
# Harmonic means over three numbers of a protocol.
SCORES = {"counterfact": ("S", ("ES", "PS", "NS")), "zsre": ("score", _ZSRE)}


def harmonic_mean(values: Sequence[float]) -> float:
    """Return the harmonic mean; 0 when a value is 0, NaN when one is missing."""
    array = np.asarray(values, dtype=np.float64)
    if not array.size or not np.isfinite(array).all():
        return float("nan")
    least = array.min()  # by it, so that the reciprocal of a tiny share does not overflow
    return float(least * array.size / (least / array).sum()) if least > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Success:
    """Did the edits work, generalise and stay local?

    Attributes:
        numbers: Protocol -> number ("ES", ...) -> mean of case means, in 0..1 (margins in -1..1), with `n` prompts and
            the cluster "case"; NaN without data. Shares have `clustered_share`'s interval, margins a t interval over
            case means; `note` tells why one is missing. Harmonic means: from the ends of their parts (a little wide).
        n_rows: Rows given.
        n_empty: Rows without any measurement.
    """

    numbers: Mapping[str, Mapping[str, Estimate]]
    n_rows: int
    n_empty: int

    def row(self) -> JsonObject:
        """Return protocol -> what it means and its numbers, and the counts of rows."""
        out: JsonObject = {"n_rows": self.n_rows, "n_empty": self.n_empty}
        for protocol, numbers in self.numbers.items():
            rows: JsonObject = {"protocol": PROTOCOLS[protocol]}
            for name, own in numbers.items():
                n = {"n_prompts": own.n} if own.n else {}
                rows[name] = own.columns("value", "low", "high", "note") | n | {"n_cases": own.clusters["case"]}
            out[protocol] = rows
        return out


_MEASURED = (*SIDES, "tokens_right", "tokens_kept", "n_tokens", "generated")
COLUMNS: dict[str, Kind] = {"case_id": ids, "test": labels} | dict.fromkeys(_MEASURED, floats)


def edit_success(columns: Columns, *, nats: float = BOUNDS["float32"]) -> Success:
    """Return the success numbers of every protocol with filled columns, from one row per (case, prompt).

    Args:
        columns: `case_id`, the edit; `test`, "rewrite" (the edit's own prompt), "paraphrase", "neighborhood" (must stay
            true) or "portability"; `pre_new`, `pre_true`, `post_new` and `post_true`, log-probabilities of the new and
            the true target, nats; after the edit and under teacher forcing `tokens_right`, how many tokens of the
            expected answer (the new target; for neighborhood the true one) are the model's first choice, and
            `tokens_kept`, how many first choices are the same as before the edit; `n_tokens` of the expected answer;
            `generated`, 1 when greedy generation gives exactly the expected answer, else 0. None where a number does
            not exist.
        nats: Log-probabilities no further apart than this are a tie, and ties fail; see `seesaw_cf.stats.simple`.

    Returns:
        The numbers of each protocol, see `Success`.

    Raises:
        RecordError: Unequal lengths, log-probabilities above 0, or token counts that contradict each other.
        UnknownNameError: Unknown `test`.

    Source: MEMIT appendix C, equations 21-26 and both scores (harmonic means).
    Deviates: harmonic means of unrounded numbers; margins from probabilities of whole targets.
    """
    return _success(read_columns(COLUMNS, columns), nats)


def _success(frame: pd.DataFrame, nats: float) -> Success:
    """Return the numbers of every protocol from rows with the columns `COLUMNS`."""
    for name in frame["test"].unique():
        one_of("test", name, TESTS)
    for name in SIDES:
        check_logprobs(name, frame[name].to_numpy())
    for name in ("tokens_right", "tokens_kept"):
        bad = (frame[name] < 0) | (frame[name] > frame["n_tokens"])
        refuse_rows(frame, bad, [name, "n_tokens", "case_id"], f"{name} from 0 to n_tokens: give counts, not shares")
    frame = frame.sort_values("case_id", kind="stable")
    derived, case = _derive(frame, nats), pd.factorize(frame["case_id"], sort=True)[0]
    result: dict[str, dict[str, Estimate]] = {}
    for protocol, numbers in NUMBERS.items():
        rows = result[protocol] = dict[str, Estimate]()
        for name, (which, column) in numbers.items():
            values = derived[column].where(frame["test"] == which).to_numpy()
            used = np.isfinite(values)
            values, weights = np.where(used, values, 0.0), case_weights(case, used)
            if name in MARGINS and used.any():
                rows[name] = clustered_mean(values, [weights], {"case": case})
            else:
                rows[name] = clustered_share(values, weights, case)
        if protocol in SCORES:
            name, parts = SCORES[protocol]
            value, low, high = (
                harmonic_mean([getattr(rows[p], end) for p in parts]) for end in ("value", "low", "high")
            )
            cases = {"case": min(rows[part].clusters["case"] for part in parts)}
            rows[name] = Estimate(value, low, high, clusters=cases)
    return Success(result, n_rows=len(frame), n_empty=int(derived.isna().all(axis=1).sum()))


# Column of a score table -> that of `COLUMNS`.
_COUNTS = {"n_greedy": "tokens_right", "n_kept": "tokens_kept", "n_tokens": "n_tokens", "greedy": "generated"}
# Kind of prompt in a score table -> test.
KINDS = {"efficacy": "rewrite"} | {name: name for name in TESTS[1:]}


EditNumbers = Mapping[tuple[str, int], int]
"""(editor, case) -> the case that stands for its edit: cases about one edit are one."""


def success_of_scores(
    scores: Scores, edits: EditNumbers | None = None, *, phase: Phase = "post", nats: float = BOUNDS["float32"]
) -> dict[str, Success]:
    """Return `edit_success` of every editor of a run, from its score table.

    Args:
        scores: A score table with rows of kind "efficacy", and "paraphrase", "neighborhood" and "portability" where
            they were asked.
        edits: Which cases are about one edit; None: every case is one.
        phase: "pre" counts the same in the unedited model, which has no EasyEdit locality.
        nats: See `edit_success`.

    Returns:
        Editor -> the result of `edit_success`. "generation" is exact: a target made of first-choice tokens only
        is what greedy generation gives. Tables of older versions have no EasyEdit locality, still older ones no
        token shares at all.

    Raises:
        RecordError: No rows of these kinds, or as `pair_targets`.
    """
    successes = {}
    keys = ["kind", "case_id", "prompt_id"]
    asked, kinds = pc.field("kind").isin(list(KINDS)), f"kinds {list(KINDS)}"
    for editor, rows in by_editor(scores, asked, [*dict.fromkeys((*PAIRED, *_COUNTS))], kinds):
        pairs = pair_targets(rows)
        roles = pc.if_else(pc.equal(rows["kind"], "neighborhood"), "target_true", "target_new")
        of_phase = pc.and_(pc.equal(rows["phase"], phase), pc.equal(rows["role"], roles))
        expected = rows.filter(pc.and_(of_phase, pc.equal(rows["status"], "ok")))
        expected = as_frame(expected.select([*keys, *_COUNTS]))
        pairs = pairs.merge(expected, on=keys, how="left", validate="one_to_one").rename(columns=_COUNTS)
        counts = pairs[list(_COUNTS.values())].astype("Float64").astype(np.float64)
        after = {f"post_{side}": pairs[f"{phase}_{side}"] for side in ("new", "true")}
        case = [(edits or {}).get((editor, case), case) for case in pairs["case_id"]]
        test = pairs["kind"].astype(object).map(KINDS)
        successes[editor] = _success(pairs.assign(case_id=case, test=test, **after, **counts), nats)
    return successes


def _derive(frame: pd.DataFrame, nats: float) -> pd.DataFrame:
    out = pd.DataFrame(index=frame.index)
    compared = {"new_wins": ("post_new", "post_true"), "true_wins": ("post_true", "post_new")}
    for name, (first, second) in (compared | {"new_won_before": ("pre_new", "pre_true")}).items():
        finite = np.isfinite(frame[first]) & np.isfinite(frame[second])
        out[name] = pd.Series(above(frame[first], frame[second], nats), frame.index, np.float64).where(finite)
    out["new_margin"] = np.exp(frame["post_new"]) - np.exp(frame["post_true"])
    out["true_margin"] = -out["new_margin"]
    out["token_share"], out["kept_share"] = (frame[f"tokens_{name}"] / frame["n_tokens"] for name in ("right", "kept"))
    return out.assign(generated=frame["generated"])


# Which cases of a run are about one edit: another case about the same edit is no second trial of it.

_SAME = ["editor", "relation_id", "subject", "target_true", "target_new", "delta_norm", "new_pre", "true_pre"]


def once_each(edits: pd.DataFrame) -> pd.DataFrame:
    """Return the first row of each edit.

    Args:
        edits: Rows of `seesaw_cf.run.store.EDITS`, of a run that makes one edit at a time; those of each `order` of a
            sequence are edits of their own.
    """
    return edits.drop_duplicates([*_SAME, *edits.columns.intersection(["order"])])


def edit_numbers(edits: pd.DataFrame) -> dict[tuple[str, int], int]:
    """Return (editor, case) -> the first case about the same edit, which stands for all of them.

    Args:
        edits: As `once_each`.
    """
    first = edits.groupby(_SAME, dropna=False, sort=False)["case_id"].transform("first")
    return dict(zip(zip(edits["editor"], edits["case_id"]), first))
