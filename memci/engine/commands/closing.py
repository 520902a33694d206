"""Topics: what was talked about since the last one folds under a title that the application or the model gives it."""

import attrs

from memci.archive.contents.contents_page import one_line
from memci.engine.commands import folding
from memci.engine.commands.preparing import NAME_CHARACTERS
from memci.engine.core.core import Core
from memci.engine.core.monitor import Fold
from memci.engine.view import planner
from memci.errors import ArgumentError, MemciError


def close_topic(core: Core, title: object, after: int) -> Fold:
    """Fold the complete pages since the last topic under a title; *after* is the number of the last page that one had.

    Raises what ``Session.close_topic`` does.
    """
    named, state = checked_name(title, "title"), core.state
    if state.topic != after:
        what = "another topic was closed"
        raise core.changed(what)
    since = {page.index for page in state.active.pages() if int(page.index.rpartition("-")[2]) > after}
    plan = planner.plan_command(state, core.config, since)
    listed = [index for index in plan.pages if state.placement(index) is None]
    if not listed and not folding.topic_of(state.archive.entries, after):
        message = "there is no topic to close: since the last one no page is complete, or listed for itself; talk on first"
        raise MemciError(message)
    return folding.fold(core, attrs.evolve(plan, reason="topic"), title=named)


def checked_name(title: object, argument: str) -> str:
    """Return a title without blanks around it, or raise ``ArgumentError``: it stands on a line beside indexes and marks."""
    from memci.archive.summarizers import extractive  # noqa: PLC0415 (compiles many patterns)
    from memci.archive.summarizers.external.checking import forged  # noqa: PLC0415 (as above)

    named = title.strip() if isinstance(title, str) else ""
    shown = extractive.one_line(named)
    is_line = shown and "\ufffd" not in shown and one_line(named) == named and len(named) <= NAME_CHARACTERS
    if not is_line or forged(named):
        wanted = f"a line of 1 to {NAME_CHARACTERS} characters, without marks or indexes such as [usr-12]"
        raise ArgumentError(argument=argument, value=title, wanted=wanted)
    return named
