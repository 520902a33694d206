"""A server that speaks S3, for tests, on a free port."""

import logging
import os
from http.client import HTTPConnection
from threading import Lock, Thread
from typing import TYPE_CHECKING
from uuid import uuid4

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

if TYPE_CHECKING:
    from collections.abc import Iterable
    from wsgiref.types import StartResponse, WSGIEnvironment

# The driver takes credentials from the environment; the server takes any.
os.environ.setdefault("AWS_ACCESS_KEY_ID", "memci-tests")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "never-shown-anywhere")


class OneAtATime:
    """moto's application, which looks at the condition of a put and then writes: the two are to be one, as they are in S3."""

    def __init__(self) -> None:
        self._application = DomainDispatcherApplication(create_backend_app)
        self._lock = Lock()  # makes each request whole; without it, of two conditional puts both may win

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> "Iterable[bytes]":
        with self._lock:
            return [b"".join(self._application(environ, start_response))]


class S3Server:
    """The server, and buckets on it.

    Attributes:
        port: Where it listens on this machine.
    """

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.WARNING)  # not a line for each request
        self._server = make_server("127.0.0.1", 0, OneAtATime(), threaded=True)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.port = self._server.port

    def new_bucket(self) -> str:
        """Make an empty bucket and return its name."""
        name = f"bucket-{uuid4().hex}"
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("PUT", f"/{name}")
        assert 200 == connection.getresponse().status
        connection.close()
        return name

    def url(self, bucket: str, prefix: str = "chats", options: str = "") -> str:
        """Return the URL of a store in a bucket."""
        endpoint = f"endpoint=http://127.0.0.1:{self.port}&region=us-east-1&allow_http=true"
        return f"s3://{bucket}/{prefix}?{endpoint}{options}"

    def stop(self) -> None:
        """End it."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
