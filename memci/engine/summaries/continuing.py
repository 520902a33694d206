"""Continuations that a summariser writes: what it is asked of, what of its answers is believed, and what folds show of it."""

import hashlib
import math
from collections.abc import Container, Iterable, Iterator, Sequence

import attrs

from memci.archive.contents.working_set import CUT, LASTING, Continuation, Kind, WorkingSet, render
from memci.archive.summarizers.summary import GivenPage
from memci.chapters.address import among, ends, last_number, page_number, runs, segment_of
from memci.chapters.page import Page
from memci.engine.core.core import Core
from memci.engine.core.summary_pool import Outcome, Request, SummaryPool
from memci.engine.history.events import SummaryPrepared
from memci.engine.history.state import State
from memci.engine.reading import pages
from memci.engine.settings.config import Config
from memci.engine.view import planner
from memci.errors import CorruptError, PageNotFoundError
from memci.messages.tokens.counter import TokenCounter

BUDGET_SHARE = 0.2  # what a continuation may take of the budget
MOST_GIVEN_TOKENS = 16_000  # of the pages that one is made of alone: of those before them it is given the entries
FRAME_TOKENS = 40  # of its message, beside what a summariser writes
ASKED_SHARE = 0.8  # of the room for that, which it is asked to keep to: models count badly, and newer pages have notes too
_MOST_DROPPED = 20  # reasons that are noted


def most_tokens(config: Config) -> int:
    """Return how many tokens the message may have that shows a continuation."""
    return min(config.summary.continuation_tokens, int(BUDGET_SHARE * config.budget.tokens))


def content_sha256(page: Page) -> str:
    """Return the SHA-256 of the messages of a page, in hex: what a summary is written of. O(its size)."""
    digest = hashlib.sha256()
    for node in page.nodes():
        digest.update(len(node.message.raw).to_bytes(8) + node.message.raw)
    return digest.hexdigest()


def wanted(core: Core, pool: SummaryPool) -> list[str]:
    """Return the pages of which a continuation is to be written: those that fold next and those of the last fold, oldest first.

    They are at least as many as those that fold next and that one is written of already, and have as many tokens as one may, as
    far as that is known; there are none after one that was not believed, until the next fold. O(pages that fold next).
    """
    state = core.state
    failed = (prepared := state.summaries.get(state.archive.root)) is not None and prepared.reason
    if not core.config.summary.continuation or not pool.continues or failed:
        return []
    _, known, _ = _newest(state)
    near = {page.index: float(page.tokens) for page in planner.next_folded(state, core.config)}
    last = state.last_fold.folded if state.last_fold is not None else ()
    entries = {index: state.archive.find_entry(index) for index in last}
    sizes = {index: math.inf if entry is None else entry.tokens for index, entry in entries.items()} | near
    new = [index for index in sizes if not among(index, known)]
    is_much = 2 * len(new) >= len({*new, *near}) and sum(map(sizes.__getitem__, new)) >= _room(core.config)
    return new if is_much else []


def _room(config: Config) -> int:
    """Return how many tokens a summariser may write."""
    return most_tokens(config) - FRAME_TOKENS


def _newest(state: State) -> tuple[str, Sequence[str], int]:
    """Return the lines of the newest continuation, the pages that it stands on, and how many were made since its pages alone."""
    prepared, shown = state.summaries.get(state.archive.root), state.working.continuation
    if prepared is not None and not prepared.reason:
        return "\n".join(prepared.lines), prepared.pages, prepared.made
    return ("", (), 0) if shown is None else ("\n".join(shown.lines), shown.pages, shown.made)


def request(core: Core, new: Sequence[str]) -> Request | None:
    """Return the request for a continuation that is of new pages too; ``None`` where these say too little. O(what it is of)."""
    state, room = core.state, _room(core.config)
    previous, known, made = _newest(state)
    whole, entries = list(_loaded(core, new)), list[GivenPage]()
    if sum(page.tokens for page in whole) < room:
        return None
    if not previous or made + 1 >= core.config.summary.rebuild_every:
        whole, entries = _leaves(core, whole, max(map(page_number, (*new, *ends(known)))))
        previous, known, made = "", [entry.index for entry in entries], -1
    whole.sort(key=lambda page: page_number(page.index))
    given = [GivenPage(index=page.index, messages=tuple(node.message for node in page.nodes())) for page in whole]
    return Request(
        session=core.key,
        page=state.archive.root,
        revision=0,
        sha256=_sha256(core, previous, whole),
        tokens=sum(page.tokens for page in whole),
        max_tokens=int(ASKED_SHARE * room),
        messages=(),
        given=(*entries, *given),
        previous=previous,
        pages=tuple(runs(sorted({*known, *(page.index for page in whole)}, key=page_number))),
        made=made + 1,
    )


def _loaded(core: Core, indexes: Iterable[str]) -> Iterator[Page]:
    """Yield those of the pages that are there and complete."""
    for index in indexes:
        try:
            page = pages.load(core, index)
        except (PageNotFoundError, CorruptError):
            continue
        if page is not core.state.active.open_page and not page.open_calls:
            yield page


def _leaves(core: Core, newest: Sequence[Page], last: int) -> tuple[list[Page], list[GivenPage]]:
    """Return some pages and those before them as far as a request holds them, and the entries of the others. O(those)."""
    state, whole = core.state, {page.index: page for page in newest}
    tokens, segment = sum(page.tokens for page in newest), segment_of(state.archive.root)
    while last and tokens < MOST_GIVEN_TOKENS:
        if (index := f"{segment}-{last}") not in whole:
            found = {page.index: page for page in _loaded(core, [index])}
            tokens += sum(page.tokens for page in found.values())
            whole |= found
        last -= 1
    older = (item for item in state.archive.entries if page_number(item.index) <= last and item.index not in whole)
    return list(whole.values()), [GivenPage(index=item.index, entry=item.render()) for item in older]


def _sha256(core: Core, previous: str, whole: Iterable[Page]) -> str:
    """Return the SHA-256 of what a continuation is made of, in hex: after an erasing, of another."""
    said = (f"{page.index} {content_sha256(page)}" for page in whole)
    return hashlib.sha256("\n".join([str(core.state.erased_seq), previous, *said]).encode("utf-8", "surrogatepass")).hexdigest()


def is_of_now(core: Core, event: SummaryPrepared) -> bool:
    """Return whether a continuation is written of what is there now. O(size of the pages that it was given whole)."""
    previous, _, _ = _newest(core.state)
    ranges = ((segment_of(each), page_number(each), last_number(each)) for each in event.given)
    whole = [
        page for segment, first, last in ranges for page in _loaded(core, (f"{segment}-{n}" for n in range(first, last + 1)))
    ]
    return event.sha256 == _sha256(core, previous if event.made else "", whole)


def checked(outcome: Outcome, counter: TokenCounter, at: str) -> SummaryPrepared:
    """Return the event of what came of a request, each line of it compared with what it was made of. O(size of that)."""
    asked, summary = outcome.request, outcome.summary
    whole = [page.index for page in asked.given if not page.entry]
    event = SummaryPrepared(
        page=asked.page,
        revision=asked.revision,
        sha256=asked.sha256,
        by=outcome.by,
        at=at,
        reason=outcome.problem,
        pages=list(asked.pages),
        given=runs(whole),
        made=asked.made,
        usage=dict(outcome.usage if summary is None else summary.usage),
    )
    if summary is None:
        return event
    from memci.archive.summarizers.external.checking import believed  # noqa: PLC0415 (compiles many patterns)
    from memci.archive.summarizers.external.transcript import transcript  # noqa: PLC0415 (as above)

    said = [asked.previous]
    for page in asked.given:
        said += [page.index, page.entry, *(text for _, text in transcript(page.messages))]
    most = int(asked.max_tokens / ASKED_SHARE)
    found = believed(summary, said, most_tokens=most, count=lambda text: counter.count(text.replace("\n", "\n- ")))
    dropped = list(found.dropped[:_MOST_DROPPED])
    return attrs.evolve(event, reason=found.reason, lines=list(found.lines), dropped=dropped)


def shown(core: Core, working: WorkingSet, newer: Container[Kind]) -> Continuation | None:
    """Return what a summariser wrote that fits, with notes of the pages since, without those of kinds that newer ones have.

    Of all pages there is, as far as it is not said, what was touched, and what the user said is to hold. O(notes).
    """
    state, most = core.state, most_tokens(core.config)
    prepared, made = state.summaries.get(state.archive.root), state.working.continuation
    if prepared is not None and not prepared.reason:
        made = Continuation(lines=tuple(prepared.lines), by=prepared.by, pages=tuple(prepared.pages), made=prepared.made)
    if made is None:
        return None

    def sized(made: Continuation) -> Continuation:
        return attrs.evolve(made, tokens=core.count(state.wire.block(render(WorkingSet(continuation=made, by_page=True)))))

    made = sized(attrs.evolve(made, notes=()))
    text = "\n".join(made.lines)
    lasting = [note for note in working.notes if note.kind in LASTING and note.text.removeprefix(CUT) not in text]
    since = [note for note in working.notes if note.kind not in LASTING and not among(note.page, made.pages)]
    left = attrs.evolve(working, notes=(*since, *lasting))
    noted = sized(attrs.evolve(made, notes=left.chosen(most - made.tokens, core.counter.count, newer)))
    while noted.tokens > most and noted.notes:
        noted = sized(attrs.evolve(noted, notes=noted.notes[:-1]))
    return noted if noted.tokens <= most else None
