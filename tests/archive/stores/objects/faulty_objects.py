"""Requests to a bucket that fail when they are told to, before or after they took effect."""

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

import obstore
from obstore.store import MemoryStore

from memci.archive.stores.objects.io import RejectedError, UnchangedError
from memci.errors import UnavailableError
from tests.archive.stores.counting import CountingObjects

if TYPE_CHECKING:
    from obstore.store import ObjectStore as Driver

_T = TypeVar("_T")


class DiedError(BaseException):
    """The process ended: it makes no further request."""


class FaultyObjectIo(CountingObjects):
    """An ``ObjectIo`` on a bucket in memory, with one failure on order.

    Attributes:
        bucket: What survives.
        is_due: Whether the failure that was ordered did not come yet.
    """

    def __init__(self, bucket: MemoryStore) -> None:
        super().__init__(lambda: bucket)
        self.bucket = bucket
        self.is_due = False
        self._skip = 0
        self._has_effect = False
        self._dies = False
        self._is_dead = False
        self._is_repeated = False
        self._meanwhile: Callable[[], object] = lambda: None
        self._before: dict[int, Callable[[], object]] = {}

    def fail(
        self,
        number: int,
        *,
        has_effect: bool,
        dies: bool = False,
        is_repeated: bool = False,
        meanwhile: Callable[[], object] = lambda: None,
    ) -> None:
        """Let the request of this number from now, from 1, have no answer, with or without having taken effect.

        Args:
            number: Which request.
            has_effect: It is done all the same.
            dies: The process ends there.
            is_repeated: The driver sends it again, so that a conditional put is refused the second time.
            meanwhile: What others do before the caller goes on.
        """
        self.is_due = True
        self._skip = number - 1
        self._has_effect = has_effect
        self._dies = dies
        self._is_repeated = is_repeated
        self._meanwhile = meanwhile

    def on_request(self, number: int, call: Callable[[], object]) -> None:
        """Let somebody else do something just before the request of this number from now, from 1."""
        self._before[self.requests.total() + number] = call

    def request(self, kind: str, path: str, call: "Callable[[Driver], _T]", *, creates: bool = False) -> _T:
        """Make a request, or fail."""
        if self._is_dead:
            raise DiedError
        with self.lock:
            is_now = self.is_due and self._skip == 0
            self._skip -= 1
            self.is_due = self.is_due and not is_now
        self._before.pop(self.requests.total() + 1, lambda: None)()
        if not is_now:
            return super().request(kind, path, call, creates=creates)
        if self._has_effect:
            with suppress(FileNotFoundError, RejectedError, UnchangedError):  # an answer that is lost too
                super().request(kind, path, call, creates=creates)
        self._meanwhile()
        if self._dies:
            self._is_dead = True
            raise DiedError
        if self._is_repeated:
            raise RejectedError
        message = f"{path}: no answer, as ordered"
        raise UnavailableError(message)


def stored(bucket: MemoryStore) -> dict[str, bytes]:
    """Return all objects of a bucket by path."""
    paths = [meta["path"] for batch in obstore.list(bucket) for meta in batch]
    return {path: bytes(obstore.get(bucket, path).bytes()) for path in paths}
