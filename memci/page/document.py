"""The page of one session as one file, which asks nothing of anybody: data, style and script stand in it."""

import base64
import gzip
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from memci.engine.session import Session
from memci.engine.settings.presets import PRESETS
from memci.messages import codec
from memci.page.assets import asset, filled, one_script
from memci.page.band import Band, chosen, read_band, savings
from memci.page.journal import Journal, read_journal
from memci.page.message import Messages
from memci.page.pages import listed, page_detail, page_table, page_tree
from memci.page.presets import compared
from memci.page.searching import queries, searched
from memci.page.window import told
from memci.version import VERSION

Advance = Callable[[int, int], None]  # hears how much of something is done, and how much there is

MOST_WINDOWS = 400  # with their messages, where nobody asks for more
MOST_QUERIES = 8
MOST_COMPARED = 1_000  # messages, up to which presets are set side by side where nobody names them
_PAGES_A_CHUNK = 256
_CHUNK_CHARACTERS = 500_000  # of messages, before they are packed


def overview(session: Session, journal: Journal, band: Band) -> dict[str, Any]:
    """Return what the page shows first: the session, its calls, what happened between them, their cost, its pages and rules."""
    config = session.config
    return {
        "memci": VERSION,
        "session": session.id,
        "title": str(session.metadata.get("title", "")),
        "seq": session.seq,
        "turn": session.turn,
        "format": config.format,
        "counter": config.counter,
        "preset": config.preset,
        "prices": {"write": config.prices.write, "read": config.prices.read},
        "calls": band.to_mapping(),
        "misses": band.misses,
        "marks": [[mark.seq, mark.kind, mark.words] for mark in journal.marks],
        "ways": savings(session, band),
        "pages": page_table(session, journal),
        "rules": band.rules.to_list(),
    }


def document(
    session: Session,
    *,
    most_windows: int = MOST_WINDOWS,
    asked: Sequence[str] = (),
    presets: Sequence[str] | None = None,
    advance: Advance = lambda _done, _all: None,
) -> str:
    """Return the page of a session as one HTML file.

    Windows stand in it with their messages as far as they are no more than *most_windows*, and searches for what is *asked*,
    and for what was asked in the conversation. *presets* are set side by side with the session: by default all, where it is
    short. What is left out is said in the page. *advance* hears how far it is. O(history).
    """
    journal = read_journal(session)
    kept = chosen(journal, most_windows)
    band = read_band(session, journal, frozenset(kept), advance)
    messages, facts = Messages(), overview(session, journal, band)
    windows = [{"number": seen.number, **told(seen.past, seen.cached, messages.add)} for seen in band.windows]
    details = list(_details(session, journal, messages, advance))
    words = list(dict.fromkeys([*asked, *queries(session, journal, MOST_QUERIES)]))
    names = presets if presets is not None else tuple(PRESETS) if len(journal.said) <= MOST_COMPARED else ()
    compare = compared(session, names, advance) if names else None
    starts, batches = _batches(messages.shown)
    chunks: dict[str, object] = {
        "windows": windows,
        "tree": page_tree(session),
        "searches": [searched(session, query).to_mapping() for query in words],
        "presets": compare,
        **{f"pages-{place}": details[place : place + _PAGES_A_CHUNK] for place in range(0, len(details), _PAGES_A_CHUNK)},
        **{f"messages-{start}": some for start, some in zip(starts, batches, strict=True)},
    }
    facts |= {"kept": kept, "starts": starts, "pages_a_chunk": _PAGES_A_CHUNK}
    return assembled(facts, chunks)


def _details(session: Session, journal: Journal, messages: Messages, advance: Advance) -> Iterator[dict[str, Any]]:
    items, facts = session.contents.entries, listed(session)
    for number, each in enumerate(facts, start=1):
        yield page_detail(session, journal, each.index, items, messages.add)
        advance(number, len(facts))


def _batches(shown: Sequence[Mapping[str, Any]]) -> tuple[list[int], list[Sequence[Mapping[str, Any]]]]:
    """Return messages in some chunks, and the number of the first of each."""
    starts, size = [0], 0
    for number, each in enumerate(shown):
        size += len(each["text"]) + len(each["rest"])
        if size > _CHUNK_CHARACTERS and number > starts[-1]:
            starts.append(number)
            size = 0
    return starts, [shown[start:end] for start, end in zip(starts, [*starts[1:], len(shown)], strict=True)]


def assembled(facts: Mapping[str, Any], chunks: Mapping[str, object]) -> str:
    """Return the file: *facts* as JSON, and *chunks*, each packed, which are read when they are needed.

    The script stands before these, so that the first view is there before a large file is read to its end.
    """
    style, script = asset("page.css"), one_script("embedded")
    data = [f'<script type="application/json" id="overview">{json_text(facts)}</script>', f"<script>{script}</script>"]
    data += [
        f'<script type="application/octet-stream" id="{escape(name)}">{packed(value)}</script>' for name, value in chunks.items()
    ]
    policy = "; ".join([
        "default-src 'none'",
        f"script-src '{_hash(script)}'",
        f"style-src '{_hash(style)}'",
        "base-uri 'none'",
        "form-action 'none'",
    ])  # fmt: skip
    named = facts["title"] or facts["session"]
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<title>{escape(_line(named))} · memci</title>\n'
    head += f"<style>{style}</style>"
    return filled(asset("index.html"), head, "\n".join(data))


def json_text(value: object) -> str:
    """Return JSON that can stand in markup: no character in it ends or begins anything there."""
    text = codec.encode(value).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(value: object) -> str:
    """Return JSON, packed with gzip, in letters that can stand in markup. The same value is always the same text."""
    return base64.b64encode(gzip.compress(codec.encode(value), mtime=0)).decode()


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _line(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
