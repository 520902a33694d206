"""Commands that show a window."""

from typing import Annotated

import typer

from memci.cli import output
from memci.cli.opening import STORE, TENANT, JsonOption, Place, SessionOption, StoreOption, TenantOption, opened
from memci.cli.wording import breakdown, count, message_text
from memci.engine.commands.window import Window
from memci.engine.core.monitor import zone


def window(
    *,
    budget: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Tokens to compare it with; by default those of the last call.")
    ] = None,
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
    json: JsonOption = False,
) -> None:
    """Show the window as it stands now.

    Nothing is written. Where the window is over its budget this is said: the next call makes room first.
    """
    with opened(Place(store, tenant, session)) as found:
        rendered = found.render(at=found.seq)
    _write(rendered, rendered.budget if budget is None else budget, json=json)


def render(
    *,
    at: Annotated[int, typer.Option(metavar="SEQ", help="Sequence number of an event; `memci window` tells the last one.")],
    store: StoreOption = STORE,
    session: SessionOption = None,
    tenant: TenantOption = TENANT,
    json: JsonOption = False,
) -> None:
    """Show the window as it was."""
    with opened(Place(store, tenant, session)) as found:
        rendered = found.render(at=at)
    _write(rendered, rendered.budget, json=json)


def _write(window: Window, budget: int, *, json: bool) -> None:
    fits = window.tokens <= budget
    if json:
        output.document(
            {
                "seq": window.seq,
                "tokens": window.tokens,
                "budget": budget,
                "fits": fits,
                "zone": zone(window.tokens, budget),
                "breakdown": dict(window.breakdown),
                **({} if window.system is None else {"system": window.system}),
                "messages": window.messages,
            }
        )
        return
    for block in window.system or ():
        output.heading("system")
        output.text(block["text"])
    for number, message in enumerate(window.messages, start=1):
        output.heading(f"{number} {message.get('role') or message['type']}")
        output.text(message_text(message))
    output.heading(f"event {window.seq} · {count(window.tokens)} of {count(budget)} tokens ({breakdown(window.breakdown)})")
    if not fits:
        output.note(
            f"it does not fit {count(budget)} tokens as it stands: the next call of session.window() folds pages, or takes "
            "the other steps that make room, and writes that down"
        )
