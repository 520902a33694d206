"""Pages that are attached before anybody asks: those that match what the user just said."""

import math

from memci.engine.commands.recalling import attaching
from memci.engine.core.core import Core
from memci.engine.core.monitor import Prefetch, PrefetchFailed, logger
from memci.engine.core.projection import entry_text
from memci.engine.history.events import PageRecalled
from memci.engine.reading import pages
from memci.engine.reading.searching import search
from memci.errors import CorruptError, UnavailableError

LEAST_SCORE = 0.25
"""How well a page has to match, as ``Hit.score`` tells. On real conversations, questions about earlier pages find most of their
evidence above it; what is below is rarely about the same."""

MOST_PAGES = 20


def prefetch(core: Core, budget: int, heard: int) -> int:
    """Attach the pages that match the user's new message well, before it is answered; once for each message. Costs a search.

    Return the sequence number of the newest message for which they were looked for, which the window notes; *heard* is the last.
    """
    state = core.state
    open_page = state.active.open_page
    recall = core.config.recall
    if open_page is None or open_page.tail is None or not open_page.only_user:
        return heard
    message = open_page.tail.seq
    if message <= heard:  # it has what there was, or had it until something else needed the room
        return heard
    attached = [(math.ceil(each.tokens * state.scale), each.prefetched) for each in state.recalled.attachments.values()]
    room = min(
        recall.passages_tokens - sum(tokens for tokens, prefetched in attached if prefetched),
        int(recall.max_share * budget) - sum(tokens for tokens, _ in attached),
    )
    query = "\n".join(entry_text(node.message) for node in open_page.nodes() if node.seq > heard)
    try:
        events = _matching(core, query, room, message)
    except (UnavailableError, CorruptError) as error:
        logger().warning("session %r: pages could not be prefetched: %s", core.session_id, error)
        core.monitor.tell(PrefetchFailed(error=error))
        return heard
    if events:
        core.commit(events)
        core.monitor.tell(Prefetch(pages=tuple(event.page for event in events), tokens=sum(each.block_tokens for each in events)))
    return message


def _matching(core: Core, query: str, room: int, message: int) -> list[PageRecalled]:
    events: list[PageRecalled] = []
    for hit in search(core, query, limit=MOST_PAGES, include_visible=False):
        if hit.score < LEAST_SCORE:
            break
        event = attaching(core, pages.load(core, hit.index), prefetched=message)
        tokens = math.ceil(event.block_tokens * core.state.scale)
        if tokens <= room:
            room -= tokens
            events.append(event)
    return events
