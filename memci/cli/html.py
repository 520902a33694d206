"""``memci html``: a session as a page that a browser opens without a server."""

from pathlib import Path
from typing import Annotated

from typer import Option

from memci.cli import output
from memci.cli.exit_code import ExitCode, refuse
from memci.cli.output import Answer, count
from memci.cli.place import Place, command
from memci.engine.settings.presets import PRESETS
from memci.page.document import MOST_COMPARED, MOST_WINDOWS, document


@command
def html(
    place: Place,
    *,
    out: Annotated[Path, Option(metavar="FILE", help="Where the page is written; a file that is there is replaced.")] = Path(
        "memci.html"
    ),
    windows: Annotated[
        int, Option(metavar="N", min=2, help="At most so many windows with their messages; those around folds and recalls first.")
    ] = MOST_WINDOWS,
    search: Annotated[list[str] | None, Option(metavar="WORDS", help="A search to show; may be given several times.")] = None,
    preset: Annotated[
        str | None,
        Option(
            metavar="NAME,...",
            help=f"Set side by side: {', '.join(PRESETS)}. By default all, up to {MOST_COMPARED:,} messages; '' for none.",
        ),
    ] = None,
) -> Answer:
    """Write a page that shows what the model saw, and why.

    One file for a browser: all calls of the conversation with their tokens by part, the windows as they were sent, pages,
    searches, presets. It holds the conversation in plain text, loads nothing, and sends nothing anywhere. The store is only read.
    """
    presets = None if preset is None else [name for name in preset.split(",") if name]
    with place.opened() as session, output.progress("page") as hear:
        told = document(
            session,
            most_windows=windows,
            asked=search or (),
            presets=presets,
            advance=hear,
        )
        seq, session_id = session.seq, session.id
    data = told.encode()
    try:
        out.write_bytes(data)
    except OSError as error:
        refuse(f"{out} cannot be written: {error.strerror}", ExitCode.STORE)
    value = {"file": str(out), "bytes": len(data), "session": session_id, "seq": seq}
    return Answer(value, [f"{out}: {count(len(data))} bytes, {session_id} as of event {seq}"])
