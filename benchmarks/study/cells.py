"""The tables of the study's page from the frame of a report, under the names that its kept tables have."""

from __future__ import annotations

import pandas as pd

from seesaw_cf.report import Report

VERDICTS = ("worse off", "better off", "equivalent", "undetermined", "not testable")
AFFECTED = VERDICTS[:2]
HOLDS = {"old": "target_true", "new": "target_new", "": ""}
LEVELS = {
    "worse": "worse than its control",
    "slightly_worse": "a little worse than its control",
    "better": "better than its control",
    "no_worse": "no more than its control",
    "undecided": "undetermined",
    "too_few": "not testable",
    "no_control": "no control",
    "": "",
}
GROUPS = dict(
    zip(("hit_harder", "hit_less", "equal", "undecided", "too_few"), VERDICTS, strict=True), slightly_harder=VERDICTS[0]
)
_EVERYBODY = ["about", "true_answer", "editor", "scale"]


def frame_of(made: Report) -> pd.DataFrame:
    """Return the frame with the column `holds`."""
    return made.frame.assign(holds=made.frame["true_answer"].map(HOLDS))


def levels(made: Report) -> pd.DataFrame:
    """Return what happened to everybody: one row per level, scale, editor and control."""
    frame = frame_of(made)
    own = frame[(frame["relation"] == "all") & (frame["axis"] == "all") & (frame["about"] != "edited_fact")]
    change = own[own["what"] == "change"]
    states = own[own["what"].isin(("before", "after"))]
    states = states.pivot(index=["about", "true_answer", "editor"], columns="what", values="value").reset_index()
    out = change.drop(columns="control").merge(states, how="left", on=["about", "true_answer", "editor"])
    names = {"value": "difference", "low": "difference_low", "high": "difference_high", "note": "rule"}
    pairs = own[(own["what"] == "beyond") & own["control"].isin([control for _, control in made.run.controls])]
    beyond = pairs[[*_EVERYBODY, "control", *names, "p", "p_adjusted", "verdict"]].rename(columns=names)
    out = out.drop(columns=["p", "p_adjusted", "verdict", "note"]).merge(beyond, how="left", on=_EVERYBODY)
    beside = change[[*_EVERYBODY, "value"]].rename(columns={"editor": "control", "value": "control_value"})
    out = out.merge(beside, how="left", on=["about", "true_answer", "control", "scale"])
    level = out["holds"].where(out["about"] == "other_people", "other_facts")
    return out.assign(level=level, verdict=out["verdict"].fillna("").map(LEVELS), control=out["control"].fillna(""))


def contrasts(made: Report) -> pd.DataFrame:
    """Return the contrasts of groups on the scale that decides."""
    frame = frame_of(made)
    rows = frame[(frame["what"] == "contrast") & frame["decides"].astype(bool)]
    return rows.assign(verdict=rows["verdict"].map(GROUPS))


def excess(made: Report) -> pd.DataFrame:
    """Return what is beyond the control in every group: D and log-odds side by side."""
    frame = frame_of(made)
    rows = frame[(frame["about"] == "other_people") & (frame["what"] == "beyond") & (frame["group"] != "unknown")]
    rows = rows[rows["control"].isin([control for _, control in made.run.controls])]
    keys = ["editor", "control", "relation", "holds", "axis", "group"]
    d, odds = (rows[rows["scale"] == scale].set_index(keys) for scale in ("probability", "log-odds"))
    out = d[["value", "low", "high", "p", "n"]].assign(log_odds=odds["value"])
    for end in ("low", "high", "p"):
        out[f"log_odds_{end}"] = odds[end]
    return out.reset_index()


def efficacy(made: Report) -> pd.DataFrame:
    """Return the shares of edits whose new answer is the likelier one."""
    parts = {"pre": "efficacy_before", "post": "efficacy_after"}
    keys, frame = ["editor", "relation"], made.frame
    wide = [
        frame[frame["what"] == what].set_index(keys)[["value", "low", "high", "n"]].add_prefix(f"{phase}_")
        for phase, what in parts.items()
    ]
    out = pd.concat(wide, axis=1).rename(columns={"pre_value": "pre", "post_value": "post", "post_n": "n"})
    edits = frame[frame["what"] == "raised"].set_index(keys)["n_edits"]
    return out.assign(n_edits=edits).reset_index()


def accuracy(made: Report) -> pd.DataFrame:
    """Return how many other facts were right before and after, by pair of relations."""
    names = {"right_before": "pre", "right_after": "post", "right_change": "change", "lost": "lost", "gained": "gained"}
    keys, frame = ["editor", "relation", "asked"], made.frame
    values = frame[frame["what"].isin(names)].pivot(index=keys, columns="what", values="value").rename(columns=names)
    change = frame[frame["what"] == "right_change"].set_index(keys)[["low", "high", "p", "n"]]
    return values.join(change).reset_index(names=["editor", "edit_relation", "effect_relation"])
