"""A server that speaks S3, for tests: one a process, on a free port, ended with the process that started it."""

import atexit
import logging
import os
from http.client import HTTPConnection
from threading import Lock
from uuid import uuid4

from moto.server import ThreadedMotoServer

# The driver takes credentials from the environment; the server takes any.
os.environ.setdefault("AWS_ACCESS_KEY_ID", "memci-tests")
os.environ.setdefault("AWS_SECRET_ACCESS_KEY", "never-shown-anywhere")

_lock = Lock()  # keeps a second thread from starting a second server
_servers: list["S3Server"] = []


class S3Server:
    """The server, and buckets on it.

    Attributes:
        port: Where it listens on this machine.
    """

    def __init__(self) -> None:
        logging.getLogger("werkzeug").setLevel(logging.WARNING)  # not a line for each request
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        self.port = int(self._server.get_host_and_port()[1])

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
        self._server.stop()


def s3_server() -> S3Server:
    """Return the server of this process, which is started when first asked for."""
    with _lock:
        if not _servers:
            _servers.append(S3Server())
            atexit.register(_servers[0].stop)
        return _servers[0]
