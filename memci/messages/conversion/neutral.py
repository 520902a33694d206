"""What all wire formats can say: the form through which messages are converted."""

from collections.abc import Iterable
from typing import Any, Literal, TypeAlias

import attrs

from memci.errors import InvalidMessageError
from memci.messages.validation import Problem


@attrs.frozen
class Text:
    """Words."""

    text: str


@attrs.frozen
class Image:
    """A picture, by its web address or as base64; and how closely the model is to look, in OpenAI's words, where that is said."""

    url: str = ""
    media_type: str = ""
    data: str = ""
    detail: str = ""

    @property
    def address(self) -> str:
        """The web address, or a ``data:`` URL."""
        return self.url or f"data:{self.media_type};base64,{self.data}"


@attrs.frozen
class File:
    """A document as base64, with its name."""

    name: str
    media_type: str
    data: str

    @property
    def address(self) -> str:
        """A ``data:`` URL."""
        return f"data:{self.media_type};base64,{self.data}"


@attrs.frozen
class ToolCall:
    """A call; ``free`` where its arguments are any text, not JSON."""

    id: str
    name: str
    arguments: str
    free: bool = False


@attrs.frozen
class ToolResult:
    """A result; ``free`` where its call is, as far as the message tells."""

    id: str
    content: tuple["Text | Image | File", ...]
    failed: bool = False
    free: bool = False


Piece: TypeAlias = Text | Image | File | ToolCall | ToolResult
Role: TypeAlias = Literal["system", "developer", "user", "assistant"]


@attrs.frozen
class Said:
    """What one message says, and where it stood."""

    place: str
    role: Role
    pieces: tuple[Piece, ...]


@attrs.define
class Losses:
    """Collects what does not come through."""

    _found: list[tuple[int, Problem]] = attrs.field(factory=list)

    def add(self, place: str, what: str) -> None:
        """Note one; the place begins with that of the message, ``messages[3]``."""
        number = int(place.partition("]")[0].removeprefix("messages["))
        self._found.append((number, Problem(place, what)))

    def in_order(self) -> tuple[Problem, ...]:
        """Return all in the order of the messages."""
        return tuple(problem for _, problem in sorted(self._found, key=lambda found: found[0]))

    def keys(self, place: str, value: dict[str, Any], known: Iterable[str]) -> None:
        """Note the keys of a message or block beyond those that are read."""
        rest = [key for key in value if key not in set(known) and value[key] not in (None, [], {})]
        if rest:
            self.add(place, f"the keys {', '.join(rest)}")

    def failure(self, place: str, result: ToolResult) -> None:
        """Note that a result is an error, where it is one."""
        if result.failed:
            self.add(place, "that the result is an error")


def plain(pieces: Iterable[Piece]) -> tuple[Text | Image | File, ...]:
    """Return what may stand in a result."""
    return tuple(piece for piece in pieces if isinstance(piece, Text | Image | File))


def unsayable(place: str, what: str) -> InvalidMessageError:
    """Return the error of something that the other format has no words for."""
    message = f"{what} cannot be said in the other format: leave it out, or put it in words, before converting"
    return InvalidMessageError(message, path=place)


def image_of_address(address: str, detail: object) -> Image:
    """Return the picture behind a web address or ``data:`` URL."""
    named = detail if isinstance(detail, str) and detail != "auto" else ""
    head, comma, data = address.partition(",")
    if comma and head.startswith("data:") and head.endswith(";base64"):
        return Image(media_type=head[len("data:") : -len(";base64")], data=data, detail=named)
    return Image(url=address, detail=named)


def file_of_address(name: str, address: str) -> File:
    """Return the file in a ``data:`` URL, or in bare base64, which is a PDF."""
    head, comma, data = address.partition(",")
    if not comma:
        return File(name, "application/pdf", address)
    return File(name, head.removeprefix("data:").removesuffix(";base64"), data)
