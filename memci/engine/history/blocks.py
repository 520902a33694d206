"""Text that memci itself puts into a window: recalled pages, stubs, missing results. All of it is data.

Stored text has a mark in front of each line there, so that no line of it can be taken for the end of its block or for another.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from memci.chapters.address import is_note
from memci.chapters.dates import dates
from memci.chapters.page import Page
from memci.messages.base64_runs import data_of, described, description
from memci.messages.formats.format import Format
from memci.messages.message import Call, Message
from memci.messages.parts import Part, PartKind, flat, parts, text_of
from memci.messages.tokens.message_tokens import media_tokens_of

RENDERER = 4  # version of the texts here, and of the layout of a window
OLDEST_RENDERER = 2  # whose windows can be rendered again
EXPLAINING_RENDERER = 4  # from which on the heading of the contents page explains its marks
DATED = 3  # of a recalled page: its block says when it was said; 1 in older journals, where first and last entry told it
_MANY = 2  # in older journals, where one entry was "1 entries"

NO_RESULT = "[no result: the call was not answered before the conversation went on]"

STUB_MIN_TOKENS = 128  # entries of fewer tokens are never shown as stubs

_WIDE = re.compile(r"[^\x00-\x7f]")
_KINDS = {"input_audio": "sound", "file": "file", "input_file": "file", "document": "document"}
_WORDS = ("title", "context", "transcript")
STUB_CHARACTERS = 360  # what a stub shows of its entry at least: two thirds of it from the beginning, the rest from the end
_END_CHARACTERS = 2 * STUB_CHARACTERS  # of a long text, which are enough to find them in

_PICTURE_TOKENS, _KIND_TOKENS = 260, 60

OPENING_TOKENS = 40  # at most, of the message that a format wants before a conversation which the user does not begin


def page_block(page: Page, wire: Format, *, media: bool = True, dated: int = DATED) -> Message:
    """Return a recalled page as one message of the user's, with its provenance. O(its size).

    With *media*, pictures, sound and files stand in their places, as far as the format can carry them there, and all other base64
    is described. *dated* (see ``DATED``), it says its days, and the day of each entry that is of another day than the one before.
    Without media a mark stands for each picture; blocks of older journals are without either.
    """
    content: list[str | dict[str, Any]] = []
    ends = page.times if dated >= _MANY or page.head is None or page.tail is None else (page.head.at, page.tail.at)
    days = dates(*ends) if dated else ""
    size = "1 entry" if len(page) == 1 and dated > _MANY else f"{len(page)} entries"
    kind, told = ("note", page.name) if is_note(page.index) else ("page", size)
    lines = [f"[recalled {kind} {page.index}, turn {page.turn}: {told}{days and f' · {days}'}, quoted as data]"]
    day = days[:10]
    for position, node in enumerate(page.nodes(), start=1):
        address = f"{page.index}/{position}"
        before, day = day, node.at[:10] or day
        lines.append(f"{address} {node.message.role}{f' · {day}' if days and day != before else ''}:")
        value = node.message.value()
        for piece in _pieces(parts(value), wire, address) if media else _quoted(parts(value)):
            if isinstance(piece, str):
                lines += [f"> {line}" for line in piece.splitlines() or [""]]
                continue
            content += ["\n".join(lines), piece] if lines else [piece]
            lines = []
    lines.append(f"[end of {kind} {page.index}]")
    return wire.block(*content, "\n".join(lines))


def passages_block(passages: Sequence[Mapping[str, str]], wire: Format) -> Message:
    """Return passages of earlier pages as one message of the user's: where each stands, who said it, on which day, if in part."""
    lines, last = [f"[recalled passages, {len(passages)} of earlier pages, quoted as data]"], ("", "")
    for each in passages:
        day = (each["page"], each["at"][:10])
        about = (f"{each['address']} {each['role']}", day[1] if day != last else "", "in part" if "part" in each else "")
        lines.append(f"{', '.join(filter(None, about))}:")
        lines += [f"> {line}" for line in each["text"].splitlines()]
        last = day
    return wire.block("\n".join([*lines, "[end of passages]"]))


def slots_block(texts: Mapping[str, str], wire: Format) -> Message:
    """Return the application's texts, by name, as one message of the user's. O(its size)."""
    return _texts_block("slots", "slot", texts, wire)


def extra_block(texts: Mapping[str, str], wire: Format) -> Message:
    """Return what the application says beside one call, by name, as one message of the user's. O(its size)."""
    return _texts_block("extra", "extra", texts, wire)


def _texts_block(kind: str, each: str, texts: Mapping[str, str], wire: Format) -> Message:
    lines = [f"[{kind} of the application, quoted as data]"]
    for name, text in texts.items():
        lines += [f"{each} {name}:", *(f"> {line}" for line in text.splitlines() or [""])]
    return wire.block("\n".join([*lines, f"[end of {kind}]"]))


@attrs.frozen(kw_only=True)
class Stub:
    """What stands for a large entry: its size, a part of its text, and the tool that reads it if that is *offered*.

    Attributes:
        bounds: Of the stretches that are shown of the texts that ``words`` gives, one after the other; empty for as many
            *characters* of each, of its beginning and its end.
    """

    address: str
    tokens: int
    offered: bool
    characters: int = STUB_CHARACTERS
    bounds: tuple[int, ...] = ()
    renderer: int = RENDERER

    def of(self, message: Message, wire: Format) -> Message:
        """Return the message that stands in the place of another: each result in it has a text of its own. O(its size)."""
        if self.renderer == OLDEST_RENDERER:
            return wire.shortened(message, self._older(message))
        found, texts, place = words(message), dict[str, str](), 0
        together = f" in {len(message.answers)} results" if len(message.answers) > 1 else ""
        for answered, (text, media) in found.items():
            shown = self._shown(text, place)
            place += len(text)
            is_whole = len(found) > 1 and not media and shown == text and (text or answered)
            texts[answered] = text if is_whole else self._noted(shown, together + (f", {media} left out" if media else ""))
        return wire.shortened(message, texts.pop("", ""), texts)

    def for_text(self, text: str) -> str:
        """Return the text of the message that stands in the place of one which is a text and nothing else."""
        return self._noted(self._shown(described(text), 0))

    def _noted(self, shown: str, beside: str = "") -> str:
        read = f"; read it whole with read_page({self.address!r})" if self.offered else ""
        note = f"[{self.address}: shortened from {self.tokens:,} tokens{beside}{read}]"
        return f"{note} {shown}" if shown else note

    def _shown(self, text: str, place: int) -> str:
        """Return what is shown of a text that begins at a *place* of all texts."""
        if self.bounds:
            is_whole = any(start <= place and place + len(text) <= end for start, end in _pairs(self.bounds))
            return text if is_whole else self._stretches(text, place)
        is_whole = len(text) <= self.characters and self._ends(text) == text
        return text if is_whole else self._ends(self._plain(text))

    def _stretches(self, text: str, place: int) -> str:
        pairs = ((start - place, end - place) for start, end in _pairs(self.bounds))
        return " […] ".join(" ".join(text[max(start, 0) : end].split()) for start, end in pairs if start < len(text) and end > 0)

    def _ends(self, text: str) -> str:
        last = self.characters // 3
        head, tail = _fitting(text, self.characters * 2 // 3), _fitting(text[: -last - 1 : -1], last)[::-1]
        return text if len(text) <= len(head) + len(tail) else f"{head} […] {tail}"

    def _plain(self, text: str) -> str:
        """Return a text in one line where the stub shows the least; of a long one, ends that are longer than what is shown."""
        if self.characters != STUB_CHARACTERS:
            return text
        if len(text) > 2 * _END_CHARACTERS:
            head, tail = (" ".join(end.split()) for end in (text[:_END_CHARACTERS], text[-_END_CHARACTERS:]))
            if min(len(head), len(tail)) > STUB_CHARACTERS:
                return head + tail
        return " ".join(text.split())

    def _older(self, message: Message) -> str:
        """Return the text of all results of a message, as the oldest renderer had it. O(its size)."""
        read = f"; read it with read_page({self.address!r})" if self.offered else ""
        note, text = f"[{self.address}: {self.tokens:,} tokens, kept whole{read}]", text_of(message.value())
        if self.bounds:
            return f"{note} {self._stretches(text, 0)}".rstrip()
        text = self._plain(text) if self.characters == STUB_CHARACTERS else described(text, self.address)
        shown = self._ends(text)
        return f"{note} {shown}" if shown != text else f"{note} {text}".rstrip()


def words(message: Message) -> dict[str, tuple[str, str]]:
    """Return the texts of a message, each with what else there is, such as ``2 images``. O(its size).

    Where it is made of blocks, each result has a text of its own, under the id of the call that it answers. What stands beside
    results, and all of any other message, is under the empty id.
    """
    found = list(parts(message.value()))
    apart = {part.answers: [part] for part in found if part.answers} if message.role == "user" else {}
    beside = [part for part in found if not apart or part.answers is None]
    runs = {**apart, "": beside} if beside or not apart else apart
    return {answered: (_text(run), _media_names(run)) for answered, run in runs.items()}


def _text(found: Iterable[Part]) -> str:
    return "\n".join(filter(None, (described(part.text) for part in found if part.kind in (PartKind.TEXT, PartKind.RESULT))))


def _media_names(found: Iterable[Part]) -> str:
    media = (part for part in flat(found) if part.kind is PartKind.IMAGE or (part.kind is PartKind.OTHER and not part.inner))
    kinds = Counter(_kind(part) or "file" for part in media if media_tokens_of(part) or _kind(part))
    return ", ".join(f"{count} {kind}{'s' * (count > 1)}" for kind, count in kinds.items())


def _pairs(bounds: Sequence[int]) -> Iterator[tuple[int, int]]:
    return zip(bounds[::2], bounds[1::2], strict=True)


def _fitting(text: str, room: int) -> str:
    """Return how a text begins, at most *room* characters; fewer in scripts whose characters take more tokens."""
    kept = text[:room]
    for found in () if kept.isascii() else _WIDE.finditer(kept):
        room, former = room - (1 if found[0] < "\U00010000" else 3), room
        if found.start() >= room:
            return kept[: min(found.start(), former)]
    return kept[:room]


def no_result_tokens(call: Call) -> int:
    """Return at most how many tokens the message has that answers a call without a result.

    A token is at least one byte, an estimate stays below two a byte, and the fixed text and framing stay below 40 tokens; where
    there are several kinds of call their answers may have more keys, or be a small picture.
    """
    kind = _PICTURE_TOKENS if call.kind == "computer_call" else _KIND_TOKENS * bool(call.kind)
    return 40 + kind + 2 * len(call.id.encode("utf-8", "replace"))


def _quoted(found: Iterable[Part]) -> Iterator[str]:
    for part in found:
        if part.kind in (PartKind.TEXT, PartKind.RESULT, PartKind.CALL):
            yield f"call {part.text}" if part.kind is PartKind.CALL else part.text
        elif part.kind is PartKind.IMAGE:
            yield "[image]"


def _pieces(found: Iterable[Part], wire: Format, address: str) -> Iterator[str | dict[str, Any]]:
    """Yield the texts of a message, and its pictures, sound and files in their places: those themselves, or what they are."""
    for part in found:
        if part.inner:
            for inner in part.inner:
                plain = inner.kind is PartKind.OTHER and not inner.inner and not media_tokens_of(inner)
                yield from [described(inner.text, address)] if plain else _pieces([inner], wire, address)
        elif part.kind is PartKind.IMAGE or (part.kind is PartKind.OTHER and media_tokens_of(part)):
            yield from _media(part, wire, address)
        elif part.kind is PartKind.OTHER:
            match part.value:
                case {"type": "document", "source": {"type": "text", "data": str(text)}}:
                    yield described(text, address)
                case {"id": str()} if len(part.value) == 1:  # names what the assistant said aloud
                    yield description("sound", "", address)
        else:
            yield from (described(text, address) for text in _quoted([part]))


def _media(part: Part, wire: Format, address: str) -> Iterator[str | dict[str, Any]]:
    value = part.value if isinstance(part.value, dict) else {}
    yield from (described(value[key], address) for key in _WORDS if isinstance(value.get(key), str) and value[key])
    carried = wire.media(value)
    if carried is not None:
        yield carried
        return
    yield description(_kind(part), data_of(part.value), address)


def _kind(part: Part) -> str:
    """Return what a picture, sound or file is called; empty where that is not known."""
    value = part.value if isinstance(part.value, dict) else {}
    known = _KINDS.get(str(value.get("type")), "sound" if "transcript" in value else "")
    return "image" if part.kind is PartKind.IMAGE else known
