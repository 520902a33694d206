"""Summaries that a summariser writes: which pages it is asked of, what of its answers is believed, and how folds publish it."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, timedelta

import attrs

from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory, Item, Span
from memci.chapters.address import page_number
from memci.chapters.page import Page
from memci.engine.core.core import Core
from memci.engine.core.monitor import SummaryFailed
from memci.engine.core.summary_pool import Outcome, Request, SummaryPool
from memci.engine.history.events import SummariesClaimed, SummaryPrepared
from memci.engine.reading import pages
from memci.engine.view import planner
from memci.errors import ConflictError, CorruptError, PageNotFoundError, SummaryError
from memci.messages.tokens.counter import TokenCounter

NAME_WORTH = 20.0  # of that name in a row: more than all other words there
LEAST_TOKENS = 40  # of a page that is worth a request; of smaller ones extracts say as much
_LEAST_ROOM, _MOST_ROOM = 24, 96  # tokens of a summary


def ask(core: Core) -> None:
    """Have the pages summarised that fold next, and those of the last fold whose summary did not come in time. O(those).

    They are claimed in the journal, so that no other engine pays for them too; where others wrote, that has to be known first.
    """
    if core.pool is None:
        return
    note_outcomes(core)
    try:
        requests = core.run(_claimed, core.config.on_conflict)
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
    if indexes:
        with suppress(ConflictError):
            core.run(lambda core: core.commit([SummariesClaimed(pages=indexes)]), "raise")


def is_due(core: Core) -> bool:
    """Return whether there is a page to be asked for. O(pages that fold next)."""
    return core.pool is not None and any(True for _ in _wanted(core, core.pool))


def _requests(core: Core) -> Iterator[Request]:
    assert core.pool is not None
    limit = planner.contents_limit(core.state, core.config, core.config.budget.tokens)
    for index in _wanted(core, core.pool):
        page = pages.load(core, index)
        if page.tokens >= LEAST_TOKENS:
            yield Request(
                session_id=core.session_id,
                page=index,
                revision=0 if index in core.state.active else pages.get_facts(core, index).revision,
                sha256=content_sha256(page),
                tokens=page.tokens,
                max_tokens=max(_LEAST_ROOM, min(page.tokens // 2, limit // 24, _MOST_ROOM)),
                messages=tuple(node.message for node in page.nodes()),
            )


def _wanted(core: Core, pool: SummaryPool) -> Iterator[str]:
    """Yield pages without a summary: those that fold next, and those of the last fold. Nobody is asked of them now."""
    state, now = core.state, core.clock().astimezone(UTC).isoformat()
    near = (page.index for page in planner.next_folded(state, core.config) if page.tokens >= LEAST_TOKENS)
    last = state.last_fold.folded if state.last_fold is not None else ()
    for index in dict.fromkeys((*near, *last)):
        by, until = state.claims.get(index, ("", ""))
        is_free = by in ("", pool.id) or until <= now
        is_known = index in core.prepared.outcomes or state.find_summary(index) is not None
        if is_free and not is_known and pool.takes(core.session_id, index):
            yield index


def content_sha256(page: Page) -> str:
    """Return the SHA-256 of the messages of a page, in hex: what a summary is written of. O(its size)."""
    digest = hashlib.sha256()
    for node in page.nodes():
        digest.update(len(node.message.raw).to_bytes(8) + node.message.raw)
    return digest.hexdigest()


def checked(outcome: Outcome, counter: TokenCounter, at: str) -> SummaryPrepared:
    """Return the event of what came of a request, its text compared with the page. O(size of the page); needs no session."""
    request, summary = outcome.request, outcome.summary
    event = SummaryPrepared(
        page=request.page, revision=request.revision, sha256=request.sha256, by=outcome.by, at=at, reason=outcome.problem
    )
    if summary is None:
        return event
    from memci.archive.summarizers.external.checking import lacking, problem, written  # noqa: PLC0415 (compiles many patterns)
    from memci.archive.summarizers.external.transcript import transcript  # noqa: PLC0415 (as above)
    from memci.archive.summarizers.extractive import ExtractiveSummarizer  # noqa: PLC0415 (as above)

    said = [text for _, text in transcript(request.messages)]
    sizes = {"page_tokens": request.tokens, "max_tokens": request.max_tokens}
    if reason := problem(summary, said, **sizes, count=counter.count):
        return attrs.evolve(event, reason=reason, usage=dict(summary.usage))
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


def note(core: Core, event: SummaryPrepared) -> None:
    """Commit what came of a request, where the page still is what it was; other writers come first."""
    core.prepared.outcomes[event.page] = event
    note_outcomes(core)


def note_outcomes(core: Core) -> bool:
    """Commit what came of requests, and return whether there was anything. Where others wrote, it waits until that is known."""
    if not core.prepared.outcomes:
        return False
    try:
        core.run(_note, core.config.on_conflict)
    except ConflictError:
        return False
    return True


def _note(core: Core) -> None:
    events = [event for event in core.prepared.outcomes.values() if _is_of_now(core, event)]
    if events:
        core.commit(events)
    core.prepared.outcomes.clear()
    for event in events:
        if event.reason:
            core.monitor.tell(SummaryFailed(page=event.page, error=SummaryError(event.reason)))


def _is_of_now(core: Core, event: SummaryPrepared) -> bool:
    """Return whether a page is what it was when it was asked of, folds or folded, and has no summary."""
    try:
        page = pages.load(core, event.page)
    except (PageNotFoundError, CorruptError):
        return False
    is_open = page is core.state.active.open_page
    return not is_open and core.state.find_summary(event.page) is None and content_sha256(page) == event.sha256


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
                yield made.counted(core.counter.count)


def _spans(directory: Directory, came: dict[int, SummaryPrepared]) -> Iterator[Span]:
    others = (span for span in directory.spans if span[0] not in came)
    own = (
        (number, text, worth, lead)
        for number, each in came.items()
        if directory.holds(number)
        for text, worth, lead in each.words
    )
    yield from sorted([*others, *own], key=lambda span: span[0])
