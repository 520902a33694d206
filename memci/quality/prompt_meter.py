"""Measuring what calls send, on the rendered messages alone: nothing here asks the engine."""

import math
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import attrs

from memci.errors import InvalidMessageError
from memci.messages import codec
from memci.messages.formats.format import Format
from memci.messages.tokens.counter import TokenCounter, tiktoken_counter
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message
from memci.quality.played import Calls, Faults

FALLBACK_ENCODING = "o200k_base"  # cuts messages into tokens for the comparison of prefixes where the counter only estimates
_CHUNK_CHARACTERS = 20_000  # the encoder's time grows faster than an unbroken text


@attrs.frozen(eq=False)
class SentMessage:
    """What is known of one rendered message: its JSON text, its size by the counter, and its tokens as a provider reads them."""

    raw: bytes
    tokens: int
    sequence: tuple[int, ...]
    calls: tuple[str, ...]
    answers: tuple[str, ...]
    partial: bool


@attrs.frozen(kw_only=True)
class Prompt:
    """One call, measured."""

    tokens: int  # its size by the counter, the start of the reply included
    length: int  # its size in tokens of the sequence that prefixes are compared on
    prefix: int  # how many of these are the same as at the beginning of the call before
    broken_pairs: int  # calls without a result directly after them, and results without a call
    sent: Sequence[SentMessage] = attrs.field(repr=False)  # its messages, in order


class PromptMeter:
    """Measures the calls of one conversation, one after the other. Keeps what it found out of the last call's messages.

    *counter* is what *budget* is compared with, *encode* cuts text into tokens, by default as the counter does. ``calls`` and
    ``faults`` are of the windows; ``whole`` is what all messages so far would have sent at every call. Each
    prompt begins with *tools*, a number of tokens.
    """

    def __init__(
        self,
        counter: TokenCounter,
        wire: Format,
        budget: int,
        encode: Callable[[str], list[int]] | None = None,
        *,
        tools: int = 0,
    ) -> None:
        self.calls, self.whole, self.faults = Calls(), Calls(), Faults()
        self._counter, self._wire, self._budget, self._tools = counter, wire, budget, tools
        self._encode = encode or tiktoken_counter(counter.name if counter.exact else FALLBACK_ENCODING).load()
        self._known: dict[bytes, SentMessage] = {}
        self._last: list[SentMessage] = []
        self._history = self._last_history = Calls()
        self._in_answer = False

    def opens_answer(self, message: dict[str, Any]) -> bool:
        """Return whether the model was called for a message, and not for one before it of which it is a part."""
        try:
            facts = self._wire.read(message)
        except InvalidMessageError:
            return False  # the engine says what is wrong with it
        goes_on, self._in_answer = self._in_answer, facts.partial
        return facts.role == "assistant" and not (facts.partial and goes_on)

    def added(self, message: Mapping[str, Any]) -> SentMessage:
        """Take in that a message was added, and return what is known of it."""
        known = self._message(message)
        self._history += Calls(tokens=known.tokens, length=len(known.sequence))
        return known

    def begin_call(self) -> None:
        """Take in that a call is made: count what all messages so far would send."""
        length, before = self._tools + self._history.length, self._last_history.length
        prefix = before and self._tools + before
        self.whole += Calls(calls=1, tokens=self._size(self._history.tokens), length=length, prefix=prefix)
        self._last_history = self._history

    def call(self, messages: Sequence[Mapping[str, Any]], tokens: int = 0) -> Prompt:
        """Measure a window, of so many *tokens* by its own count, note its faults, and remember it. O(messages, size of new)."""
        prompt = self.compared(messages)
        self._known, self._last = {message.raw: message for message in prompt.sent}, list(prompt.sent)
        self.faults += Faults(over_budget=max(prompt.tokens, tokens) > self._budget, broken_pairs=prompt.broken_pairs)
        return prompt

    def compared(self, messages: Sequence[Mapping[str, Any]]) -> Prompt:
        """Measure a window beside the last one, which stays the last one. O(messages, size of new)."""
        sent = [self._message(value) for value in messages]
        return Prompt(
            tokens=self._size(sum(message.tokens for message in sent)),
            length=self._tools + sum(len(message.sequence) for message in sent),
            prefix=self._tools + _common_prefix(self._last, sent) if self._last else 0,
            broken_pairs=_broken_pairs(sent),
            sent=sent,
        )

    def sent(self, prompt: Prompt, tokens: int, verbatim: int) -> None:
        """Take in that a call sent a window; *verbatim* tokens of it word for word, which count once the history is outgrown."""
        outgrown = self._size(self._history.tokens) > self._budget
        self.calls += Calls(1, tokens + self._size(0, reply=0), prompt.length, prompt.prefix)
        if outgrown:
            self.calls += Calls(outgrown=1, verbatim=verbatim, room=self._budget)

    def _size(self, tokens: int, *, reply: int = REPLY_TOKENS) -> int:
        return math.ceil((self._tools + tokens + reply) * self._counter.margin)

    def _message(self, value: Mapping[str, Any]) -> SentMessage:
        """Return what is known of one message. O(its size), and O(1) when it was in the last call."""
        raw = codec.encode(value)
        if raw not in self._known:
            facts = self._wire.facts(dict(value))
            tokens, calls = count_message(dict(value), self._counter), tuple(call.id for call in facts.calls)
            self._known[raw] = SentMessage(raw, tokens, self._sequence(value), calls, facts.answers, facts.partial)
        return self._known[raw]

    def _sequence(self, value: Mapping[str, Any]) -> tuple[int, ...]:
        """Return role, content, and the JSON of the rest (calls, ids, names) as tokens."""
        content = value.get("content")
        rest = {key: item for key, item in value.items() if key not in ("role", "content")}
        texts = [str(value.get("role", "")), content if isinstance(content, str) else codec.encode(content).decode()]
        if rest:
            texts.append(codec.encode(rest).decode())
        starts = ((text, start) for text in texts for start in range(0, len(text), _CHUNK_CHARACTERS))
        return tuple(token for text, start in starts for token in self._encode(text[start : start + _CHUNK_CHARACTERS]))


def _common_prefix(before: Sequence[SentMessage], now: Sequence[SentMessage]) -> int:
    """Return how many tokens two calls share at their beginning: whole messages, then tokens of the first that differs."""
    length = 0
    for old, new in zip(before, now, strict=False):
        if old is not new:
            pairs = zip(old.sequence, new.sequence, strict=False)
            return length + sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
        length += len(new.sequence)
    return length


def _broken_pairs(sent: Sequence[SentMessage]) -> int:
    broken = 0
    waiting: set[str] = set()
    calling = False
    for message in sent:
        answers = set(message.answers)
        broken += len(answers - waiting)
        waiting -= answers
        if not answers and not (message.partial and calling):
            broken += len(waiting)
            waiting = set()
        calling = message.partial
        waiting |= set(message.calls)
    return broken + len(waiting)
