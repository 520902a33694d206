"""What can be asked of a server: each method returns the request that asks for what its namesake of a session does."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Any, TypeAlias

import attrs

from memci.archive.catalogue.page_facts import Checkpoint, CheckpointKind, PageState
from memci.archive.rules.listing import Rule
from memci.client.answer import (
    Auto,
    AutoZone,
    Chosen,
    Compacted,
    HandedOver,
    Level,
    Overview,
    PageList,
    PageRead,
    RuleList,
    SessionList,
    Stored,
    SyncedRead,
    WindowRead,
)
from memci.client.exchange import Asked, path_of
from memci.engine.commands.calibrating import Calibration
from memci.engine.commands.keeping import Bookmark
from memci.engine.core.monitor import Fold
from memci.engine.erasure.erasing import Receipt
from memci.engine.hosting.listing import DeletionReceipt
from memci.engine.hosting.recap import Recap
from memci.engine.hosting.status import Stats, Status
from memci.engine.hosting.transcript import Said, Variant
from memci.engine.reading.explain import Explanation
from memci.engine.reading.journal import SessionEvent
from memci.engine.reading.searching import Hit
from memci.engine.upkeep.verify import Report
from memci.messages.codec import MessageLike, as_list, dumped

Time: TypeAlias = datetime | date | str


def _text(time: Time | None) -> str | None:
    return time.isoformat() if isinstance(time, date) else time


def _several(values: str | Collection[str] | None) -> list[str] | None:
    return values if values is None else [values] if isinstance(values, str) else [*values]


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was given, so that the server has its own defaults for the rest."""
    return {name: value for name, value in values.items() if value is not None}


class ServerRequests:
    """What is asked of all sessions of a tenant; ``Client`` sends it."""

    def list_sessions(
        self,
        *,
        owner: str | None = None,
        title: str | None = None,
        used_since: Time | None = None,
        limit: int | None = None,
        after: str | None = None,
    ) -> Asked[SessionList]:
        """Return sessions, those used last first; the next ones come ``after`` what the list says."""
        query = {"owner": owner, "title": title, "used_since": _text(used_since), "limit": limit, "after": after}
        return Asked(method="GET", path=path_of("sessions"), answer=SessionList, query=_given(query))

    def create(
        self,
        session_id: str | None = None,
        *,
        metadata: Mapping[str, Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> Asked[Overview]:
        """Begin a session, under an id that nobody has where none is given; ``ConflictError`` where it is there."""
        body = {"id": session_id, "metadata": metadata, "config": config}
        return Asked(method="POST", path=path_of("sessions"), answer=Overview, body=_given(body))

    def delete(self, session_id: str) -> Asked[DeletionReceipt]:
        """Remove all that is stored of a session."""
        return Asked(method="DELETE", path=path_of("sessions", session_id), answer=DeletionReceipt)

    def search(self, query: str, sessions: Collection[str] | None = None, limit: int | None = None) -> Asked[list[Hit]]:
        """Find pages in all sessions, or in those named, best first."""
        body = {"query": query, "sessions": _several(sessions), "limit": limit}
        return Asked(method="POST", path=path_of("search"), answer=list[Hit], body=_given(body))

    def fork(self, session_id: str, new_id: str, at: int | None = None) -> Asked[Overview]:
        """Make a new session that begins with what another one was after the event *at*, now by default."""
        path, body = path_of("sessions", session_id, "fork"), _given({"to": new_id, "at": at})
        return Asked(method="POST", path=path, answer=Overview, body=body)

    def stats(self, sessions: Collection[str]) -> Asked[list[Stats]]:
        """Return some sessions in figures, 100 at most; those that are not there are left out."""
        return Asked(method="GET", path=path_of("stats"), answer=list[Stats], query={"session": _several(sessions)})


@attrs.frozen
class SessionRequests:
    """What is asked of one session; ``RemoteSession`` sends it.

    Attributes:
        id: The session's id.
    """

    id: str

    def _get(self, answer: Any, *path: str | int, **query: Any) -> Asked[Any]:  # noqa: ANN401 (as the resource says)
        return Asked(method="GET", path=path_of("sessions", self.id, *path), answer=answer, query=_given(query))

    def _post(self, answer: Any, *path: str | int, key: str | None = None, **body: Any) -> Asked[Any]:  # noqa: ANN401 (as above)
        return Asked(method="POST", path=path_of("sessions", self.id, *path), answer=answer, body=_given(body), key=key)

    def overview(self) -> Asked[Overview]:
        """Return how far the session is, and its metadata."""
        return self._get(Overview)

    def describe(self, /, **values: Any) -> Asked[Overview]:  # noqa: ANN401 (JSON values)
        """Say something of the session itself, such as ``title`` or ``owner``; ``None`` takes a value away."""
        return Asked(method="PATCH", path=path_of("sessions", self.id), answer=Overview, body=values)

    def append(self, message: MessageLike, *, at: Time | None = None, key: str | None = None) -> Asked[Stored]:
        """Take a message in; repeated with its *key* it gives the first answer again."""
        extended: Any = self.extend([message], at=None if at is None else [at], key=key)
        return attrs.evolve(extended, only_first=True)

    def extend(
        self, messages: Sequence[MessageLike], *, at: Sequence[Time | None] | None = None, key: str | None = None
    ) -> Asked[list[Stored]]:
        """Take messages in, all or none, each with a time of its own where *at* has one."""
        times = None if at is None else [_text(each) for each in at]
        return self._post(list[Stored], "messages", messages=as_list(messages), at=times, key=key)

    def set_system(self, messages: Sequence[MessageLike]) -> Asked[None]:
        """Replace the system part."""
        path = path_of("sessions", self.id, "system")
        return Asked(method="PUT", path=path, answer=None, body={"messages": as_list(messages)})

    def sync(self, messages: Sequence[MessageLike]) -> Asked[SyncedRead]:
        """Take over the whole list of messages that the host keeps, and return what that changed."""
        return self._post(SyncedRead, "sync", messages=as_list(messages))

    def transcript(self, limit: int | None = None, before: str | None = None) -> Asked[list[Said]]:
        """Return what was said, newest first, on from *before*, the address of the last one."""
        return self._get(list[Said], "transcript", limit=limit, before=before)

    def window(
        self,
        budget: int | None = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        extra: str | Mapping[str, str] | None = None,
    ) -> Asked[WindowRead]:
        """Make the window that the next call sends."""
        tools = None if tools is None else [dict(tool) for tool in tools]
        extra = extra if extra is None or isinstance(extra, str) else dict(extra)
        return self._post(WindowRead, "window", budget=budget, tools=tools, extra=extra)

    def render(self, at: int | None = None) -> Asked[WindowRead]:
        """Return the window as it was after an event, by default the last; nothing is written."""
        return self._get(WindowRead, "window", at=at)

    def report_usage(self, usage: object = None, *, prompt_tokens: int | None = None) -> Asked[Calibration]:
        """Calibrate the counter by what the provider counted for the last window, which the same server has to have made."""
        return self._post(Calibration, "usage", usage=dumped(usage), prompt_tokens=prompt_tokens)

    def slots(self) -> Asked[dict[str, str]]:
        """Return the texts that stand at the end of windows, by name."""
        return self._get(dict[str, str], "slots")

    def set_slots(self, slots: Mapping[str, str | None]) -> Asked[dict[str, str]]:
        """Give slots their texts, take those away whose text is ``None``, and return all of them."""
        return Asked(method="PATCH", path=path_of("sessions", self.id, "slots"), answer=dict[str, str], body=dict(slots))

    def rules(self, *, start: int | None = None, limit: int | None = None) -> Asked[RuleList]:
        """Return some rules, oldest first, replaced ones included, and how many there are."""
        return self._get(RuleList, "rules", start=start, limit=limit)

    def add_rule(self, text: str, *, key: str | None = None) -> Asked[Rule]:
        """Add a rule of the application's, which the next window shows, and return it; see ``append`` for *key*."""
        return self._post(Rule, "rules", text=text, key=key)

    def remove_rule(self, address: str) -> Asked[None]:
        """Take a rule out; it is not found again. ``ArgumentError`` for an address that no rule has."""
        path = path_of("sessions", self.id, "rules")
        return Asked(method="DELETE", path=path, answer=None, query={"address": address})

    def tools(self, format: str | None = None) -> Asked[list[dict[str, Any]]]:  # noqa: A002 (the key of the settings)
        """Return the schemas of the tools by which a model brings pages back, in a wire format, by default the session's."""
        return self._get(list[dict[str, Any]], "tools", format=format)

    def handle_tool_call(self, call: MessageLike) -> Asked[dict[str, Any]]:
        """Carry out a model's call of one of these tools, of any format, and return the message to append.

        Or one of *id*, *name* and *arguments*, whose message is in the format ``openai``.
        """
        return self._post(dict[str, Any], "tools", call=dumped(call))

    def status(self) -> Asked[Status]:
        """Return how the session stands."""
        return self._get(Status, "status")

    def stats(self) -> Asked[Stats]:
        """Return the session in figures: what was said and sent so far, what that cost, its window's zone."""
        return self._get(Stats, "stats")

    def pages(
        self, state: PageState | str | None = None, *, start: int | None = None, limit: int | None = None
    ) -> Asked[PageList]:
        """Return the facts of some pages, oldest first, or of those in a state, and how many there are."""
        return self._get(PageList, "pages", state=state, start=start, limit=limit)

    def page(self, index: str | int) -> Asked[PageRead]:
        """Return a page; this is no recall."""
        return self._get(PageRead, "pages", index)

    def explain(self, index: str | int) -> Asked[Explanation]:
        """Say why a page is where it is."""
        return self._get(Explanation, "pages", index, "explain")

    def search(  # noqa: PLR0913 (each narrows it in another way)
        self,
        query: str,
        limit: int | None = None,
        *,
        include_visible: bool | None = None,
        turns: tuple[int, int] | None = None,
        roles: str | Collection[str] | None = None,
        states: str | Collection[PageState | str] | None = None,
        since: Time | None = None,
        until: Time | None = None,
    ) -> Asked[list[Hit]]:
        """Find pages by words, best first."""
        only: dict[str, Any] = {
            "turns": None if turns is None else [*turns],
            "roles": _several(roles),
            "states": _several(states),
        }
        times = {"since": _text(since), "until": _text(until)}
        return self._post(list[Hit], "search", query=query, limit=limit, include_visible=include_visible, **only, **times)

    def fold(self, pages: str | int | Collection[str | int] | None = None, *, to: Level | int | None = None) -> Asked[Fold]:
        """Fold pages down to the low mark, ``"all"``, some by index, or down *to* a size."""
        several = pages if pages is None or pages == "all" else [pages] if isinstance(pages, str | int) else [*pages]
        return self._post(Fold, "fold", pages=several, to=to)

    def close_topic(self, title: str) -> Asked[Fold]:
        """Fold what is complete of a topic under a title."""
        return self._post(Fold, "topic", title=title)

    def undo_fold(self) -> Asked[Fold]:
        """Bring the pages of the last fold back into view."""
        return self._post(Fold, "undo")

    def recall(self, index: str | int) -> Asked[PageRead]:
        """Bring a page back into the window for some turns."""
        return self._post(PageRead, "recall", index=index)

    def fade(self, index: str | int) -> Asked[None]:
        """Let a recalled page leave the window now."""
        return self._post(None, "pages", index, "fade")

    def evict(self, index: str | int) -> Asked[None]:
        """Take a page's entry out of the contents page; the page stays stored and searchable."""
        return self._post(None, "pages", index, "evict")

    def restore(self, index: str | int) -> Asked[None]:
        """Put the entry of an evicted page back."""
        return self._post(None, "pages", index, "restore")

    def pin(self, index: str | int) -> Asked[None]:
        """Keep a page's entry from being evicted."""
        return self._post(None, "pages", index, "pin")

    def unpin(self, index: str | int) -> Asked[None]:
        """Let it be evicted again."""
        return self._post(None, "pages", index, "unpin")

    def keep(self, index: str | int) -> Asked[None]:
        """Hold a page verbatim through folds, as far as kept pages have room."""
        return self._post(None, "pages", index, "keep")

    def unkeep(self, index: str | int) -> Asked[None]:
        """Let folds take it again."""
        return self._post(None, "pages", index, "unkeep")

    def erase(self, index: str | int, *, forks: bool | None = None) -> Asked[list[Receipt]]:
        """Take what a page holds out of everything that is stored, in its *forks* too."""
        path, query = path_of("sessions", self.id, "pages", index), _given({"forks": forks})
        return Asked(method="DELETE", path=path, answer=list[Receipt], query=query)

    def config(self) -> Asked[dict[str, Any]]:
        """Return the settings in force that decide what a window holds."""
        return self._get(dict[str, Any], "config")

    def configure(self, /, preset: str | None = None, **config: Mapping[str, object]) -> Asked[dict[str, Any]]:
        """Choose settings for the session, over those of the server, and return what is in force then."""
        body = {**_given({"preset": preset}), **config}
        return Asked(method="PATCH", path=path_of("sessions", self.id, "config"), answer=dict[str, Any], body=body)

    def auto(self) -> Asked[Auto]:
        """Return whether the session folds by itself before a window would not fit, and when."""
        return self._get(Auto, "auto")

    def set_auto(self, *, enabled: bool, zone: AutoZone | None = None, level: Level | None = None) -> Asked[Auto]:
        """Say whether it does."""
        body = {"enabled": enabled, "zone": zone, "level": level}
        return Asked(method="PUT", path=path_of("sessions", self.id, "auto"), answer=Auto, body=_given(body))

    def compact(self, level: Level) -> Asked[Compacted]:
        """Make the window smaller, after a checkpoint to which the session can come back."""
        return self._post(Compacted, "compact", level=level)

    def checkpoint(
        self,
        label: str,
        *,
        kind: CheckpointKind | str | None = None,
        ttl_turns: int | None = None,
        variables: Mapping[str, Any] | None = None,
    ) -> Asked[Checkpoint]:
        """Note that the session can come back to where it is."""
        values = None if variables is None else dict(variables)
        return self._post(Checkpoint, "checkpoints", label=label, kind=kind, ttl_turns=ttl_turns, variables=values)

    def checkpoints(self) -> Asked[list[Checkpoint]]:
        """Return the checkpoints, oldest first."""
        return self._get(list[Checkpoint], "checkpoints")

    def restore_checkpoint(self, checkpoint_id: str) -> Asked[Checkpoint]:
        """Go on from a checkpoint; the answer is one made just before, to take this back."""
        return self._post(Checkpoint, "checkpoints", checkpoint_id, "restore")

    def rewind(self, address: str) -> Asked[None]:
        """Go on before an entry, such as ``usr-12/3``."""
        return self._post(None, "rewind", address=address)

    def variants(self, address: str) -> Asked[list[Variant]]:
        """Return all messages that stand, or stood, at the place of an entry, oldest first."""
        return self._get(list[Variant], "variants", address=address)

    def choose(self, variant: Variant | int) -> Asked[Chosen]:
        """Go on with a variant, or the one of that *seq*."""
        return self._post(Chosen, "choose", seq=variant.seq if isinstance(variant, Variant) else variant)

    def annotate(self, address: str, values: Mapping[str, Any]) -> Asked[None]:
        """Say something of a message, such as a rating, for ``transcript``; ``None`` takes a value away."""
        return self._post(None, "annotate", address=address, values=dict(values))

    def bookmark(self, address: str, label: str | None) -> Asked[None]:
        """Mark an entry with a line of text; ``None`` takes the mark away."""
        return self._post(None, "bookmark", address=address, label=label)

    def bookmarks(self) -> Asked[list[Bookmark]]:
        """Return the bookmarks, in the order of their entries."""
        return self._get(list[Bookmark], "bookmarks")

    def recap(self, max_tokens: int | None = None, *, since: int | None = None) -> Asked[Recap]:
        """Return where the session stands, for whoever comes back to it."""
        return self._get(Recap, "recap", max_tokens=max_tokens, since=since)

    def events(
        self, kind: str | None = None, after: int | None = None, pages: Collection[str] | None = None, *, limit: int | None = None
    ) -> Asked[list[SessionEvent]]:
        """Return what happened after an event, oldest first; it goes on after the ``seq`` of the last one."""
        return self._get(list[SessionEvent], "events", kind=kind, after=after, page=_several(pages), limit=limit)

    def handoff(
        self, to: str, share: float | None = None, include: Collection[str] | None = None, *, key: str | None = None
    ) -> Asked[HandedOver]:
        """Hand over to another session of the tenant; the answer has the index of the note there."""
        return self._post(HandedOver, "handoff", to=to, share=share, include=_several(include), key=key)

    def verify(self) -> Asked[Report]:
        """Compare the journal with all that is derived from it."""
        return self._get(Report, "verify")

    def notices(self) -> Asked[None]:
        """Listen to what happens from now on; the answer is a stream of events."""
        return self._get(None, "notices")
