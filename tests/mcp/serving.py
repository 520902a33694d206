"""A server in a process of its own, and the SDK's client that talks to it."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import mcp_types as types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters

import memci
from tests.cli.processes import environment


@attrs.frozen
class Served:
    """A session that a server offers.

    Attributes:
        store: URL of its store.
        session_id: Its id.
        client: Is connected to the server.
        portal: Runs what the client is to do, from the test's thread.
    """

    store: str
    session_id: str
    client: Client
    portal: BlockingPortal

    def call(self, name: str, arguments: dict[str, Any] | None = None) -> types.CallToolResult:
        """Call a tool. The SDK's client checks the structured result against the schema that the server lists for it."""
        result: types.CallToolResult = self.portal.call(self.client.call_tool, name, arguments)
        return result

    def value(self, name: str, **arguments: object) -> Any:  # noqa: ANN401 (what the tool answers)
        """Return the structured result of a call that succeeds; its text is the same JSON."""
        result = self.call(name, arguments)
        assert not result.is_error, result
        assert result.structured_content == json.loads(text_of(result))
        return result.structured_content

    def read(self, uri: str) -> str:
        """Return the text of a resource."""
        (contents,) = self.portal.call(self.client.read_resource, uri).contents
        assert isinstance(contents, types.TextResourceContents)
        return contents.text

    @contextmanager
    def stored(self, *, read_only: bool = True) -> Iterator[memci.Session]:
        """Open the session in this process, beside the server."""
        with memci.Engine(self.store, read_only=True) as engine, engine.session(self.session_id) as session:
            config = session.config
        with memci.Engine(self.store, config, read_only=read_only) as engine, engine.session(self.session_id) as session:
            yield session


def text_of(result: types.CallToolResult) -> str:
    """Return the one text of a result."""
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    return content.text


@contextmanager
def served(store: str, session_id: str, *options: str) -> Iterator[Served]:
    """Start ``memci mcp`` for a session, or with options for all, and end it afterwards."""
    arguments = ["-m", "memci", "mcp", "--store", store, *(options or ("--session", session_id))]
    client = Client(StdioServerParameters(command=sys.executable, args=arguments, env=environment()))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client):
        yield Served(store, session_id, client, portal)
