"""Each request of each operation fails or is the last one, before or after it took effect; then somebody else looks."""

from collections.abc import Callable, Iterator

import attrs
import pytest
from obstore.store import MemoryStore

from memci.archive.stores.contract import NewRecord, SessionStore
from memci.archive.stores.objects.io import ObjectIo
from memci.archive.stores.objects.store import ObjectStore
from memci.errors import ConflictError, UnavailableError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of
from tests.archive.stores.objects.faulty_objects import DiedError, FaultyObjectIo, stored

GONE = b'{"text":"[erased]"}'


@attrs.frozen
class Case:
    """One operation on a session that has some history."""

    history: tuple[int, ...]
    act: Callable[[SessionStore], object]


def commit(prefix: str, count: int) -> list[NewRecord]:
    return [new_record(f"{prefix}-{number}") for number in range(count)]


def append(count: int) -> Callable[[SessionStore], object]:
    return lambda session: session.journal.append(session.journal.head(), commit("new", count))


APPENDS = {
    "a first append": Case((), append(2)),
    "a small append": Case((3,), append(2)),
    "an append to a full tail": Case((64,), append(2)),
    "an append of several segments": Case((3,), lambda session: session.journal.append(3, commit("x" * 5_000, 120))),
    "an append that makes a list": Case((1, *[65] * 31), append(65)),
}


def on(bucket: MemoryStore) -> ObjectStore:
    return ObjectStore(ObjectIo(lambda: bucket))


def begun(bucket: MemoryStore, history: tuple[int, ...]) -> list[str]:
    """Write some commits of so many records each, and return their texts."""
    journal = on(bucket).open(TENANT, "session").journal
    for number, count in enumerate(history):
        journal.append(sum(history[:number]), commit(f"old-{number}", count))
    return texts_of(journal)


def failures(case: Case) -> Iterator[tuple[MemoryStore, list[str], BaseException | None]]:
    """Yield bucket, texts before and what was raised, for each request of the operation and each way in which it can fail."""
    for has_effect in (False, True):
        for dies in (False, True):
            number = 1
            while True:
                bucket = MemoryStore()
                old = begun(bucket, case.history)
                io = FaultyObjectIo(bucket)
                session = ObjectStore(io).open(TENANT, "session")
                io.fail(number, has_effect=has_effect, dies=dies)
                raised: BaseException | None = None
                try:
                    case.act(session)
                except (UnavailableError, DiedError) as error:
                    raised = error
                if io.is_due:
                    break
                yield bucket, old, raised
                number += 1
            assert number > 2


@pytest.mark.parametrize("name", APPENDS)
def test_an_append_is_there_whole_or_not_at_all(name: str) -> None:
    """Whatever fails, all acknowledged records are there in order, the new commit wholly or not, and the next writer goes on."""
    for bucket, old, raised in failures(APPENDS[name]):
        again = on(bucket).open(TENANT, "session")
        texts = texts_of(again.journal)
        new = texts[len(old) :]
        assert old == texts[: len(old)]
        assert raised is not None or new
        assert len(new) in {0, 2, 65, 120}
        head = again.journal.append(len(texts), [new_record("later")])
        assert head == len(texts) + 1
        assert [*texts, "later"] == texts_of(on(bucket).open(TENANT, "session").journal)


def test_no_answer_to_an_append_that_was_done_is_success() -> None:
    """The writer looks for its own write: where it is there, the append returns, and nothing is written twice."""
    io = FaultyObjectIo(MemoryStore())
    session = ObjectStore(io).open(TENANT, "session")
    append_each(session.journal, "a")
    io.fail(1, has_effect=True)
    assert 2 == session.journal.append(1, [new_record("b")])
    assert ["a", "b"] == texts_of(session.journal)


def test_an_append_that_the_driver_sends_twice_is_success() -> None:
    """A put that was done, whose answer was lost and that is refused when it is sent again, counts as done."""
    io = FaultyObjectIo(MemoryStore())
    session = ObjectStore(io).open(TENANT, "session")
    io.fail(1, has_effect=True, is_repeated=True)
    assert 1 == session.journal.append(0, [new_record("a")])
    io.fail(1, has_effect=True, is_repeated=True)
    assert 2 == session.journal.append(1, [new_record("b")])
    assert ["a", "b"] == texts_of(session.journal)


def test_a_first_append_that_met_nobody_is_done_again() -> None:
    """A put that was refused though there is no session is made again."""
    io = FaultyObjectIo(MemoryStore())
    io.fail(1, has_effect=False, is_repeated=True)
    session = ObjectStore(io).open(TENANT, "session")
    assert 1 == session.journal.append(0, [new_record("a")])
    assert {"put": 1, "get": 1} == io.requests  # and the put that was refused
    assert ["a"] == texts_of(session.journal)


def test_what_may_be_done_is_never_taken_away() -> None:
    """Where a refused put was done all the same, and the look at the manifest fails, the segment that it names stays."""
    io = FaultyObjectIo(MemoryStore())
    session = ObjectStore(io).open(TENANT, "session")
    session.journal.append(0, commit("old", 64))
    io.fail(2, has_effect=True, is_repeated=True)
    io.on_request(3, no_answer)
    with pytest.raises(UnavailableError):
        session.journal.append(64, [new_record("new")])
    assert [*(f"old-{number}" for number in range(64)), "new"] == texts_of(session.journal)


def no_answer() -> None:
    message = "no answer"
    raise UnavailableError(message)


def test_no_answer_to_an_append_that_was_not_done_is_said() -> None:
    """The append raises, nothing is there, and the same append does it later."""
    io = FaultyObjectIo(MemoryStore())
    session = ObjectStore(io).open(TENANT, "session")
    append_each(session.journal, "a")
    io.fail(1, has_effect=False)
    with pytest.raises(UnavailableError, match="no answer"):
        session.journal.append(1, [new_record("b")])
    assert 2 == session.journal.append(1, [new_record("b")])
    assert ["a", "b"] == texts_of(session.journal)


def test_the_same_record_of_somebody_else_is_not_ones_own() -> None:
    """Of two writers with equal records for the same place, the one that lost gets a conflict and not the other's success."""
    bucket = MemoryStore()
    first = on(bucket).open(TENANT, "session")
    io = FaultyObjectIo(bucket)
    second = ObjectStore(io).open(TENANT, "session")
    append_each(first.journal, "a")
    assert 1 == second.journal.head()
    io.fail(1, has_effect=False, meanwhile=lambda: first.journal.append(1, [new_record("same")]))
    with pytest.raises(UnavailableError):
        second.journal.append(1, [new_record("same")])
    with pytest.raises(ConflictError):
        second.journal.append(1, [new_record("same")])
    assert ["a", "same"] == texts_of(second.journal)


@pytest.mark.parametrize("others", [31, 32])
def test_what_was_long_ago_is_not_guessed(others: int) -> None:
    """A write without an answer is recognised before 31 later ones; before more it is an error that says that nobody knows."""
    bucket = MemoryStore()
    other = on(bucket).open(TENANT, "session").journal
    append_each(other, "a")
    io = FaultyObjectIo(bucket)
    session = ObjectStore(io).open(TENANT, "session")
    assert 1 == session.journal.head()
    io.fail(1, has_effect=True, meanwhile=lambda: append_each(other, *["other"] * others))
    if others == 31:
        assert 2 == session.journal.append(1, [new_record("b")])
    else:
        with pytest.raises(UnavailableError, match="nobody knows"):
            session.journal.append(1, [new_record("b")])
    assert ["a", "b", *["other"] * others] == texts_of(session.journal)


def test_pages_are_there_after_a_second_try() -> None:
    """Whatever fails, each page is the old or the new one, and putting them again puts all of them."""

    def act(session: SessionStore) -> None:
        session.pages.put({"usr-1": b"new", "usr-2": b"new"})

    def both(session: SessionStore) -> None:
        session.pages.put({"usr-1": b"old"})
        act(session)

    for bucket, old, _ in failures(Case((2,), both)):
        session = on(bucket).open(TENANT, "session")
        assert session.pages.find("usr-1") in {None, b"old", b"new"}
        assert session.pages.find("usr-2") in {None, b"new"}
        act(session)
        assert [b"new", b"new"] == [session.pages.find("usr-1"), session.pages.find("usr-2")]
        assert old == texts_of(session.journal)


def test_a_snapshot_is_the_old_or_the_new_one() -> None:
    """Whatever fails, the newest snapshot that is found is whole, and none that is found is damaged."""

    def act(session: SessionStore) -> None:
        for seq in (1, 2, 3, 4, 5):
            session.snapshots.put(seq, b'{"seq":%d}' % seq)

    for bucket, old, _ in failures(Case((6,), act)):
        session = on(bucket).open(TENANT, "session")
        found = session.snapshots.find()
        assert found is None or b'{"seq":%d}' % found[0] == found[1]
        assert [] == list(session.snapshots.problems())
        session.snapshots.put(6, b"{}")
        assert (6, b"{}") == session.snapshots.find()
        session.snapshots.clear()
        assert not [path for path in stored(bucket) if "/snapshots/" in path]
        assert old == texts_of(session.journal)


def test_what_was_redacted_is_nowhere_after_a_second_try() -> None:
    """Whatever fails, each body is the old or the new one; once it returns, no object holds the former ones."""
    secrets = {1, 40, 131, 190}

    def act(session: SessionStore) -> None:
        session.journal.redact(dict.fromkeys(secrets, GONE))

    for bucket, old, raised in failures(Case((60, 70, 60), act)):
        session = on(bucket).open(TENANT, "session")
        new = ["[erased]" if seq in secrets else text for seq, text in enumerate(old, start=1)]
        assert texts_of(session.journal) in (old, new)
        if raised is not None:
            act(session)
        assert new == texts_of(session.journal)
        everything = b"".join(stored(bucket).values())
        assert [] == [seq for seq in secrets if b'{"text":"%b"}' % old[seq - 1].encode() in everything]


def test_a_deleted_session_leaves_nothing_after_a_second_try() -> None:
    """Whatever fails, the session is whole or gone; deleting it again leaves no object, and the id can begin anew."""
    for dies in (False, True):
        for has_effect in (False, True):
            for number in range(1, 5):
                bucket = MemoryStore()
                old = begun(bucket, (65, 65, 3))
                on(bucket).open(TENANT, "session").pages.put({"usr-1": b"page"})
                io = FaultyObjectIo(bucket)
                io.fail(number, has_effect=has_effect, dies=dies)
                with pytest.raises((UnavailableError, DiedError)):
                    ObjectStore(io).delete(TENANT, "session")
                store = on(bucket)
                assert texts_of(store.open(TENANT, "session").journal) in (old, [])
                store.delete(TENANT, "session")
                assert {} == stored(bucket)
                assert 1 == append_each(store.open(TENANT, "session").journal, "new")


def test_a_page_that_comes_after_a_deletion_does_not_stay() -> None:
    """Who puts pages while the session is deleted is told so, and what was put is taken away again."""
    io = FaultyObjectIo(MemoryStore())
    store = ObjectStore(io)
    session = store.open(TENANT, "session")
    append_each(session.journal, "a")
    other = on(io.bucket)
    io.on_request(2, lambda: other.delete(TENANT, "session"))
    with pytest.raises(UnavailableError, match="deleted"):
        session.pages.put({"usr-1": b"late"})
    assert {} == stored(io.bucket)


def test_a_lost_race_leaves_no_segment() -> None:
    """Who wrote a segment and then was not the first takes it away again, and goes on after the winner."""
    io = FaultyObjectIo(MemoryStore())
    session = ObjectStore(io).open(TENANT, "session")
    session.journal.append(0, commit("old", 64))
    other = on(io.bucket).open(TENANT, "session").journal
    io.on_request(2, lambda: append_each(other, "winner"))
    with pytest.raises(ConflictError):
        session.journal.append(64, [new_record("loser")])
    assert 1 == len([path for path in stored(io.bucket) if "/segments/" in path])
    assert [*(f"old-{number}" for number in range(64)), "winner"] == texts_of(session.journal)


def test_what_a_crash_left_is_redacted_too() -> None:
    """A segment that was put by a process that ended before it was named holds former bodies, and goes with them."""
    bucket = MemoryStore()
    append_each(on(bucket).open(TENANT, "session").journal, "secret", *["x"] * 63)
    io = FaultyObjectIo(bucket)
    dying = ObjectStore(io).open(TENANT, "session")
    assert 64 == dying.journal.head()
    io.fail(2, has_effect=False, dies=True)
    with pytest.raises(DiedError):
        dying.journal.append(64, [new_record("never")])
    assert 2 == b"".join(stored(bucket).values()).count(b"secret")
    on(bucket).open(TENANT, "session").journal.redact({1: GONE})
    assert b"secret" not in b"".join(stored(bucket).values())
