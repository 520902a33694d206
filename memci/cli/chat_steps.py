"""What ``memci chat`` writes of a turn, for people and for machines."""

from collections.abc import Callable
from typing import assert_never

import attrs

from memci.chat.step import Answer, CodeAnswered, Ending, Faded, Step, ToolAnswered, WindowSent
from memci.cli import output
from memci.cli.wording import breakdown, count
from memci.engine.core.monitor import (
    Eviction,
    Fold,
    FoldFailed,
    Notice,
    PageRebuilt,
    Prefetch,
    PrefetchFailed,
    Recall,
    SummaryFailed,
    ZoneChange,
)

_MOST_SHOWN = 160

_REMARKS = {
    Ending.CUT: "the reply was cut off by the endpoint's limit for replies",
    Ending.REFUSED: "the model refused, or a filter did",
    Ending.EMPTY: "the model said nothing",
    Ending.LIMIT: "the model called tools to the end of its rounds, and gave no answer",
}


def show(*, json: bool) -> Callable[[Step], None]:
    """Return what writes each step: as a JSON document a line on standard output, or as lines on standard error."""
    return _document if json else _note


def show_answer(answer: Answer, *, json: bool) -> None:
    """Write what came of a turn, at once."""
    if json:
        output.document({"step": "answer", **attrs.asdict(answer)})
    else:
        output.text(answer.text)
        if answer.ending in _REMARKS:
            output.note(_REMARKS[answer.ending])
    output.flush()


def _note(step: Step) -> None:
    for line in _lines(step):
        output.note(line)


def _lines(step: Step) -> list[str]:
    match step:
        case WindowSent(window=window):
            lines = [f"window {count(window.tokens)} of {count(window.budget)} tokens ({breakdown(window.breakdown)})"]
        case ToolAnswered():
            lines = [f"call   {step.name} {step.arguments}", f"result {step.answer}"]
        case CodeAnswered():
            lines = [f"call   {step.reply}", f"result {step.answer}"]
        case Faded(pages=pages):
            lines = [f"fade   {', '.join(pages)}"]
        case _:
            lines = _notice_lines(step)
    return [line if len(line) <= _MOST_SHOWN else f"{line[:_MOST_SHOWN]}…" for line in map(output.one_line, lines)]


def _notice_lines(notice: Notice) -> list[str]:
    match notice:
        case Fold(pages=pages):
            folded = f"{pages[0]} to {pages[-1]}, {len(pages)} pages" if pages else "the contents page alone"
            lines = [
                f"fold   {folded}: the window goes from {count(notice.tokens_before)} to {count(notice.tokens_after)} tokens"
            ]
        case FoldFailed(error=error):
            lines = [f"fold   failed, and is tried again later: {error}"]
        case Eviction(pages=evicted):
            lines = [f"evict  {', '.join(index for index, _ in evicted)}"]
        case SummaryFailed(page=page, error=error):
            lines = [f"page   {page} could not be summarised, extracts are shown: {error}"]
        case Recall(page=page, refused=refused):
            lines = [f"recall {page}{': too large to be attached' if refused else ''}"]
        case Prefetch(pages=pages):
            lines = [f"prefetch {', '.join(pages)}: {count(notice.tokens)} tokens"]
        case PrefetchFailed(error=error):
            lines = [f"prefetch failed: {error}"]
        case PageRebuilt(page=page):
            lines = [f"page   {page} was made again from the journal"]
        case ZoneChange():
            lines = []  # the line of the window tells
        case _:
            assert_never(notice)
    return lines


def _document(step: Step) -> None:
    match step:
        case WindowSent(window=window):
            facts = {"tokens": window.tokens, "budget": window.budget, "seq": window.seq, "breakdown": dict(window.breakdown)}
            output.document({"step": "window", **facts})
        case FoldFailed(error=error) | SummaryFailed(error=error) | PrefetchFailed(error=error):
            output.document({"step": _NAMES[type(step)], "error": str(error)})
        case _:
            output.document({"step": _NAMES[type(step)], **attrs.asdict(step)})


_NAMES: dict[type, str] = {
    ToolAnswered: "tool",
    CodeAnswered: "code",
    Faded: "fade",
    Fold: "fold",
    FoldFailed: "fold_failed",
    SummaryFailed: "summary_failed",
    Eviction: "evict",
    Recall: "recall",
    Prefetch: "prefetch",
    PrefetchFailed: "prefetch_failed",
    PageRebuilt: "page_rebuilt",
    ZoneChange: "zone",
}
