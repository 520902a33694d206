"""The request that extends the last window: all that a call sent, and after it what is asked of pages that stand there."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from memci.archive.summarizers.external.answer import as_summary
from memci.archive.summarizers.external.task import WORDS_PER_TOKEN, task
from memci.archive.summarizers.external.transcript import transcript
from memci.archive.summarizers.extractive import one_line
from memci.archive.summarizers.summary import SentWindow, Summary
from memci.messages import codec
from memci.messages.message import Message

_BEGINNING, _END = 90, 60  # characters of a part by which it is known
_NAMED = re.compile(  # as models write it, with the number of words that they were told, and as a row of a table
    r"\W*([a-z][a-z0-9_]*)-([0-9]+)(?:\s*\([0-9]+\))?"
    r"(?:[^\w:：\]|]*[:：\]|](?:[\s*_:：|]*\([0-9]+\))?[\s*_:：|–—]*|\W*$)"
)


@attrs.frozen(kw_only=True)
class Part:
    """A page of a window to be summed up in so many tokens."""

    index: str
    messages: Sequence[Message]
    max_tokens: int


@attrs.frozen(kw_only=True, repr=False)
class Extension:
    """A request in the session's wire format: messages, system prompt and tools of the last window as they were sent.

    One more message of the user comes last.
    """

    format: str
    messages: list[dict[str, Any]]
    system: list[dict[str, Any]] | None  # text blocks, where the format has a parameter of its own for it (Anthropic's)
    tools: list[dict[str, Any]]  # the schemas that the window was asked for with
    _raws: tuple[bytes, ...] = attrs.field(alias="raws")

    def to_json(self) -> bytes:
        """Return the messages as a JSON list, which begins as that of the window but for its closing bracket."""
        return b"[%b]" % b",".join(self._raws)


def extension(window: SentWindow, parts: Sequence[Part]) -> Extension:
    """Return the request for summaries of pages that a window shows. O(size of the window)."""
    raws = (*window.raws, codec.encode({"role": "user", "content": _instruction(parts)}))
    system, tools, *messages = codec.decode_list([window.system, window.tools, *raws])
    return Extension(format=window.format, messages=messages, system=system, tools=tools, raws=raws)


def _instruction(parts: Sequence[Part]) -> str:
    said = [transcript(part.messages) for part in parts]
    listed = (_line(part, each) for part, each in zip(parts, said, strict=True) if each)
    return task("window", " ".join(text for each in said for _, text in each), parts="\n".join(listed))


def _line(part: Part, said: Sequence[tuple[str, str]]) -> str:
    """Return a line that tells a part by the first and the last that was said in it."""
    first, last = ((speaker, one_line(text)) for speaker, text in (said[0], said[-1]))
    ends = [f"{first[0]}: {first[1][:_BEGINNING]}", f"{last[0]}: {last[1][-_END:]}"][: len(said)]
    return f"{part.index} ({round(WORDS_PER_TOKEN * part.max_tokens)}): {' […] '.join(ends)}"


def split(said: Summary, indexes: Sequence[str]) -> Mapping[str, Summary]:
    """Return what an answer says of each of several pages, by index; those are missing of which it says nothing.

    What stands before the first index is left out, and what is said of a page a second time or of one that is not among them;
    of a single page, all may be said without its index.
    """
    segments = {index.rpartition("-")[0] for index in indexes}
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    texts = [text for text in (said.title, *said.lines) if text]
    for text in texts:
        match = _NAMED.match(text)
        if match is not None and match[1] in segments:
            index = f"{match[1]}-{match[2]}"
            lines = []
            if index in indexes:
                lines = found.setdefault(index, []) if index not in found else []
        lines.append(text if match is None or match[1] not in segments else text[match.end() :].rstrip(" |"))
    if not found and len(indexes) == 1:
        found = {indexes[0]: texts}
    summaries = {index: as_summary("\n".join(lines)) for index, lines in found.items()}
    return {index: summary for index, summary in summaries.items() if summary.title}
