"""API models over real HTTP: a real server, a real model, real faults; what was written is kept and asked once."""

import json
import logging
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from seesaw_cf.errors import RecordError, ServiceError
from seesaw_cf.generation import Ask, CachedGenerator, Completion, HFGenerator, Message, OpenAIGenerator, Sampling
from tests.fakes import tiny_tokenizer, trained_model
from tests.generation.models import chat_model, chat_tokenizer
from tests.generation.server import KEY, Fault, OpenAIServer

GREEDY = Sampling(max_new_tokens=8, temperature=0)
TURN = (Message("user", "Marie Curie was born in Kraków.\nRating:"),)


def generator(server: OpenAIServer, **options: object) -> OpenAIGenerator:
    settings = {"wait": 0.001, "timeout": 20.0, "tries": 3, **options}
    return OpenAIGenerator(server.url, "tiny", **settings)  # type: ignore[arg-type]


@pytest.mark.slow
def test_chat_and_plain_prompts_give_what_the_model_writes(openai_server: OpenAIServer) -> None:
    asks = [Ask(TURN, 3), Ask("Marie Curie was born in", 4), Ask(TURN, 3)]
    sampling = Sampling(max_new_tokens=8, temperature=0.7, top_k=0, top_p=0.9)
    found = generator(openai_server).generate(asks, sampling)
    local = HFGenerator(chat_model(), chat_tokenizer()).generate(asks, sampling)
    assert [c.text for c in found] == [c.text for c in local]
    assert found[0].text.startswith(" Rating: ")
    assert (found[0].prompt_tokens, found[0].new_tokens) == (local[0].prompt_tokens, local[0].new_tokens)
    assert len(openai_server.seen) == 2  # the repeated ask was sent once
    assert {body["seed"] for body in openai_server.seen} == {3, 4}
    assert "top_k" not in openai_server.seen[0]


@pytest.mark.slow
def test_top_k_stop_and_the_chat_option_are_sent(openai_server: OpenAIServer) -> None:
    writer = generator(openai_server, chat=True, top_k=True, length_field="max_completion_tokens")
    found = writer.generate([Ask("Hello.\nRating:")], Sampling(8, 0.5, 5, 1.0, stop=(":",)))
    body = openai_server.seen[0]
    assert found[0].text == " Rating"
    assert (body["top_k"], body["stop"], body["max_completion_tokens"]) == (5, [":"], 8)
    assert body["messages"] == [{"role": "user", "content": "Hello.\nRating:"}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (Fault(429, wait=0.01), "429: "),
        (Fault(503), "503: "),
        *((Fault(body=body), "broken answer") for body in ('{"choices": [{"mess', '"words"', '{"choices": {}}')),
        (Fault(text="  "), "empty answer"),
    ],
)
def test_a_fault_that_passes_is_tried_again_and_one_that_lasts_becomes_a_status(
    openai_server: OpenAIServer, fault: Fault, reason: str
) -> None:
    openai_server.faults += [fault] * 2
    writer = generator(openai_server)
    assert writer.generate([Ask(TURN)], GREEDY)[0].text.startswith(" Rating: ")
    assert (writer.counts["retries"], writer.counts["failures"], len(openai_server.seen)) == (2, 0, 3)
    openai_server.faults += [fault] * 3
    writer = generator(openai_server, concurrency=1)
    bad, good = writer.generate([Ask(TURN, 1), Ask(TURN, 2)], GREEDY)
    assert bad.status.startswith(f"no answer after 3 tries: {reason}")
    assert (bad.text, bad.finish, good.status) == ("", "", "ok")
    assert (writer.counts["failures"], writer.counts["asks"]) == (1, 2)


@pytest.mark.slow
def test_time_out_is_tried_again(openai_server: OpenAIServer) -> None:
    openai_server.faults += [Fault(wait=1.0)]
    writer = generator(openai_server, timeout=0.4)
    assert writer.generate([Ask(TURN)], GREEDY)[0].status == "ok"
    assert writer.counts["retries"] == 1


def test_nobody_there() -> None:
    writer = OpenAIGenerator("http://127.0.0.1:9/v1", "tiny", api_key_env="", wait=0.001, tries=2)
    with pytest.raises(ServiceError, match=r"127\.0\.0\.1:9/v1: nothing came .* 2 tries, the last: no connection"):
        writer.generate([Ask("a"), Ask("b")], GREEDY)


_SILENT = """
import logging, signal, socket, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell starts in the background
from seesaw_cf.generation import Ask, OpenAIGenerator, Sampling
logging.basicConfig(format="%(message)s")
listener = socket.create_server(("127.0.0.1", 0))
url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
OpenAIGenerator(url, "tiny", api_key_env="").generate([Ask("a"), Ask("b")], Sampling(8))
"""


@pytest.mark.slow
def test_a_silent_server_is_named_and_ctrl_c_ends_the_wait() -> None:
    with subprocess.Popen([sys.executable, "-c", _SILENT], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        process.wait(timeout=30)  # far less than the four tries of a minute
    assert re.match(r"waiting for tiny at http://127\.0\.0\.1:\d+/v1, .* 4 tries of 60 s, 247 s in all\. Ctrl-C", said)
    assert process.returncode != 0


def test_refusals_and_bad_requests_are_statuses_without_another_try(openai_server: OpenAIServer) -> None:
    openai_server.faults += [Fault(refusal="I can't help with that."), Fault(400)]
    writer = generator(openai_server, concurrency=1)
    refused, bad = writer.generate([Ask(TURN, 1), Ask(TURN, 2)], GREEDY)
    assert refused.status == "refused: I can't help with that."
    assert bad.status == "refused by the server: 400: told to fail"
    assert writer.counts["retries"] == 0


def test_a_missing_key_and_an_unknown_model_are_explained(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServiceError, match=r"404.*'huge' does not exist.*model's name"):
        OpenAIGenerator(openai_server.url, "huge").generate([Ask(TURN)], GREEDY)
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ServiceError, match="OPENAI_API_KEY is not set"):
        generator(openai_server).generate([Ask(TURN)], GREEDY)
    assert openai_server.seen == []


@pytest.mark.parametrize("key", ["sk-wrong-987654321", "sk-wrong 98765\n4321", "sk-wrong-987654321é"])
def test_wrong_key_is_explained_and_never_shown(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, key: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    caplog.set_level(logging.DEBUG)
    writer = generator(openai_server)
    with pytest.raises(ServiceError, match="OPENAI_API_KEY") as caught:
        writer.generate([Ask(TURN, 1), Ask(TURN, 2)], GREEDY)
    chain = [caught.value, caught.value.__cause__]
    for text in (*map(str, chain), repr(writer), writer.name, caplog.text):
        assert "sk-wrong" not in text
        assert "987654321" not in text


def test_no_key_or_password_is_in_names_or_logs(openai_server: OpenAIServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    writer = generator(openai_server)
    writer.generate([Ask(TURN)], GREEDY)
    assert KEY not in caplog.text + repr(writer) + writer.name + str(writer.counts)
    other = OpenAIGenerator("https://me:secret@host:81/v1", "m", chat=True)
    assert other.name == "m at https://***@host:81/v1 as chat"
    assert "secret" not in repr(other)
    assert writer.counts["model tiny"] == 1


def test_an_odd_reply_is_taken_for_what_can_be_read_of_it(openai_server: OpenAIServer) -> None:
    usage, message = {"prompt_tokens": "3", "completion_tokens": 2}, {"role": "assistant", "content": "caf\ud83d"}
    choice = {"index": 0, "finish_reason": {"type": "stop"}, "message": message}
    openai_server.faults += [Fault(body=json.dumps({"choices": [choice], "usage": usage}))]
    (found,) = generator(openai_server).generate([Ask(TURN)], GREEDY)
    assert (found.text, found.finish, found.status) == ("caf?", "", "ok")
    assert (found.prompt_tokens, found.new_tokens) == (None, 2)


SAMPLING = Sampling(max_new_tokens=4)
ASKS = [Ask("Marie Curie was born in", 1), Ask("The mother tongue of", 2), Ask("London " * 80, 3)]


class Counting:
    """A local model that counts, and stops after some asks as if it were killed."""

    def __init__(self, limit: int = 1000, name: str = "a") -> None:
        self.inner = HFGenerator(trained_model("llama"), tiny_tokenizer())
        self.asked, self.limit, self.name = 0, limit, name

    def generate(self, asks: Sequence[Ask], sampling: Sampling) -> list[Completion]:
        self.asked += len(asks)
        if self.asked > self.limit:
            raise KeyboardInterrupt
        return self.inner.generate(asks, sampling)


@pytest.mark.slow
def test_what_was_written_is_not_asked_again_and_failures_are(tmp_path: Path) -> None:
    inner = Counting()
    first = CachedGenerator(inner, tmp_path).generate([*ASKS, ASKS[0]], SAMPLING)
    assert first == inner.inner.generate([*ASKS, ASKS[0]], SAMPLING)
    assert first[2].status.startswith("refused")
    assert CachedGenerator(inner, tmp_path).generate(ASKS, SAMPLING) == first[:3]
    assert inner.asked == 4  # three, then the refused one again
    assert len(list(tmp_path.rglob("*.json"))) == 2


def test_a_kill_loses_at_most_one_block(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        CachedGenerator(Counting(limit=1), tmp_path, block=1).generate(ASKS[:2], SAMPLING)
    again = Counting()
    CachedGenerator(again, tmp_path, block=1).generate(ASKS[:2], SAMPLING)
    assert again.asked == 1


def test_everything_that_changes_the_text_changes_the_place(tmp_path: Path) -> None:
    ask, stopped = ASKS[0], Sampling(max_new_tokens=4, stop=("x",))
    asked = [("a", ask, SAMPLING), ("b", ask, SAMPLING), ("a", Ask(ask.prompt, 9), SAMPLING), ("a", ask, stopped)]
    for number, (name, one, sampling) in enumerate(asked, 1):
        CachedGenerator(Counting(name=name), tmp_path).generate([one], sampling)
        assert len(list(tmp_path.rglob("*.json"))) == number
    assert Ask("user: hi") != Ask((Message("user", "hi"),))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    store = CachedGenerator(Counting(), tmp_path)
    store.generate(ASKS[:1], SAMPLING)
    (file,) = tmp_path.rglob("*.json")
    file.write_text("{", encoding="utf-8")
    with pytest.raises(RecordError, match=file.name + ".*Delete that file"):
        store.generate(ASKS[:1], SAMPLING)
