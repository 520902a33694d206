"""Summaries that a summariser writes: which pages it is asked of, what of its answers is believed, and how folds publish it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import TypeVar

import attrs

from memci.archive.contents.base_path import find_base
from memci.archive.contents.contents_page import ContentsEntry, Detail, Directory, Item, Span, one_line
from memci.archive.summarizers.summary import NAME_WORTH, SentWindow, Summary, has_given_title
from memci.chapters.address import page_number
from memci.chapters.page import Page
from memci.engine.core.core import Core
from memci.engine.core.monitor import SummaryFailed, logger
from memci.engine.core.summary_pool import Outcome, Request, SummaryPool
from memci.engine.history.events import SummariesClaimed, SummaryPrepared, from_record
from memci.engine.history.state import State
from memci.engine.reading import pages
from memci.engine.summaries import continuing
from memci.engine.view import planner
from memci.errors import ConflictError, CorruptError, PageNotFoundError, SummaryError
from memci.messages.headline import find_headline
from memci.messages.tokens.counter import TokenCounter

LEAST_TOKENS = 40  # of a page that is worth a request; of smaller ones extracts say as much
_LEAST_ROOM, _MOST_ROOM = 24, 96  # tokens of a summary
_TASK_TOKENS, _MOST_SHOWN = 150, 6_000  # of a request for one page: beside what it shows of that, and the most of that, about
_LINE_TOKENS = 50  # of each page in what is asked after a window
CACHED = timedelta(minutes=4)  # for which providers keep a prompt in their cache, at least
AGAIN_S = (30.0, 600.0)  # after rounds of calls that failed; then the page is given up
MOST_TOGETHER = 32  # pages that one answer sums up

_Said = TypeVar("_Said", ContentsEntry, Summary)


def ask(core: Core, *, early: bool = False) -> None:
    """Have the pages summarised that fold next, those of the last fold without a summary, and those with late results. O(those).

    They are claimed in the journal, so that no other engine pays for them too; where others wrote, that has to be known first.
    Those that are asked for together, after the last window, wait until the fold is close, but for *early*.
    """
    if core.pool is None:
        return
    note_outcomes(core)
    try:
        requests = core.run(lambda core: _claimed(core, early=early), core.config.on_conflict)
    except ConflictError:
        return
    left = list[Request]()
    for window in core.prepared.windows:
        shown = [request for request in requests if request.window is window]
        for start in range(0, len(shown), MOST_TOGETHER):
            left += _ask_together(core, core.pool, window, shown[start : start + MOST_TOGETHER])
    left += [request for request in requests if request.window is None and not core.pool.ask(request)]
    core.prepared.windows = core.prepared.windows[:1]
    with suppress(ConflictError):
        core.run(lambda core: free(core, [request.page for request in left]), "raise")


def _ask_together(core: Core, pool: SummaryPool, window: SentWindow, requests: Sequence[Request]) -> list[Request]:
    """Ask of pages in a window by one request after it, or each on its own where that costs less. O(pages).

    Returns those that the pool does not take any more.
    """
    alone = sum(_TASK_TOKENS + min(request.tokens, _MOST_SHOWN) for request in requests)
    if core.config.prices.read * window.tokens + _TASK_TOKENS + _LINE_TOKENS * len(requests) < alone:
        return [] if pool.ask_together(requests) else list(requests)
    return [each for each in requests if not pool.ask(attrs.evolve(each, window=None, asked="on its own it costs less"))]


def _claimed(core: Core, *, early: bool) -> list[Request]:
    requests = list(_requests(core, early=early))
    if requests:
        assert core.pool is not None
        until = core.clock().astimezone(UTC) + timedelta(seconds=core.pool.lease_s)
        indexes = [request.page for request in requests]
        core.commit([SummariesClaimed(pages=indexes, by=core.pool.id, until=until.isoformat())])
    return requests


def free(core: Core, indexes: Collection[str]) -> None:
    """Let others ask of pages that this engine claimed, and asks of no more."""
    assert core.pool is not None
    if own := [index for index in indexes if core.state.claims.get(index, ("", ""))[0] == core.pool.id]:
        core.commit_alone([SummariesClaimed(pages=own)])


def is_due(core: Core) -> bool:
    """Return whether there is a page to be asked for. O(pages that fold next)."""
    pool = core.pool
    return pool is not None and (any(True for _ in _wanted(core, pool, early=False)) or bool(_continued(core, pool)))


def _requests(core: Core, *, early: bool) -> Iterator[Request]:
    assert core.pool is not None
    limit = planner.contents_limit(core.state, core.config, core.config.budget.tokens)
    for index in _wanted(core, core.pool, early=early):
        page = pages.load(core, index)
        if page.tokens >= LEAST_TOKENS:
            window, why = _shown(core, page) if core.pool.extends else (None, "")
            yield Request(
                session=core.key,
                page=index,
                revision=0 if index in core.state.active else pages.get_facts(core, index).revision + (index in core.state.late),
                sha256=continuing.content_sha256(page),
                tokens=page.tokens,
                max_tokens=max(_LEAST_ROOM, min(page.tokens // 2, limit // 24, _MOST_ROOM)),
                messages=tuple(node.message for node in page.nodes()),
                window=window,
                asked=why,
                tries=event.tries if (event := core.state.find_summary(index)) is not None else 0,
            )
    if (new := _continued(core, core.pool)) and (request := continuing.request(core, new)) is not None:
        yield request


def _shown(core: Core, page: Page) -> tuple[SentWindow | None, str]:
    """Return a window after which a page can be asked for, or why there is none. O(1)."""
    made = core.prepared.windows  # none after an erasure, as the session is loaded again
    if not made:
        return None, "this process made no window of it"
    now = (page.length, page.tail.seq if page.tail is not None else 0)
    window = next((window for window in made if window.pages.get(page.index) == now), None)
    if window is None:
        return None, "no window shows all of it"
    is_cached = core.clock() - window.at <= CACHED
    return (window, "") if is_cached else (None, "the window was made too long ago")


def is_gathering(core: Core) -> bool:
    """Return whether pages wait to be asked for together, as more of them fold next. O(attached)."""
    is_wanted = core.pool is not None and core.pool.extends and bool(core.prepared.windows)
    return is_wanted and not planner.nears_fold(core.state, core.config, planner.CLOSE_SHARE)


def _wanted(core: Core, pool: SummaryPool, *, early: bool) -> Iterator[str]:
    """Yield pages without a summary that nobody is asked of now: that fold next or did, were trimmed, or have late results."""
    now = _utc(core.clock())
    yield from (index for index, due in _open_ones(core, pool, early=early) if due <= now)


def later(core: Core) -> list[str]:
    """Return when pages without a summary can be asked for that cannot now, in order: claims of others end, pauses are over."""
    now = _utc(core.clock())
    return sorted(due for _, due in _open_ones(core, core.pool, early=True) if due > now) if core.pool is not None else []


def _open_ones(core: Core, pool: SummaryPool, *, early: bool) -> Iterator[tuple[str, str]]:
    """Yield pages without a summary, and from when on they can be asked for."""
    state = core.state
    pages = planner.next_folded(state, core.config) if early or not is_gathering(core) else ()
    near = (page.index for page in chain(pages, _trimmed(core)) if page.tokens >= LEAST_TOKENS)
    last = (*state.last_fold.folded, *state.last_fold.revised) if state.last_fold is not None else ()
    for index in dict.fromkeys((*near, *last, *state.late)):
        event = state.find_summary(index)
        if (event is None or event.again) and (free_from := _free_from(core, pool, index)) is not None:
            yield index, max(free_from, "" if event is None else event.again)


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()


def _trimmed(core: Core) -> Iterator[Page]:
    """Yield pages that the window before the last one shows whole, and the last one in part. O(pages)."""
    active, windows = core.state.active, core.prepared.windows
    left = windows[1].pages.keys() - windows[0].pages.keys() if windows[1:] else ()
    for page in active.pages() if left else ():
        if page.index in left and page is not active.open_page and not page.open_calls:
            yield page


def _continued(core: Core, pool: SummaryPool) -> list[str]:
    """Return the pages of which a continuation is to be written, none where somebody is asked of it now."""
    free_from = _free_from(core, pool, core.state.archive.root)
    return continuing.wanted(core, pool) if free_from is not None and free_from <= _utc(core.clock()) else []


def _free_from(core: Core, pool: SummaryPool, index: str) -> str | None:
    """Return when others have stopped asking of a page; ``None`` where it is asked of here, or what came waits to be noted."""
    if index in core.prepared.outcomes or not pool.takes(core.key, index):
        return None
    by, until = core.state.claims.get(index, ("", ""))
    return "" if by in ("", pool.id) else until


def checked(outcome: Outcome, counter: TokenCounter, at: datetime) -> SummaryPrepared:
    """Return the event of what came of a request, its text compared with the page. O(size of the page); needs no session."""
    request, summary, tries = outcome.request, outcome.summary, outcome.tries
    if request.given:
        return continuing.checked(outcome, counter, at.isoformat())
    pause = timedelta(seconds=max(AGAIN_S[tries - 1], outcome.wait_s)) if 0 < tries <= len(AGAIN_S) else None
    event = SummaryPrepared(
        page=request.page,
        revision=request.revision,
        sha256=request.sha256,
        by=outcome.by,
        at=at.isoformat(),
        room=request.max_tokens,
        reason=outcome.problem,
        usage=_added(request.paid, outcome.usage if summary is None else summary.usage),
        asked=request.asked,
        tries=tries,
        again="" if pause is None else _utc(at + pause),
    )
    if summary is None:
        return event
    from memci.archive.summarizers.external.checking import lacking, problem, written  # noqa: PLC0415 (compiles many patterns)
    from memci.archive.summarizers.external.transcript import transcript  # noqa: PLC0415 (as above)
    from memci.archive.summarizers.extractive import ExtractiveSummarizer  # noqa: PLC0415 (as above)

    said = [text for _, text in transcript(request.messages)]
    sizes = {"page_tokens": request.tokens, "max_tokens": request.max_tokens}
    if reason := problem(summary, said, **sizes, count=counter.count):
        return attrs.evolve(event, reason=reason)
    extracts = ExtractiveSummarizer().summarize(request.messages, max_tokens=request.max_tokens)
    return attrs.evolve(
        event,
        title=summary.title,
        summary=summary.summary,
        outcome=summary.outcome,
        lines=list(summary.lines),
        words=[list(word) for word in summary.words],
        lacks=list(lacking(written(summary), extracts.entities)),
    )


def _added(one: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def note(core: Core, event: SummaryPrepared) -> bool:
    """Commit what came of a request, where the page still is what it was; return whether no other writers come first."""
    core.prepared.outcomes[event.page] = event
    return note_outcomes(core)


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
        core.commit_alone(events)
    core.prepared.outcomes.clear()
    for event in events:
        if event.reason:
            logger(core.key).warning("session %r: the summariser failed on page %s", core.session_id, event.page)
            core.monitor.tell(SummaryFailed(page=event.page, error=SummaryError(event.reason)))


def _is_of_now(core: Core, event: SummaryPrepared) -> bool:
    """Return whether a page is what it was when it was asked of, folds or folded, and has no summary."""
    if event.page == core.state.archive.root:
        return continuing.is_of_now(core, event)
    try:
        page = pages.load(core, event.page)
    except (PageNotFoundError, CorruptError):
        return False
    known, is_open = core.state.find_summary(event.page), page is core.state.active.open_page
    return not is_open and (known is None or bool(known.again)) and continuing.content_sha256(page) == event.sha256


def keep(core: Core, state: State, after: int) -> None:
    """Put into an earlier state what summarisers wrote after that event of pages that are the same in it. O(events since)."""
    written = (from_record(record) for record in core.store.journal.read(after) if record.kind == SummaryPrepared.kind)
    for event in (each for each in written if isinstance(each, SummaryPrepared)):
        page = state.active.find_page(event.page)
        if page is not None and page is not state.active.open_page and continuing.content_sha256(page) == event.sha256:
            state.summaries[event.page] = event


def summarized(core: Core, entry: ContentsEntry) -> ContentsEntry:
    """Return an entry with what a summariser wrote of its page, where there is something, and its sizes. O(its size)."""
    event = core.state.summaries.get(entry.index)
    if event is None or event.reason:
        return entry
    words = tuple([(text, worth, lead) for text, worth, lead in event.words])
    title, lines = event.title, tuple(event.lines)
    if has_given_title(entry.words):
        title, lines, words = entry.title, (title, *lines), (entry.words[0], *words)
    made = attrs.evolve(entry, title=title, summary=event.summary, lines=lines, outcome=event.outcome, words=words, by=event.by)
    return sized(core, made)


def headline(page: Page, counter: TokenCounter) -> str:
    """Return the title that the model gave a page at its end, where that can be believed; else empty. O(its size)."""
    messages = [node.message for node in page.nodes()]
    found = one_line(find_headline(messages))
    if not found:
        return ""
    from memci.archive.summarizers.external.checking import problem  # noqa: PLC0415 (compiles many patterns)
    from memci.archive.summarizers.external.transcript import transcript  # noqa: PLC0415 (as above)

    said = [text for _, text in transcript(messages)]
    reason = problem(Summary(title=found), said, page_tokens=page.tokens, max_tokens=_MOST_ROOM, count=counter.count)
    return "" if reason else found


def titled(said: _Said, title: str) -> _Said:
    """Return an entry, or a summary, with a title that somebody gave it, in the place of one that somebody gave it before."""
    return attrs.evolve(said, title=title, words=((title, NAME_WORTH, ""), *said.words[has_given_title(said.words) :]))


def keeping_title(core: Core, entry: ContentsEntry, listed: Item | None) -> ContentsEntry:
    """Return an entry that is made anew with the title that somebody gave its page, as the contents page has it until now."""
    number, spans = page_number(entry.index), listed.spans if listed is not None else ()
    title = next((text for each, text, worth, _ in spans if each == number and worth == NAME_WORTH), "")
    return sized(core, titled(entry, title)) if title else entry


def sized(core: Core, entry: ContentsEntry) -> ContentsEntry:
    """Return an entry with the size of each detail, in the fullest that is smaller than its page. O(its size)."""
    shown = {detail: core.counter.count(entry.render(detail)) + 1 for detail in Detail}
    smaller = (detail for detail in Detail if shown[detail] < entry.tokens)
    return attrs.evolve(entry, shown_tokens=shown, detail=next(smaller, Detail.BARE))


def improved(core: Core, items: Iterable[Item]) -> Iterator[Item]:
    """Yield entries and directories of the contents page for which summaries came since they were made, with these."""
    state = core.state
    folded = (index for index in state.summaries if index not in state.active and index != state.archive.root)
    came = {page_number(index): each for index in folded if not (each := state.summaries[index]).reason}
    for item in items if came else ():
        if isinstance(item, ContentsEntry):
            event = came.get(page_number(item.index))
            if event is not None and item.by != event.by:
                yield summarized(core, item)
        elif any(map(item.holds, came)):
            spans = list(_spans(item, came))
            if tuple(spans) != item.spans:
                made = attrs.evolve(item, spans=tuple(spans), unlisted=not spans, base=find_base(spans))
                yield made.counted(core.counter.count)


def _spans(directory: Directory, came: dict[int, SummaryPrepared]) -> Iterator[Span]:
    others = (span for span in directory.spans if span[0] not in came or span[2] == NAME_WORTH)
    own = (
        (number, text, worth, lead)
        for number, each in came.items()
        if directory.holds(number)
        for text, worth, lead in each.words
    )
    yield from sorted([*others, *own], key=lambda span: span[0])
