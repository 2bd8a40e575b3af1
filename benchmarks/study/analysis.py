"""Every number of the study's page from its kept cells; no model is needed.

    python -m benchmarks.study.analysis [--new]

writes `benchmarks/study/results/tables` anew, look by look; `--new` adds the looks that they lack, also after a kill.
Minutes a look go to the permutations.
"""

from __future__ import annotations

import argparse
import io
import lzma
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from tqdm import tqdm

from benchmarks.study import cells
from benchmarks.study.cells import AFFECTED, VERDICTS
from benchmarks.study.keep import KEPT
from benchmarks.study.looks import Look, finished_looks, join
from seesaw_cf.base.files import atomic_path
from seesaw_cf.editors.control_names import is_control
from seesaw_cf.effects.audit import HOLDERS, AuditSettings
from seesaw_cf.effects.estimands import toward_truth
from seesaw_cf.effects.means import ALL
from seesaw_cf.effects.permutations import LabelledContrasts
from seesaw_cf.report import Report, report
from seesaw_cf.stats.multiple import step_down
from seesaw_cf.study.declared import read_study

DECLARED = Path(__file__).with_name("study.yaml")
TABLES = KEPT / "tables"
NULL_REPORTS = 400
CELL = ["model", "records", "part"]

_LIMITS = ("low", "high")
_KEY = ("editor", "relation", "holds", "axis", "group")
_TEST = ("mirror", "scale", "value", *_LIMITS, "p", "p_adjusted", "p_equivalence", "detectable", "margin")
_LEVEL = ("before", "after", "value", *_LIMITS, "control_value", "difference", "difference_low", "difference_high")
_ODDS = ("log_odds", "log_odds_low", "log_odds_high")
_COUNTS = ("n", "n_edits", "n_people")
# Table -> (rows of a cell, columns that are kept).
_ROWS: Mapping[str, tuple[Callable[[Report], pd.DataFrame], Sequence[str]]] = {
    "efficacy": (
        cells.efficacy,
        ("editor", "relation", "n_edits", "pre", "pre_low", "pre_high", "post", "post_low", "post_high", "n"),
    ),
    "success": (lambda r: _success(r), ("editor", "measure", "value", *_LIMITS, "n_edits", "n")),
    "accuracy": (
        cells.accuracy,
        ("editor", "edit_relation", "effect_relation", "pre", "post", "lost", "gained", "change", *_LIMITS, "p", "n"),
    ),
    "levels": (
        cells.levels,
        (
            "level",
            "scale",
            "decides",
            "editor",
            "control",
            *_LEVEL,
            "p",
            "p_adjusted",
            "half_edits",
            "margin",
            "verdict",
            "rule",
            *_COUNTS,
        ),
    ),
    "contrasts": (
        cells.contrasts,
        (*_KEY, *_TEST, "verdict", *_COUNTS),
    ),
    "decided": (
        lambda r: _affected(r),
        (*_KEY, *_TEST, "verdict", *_COUNTS),
    ),
    "excess": (
        cells.excess,
        ("editor", "control", "relation", "holds", "axis", "group", *_ODDS, "log_odds_p", "value", *_LIMITS, "p", "n"),
    ),
    "before": (lambda r: _before(r), ("relation", "holds", "prompts", "people", "ahead", "log_odds", "median_p")),
    "null": (lambda r: _null(r), ("editor", "reports", "false", "tests")),
    "verdicts": (lambda r: _verdicts(r), ("editor", *VERDICTS)),
    "runs": (
        lambda r: _run(r),
        (
            "edits",
            "cases",
            "prompts",
            "people",
            "score_rows",
            "unscored",
            "noise_floor_log_odds",
            "model_fingerprint",
            "data_sha256",
        ),
    ),
}
LAST = "runs"
"""The table that is written last: a look in it is in all."""
_NEWEST = ("contrasts", "excess")
"""Tables of groups, which are long: they have each editor's newest tested look alone."""
_PACKED = (*_NEWEST, "accuracy", "before", "success")
_TEST_COLUMNS = {"p", "p_adjusted", "verdict", "rule"}
"""Columns that are empty at a look which tests nothing."""
_TESTED = (*_NEWEST, "decided", "null", "verdicts")


def settings() -> AuditSettings:
    """Return what was declared for the first look."""
    return read_study(DECLARED).audit


def analyse(cell: tuple[str, str, str], look: Look, parts: Sequence[Path], is_last: bool) -> dict[str, pd.DataFrame]:
    """Return every table of a finished look.

    Args:
        cell: Model, look and editor.
        look: The look; its level is that of the tests, all else is declared in the study's file.
        parts: Kept cells.
        is_last: It is the newest tested look at the editor, of which long tables are kept.
    """
    tables = {}
    with tempfile.TemporaryDirectory() as folder:
        results = report(join(parts, Path(folder)), _settings_at(look, settings()))
        for name, (rows, columns) in _ROWS.items():
            if (name in _NEWEST and not is_last) or (name in _TESTED and not look.alpha):
                continue
            frame = rows(results)
            frame = frame[[column for column in columns if column in frame]]
            frame = frame if look.alpha else frame.assign(**dict.fromkeys(_TEST_COLUMNS & set(frame)))
            tables[name] = frame.assign(**dict(zip(CELL, cell)))[[*CELL, *frame.columns]]
    return tables


def _settings_at(look: Look, declared: AuditSettings) -> AuditSettings:
    """Return the settings at a look; no labels are permuted where nothing is tested."""
    return replace(declared, alpha=look.alpha) if look.alpha else replace(declared, permutations=0)


def _affected(made: Report) -> pd.DataFrame:
    """Return the contrasts with a verdict on a group, also those of looks whose other contrasts are not kept."""
    table = cells.contrasts(made)
    return table[table["verdict"].isin(AFFECTED)]


def _verdicts(made: Report) -> pd.DataFrame:
    """Return how many contrasts of each editor and control have each verdict, mirrored ones once."""
    table = cells.contrasts(made)
    own = table[~table["mirror"].astype(bool)]
    counts = pd.crosstab(own["editor"], own["verdict"]).reindex(columns=list(VERDICTS), fill_value=0)
    return counts.reset_index()


def _success(results: Report) -> pd.DataFrame:
    rows = [
        {"editor": editor, "measure": short, "n_edits": number.clusters.get("case", 0)}
        | number.columns("value", "low", "high", "n")
        for editor, success in results.run.success.items()
        for short, number in success.numbers.get("counterfact", {}).items()
    ]
    return pd.DataFrame(rows)


def _before(results: Report) -> pd.DataFrame:
    """Return what the model says of other people before any edit: of two answers, how often the held one is ahead."""
    if results.run.people is None:
        return pd.DataFrame()
    own = results.run.people[
        (results.run.people["editor"] == results.run.editors[0]) & (results.run.people["status"] == "ok")
    ]
    sign = np.where(own["holds"] == "target_new", 1.0, -1.0)
    held = own["pre_new"].where(own["holds"] == "target_new", own["pre_true"])
    own = own.assign(
        ahead=(sign * (own["pre_new"] - own["pre_true"]) > 0).astype(float),
        odds=sign * (own["pre_new"] - own["pre_true"]),
        p=np.exp(held),
    )
    rows = pd.concat([own.assign(edit_relation=ALL), own])
    return (
        rows.groupby(["edit_relation", "holds"], sort=True)
        .agg(
            prompts=("p", "size"),
            people=("person", "nunique"),
            ahead=("ahead", "mean"),
            log_odds=("odds", "mean"),
            median_p=("p", "median"),
        )
        .reset_index(names=["relation", "holds"])
    )


def _run(results: Report) -> pd.DataFrame:
    prompts, manifest = results.run.people, results.run.manifest
    own = prompts[prompts["editor"] == results.run.editors[0]] if prompts is not None else pd.DataFrame()
    return pd.DataFrame(
        [
            {
                "edits": len(results.run.distinct) // max(len(results.run.editors), 1),
                "cases": manifest["data"]["cases"],
                "prompts": len(own),
                "people": own["person"].nunique() if len(own) else 0,
                "score_rows": results.run.n_rows,
                "unscored": int(results.run.unscored["n_rows"].sum()) if len(results.run.unscored) else 0,
                "noise_floor_log_odds": results.run.floor.log_odds,
                "model_fingerprint": manifest["model"]["fingerprint"],
                "data_sha256": manifest["data"]["sha256"],
            }
        ]
    )


def _null(results: Report) -> pd.DataFrame:
    """Return in how many reports of permuted labels some contrast of the editor has a corrected p below the level.

    Half of the permutations are the reports, the other half their reference.
    """
    if results.run.people is None or results.settings.permutations == 0:
        return pd.DataFrame()
    declared, verdicts = results.settings, cells.contrasts(results)
    usable = toward_truth(results.run.people)
    usable = usable[(usable["status"] == "ok") & usable["holds"].isin(HOLDERS)]
    rows = []
    for editor in (name for name in results.run.editors if not is_control(name)):
        table = verdicts[verdicts["editor"] == editor].reset_index(drop=True)
        drawn = LabelledContrasts(usable[usable["editor"] == editor], table).drawn(2 * NULL_REPORTS, seed=1)
        reports, reference = drawn[:NULL_REPORTS], drawn[NULL_REPORTS:]
        tests = np.isfinite(table["p"].to_numpy()) & ~table["mirror"].to_numpy(bool)
        if not tests.any():
            continue
        false = [np.nanmin(step_down(np.where(tests, own, np.nan), reference)) < declared.alpha for own in reports]
        rows.append({"editor": editor, "reports": len(reports), "false": sum(false), "tests": int(tests.sum())})
    return pd.DataFrame(rows)


def table_file(name: str) -> Path:
    """Return the file of a table."""
    return TABLES / f"{name}.csv{'.xz' * (name in _PACKED)}"


def read_tables() -> dict[str, pd.DataFrame]:
    """Return the written tables."""
    return {name: pd.read_csv(table_file(name), keep_default_na=False, na_values=[""]) for name in _ROWS}


def _write(name: str, table: pd.DataFrame) -> None:
    text = table.to_csv(index=False, float_format="%.6g").encode()
    with atomic_path(table_file(name)) as file:
        file.write_bytes(lzma.compress(text, preset=9 | lzma.PRESET_EXTREME) if name in _PACKED else text)


def _text(name: str) -> pd.DataFrame:
    """Return a written table as text; one that is not there yet has no rows."""
    if not table_file(name).exists():
        return pd.DataFrame(columns=CELL, dtype=str)
    return pd.read_csv(table_file(name), dtype=str, keep_default_na=False)


def _as_text(table: pd.DataFrame) -> pd.DataFrame:
    return pd.read_csv(io.StringIO(table.to_csv(index=False, float_format="%.6g")), dtype=str, keep_default_na=False)


def merged(name: str, old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return a table of text with new looks in their places; of long tables the older looks at the same editor go."""
    order = {(model, look.name, editor): place for place, (model, look, editor, _) in enumerate(finished_looks(KEPT))}
    same = ["model", "part"] if name in _NEWEST else CELL
    replaced = pd.MultiIndex.from_frame(old[same]).isin(pd.MultiIndex.from_frame(new[same]))
    both = pd.concat([old[~replaced], new]).fillna("")
    places = [order[cell] for cell in both[CELL].itertuples(index=False, name=None)]
    return both.iloc[np.argsort(places, kind="stable")]


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--new", action="store_true", help="add the looks that the tables lack")
    given = parser.parse_args()
    for name in () if given.new else _ROWS:
        table_file(name).unlink(missing_ok=True)
    known = set(_text(LAST)[CELL].itertuples(index=False, name=None))
    looks = {(model, look.name, editor): (look, parts) for model, look, editor, parts in finished_looks(KEPT)}
    last = {(model, editor): look for (model, _, editor), (look, _) in looks.items() if look.alpha}
    for cell in tqdm([cell for cell in looks if cell not in known], unit="look"):
        model, _, editor = cell
        look, parts = looks[cell]
        is_last = last[model, editor] == look
        for name, table in analyse(cell, look, parts, is_last).items():
            _write(name, merged(name, _text(name), _as_text(table)))


if __name__ == "__main__":
    main()
