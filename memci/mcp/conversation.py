"""A stored session as a server uses it that is not alone with it."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from memci.attp.toolbox import Tool
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.settings.config import Config
from memci.engine.tools.recall_tools import answer, read_messages
from memci.errors import ConflictError, StoreError, UnavailableError
from memci.messages import codec
from memci.messages.base64_runs import data_url, described_value

_Answer = TypeVar("_Answer")


class Conversation:
    """One session of a store. Whatever is asked of it sees what others wrote before. For one thread at a time.

    The session is written to under the settings in force in it (*config* at first), also where another process changed them
    meanwhile, and is loaded again after its store failed. *store* is the URL of the store.
    """

    def __init__(self, store: str, tenant: str, session_id: str, config: Config) -> None:
        self.id = session_id
        self._place = store, tenant
        self._config = config
        self._engine: Engine | None = None
        self._session: Session | None = None

    def close(self) -> None:
        """Close the session and its store; the next question opens them again."""
        self._session = None
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def tools(self) -> list[Tool]:
        """Return the session's tools, in their order."""
        return self.ask(lambda session: list(session.toolbox.tools.values()))

    def answer(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Run a tool of the session, and return what it answers as JSON, and whether it is an error."""
        return answer(lambda tool, given: self.ask(lambda session: session.toolbox.call(tool, given)), name, arguments)

    def pictures(self, name: str, text: str) -> list[str]:
        """Return the pictures that belong to what a tool answered, as ``data:`` URLs."""
        return list(filter(None, map(data_url, self.ask(lambda session: session.toolbox.pictures(name, text)))))

    def contents(self) -> str:
        """Return the contents page as it is now; empty when it has no entries."""
        return self.ask(lambda session: session.contents.render())

    def page(self, index: str) -> str:
        """Return the messages of a page as JSON, with descriptions in the place of the bytes of pictures and files."""
        messages = self.ask(lambda session: read_messages(session, index))
        described = [described_value(message, f"{index}/{position}") for position, message in enumerate(messages, start=1)]
        return codec.encode(described).decode()

    def ask(self, question: Callable[[Session], _Answer]) -> _Answer:
        """Return what the session answers, brought up to date first; its commands begin again where somebody wrote in between.

        Raises:
            UnavailableError: The session was deleted, or its store fails.
        """
        try:
            return question(self._current())
        except ConflictError:
            raise
        except StoreError:
            self.close()
            raise

    def _current(self) -> Session:
        session = self._opened()
        session.refresh()
        in_force = attrs.evolve(session.config, on_conflict=self._config.on_conflict)
        if in_force != self._config:
            self._config = in_force
            self.close()
            session = self._opened()
        if not session.seq:
            message = f"session {self.id!r} was deleted: nothing is left of it"
            raise UnavailableError(message)
        return session

    def _opened(self) -> Session:
        if self._engine is None:
            store, tenant = self._place
            self._engine = Engine(store, self._config, tenant, on_conflict="retry")
        if self._session is None:
            self._session = self._engine.session(self.id)
        return self._session
