"""Commands that write: into a session, into another one that comes of it, or out of the store."""

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

import attrs
from typer import Argument, Option

import memci
from memci.adapters.importing.export_file import Source, read_file
from memci.adapters.importing.imported import Imported, import_into
from memci.archive.stores.contract import Store
from memci.archive.stores.url import open_store, place_of
from memci.chapters.dates import moment
from memci.cli import output
from memci.cli.exit_code import ExitCode, refuse
from memci.cli.output import Answer, Table, count
from memci.cli.place import ConfigOption, IndexArgument, Place, command, encryption
from memci.engine.erasure.erasing import Receipt
from memci.engine.upkeep.copying import Copied, copy_session
from memci.errors import ArgumentError, ErasureError, InvalidIdError, MemciError, shown
from memci.messages.validation import Problem


@command
def recall(place: Place, index: IndexArgument) -> Answer:
    """Bring a page back into the window (writes).

    The page stays for some turns, as `recall.turns` says, and its recall count goes up. Of a range such as usr-12..40 it is
    the list of its pages. A process that has the session open learns of it by refresh(), and until then gets a ConflictError
    when it writes.
    """
    with place.opened(write=True) as session:
        before, page = session.seq, session.recall(index)
        answer = session.explain(page.index)
        value = {"seq": session.seq, "tokens": page.tokens, **attrs.asdict(answer)}
        written = f"written to session {session.id!r}, now at event {session.seq}"
        return Answer(value, [str(answer)], written if session.seq != before else "nothing was written: it is in view")


@command
def checkpoints(
    place: Place,
    *,
    add: Annotated[str | None, Option(metavar="LABEL", help="Make one here first (writes).")] = None,
    kind: Annotated[str, Option(help="Of the one to make: manual, milestone, mode_switch, approval, recovery.")] = "manual",
    restore: Annotated[str | None, Option(metavar="ID", help="Go back to this one first (writes).")] = None,
) -> Answer:
    """List the checkpoints of a session, oldest first.

    With --restore the session goes on from a checkpoint. What came after it stays in the journal, and a checkpoint of the kind
    recovery that is made before leads back.
    """
    if add is not None and restore is not None:
        refuse("give --add or --restore, not both")
    with place.opened(write=add is not None or restore is not None) as session:
        if add is not None:
            session.checkpoint(add, kind=kind)
        if restore is not None:
            try:
                session.restore_checkpoint(restore)
            except InvalidIdError as error:
                refuse(str(error), ExitCode.NOT_FOUND)
        listed = session.checkpoints()
    if not listed:
        advice = "--add makes one, and so does the key checkpoints.every_turns of a configuration"
        return Answer(listed, [], f"there is no checkpoint: {advice}")
    rows = ([each.id, count(each.seq), count(each.turn), each.kind, each.at, each.label] for each in listed)
    return Answer(listed, [Table(("checkpoint", "event#", "turn#", "kind", "made", "label"), rows)])


@command
def rules(
    place: Place,
    *,
    add: Annotated[str | None, Option(metavar="TEXT", help="Add this rule first (writes).")] = None,
    remove: Annotated[str | None, Option(metavar="ADDRESS", help="Take this rule out first (writes).")] = None,
    every: Annotated[bool, Option("--all", help="List rules that were replaced or taken back, too.")] = False,
) -> Answer:
    """List the rules that the user set and the application added, newest last.

    A rule that --remove takes out is not found again. ADDRESS is that of the list, such as usr-3/1, usr-3/1#2 or rule-1.
    """
    if add is not None and remove is not None:
        refuse("give --add or --remove, not both")
    with place.opened(write=add is not None or remove is not None) as session:
        if add is not None:
            session.add_rule(add)
        if remove is not None:
            _remove_rule(session, remove)
        known = session.rules()
    listed = [rule for rule in known if every or rule.superseded_by is None]
    hidden = len(known) - len(listed)
    remark = f"{count(hidden)} more {'was' if hidden == 1 else 'were'} replaced or taken back: --all lists them" if hidden else ""
    if not listed:
        return Answer(listed, [], remark or "there is no rule: --add adds one, and the user sets one by asking for it")
    return Answer(listed, [_rule_table(listed, every=every)], remark)


def _remove_rule(session: memci.Session, address: str) -> None:
    try:
        session.remove_rule(address)
    except ArgumentError:
        refuse(f"there is no rule {shown(address)}: memci rules --all lists those that there are", ExitCode.NOT_FOUND)


def _rule_table(rules: Sequence[memci.Rule], *, every: bool) -> Table:
    columns = ["rule", "kind", "said", "speaker", *(["superseded by"] if every else []), "text"]
    rows = (
        [rule.address, rule.kind, moment(rule.at), rule.speaker, *([rule.superseded_by or ""] if every else []), rule.text]
        for rule in rules
    )
    return Table(columns, rows)


@command
def fork(
    place: Place,
    new_id: Annotated[str, Argument(metavar="NEW_ID", help="The id of the fork.")],
    *,
    at: Annotated[int | None, Option(metavar="SEQ", help="The last event that it has; now by default.")] = None,
) -> Answer:
    """Make a session that begins as another one (writes).

    The two are independent of each other from then on. An interrupted fork can be repeated.
    """
    session_id, config = place.known()
    with place.engine(config, write=True) as engine, engine.fork(session_id, new_id, at) as made:
        seq = made.seq
    told = f"{new_id}: a fork of {session_id}, at event {count(seq)}"
    return Answer({"source": session_id, "session": new_id, "seq": seq}, [told])


@command
def copy(
    place: Place,
    *,
    to_store: Annotated[str, Option(metavar="URL", help="Where the copy goes.")],
    to_session: Annotated[str | None, Option(metavar="ID", help="Its id; the same by default.")] = None,
    to_key: Annotated[str | None, Option(metavar="env:NAME", help="Encrypt the copy with the key of this variable.")] = None,
    every: Annotated[bool, Option("--all", help="Copy all sessions.")] = False,
) -> Answer:
    """Copy a session to another store (writes there).

    The session may be in use meanwhile. An interrupted copy goes on where it was when it is repeated. All events are compared
    at the end. With --all, one that cannot be copied keeps no other from it: it is named, and the exit code is 1.
    """
    if every and (place.session is not None or to_session is not None):
        refuse("--all copies each session under its id: leave --session and --to-session out")
    if place_of(to_store) == place_of(place.store):
        refuse("the copy would go where the session is: give another --to-store, or use memci fork")
    chosen = place.sessions() if every else [place.known()[0]]
    with closing(place.stored()) as source, closing(encryption(to_key).around(open_store(to_store))) as target:
        copies = [*_copies(source, target, place.tenant, chosen, to_session, every=every)]
    return Answer(copies, map(_told, copies), ok=all(isinstance(each, Copied) for each in copies))


@attrs.frozen
class _NotCopied:
    session: str
    error: str


def _copies(  # noqa: PLR0913 (two places, two ids)
    source: Store, target: Store, tenant: str, chosen: Sequence[str], to_session: str | None, *, every: bool
) -> Iterator[Copied | _NotCopied]:
    for session_id in chosen:
        now = datetime.now(UTC).isoformat()
        try:
            with output.progress(session_id) as hear:
                yield copy_session(source, target, session_id, now=now, tenant=tenant, to_session=to_session, progress=hear)
        except MemciError as error:
            if not every:
                raise
            if session_id in source.sessions(tenant):  # else it was deleted meanwhile
                yield _NotCopied(session_id, str(error))


@attrs.frozen
class _Taken:
    """What became of a conversation that was imported; ``error`` says why it was not."""

    session: str
    title: str
    format: str
    messages: int
    new: int
    lost: Sequence[Problem]
    error: str | None = None


@command
def import_(
    place: Place,
    file: Annotated[Path, Argument(metavar="FILE", help="An export, a transcript, messages, or a database of sessions.")],
    *,
    source: Annotated[Source, Option("--from", help="What wrote it; auto tells by what it holds.")] = "auto",
    wire: Annotated[
        Literal["openai", "responses", "anthropic"] | None,
        Option("--format", help="Of the new sessions; else that of --config, and without it the one nearest to the file."),
    ] = None,
    config: ConfigOption = None,
) -> Answer:
    """Take conversations from elsewhere into new sessions (writes).

    FILE is a conversations.json of ChatGPT (chatgpt) or Claude (claude), an agent's transcript or messages as JSON lines
    (transcript), or an SQLite database of the OpenAI Agents SDK (agents-sqlite). What does not come through is listed. The
    whole file is read before anything is written, each conversation is stored whole or not at all, and a repeated import adds
    what is missing. A session that holds another conversation is left as it is; of several conversations, the others are
    taken, and the exit code is 1.
    """
    settings = memci.Config() if config is None else memci.Config.from_file(config)
    found = [*read_file(file, source, to=wire or (None if config is None else settings.format))]
    if place.session is not None:
        if len(found) != 1:
            refuse(f"{file} holds {count(len(found))} conversations, each with an id of its own: leave --session out")
        found = [attrs.evolve(found[0], session_id=place.session)]
    taken = [*_imports(place, settings, found)]
    rows = ([each.session, count(each.messages), count(each.new), count(len(each.lost)), each.title] for each in taken)
    table = Table(("session", "messages#", "new#", "lost#", "title"), rows)
    told = [line for each in taken for line in _lost(each)]
    return Answer(taken, [table, *told], ok=all(each.error is None for each in taken))


def _imports(place: Place, settings: memci.Config, found: Sequence[Imported]) -> Iterator[_Taken]:
    if not found:
        return
    used = memci.Config.from_mapping({**settings.to_mapping(), "format": found[0].format})
    with place.engine(used, write=True) as engine, output.progress("import") as hear:
        for number, each in enumerate(found, start=1):
            new, error = 0, None
            try:
                new = import_into(engine, each)
            except MemciError as refused:
                if len(found) == 1:
                    raise
                error = str(refused)
            hear(number, len(found))
            yield _Taken(each.session_id, each.title, each.format, len(each.messages), new, each.lost, error)


def _lost(taken: _Taken) -> Iterator[str]:
    """Yield what was lost, each kind once, with its first place."""
    if taken.error is not None:
        yield f"{taken.session}: not imported: {taken.error}"
        return
    places: dict[str, list[str]] = {}
    for lost in taken.lost:
        places.setdefault(lost.text, []).append(lost.place)
    for text, several in places.items():
        more = f", and {count(len(several) - 1)} more" if len(several) > 1 else ""
        yield f"{taken.session}: lost: {text} ({several[0]}{more})"


@command
def repair(
    place: Place,
    *,
    apply: Annotated[bool, Option("--apply", help="Do it; without this, only say what would be done.")] = False,
) -> Answer:
    """Make good what differs from a session's journal.

    Index, page files and snapshots are made again from the journal. The exit code is 1 where something is wrong: before
    --apply all that was found, after it what is left.
    """
    session_id, config = place.known()
    with place.engine(config, write=apply) as engine:
        done = engine.repair(session_id, apply=apply)
    steps = [f"{'did' if apply else 'would'}: {step}" for step in done.steps] or ["nothing to repair"]
    told = [*steps, *(done.report.problems or ["no problem found"])]
    remark = "nothing was changed: --apply does it" if done.steps and not apply else ""
    return Answer({"ok": done.report.ok, **attrs.asdict(done)}, told, remark, ok=done.report.ok)


@command
def erase(
    place: Place,
    index: IndexArgument,
    *,
    forks: Annotated[bool, Option("--forks", help="In all forks too that took the page over.")] = False,
    yes: Annotated[bool, Option("--yes", help="It is meant: nothing brings it back.")] = False,
) -> Answer:
    """Take what a page holds out of everything that is stored of a session, for good."""
    if not yes:
        refuse(f"what {index} holds would be gone for good: look at it with memci show, and say --yes")
    session_id, config = place.known()
    with place.engine(config, write=True) as engine:
        try:
            receipts = engine.erase(session_id, index, forks=forks)
        except ErasureError as error:
            return Answer(error.receipts, map(_erased, error.receipts), error=error)
    others = [] if forks else [*receipts[0].forks, *receipts[0].shared_with]
    remark = f"forks and sessions that were shown it may hold it still: {', '.join(others)}; --forks erases it there too"
    return Answer(receipts, map(_erased, receipts), remark if others else "")


@command
def delete(place: Place, *, yes: Annotated[bool, Option("--yes", help="It is meant: nothing brings it back.")] = False) -> None:
    """Delete a session with all that is stored of it; its forks and copies stay.

    It need not be one that can be opened: a damaged one goes, too. Its id has to be given.
    """
    if place.session is None:
        refuse("say which one is to be deleted with --session; memci sessions lists them")
    if not yes:
        refuse(f"session {shown(place.session)} would be gone for good: say --yes")
    with place.engine(write=True) as engine:
        if place.session not in set(engine.sessions()):
            output.note(f"there is no session {shown(place.session)}; what may be left of one is removed")
        receipt = engine.delete(place.session)
    output.note(f"{count(receipt.events or 0)} events are gone; the last one had the SHA-256 {receipt.sha256 or '-'}")


def _told(copied: Copied | _NotCopied) -> str:
    if isinstance(copied, _NotCopied):
        return f"{copied.session}: not copied: {copied.error}"
    there = copied.seq - copied.events
    told = [f"{copied.session}: {count(copied.events)} events and {count(copied.pages)} page files copied"]
    if there:
        told.append(f"{count(there)} events were there")
    if copied.missing:
        told.append(f"{count(len(copied.missing))} page files were not as the journal names them")
    return "; ".join([*told, "all events compared"])


def _erased(receipt: Receipt) -> str:
    return (
        f"{receipt.page} of {receipt.session}: {count(receipt.records)} records redacted, "
        f"{count(len(receipt.files))} page files, event {count(receipt.seq)}, {receipt.at}"
    )
