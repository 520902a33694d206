"""One message of a conversation, as memci holds it: the bytes, and the few facts that paging needs."""

from typing import Any

import attrs

from memci.messages import codec


@attrs.frozen(kw_only=True)
class Call:
    """One request of the model to run a tool.

    Attributes:
        id: The provider's id; ids repeat within real conversations.
        name: The tool's name; empty where the provider gives none.
        arguments: The arguments as text, most often JSON.
        kind: What the provider calls this kind of call, where it has several; empty elsewhere.
    """

    id: str
    name: str
    arguments: str
    kind: str = ""


@attrs.define(eq=False)
class Message:
    """A provider message. Immutable: ``value()`` makes a new dict at each call.

    Attributes:
        raw: The message as compact JSON, in UTF-8.
        role: The provider's role, such as ``user``.
        calls: Tool calls that this message makes, in order.
        answers: Ids of the calls that this message answers, in order.
        from_user: The user speaks here: role ``user``, and more than what tools answered.
        partial: The model's answer may go on in the next message: an item of the Responses format, or a message that waits for
            a tool which the provider runs. No page is cut between such a message and the assistant's next one.
        literal: Nothing in it belongs to an answer of the provider only: for itself, it is sent as it came.
        attp: Where it begins as an answer of ATTP does: whether it is one. ``None`` elsewhere, and where nobody noted it when the
            message came in: then it is one.
    """

    raw: bytes
    role: str
    calls: tuple[Call, ...] = ()
    answers: tuple[str, ...] = ()
    from_user: bool = False
    partial: bool = False
    literal: bool = True
    attp: bool | None = None

    @property
    def speaker(self) -> str:
        """Who speaks: the role, but ``tool`` for a message of role ``user`` that only carries what tools answered."""
        return "tool" if self.role == "user" and not self.from_user else self.role

    def marked(self, attp: bool | None) -> "Message":  # noqa: FBT001 (it is what ``attp`` becomes)
        """Return the message with what was noted of it when it came in."""
        return self if attp is None else attrs.evolve(self, from_user=not attp, attp=attp)

    def value(self) -> dict[str, Any]:
        """Return the message as a new dict, equal as JSON to the one that came in. O(its size)."""
        value: dict[str, Any] = codec.decode(self.raw)
        return value
