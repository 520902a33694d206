"""``memci serve``: sessions over HTTP."""

from pathlib import Path
from typing import Annotated, Literal

import attrs
from typer import Option

import memci
from memci.archive.stores.url import open_store, shown_url
from memci.cli import output
from memci.cli.exit_code import refuse, refuse_without
from memci.cli.place import STORE, TENANT, ConfigOption, KeyOption, StoreOption, TenantOption, encryption

_HOST, _PORT, _BODY_BYTES = "127.0.0.1", 8484, 33_554_432


def serve(  # noqa: PLR0913 (the options of a command)
    *,
    store: StoreOption = STORE,
    tenant: TenantOption = TENANT,
    key: KeyOption = None,
    config: ConfigOption = None,
    host: Annotated[str, Option(metavar="ADDRESS", help="Where to listen; beyond this machine only with --tokens.")] = _HOST,
    port: Annotated[int, Option(metavar="N", min=0, max=65_535, help="Which port; 0 for any that is free.")] = _PORT,
    tokens: Annotated[Path | None, Option(metavar="FILE", help="Who may come in, by the hashes of their tokens.")] = None,
    new_token: Annotated[
        bool, Option("--new-token", help="Make a token for --tenant, write its hash to --tokens, show it once, and end.")
    ] = False,
    scope: Annotated[Literal["read", "write", "admin"], Option(help="What the new token is good for.")] = "read",
    cors: Annotated[
        list[str] | None, Option(metavar="ORIGIN", help="Where pages may stand that ask, such as https://chat.example.")
    ] = None,
    max_body: Annotated[int, Option(metavar="BYTES", min=1, help="Of a request, at most.")] = _BODY_BYTES,
    rate: Annotated[int | None, Option(metavar="N", min=1, help="Requests a minute of one token, at most.")] = None,
) -> None:
    """Serve sessions over HTTP, until Ctrl-C (requests write).

    On this machine alone, and for everybody on it, unless --tokens says who may come in. Needs the extra memci[serve].
    """
    try:
        from memci.http import guard, serving  # noqa: PLC0415 (an extra, and 400 ms)
        from memci.http import tokens as token_file  # noqa: PLC0415 (as above)
    except ModuleNotFoundError as error:
        refuse_without(error, "memci serve", "serve")
    if new_token:
        if tokens is None:
            refuse("--new-token needs the file to write its hash to: give --tokens FILE")
        output.write(f"{token_file.new_token(tokens, tenant, token_file.Scope(scope))}\n")
        return
    if tokens is None and not serving.is_loopback(host):
        refuse(f"--host {host} can be reached from elsewhere: give --tokens FILE, or listen on {_HOST}")
    rules = guard.Rules(
        tokens=None if tokens is None else token_file.Tokens(tokens),
        tenant=tenant,
        body_bytes=max_body,
        per_minute=rate,
        origins=cors or (),
    )
    settings = memci.Config() if config is None else memci.Config.from_file(config)
    if key is not None:
        settings = attrs.evolve(settings, encryption=encryption(key))
    try:
        listening = serving.listen(host, port)
    except OSError as error:
        refuse(f"cannot listen on {host}, port {port}: {error.strerror}")

    def engines() -> tuple[memci.AsyncEngine, memci.Engine]:
        stored = open_store(store, settings.durability)  # one for both, as memory: has all in itself
        made = memci.AsyncEngine(stored, settings, tenant, on_conflict="retry", keep_settings=config is None)
        address = f"[{host}]" if ":" in host else host
        is_new = tokens is None and next(stored.sessions(tenant), None) is None  # as it looks where --store is mistyped
        there = f", where tenant {tenant!r} has no session yet" if is_new else ""
        output.note(f"memci serves {shown_url(store)} at http://{address}:{listening.getsockname()[1]}{there}")
        return made, memci.Engine(stored, settings, tenant, read_only=True, keep_settings=config is None)

    serving.serve(engines, listening, rules)
