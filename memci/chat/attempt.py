"""HTTP requests that end in time and in little memory, however slowly and however much the other side writes."""

import socket
import threading
from typing import Any

import httpx2

_OF_THE_WIRE = ("content-encoding", "content-length", "transfer-encoding")
"""Headers that are not true of a body that was read."""


class TimedClient(httpx2.Client):
    """An HTTP client each of whose requests is over after so many seconds, with all of its answer or a timeout.

    The library's own timeouts are for each read alone: an answer that comes a byte at a time passes them all. Here a timer
    shuts the connection. So each request has a connection of its own, and redirects, which would take what was sent to
    another host, are not followed. Looking up the host's name is not bounded, and where the host has several addresses
    connecting may take as long for each of them.

    Args:
        attempt_s: Seconds from sending a request to the last byte of its answer.
        most_bytes: Of an answer that is longer, so many bytes and at least one more are read, and not the rest.
    """

    def __init__(self, attempt_s: float, most_bytes: int) -> None:
        super().__init__(timeout=attempt_s, follow_redirects=False, limits=httpx2.Limits(max_keepalive_connections=0))
        self._attempt_s = attempt_s
        self._most_bytes = most_bytes

    def send(self, request: httpx2.Request, **more: Any) -> httpx2.Response:  # noqa: ANN401 (arguments of the library)
        """Send a request and return its answer, read to its end or past the limit, or raise an error of the library."""
        watch = _Watch()
        request.extensions = {**request.extensions, "trace": watch.hear}
        timer = threading.Timer(self._attempt_s, watch.end)
        timer.daemon = True
        timer.start()
        try:
            response = self._read(super().send(request, **{**more, "stream": True}))
        except httpx2.TransportError:
            if not watch.ended:
                raise
        finally:
            timer.cancel()
            watch.close()
        if watch.ended:  # an answer whose length nobody told looks complete when its connection is shut
            message = "the time for the request is over"
            raise httpx2.ReadTimeout(message, request=request)
        return response

    def _read(self, response: httpx2.Response) -> httpx2.Response:
        body = bytearray()
        try:
            for chunk in response.iter_bytes():
                body += chunk
                if len(body) > self._most_bytes:
                    break
        finally:
            response.close()
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in _OF_THE_WIRE]
        return httpx2.Response(response.status_code, headers=headers, content=bytes(body), request=response.request)


class _Watch:
    """The connection of one request, which a timer may end at any moment."""

    def __init__(self) -> None:
        self.ended = False
        self._socket: socket.socket | None = None
        self._lock = threading.Lock()  # the timer's thread ends what the request's thread opens and closes

    def hear(self, name: str, info: dict[str, Any]) -> None:
        """Take note of the connection when it is there. The copy of its socket stays valid when TLS takes the socket over."""
        if not name.endswith("connect_tcp.complete"):
            return
        opened: socket.socket = info["return_value"].get_extra_info("socket")
        with self._lock:
            self._socket = opened.dup()
            if self.ended:
                _shut(self._socket)

    def end(self) -> None:
        """Shut the connection, so that whoever reads or writes there stops at once."""
        with self._lock:
            self.ended = True
            if self._socket is not None:
                _shut(self._socket)

    def close(self) -> None:
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None


def _shut(opened: socket.socket) -> None:
    try:
        opened.shutdown(socket.SHUT_RDWR)
    except OSError:  # the other side was first
        return
