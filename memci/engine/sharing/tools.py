"""The model's tools over mounted sessions: an index such as ``project/usr-12`` is carried out where the page is."""

import functools
import inspect
from collections.abc import Callable, Mapping
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar

from memci.archive.contents.tree import Permission
from memci.engine.reading.pages import shown_title
from memci.engine.sharing.others import OtherSessions
from memci.engine.tools.recall_tools import Receipt, plain_index, shown_hit
from memci.engine.tools.tree_tools import EDITING, Edited, TreeToolbox
from memci.errors import PermissionDeniedError
from memci.messages import codec

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from memci.engine.core.core import Core
    from memci.engine.sharing.session import SharingSession

_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")
_Arguments: TypeAlias = dict[str, Any]

_INDEXES = ("index", "target", "parent")
_SHOWS = "the session that owns it has it now; what is shown of it here follows as a turn begins"


class SharedToolbox(TreeToolbox):
    """All tools of a session, which reach pages of mounted sessions too, and search these beside its own."""

    def __init__(
        self, opened: "Callable[[], AbstractContextManager[Core]]", core: "Core", session: "SharingSession", *, read_only: bool
    ) -> None:
        """Make the tools of a *session*; see ``RecallToolbox``."""
        self._session = session
        ids = session._session_ids
        super().__init__(opened, core, read_only=read_only, others=None if ids is None else OtherSessions(session, ids))

    def pictures(self, tool: str, text: str) -> list[dict[str, Any]]:
        """Return the pictures of what was read, of a mounted session too; see ``RecallToolbox``."""
        reading = codec.decode(text.encode()) if tool == "read_page" and self._core.state.mounts else {}
        if str(reading.get("index")).partition("/")[0] in self._core.state.mounts:
            return self._session._pictures_mounted(reading["index"], reading)
        return super().pictures(tool, text)

    def _permitted(self, *, asked: bool) -> tuple[str, ...]:
        writes = any(mount.permission == Permission.READ_WRITE for mount in self._core.state.mounts.values())
        return (*super()._permitted(asked=asked), *(EDITING if writes else ()))

    def _tool(self, function: Callable[_Given, _Answer]) -> Callable[_Given, _Answer]:
        name, own, signature = function.__name__[1:], super()._tool(function), inspect.signature(function)

        @functools.wraps(function)
        def tool(*positional: _Given.args, **named: _Given.kwargs) -> Any:  # noqa: ANN401 (what the tool answers)
            mounts = self._core.state.mounts
            if not mounts:
                return own(*positional, **named)
            given = {key: _plain(key, value) for key, value in signature.bind(*positional, **named).arguments.items()}
            meant = [each.partition("/")[0] for key in given for each in _indexes(key, given[key])]
            mount = next((each for each in meant if each in mounts), "")
            if not mount:
                return self._searched(given, own(*positional, **named)) if name == "search_pages" else own(*positional, **named)
            if mounts[mount].permission == Permission.SYSTEM_MANAGED:
                message = f"{mount} is mounted system_managed: what is shown of it is all that there is to see"
                raise PermissionDeniedError(message)
            return _TOOLS[name](self._session, given)

        return tool

    def _searched(self, given: _Arguments, own: Any) -> list[Any]:  # noqa: ANN401 (rows)
        """Return what a search finds here and in mounted sessions, in turns, the best of each first."""
        limit = given.get("limit", 5)
        found = self._session.search_mounts(given["query"], limit, since=given.get("since"), until=given.get("until"))
        columns = [own, *([shown_hit(hit) for hit in hits] for hits in found)]
        return [row for row in chain.from_iterable(zip_longest(*columns)) if row is not None][:limit]


def _plain(key: str, value: Any) -> Any:  # noqa: ANN401 (what a model gives)
    """Return an index of a mount as a model means it; all else as it is."""
    if key == "pages":
        return [_plain("index", each) for each in value] if isinstance(value, list) else value
    return plain_index(value) if key in _INDEXES and isinstance(value, str) and "/" in value else value


def _indexes(key: str, value: object) -> list[str]:
    several = value if key == "pages" and isinstance(value, list) else [value] if key in _INDEXES else []
    return [each for each in several if isinstance(each, str)]


def _recall(session: "SharingSession", given: _Arguments) -> Receipt:
    page, facts = session.recall(given["index"]), session.facts(given["index"])
    attached = session.explain(given["index"]).in_window
    stands = "in a block before the newest page" if attached else f'not in view, as it is too large: read_page("{page.index}", 0)'
    return Receipt(index=page.index, title=shown_title(facts.title), tokens=page.tokens, stands=stands)


def _read(session: "SharingSession", given: _Arguments) -> Any:  # noqa: ANN401 (what the tool answers)
    return session._read_mounted(given["index"], given.get("start", 0), given.get("limit", 4_000))


def _write(session: "SharingSession", given: _Arguments) -> Edited:
    index = session.create_detail_page(given["name"], given["description"], given["detail"], given["parent"])
    return Edited(index=index, parent=given["parent"], shows=_SHOWS)


def _group(session: "SharingSession", given: _Arguments) -> Edited:
    root = f"{given['pages'][0].partition('/')[0]}/usr-0" if given["pages"] else ""
    parent = given.get("parent") or root
    index = session.create_contents_page(given["name"], given["description"], parent, given["pages"])
    return Edited(index=index, parent=parent, shows=_SHOWS)


def _move(session: "SharingSession", given: _Arguments) -> Edited:
    session.move_page(given["index"], given["target"])
    return Edited(index=given["index"], parent=given["target"], shows=_SHOWS)


def _remove(session: "SharingSession", given: _Arguments) -> Edited:
    session.remove_page(given["index"])
    return Edited(index=given["index"], parent="", shows=_SHOWS)


def _close(session: "SharingSession", given: _Arguments) -> Edited:
    session.fade(given["index"])
    return Edited(index=given["index"], parent="", shows="it is not in view in the next message list")


_TOOLS: Mapping[str, Callable[["SharingSession", _Arguments], Any]] = {
    "recall_page": _recall,
    "open_page": _recall,
    "read_page": _read,
    "write_note": _write,
    "group_pages": _group,
    "move_page": _move,
    "remove_page": _remove,
    "close_page": _close,
}
