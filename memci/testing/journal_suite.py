"""What the journal of every store has to do; a part of ``memci.testing.store_suite``."""
# It is a test, though it is distributed: it asserts, with the expected value on the left.
# ruff: noqa: PLR2004, SIM300

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memci.archive.stores.contract import Journal, NewRecord, Record, SessionStore, Store
from memci.errors import ConflictError
from memci.testing.capability import capability

TENANT = "default"

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


def texts_of(journal: Journal, after: int = 0, until: int | None = None) -> list[str]:
    """Return the texts of the records that ``new_record`` made."""
    return [orjson.loads(record.body)["text"] for record in journal.read(after, until)]


class JournalSuite:
    """The tests of appending and reading.

    Attributes:
        store_name: How the report of ``memci.testing.conformance`` names the store; empty for the name of the class.
    """

    store_name = ""

    @pytest.fixture
    def store(self) -> Store:
        """Return the store to test."""
        message = "override the fixture: return the store to test"
        raise NotImplementedError(message)

    @pytest.fixture
    def session(self, store: Store) -> SessionStore:
        """Return a new session, opened to be written."""
        return store.open(TENANT, "session")

    @capability("journal")
    def test_sequence_numbers_are_dense(self, session: SessionStore) -> None:
        """Records are numbered from 1 without a gap, across commits of any size."""
        assert 1 == session.journal.append(0, [new_record("one")])
        assert 3 == session.journal.append(1, [new_record("two"), new_record("three")])
        assert 3 == session.journal.head()
        assert [1, 2, 3] == [record.seq for record in session.journal.read()]

    @capability("journal")
    def test_a_record_comes_back_as_it_was(self, session: SessionStore) -> None:
        """Kind, version and the bytes of the body are those that were given."""
        body = '{"text":"quote \\" and \\u2028, ünïcödé, \\"body\\":{","sum":"x"}'.encode()
        session.journal.append(0, [NewRecord("page_folded", 3, body)])
        assert [Record(1, "page_folded", 3, body)] == list(session.journal.read())

    @given(commits=_commits)
    @each_example_cleans_up
    @capability("journal")
    def test_any_commits_come_back(self, store: Store, commits: list[list[NewRecord]]) -> None:
        """Whatever is committed is read in order by the next opening."""
        session = store.open(TENANT, "any commits")
        head = 0
        for commit in commits:
            head = session.journal.append(head, commit)
        session.close()
        again = store.open(TENANT, "any commits")
        flat = [record for commit in commits for record in commit]
        expected = [Record(seq, record.kind, record.version, record.body) for seq, record in enumerate(flat, start=1)]
        assert len(flat) == again.journal.head()
        assert expected == list(again.journal.read())
        again.close()
        store.delete(TENANT, "any commits")

    @capability("journal")
    def test_read_takes_a_range(self, session: SessionStore) -> None:
        """``after`` is not in the range and ``until`` is; a range beyond the ends is cut to them."""
        append_each(session.journal, *"abcdef")
        assert ["c", "d"] == texts_of(session.journal, 2, 4)
        assert ["e", "f"] == texts_of(session.journal, 4)
        assert ["a"] == texts_of(session.journal, 0, 1)
        assert ["f"] == texts_of(session.journal, 5, 99)
        assert [] == texts_of(session.journal, 6)
        assert [] == texts_of(session.journal, 99)
        assert [] == texts_of(session.journal, 3, 3)
        assert [] == texts_of(session.journal, 3, 0)

    @capability("journal")
    def test_every_start_of_a_long_journal_is_found(self, session: SessionStore) -> None:
        """Reading from any place of a journal with small and large records begins at that place."""
        texts = [f"{number}:" + "x" * (40_000 if number % 37 == 0 else 300) for number in range(1, 301)]
        session.journal.append(0, [new_record(text) for text in texts[:150]])
        session.journal.append(150, [new_record(text) for text in texts[150:]])
        for after in range(300):
            assert texts[after : after + 2] == texts_of(session.journal, after, after + 2)

    @capability("journal")
    def test_a_record_can_be_larger_than_any_buffer(self, session: SessionStore) -> None:
        """A body of several megabytes between small ones comes back whole."""
        texts = ["small", "x" * 3_000_000, "small again"]
        append_each(session.journal, *texts)
        assert texts == texts_of(session.journal)
        assert texts[1:] == texts_of(session.journal, 1)

    @capability("many openings")
    def test_reading_does_not_see_what_is_written_meanwhile(self, session: SessionStore) -> None:
        """An iteration ends at the head that it found when it began."""
        append_each(session.journal, "a", "b")
        reading = session.journal.read()
        first = next(reading)
        append_each(session.journal, "c")
        assert [1, 2] == [first.seq, *(record.seq for record in reading)]

    @pytest.mark.parametrize("expected", [0, 1, 3, 99])
    @capability("compare-and-set")
    def test_a_wrong_expectation_writes_nothing(self, session: SessionStore, expected: int) -> None:
        """An append at any place but the head is a conflict that names both."""
        append_each(session.journal, "a", "b")
        with pytest.raises(ConflictError) as caught:
            session.journal.append(expected, [new_record("lost")])
        assert (expected, 2) == (caught.value.expected, caught.value.head)
        assert ["a", "b"] == texts_of(session.journal)

    @capability("compare-and-set")
    def test_a_conflict_does_not_begin_a_session(self, store: Store, session: SessionStore) -> None:
        """An append to an empty journal at a place other than 0 leaves no session behind."""
        with pytest.raises(ConflictError) as caught:
            session.journal.append(1, [new_record()])
        assert 0 == caught.value.head
        assert [] == list(store.sessions(TENANT))

    @capability("many openings")
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

    @pytest.mark.parametrize(
        "records",
        [
            [],
            [NewRecord("appended", 1, b"")],
            [NewRecord("appended", 1, b'{"a":\n1}')],
            [NewRecord("appended", 1, b'"\0"')],
            [NewRecord("Appended", 1, b"{}")],
            [NewRecord('a"b', 1, b"{}")],
            [NewRecord("", 1, b"{}")],
            [NewRecord("appended", -1, b"{}")],
            [NewRecord("appended", 1, b"{}"), NewRecord("appended", 1, b"\n")],
        ],
    )
    @capability("journal")
    def test_what_no_journal_can_hold_is_refused(self, session: SessionStore, records: list[NewRecord]) -> None:
        """A commit without a record, or with one that is no line, is refused whole."""
        with pytest.raises(ValueError, match=r"\w"):
            session.journal.append(0, records)
        assert 0 == session.journal.head()
