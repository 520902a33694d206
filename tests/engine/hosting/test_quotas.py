"""Quotas of tenants: what is refused, that nothing is written then, and how often tenants are measured."""

import hashlib
import json
import pickle
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from memci.archive.stores.contract import Usage
from memci.archive.stores.file.session import SessionFiles
from memci.archive.stores.memory import MemoryStore
from memci.engine.core.quotas import Quotas
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.engine.settings.config import Limits
from memci.errors import QuotaError
from tests.engine.counting_store import CountingStore
from tests.engine.sessions import config_of, talk
from tests.engine.wire import user


def test_a_session_too_many_is_refused() -> None:
    """The first message of one session more than a tenant may have is refused; its others and other tenants go on."""
    engine = Engine(MemoryStore(), config_of(limits={"tenant_sessions": 2}))
    for name in "ab":
        engine.session(name, tenant="acme").append(user("Hello."))
    with pytest.raises(QuotaError, match="tenant_sessions: tenant 'acme' has 2 of 2, and 1 more") as raised:
        engine.session("c", tenant="acme").append(user("Hello."))
    assert ("acme", 2, 1, 2) == (raised.value.tenant, raised.value.used, raised.value.wanted, raised.value.most)
    assert ["a", "b"] == sorted(engine.sessions(tenant="acme"))
    engine.session("a", tenant="acme").append(user("And more."))
    engine.session("c", tenant="other").append(user("Hello."))


def test_bytes_too_many_are_refused() -> None:
    """An append that would take a tenant over its bytes writes nothing, and the session can still be read and shown."""
    engine = Engine(MemoryStore(), config_of(limits={"tenant_bytes": 50_000}))
    session = engine.session("a")
    talk(session, 3)
    seq = session.seq
    with pytest.raises(QuotaError, match=r"limits\.tenant_bytes"):
        session.extend([user("x" * 30_000), user("y" * 30_000)])
    assert seq == session.seq
    session.append(user("x" * 30_000))
    with pytest.raises(QuotaError):  # what this process wrote is known at once
        session.append(user("y" * 30_000))
    assert session.window().messages
    session.fold("all")


@pytest.mark.parametrize(
    "say",
    [
        lambda session: session.slots.update(goal="x" * 60_000),
        lambda session: session.create_detail_page("Note", "long", "x" * 60_000),
        lambda session: session.set_system([{"role": "system", "content": "x" * 60_000}]),
        lambda session: session.checkpoint("here", variables={"a": "x" * 60_000}),
        lambda session: [session.annotate("usr-1/1", {f"{number}": "x" * 15_000}) for number in range(4)],
    ],
    ids=["slots", "note", "system", "checkpoint", "annotations"],
)
def test_whatever_is_said_counts(say: Callable[[Session], object]) -> None:
    """No other way to say something passes the quota, and nothing of it is left."""
    store = MemoryStore()
    session = Engine(store, config_of(limits={"tenant_bytes": 50_000})).session("a")
    talk(session, 3)
    before = store.usage("default").stored_bytes
    with pytest.raises(QuotaError, match=r"limits\.tenant_bytes"):
        say(session)
    assert store.usage("default").stored_bytes < before + 50_000
    assert session.window().messages
    session.erase("usr-1")


def test_a_fork_counts() -> None:
    """A fork that would take a tenant over its bytes is none, and a handoff beyond them leaves no session behind."""
    engine = Engine(MemoryStore(), config_of(limits={"tenant_bytes": 100_000}))
    session = engine.session("a")
    session.append(user("x" * 40_000))
    engine.fork("a", "b").close()
    with pytest.raises(QuotaError):
        engine.fork("a", "c")
    with pytest.raises(QuotaError):
        session.slots.update(goal="x" * 60_000)
    session.slots.update(goal="x" * (100_000 - engine.usage().stored_bytes - 400))
    with pytest.raises(QuotaError):
        session.handoff("d")
    with pytest.raises(QuotaError):
        session.promote("usr-1")
    assert ["a", "b"] == sorted(engine.sessions())


def test_what_is_derived_is_measured_on_the_way(tmp_path: Path) -> None:
    """A process that writes much measures anew, so that page files, snapshots and index count before a minute is over."""
    engine = Engine(f"file:{tmp_path}", config_of(limits={"tenant_bytes": 300_000}, active={"max_pages": 2}))
    session = engine.session("a")
    with pytest.raises(QuotaError):
        talk(session, 1_000, words=200)
    assert engine.usage().stored_bytes < 400_000


@pytest.mark.parametrize("limits", [{"tenant_sessions": 1}, {"tenant_sessions": 1, "tenant_bytes": 50_000}])
def test_what_was_deleted_is_free_again(limits: dict[str, int]) -> None:
    """Where a session was deleted, its place and its bytes are free at once."""
    engine = Engine(MemoryStore(), config_of(limits=limits))
    engine.session("a").append(user("x" * 40_000))
    engine.delete("a")
    engine.session("b").append(user("y" * 40_000))


def test_a_repeated_append_is_no_new_one() -> None:
    """An append that is repeated with its key gives the first answer, whatever the quota is by then."""
    engine = Engine(MemoryStore(), config_of(limits={"tenant_bytes": 50_000}))
    session = engine.session("a")
    first = session.append(user("x" * 40_000), key="once")
    assert first.address == session.append(user("x" * 40_000), key="once").address


def test_a_tenant_is_measured_seldom() -> None:
    """Turns of many sessions ask the store for the usage of a tenant once, and not at all without quotas."""
    for limits, questions in (({"tenant_bytes": 1_000_000}, 1), ({}, 0)):
        store = CountingStore(MemoryStore())
        engine = Engine(store, config_of(limits=limits))
        for name in "abcd":
            talk(engine.session(name), 5)
        assert questions == store.calls["usage"]


def test_what_another_worker_wrote_counts_after_a_minute() -> None:
    """What was measured is believed for a minute; then a tenant is measured again, with what others wrote meanwhile."""
    now, store, limits = [0.0], MemoryStore(), Limits(tenant_bytes=50_000)
    quotas = Quotas(store, clock=lambda: now[0])
    quotas.check("acme", limits, 1_000)
    Engine(store, config_of()).session("a", tenant="acme").append(user("x" * 50_000))
    now[0] += 60
    quotas.check("acme", limits, 1_000)
    now[0] += 1
    with pytest.raises(QuotaError, match=r"limits\.tenant_bytes"):
        quotas.check("acme", limits, 1_000)


def test_one_session_may_have_other_quotas() -> None:
    """Settings of one session say what its tenant may have where it writes."""
    engine = Engine(MemoryStore(), config_of(limits={"tenant_bytes": 1_000}))
    session = engine.session("a", config={"limits": {"tenant_bytes": 100_000}})
    session.append(user("x" * 40_000))
    with pytest.raises(QuotaError):
        engine.session("b").append(user("x" * 2_000))


def test_the_error_travels() -> None:
    """It can be pickled, with what it holds."""
    error = QuotaError(quota="limits.tenant_bytes", tenant="acme", used=5, wanted=6, most=10)
    assert (str(error), 6) == (str(copy := pickle.loads(pickle.dumps(error))), copy.wanted)  # noqa: S301 (our own)


def test_usage_is_told(tmp_path: Path) -> None:
    """The engine tells what its tenant, or another one, has in the store."""
    with Engine(f"file:{tmp_path}", config_of()) as engine:
        assert Usage(sessions=0, stored_bytes=0) == engine.usage()
        engine.session("a").append(user("x" * 5_000))
        usage = engine.usage()
        assert (1, True) == (usage.sessions, usage.stored_bytes > 5_000)
        assert 0 == engine.usage("other").sessions


def test_deletion_has_a_receipt(tmp_path: Path) -> None:
    """It says which session is gone, how many events it had, and the SHA-256 of its last record, and holds no word of it."""
    with Engine(f"file:{tmp_path}", config_of()) as engine:
        engine.session("a").append(user("zebrafinch"))
        last = [record.body for record in engine.session("a")._core.store.journal.read()][-1]
        receipt = engine.delete("a")
        assert ("a", "default", 2, hashlib.sha256(last).hexdigest()) == attrs.astuple(receipt)[:4]
        assert "zebrafinch" not in json.dumps(attrs.asdict(receipt))
        assert (0, "") == (engine.delete("a").events, engine.delete("a").sha256)


def test_a_damaged_session_is_deleted(tmp_path: Path) -> None:
    """Where the journal cannot be read, the receipt says so, and the session is gone all the same."""
    with Engine(f"file:{tmp_path}", config_of()) as engine:
        engine.session("a").append(user("Hello."))
    (journal,) = tmp_path.rglob("journal.jsonl")
    journal.write_bytes(b"damaged\n" * 3)
    with Engine(f"file:{tmp_path}", config_of()) as engine:
        assert None is engine.delete("a").events
        assert not journal.exists()


def test_a_tenants_receipt_has_those_of_its_sessions() -> None:
    """Erasing a tenant gives a receipt for each session, in order."""
    engine = Engine(MemoryStore(), config_of())
    for name in ("b", "a"):
        engine.session(name, tenant="acme").append(user("Hello."))
    receipt = engine.erase_tenant("acme")
    assert (("a", "b"), [2, 2]) == (receipt.sessions, [each.events for each in receipt.receipts])


def lease(session: Session) -> None:
    with session.lease():
        pass


@pytest.mark.parametrize(
    "begin",
    [
        lambda _, session: lease(session),
        lambda _, session: session.describe(title="two"),
        lambda _, session: session.slots.update(goal="two"),
        lambda _, session: session.set_system([{"role": "system", "content": "two"}]),
        lambda engine, _: engine.fork("one", "two"),
        lambda engine, _: engine.session("one").handoff("two"),
    ],
    ids=["lease", "describe", "slots", "system", "fork", "handoff"],
)
def test_a_session_begins_by_anything(begin: Callable[[Engine, Session], object]) -> None:
    """Whatever the first event of a session is, there are no more sessions than there may be."""
    with Engine(MemoryStore(), config_of(limits={"tenant_sessions": 1})) as engine, engine.session("two") as session:
        engine.session("one").append(user("hello"))
        with pytest.raises(QuotaError):
            begin(engine, session)
        assert ["one"] == list(engine.sessions())


@pytest.mark.parametrize("left", ["deleted", "lost", "emptied"])
def test_an_erased_tenant_leaves_nothing_of_what_is_no_session(
    left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is there of a deletion that broke off, or of a session whose journal is lost, goes too."""
    with Engine(f"file:{tmp_path}", config_of(budget={"window": 1_000, "reserve": 0})) as engine:
        with engine.session("chat", tenant="acme") as session:
            session.append(user("the zebrafinch sings"))
            talk(session, 20, words=30)
            session.fold("all")
            session.search("zebrafinch")
        engine.session("long " * 60, tenant="acme").append(user("the zebrafinch sings"))
        if left == "deleted":

            def killed(*_given: object, **_named: object) -> None:
                raise KeyboardInterrupt

            with monkeypatch.context() as patched:
                patched.setattr(SessionFiles, "_remove_below", killed)
                for name in ("chat", "long " * 60):
                    with pytest.raises(KeyboardInterrupt):
                        engine.delete(name, tenant="acme")
        else:
            (journal,) = (tmp_path / "acme" / "chat").glob("journal.jsonl")
            journal.write_bytes(b"") if left == "emptied" else journal.unlink()
        assert [path for path in tmp_path.rglob("*") if path.is_file() and b"zebrafinch" in path.read_bytes()]
        engine.erase_tenant("acme")
        assert [] == [path for path in tmp_path.rglob("*") if path.is_file() and b"zebrafinch" in path.read_bytes()]
        assert ["acme"] == [path.name for path in tmp_path.iterdir()]
        engine.session("chat", tenant="acme").append(user("again"))
