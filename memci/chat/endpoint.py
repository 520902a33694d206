"""A model behind an endpoint that speaks OpenAI's chat completions."""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from memci.attp.host_error import without_halves
from memci.chat.loop import Reply
from memci.errors import ArgumentError, ConfigError, ModelError, ModelTimeoutError, shown
from memci.messages import codec

if TYPE_CHECKING:
    import openai
    from openai import AsyncStream
    from openai._legacy_response import LegacyAPIResponse

_NO_KEY = "none"  # what is sent in the place of a key to servers that want none
_OWN = {
    "messages",
    "model",
    "n",
    "stream",
    "stream_options",
    "tool_choice",
    "tools",
}  # keys of a request that the loop answers for
_MOST_SAID = 300
_MOST_BYTES = 16_777_216  # of an answer; the longest that models give have a tenth of it
_MOST_SECONDS = 1_000_000  # systems cannot wait much longer

_ADVICE = {
    400: "the endpoint cannot use the request",
    401: "the endpoint wants another API key",
    403: "the endpoint does not allow it",
    404: "check the base URL, which often ends in /v1, and the model's name",
    413: "the request is too large: lower the budget",
    429: "too many requests, or no credit left: try again later",
}


class Endpoint(AbstractContextManager["Endpoint"]):
    """A model behind an endpoint that speaks OpenAI's chat completions, such as OpenAI, vLLM, llama.cpp or Ollama.

    Needs the extra ``memci[chat]``; the client takes half a second to load, when the first endpoint is made. Each request is
    retried by the client after lost connections, timeouts, 408, 409, 429 and 5xx, with growing pauses, until something of the
    answer came. Redirects are not followed: messages and key go to no other place. The key is in no error's text. Of an answer
    of more than 16 MiB, or a stream of more than 128, the rest is not read; the former is no reply.

    A *base_url* is such as ``https://api.openai.com/v1`` or ``http://localhost:8080/v1``; most local servers need no key. Each
    attempt may take *timeout_s* seconds to the last byte of the answer, at most a million, or where it is streamed to each piece,
    and *max_retries* may come after the first. The *options* are more keys of the request, such as ``temperature`` or
    ``max_completion_tokens``. Raises ``ConfigError`` if the client is not installed or an argument cannot be used,
    ``ArgumentError`` if one is of another type.
    """

    def __init__(  # noqa: PLR0913 (each is one thing to know of an endpoint)
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        timeout_s: float = 120.0,
        max_retries: int = 2,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        texts = (("base_url", base_url, str), ("model", model, str), ("api_key", api_key, str | None))
        for name, given, kind in (*texts, ("timeout_s", timeout_s, int | float), ("options", options, Mapping | None)):
            if not isinstance(given, kind):  # a key is not shown
                raise ArgumentError(argument=name, value=type(given), wanted=getattr(kind, "__name__", str(kind)))
        self._place, self._model, self._timeout_s = _place(base_url), model, timeout_s
        self._key = (api_key or "").strip()
        self._options = dict(options or {})
        for name in self._options.keys() & _OWN:
            _refuse(f"options.{name}", "this key of the request is set by the loop")
        if not (self._key.isascii() and self._key.isprintable()):
            _refuse("api_key", "it holds characters that no request can carry")  # and is not shown
        if not 0 < timeout_s <= _MOST_SECONDS:
            _refuse("timeout_s", f"{shown(timeout_s)} is no number of seconds above 0, and at most a million")
        if type(max_retries) is not int or max_retries < 0:
            _refuse("max_retries", f"{shown(max_retries)} is no number of attempts: give a whole number from 0")
        try:
            import httpx2  # noqa: PLC0415 (of the extra)
            import openai  # noqa: PLC0415 (500 ms, and an extra)

            from memci.chat.attempt import TimedClient  # noqa: PLC0415 (loads a part of the extra)
        except ImportError as error:
            message = "the client for models is not installed: install memci with its extra chat"
            raise ConfigError(message) from error
        certificates = httpx2.create_ssl_context()  # 20 ms, so that all requests share it
        self._streams = True  # as far as is known
        self._http = partial(TimedClient, timeout_s, _MOST_BYTES, verify=certificates)
        self._client = partial(openai.AsyncOpenAI, base_url=base_url, api_key=self._key or _NO_KEY, max_retries=max_retries)

    def __exit__(self, *raised: object) -> None:
        """Close it."""

    def close(self) -> None:
        """Close it; no connection outlives its request. May be called twice."""

    def complete(self, messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]], *, may_call: bool) -> Reply:
        """Send a window, and return the reply; see ``Model``.

        The messages are sent as they are, but for what endpoints refuse: keys of assistant messages that hold null or an
        empty list are left out, one with neither content nor calls gets an empty text, and a lone surrogate, for which
        UTF-8 has no form, becomes U+FFFD. Raises ``ModelError`` if the endpoint cannot be reached, refuses, or answers what is
        no chat completion.
        """
        return self._whole(_request(messages, tools, may_call=may_call))

    def stream(
        self,
        messages: list[dict[str, Any]],
        tools: Sequence[Mapping[str, Any]],
        *,
        may_call: bool,
        take: Callable[[Mapping[str, Any]], None],
    ) -> Reply:
        """Send a window, and hand on each piece of the reply as it comes; see ``StreamingModel``, and ``complete``.

        Where the endpoint does not stream, the reply is returned whole, and this asks for nothing else from then on. A stream
        that breaks off is a ``ModelError``, and not asked for again, as *take* has had what came.
        """
        request = _request(messages, tools, may_call=may_call)
        if self._streams:
            answer = self._asked({**request, "stream": True, "stream_options": {"include_usage": True}}, take)
            if isinstance(answer, ModelError):  # as in ``_whole``
                raise answer
            if answer is not None:
                return answer
            self._streams = False
        return self._whole(request)

    def _whole(self, request: dict[str, Any]) -> Reply:
        answer = self._asked(request)
        if isinstance(answer, ModelError):  # raised here, as the driver's error holds the request with its key
            raise answer
        assert answer is not None
        return answer

    def _asked(
        self, request: dict[str, Any], take: Callable[[Mapping[str, Any]], None] | None = None
    ) -> Reply | ModelError | None:
        """Return the reply, or why there is none; ``None`` where pieces of it are wanted, and the endpoint cannot stream."""
        import openai  # noqa: PLC0415 (loaded already)
        from anyio.from_thread import start_blocking_portal  # noqa: PLC0415 (the client's own)

        from memci.chat.attempt import is_event_stream  # noqa: PLC0415 (loads a part of the extra)

        try:
            with (
                start_blocking_portal() as portal,  # whether or not this thread runs an event loop
                portal.wrap_async_context_manager(self._answering(request)) as answered,
            ):
                if take is None or not is_event_stream(answered.headers):
                    return self._reply(answered.content)
                pieces: AsyncStream[object] = answered.parse(to=openai.AsyncStream[object])
                try:
                    return self._streamed(partial(portal.call, self._next, pieces), take)
                finally:
                    portal.call(pieces.close)
        except openai.OpenAIError as error:
            if (
                take is not None
                and getattr(error, "status_code", 0) in (400, 422)
                and "stream" in str(getattr(error, "body", ""))
            ):
                return None
            return self._failure(error)

    @asynccontextmanager
    async def _answering(self, request: dict[str, Any]) -> "AsyncIterator[LegacyAPIResponse[Any]]":
        async with self._client(http_client=self._http()) as client:
            completions = client.chat.completions.with_raw_response
            yield await completions.create(model=self._model, extra_body=self._options, **request)

    async def _next(self, pieces: "AsyncStream[object]") -> object:
        """Return the next piece of a stream, ``None`` at its end, or the error that ended it."""
        import anyio  # noqa: PLC0415 (the client's own)
        import openai  # noqa: PLC0415 (loaded already)

        try:
            with anyio.fail_after(self._timeout_s):
                return await anext(pieces, None)
        except (TimeoutError, openai.APITimeoutError):
            return ModelTimeoutError(self._broken(f"nothing came for {self._timeout_s:g} s"))
        except openai.APIConnectionError as error:
            problem = self._quoted(error.__cause__ or error) or "the connection was cut"
        except openai.OpenAIError as error:
            problem = f"it reports an error: {self._quoted(error)}"
        except (ValueError, RecursionError):
            problem = "what it sends is no JSON"
        return ModelError(self._broken(problem))

    def _streamed(self, following: Callable[[], object], take: Callable[[Mapping[str, Any]], None]) -> Reply | ModelError | None:
        """Hand on the pieces of a stream, and return how it ended; ``None`` where it holds none."""
        reason, usage, came = "", dict[str, int](), False
        while isinstance(piece := following(), dict) and _is_piece(piece):
            take(piece)
            came = True
            reason = next(
                (str(each["finish_reason"]) for each in piece.get("choices") or () if each.get("finish_reason")), reason
            )
            if isinstance(said := piece.get("usage"), dict):
                usage = _numbers(said)
        if reason:  # whatever came after its end
            return Reply(message={}, finish_reason=reason, prompt_tokens=usage.get("prompt_tokens"), usage=usage)
        if isinstance(piece, ModelError) or not came:
            return piece if isinstance(piece, ModelError) else None
        return ModelError(self._broken("it ended early" if piece is None else "a piece of it is none of a chat completion"))

    def _broken(self, problem: str) -> str:
        return f"the model at {self._place} broke off its answer: {problem}"

    def _reply(self, body: bytes) -> Reply | ModelError:
        value: Any = None
        with suppress(ValueError):
            value = codec.decode_foreign(body) if len(body) <= _MOST_BYTES else body
        match value:
            case bytes():
                problem = f"its answer has more than {_MOST_BYTES} bytes: lower max_completion_tokens, or ask again"
            case {"choices": [{"message": {} as message, **choice}, *_]}:
                said = value.get("usage")
                usage = _numbers(said) if isinstance(said, dict) else {}
                reason = str(choice.get("finish_reason") or "stop")
                return Reply(message=message, finish_reason=reason, prompt_tokens=usage.get("prompt_tokens"), usage=usage)
            case {"error": error} if error:
                problem = f"it reports an error: {self._quoted(error)}"
            case _:
                problem = f"what it answers is no chat completion: {self._quoted(body.decode('utf-8', 'replace'))}"
        return self._error(problem)

    def _failure(self, error: "openai.OpenAIError") -> ModelError:
        import openai  # noqa: PLC0415 (loaded already)

        match error:
            case openai.APIStatusError():
                status = error.status_code
                target = error.response.headers.get("location", "") if 300 <= status < 400 else ""  # noqa: PLR2004 (redirects)
                if target:
                    problem = f"status {status}, it points to {self._quoted(_without_secrets(target))}: give the base URL there"
                else:
                    advice = _ADVICE.get(status, "the endpoint failed: try again later")
                    problem = f"status {status}, {advice}; it says: {self._quoted(error.body)}"
                return self._error(problem, status, _seconds(error.response.headers.get("retry-after", "")))
            case openai.APITimeoutError():
                problem = f"it did not answer within {self._timeout_s:g} s: try again, or raise the timeout"
                return ModelTimeoutError(f"the model at {self._place} gave no reply: {problem}")
            case openai.APIConnectionError():
                why = self._quoted(error.__cause__ or error) or "the connection was cut"
                problem = f"it cannot be reached ({why}): check the base URL, or try again"
            case _:
                problem = self._quoted(error)
        return self._error(problem)

    def _error(self, problem: str, status: int | None = None, retry_after_s: float | None = None) -> ModelError:
        message = f"the model at {self._place} gave no reply: {problem}"
        return ModelError(message, status=status, retry_after_s=retry_after_s)

    def _quoted(self, value: object) -> str:
        """Return what an endpoint says on one short line, without the key."""
        said = value.get("message", value) if isinstance(value, Mapping) else value
        text = re.sub(re.escape(self._key), "[key]", str(said), flags=re.IGNORECASE) if self._key else str(said)
        return " ".join(text.split())[:_MOST_SAID]


def _refuse(path: str, problem: str) -> NoReturn:
    raise ConfigError(problem, path=path)


def _place(base_url: str) -> str:
    """Return host and port of a URL; what else it holds may be secret."""
    try:
        parts = urlsplit(base_url)
        if parts.scheme in ("http", "https") and parts.hostname and not parts.query and not parts.fragment:
            return parts.hostname if parts.port is None else f"{parts.hostname}:{parts.port}"
    except ValueError:
        pass
    _refuse("base_url", "it is no URL to which a path can be added: give one such as http://localhost:8080/v1")


def _seconds(retry_after: str) -> float | None:
    """Return the seconds that the header of an answer names, in digits or as a date; ``None`` where it names none."""
    if retry_after.isdecimal() and retry_after.isascii():
        return float(retry_after)
    with suppress(ValueError, TypeError):
        return max((parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds(), 0.0)
    return None


def _without_secrets(target: str) -> str:
    try:
        parts = urlsplit(target)
    except ValueError:
        return target
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _numbers(usage: Mapping[str, Any]) -> dict[str, int]:
    """Return the whole numbers of a usage, with the prompt's tokens that came from a cache, by one name."""
    details = usage.get("prompt_tokens_details")
    known = {"cached_tokens": usage.get("prompt_cache_hit_tokens"), **(details if isinstance(details, dict) else {})}
    cached = known["cached_tokens"]
    return {name: each for name, each in [*usage.items(), ("cached_tokens", cached)] if type(each) is int}


def _request(messages: list[dict[str, Any]], tools: Sequence[Mapping[str, Any]], *, may_call: bool) -> dict[str, Any]:
    sent: dict[str, Any] = {"messages": without_halves(list(map(_accepted, messages)))}
    return {**sent, "tools": tools, "tool_choice": "auto" if may_call else "none"} if tools else sent


def _is_piece(value: Mapping[str, Any]) -> bool:
    """Return whether a value is a piece of a chat completion, whose parts have their kinds; some hold no choice."""
    choices = value.get("choices") or []
    return isinstance(choices, list) and all(map(_is_choice, choices))


def _is_choice(choice: object) -> bool:
    match choice:
        case {"delta": {} as delta}:
            calls = delta.get("tool_calls") or []
            return delta.get("role") in (None, "", "assistant") and isinstance(calls, list) and all(map(_is_call, calls))
        case _:
            return isinstance(choice, dict) and choice.get("delta") is None


def _is_call(call: object) -> bool:
    function = (call.get("function") or {}) if isinstance(call, dict) else None
    if not (isinstance(call, dict) and isinstance(function, dict) and isinstance(call.get("index"), int | None)):
        return False
    return all(isinstance(text, str | None) for text in (call.get("id"), function.get("name"), function.get("arguments")))


def _accepted(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message as endpoints take it: replies hold keys that the same endpoints refuse in a request."""
    if message["role"] != "assistant":
        return message
    kept = {key: value for key, value in message.items() if value is not None and value != []}
    calls = kept.keys() & {"tool_calls", "function_call"}
    return {"role": "assistant", "content": None if calls else ""} | kept
