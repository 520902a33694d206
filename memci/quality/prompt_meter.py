"""Measuring what calls send, on the rendered messages alone: nothing here asks the engine."""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

import attrs

from memci.messages import codec
from memci.messages.formats.format import Format
from memci.messages.tokens import encodings
from memci.messages.tokens.counter import TokenCounter
from memci.messages.tokens.message_tokens import REPLY_TOKENS, count_message

FALLBACK_ENCODING = "o200k_base"
"""Cuts messages into tokens for the comparison of prefixes where the counter only estimates."""

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

    *counter* is what the budget is compared with, *encode* cuts text into tokens (see ``encoder``).
    """

    def __init__(self, counter: TokenCounter, wire: Format, encode: Callable[[str], list[int]]) -> None:
        self._counter, self._wire, self._encode = counter, wire, encode
        self._known: dict[bytes, SentMessage] = {}
        self._last: list[SentMessage] = []

    def message(self, value: Mapping[str, Any]) -> SentMessage:
        """Return what is known of one message. O(its size), and O(1) when it was in the last call."""
        raw = codec.encode(value)
        if raw not in self._known:
            facts = self._wire.facts(dict(value))
            tokens, calls = count_message(dict(value), self._counter), tuple(call.id for call in facts.calls)
            self._known[raw] = SentMessage(raw, tokens, self._sequence(value), calls, facts.answers, facts.partial)
        return self._known[raw]

    def call(self, messages: Sequence[Mapping[str, Any]]) -> Prompt:
        """Measure a call, and remember it for the next one. O(messages, and the size of those that are new)."""
        sent = [self.message(value) for value in messages]
        prompt = Prompt(
            tokens=math.ceil((sum(message.tokens for message in sent) + REPLY_TOKENS) * self._counter.margin),
            length=sum(len(message.sequence) for message in sent),
            prefix=_common_prefix(self._last, sent),
            broken_pairs=_broken_pairs(sent),
            sent=sent,
        )
        self._known, self._last = {message.raw: message for message in sent}, sent
        return prompt

    def _sequence(self, value: Mapping[str, Any]) -> tuple[int, ...]:
        """Return role, content, and the JSON of the rest (calls, ids, names) as tokens."""
        content = value.get("content")
        rest = {key: item for key, item in value.items() if key not in ("role", "content")}
        texts = [str(value.get("role", "")), content if isinstance(content, str) else codec.encode(content).decode()]
        if rest:
            texts.append(codec.encode(rest).decode())
        starts = ((text, start) for text in texts for start in range(0, len(text), _CHUNK_CHARACTERS))
        return tuple(token for text, start in starts for token in self._encode(text[start : start + _CHUNK_CHARACTERS]))


def encoder(counter: TokenCounter) -> Callable[[str], list[int]]:
    """Return what cuts text into the counter's own tokens, or those of ``FALLBACK_ENCODING`` for an estimate."""
    return _load(counter.name if counter.exact else FALLBACK_ENCODING).encode_ordinary


_load = functools.cache(encodings.load)  # 0.3 s, once for all replays of a process


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
