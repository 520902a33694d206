"""What a server gives to the page of a session: its files, and a JSON value for each thing that a view asks for."""

from collections.abc import Mapping
from typing import Any

from memci.engine.session import Session
from memci.engine.settings.presets import PRESETS
from memci.errors import ArgumentError
from memci.page.acting import would_change
from memci.page.assets import MODULES, asset, filled
from memci.page.band import Band, read_band
from memci.page.document import MOST_COMPARED, overview
from memci.page.journal import read_journal
from memci.page.pages import page_detail, page_tree
from memci.page.presets import compared
from memci.page.searching import searched
from memci.page.window import window_value

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The Content-Security-Policy with which a server gives the page."""


def page_file(name: str) -> tuple[str, str] | None:
    """Return a file of the page by its name, empty for the page itself, and its media type; ``None`` for any other name."""
    if not name:
        head = '<link rel="stylesheet" href="page.css">\n<script type="module" src="served.js"></script>\n<title>memci</title>'
        return filled(asset("index.html"), head, ""), "text/html; charset=utf-8"
    if name == "page.css":
        return asset(name), "text/css; charset=utf-8"
    if name.removesuffix(".js") in MODULES and name.endswith(".js"):
        return asset(name), "text/javascript; charset=utf-8"
    return None


def list_file(name: str) -> tuple[str, str] | None:
    """Return a file of the list of sessions, likewise."""
    return (asset("sessions.html"), "text/html; charset=utf-8") if not name else page_file(name)


class LivePage:
    """The page of a session: what was read and measured of it is kept, and what was written since comes to it.

    One thread at a time.
    """

    def __init__(self) -> None:
        self._kept: Band | None = None

    def answer(self, session: Session, name: str, query: Mapping[str, str]) -> Any:  # noqa: ANN401, PLR0911 (a JSON value, of each view)
        """Return what a view asks for of the session, which may be another handle each time.

        They are ``overview``, ``tree``, ``presets``, ``search``, ``window``, ``page``, and ``preview`` of an action.

        ``ArgumentError`` for another name, or where a part of the query is missing or none; pages and events that there are
        not are errors as in the session.
        """
        match name:
            case "overview":
                band = self._band(session)
                return {**overview(session, band.journal, band), "kept": list(range(len(band.journal.calls)))}
            case "tree":
                return page_tree(session)
            case "presets":
                short = len(self._band(session).journal.said) <= MOST_COMPARED
                return compared(session, tuple(PRESETS), lambda _done, _total: None) if short else None
            case "search":
                return searched(session, _asked(query, "query")).to_mapping()
            case "window":
                return window_value(session, _number(query, "seq"), _number(query, "before") if "before" in query else None)
            case "page":
                return page_detail(session, self._band(session).journal, _asked(query, "index"))
            case "preview":
                return would_change(session, _asked(query, "action"), query.get("of", ""))
        raise ArgumentError(argument="name", value=name, wanted="overview, tree, presets, search, window, page or preview")

    def _band(self, session: Session) -> Band:
        """Return the calls up to now. O(events since); O(history) at first, after an erasure, and with another counter."""
        band, self._kept = self._kept, None  # what fails half-way is not gone on with
        events = None if band is None else band.journal.since(session)
        if band is None or events is None or band.counter != session.config.counter:
            band = read_band(session, read_journal(session))
        elif events:
            band.journal.read(events)
            band.read(session)
        self._kept = band
        return band


def _asked(query: Mapping[str, str], name: str) -> str:
    if name not in query:
        raise ArgumentError(argument=name, value=None, wanted="a text")
    return query[name]


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) <= 18):  # noqa: PLR2004 (as many digits as a number of events has)
        raise ArgumentError(argument=name, value=text, wanted="the number of an event")
    return int(text)
