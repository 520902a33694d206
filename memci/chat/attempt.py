"""HTTP requests that end in time, however slowly the other side writes."""

import socket
import threading
from typing import Any

import httpx2


class TimedClient(httpx2.Client):
    """An HTTP client each of whose requests is over after so many seconds, with all of its answer or a timeout.

    The library's own timeouts are for each read alone: an answer that comes a byte at a time passes them all. Here a timer
    shuts the connection. So each request has a connection of its own, and redirects, which would take what was sent to
    another host, are not followed. Looking up the host's name is not bounded, and where the host has several addresses
    connecting may take as long for each of them.

    Args:
        attempt_s: Seconds from sending a request to the last byte of its answer.
    """

    def __init__(self, attempt_s: float) -> None:
        super().__init__(timeout=attempt_s, follow_redirects=False, limits=httpx2.Limits(max_keepalive_connections=0))
        self._attempt_s = attempt_s

    def send(self, request: httpx2.Request, **more: Any) -> httpx2.Response:  # noqa: ANN401 (arguments of the library)
        """Send a request and return its answer, read to its end.

        Raises:
            httpx2.TimeoutException: There was not all of it in time.
            httpx2.TransportError: The connection failed.
        """
        watch = _Watch()
        request.extensions = {**request.extensions, "trace": watch.hear}
        timer = threading.Timer(self._attempt_s, watch.end)
        timer.daemon = True
        timer.start()
        try:
            response = super().send(request, **more)
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
        """Let go of the connection."""
        with self._lock:
            if self._socket is not None:
                self._socket.close()
                self._socket = None


def _shut(opened: socket.socket) -> None:
    try:
        opened.shutdown(socket.SHUT_RDWR)
    except OSError:  # the other side was first
        return
