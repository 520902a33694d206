"""What the journal of every store has to do, and whatever takes content out; a part of ``memci.testing.store_suite``."""

from collections.abc import Callable
from hashlib import sha256
from typing import ClassVar

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from memci.archive.stores.contract import Journal, NewRecord, Record, SessionStore, Store
from memci.errors import ConflictError

TENANT = "default"

GONE = b'{"text":"[erased]"}'

# The store outlives an example, and a class for each store inherits the test: both are meant.
each_example_cleans_up = settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
)
_bodies = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
).map(orjson.dumps)
_commits = st.lists(
    st.lists(
        st.builds(NewRecord, st.sampled_from(["appended", "page_folded"]), st.integers(0, 9), _bodies), min_size=1, max_size=4
    ),
    max_size=6,
)


def new_record(text: str = "hello", *, kind: str = "appended", version: int = 1) -> NewRecord:
    """Make a record whose body holds a text."""
    return NewRecord(kind, version, orjson.dumps({"text": text}))


def append_each(journal: Journal, *texts: str) -> int:
    """Append a record for each text, a commit each, and return the head."""
    head = journal.head()
    for text in texts:
        head = journal.append(head, [new_record(text)])
    return head


def refuses(error: type[Exception], *calls: Callable[[], object], match: str | None = None) -> None:
    """Assert that each call raises an error."""
    for call in calls:
        with pytest.raises(error, match=match):
            call()


def texts_of(journal: Journal, after: int = 0, until: int | None = None) -> list[str]:
    """Return the texts of the records that ``new_record`` made."""
    return [orjson.loads(record.body)["text"] for record in journal.read(after, until)]


class Suite:
    """What every part of the suite has: the fixtures, and the capability that its tests show, in a word.

    ``store_name`` is how the report of ``memci.testing.conformance`` names the store; empty for the name of the class.
    """

    store_name = ""
    capability: ClassVar[str]

    def __init_subclass__(cls, *, capability: str = "") -> None:
        """Note the capability that the tests of a part show; ``StoreSuite`` and what inherits from it have many."""
        cls.capability = capability

    @pytest.fixture
    def store(self) -> Store:
        """Return the store to test."""
        message = "override the fixture: return the store to test"
        raise NotImplementedError(message)

    @pytest.fixture
    def session(self, store: Store) -> SessionStore:
        """Return a new session, opened to be written."""
        return store.open(TENANT, "session")

    @pytest.fixture
    def begun(self, session: SessionStore) -> SessionStore:
        """Return a new session with one record, of the text "a"."""
        append_each(session.journal, "a")
        return session


class JournalSuite(Suite, capability="journal"):
    """Records come back dense, in order and byte for byte, from any place, whatever their size."""

    @given(commits=_commits)
    @example(
        commits=[[NewRecord("page_folded", 3, '{"text":"quote \\" and \\u2028, ünïcödé, \\"body\\":{","sum":"x"}'.encode())]]
    )
    @each_example_cleans_up
    def test_sequence_numbers_are_dense(self, store: Store, commits: list[list[NewRecord]]) -> None:
        """Whatever is committed is numbered from 1 without a gap, and read in order, as it was given, by the next opening."""
        session = store.open(TENANT, "any commits")
        flat = [record for commit in commits for record in commit]
        head = 0
        for commit in commits:
            assert head + len(commit) == session.journal.append(head, commit)
            head += len(commit)
        session.close()
        again = store.open(TENANT, "any commits")
        expected = [Record(seq, record.kind, record.version, record.body) for seq, record in enumerate(flat, start=1)]
        assert head == again.journal.head()
        assert expected == list(again.journal.read())
        again.close()
        store.delete(TENANT, "any commits")

    def test_read_takes_a_range(self, session: SessionStore) -> None:
        """``after`` is not in the range and ``until`` is; a range beyond the ends is cut to them."""
        append_each(session.journal, *"abcdef")
        for texts, bounds in (
            *(("cd", (2, 4)), ("ef", (4,)), ("a", (0, 1)), ("f", (5, 99))),
            *(("", (6,)), ("", (99,)), ("", (3, 3)), ("", (3, 0))),
        ):
            assert list(texts) == texts_of(session.journal, *bounds)

    def test_every_start_of_a_long_journal_is_found(self, session: SessionStore) -> None:
        """Reading from any place of a journal with small and large records begins at that place."""
        texts = [f"{number}:" + "x" * (40_000 if number % 37 == 0 else 300) for number in range(1, 301)]
        session.journal.append(0, [new_record(text) for text in texts[:150]])
        session.journal.append(150, [new_record(text) for text in texts[150:]])
        for after in range(300):
            assert texts[after : after + 2] == texts_of(session.journal, after, after + 2)

    def test_a_record_can_be_larger_than_any_buffer(self, session: SessionStore) -> None:
        """A body of several megabytes between small ones comes back whole."""
        texts = ["small", "x" * 3_000_000, "small again"]
        append_each(session.journal, *texts)
        assert texts == texts_of(session.journal)
        assert texts[1:] == texts_of(session.journal, 1)

    @pytest.mark.parametrize(
        "records",
        [
            [],
            *([NewRecord("appended", 1, body)] for body in (b"", b'{"a":\n1}', b'"\0"')),
            *([NewRecord(kind, 1, b"{}")] for kind in ("Appended", 'a"b', "")),
            [NewRecord("appended", -1, b"{}")],
            [NewRecord("appended", 1, b"{}"), NewRecord("appended", 1, b"\n")],
        ],
    )
    def test_what_no_journal_can_hold_is_refused(self, session: SessionStore, records: list[NewRecord]) -> None:
        """A commit without a record, or with one that is no line, is refused whole."""
        with pytest.raises(ValueError, match=r"\w"):
            session.journal.append(0, records)
        assert 0 == session.journal.head()

    def test_a_new_session_is_empty(self, store: Store, session: SessionStore) -> None:
        """A session that nobody wrote to has head 0, no record, no page and no snapshot, and looking at it does not list it."""
        assert 0 == session.journal.head()
        assert [] == list(session.journal.read())
        assert [] == list(session.pages.names())
        assert session.pages.find("usr-1") is None
        assert session.snapshots.find() is None
        assert [] == list(session.snapshots.problems())
        session.close()
        assert [] == list(store.sessions(TENANT))


class CompareAndSetSuite(Suite, capability="compare-and-set"):
    """An append at any place but the head is a conflict that names the head, and writes nothing."""

    @pytest.mark.parametrize(("texts", "expected"), [("ab", 0), ("ab", 1), ("ab", 3), ("ab", 99), ("", 1)])
    def test_a_wrong_expectation_writes_nothing(self, store: Store, session: SessionStore, texts: str, expected: int) -> None:
        """An append at any place but the head is a conflict that names both, and begins no session."""
        append_each(session.journal, *texts)
        with pytest.raises(ConflictError) as caught:
            session.journal.append(expected, [new_record("lost")])
        assert (expected, len(texts)) == (caught.value.expected, caught.value.head)
        assert list(texts) == texts_of(session.journal)
        assert (["session"] if texts else []) == list(store.sessions(TENANT))


class OpeningsSuite(Suite, capability="many openings"):
    """Openings of one session follow each other, and a reading does not see what is written meanwhile."""

    def test_reading_does_not_see_what_is_written_meanwhile(self, session: SessionStore) -> None:
        """An iteration ends at the head that it found when it began."""
        append_each(session.journal, "a", "b")
        reading = session.journal.read()
        first = next(reading)
        append_each(session.journal, "c")
        assert [1, 2] == [first.seq, *(record.seq for record in reading)]

    def test_of_two_openings_the_stale_one_conflicts(self, store: Store) -> None:
        """Who did not see the other's record gets the head, nothing is written, and the next append there works."""
        first, second = store.open(TENANT, "session"), store.open(TENANT, "session")
        append_each(first.journal, "a")
        assert 1 == second.journal.head()
        append_each(second.journal, "b")
        with pytest.raises(ConflictError) as caught:
            first.journal.append(1, [new_record("lost")])
        assert 2 == caught.value.head
        assert 3 == first.journal.append(2, [new_record("c")])
        assert ["a", "b", "c"] == texts_of(second.journal)

    def test_a_writer_need_not_look_before_it_writes(self, store: Store, session: SessionStore) -> None:
        """Who knows the head appends after it, though the journal was redacted meanwhile."""
        append_each(session.journal, *"abc")
        other = store.open(TENANT, "session")
        assert 3 == other.journal.head()
        session.journal.redact({3: GONE, 1: b'{"text":"%b"}' % (b"longer" * 1_000)})
        assert 4 == other.journal.append(3, [new_record("d")])
        assert ["[erased]", "d"] == texts_of(session.journal, 2)


class RedactionSuite(Suite, capability="redaction"):
    """Bodies are replaced for good, for whoever has the session open too, and nothing else changes."""

    def test_the_journal_goes_on_after_a_redaction(self, store: Store, session: SessionStore) -> None:
        """Others who had the session open read the new bodies and append after the same head."""
        append_each(session.journal, *"abc")
        other, reader = store.open(TENANT, "session"), store.open(TENANT, "session", read_only=True)
        assert 3 == other.journal.head() == reader.journal.head()
        session.journal.redact({1: GONE})
        append_each(session.journal, "d")
        assert 4 == other.journal.head() == reader.journal.head()
        append_each(other.journal, "e")
        other.pages.put({"usr-1": b"page"})
        for journal in (session.journal, other.journal, reader.journal):
            assert ["[erased]", "b", "c", "d", "e"] == texts_of(journal)

    def test_reading_goes_on_beside_a_redaction(self, store: Store, session: SessionStore) -> None:
        """Who reads while others redact, and looks at the journal meanwhile, reads on, and reads later what comes after."""
        append_each(session.journal, "a" * 1_000, *"bcd")
        other = store.open(TENANT, "session")
        reading = other.journal.read(1)
        assert b'{"text":"b"}' == next(reading).body
        session.journal.redact({1: GONE})
        append_each(session.journal, "e" * 2_000)
        assert 5 == other.journal.head()
        assert [3, 4] == [record.seq for record in reading]
        assert ["e" * 2_000] == texts_of(other.journal, 4)

    def test_a_redaction_can_be_repeated(self, session: SessionStore) -> None:
        """Redacting again, with the same or another body, is fine; so is redacting nothing."""
        append_each(session.journal, *"ab")
        for body in (GONE, GONE, b'{"text":"?"}'):
            session.journal.redact({1: body})
            session.journal.redact({})
            assert [body, b'{"text":"b"}'] == [record.body for record in session.journal.read()]

    def test_what_others_redacted_meanwhile_is_not_brought_back(self, store: Store, session: SessionStore) -> None:
        """Who says what was read is refused where a body is another one by now, and what others left there stays."""
        append_each(session.journal, *"abc")
        read = {record.seq: sha256(record.body).hexdigest() for record in session.journal.read()}
        other = store.open(TENANT, "session")
        other.journal.redact({2: GONE}, read)
        for bodies in ({2: b'{"text":"b, shorter"}'}, {1: GONE, 2: b'{"text":"b, shorter"}'}):
            with pytest.raises(ConflictError):
                session.journal.redact(bodies, read)
            assert ["[erased]", "c"] == texts_of(session.journal, 1)
        session.journal.redact({2: b'{"text":"?"}', 3: GONE}, read | {2: sha256(GONE).hexdigest()})
        assert ["?", "[erased]"] == texts_of(other.journal, 1)

    @given(length=st.integers(1, 8), chosen=st.sets(st.integers(1, 8)), size=st.integers(0, 3_000))
    @each_example_cleans_up
    def test_any_records_can_be_redacted(self, store: Store, length: int, chosen: set[int], size: int) -> None:
        """Whichever records are redacted, they keep place, kind and version, and all others stay, for the next opening too."""
        records = [new_record(str(seq)) for seq in range(1, length + 1)]
        body = new_record("x" * size).body
        session = store.open(TENANT, "redacted")
        session.journal.append(0, records)
        session.journal.redact({seq: body for seq in chosen if seq <= length})
        expected = [
            Record(seq, "appended", 1, body if seq in chosen else record.body, redacted=seq in chosen)
            for seq, record in enumerate(records, start=1)
        ]
        for opened in (session, store.open(TENANT, "redacted")):
            assert expected == list(opened.journal.read())
            assert expected[2:4] == list(opened.journal.read(2, 4))
            assert length == opened.journal.head()
            opened.close()
        store.delete(TENANT, "redacted")

    @pytest.mark.parametrize("bodies", [{0: GONE}, {3: GONE}, {1: GONE, 99: GONE}, {1: b""}, {1: b"a\nb"}, {1: b"\0"}])
    def test_what_cannot_be_redacted_is_refused(self, session: SessionStore, bodies: dict[int, bytes]) -> None:
        """A record that is not there, or a body that is not compact JSON, is refused, and nothing is changed."""
        append_each(session.journal, *"ab")
        with pytest.raises(ValueError, match=r"record|compact JSON"):
            session.journal.redact(bodies)
        assert ["a", "b"] == texts_of(session.journal)
