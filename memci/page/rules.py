"""The rules of a conversation: the words of each, and where it was at each call."""

from collections.abc import Sequence
from typing import Any

import attrs

from memci.engine.view.rule_facts import RuleFacts


@attrs.define(eq=False)
class _Row:
    rule: RuleFacts
    places: list[list[Any]] = attrs.field(factory=list)  # from which call on, the state, what superseded it

    def note(self, call: int, state: str, superseded_by: str | None) -> None:
        """Note where the rule is as of a call, unless it was there at the call before."""
        if not self.places or [state, superseded_by] != self.places[-1][1:]:
            self.places.append([call, state, superseded_by])


class RuleCourse:
    """Follows the rules of a conversation from call to call."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], _Row] = {}  # by address and words: after a rewind an address may have other words

    def cut(self, first: int) -> None:
        """Forget the calls from the number *first* on. O(rules and their changes)."""
        for row in self._rows.values():
            row.places = [place for place in row.places if place[0] < first]
        self._rows = {key: row for key, row in self._rows.items() if row.places}

    def add(self, call: int, rules: Sequence[RuleFacts]) -> None:
        """Note the rules as of the next call. O(rules so far)."""
        present = {(rule.address, rule.text): rule for rule in rules}
        for key, rule in present.items():
            self._rows.setdefault(key, _Row(rule)).note(call, str(rule.state), rule.superseded_by)
        for key, row in self._rows.items():
            if key not in present:
                row.note(call, "", None)

    def to_list(self) -> list[dict[str, Any]]:
        """Return the rules as JSON values, in the order in which they came.

        ``places`` of each are changes: the number of the call, the state from then on (empty while the session does not have the
        rule), and the address of what superseded it.
        """
        return [
            {
                **{name: getattr(row.rule, name) for name in ("address", "page", "text", "at", "speaker", "kind")},
                "places": [*row.places],
            }
            for row in self._rows.values()
        ]
