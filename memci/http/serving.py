"""Serving the HTTP API until a signal ends it."""

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Callable
from types import FrameType
from typing import TypeAlias

import uvicorn
from fastapi import FastAPI

import memci
from memci.http.app import make_app
from memci.http.guard import Rules

_GRACE_S = 10  # in which requests under way may end
_KEEP_ALIVE_S = 75  # longer than clients and proxies keep a connection, so that it is they who close it


MakeEngines: TypeAlias = Callable[[], tuple[memci.AsyncEngine, memci.Engine]]


class _Server(uvicorn.Server):
    """A server that ends without an error where a signal asks for it, and lets those go first who listen to notices."""

    def __init__(self, config: uvicorn.Config, leave: Callable[[], None]) -> None:
        super().__init__(config)
        self._leave = leave

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End, at once where it is asked a second time."""
        super().handle_exit(sig, frame)
        self._captured_signals.clear()  # or they would be raised again, before the engine is closed
        self._leave()


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches what listens there."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; raises ``OSError`` where it cannot."""
    return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)


def serve(make_engines: MakeEngines, listening: socket.socket, rules: Rules) -> None:
    """Serve sessions on a socket, which it closes, until SIGINT or SIGTERM, and log to standard error.

    The first engine is for the resources, the second never writes, and is for the page.
    Raises ``MemciError`` where the store cannot be used.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s")
    with listening:
        asyncio.run(_serve(make_engines, listening, rules))


async def _serve(make_engines: MakeEngines, listening: socket.socket, rules: Rules) -> None:
    engine, reader = make_engines()
    with reader:  # closed last, as both have one store
        async with engine:
            await engine.warm_up()
            await _listen(make_app(engine, reader, rules), listening)


async def _listen(app: FastAPI, listening: socket.socket) -> None:
    config = uvicorn.Config(
        app,
        access_log=False,  # paths and queries are other people's
        lifespan="on",
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=_GRACE_S,
        timeout_keep_alive=_KEEP_ALIVE_S,
        ws="none",
    )
    await _Server(config, app.state.notices.close).serve(sockets=[listening])
