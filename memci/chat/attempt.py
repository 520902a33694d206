"""HTTP requests that end in time and in little memory, however slowly and however much the other side writes."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import anyio
import httpx2

_WRAPPED = 8  # bytes that a piece of a streamed answer may have for each byte that the same would have in a whole one
_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")  # not true of a body that was read


class TimedClient(httpx2.AsyncClient):
    """An HTTP client each of whose requests is over after *attempt_s* seconds, with all of its answer or a timeout.

    An answer that is a stream of events is returned when it begins: whoever reads it bounds the time of each event, and may read
    eight times as many bytes, as each piece of the answer is wrapped.

    The library's own timeouts are for each read alone: an answer that comes a byte at a time passes them all. Of an answer of
    more than *most_bytes* bytes at least one more is read, and not the rest. Each request has a connection of its own, and
    redirects, which would take what was sent to another host, are not followed. Looking up a host's name is not bounded.
    """

    def __init__(self, attempt_s: float, most_bytes: int, **options: Any) -> None:  # noqa: ANN401 (as the library has them)
        super().__init__(timeout=attempt_s, limits=httpx2.Limits(max_keepalive_connections=0), **options)
        self._attempt_s, self._most_bytes = attempt_s, most_bytes

    async def send(self, request: httpx2.Request, **more: Any) -> httpx2.Response:  # noqa: ANN401 (arguments of the library)
        """Send a request and return its answer, read to its end or past the limit, or raise an error of the library."""
        body = bytearray()
        try:
            with anyio.fail_after(self._attempt_s):
                response = await super().send(request, **{**more, "stream": True})
                if response.is_success and is_event_stream(response.headers):
                    return self._copy(response, stream=_Bounded(response, _WRAPPED * self._most_bytes))
                try:
                    async for chunk in response.aiter_bytes():
                        body += chunk
                        if len(body) > self._most_bytes:
                            break
                finally:
                    await response.aclose()
        except TimeoutError:
            message = "the time for the request is over"
            raise httpx2.ReadTimeout(message, request=request) from None
        return self._copy(response, content=bytes(body))

    def _copy(self, response: httpx2.Response, **body: Any) -> httpx2.Response:  # noqa: ANN401 (as the library has them)
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _OF_THE_WIRE]
        return httpx2.Response(response.status_code, headers=headers, request=response.request, **body)


def is_event_stream(headers: httpx2.Headers) -> bool:
    """Return whether an answer comes as server-sent events."""
    return headers.get("content-type", "").partition(";")[0].strip().lower() == "text/event-stream"


class _Bounded(httpx2.AsyncByteStream):
    """The body of an answer as it comes, up to so many bytes; what comes after them is an error of the library."""

    def __init__(self, response: httpx2.Response, most_bytes: int) -> None:
        self._response, self._most_bytes = response, most_bytes
        self._chunks = response.aiter_bytes()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for chunk in self._chunks:
            read += len(chunk)
            if read > self._most_bytes:
                message = f"its answer has more than {self._most_bytes} bytes: lower max_completion_tokens, or ask again"
                raise httpx2.ReadError(message, request=self._response.request)
            yield chunk

    async def aclose(self) -> None:
        # Else those below it are closed in any order as the loop ends, and one complains. Where whoever waits for more of it was
        # interrupted it cannot be closed, and ends as that task is cancelled.
        with suppress(RuntimeError):
            await self._chunks.aclose()
        await self._response.aclose()
