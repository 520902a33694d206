"""What an MCP server serves: tools, and texts to read; one session, or all of a tenant's."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import attrs

from memci.attp.toolbox import Tool
from memci.engine.session import Session
from memci.messages import codec
from memci.messages.base64_runs import described_value

CONTENTS: Final = "The pages of the conversation that have left the window, a few lines each; empty while all are in it."
PAGE: Final = "All messages of one page, such as usr-12, as JSON, however large it is. This is no recall."

RULES: Final = "What the user asked for, to hold from then on, and the rules of the application, oldest first, as JSON."

_URI = re.compile(r"memci://([^/]+)/(?:contents|(rules)|pages/([^/]+))")


class Resource(NamedTuple):
    """A text that a client may read: one by its URI, or many by a template of it."""

    uri: str
    name: str
    title: str
    description: str
    mime_type: str


class Served(ABC):
    """For one thread at a time. Whatever is asked sees what others wrote before. Calls raise errors of memci's."""

    instructions: str  # what a model is told of the tools

    @abstractmethod
    def tools(self) -> list[Tool]:
        """Return the tools as they are offered now."""

    @abstractmethod
    def answer(self, name: str, arguments: Mapping[str, Any]) -> tuple[str, bool]:
        """Run a tool, and return what it answers as JSON, and whether it is an error."""

    @abstractmethod
    def pictures(self, name: str, text: str) -> list[dict[str, Any]]:
        """Return the pictures that belong to what a tool answered, as parts of a message."""

    @abstractmethod
    def resources(self) -> Sequence[Resource]:
        """Return the texts that can be read."""

    @abstractmethod
    def templates(self) -> Sequence[Resource]:
        """Return those of which there are many."""

    @abstractmethod
    def read(self, uri: str) -> tuple[str, str] | None:
        """Return the MIME type and the text of a URI; ``None`` where there is none."""

    @abstractmethod
    def close(self) -> None:
        """Close what is open."""


class Place(NamedTuple):
    """What a URI names: the contents page of a session, its rules, or a page of it."""

    session: str
    page: str  # empty for the contents page and the rules
    is_rules: bool = False


def parsed(uri: str) -> Place | None:
    """Read a URI such as ``memci://support-42/pages/usr-12``; ``None`` for another one."""
    known = _URI.fullmatch(uri)
    return None if known is None else Place(unquote(known[1]), unquote(known[3] or ""), is_rules=bool(known[2]))


def text_of(session: Session, place: Place) -> tuple[str, str]:
    """Return the MIME type and the text of a place: a page has descriptions for its pictures and files.

    Rules of pages that the model may not read are left out.
    """
    if place.is_rules:
        rules = [attrs.asdict(rule) for rule in session.rules() if not rule.page or session.toolbox.may_read(rule.page)]
        return "application/json", codec.encode(rules).decode()
    if not place.page:
        return "text/plain", session.contents.render()
    index = place.page
    messages = enumerate(session.toolbox.messages(index), start=1)
    told = [described_value(message, f"{index}/{position}") for position, message in messages]
    return "application/json", codec.encode(told).decode()
