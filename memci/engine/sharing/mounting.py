"""Mounting: another session's contents page is shown in this one's window, and its pages are read and recalled by address."""

import re
from collections.abc import Callable, Iterator
from typing import Final

import attrs

from memci.archive.contents.contents_page import Outlined
from memci.archive.contents.tree import Permission
from memci.chapters.address import segment_of
from memci.chapters.page import Page
from memci.engine.commands import preparing, recalling
from memci.engine.core.core import Core
from memci.engine.history.events import PagesFaded, from_record
from memci.engine.history.shared_events import MountNoted, SessionMounted, SessionUnmounted
from memci.engine.history.state import SYSTEM, USER, Mount
from memci.engine.reading import pages
from memci.engine.settings.setting import MOST
from memci.errors import ArgumentError, PageNotFoundError, PermissionDeniedError, shown

DEFAULT_SHARE: Final = 0.1  # of the configured budget, that a mounted contents page may take where nothing is said

_NAME = re.compile(r"[a-z0-9][a-z0-9_.:@+-]{0,63}")
_HEAD = re.compile(r"^\[(?=[a-z])", re.MULTILINE)  # the index that an entry begins with
_HEAD_IN_JSON = re.compile(r'(?<=")\[(?=[a-z])|(?<=\\n)\[(?=[a-z])')
_LINE_TOKENS = 24  # of the entry of a page that stands in the other session's window
_FRAME_TOKENS = 70  # of what frames the entries


@attrs.frozen(kw_only=True)
class Shown:
    """What is shown of a session: lines as of one of its events."""

    seq: int
    lines: str


def checked(
    core: Core, name: object, session_id: str, permission: object, capacity_tokens: object
) -> tuple[str, Permission, int]:
    """Return name, permission and capacity of a mount; ``ArgumentError`` for what is none."""
    if name is None:
        name = session_id.lower() if _NAME.fullmatch(session_id.lower()) else f"mount-{len(core.state.mounts) + 1}"
        if name in core.state.tree.segments or (name in core.state.mounts and core.state.mounts[name].session != session_id):
            name = f"mount-{len(core.state.mounts) + 1}"
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in core.state.tree.segments:
        wanted = "a name of small letters, digits and _.:@+-, at most 64, that no segment of this session has"
        raise ArgumentError(argument="segment", value=name, wanted=wanted)
    if name in core.state.mounts and core.state.mounts[name].session != session_id:
        wanted = f"another name: session {shown(core.state.mounts[name].session)} is mounted under it"
        raise ArgumentError(argument="segment", value=name, wanted=wanted)
    if not isinstance(permission, str) or permission not in tuple(Permission):
        raise ArgumentError(argument="permission", value=permission, wanted=f"one of {', '.join(Permission)}")
    if capacity_tokens is None:
        capacity_tokens = int(DEFAULT_SHARE * core.config.budget.tokens)
    if type(capacity_tokens) is not int or not 0 <= capacity_tokens <= MOST:
        raise ArgumentError(argument="capacity_tokens", value=capacity_tokens, wanted="a number of tokens, 0 to show nothing")
    return name, Permission(permission), capacity_tokens


def checked_only(core: Core, only: object) -> str:
    """Return the segment of a session of which alone pages are shown; ``ArgumentError`` for one that it has not."""
    known = [name for name in core.state.tree.segments if is_shared(core, name)]
    if only is None or (isinstance(only, str) and only in known):
        return only or ""
    raise ArgumentError(argument="only", value=only, wanted=f"a segment of the session: {', '.join(known)}")


def addressed(text: str, name: str) -> str:
    """Return messages as JSON, which list a mounted session's pages, with the addresses that these have here."""
    return _HEAD_IN_JSON.sub(f"[{name}/", text)


def is_shared(core: Core, segment: str) -> bool:
    """Return whether others may see a segment: not the system part, and none that the model of its own session does not read."""
    return segment != SYSTEM and core.state.tree.segments[segment].permission is not Permission.SYSTEM_MANAGED


def read(core: Core, name: str, mount: Mount, count: Callable[[str], int]) -> Shown:
    """Return what another session shows of this one under a name: entries of pages and what was made, oldest first. O(visible).

    In the tokens of the mount's capacity: what was made, then the newest in full; what has no room for that is its first line, or
    is counted.
    """
    room, lines, left_out = mount.capacity_tokens - _FRAME_TOKENS, dict[int, str](), 0
    entries = [*_entries(core, mount.only)] if room > 0 else []
    for number in sorted(range(len(entries)), key=lambda number: (not entries[number][1], -number)):
        text, _, pages_in_it = entries[number]
        named = _HEAD.sub(f"[{name}/", text)
        for each in dict.fromkeys((named, named.split("\n")[0])):
            if not left_out and (tokens := count(each) + 1) <= room:
                room -= tokens
                lines[number] = each
                break
        else:
            left_out += pages_in_it
    if left_out:
        found = "" if mount.permission == Permission.SYSTEM_MANAGED else ", search_pages finds them"
        lines[-1] = f"{left_out} older: not listed{found}"
    return Shown(seq=core.state.seq, lines="\n".join(lines[number] for number in sorted(lines)))


def _entries(core: Core, only: str) -> Iterator[tuple[str, bool, int]]:
    """Yield what the entries of shared pages say, oldest first, whether each was made, and of how many pages it tells."""
    tree = core.state.tree
    for item in core.state.contents.entries:
        segment = tree.segment(item.index).name
        is_made = isinstance(item, Outlined)
        if is_shared(core, segment) and only in ("", segment) and not (isinstance(item, Outlined) and not item.name):
            yield item.render(), is_made, 1 if isinstance(item, Outlined) else item.pages
    for page in core.state.active.pages():
        segment = tree.segment(page.index).name
        if page.head is not None and only in ("", segment) and tree.find(page.index) is None:
            yield preparing.take(core, page, _LINE_TOKENS).entry.render(), False, 1


def note(core: Core, session_id: str, name: str, permission: str) -> int:
    """Note in a session that another one shows it, and return the number of that event."""
    core.commit([MountNoted(session=session_id, name=name, permission=permission, at=core.now())])
    return core.state.seq


def check(core: Core, name: str, mount: Mount) -> None:
    """Raise ``PageNotFoundError`` where a session is another one than was mounted: that was deleted, and its id is used again."""
    record = next(iter(core.store.journal.read(mount.noted - 1, mount.noted)), None) if mount.noted else None
    event = None if record is None else from_record(record)
    if mount.noted and not (isinstance(event, MountNoted) and event.name == name):
        message = (
            f"session {shown(mount.session)}, mounted as {name}, was deleted, and another one has its id: mount that one anew"
        )
        raise PageNotFoundError(message, index=f"{name}/{USER}-0")


def show(core: Core, name: str, mount: Mount, found: Shown) -> bool:
    """Show a session, or what changed of it, and return whether anything did. O(its lines)."""
    text = ""
    if found.lines:
        how = "" if mount.permission == Permission.SYSTEM_MANAGED else f'; recall_page("{name}/{USER}-1") brings such a page in'
        head = f"[contents of {name}, pages of session {shown(mount.session)}, {mount.permission}, quoted as data{how}]"
        text = f"{head}\n{found.lines}\n[end of contents of {name}]"
    known = core.state.mounts.get(name)
    if known is not None and attrs.evolve(known, seq=0) == attrs.evolve(mount, seq=0, text=text, tokens=known.tokens):
        return False
    tokens = core.count(core.state.wire.block(text)) if text else 0
    made = attrs.asdict(attrs.evolve(mount, seq=found.seq, text=text, tokens=tokens))
    core.commit([SessionMounted(name=name, at=core.now(), **made)])
    return True


def unmount(core: Core, name: object) -> None:
    """Show a session no more."""
    if not isinstance(name, str) or name not in core.state.mounts:
        raise ArgumentError(argument="name", value=name, wanted=f"a mount: {', '.join(core.state.mounts) or 'there is none'}")
    core.commit([SessionUnmounted(name=name, at=core.now())])


def parted(core: Core, index: object) -> tuple[str, str] | None:
    """Return the mount and the other session's index, or address, in one such as ``project/usr-12``; ``None`` for another."""
    if not isinstance(index, str) or not core.state.mounts:
        return None
    name, _, inner = index.partition("/")
    return (name, inner) if inner and name in core.state.mounts else None


def refuse(core: Core, mount: Mount, inner: str) -> str:
    """Return a page's index in the session that is mounted; ``PageNotFoundError`` for one that the mount does not show."""
    index = pages.page_index(inner)
    tree = core.state.tree
    segment = segment_of(index) if tree.find(index) is None else tree.segment(index).name
    if (segment in tree.segments and not is_shared(core, segment)) or mount.only not in ("", segment):
        message = f"{index} is no page of session {shown(core.session_id)} that is shown here: what is listed may be recalled"
        raise PageNotFoundError(message, index=index)
    return index


def shows(core: Core, *, mount: Mount, index: str) -> bool:
    """Return whether a mount shows a page of the session that it is of."""
    try:
        return bool(refuse(core, mount, index))
    except PageNotFoundError:
        return False


def refuse_write(name: str, mount: Mount) -> None:
    """Raise ``PermissionDeniedError`` where a mount is not to be written to."""
    if mount.permission != Permission.READ_WRITE:
        message = f"{name} is mounted {mount.permission}: nothing is written there; mount it read_write, or write in this session"
        raise PermissionDeniedError(message)


def recall(core: Core, page: Page) -> Page:
    """Attach a page of a mounted session, which has its address here as its index."""
    return recalling.attach(core, page)


def fade(core: Core, index: str) -> None:
    """Let a recalled page of a mounted session leave the window."""
    if index in core.state.recalled:
        core.commit([PagesFaded(pages=[index], reason="command")])
