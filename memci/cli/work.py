"""``memci work``: a process that has a summariser write contents entries, beside those that hold the conversations."""

import time
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import attrs
from typer import Option

import memci
from memci.cli import output
from memci.cli.exit_code import refuse
from memci.cli.output import count
from memci.cli.place import Place, command
from memci.engine.settings.config import EXTRACTIVE
from memci.errors import MemciError
from memci.messages import codec


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
    seen: dict[str, int] = {}
    told: dict[str, str] = {}
    with ExitStack() as opened:
        looking = opened.enter_context(place.engine())
        engines: dict[bytes, memci.Engine] = {}
        while True:
            for session_id in [place.session] if place.session else sorted(looking.sessions()):
                try:
                    with looking.session(session_id) as session:
                        seq, known = session.seq, session.config
                    if seen.get(session_id) == seq:
                        continue
                    wanted = attrs.evolve(known, summarizer=settings.summarizer, summary=settings.summary, on_conflict="retry")
                    key = codec.encode(wanted.to_mapping())
                    if key not in engines:  # one for sessions of other settings, which it must not change
                        engines[key] = opened.enter_context(place.engine(wanted, write=True))
                    with engines[key].session(session_id) as session:
                        made = session.summarize()
                        seen[session_id] = session.seq
                    told.pop(session_id, None)
                    if made:
                        output.note(f"session {session_id!r}: {count(made)} {'summary' if made == 1 else 'summaries'}")
                except MemciError as error:
                    if told.get(session_id) != str(error):
                        told[session_id] = str(error)
                        output.note(f"session {session_id!r}: {error}")
            if once:
                return
            time.sleep(every)
