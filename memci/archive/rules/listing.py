"""The rules that the user set, as a session's state has them, and the message that shows them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import attrs

from memci.messages.formats.format import Format
from memci.messages.message import Message

_HEADING = "[rules] What the user asked for, to hold from then on, in the user's own words. The system part comes first."
_END = "[end of rules]"
_MOST_MISSED = 8  # rules that find no room before older ones, which may be shorter, are not looked at


@attrs.frozen(kw_only=True)
class Rule:
    """A rule that the user set, or the application added.

    Attributes:
        text: Its words, as they were said.
        address: Of the message, such as ``usr-3/1``, with ``#2`` for the second rule that it sets; ``rule-1`` for an added one.
        at: When it was said, in UTC, as ISO 8601.
        speaker: The name of who said it, where the message has one; it holds for what this speaker asks for.
        kind: ``prohibition``, ``instruction``, ``preference``, ``convention``, ``identity``, ``constraint`` or ``remember``;
            ``added`` for one that was added.
        superseded_by: Address of the rule or the message that replaced it or took it back; ``None`` while it holds.
    """

    text: str
    address: str
    at: str
    speaker: str = ""
    kind: str
    superseded_by: str | None = None
    seq: int = attrs.field(default=0, repr=False)  # of the event that brought the message; 0 for one that was added
    tokens: int = attrs.field(default=0, repr=False)  # of its line

    @property
    def page(self) -> str:
        """The page of the message; empty for a rule that was added."""
        return self.address.partition("/")[0] if self.seq else ""


def rules_of(address: str, rules: Iterable[Sequence[Any]], **said: Any) -> list[Rule]:  # noqa: ANN401 (fields of a rule)
    """Return the rules of one message, each given by its text, its kind and the tokens of its line."""
    return [
        Rule(text=text, address=address_of(address, number), kind=kind, tokens=tokens, **said)
        for number, (text, kind, tokens) in enumerate(rules, start=1)
    ]


def address_of(message: str, number: int) -> str:
    """Return the address of a rule by that of its message, and its number there."""
    return message if number == 1 else f"{message}#{number}"


def line(rule: Rule) -> str:
    """Return the line that shows a rule, with its end; a line break in its words is a blank there."""
    speaker = f"{rule.speaker}: " if rule.speaker else ""
    text = " ".join(f'{speaker}"{rule.text}"'.splitlines())
    return f"- {text} ({rule.address.partition('#')[0]}, {rule.at[:10]})\n"


def rules_block(rules: Iterable[Rule], wire: Format) -> Message:
    """Return the message that shows rules. O(its size)."""
    return wire.block(f"{_HEADING}\n{''.join(map(line, rules))}{_END}")


def fitting(newest_first: Iterable[Rule], room: float) -> list[Rule]:
    """Return the rules that fit a number of tokens, oldest first. O(those): it ends where several have found no room."""
    chosen, missed = list[Rule](), 0
    for rule in newest_first:
        if rule.tokens <= room:
            chosen.append(rule)
            room -= rule.tokens
        elif (missed := missed + 1) == _MOST_MISSED:
            break
    return chosen[::-1]


def without(rules: Iterable[Rule], is_gone: Callable[[str], bool]) -> tuple[Rule, ...]:
    """Return rules without those whose address is gone; what was replaced or taken back from there holds again."""
    kept = (rule for rule in rules if not is_gone(rule.address))
    return tuple(
        attrs.evolve(rule, superseded_by=None) if rule.superseded_by is not None and is_gone(rule.superseded_by) else rule
        for rule in kept
    )


def to_value(rule: Rule) -> dict[str, Any]:
    """Return a rule as a snapshot holds it."""
    return attrs.asdict(rule, filter=lambda field, value: value != field.default)
