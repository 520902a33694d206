"""A scripted model behind a real endpoint on the loopback interface, which checks each request as a provider would."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

import attrs

ROLES = ("system", "developer", "user", "assistant", "tool")

Message = dict[str, Any]


@attrs.frozen
class Said:
    """A reply with its circumstances; a script may also return the bare message."""

    message: Message
    finish_reason: str | None = None
    prompt_tokens: object = None
    cached_tokens: int | None = None


@attrs.frozen
class Http:
    """An answer that is no reply: any status and body, after which the client may try again at once."""

    status: int
    body: bytes = b'{"error": {"message": "out of order"}}'
    location: str = ""
    encoding: str = ""
    retry_after: str = ""


class Hold:
    """No answer: the connection is held until the server closes."""


@attrs.frozen
class Drip:
    """A good reply that comes a byte at a time, with pauses of a tenth of a second, until the server closes or it is told.

    Attributes:
        head: Also its status and headers come so.
        sized: A header tells how long it is.
    """

    head: bool = False
    sized: bool = True


@attrs.frozen
class Pieces:
    """A reply that is streamed: chunks, or bytes that are sent as they are, each after what is between was waited for.

    Attributes:
        chunks: In their order; an ``Event`` among them is waited for, or the server's end.
        end: How the stream ends: as it should, without a word, with the connection lost, or not at all.
    """

    chunks: Sequence[Message | bytes | threading.Event]
    end: Literal["done", "early", "lost", "held"] = "done"


Script = Callable[[list[Message]], Said | Message | Http | Hold | Drip | Pieces]


class ModelServer:
    """A scripted model.

    Attributes:
        url: Its base URL.
        script: Called with the messages of each good request; what it returns is answered.
        streams: Whether replies are streamed where that is asked for; ``Pieces`` are in any case.
        requests: Bodies of the good requests, in order.
        refused: What was wrong with bad requests, each of which got status 400.
        replies: Messages that were answered, in order.
        keys: The Authorization headers.
    """

    def __init__(self, script: Script, *, streams: bool = False) -> None:
        self.script, self.streams = script, streams
        self.requests: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.replies: list[Message] = []
        self.keys: list[str | None] = []
        self.closing = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.answer(self)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name of the overridden method)
                """Stay silent."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        """Let go of held connections, and end."""
        self.closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Answer one request."""
        self.keys.append(handler.headers["Authorization"])
        request = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        problem = next(problems(request), None) if handler.path == "/v1/chat/completions" else f"no such path: {handler.path}"
        if problem is not None:
            self.refused.append(problem)
            _send(handler, Http(400, json.dumps({"error": {"message": problem}}).encode()))
            return
        self.requests.append(request)
        said = self.script(request["messages"])
        if isinstance(said, Hold):
            self.closing.wait()
        elif isinstance(said, Drip):
            self._drip(handler, said)
        elif isinstance(said, Http):
            _send(handler, said)
        elif isinstance(said, Pieces):
            self._stream(handler, said)
        else:
            said = said if isinstance(said, Said) else Said(said)
            self.replies.append(said.message)
            if self.streams and request.get("stream"):
                self._stream(handler, Pieces(list(chunked(said))))
            else:
                _send(handler, Http(200, _completion(said, request["model"])))

    def _stream(self, handler: BaseHTTPRequestHandler, pieces: Pieces) -> None:
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream; charset=utf-8")
        if pieces.end == "lost":
            handler.send_header("Content-Length", "100000000")
        handler.end_headers()
        with suppress(OSError):  # whoever asked may have gone
            for chunk in pieces.chunks:
                if isinstance(chunk, threading.Event):
                    while not (chunk.wait(0.01) or self.closing.is_set()):
                        pass
                else:
                    handler.wfile.write(chunk if isinstance(chunk, bytes) else b"data: %b\n\n" % json.dumps(chunk).encode())
            if pieces.end == "done":
                handler.wfile.write(b"data: [DONE]\n\n")
        if pieces.end == "held":
            self.closing.wait()

    def _drip(self, handler: BaseHTTPRequestHandler, how: Drip) -> None:
        body = _completion(Said({"role": "assistant", "content": "Late."}), "slow")
        length = f"Content-Length: {len(body) + 8}\r\n" if how.sized else ""
        head = f"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n{length}\r\n".encode()
        slow, rest = (head, body + b" " * 8) if how.head else (b" " * 8, body)
        try:
            if not how.head:
                handler.wfile.write(head)
            for byte in slow[:8]:
                handler.wfile.write(bytes([byte]))
                self.closing.wait(0.1)
            handler.wfile.write(slow[8:] + rest)
        except OSError:  # whoever asked has gone
            handler.close_connection = True


@contextmanager
def serving(script: Script, *, streams: bool = False) -> Iterator[ModelServer]:
    """Run a scripted model."""
    server = ModelServer(script, streams=streams)
    try:
        yield server
    finally:
        server.close()


def said(text: str, **more: object) -> Message:
    """Return an assistant message of text."""
    return {"role": "assistant", "content": text, **more}


def calling(*calls: tuple[str, str, str], content: str | None = None) -> Message:
    """Return an assistant message that makes calls, each an id, a tool's name and arguments as JSON."""
    made = [{"id": call_id, "type": "function", "function": {"name": name, "arguments": text}} for call_id, name, text in calls]
    return {"role": "assistant", "content": content, "tool_calls": made}


def problems(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a provider would refuse in a request."""
    if not (isinstance(request.get("model"), str) and request.get("messages")):
        yield "model or messages are missing"
    yield from _tools_problems(request)
    yield from _order_problems(request["messages"])
    for number, message in enumerate(request["messages"]):
        yield from (f"messages[{number}]: {problem}" for problem in _message_problems(message))


def _tools_problems(request: Mapping[str, Any]) -> Iterator[str]:
    tools = request.get("tools")
    if "tool_choice" in request and not tools:
        yield "tool_choice is only allowed when tools are specified"
    for tool in tools or ():
        if tool.get("type") != "function" or not {"name", "description", "parameters"} <= tool["function"].keys():
            yield f"not a tool: {tool}"


def _order_problems(messages: list[Message]) -> Iterator[str]:
    unanswered: set[str] = set()
    for number, message in enumerate(messages):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in unanswered:
                yield f"messages[{number}]: a tool message must follow the message with its call"
            unanswered.discard(message["tool_call_id"])
        elif unanswered:
            yield f"messages[{number}]: no tool messages for the calls {sorted(unanswered)} before it"
        if role == "assistant" and message.get("tool_calls") is not None:
            unanswered = {call["id"] for call in message["tool_calls"]}
    if unanswered:
        yield f"no tool messages for the calls {sorted(unanswered)} at the end"


def _message_problems(message: Message) -> Iterator[str]:
    role, content, calls = message.get("role"), message.get("content"), message.get("tool_calls")
    if role not in ROLES:
        yield f"the role is {role!r}"
    if content is None and not (role == "assistant" and calls):
        yield "content is missing"
    if not isinstance(content, str | list | None):
        yield f"content is a {type(content).__name__}"
    for part in content if isinstance(content, list) else ():
        if part.get("type") not in ("text", "image_url", "refusal"):
            yield f"not a part: {part}"
    if "tool_calls" in message and (role != "assistant" or not calls):
        yield "tool_calls is empty, null or not the assistant's"
    for call in calls or ():
        if call["type"] != "custom" and not isinstance(call["function"]["arguments"], str):
            yield f"not a call: {call}"
    if role == "tool" and not isinstance(message.get("tool_call_id"), str):
        yield "tool_call_id is missing"


def chunk(finish: str | None = None, **delta: object) -> Message:
    """Return a piece of a streamed reply."""
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def chunked(said: Said, characters: int = 5) -> Iterator[Message]:
    """Yield a reply in pieces of a few characters, as providers stream it, with its usage at the end."""
    message, ends = said.message, "tool_calls" if said.message.get("tool_calls") else "stop"
    yield chunk(**{key: value for key, value in message.items() if key not in ("content", "tool_calls")}, content="")
    text = message.get("content") or ""
    yield from (chunk(content=text[at : at + characters]) for at in range(0, len(text), characters))
    for index, call in enumerate(message.get("tool_calls") or ()):
        function = call["function"]
        yield chunk(tool_calls=[{**call, "index": index, "function": {"name": function["name"], "arguments": ""}}])
        for at in range(0, len(function["arguments"]), characters):
            yield chunk(tool_calls=[{"index": index, "function": {"arguments": function["arguments"][at : at + characters]}}])
    yield chunk(said.finish_reason or ends)
    if said.prompt_tokens is not None:
        yield {"choices": [], "usage": {"prompt_tokens": said.prompt_tokens, "completion_tokens": 1, "total_tokens": 0}}


def _completion(said: Said, model: str) -> bytes:
    reason = said.finish_reason or ("tool_calls" if said.message.get("tool_calls") else "stop")
    choice = {"index": 0, "message": said.message, "finish_reason": reason, "logprobs": None}
    body: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": model, "choices": [choice]}
    if said.prompt_tokens is not None:
        body["usage"] = {"prompt_tokens": said.prompt_tokens, "completion_tokens": 1, "total_tokens": 0}
    if said.cached_tokens is not None:
        body["usage"]["prompt_tokens_details"] = {"cached_tokens": said.cached_tokens, "audio_tokens": None}
    return json.dumps(body).encode()


def _send(handler: BaseHTTPRequestHandler, answer: Http) -> None:
    handler.send_response(answer.status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(answer.body)))
    handler.send_header("Retry-After-Ms", "1")
    if answer.location:
        handler.send_header("Location", answer.location)
    if answer.retry_after:
        handler.send_header("Retry-After", answer.retry_after)
    if answer.encoding:
        handler.send_header("Content-Encoding", answer.encoding)
    handler.end_headers()
    with suppress(OSError):  # whoever asked may have gone
        handler.wfile.write(answer.body)
