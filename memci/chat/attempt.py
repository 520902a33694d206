"""HTTP requests that end in time and in little memory, however slowly and however much the other side writes."""

from typing import Any

import anyio
import httpx2

_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")  # not true of a body that was read


class TimedClient(httpx2.AsyncClient):
    """An HTTP client each of whose requests is over after *attempt_s* seconds, with all of its answer or a timeout.

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
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _OF_THE_WIRE]
        return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=request)
