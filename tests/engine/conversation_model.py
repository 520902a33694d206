"""A conversation as plain lists: what a session must hold, said in the simplest way."""

import attrs

from tests.engine.wires import OPENAI, Value, Wire


@attrs.define(eq=False)
class ModelPage:
    """A page: its messages, and for each of them the ids of its calls that are not answered."""

    index: str
    turn: int
    wire: Wire = OPENAI
    messages: list[Value] = attrs.field(factory=list)
    open_ids: list[list[str]] = attrs.field(factory=list)

    @property
    def only_user(self) -> bool:
        return all(self.wire.speaks_as(value) == "user" for value in self.messages)

    @property
    def number(self) -> int:
        return int(self.index.rpartition("-")[2])

    def insert(self, place: int, value: Value) -> None:
        self.messages.insert(place, value)
        self.open_ids.insert(place, self.wire.calls(value))

    def cut(self, kept: int) -> None:
        """Drop all but so many messages."""
        del self.messages[kept:]
        self.open_ids = []
        for value in self.messages:
            for call_id in self.wire.answers(value):
                next(ids for ids in reversed(self.open_ids) if call_id in ids).remove(call_id)
            self.open_ids.append(self.wire.calls(value))

    def behind_results(self, place: int) -> int:
        """Return the place behind the results of the calls at a place; items that follow each other are one answer."""
        ids, behind = set(self.wire.calls(self.messages[place])), place + 1
        items = self.wire.name == "responses"
        while items and behind < len(self.messages) and self.wire.speaks_as(self.messages[behind]) == "assistant":
            behind += 1
        while behind < len(self.messages):
            answered = self.wire.answers(self.messages[behind])
            if not answered or not (items or ids & set(answered)):
                break
            behind += 1
        return behind


@attrs.define(eq=False)
class Model:
    """The system part and the pages, oldest first."""

    wire: Wire = OPENAI
    system: list[Value] = attrs.field(factory=list)
    pages: list[ModelPage] = attrs.field(factory=list)
    turn: int = 0

    @property
    def messages(self) -> list[Value]:
        return [*self.system, *(value for page in self.pages for value in page.messages)]

    @property
    def waiting(self) -> list[str]:
        """The ids that a result can answer."""
        return sorted({call_id for page in self.pages for ids in page.open_ids for call_id in ids})

    @property
    def addresses(self) -> list[str]:
        return [f"{page.index}/{place}" for page in self.pages for place in range(1, len(page.messages) + 1)]

    def find(self, index: str) -> ModelPage:
        return next(page for page in self.pages if page.index == index)

    def append(self, value: Value, address: str, *, is_full: bool = False) -> None:
        """Take a message in, and assert that it got the address that it must get; *is_full*: whether the open page may be cut."""
        index, _, position = address.rpartition("/")
        if self.wire.answers(value):
            page, place = self.put_result(value)
            assert (page.index, place + 1) == (index, int(position))
            return
        speaker = self.wire.speaks_as(value)
        if speaker == "system" and not self.turn:
            assert index.startswith("sys-")
            self.system.append(value)
            return
        newest = self.pages[-1] if self.pages else None
        opens_turn = speaker == "user" and (newest is None or not newest.only_user)
        waits = newest is not None and any(newest.open_ids) and speaker != "assistant"
        cuts = newest is not None and (speaker == "user" or not newest.only_user)
        continues = newest is None or (is_full and not waits and cuts)
        self.turn += opens_turn
        if opens_turn or continues:
            assert all(int(index.rpartition("-")[2]) > page.number for page in self.pages)
            newest = ModelPage(index, self.turn, self.wire)
            self.pages.append(newest)
        assert newest is not None
        assert f"{newest.index}/{len(newest.messages) + 1}" == address
        newest.insert(len(newest.messages), value)

    def begin_page(self, index: str) -> None:
        if self.pages and not self.pages[-1].messages:
            assert self.pages[-1].index == index
            return
        self.turn += 1
        self.pages.append(ModelPage(index, self.turn, self.wire))

    def rewind(self, address: str) -> None:
        index, _, position = address.rpartition("/")
        page = self.find(index)
        del self.pages[self.pages.index(page) + 1 :]
        page.cut(int(position) - 1)
        if not page.messages:
            self.pages.remove(page)

    def put_result(self, value: Value) -> tuple[ModelPage, int]:
        """Take a result in, and return where it stands."""
        for call_id in self.wire.answers(value):
            page, place = self.answer(call_id)
        page.insert(place, value)
        return page, place

    def answer(self, call_id: str) -> tuple[ModelPage, int]:
        """Take the nearest unanswered call of the id; the result stands behind it and behind its other results."""
        for page in reversed(self.pages):
            for place in range(len(page.messages) - 1, -1, -1):
                if call_id in page.open_ids[place]:
                    page.open_ids[place].remove(call_id)
                    return page, page.behind_results(place)
        message = f"no call waits for {call_id}"
        raise AssertionError(message)
