"""One engine for all tenants: whose sessions are meant, with which settings, and what none of them sees of another."""

import asyncio
from pathlib import Path

import pytest

import memci
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.names import SessionKey
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ConfigError, InvalidIdError
from tests.engine.commands.test_summarizing import Says, events, pool
from tests.engine.sessions import talk
from tests.engine.wire import user

SECONDS = 60
SMALL = {"budget": {"window": 2_000, "reserve": 0}}


def kinds(session: Session) -> list[str]:
    return [event.kind for event in session.events()]


def test_the_same_id_of_two_tenants_is_two_sessions() -> None:
    """Sessions, forks, copies and deletions are of one tenant; by default of the engine's."""
    with Engine("memory:") as engine:
        ours, theirs = engine.session("chat"), engine.session("chat", tenant="they")
        ours.append(user("Ours."))
        theirs.append(user("Theirs."))
        assert ([user("Ours.")], [user("Theirs.")]) == (list(ours.messages()), list(theirs.messages()))
        engine.fork("chat", "fork", tenant="they").close()
        assert (["chat"], ["chat", "fork"]) == (list(engine.sessions()), sorted(engine.sessions(tenant="they")))
        engine.delete("chat", tenant="they")
        assert (["chat"], ["fork"]) == (list(engine.sessions()), list(engine.sessions(tenant="they")))
        assert [user("Ours.")] == list(ours.messages())
        with engine.session("fork", tenant="they") as fork:
            assert [user("Theirs.")] == list(fork.messages())
            assert "they" == next(iter(fork.events("configured"))).data["tenant"]


def test_an_erasure_in_forks_is_of_one_tenant() -> None:
    """Forks of the tenant are found, and another tenant's session of the same id is left as it is."""
    with Engine("memory:") as engine:
        for tenant in ("we", "they"):
            with engine.session("chat", tenant=tenant) as session:
                session.append(user("A secret."))
            engine.fork("chat", "fork", tenant=tenant).close()
        assert ["chat", "fork"] == sorted(receipt.session for receipt in engine.erase("chat", 1, forks=True, tenant="they"))
        for name in ("chat", "fork"):
            with engine.session(name, tenant="they") as session:
                assert "secret" not in str(list(session.messages()))
            with engine.session(name, tenant="we") as session:
                assert [user("A secret.")] == list(session.messages())


@pytest.mark.parametrize("tenant", ["", 7, "\ud800"])
def test_a_tenant_is_text(tenant: object) -> None:
    """Each call that takes one says what is wrong with it, and makes nothing."""
    with Engine("memory:") as engine:
        for call in (engine.session, engine.delete, engine.repair):
            with pytest.raises(InvalidIdError, match="tenant"):
                call("chat", tenant=tenant)  # type: ignore[arg-type]


def test_a_session_has_settings_over_those_of_the_engine() -> None:
    """Keys of them, or a whole config; the engine's other sessions have theirs, and a fork takes them along."""
    with Engine("memory:", {"budget": {"window": 16_000}, "active": {"min_pages": 3}}) as engine:
        with engine.session("small", config=SMALL) as session:
            session.append(user("Hello."))
            assert (2_000, 3) == (session.window().budget, session.config.active.min_pages)
            with engine.fork("small", "fork") as fork:
                assert 2_000 == fork.window().budget
        with engine.session("large") as session:
            session.append(user("Hello."))
            assert 12_000 == session.window().budget
        whole = memci.Config.from_mapping({"format": "anthropic", "counter": "approximate"})
        with engine.session("claude", config=whole) as session:
            session.append(user("Hello."))
            assert ("anthropic", "approximate", 28_000) == (
                session.config.format,
                session.config.counter,
                session.window().budget,
            )


@pytest.mark.parametrize(
    ("config", "path"),
    [
        ({"store": "memory:"}, "store"),
        ({"budget": {"windows": 1}}, "budget.windows"),
        ({"budget": {"window": -1}}, "budget.window"),
        ({"formats": "openai"}, "formats"),
        (7, ""),
    ],
)
def test_settings_that_cannot_be(config: object, path: str) -> None:
    """The error has their path; what all sessions of an engine share is the engine's."""
    with Engine("memory:") as engine:
        with pytest.raises(ConfigError) as raised:
            engine.session("chat", config=config)  # type: ignore[arg-type]
        assert path == (raised.value.path or "")


def test_an_open_session_keeps_its_settings() -> None:
    """Another handle shares them, others are refused, and once it is closed it opens with any."""
    with Engine("memory:") as engine:
        with engine.session("chat", config=SMALL) as session:
            session.append(user("Hello."))
            with engine.session("chat") as same, engine.session("chat", config=dict(SMALL)):
                assert 2_000 == same.window().budget
            with pytest.raises(ConfigError, match="open with other settings"):
                engine.session("chat", config={"budget": {"window": 9_000}})
            assert 2_000 == session.window().budget
        with engine.session("chat", config={"counter": "approximate"}) as session:
            session.append(user("Again."))
            assert ("approximate", 28_000) == (session.config.counter, session.window().budget)
            assert () == session.verify().problems


def test_what_a_summariser_wrote_is_noted_with_the_settings_of_the_session(tmp_path: Path) -> None:
    """Also after it was closed, by an engine that keeps nothing of closed sessions: its settings stay in force."""
    says = Says()
    with Engine(FileStore(tmp_path), {"open_sessions": {"max_bytes": 0}}, summarizer=says) as engine:
        with engine.session("chat", tenant="they", config={"format": "anthropic", **SMALL}) as session:
            talk(session, 4, words=400)
        assert pool(engine).finish(SECONDS)
        with engine.session("chat", tenant="they", config={"format": "anthropic", **SMALL}) as session:
            assert events(session)
            assert 1 == kinds(session).count("configured")


def test_tenants_share_no_summary() -> None:
    """What was written of a page is written again for another tenant that says the same."""
    says = Says()
    with Engine("memory:", SMALL, summarizer=says) as engine:
        for tenant in ("we", "they", "they too"):
            with engine.session("chat", tenant=tenant) as session:
                talk(session, 4, words=100)
                session.summarize(SECONDS)
        assert len(says.calls) == 3 * len(set(says.calls))


def test_closed_sessions_are_kept_by_tenant() -> None:
    """A state that is kept for the next opening is that of the tenant."""
    store = MemoryStore()
    with Engine(store) as engine:
        for tenant in ("we", "they"):
            with engine.session("chat", tenant=tenant) as session:
                session.append(user(f"{tenant} speak."))
        assert {SessionKey("we", "chat"), SessionKey("they", "chat")} == engine._open.tails().keys()
        with engine.session("chat", tenant="we") as session:
            assert [user("we speak.")] == list(session.messages())


def test_calls_of_two_tenants_do_not_wait_for_each_other() -> None:
    """An asynchronous engine has an order of calls for each session of each tenant."""

    async def talk_to_both() -> None:
        async with memci.AsyncEngine("memory:") as engine:
            ours, theirs = await engine.session("chat", tenant="we"), await engine.session("chat", tenant="they")
            assert ours._calls is not theirs._calls
            await theirs.append(user("Theirs."))
            assert [] == [message async for message in ours.messages()]
            assert ["chat"] == [name async for name in engine.sessions(tenant="they")]

    asyncio.run(talk_to_both())


def test_what_the_engine_does_leaves_settings_in_force(tmp_path: Path) -> None:
    """Forks, repairs, erasures and searches of a session that is not open go by the settings that it has."""
    claude = {"format": "anthropic", **SMALL}
    with Engine(FileStore(tmp_path)) as engine, engine.session("chat", config=claude) as session:
        talk(session, 3)
    with Engine(FileStore(tmp_path)) as engine:
        with engine.fork("chat", "fork") as fork:
            assert ("anthropic", 2_000) == (fork.config.format, fork.window().budget)
        assert () == engine.repair("chat", apply=True).report.problems
        assert ["chat", "fork"] == sorted(receipt.session for receipt in engine.erase("chat", 1, forks=True))
        assert 2 == len(engine.search("question2"))
        with engine.session("chat", config=claude) as session:
            assert 1 == kinds(session).count("configured")


def test_a_tool_beside_an_application_keeps_its_settings(tmp_path: Path) -> None:
    """With ``keep_settings`` a session goes on with those in force there; a new one has the engine's, and others can be named."""
    claude = {"format": "anthropic", **SMALL}
    with Engine(FileStore(tmp_path)) as engine, engine.session("chat", config=claude) as session:
        talk(session, 3)
    with Engine(FileStore(tmp_path), {"budget": {"window": 5_000}}, keep_settings=True) as engine:
        with engine.session("chat") as session:
            session.fold("all")
            assert ("anthropic", 2_000, 1) == (session.config.format, session.window().budget, kinds(session).count("configured"))
        with engine.session("new") as session:
            talk(session, 1)
            assert 5_000 == session.config.budget.window
        with engine.session("chat", config={**claude, "budget": {"window": 3_000, "reserve": 0}}) as session:
            assert 3_000 == session.window().budget


def test_settings_that_the_application_changes_stay_changed() -> None:
    """A tool that keeps settings takes over those that others put in force since, in an open session and one opened again."""
    store = MemoryStore()
    with Engine(store, keep_settings=True) as tool, tool.session("held") as held:
        for number, window in enumerate((900, 1_500, 1_200)):
            with Engine(store, {"format": "anthropic", "budget": {"window": window, "reserve": 0}}) as application:
                for name in ("held", "chat"):
                    with application.session(name) as session:
                        session.append(user(f"{number}"))
            held.refresh()
            held.append(user("by the tool"))
            with tool.session("chat") as session:
                session.refresh()
                session.append(user("by the tool"))
                assert ("anthropic", window) == (session.config.format, session.window().budget)
            assert window == held.window().budget
        assert 3 == kinds(held).count("configured")
