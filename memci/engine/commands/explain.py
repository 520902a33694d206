"""Why a page is where it is."""

from collections import Counter

import attrs

from memci.archive.catalogue.page_facts import PageState
from memci.chapters.address import is_root, segment_of
from memci.chapters.recalled import Attachment
from memci.engine.core.core import Core
from memci.engine.history.state import SYSTEM
from memci.engine.reading import pages
from memci.engine.settings.config import Config
from memci.engine.view import planner


@attrs.frozen(kw_only=True)
class Explanation:
    """Why a page is where it is.

    Attributes:
        index: The page's index.
        state: Where it is.
        in_window: Whether its messages stand in the window, verbatim or as a recalled block.
        in_contents: Whether the contents page that the window shows lists it, for itself or in a directory.
        reasons: The rules that put it there, with their numbers; a sentence each.
        facts: The numbers in the reasons, by name.
    """

    index: str
    state: PageState
    in_window: bool
    in_contents: bool
    reasons: tuple[str, ...]
    facts: dict[str, float | int | str | bool | None]

    def __str__(self) -> str:
        """Return the explanation as text."""
        return "\n".join([f"{self.index} is {self.state}.", *(f"- {reason}" for reason in self.reasons)])


def explain(core: Core, index: str) -> Explanation:
    """Say why a page, a root or a range of pages is where it is."""
    if pages.is_list(index):
        return _explain_list(core, index)
    facts = pages.get_facts(core, index)
    state, config = core.state, core.config
    now = core.lay_out(state, state.settled)
    marks = planner.marks(state, config, now, config.budget.tokens)
    numbers: dict[str, float | int | str | bool | None] = {
        "turn": facts.turn,
        "now_turn": state.turn,
        "tokens": facts.tokens,
        "window_tokens": now.tokens,
        "budget_tokens": config.budget.tokens,
        "high_tokens": round(marks.high),
        "low_tokens": round(marks.low),
        "min_pages": config.active.min_pages,
        "max_pages": config.active.max_pages,
        "active_pages": len(state.active),
        "archived_turn": facts.archived_turn,
        "recall_count": facts.recall_count,
        "last_recall_turn": facts.last_recall_turn,
        "pinned": facts.pinned,
        "listed_as": str(entry.detail) if (entry := state.archive.find_entry(index)) is not None else None,
    }
    shown = facts.state in (PageState.OPEN, PageState.ACTIVE, PageState.ATTACHED)
    return Explanation(
        index=index,
        state=facts.state,
        in_window=shown,
        in_contents=state.archive.shows(index),
        reasons=tuple(_reasons(core, index, facts.state, numbers)),
        facts=numbers,
    )


def _explain_list(core: Core, index: str) -> Explanation:
    facts, listed = pages.read_facts(core, index), pages.read(core, index).pages
    archive, system = core.state.archive, segment_of(index) == SYSTEM
    states = Counter(str(each.state) for each in listed)
    reasons = [
        f"It stands for {len(listed)} pages: {', '.join(f'{count} {state}' for state, count in states.items()) or 'none'}."
    ]
    shown = bool(listed) if system else bool(archive.message_list)
    if is_root(index):
        never = "It is the system part, which never folds." if system else "It is the contents page, and always stands open."
        reasons.append(never if shown else "The window does not show it: nothing is there to be shown yet.")
    else:
        shown = facts.state is not PageState.ARCHIVED
        if index in archive.published:
            reasons.append("The contents page that the window shows lists it as a directory.")
        if facts.state is PageState.ATTACHED:
            reasons.append(_attached(core.state.recalled.attachments[index], core.config))
    return Explanation(
        index=index,
        state=facts.state,
        in_window=shown,
        in_contents=index in archive.published,
        reasons=tuple(reasons),
        facts={"turn": facts.turn, "now_turn": core.state.turn, "tokens": facts.tokens, "pages": len(listed)},
    )


def _reasons(  # noqa: C901 (one branch a state)
    core: Core, index: str, where: PageState, numbers: dict[str, float | int | str | bool | None]
) -> list[str]:
    state, config = core.state, core.config
    archived = f"It was folded in turn {numbers['archived_turn']}, or restored then; it is turn {numbers['now_turn']} now."
    used = "It was never recalled."
    if numbers["recall_count"]:
        used = f"It was recalled {numbers['recall_count']}×, last in turn {numbers['last_recall_turn']}."
    reasons: list[str] = []
    match where:
        case PageState.OPEN:
            reasons.append("It is the page that the next message joins; the open page never folds.")
        case PageState.ACTIVE if index in state.system:
            reasons.append("It is a part of the system prompt, which never folds.")
        case PageState.ACTIVE:
            page = state.active.find_page(index)
            reasons.append(
                f"The window holds {numbers['window_tokens']} tokens; pages fold above {numbers['high_tokens']}, oldest first, "
                f"down to {numbers['low_tokens']}, and the last {numbers['min_pages']} pages only when a window has no room."
            )
            if page is not None and page.open_calls:
                reasons.append("A call in it waits for its result: it folds only when a window has no room.")
        case PageState.ARCHIVED:
            reasons += [archived, f"The contents page lists it ({numbers['listed_as']}).", used]
        case PageState.HIDDEN:
            directory = state.archive.find_directory(index)
            reasons += [
                archived,
                f"The contents page groups it with its neighbours in {directory.index if directory else ''}.",
                used,
            ]
        case PageState.ATTACHED:
            reasons += [archived, _attached(state.recalled.attachments[index], config), used]
        case PageState.EVICTED:
            reasons += [archived, used, "Its entry left the contents page; search finds it, restore puts it back."]
            if index in state.archive.published:
                reasons.append("The window still shows its entry, until the next fold.")
            elif state.archive.shows(index):
                reasons.append("The window still shows its entry in a directory, until the next fold.")
    if numbers["pinned"]:
        reasons.append("It is pinned: its entry is never evicted.")
    return reasons


def _attached(attachment: Attachment, config: Config) -> str:
    if attachment.prefetched:
        return f"It matches what the user said in turn {attachment.turn}, and fades with the next turn."
    return f"It was recalled in turn {attachment.turn} and fades in turn {attachment.turn + config.recall.turns}."
