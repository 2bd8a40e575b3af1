"""The page of the study is what its kept tables give."""

from benchmarks.study.page import KEPT, PAGE, page


def test_the_page_is_made_from_the_tables() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(KEPT)
    assert "__" not in PAGE.read_text(encoding="utf-8")
