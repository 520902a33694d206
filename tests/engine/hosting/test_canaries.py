"""No word of one tenant is ever told to another, and none is left anywhere once a tenant is erased."""

import base64
import hashlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from memci.engine.engine import Engine
from tests.engine.sessions import config_of
from tests.engine.wire import assistant, calling, result, user

TENANTS = 50
PICTURE = base64.b64encode(hashlib.shake_256(b"a picture").digest(3_000)).decode()


def canary(number: int) -> str:
    """Return a word that nobody but a tenant says."""
    return "canary" + hashlib.sha256(b"%d" % number).hexdigest()[:12]


@pytest.fixture(params=["memory", "file", "sqlite"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    url = {"memory": "memory:", "file": f"file:{tmp_path}/chats", "sqlite": f"sqlite:///{tmp_path}/chats.db"}[request.param]
    settings = config_of(budget={"window": 1_500, "reserve": 0}, snapshot_every=20)
    with Engine(url, settings, on_conflict="retry") as engine:
        yield engine


def work(engine: Engine, tenant: str, word: str) -> list[object]:
    """Do all that a backend does with two sessions of a tenant, and return all that was told."""
    told: list[object] = []
    with engine.session("chat", tenant=tenant) as session, engine.session("other", tenant=tenant) as other:
        session.append({"role": "system", "content": f"You serve {word}."})
        for number in range(12):
            session.append(user(f"question {number} about the {word} boiler and the order of it"))
            session.append(calling(f"call {number}"))
            session.append(result(f"call {number}", f"row {number} of {word} " * 6))
            told.append(session.window(extra=f"It is {word}.").messages)
            entry = session.append(assistant(f"answer {number} on {word}, which costs {number} euros"))
        session.append({"role": "user", "content": [{"type": "text", "text": word}, _picture()]})
        session.slots["goal"] = word
        session.annotate(entry.address, {"note": word})
        session.describe(title=word, owner=word)
        session.create_detail_page(word, word, word)
        session.checkpoint(word, variables={"word": word})
        session.fold("all")
        session.recall("usr-1")
        other.append(user(word))
        other.mount(session)
        told += [session.handoff(other), other.recall("chat/usr-2").messages, other.window().messages]
        told += [
            session.window().messages,
            session.search("boiler order question", include_visible=True),
            session.contents.render(),
        ]
        told += [session.status().line(), session.recap().text, session.transcript(), str(session.explain("usr-1"))]
        told += [engine.search("boiler order question answer", tenant=tenant), engine.list_sessions(tenant)]
        told += [[event.data for event in session.events()], session.variants(entry.address)]
    return told


def _picture() -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}}


def said(told: Any) -> str:  # noqa: ANN401 (whatever calls answer)
    """Return all that objects hold as text."""
    if isinstance(told, list | tuple):
        return "\n".join(map(said, told))
    if attrs.has(type(told)):
        return said(list(attrs.asdict(told).values()))
    return repr(told)


@pytest.mark.slow
def test_no_tenant_is_told_of_another(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    """Fifty tenants with sessions of the same ids: each sees its own word in what it asks, and that of no other anywhere."""
    caplog.set_level(logging.DEBUG)
    notices: list[object] = []
    engine.observe(notices.append)
    told = [said(work(engine, f"tenant {number}", canary(number))) for number in range(TENANTS)]
    for number, text in enumerate(told):
        assert canary(number) in text
        assert [] == [other for other in range(TENANTS) if other != number and canary(other) in text]
    assert "canary" not in caplog.text
    for notice in notices:
        word = canary(int(notice.tenant.rpartition(" ")[2]))  # type: ignore[attr-defined]
        assert "canary" not in said(notice).replace(word, "")


@pytest.mark.parametrize("scheme", ["file", "sqlite"])
def test_nothing_is_left_of_an_erased_tenant(tmp_path: Path, scheme: str, caplog: pytest.LogCaptureFixture) -> None:
    """Its words and pictures are in no file, row, index, attachment or log, byte by byte; others have theirs."""
    url = f"file:{tmp_path}/chats" if scheme == "file" else f"sqlite:///{tmp_path}/chats.db"
    caplog.set_level(logging.DEBUG)
    with Engine(url, config_of(budget={"window": 1_500, "reserve": 0}, snapshot_every=20), on_conflict="retry") as engine:
        for number in range(2):
            work(engine, f"tenant {number}", canary(number))
        receipt = engine.erase_tenant("tenant 0")
        assert ("chat", "other") == receipt.sessions
    stored = b"".join(path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file())
    assert canary(0).encode() not in stored
    assert canary(1).encode() in stored
    assert PICTURE[:40].encode() in stored  # the other tenant has it too
    assert "canary" not in caplog.text + said(receipt)
    with Engine(url, on_conflict="retry") as engine:
        engine.erase_tenant("tenant 1")
        assert [] == list(engine.sessions(tenant="tenant 1"))
    stored = b"".join(path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file())
    assert PICTURE[:40].encode() not in stored
    assert b"canary" not in stored


def test_one_session_keeps_no_other_waiting(engine: Engine) -> None:
    """While a request has the lease of a session, requests of others go on, and the same one is refused."""
    sessions = [engine.session(f"chat {number}") for number in range(3)]
    with sessions[0].lease():
        for session in sessions[1:]:
            with session.lease(wait_s=0):
                session.append(user("Hello."))
                session.window()
