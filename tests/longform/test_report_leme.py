"""Analyses of long form: golden values with their derivation, and laws."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from seesaw_cf.effects.texts import LABELS
from seesaw_cf.errors import RecordError
from seesaw_cf.texts.report.leme import claim_rows, drift_rows, edit_kinds, kind_differences, leme_frame, short_values
from seesaw_cf.texts.report.rows import (
    correlations,
    frame_of,
    label_tests,
    lower_tests,
    mean_rows,
    pearson_statistics,
    weighted_spearman,
)
from seesaw_cf.texts.tables import EDITS, coded

from .analysis_samples import annotated, passages, ratings, scores, table

LABEL = st.sampled_from([*LABELS, None])


def only(frame: pd.DataFrame, **where: object) -> Any:
    """The one row with these values."""
    for name, value in where.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1, frame
    return frame.iloc[0]


def rated(*given: pa.Table) -> pd.DataFrame:
    return coded("ratings", pa.concat_tables(given))


def means(values: pd.DataFrame) -> pd.DataFrame:
    return frame_of(mean_rows("rating", values))


def drift(given: pa.Table) -> Any:
    """Rows with what was lost beside what is contradicted more."""
    frame = frame_of(drift_rows(coded("annotations", given)))
    if frame.empty:
        return frame
    more, lost = (frame[frame["what"] == what] for what in ("contradicted_more", "support_lost"))
    return more.merge(lost[["editor", "value", "n"]], on="editor", suffixes=("", "_lost"))


def chi_square(given: pa.Table, draws: int = 1000) -> pd.DataFrame:
    return frame_of(label_tests(coded("annotations", given), draws=draws))


def correlated(long: pd.DataFrame, short: pd.DataFrame, draws: int = 1000) -> pd.DataFrame:
    return frame_of(correlations(long, short, draws=draws))


def test_a_case_weighs_one_whatever_its_number_of_ratings() -> None:
    """Case 0 has ratings 7, 7, 1 (mean 5), cases 1 to 5 have 3: mean of case means (5 + 5 * 3) / 6 = 10 / 3."""
    row = only(means(rated(*(ratings({"memit": own}) for own in ([7.0, 3, 3, 3, 3, 3, None], [7.0], [1.0])))))
    assert row["value"] == pytest.approx(10 / 3)
    assert (row["n"], row["n_edits"], row["n_missing"]) == (8, 6, 1)
    assert row["low"] < row["value"] < row["high"]
    assert row["sd"] == pytest.approx(np.std([7, 7, 1, 3, 3, 3, 3, 3], ddof=1))


def test_wilcoxon_golden() -> None:
    """Six cases, all lower, no ties: of 2^6 sign patterns only the seen one is as low: 1/64. Holm over two: 1/32."""
    base = [7.0, 6, 7, 6, 7, 6]
    lower = {"none": base, "rome": [x - 1 - n / 10 for n, x in enumerate(base)], "mend": [*base[:5], 7.0]}
    found = frame_of(lower_tests("lower", rated(ratings(lower))))
    rome, mend = only(found, editor="rome"), only(found, editor="mend")
    assert rome["p"] == pytest.approx(1 / 64)
    assert rome["p_adjusted"] == pytest.approx(1 / 32)
    assert rome["value"] == pytest.approx(-1.25)
    assert (rome["n_edits"], rome["n_equal"]) == (6, 0)
    assert (mend["p"], mend["n_equal"]) == (1.0, 5)
    same = only(frame_of(lower_tests("lower", rated(ratings({"none": base, "ft": base})))))
    assert np.isnan(same["p"])
    assert same["note"] == "no case differs"


def test_label_shares_golden() -> None:
    found = frame_of(
        claim_rows(coded("annotations", annotated({"rome": ["contradicts"] * 3 + ["supports"] * 5 + [None]})))
    )
    against = only(found, answer="contradicts")
    assert (against["value"], against["n"], against["n_missing"]) == (pytest.approx(3 / 8), 8, 1)
    assert found["value"].sum() == pytest.approx(1)
    with pytest.raises(RecordError, match=r"outside supports, neutral, contradicts, first 'entails'"):
        coded("annotations", annotated({"rome": ["entails"]}))


def test_factual_drift_golden() -> None:
    """Eight facts supported before; after the edit two of them are contradicted: drift 2/8, lost 2/8."""
    found = drift(
        annotated({"none": ["supports"] * 8, "rome": ["contradicts"] * 2 + ["supports"] * 6, "ft": ["neutral"] * 8})
    )
    rome, ft = only(found, editor="rome"), only(found, editor="ft")
    assert (rome["value"], rome["value_lost"], rome["n_lost"]) == pytest.approx((0.25, 0.25, 8))
    assert (ft["value"], ft["value_lost"], ft["n_edits"]) == (0, 0, 8)
    alike = only(frame_of(claim_rows(coded("annotations", annotated({"x": ["neutral"] * 6})))), answer="neutral")
    assert (alike["low"], alike["high"]) == pytest.approx((0.05 ** (1 / 6), 1.0))  # all 6 alike have a chance of 5 %
    assert drift(annotated({"none": ["supports"]})).empty


@pytest.mark.slow
@settings(max_examples=12)
@given(st.lists(st.tuples(LABEL, LABEL), min_size=1, max_size=12))
def test_exchanging_before_and_after_flips_the_drift(labels: list[tuple[str | None, str | None]]) -> None:
    before, after = ([pair[side] for pair in labels] for side in (0, 1))
    tables = [annotated({"none": one, "rome": two}) for one, two in ((before, after), (after, before))]
    there, back = (drift(one) for one in tables)
    assert len(there) == len(back) == 1
    assert there["n_missing"].item() == back["n_missing"].item() == sum(pair.count(None) for pair in labels)
    if there["n_edits"].item():
        assert there["value"].to_numpy() == pytest.approx(-back["value"].to_numpy(), nan_ok=True)


def test_chi_square_golden() -> None:
    """Table [[30, 10, 0], [10, 20, 10]] over 40 cases: expected 20, 15, 5 twice; chi2 = 10 + 10/3 + 10 = 70/3."""
    one = ["supports"] * 30 + ["contradicts"] * 10
    two = ["supports"] * 10 + ["contradicts"] * 20 + ["neutral"] * 10
    row = only(chi_square(annotated({"mend": one, "rome": two}), draws=500))
    assert row["value"] == pytest.approx(70 / 3)
    assert (row["df"], row["n"], row["n_edits"]) == (2, 80, 40)
    assert row["p_paper"] == pytest.approx(stats.chi2.sf(70 / 3, 2))
    assert row["p"] == row["p_adjusted"] < 0.01
    same = only(chi_square(annotated({"mend": one, "rome": one}), draws=100))
    assert (same["value"], same["p"]) == (0, 1)
    equal = only(chi_square(annotated({"mend": ["neutral"] * 6, "rome": ["neutral"] * 6})))
    assert np.isnan(equal["p"])
    assert "fewer than two labels" in equal["note"]


def test_claims_of_one_case_are_not_independent() -> None:
    """Two cases with forty equal claims each: thousands to one for the paper's test, nothing to say by cases."""
    rows = [
        row
        for claim in range(40)
        for row in annotated(
            {"mend": ["supports", "supports"], "rome": ["contradicts", "contradicts"]}, claim_id=f"P{claim}"
        ).to_pylist()
    ]
    found = only(chi_square(table(annotated({}).schema, rows), draws=400))
    assert found["p_paper"] < 1e-9
    assert found["p"] > 0.3  # all four exchanges are equally likely, two of them are as extreme


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=3))
def test_the_statistic_of_the_exchanges_is_pearsons(columns: list[tuple[int, int]]) -> None:
    counts = np.array(columns).T
    if (counts.sum(axis=0) > 0).all() and (counts.sum(axis=1) > 0).all():
        expected = stats.chi2_contingency(counts, correction=False).statistic
        assert pearson_statistics(counts[None, 0], counts[None, 1])[0] == pytest.approx(expected)


def values_of(method: str, metric: str, numbers: list[float]) -> pd.DataFrame:
    return pd.DataFrame({"editor": method, "case_id": range(len(numbers)), "asked": metric, "value": numbers})


@pytest.mark.slow
@settings(max_examples=15)
@given(st.lists(st.integers(-50, 50), min_size=6, max_size=15, unique=True), st.integers(0, 5))
def test_rank_correlation_is_scipys_and_blind_to_monotone_changes(numbers: list[int], shift: int) -> None:
    other = [float((n * 7 + shift) % 11) for n in numbers]
    long, short = values_of("ft", "edit", list(map(float, numbers))), values_of("ft", "locality", other)
    row = only(correlated(long, short, draws=50))
    if len(set(other)) > 1:
        assert row["value"] == pytest.approx(stats.spearmanr(numbers, other).statistic)
        assert row["p_paper"] == pytest.approx(stats.spearmanr(numbers, other).pvalue)
        curved = correlated(long.assign(value=np.exp(long["value"] / 20)), short, draws=50)
        flipped = correlated(long.assign(value=-long["value"]), short, draws=50)
        assert only(curved)["value"] == pytest.approx(row["value"])
        assert only(flipped)["value"] == pytest.approx(-row["value"])


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 3)), min_size=3, max_size=9))
def test_a_row_that_counts_twice_is_there_twice(rows: list[tuple[int, int, int]]) -> None:
    x, y, counts = (np.array(column, float) for column in zip(*rows, strict=True))
    repeated = [np.repeat(column, counts.astype(int)) for column in (x, y)]
    if all(len(set(column)) > 1 for column in repeated):
        found = weighted_spearman(x, y, counts[None])[0]
        assert found == pytest.approx(stats.spearmanr(repeated[0], repeated[1]).statistic)


def test_correlations_are_corrected_and_cases_are_clusters() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=40)
    once = [values_of("ft", "edit", list(x)), values_of("ft", "portability", list(x + rng.normal(size=40)))]
    long, short = (pd.concat([one.assign(editor=name) for name in "abcd"]) for one in once)
    noise = short.assign(asked="locality", value=np.tile(rng.normal(size=40), 4))
    found = correlated(long, pd.concat([short, noise]), draws=300)
    real = only(found, reference="portability")
    assert real["n"] == 160
    assert real["n_edits"] == 40
    assert real["low"] < real["value"] < real["high"]
    assert real["p_paper"] < real["p"] < 0.05, "four copies of a case are one case"
    assert real["p_adjusted"] == pytest.approx(2 * real["p"])
    assert found["p_adjusted"].between(found["p"], 1).all()
    one_value = only(correlated(long.assign(value=1.0), short))
    assert (np.isnan(one_value["value"]), one_value["note"]) == (True, "a measure has one value only")
    assert only(correlated(values_of("ft", "edit", [1.0]), values_of("ft", "x", [1.0])))["n"] == 1


SCORED = [
    ("ft", 0, "efficacy", "target_true", "pre", True),
    ("ft", 0, "efficacy", "target_new", "pre", False),
    ("ft", 0, "efficacy", "target_new", "post", True),
    ("ft", 0, "efficacy", "target_true", "post", False),
    ("ft", 0, "paraphrase", "target_new", "post", False),
    ("ft", 0, "neighborhood", "target_true", "pre", False),
    ("ft", 0, "neighborhood", "target_true", "post", False),
    ("ft", 1, "efficacy", "target_true", "pre", False),
    ("ft", 1, "efficacy", "target_new", "pre", True),
    ("ft", 2, "efficacy", "target_true", "pre", True),
    ("ft", 2, "efficacy", "target_new", "pre", False),
]


def test_short_form_and_kinds_from_scores() -> None:
    short = short_values(scores(SCORED))
    assert dict(zip(short["asked"], short["value"], strict=True)) == {
        "edit_success": 1,
        "generalization": 0,
        "ground_truth": 0,
        "locality": 1,  # wrong before and after: unchanged
    }
    kinds = edit_kinds(scores(SCORED), [2])
    assert kinds["kind"].tolist() == ["updating", "injection", "correction"]
    assert kinds["already_true"].tolist() == [False, True, False]


def test_shares_of_kinds_as_in_table_14() -> None:
    """8 of 100 edits update a fact the model held; 2 of 100 were already true."""
    rows = [
        ("ft", case, "efficacy", role, "pre", case < known)
        for case in range(100)
        for role, known in (("target_true", 8), ("target_new", 2))
    ]
    frame = leme_frame(passages({}), scores=scores(rows))
    shares = frame[frame["what"] == "edit_kind"]
    assert dict(zip(shares["asked"], shares["value"], strict=True)) == {"fact update": 0.08, "already true": 0.02}
    assert (shares["low"] < shares["value"]).all()
    assert shares["n"].tolist() == [100, 100]


def test_differences_between_kinds() -> None:
    """Counterfactual cases 0-5 update (rating 2), 6-11 inject (5); factual 12-17 correct (7), 18-23 inject (4)."""
    knew = {case: case % 12 < 6 for case in range(24)}
    rows = [("ft", case, "efficacy", "target_true", "pre", held) for case, held in knew.items()]
    rows += [("ft", case, "efficacy", "target_new", "pre", case == 0) for case in range(24)]
    kinds = edit_kinds(scores(rows), range(12, 24))
    wiggle = [0.0, 0.1, -0.1, 0.2, -0.2, 0.0]
    numbers = [value + extra for value in (2, 5, 7, 4) for extra in wiggle]
    found = frame_of(kind_differences("by_kind", values_of("memit", "edit", numbers), kinds))
    update, correction = only(found, reference="updating"), only(found, reference="correction")
    assert update["value"] == pytest.approx(-3)
    assert correction["value"] == pytest.approx(3)
    assert (update["n_first"], update["n_second"]) == (6, 6)
    assert update["high"] < 0 < correction["low"]
    already = only(found, reference="already_true")
    assert (already["n_first"], already["n_second"]) == (1, 23)
    assert already["note"].startswith("too few cases: 1 in the first, 5 needed (1.0 effective)")
    assert np.isnan(already["p"])


def test_settings_of_one_run_are_kept_apart_in_every_table() -> None:
    """Ratings and labels of cases 0-5 (factual) and 6-11 (counterfactual) differ: no number may mix them."""
    settings = {case: ("zsre factual", "zsre counterfactual")[case > 5] for case in range(12)}
    edits = table(EDITS, [{"editor": "memit", "case_id": case, "dataset": name} for case, name in settings.items()])
    texts = passages(*({"case_id": case} for case in settings))
    given = ratings({"none": [4.0] * 12, "memit": [6.0] * 6 + [2.0] * 6})
    marked = annotated({"none": ["neutral"] * 12, "memit": ["supports"] * 6 + ["contradicts"] * 6})
    held = [
        ("memit", case, "efficacy", role, phase, (role == "target_new") == (phase == "post"))
        for case in settings
        for role in ("target_new", "target_true")
        for phase in ("pre", "post")
    ]
    simple = pd.DataFrame({"editor": "memit", "case_id": list(settings), "asked": "m", "value": 1.0})
    frame = leme_frame(texts, given, marked, scores=scores(held), factual=range(6), edits=edits, simple=simple)
    assert set(frame.loc[frame["dataset"].isna(), "what"]) == {"rating_together"}
    after = frame[frame["editor"] == "memit"]
    survey = after[after["what"] == "rating"].set_index("dataset")["value"].to_dict()
    assert survey == pytest.approx({"zsre factual": 6.0, "zsre counterfactual": 2.0}), "Tables 12 and 13"
    assert after.loc[after["what"] == "rating_together", "value"].tolist() == pytest.approx([4.0]), "Table 1"
    updates = frame[(frame["what"] == "edit_kind") & (frame["asked"] == "fact update")]
    assert updates.set_index("dataset")["answer"].to_dict() == {name: name.split()[1] for name in settings.values()}
    alone = leme_frame(texts, given, edits=edits.slice(0, 6))
    assert alone["dataset"].isna().all(), "one data set needs no name"
