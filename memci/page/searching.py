"""What a search finds and why, and why it does not find a page."""

from collections.abc import Mapping
from typing import Any

import attrs

from memci.engine.reading.searching import Hit
from memci.engine.session import Session
from memci.messages import codec
from memci.messages.formats import format as formats
from memci.messages.parts import text_of
from memci.page.journal import Journal

SHOWN_HITS = 10  # as many as a search gives by itself
MOST_RANKED = 1_000  # pages whose rank is told
_QUESTION_CHARACTERS = 200


@attrs.frozen(kw_only=True)
class Searched:
    """What a search found: the *hits* that it gives, and the first that it ranks, in view or not, by index."""

    query: str
    hits: tuple[Hit, ...]
    ranked: tuple[str, ...]

    def to_mapping(self) -> dict[str, Any]:
        """Return it as a JSON value."""
        hits = [{**attrs.asdict(hit), "state": str(hit.state), "score": round(hit.score, 4)} for hit in self.hits]
        return {"query": self.query, "hits": hits, "ranked": self.ranked, "most": SHOWN_HITS, "most_ranked": MOST_RANKED}


def searched(session: Session, query: str) -> Searched:
    """Search as the model would, and once more among all pages for the ranks. O(matches)."""
    hits = session.search(query, SHOWN_HITS)
    ranked = session.search(query, MOST_RANKED, include_visible=True)
    return Searched(query=query, hits=tuple(hits), ranked=tuple(hit.index for hit in ranked))


def queries(session: Session, journal: Journal, most: int) -> list[str]:
    """Return queries to show searches with: what the model searched for, and what the user said last, newest first."""
    wire, found, asked = formats.get(session.config.format), dict[str, None](), dict[str, None]()
    for said in reversed(journal.said.values()):
        facts = wire.facts(dict(said.value))
        for call in facts.calls:
            if call.name == "search_pages" and isinstance(query := _argument(call.arguments), str) and query.strip():
                found[query] = None
        if facts.from_user and (text := " ".join(text_of(dict(said.value)).split())):
            asked[text[:_QUESTION_CHARACTERS]] = None
        if len(found) + len(asked) >= 4 * most:
            break
    return [*found, *asked][:most]


def _argument(arguments: str) -> object:
    try:
        value = codec.decode(arguments.encode())
    except ValueError:  # what the model wrote is no JSON
        return None
    return value.get("query") if isinstance(value, Mapping) else None
