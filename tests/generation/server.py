"""An OpenAI-compatible server on loopback that really runs a model, and fails on request.

    with OpenAIServer(chat_model(), chat_tokenizer()) as server:
        generator = OpenAIGenerator(server.url, "tiny", api_key_env="MY_KEY")
        server.faults += [Fault(429, wait=0.01)]  # the next request gets it, then it is used up

The standard library's HTTP server, `HFGenerator` behind it; nothing of the client is replaced.
"""

import json
import threading
import time
import zlib
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from seesaw_cf.generation import Ask, Completion, HFGenerator, Message, Sampling

KEY = "sk-test-0123456789"


@dataclass(frozen=True, slots=True)
class Fault:
    """What the server does instead of answering."""

    status: int = 200  # also of an answer that is broken inside
    wait: float = 0.0  # seconds before it answers; with status 429 it is sent as Retry-After instead
    body: str | None = None  # sent as it is; None for an error object
    text: str | None = None  # put into an otherwise good answer as what the model said
    refusal: str | None = None  # put into the answer's field of that name


class OpenAIServer:
    """The server; a context manager."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str = "tiny", key: str = KEY
    ) -> None:
        self.generator, self.name, self.key = HFGenerator(model, tokenizer), name, key
        self.faults: list[Fault] = []  # taken from the front, one for each request to write
        self.seen: list[dict[str, Any]] = []  # bodies of all requests to write, in order of arrival
        self.lock = threading.Lock()
        handler = type("BoundHandler", (_Handler,), {"owner": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"

    def __enter__(self) -> Self:
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()

    def write(self, asked: dict[str, Any]) -> Completion:
        """What the model writes for the body of a request."""
        turns = asked.get("messages")
        prompt = tuple(Message(turn["role"], turn["content"]) for turn in turns) if turns else asked["prompt"]
        sampling = Sampling(
            max_new_tokens=asked.get("max_tokens") or asked.get("max_completion_tokens") or 16,
            temperature=asked.get("temperature", 1.0),
            top_k=max(asked.get("top_k", 0), 0),
            top_p=asked.get("top_p", 1.0),
            stop=tuple(asked.get("stop") or ()),
        )
        with self.lock:
            return self.generator.generate([Ask(prompt, asked.get("seed") or 0)], sampling)[0]


class JudgeServer(OpenAIServer):
    """A server that answers a statement of the survey with a rating, the same one for the same question."""

    def write(self, asked: dict[str, Any]) -> Completion:
        """A rating, or what the model writes."""
        question = asked["messages"][-1]["content"] if "messages" in asked else asked["prompt"]
        if question.endswith("\nRating:"):
            return Completion(f"Rating: {1 + zlib.crc32(question.encode()) % 7}")
        return super().write(asked)


class _Handler(BaseHTTPRequestHandler):
    owner: OpenAIServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # head and body are two writes, and the second would wait for a late ACK

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        if self._allowed() and self.path == "/v1/models":
            self._reply(200, {"object": "list", "data": [{"id": self.owner.name, "object": "model"}]})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._allowed():
            return
        if asked.get("model", self.owner.name) != self.owner.name:
            self._refuse(404, f"The model {asked['model']!r} does not exist")
            return
        with self.owner.lock:
            self.owner.seen.append(asked)
            fault = self.owner.faults.pop(0) if self.owner.faults else Fault()
        self._answer(asked, fault)

    def _answer(self, asked: dict[str, Any], fault: Fault) -> None:
        time.sleep(0 if fault.status == 429 else fault.wait)
        good = fault.status == 200 and fault.body is None
        written = self.owner.write(asked) if good else None
        if fault.status == 429:
            self._refuse(429, "Rate limit reached", {"Retry-After": str(fault.wait)})
        elif fault.status != 200:
            self._refuse(fault.status, "told to fail")
        elif written is None:
            self._send(200, str(fault.body).encode(), {})
        elif written.status != "ok":
            self._refuse(400, written.status)
        else:
            self._reply(200, self._object(written.text if fault.text is None else fault.text, fault.refusal, written))

    def _object(self, text: str, refusal: str | None, written: Completion) -> dict[str, Any]:
        chat = self.path == "/v1/chat/completions"
        said = {"message": {"role": "assistant", "content": text, "refusal": refusal}} if chat else {"text": text}
        used = written.prompt_tokens or 0, written.new_tokens or 0
        usage = {"prompt_tokens": written.prompt_tokens, "completion_tokens": written.new_tokens}
        choices = [{"index": 0, "finish_reason": written.finish, **said}]
        kind = "chat.completion" if chat else "text_completion"
        about = {"id": "1", "object": kind, "created": 0, "model": self.owner.name}
        return about | {"choices": choices, "usage": usage | {"total_tokens": sum(used)}}

    def _allowed(self) -> bool:
        given = self.headers.get("Authorization", "")
        if self.owner.key and given != f"Bearer {self.owner.key}":
            # Some servers repeat the key they were given; a client must not show it all the same.
            self._refuse(401, f"Incorrect API key provided: {given.removeprefix('Bearer ')}")
            return False
        return True

    def _refuse(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        self._reply(status, {"error": {"message": text, "type": "error", "code": None}}, headers)

    def _reply(self, status: int, answer: Any, headers: dict[str, str] | None = None) -> None:
        self._send(status, json.dumps(answer).encode(), headers or {})

    def _send(self, status: int, body: bytes, headers: dict[str, str]) -> None:
        try:
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up waiting
