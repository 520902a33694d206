"""Summaries that a summariser writes: which pages it is asked of, what of its answers is believed, and how folds publish it."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, timedelta

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory, Item, Span
from memci.archive.summarizers.summary import Summary
from memci.chapters.address import page_number
from memci.chapters.page import Page
from memci.engine.core.core import Core
from memci.engine.core.monitor import SummaryFailed
from memci.engine.core.summary_pool import Outcome, Request
from memci.engine.history.events import SummariesClaimed, SummaryPrepared
from memci.engine.reading import pages
from memci.engine.view import planner
from memci.errors import ConflictError, CorruptError, PageNotFoundError, SummaryError

NAME_WORTH = 20.0  # of that name in a row: more than all other words there
LEAST_TOKENS = 40  # of a page that is worth a request; of smaller ones extracts say as much
_LEAST_ROOM, _MOST_ROOM = 24, 96  # tokens of a summary


def ask(core: Core) -> None:
    """Have the pages summarised that fold next, and those of the last fold whose summary did not come in time. O(those).

    They are claimed in the journal, so that no other engine pays for them too; where others wrote, that has to be known first.
    """
    if core.pool is None:
        return
    try:
        requests = core.run(_claimed, "raise")
    except ConflictError:
        return
    for request in requests:
        core.pool.ask(request)


def _claimed(core: Core) -> list[Request]:
    requests = list(_requests(core))
    if requests:
        assert core.pool is not None
        until = core.clock().astimezone(UTC) + timedelta(seconds=core.pool.lease_s)
        indexes = [request.page for request in requests]
        core.commit([SummariesClaimed(pages=indexes, by=core.pool.id, until=until.isoformat())])
    return requests


def free(core: Core, indexes: list[str]) -> None:
    """Let others ask of pages that were claimed, and are not asked of after all."""
    with suppress(ConflictError):
        core.run(lambda core: core.commit([SummariesClaimed(pages=indexes)]), "raise")


def _requests(core: Core) -> Iterator[Request]:
    assert core.pool is not None
    pool, now = core.pool, core.clock().astimezone(UTC).isoformat()

    def takes(index: str) -> bool:
        by, until = core.state.claims.get(index, ("", ""))
        return pool.takes(core.session_id, index) and (by in ("", pool.id) or until <= now)

    for page, revision in _wanted(core, takes):
        limit = planner.contents_limit(core.state, core.config, core.config.budget.tokens)
        room = max(_LEAST_ROOM, min(page.tokens // 2, limit // 24, _MOST_ROOM))
        yield Request(
            session_id=core.session_id,
            page=page.index,
            revision=revision,
            sha256=content_sha256(page),
            tokens=page.tokens,
            max_tokens=room,
            messages=tuple(node.message for node in page.nodes()),
        )


def _wanted(core: Core, takes: Callable[[str], bool]) -> Iterator[tuple[Page, int]]:
    state = core.state
    for page in planner.next_folded(state, core.config):
        if page.index not in state.summaries and page.tokens >= LEAST_TOKENS and takes(page.index):
            yield page, 0
    for index in state.last_fold.folded if state.last_fold is not None else ():
        if state.find_summary(index) is None and index not in state.active and takes(index):
            facts = pages.get_facts(core, index)
            if facts.tokens >= LEAST_TOKENS:
                yield pages.load(core, index), facts.revision


def content_sha256(page: Page) -> str:
    """Return the SHA-256 of the messages of a page, in hex: what a summary is written of. O(its size)."""
    digest = hashlib.sha256()
    for node in page.nodes():
        digest.update(len(node.message.raw).to_bytes(8) + node.message.raw)
    return digest.hexdigest()


def note(core: Core, outcome: Outcome) -> None:
    """Commit what came of a request, where the page still is what it was; other writers come first."""
    core.prepared.outcomes[outcome.request.page] = outcome
    note_outcomes(core)


def note_outcomes(core: Core) -> bool:
    """Commit what came of requests, and return whether there was anything. Where others wrote, it waits until that is known."""
    if not core.prepared.outcomes:
        return False
    try:
        core.run(_note, "raise")
    except ConflictError:
        return False
    return True


def _note(core: Core) -> None:
    outcomes = list(core.prepared.outcomes.values())
    events = [event for outcome in outcomes if (event := _event(core, outcome)) is not None]
    if events:
        core.commit(events)
    core.prepared.outcomes.clear()
    for event in events:
        if event.reason:
            core.monitor.tell(SummaryFailed(page=event.page, error=SummaryError(event.reason)))


def _event(core: Core, outcome: Outcome) -> SummaryPrepared | None:
    """Return the event of an outcome; ``None`` where the page is gone, is another one now, or has a summary."""
    request, state = outcome.request, core.state
    try:
        page = pages.load(core, request.page)
    except (PageNotFoundError, CorruptError):
        return None
    if state.find_summary(request.page) is not None or content_sha256(page) != request.sha256 or page is state.active.open_page:
        return None
    event = SummaryPrepared(
        page=page.index,
        revision=request.revision,
        sha256=request.sha256,
        by=outcome.by,
        at=core.now(),
        reason=outcome.problem,
    )
    if outcome.summary is None:
        return event
    from memci.archive.summarizers.external.checking import problem  # noqa: PLC0415 (compiles many patterns)
    from memci.archive.summarizers.external.transcript import transcript  # noqa: PLC0415 (as above)

    said = [text for _, text in transcript(request.messages)]
    reason = problem(outcome.summary, said, page_tokens=request.tokens, max_tokens=request.max_tokens, count=core.counter.count)
    if reason:
        return attrs.evolve(event, reason=reason)
    return _believed(event, outcome.summary, request)


def _believed(event: SummaryPrepared, summary: Summary, request: Request) -> SummaryPrepared:
    from memci.archive.summarizers.external.checking import lacking, written  # noqa: PLC0415 (as above)
    from memci.archive.summarizers.extractive import ExtractiveSummarizer  # noqa: PLC0415 (as above)

    extracts = ExtractiveSummarizer().summarize(request.messages, max_tokens=request.max_tokens)
    return attrs.evolve(
        event,
        title=summary.title,
        summary=summary.summary,
        outcome=summary.outcome,
        lines=list(summary.lines),
        words=[list(word) for word in summary.words],
        usage=dict(summary.usage),
        lacks=list(lacking(written(summary), extracts.entities)),
    )


def summarized(core: Core, entry: ContentsEntry) -> ContentsEntry:
    """Return an entry with what a summariser wrote of its page, where there is something, and its sizes. O(its size)."""
    event = core.state.summaries.get(entry.index)
    if event is None or event.reason:
        return entry
    words = tuple([(text, worth, lead) for text, worth, lead in event.words])
    title, lines = event.title, tuple(event.lines)
    if entry.words and entry.words[0][1] == NAME_WORTH:  # the application named the page
        title, lines, words = entry.title, (title, *lines), (entry.words[0], *words)
    made = attrs.evolve(entry, title=title, summary=event.summary, lines=lines, outcome=event.outcome, words=words, by=event.by)
    return sized(core, made)


def sized(core: Core, entry: ContentsEntry) -> ContentsEntry:
    """Return an entry with the size of each detail, in the fullest that is smaller than its page. O(its size)."""
    shown = {detail: core.counter.count(entry.render(detail)) + 1 for detail in Detail}
    smaller = (detail for detail in Detail if shown[detail] < entry.tokens)
    return attrs.evolve(entry, shown_tokens=shown, detail=next(smaller, Detail.BARE))


def improved(core: Core, items: Iterable[Item]) -> Iterator[Item]:
    """Yield entries and directories of the contents page for which summaries came since they were made, with these."""
    state = core.state
    came = {page_number(index): each for index, each in state.summaries.items() if not each.reason and index not in state.active}
    for item in items if came else ():
        if isinstance(item, ContentsEntry):
            event = came.get(page_number(item.index))
            if event is not None and item.by != event.by:
                yield summarized(core, item)
        elif any(map(item.holds, came)):
            spans = list(_spans(item, came))
            if (made := attrs.evolve(item, spans=tuple(spans), unlisted=not spans)).spans != item.spans:
                yield attrs.evolve(made, shown_tokens=core.counter.count(made.render()) + 1)


def _spans(directory: Directory, came: dict[int, SummaryPrepared]) -> Iterator[Span]:
    others = (span for span in directory.spans if span[0] not in came)
    own = (
        (number, text, worth, lead)
        for number, each in came.items()
        if directory.holds(number)
        for text, worth, lead in each.words
    )
    yield from sorted([*others, *own], key=lambda span: span[0])
