"""One message of a conversation, as memci holds it: the bytes, and the few facts that paging needs."""

from typing import Any

import attrs

from memci.messages import codec


@attrs.frozen(kw_only=True)
class Call:
    """One request of the model to run a tool."""

    id: str  # the provider's; ids repeat within real conversations
    name: str  # the tool's; empty where the provider gives none
    arguments: str  # as text, most often JSON
    kind: str = ""  # what the provider calls this kind of call, where it has several


@attrs.define(eq=False)
class Message:
    """A provider message. Immutable: ``value()`` makes a new dict at each call.

    It is ``partial`` where the model's answer may go on in the next message: an item of the Responses format, or a message that
    waits for a tool which the provider runs. No page is cut between such a message and the assistant's next one.
    """

    raw: bytes  # the message as compact JSON, in UTF-8
    role: str  # the provider's, such as user
    calls: tuple[Call, ...] = ()  # that it makes, in order
    answers: tuple[str, ...] = ()  # ids of the calls that it answers, in order
    from_user: bool = False  # the user speaks here: role user, and more than what tools answered
    partial: bool = False
    literal: bool = True  # it is sent as it came: nothing in it belongs to an answer of the provider only
    attp: bool | None = None  # whether one that begins as an answer of ATTP is one; None where nobody noted it: then it is

    @property
    def speaker(self) -> str:
        """Who speaks: the role, but ``tool`` for a message of role ``user`` that only carries what tools answered."""
        return "tool" if self.role == "user" and not self.from_user else self.role

    def marked(self, attp: bool | None) -> "Message":  # noqa: FBT001 (it is what ``attp`` becomes)
        """Return the message with what was noted when it came in."""
        return self if attp is None else attrs.evolve(self, from_user=not attp, attp=attp)

    def value(self) -> dict[str, Any]:
        """Return the message as a new dict, equal as JSON to the one that came in. O(its size)."""
        return codec.decode(self.raw)  # type: ignore[no-any-return]  # the bytes of a dict
