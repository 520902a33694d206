"""What is left of events when that is erased which is no page of the session: slots, extra texts, pages of others."""

import re
from collections.abc import Mapping
from typing import ClassVar

import attrs

from memci.archive.stores.contract import Record
from memci.chapters.address import page_number
from memci.engine.erasure.redaction import Body, Redaction, Without
from memci.engine.history import blocks
from memci.messages.formats.reading import ERASED

_HEAD = re.compile(r"\[([^\]/ ]+/[^\] ]+)\] ")  # of a line of a mount


@attrs.define
class SlotsRedaction(Redaction):
    """Takes what slots and extra texts said out of the events of a session, fed to it as to any redaction; names stay."""

    _texts: dict[str, str] = attrs.field(factory=dict)  # what is left of them

    def _counted(self) -> int:
        return self.count(blocks.slots_block(self._texts, self.wire)) if self._texts else 0

    def _emptied(self, texts: Mapping[str, str | None]) -> Body:
        self._held |= any(texts.values())
        return {name: text and self._left(text) for name, text in texts.items()}

    def _set(self, body: Body) -> Body:
        left = self._emptied(body["slots"])
        self._texts = {name: text for name, text in {**self._texts, **left}.items() if text is not None}
        return {**body, "slots": left, "tokens": self._counted()}

    def _recounted(self, body: Body) -> Body:
        if not (body.get("counted") or {}).get("slots"):
            return body
        return {**body, "counted": {**body["counted"], "slots": self._counted()}}

    def _returned(self, body: Body) -> Body:
        then = body["state"].get("slots")
        self._texts = self._emptied(then["texts"]) if then else {}
        shown = {"slots": {"texts": self._texts, "tokens": self._counted()}} if then else {}
        settled = body["state"]["settled"]
        return {**body, "state": {**body["state"], **shown, "settled": settled and self._settled(settled)}}

    def _settled(self, body: Body) -> Body:
        if not body.get("extra"):
            return body
        left = self._emptied(body["extra"])
        return {**body, "extra": left, "extra_tokens": self.count(blocks.extra_block(left, self.wire))}

    WITHOUT: ClassVar[Mapping[str, Without]] = {
        **dict.fromkeys(Redaction.WITHOUT, Redaction._unchanged),  # noqa: SLF001 (of its base)
        "slots_set": _set,
        "settled": _settled,
        "configured": _recounted,
        "checkpoint_restored": _returned,
    }


@attrs.define
class MountedRedaction(Redaction):
    """Takes what a session has of a page of a mounted one, whose index is such as ``project/usr-12``, out of its events."""

    def event(self, record: Record, body: Body) -> Body:
        """Return what is left of a record's decoded body; equal to it where nothing of the page was in it. O(its size)."""
        begun, left = self.begun, super().event(record, body)
        self.begun = begun or (record.seq if self._held else 0)  # a mount need not tell of the page
        return left

    def _listed(self, value: Body) -> Body:
        """Return a mount without what its lines say of the page, nor what a range that it is in is called."""
        lines, head = list[str](), ""
        for line in value["text"].split("\n"):
            found = _HEAD.match(line)
            head = head if found is None else found[1]
            is_meant = head == self.page
            is_row = self._within(head) and line.startswith(f"{page_number(self.page)} ")
            if found is not None and (is_meant or self._within(head)):
                lines.append(f"[{head}] {ERASED}")
            elif not is_meant and not is_row:
                lines.append(line)
            self._held |= is_meant or is_row
        text = "\n".join(lines)
        return value if text == value["text"] else {**value, "text": text, "tokens": self.count(self.wire.block(text))}

    def _recalled(self, value: Body) -> Body:
        self._held |= value["page"] == self.page
        return self._attached(value)

    def _then(self, body: Body) -> Body:
        state = body["state"]
        left = {**state, "recalled": [self._attached(each) for each in state["recalled"]]}
        mounts = {name: self._listed(each) for name, each in state.get("mounts", {}).items()}
        return {**body, "state": {**left, "mounts": mounts} if mounts else left}

    WITHOUT: ClassVar[Mapping[str, Without]] = {
        **dict.fromkeys(Redaction.WITHOUT, Redaction._unchanged),  # noqa: SLF001 (of its base)
        "mounted": _listed,
        "recalled": _recalled,
        "checkpoint_restored": _then,
    }
