"""``memci work``: a process that has a summariser write contents entries, beside those that hold the conversations."""

import signal
import time
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from typing import Annotated, Any

import attrs
from typer import Option

import memci
from memci.cli import output
from memci.cli.exit_code import refuse
from memci.cli.output import count
from memci.cli.place import Place, command
from memci.engine.core.named import make_summarizer
from memci.engine.settings.config import EXTRACTIVE
from memci.engine.settings.setting import refusal
from memci.engine.summaries import summarizing
from memci.errors import MemciError
from memci.messages import codec

_MOST_S = 1_000_000.0


@command
def work(
    place: Place,
    *,
    config: Annotated[Path, Option(metavar="FILE", help="Settings that name a summariser; all others are each session's own.")],
    once: Annotated[bool, Option("--once", help="End when nothing is left to do.")] = False,
    every: Annotated[float, Option(metavar="SECONDS", help="How long to wait before looking at the sessions again.")] = 5.0,
) -> None:
    """Have a summariser write contents entries, ahead of folds (writes).

    It looks at all sessions of the tenant, or at one, and has those pages summarised that fold next. Any number of such
    processes, on any machines, may work on a store, beside those that write: each page is claimed before it is paid for.
    """
    settings = memci.Config.from_file(config)
    if settings.summarizer == EXTRACTIVE:
        refuse(f"{config} names no summariser: give summarizer: {{model: …, base_url: …}}, or see docs/summaries.md")
    if not 0 <= every <= _MOST_S:  # not a number neither
        refuse(f"--every {every:g} is no number of seconds from 0 to a million")
    _check(settings.summarizer)
    if place.session:
        place.known()
    with suppress(ValueError):  # not in the main thread
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    worker = _Worker(place, settings)
    with worker.opened:
        while True:
            for session_id in [place.session] if place.session else sorted(worker.looking.sessions()):
                try:
                    worker.look(session_id)
                except MemciError as error:
                    worker.tell(session_id, str(error))
            if once:
                return
            time.sleep(every)


def _check(setting: str | Mapping[str, Any]) -> None:
    """Refuse a summariser that cannot be made, or a program that is not there, once and before any session is looked at."""
    make_summarizer(setting)
    if not isinstance(setting, str) and "command" in setting and which(program := setting["command"][0]) is None:
        raise refusal(path="summarizer.command", value=program, allowed="a program that is there")


class _Worker:
    """What is known of sessions, and an engine for those of the same settings."""

    def __init__(self, place: Place, settings: memci.Config) -> None:
        self.place, self.settings, self.opened = place, settings, ExitStack()
        self.looking = self.opened.enter_context(place.engine())
        self.engines: dict[bytes, memci.Engine] = {}
        self.seen: dict[str, tuple[int, str]] = {}  # by session: its last event, and when to look at it again all the same
        self.told: dict[str, str] = {}

    def tell(self, session_id: str, text: str) -> None:
        """Write something of a session to standard error, where it was not the last thing of it."""
        if self.told.get(session_id) != text:
            self.told[session_id] = text
            output.note(f"session {session_id!r}: {text}")

    def look(self, session_id: str) -> None:
        """Have the pages of a session summarised that nobody asks of."""
        with self.looking.session(session_id) as session:
            seq, known = session.seq, session.config
        before, due = self.seen.get(session_id, (0, ""))
        if before == seq and not "" < due <= datetime.now(UTC).isoformat():  # 0 where it was deleted meanwhile
            return
        asked = attrs.evolve(known.summary, timeout_s=self.settings.summary.timeout_s)
        wanted = attrs.evolve(known, summarizer=self.settings.summarizer, summary=asked, on_conflict="retry")
        key = codec.encode(wanted.to_mapping())
        if key not in self.engines:  # one for sessions of other settings, which it must not change
            self.engines[key] = self.opened.enter_context(self.place.engine(wanted, write=True))
        with self.engines[key].session(session_id) as session:
            made = session.summarize()
            with session._open() as core:  # noqa: SLF001 (of interest to workers alone)
                later = summarizing.later(core)
            self.seen[session_id] = session.seq, min(later, default="")
        if made:
            self.told.pop(session_id, None)
            output.note(f"session {session_id!r}: {count(made)} {'summary' if made == 1 else 'summaries'}")
        if later:
            pages = f"{count(len(later))} {'page waits' if len(later) == 1 else 'pages wait'}"
            self.tell(session_id, f"{pages} for others that ask of them, or until a pause is over, at {later[-1]} at the latest")
