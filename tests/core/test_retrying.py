"""One loop of tries: how often, how long between, and what ends it."""

from __future__ import annotations

import pytest

from seesaw_cf.base.retrying import TryAgain, try_again


class Server:
    """Fails as told, then answers."""

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.asked = 0

    def __call__(self) -> str:
        self.asked += 1
        if self.failures:
            raise self.failures.pop(0)
        return "answer"


def test_pauses_grow_unless_the_server_says_how_long() -> None:
    waited: list[float] = []
    server = Server(TryAgain("busy"), TryAgain("busy", wait=7.0), TryAgain("busy"))
    assert try_again(server, 4, lambda tried: 2.0**tried, waited.append) == "answer"
    assert waited == [1.0, 7.0, 4.0]


def test_the_last_failure_is_raised_after_so_many_tries() -> None:
    waited: list[float] = []
    server = Server(*(TryAgain(f"no {number}") for number in range(5)))
    with pytest.raises(TryAgain, match=r"^no 2$"):
        try_again(server, 3, lambda tried: 0.5, waited.append)
    assert (server.asked, waited) == (3, [0.5, 0.5])
    only = Server(TryAgain("no"))
    with pytest.raises(TryAgain, match=r"^no$"):
        try_again(only, 1, lambda tried: 0.5, waited.append)
    assert (only.asked, len(waited)) == (1, 2)


def test_a_failure_that_is_final_and_any_other_error_end_it_at_once() -> None:
    for failure in (TryAgain("silent again", last=True), KeyError("bug")):
        server = Server(failure)
        with pytest.raises(type(failure)):
            try_again(server, 9, lambda tried: 0.0, lambda seconds: pytest.fail("waited"))
        assert server.asked == 1
