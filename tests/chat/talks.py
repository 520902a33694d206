"""Sessions and loops that the tests of the loop work with."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import memci
from memci.chat import Chat, Endpoint, Step
from tests.chat.model_server import Message, ModelServer

CONFIG: dict[str, Any] = {"counter": "approximate", "durability": "flush"}
"""A counter that loads nothing, and no syncs."""


def config(protocol: str = "native", **sections: Any) -> dict[str, Any]:  # noqa: ANN401 (what a configuration holds)
    """Return settings for a session whose pages stay for two turns when they are recalled."""
    return {**CONFIG, "recall": {"protocol": protocol, "turns": 2}, **sections}


@contextmanager
def talking(
    server: ModelServer,
    settings: dict[str, Any] | None = None,
    *,
    store: str = "memory:",
    observer: Callable[[Step], None] | None = None,
    max_rounds: int = 8,
    **endpoint: Any,  # noqa: ANN401 (arguments of the endpoint)
) -> Iterator[tuple[Chat, memci.Session]]:
    """Give a loop between a session and a scripted model; failed requests are not sent again unless asked for."""
    options: dict[str, Any] = {"max_retries": 0, "api_key": "sk-test-key", **endpoint}
    with (
        Endpoint(server.url, "scripted", **options) as model,
        memci.Engine(store, settings or config()) as engine,
        engine.session("talk") as session,
    ):
        yield Chat(session, model, observer=observer, max_rounds=max_rounds), session


def roles(session: memci.Session) -> list[str]:
    """Return the roles of all messages."""
    return [message["role"] for message in session.messages()]


def last_user(messages: list[Message]) -> str:
    """Return what a user said last, answers of ATTP and recalled blocks left out."""
    said: list[str] = [message["content"] for message in messages if message["role"] == "user"]
    return next(text for text in reversed(said) if not text.startswith("["))
