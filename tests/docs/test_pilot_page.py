"""The page of the pilot is what its kept tables give, and its findings are true of them."""

import re

import pandas as pd

from benchmarks.pilot.page import KEPT, PAGE, page
from seesaw_cf.stats.verdicts import AFFECTED, EARLIER

LOCATING = ("rome", "memit", "emmet", "alphaedit")


def test_the_page_is_made_from_the_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(KEPT)
    assert "__" not in PAGE.read_text(encoding="utf-8")


def test_every_table_of_reach_begins_with_the_unedited_model() -> None:
    rows = re.findall(r"^\| model \|.*\n\|.*\n\| (\w+) \| (\d\.\d\d)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [("unedited", "0.33")] * 2  # 12 of 36 and 3 of 9
    assert not re.search(r"\[(\S+), \1\]", PAGE.read_text(encoding="utf-8")), "an interval without width"


def test_the_findings_hold_for_sample_and_released_records() -> None:
    excess = pd.read_csv(KEPT / "excess.csv").set_index(["records", "editor"])

    def ends(records: str, *editors: str) -> list[float]:
        values = excess.loc[[(records, editor) for editor in editors]]["log_odds"]
        return [round(value, 1) for value in (values.min(), values.max())]

    assert [ends(records, "mend") for records in ("sample", "released")] == [[9.1, 11.8], [9.3, 24.4]]
    assert [ends(records, *LOCATING) for records in ("sample", "released")] == [[-0.1, 0.5], [0.1, 0.5]]
    assert ends("sample", "ft", "lora") == [0.6, 1.7]
    released = excess.loc["released"].query("relation == 'P27'")["log_odds"]
    assert (released["ft"], released["lora"], released["mend"]) == (10.15, 9.634, 10.13)
    away = excess.query("log_odds_low > 0 or log_odds_high < 0").groupby("editor")["relation"].agg(list)
    both = ["P103", "P19"]
    assert away.to_dict() == {"alphaedit": both, "ft": ["P19"], "lora": ["P19"], "memit": both, "mend": both}
    verdicts = pd.read_csv(KEPT / "verdicts.csv").replace({"verdict": EARLIER})
    verdicts = verdicts[verdicts["verdict"].isin(AFFECTED)]
    assert set(verdicts["editor"]) == {"random(mend)"}
