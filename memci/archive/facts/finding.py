"""Finds facts in the pages that fold: values in the results of tools."""

from collections.abc import Iterable

from memci.archive.facts.results import values_in_result
from memci.archive.facts.table import Fact
from memci.messages.base64_runs import described_value
from memci.messages.message import Message
from memci.messages.parts import PartKind, parts


def facts_of(messages: Iterable[tuple[str, int, Message]], clock: int) -> list[Fact]:
    """Return the facts in *messages*, in their order. O(their size).

    Each message comes with its page and its position in the page. *clock* is the number of facts found before.
    """
    found = list[Fact]()
    for page, entry, message in messages:
        texts = (part.text for part in parts(message.value()) if part.kind is PartKind.RESULT and part.text)
        for text in texts:
            values = values_in_result(str(described_value(text, "")))
            found += [Fact(clock + len(found) + place, *value, page, entry) for place, value in enumerate(values)]
    return found
