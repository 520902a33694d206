"""Where the rules of a session are: in the window's list, in view with their message, without room, or no longer in force."""

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

import attrs

from memci.archive.rules.listing import Rule
from memci.engine.history.state import State


class RuleState(StrEnum):
    """Where a rule is."""

    VERBATIM = "verbatim"
    LISTED = "listed"
    NO_ROOM = "no_room"
    SUPERSEDED = "superseded"
    REMOVED = "removed"


@attrs.frozen(kw_only=True)
class RuleFacts:
    """A rule and where it is.

    Attributes:
        text: The words of the rule.
        address: The address of the rule, as ``Rule`` has it.
        at: When it was said, in UTC, as ISO 8601.
        speaker: The name of the user who said it, if the message has one.
        kind: The kind of the rule, as ``Rule`` has it.
        state: ``verbatim`` if its message is in view word for word, ``listed`` if the window lists it, ``no_room`` if it is in
            force and neither, ``superseded`` if a later message replaced it or took it back, ``removed`` if the application did.
        superseded_by: Address of the rule or the message that superseded it.
    """

    text: str
    address: str
    at: str
    speaker: str = ""
    kind: str
    state: RuleState = attrs.field(converter=RuleState)
    superseded_by: str | None = None

    @property
    def page(self) -> str:
        """The page of the message that set it; empty for an added rule."""
        page, slash, _ = self.address.partition("/")
        return page if slash else ""


def rule_facts(state: State) -> list[RuleFacts]:
    """Return all rules with their states in the window as it is now, oldest first, removed ones last. O(rules)."""
    if not state.rules and not state.removed_rules:
        return []
    beside = {rule.address for rule in state.rules_beside(state.settled)}
    listed = {rule.address for rule in state.listed_rules(state.settled)}

    def place(rule: Rule) -> RuleState:
        if rule.superseded_by is not None:
            return RuleState.SUPERSEDED
        if rule.address in listed:
            return RuleState.LISTED
        return RuleState.NO_ROOM if rule.address in beside else RuleState.VERBATIM

    return [
        *(_facts(rule, place(rule)) for rule in state.rules),
        *(_facts(rule, RuleState.REMOVED) for rule in state.removed_rules),
    ]


def count_states(rules: Iterable[RuleFacts]) -> dict[str, int]:
    """Return the number of rules in each state that some rule is in."""
    counts = Counter(rule.state for rule in rules)
    return {str(state): counts[state] for state in RuleState if counts[state]}


def _facts(rule: Rule, state: RuleState) -> RuleFacts:
    return RuleFacts(
        text=rule.text,
        address=rule.address,
        at=rule.at,
        speaker=rule.speaker,
        kind=rule.kind,
        state=state,
        superseded_by=rule.superseded_by,
    )
