"""Numbers about texts as rows of the one frame, and how far raters agree, as such rows.

`editor` is who wrote, `about` which texts, `asked` what was asked. Beside the frame's columns a row may have `dataset`
and `model` (kept apart everywhere), `rater` (who answered) and `answer` (what was answered).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from seesaw_cf.base.errors import RecordError
from seesaw_cf.base.types import Estimate
from seesaw_cf.effects.means import ALL
from seesaw_cf.effects.texts import LABELS
from seesaw_cf.report.frame import COLUMNS, Row, row
from seesaw_cf.stats.agreement import annotator_agreement
from seesaw_cf.stats.multiple import adjust
from seesaw_cf.stats.simple import share_estimate
from seesaw_cf.texts.judge import LEFT_OUT
from seesaw_cf.texts.training import rating_scores

BASELINE = "none"  # the unedited model
HUMAN = "human"  # texts that people wrote
PEOPLE = "people"
"""The rater of rows about the answers of all people together."""
BLOCKS = ("dataset", "model", "rater")
PLACE = ["editor", "case_id", "phase", "sample"]
"""Which text of which edit."""
QUESTION = {"ratings": [*PLACE, "item"], "annotations": [*PLACE, "passage", "claim_kind", "claim_id"]}
"""What people and judges answer about a text."""
_NAMES = {"annotator": "rater", "passage": "about", "claim_kind": "asked"}
_ONLY_AUDITS = ("half_edits", "decides", "mirror", "margin", "reach", "effective_edits", "effective_people", "tests")


def text_row(what: str, found: Estimate, **names: Any) -> Row:
    """Return a row; `n_edits` are the edits or cases that the estimate is clustered by."""
    n_edits = found.clusters.get("case", found.clusters.get("edit", 0))
    return row(what, str(names.pop("about", "")), found, **{"n_edits": n_edits} | names)


def adjusted(rows: Iterable[Row]) -> list[Row]:
    """Return rows that are one family of tests, with `p_adjusted` by Holm."""
    family = list(rows)
    for own, p in zip(family, adjust([own["p"] for own in family]), strict=True):
        own["p_adjusted"] = float(p)
    return family


def frame_of(rows: Iterable[Row]) -> pd.DataFrame:
    """Return rows as a frame."""
    frame = pd.DataFrame(list(rows))
    names = (*COLUMNS, "dataset", "rater", "answer")
    return frame.reindex(columns=[*names, *(name for name in frame if name not in names)])


def table_of(frame: pd.DataFrame, whats: Collection[str]) -> pd.DataFrame:
    """Return the rows of some numbers, without columns that say nothing of them."""
    rows = frame[frame["what"].isin(whats)].drop(columns=list(_ONLY_AUDITS))
    counts = [name for name in rows if str(name).startswith("n_")]
    nothing = rows.isna() | rows.isin(["", ALL]) | (rows[counts] == 0).reindex(columns=rows.columns, fill_value=False)
    return rows.loc[:, ~nothing.all() | (rows.columns == "value")].reset_index(drop=True)


def as_frame(table: pa.Table | pd.DataFrame, datasets: Mapping[int, str] | None = None) -> pd.DataFrame:
    """Return a table of texts or answers with the names of the frame; `editor` is `BASELINE` before the edit.

    Args:
        table: Rows of `seesaw_cf.texts.tables`.
        datasets: case_id -> its data set, where there are several.

    Raises:
        RecordError: It has no column `editor`, `case_id` or `phase`, or other phases than "pre" and "post".
    """
    frame: pd.DataFrame = table.to_pandas() if isinstance(table, pa.Table) else table.copy()
    if missing := [name for name in ("editor", "case_id", "phase") if name not in frame]:
        raise RecordError(f"table of texts: columns {missing} are missing; it has {list(frame)}.")
    if not (phases := set(frame["phase"])) <= {"pre", "post"}:
        raise RecordError(f"table of texts: phases {sorted(map(str, phases))}, expected 'pre' and 'post'.")
    unedited = (frame["phase"] == "pre") & (frame["editor"] != HUMAN)
    frame["editor"] = np.where(unedited, BASELINE, frame["editor"])
    return with_datasets(frame.rename(columns=_NAMES), datasets)


def with_datasets(frame: pd.DataFrame, datasets: Mapping[int, str] | None) -> pd.DataFrame:
    """Return rows of cases with the column `dataset`, where there are several data sets."""
    return frame.assign(dataset=frame["case_id"].map(datasets).fillna("open-ended")) if datasets else frame


def blocks(frame: pd.DataFrame, *more: str) -> Iterator[tuple[Row, pd.DataFrame]]:
    """Yield the rows of each data set, model and rater, as far as there are such columns, and of `more`."""
    by = [name for name in BLOCKS if name in frame] + list(more)
    if by:
        for key, rows in frame.groupby(by, sort=True, observed=True):
            yield dict(zip(by, key, strict=True)), rows
    elif len(frame):
        yield {}, frame


def surest(frame: pd.DataFrame, what: str) -> pd.DataFrame:
    """Return tests of one kind, by the first rater that is no baseline, the smallest corrected p first."""
    rows = frame[frame["what"] == what]
    names = sorted(map(str, rows["rater"].unique()), key=lambda name: ("baseline" in name, name))
    return rows[rows["rater"].astype(str) == names[0]].sort_values("p_adjusted", kind="stable") if names else rows


# Agreement.


def agreement_rows(
    frame: pd.DataFrame, about: str, asked: str | pd.Series | pd.Categorical, draws: int, key: Sequence[str] = ("item",)
) -> Iterator[Row]:
    """Yield agreement in per cent and Cohen's kappa of pairs of raters, Krippendorff's alpha and Fleiss' kappa of all.

    Args:
        frame: rater, value (NaN = none), case_id (intervals resample whole cases), and `key`.
        about: What was rated; "survey" is ordinal, the rest nominal.
        asked: What was asked in each row.
        draws: See `seesaw_cf.stats.agreement.annotator_agreement`.
        key: Columns that tell what is rated.
    """
    level = "ordinal" if about == "survey" else "nominal"
    item = frame[[*key]].astype(str).agg("|".join, axis=1)
    rated = frame[["rater", "value"]].assign(item=item, group=frame["case_id"], asked=asked)
    for name, rows in rated.groupby("asked", sort=False, observed=True):
        wide = rows.pivot(index="item", columns="rater", values="value")
        if wide.shape[1] < 2 or not wide.notna().any(axis=None):
            continue
        groups = rows.groupby("item")["group"].first().loc[wide.index].tolist()
        found = annotator_agreement(wide.to_numpy(float).tolist(), names=[*map(str, wide)], groups=groups, draws=draws)
        names = {"about": about, "asked": str(name), "n_items": found.n_items, "n_missing": found.n_missing}
        for what, by_pair in (("percent", found.percent), ("kappa", found.cohen)):
            for raters, own in by_pair.items():
                note = own.note if own.n else "nothing rated by both"
                yield text_row(what, own, rater=raters, scale=what, note=note, **names)
        paired = int((wide.notna().sum(axis=1) > 1).sum())
        wholes = {"alpha": replace(found.krippendorff[level], n=paired), "fleiss": found.fleiss}
        for what, own in wholes.items():
            note = own.note if own.n else f"nothing rated by {'two' if what == 'alpha' else 'all'} raters"
            yield text_row(what, own, rater="all", scale=what, note=note, constant=found.majority_share, **names)


# Raters and annotators of a run beside people who answered the same questions: LEME Table 9.


def beside_people(kind: str, people: pd.DataFrame, judged: pd.DataFrame, draws: int) -> Iterator[Row]:
    """Yield how far each rater of a run is from people, on questions that both answered.

    "the commonest" always says what people say most; "another person" is how people do among themselves. Ratings:
    Krippendorff's alpha (ordinal), Spearman's rho, how often both are equal and at most one apart. Claims: how often
    both are equal, and alpha (nominal).

    Args:
        kind: "ratings" or "annotations".
        people, judged: What they answered.
        draws: Bootstrap samples of cases.
    """
    key = QUESTION[kind]
    people, judged = coded(kind, people), coded(kind, judged)
    answers = people.dropna(subset="value")[[*key, "rater", "value"]]
    given = judged.dropna(subset="value")[[*key, "value"]].rename(columns={"value": "other"})
    pairs = {
        str(name): answers.merge(given.loc[rows.index.intersection(given.index)], on=key)
        for name, rows in judged.groupby("rater", sort=False)
    }
    common = answers.merge(given[key].drop_duplicates(), on=key)
    if len(common):
        pairs["the commonest"] = common.assign(other=common["value"].mode().iloc[0])
        two = common.merge(common, on=key, suffixes=("", "_other")).rename(columns={"value_other": "other"})
        pairs["another person"] = two[two["rater"] < two["rater_other"]]
    left_out = judged[judged["status"].str.startswith(LEFT_OUT.split(":")[0])]["rater"].value_counts()
    about = "survey" if kind == "ratings" else "claims"
    for name, pair in pairs.items():
        names: Row = {"about": about, "rater": name, "n": len(pair), "n_edits": pair["case_id"].nunique()}
        for figure, found in (_figures(about, pair, draws) if len(pair) else {"alpha": Estimate(float("nan"))}).items():
            more = {"n_left_out": int(left_out.get(name, 0))}
            yield text_row("beside_people", found, asked=figure, scale=figure, **names, **more)


def coded(kind: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return answers with `value` as a number, the place of a label in `LABELS`, and who gave it as `rater`."""
    if kind == "ratings":
        return frame.assign(value=frame["rating"].astype(float))
    codes = {label: float(at) for at, label in enumerate(LABELS)}
    return frame.assign(value=frame["label"].map(codes).astype(float), rater=frame["annotator"])


def _figures(about: str, pair: pd.DataFrame, draws: int) -> dict[str, Estimate]:
    cases = pair["case_id"].tolist()
    table = np.column_stack([pair["value"], np.round(pair["other"])]).tolist()
    level = "ordinal" if about == "survey" else "nominal"
    figures = {"alpha": annotator_agreement(table, groups=cases, draws=draws).krippendorff[level]}
    if about == "claims":
        return figures | {"accuracy": share_estimate(pair["value"] == pair["other"], pair["case_id"])}
    scores = rating_scores(pair["value"].tolist(), pair["other"].tolist(), cases, draws=draws)
    ends = {name: np.array([*scores[name].values()], float).tolist() for name in ("spearman", "exact", "within_one")}
    return figures | {name: Estimate(*own) for name, own in ends.items()}
