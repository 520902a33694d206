"""``memci mcp``."""

import signal

import typer

from memci.cli.exit_code import CommandError, ExitCode
from memci.cli.opening import STORE, TENANT, Place, SessionOption, StoreOption, TenantOption, opened


def mcp(*, store: StoreOption = STORE, session: SessionOption = None, tenant: TenantOption = TENANT) -> None:
    """Serve a session's tools over MCP (recalls write).

    An MCP client starts this command and speaks with it on standard input and output. It ends with its input. Needs the extra
    memci[mcp].
    """
    try:
        from memci.mcp.conversation import Conversation  # noqa: PLC0415 (an extra, and 700 ms)
        from memci.mcp.stdio import serve  # noqa: PLC0415 (as above)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("memci"):
            raise
        message = f"memci mcp needs the package {error.name}: install memci with its extra mcp"
        raise CommandError(message, ExitCode.USAGE) from error
    with opened(Place(store, tenant, session)) as found:
        conversation = Conversation(store, tenant, found.id, found.config)
    match serve(conversation):
        case signal.SIGINT:
            raise typer.Exit(ExitCode.INTERRUPTED)
        case signal.SIGPIPE:
            raise typer.Exit(ExitCode.PIPE_CLOSED)
