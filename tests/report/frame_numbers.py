"""The rows of a report's frame under the names of the frozen numbers, see goldens/README.md."""

import pandas as pd

from seesaw_cf.effects.means import ALL
from tests.report.frozen import COUNTS, FLOATS, KEYS

_HOLDS = {"old": "target_true", "new": "target_new", "": ""}
_LEVELS = {
    "worse": "worse than its control",
    "better": "better than its control",
    "no_worse": "no more than its control",
}
_BOTH = {"undecided": "undetermined", "too_few": "not testable", "no_control": "no control", "": ""}
_LIMITS = ["value", "low", "high"]
_RIGHT = {"right_before": "right pre", "right_after": "right post", "right_change": "right change"}
_RIGHT |= {"right_by_chance": "right chance", "right_by_constant": "right majority"}
_RIGHT |= {"lost": "right lost", "gained": "right gained"}
_RIGHT |= dict.fromkeys(("right_share", "right_log_odds"), "right answers")
_EDITED = {"efficacy_before": "took pre", "efficacy_after": "took post", "raised": "took raised"}
_EDITED |= {f"counterfact {name}": name for name in ("ES", "PS", "NS")}


def frame_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Return what the frame and the frozen numbers both have, in the form of `tests.report.frozen.numbers`."""
    frame = frame.rename(columns={"control": "beside"}).assign(holds=frame["true_answer"].map(_HOLDS))
    frame.loc[frame["about"] == "other_facts", "holds"] = "other_facts"
    parts = [*_levels(frame), *_groups(frame), _contrasts(frame), *_shares(frame)]
    table = pd.concat(parts, ignore_index=True).reindex(columns=[*KEYS, *FLOATS, *COUNTS, "verdict"])
    table[KEYS] = table[KEYS].fillna("").astype(str)
    return table.set_index(KEYS)


def _levels(frame: pd.DataFrame) -> list[pd.DataFrame]:
    rows = frame[(frame["relation"] == ALL) & (frame["axis"] == ALL) & (frame["about"] != "edited_fact")]
    rows = rows[(rows["scale"] != "share") | (rows["about"] == "other_facts")]
    keys = ["editor", "beside", "holds", "scale"]
    beyond = rows[(rows["what"] == "beyond") & rows["beside"].str.contains("(", regex=False)]
    beyond = beyond[[*keys, *_LIMITS, "p", "p_adjusted", "margin", "verdict"]]
    beyond = beyond.assign(what="level beyond control", verdict=beyond["verdict"].map(_LEVELS | _BOTH))
    counts = ["n", "n_edits", "n_people", "half_edits"]
    change = rows.loc[rows["what"] == "change", ["editor", "holds", "scale", *_LIMITS, *counts]]
    of = beyond[["editor", "beside"]].drop_duplicates()
    beside = change.merge(of, how="left", on="editor").fillna({"beside": ""})
    control = of.merge(change.rename(columns={"editor": "beside"}), on="beside")[[*keys, *_LIMITS]]
    return [beside.assign(what="level"), control.assign(what="level of control"), beyond]


def _groups(frame: pd.DataFrame) -> list[pd.DataFrame]:
    people = frame[(frame["about"] == "other_people") & (frame["relation"] != ALL)]
    keys = ["editor", "relation", "axis", "group", "holds", "scale"]
    numbers = [*_LIMITS, "stderr", "df", "p", "n_edits", "n_people", "half_edits"]
    change = people[people["what"] == "change"]
    first = change["scale"] == "probability"
    change = change[[*keys, *numbers, "n"]].assign(what="change")
    change.loc[~first, ["n", "n_edits", "n_people"]] = float("nan")
    states = [people[people["what"] == name][[*keys[:-1], "value"]].assign(what=name) for name in ("before", "after")]
    beyond = people[(people["what"] == "beyond") & (people["holds"] == "target_new")]
    beyond = beyond[beyond["group"] != "unknown"].drop(columns="holds")
    control = beyond["beside"].str.contains("(", regex=False)
    beyond = beyond.assign(what=control.map({True: "beyond control", False: "editors"}))
    beyond = beyond[[*(name for name in keys if name != "holds"), "beside", "what", *_LIMITS, "stderr", "df", "p"]]
    return [change, *states, beyond]


def _contrasts(frame: pd.DataFrame) -> pd.DataFrame:
    rows = frame[(frame["what"] == "contrast") & frame["decides"].astype(bool)]
    verdicts = rows["verdict"].map({"hit_harder": "worse off", "hit_less": "better off", "equal": "equivalent"} | _BOTH)
    return rows[[*KEYS, *FLOATS, "n", "n_edits", "n_people"]].assign(verdict=verdicts)


def _shares(frame: pd.DataFrame) -> list[pd.DataFrame]:
    parts = []
    facts = frame[frame["what"].isin(_RIGHT)]
    facts = facts.assign(relation=facts["relation"] + "/" + facts["asked"])
    tested = {"right_change": "", "right_share": "share", "right_log_odds": "log-odds"}
    for what, name in _RIGHT.items():
        numbers = [*_LIMITS, "p"] if what in tested else _LIMITS
        rows = facts.loc[facts["what"] == what, ["editor", "relation", *numbers]]
        parts.append(rows.assign(what=name, scale=tested.get(what, "")))
    for what, name in _EDITED.items():
        rows = frame[frame["what"] == what]
        relation = rows["relation"].where(~rows["what"].str.startswith("counterfact"), "")
        parts.append(rows[["editor", *_LIMITS]].assign(what=name, relation=relation))
    return parts
