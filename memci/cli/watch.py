"""``memci watch``: what happens in a session, a line each, while others write to it."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import attrs
from typer import Option

import memci
from memci.cli import output
from memci.cli.bar import Bar
from memci.cli.exit_code import ExitCode, refuse
from memci.cli.output import count
from memci.cli.place import Place, command
from memci.engine.commands.window import Window
from memci.engine.reading.journal import SessionEvent
from memci.errors import UnavailableError, shown

_PAUSE_S = 0.25  # between two looks: what happens is shown within a second

_MANY = 4  # pages, which are not named one by one

_QUIET = frozenset(
    ("answer_noted", "configured", "lease_ended", "leased", "mentioned", "settled", "summaries_claimed", "touched", "usage")
)
"""Kinds of events that tell of nothing that a user or a model would notice."""


@attrs.frozen
class Step:
    """Something that happened, for machines by its ``facts``, for people in *words*."""

    step: str
    seq: int  # of the event
    facts: Mapping[str, Any]
    words: str

    def __str__(self) -> str:
        """Return it as a line, which may hold words of those who wrote."""
        return f"{self.seq} {self.step.replace('_', ' ')} {self.words}"


@command
def watch(
    place: Place,
    *,
    as_json: Annotated[bool, Option("--json", help="Write each as a JSON document on a line, for machines.")] = False,
) -> None:
    """Follow a session: a line for each thing that happens in it, from now on.

    On a terminal the bar of the window's budget stands below. Nothing is written, so that others can write meanwhile. A session
    that is named and is not there yet is waited for. It ends with Ctrl-C, and when the session is deleted.
    """
    session_id = place.known()[0] if place.session is None else place.session
    with place.engine() as engine, engine.session(session_id) as session:
        if not session.seq:
            output.note(f"there is no session {shown(session_id)} in {place} yet: it is waited for")
        following = Following(session)
        if following.window is not None and not as_json:
            output.show([Bar.of(following.window)])
        while True:
            try:
                steps = following.look()
            except UnavailableError:
                if session_id in engine.sessions():
                    raise
                refuse(f"session {shown(session_id)} was deleted: nothing more happens in it", ExitCode.NOT_FOUND)
            _write(steps, following.window, as_json=as_json)
            if not output.is_read(_PAUSE_S):
                refuse("the output was closed", ExitCode.PIPE_CLOSED)


def _write(steps: list[Step], window: Window | None, *, as_json: bool) -> None:
    for each in steps:
        if as_json:
            output.document({"step": each.step, "seq": each.seq, **each.facts})
        else:
            output.show([output.one_line(str(each))])
    if steps and window is not None and not as_json:
        output.show([Bar.of(window, brief=True)])
    output.write("", through=True)


class Following:
    """Where somebody who follows a session is.

    Attributes:
        window: As it stands now; ``None`` for a session that is not there yet.
    """

    def __init__(self, session: memci.Session) -> None:
        self._session = session
        self._seq = session.seq
        self._zone: str = ""
        self.window: Window | None = None
        self._look_at_window()

    def look(self) -> list[Step]:
        """Return what happened since the last look, oldest first. O(what was written since), O(visible) where anything was."""
        self._session.refresh()
        if self._session.seq == self._seq:
            return []
        steps = [step for event in self._session.events(after=self._seq) for step in steps_of(event)]
        self._seq = self._session.seq
        return [*steps, *self._look_at_window()]

    def _look_at_window(self) -> list[Step]:
        """Take in how the window stands, and return its zone where that is another one."""
        if not self._seq:
            return []
        self.window = window = self._session.render(at=self._seq)
        before, self._zone = self._zone, window.zone
        if before in ("", window.zone):
            return []
        facts = {"before": before, "zone": window.zone, "tokens": window.tokens, "budget": window.budget}
        words = f"{before} to {window.zone}: {count(window.tokens)} of {count(window.budget)} tokens"
        return [Step("zone", self._seq, facts, words)]


def steps_of(event: SessionEvent) -> Iterator[Step]:  # noqa: C901 (a case a kind)
    """Yield what an event means to whoever watches, without a word of any message."""
    data = event.data

    def step(name: str, words: str, **facts: object) -> Step:
        return Step(name, event.seq, facts, words)

    match event.kind:
        case "appended":
            message, at = data["message"], {"page": data["page"], "position": data["position"]}
            role, tokens = message.get("role") or message.get("type"), data["tokens"]
            yield step(
                "append", f"{data['page']}/{data['position']} {role}, {count(tokens)} tokens", **at, role=role, tokens=tokens
            )
        case "folded":
            pages, reason = data["folded"], data["reason"]
            yield step("fold", f"{_listed(pages) or 'the contents page alone'}, for {reason}", pages=pages, reason=reason)
            if evicted := [index for index, _ in data["evicted"]]:
                yield step("evict", _listed(evicted), pages=evicted)
        case "evicted":
            evicted = [index for index, _ in data["pages"]]
            yield step("evict", _listed(evicted), pages=evicted)
        case "trimmed":
            yield step("trim", f"long results of {_listed([*data['results']])}", pages=[*data["results"]])
        case "fold_undone":
            pages = [page["page"] for page in data["pages"]]
            yield step("undo", f"the last fold: {_listed(pages) or 'the contents page'} back", pages=pages)
        case "recalled":
            page, times = data["page"], data["recall_count"]
            yield step("recall", f"{page}{f', {count(times)}×' if times else ''}", page=page, recall_count=times)
        case "faded":
            yield step("fade", f"{_listed(data['pages'])}, for {data['reason']}", pages=data["pages"], reason=data["reason"])
        case "checkpoint_made":
            made, label, kind = f"cp-{data['number']}", data["label"], data["checkpoint_kind"]
            yield step("checkpoint", f"{made}, {kind}: {label}", checkpoint=made, label=label, kind=kind)
        case "checkpoint_restored":
            yield step("restore_checkpoint", data["checkpoint"], checkpoint=data["checkpoint"])
        case "rewound":
            before = f"{data['page']}/{data['position']}"
            yield step("rewind", f"to before {before}", page=data["page"], position=data["position"])
        case kind if kind not in _QUIET:
            page = data.get("page")
            yield step(kind, page or "", **({"page": page} if page else {}))


def _listed(pages: list[str]) -> str:
    return ", ".join(pages) if len(pages) < _MANY else f"{pages[0]} to {pages[-1]}, {len(pages)} pages"
