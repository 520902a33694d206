"""Text that memci itself puts into a window: recalled pages, stubs, missing results. All of it is data.

Stored text has a mark in front of each line there, so that no line of it can be taken for the end of its block or for another.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from memci.chapters.page import Page
from memci.messages.base64_runs import data_of, described, description
from memci.messages.formats.format import Format
from memci.messages.message import Call, Message
from memci.messages.parts import Part, PartKind, parts, text_of
from memci.messages.tokens.message_tokens import media_tokens_of

NO_RESULT = "[no result: the call was not answered before the conversation went on]"

STUB_MIN_TOKENS = 128  # entries of fewer tokens are never shown as stubs

_KINDS = {"input_audio": "sound", "file": "file", "input_file": "file", "document": "document"}
_WORDS = ("title", "context", "transcript")
STUB_CHARACTERS = 360  # what a stub shows of its entry at least: two thirds of it from the beginning, the rest from the end

_PICTURE_TOKENS, _KIND_TOKENS = 260, 60

OPENING_TOKENS = 40  # at most, of the message that a format wants before a conversation which the user does not begin


def page_block(page: Page, wire: Format, *, media: bool = True, dated: bool = True) -> Message:
    """Return a recalled page as one message of the user's, with its provenance. O(its size).

    With *media*, pictures, sound and files stand in their places, as far as the format can carry them there, and all other base64
    is described. *dated*, it says its days, and the day of each entry that is of another day than the one before. Without media a
    mark stands for each picture; blocks of older journals are without either.
    """
    content: list[str | dict[str, Any]] = []
    dates = page.dates if dated else ""
    lines = [f"[recalled page {page.index}, turn {page.turn}: {len(page)} entries{dates and f' · {dates}'}, quoted as data]"]
    day = dates[:10]
    for position, node in enumerate(page.nodes(), start=1):
        address = f"{page.index}/{position}"
        before, day = day, node.at[:10] or day
        lines.append(f"{address} {node.message.role}{f' · {day}' if dates and day != before else ''}:")
        value = node.message.value()
        for piece in _pieces(parts(value), wire, address) if media else _quoted(parts(value)):
            if isinstance(piece, str):
                lines += [f"> {line}" for line in piece.splitlines() or [""]]
                continue
            content += ["\n".join(lines), piece] if lines else [piece]
            lines = []
    lines.append(f"[end of page {page.index}]")
    return wire.block(*content, "\n".join(lines))


def passages_block(passages: Sequence[Mapping[str, str]], wire: Format) -> Message:
    """Return passages of earlier pages as one message of the user's: where each stands, who said it, and on which day."""
    lines, last = [f"[recalled passages, {len(passages)} of earlier pages, quoted as data]"], ("", "")
    for each in passages:
        day = (each["page"], each["at"][:10])
        lines.append(f"{each['address']} {each['role']}{', ' * (day != last)}{day[1] if day != last else ''}:")
        lines += [f"> {line}" for line in each["text"].splitlines()]
        last = day
    return wire.block("\n".join([*lines, "[end of passages]"]))


def stub_text(address: str, message: Message, tokens: int, *, offered: bool, characters: int = STUB_CHARACTERS) -> str:
    """Return what stands for a large entry: its size, how it begins and ends, and the tool that reads it if that is *offered*."""
    text = text_of(message.value())
    text = " ".join(text.split()) if characters == STUB_CHARACTERS else described(text, address)
    note = _note(address, tokens, offered=offered)
    head, tail = _fitting(text, characters * 2 // 3), _fitting(text[::-1], characters // 3)[::-1]
    if len(text) <= len(head) + len(tail):
        return f"{note} {text}".rstrip()
    return f"{note} {head} […] {tail}"


def trimmed_text(address: str, message: Message, tokens: int, bounds: Sequence[int], *, offered: bool) -> str:
    """Return what stands for a trimmed result: what a stub says, and the stretches of its text between these bounds."""
    text = text_of(message.value())
    stretches = (" ".join(text[start:end].split()) for start, end in zip(bounds[::2], bounds[1::2], strict=True))
    return f"{_note(address, tokens, offered=offered)} {' […] '.join(stretches)}".rstrip()


def _note(address: str, tokens: int, *, offered: bool) -> str:
    read = f"; read it with read_page({address!r})" if offered else ""
    return f"[{address}: {tokens:,} tokens, kept whole{read}]"


def _fitting(text: str, room: int) -> str:
    """Return how a text begins, at most *room* characters; fewer in scripts whose characters take more tokens."""
    kept = text[:room]
    for place, character in enumerate(kept):
        room -= 1 if character.isascii() else 2 if character < "\U00010000" else 4
        if room < 0:
            return kept[:place]
    return kept


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
    kind = (
        "image" if part.kind is PartKind.IMAGE else _KINDS.get(str(value.get("type")), "sound" if "transcript" in value else "")
    )
    yield description(kind, data_of(part.value), address)
