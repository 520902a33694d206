"""What happened between sessions of one tenant; see ``events``, whose kinds these are."""

from typing import TypeAlias

import attrs

from memci.engine.history.kind import Kind


@attrs.frozen(kw_only=True, repr=False)
class HandedOver(Kind, kind="handed_over"):
    """Another session took over what this one was at, as a note of its own; nothing changes here."""

    session: str
    page: str  # that note
    checkpoint: str
    handed_at: int  # the event as of which
    at: str


@attrs.frozen(kw_only=True, repr=False)
class SessionMounted(Kind, kind="mounted"):
    """Another session's contents page is shown here under a name; or what is shown of it changed."""

    name: str
    session: str
    permission: str
    capacity_tokens: int
    only: str = ""  # the segment of which alone pages are shown and read; empty for all but the system part
    seq: int  # of the other session's last event, as of which the text is
    noted: int = 0  # its event that notes the mount: a session that is begun anew under its id has another one there
    text: str  # what the window shows; empty for nothing
    tokens: int  # of the message that holds it
    at: str


@attrs.frozen(kw_only=True, repr=False)
class SessionUnmounted(Kind, kind="unmounted"):
    """A mounted session is shown no more; what was recalled of it fades."""

    name: str
    at: str


@attrs.frozen(kw_only=True, repr=False)
class MountNoted(Kind, kind="mounted_by"):
    """Another session shows this one from then on; whoever erases content learns where copies may be."""

    session: str
    name: str  # under which it shows it
    permission: str
    at: str


@attrs.frozen(kw_only=True, repr=False)
class PagePromoted(Kind, kind="promoted"):
    """What a page says is a note of the tenant's long-term memory, too."""

    page: str
    revision: int  # of the page
    session: str  # that holds the note
    note: str
    at: str


SharedEvent: TypeAlias = HandedOver | SessionMounted | SessionUnmounted | MountNoted | PagePromoted
