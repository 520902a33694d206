"""Search through a session, narrowed to turns, roles and states."""

import base64
import json
from datetime import UTC, date, datetime
from hashlib import shake_128
from pathlib import Path

import pytest

from memci.archive.catalogue.page_facts import PageState
from memci.engine.engine import Engine
from memci.engine.session import Session
from memci.errors import ConfigError
from memci.messages.formats import anthropic, openai, responses
from memci.messages.formats.format import ROLES
from tests.engine.sessions import open_session, talk
from tests.engine.wire import assistant, user


@pytest.fixture
def session() -> Session:
    """Six turns, of which the first four are folded; all say the word common, the first one's user says it too."""
    session = open_session()
    session.extend([user("common first words"), assistant("common first answer")])
    for number in range(2, 7):
        session.extend([user(f"question {number}"), assistant(f"common answer {number}")])
    session.fold(["usr-1", "usr-2", "usr-3", "usr-4"])
    return session


def found(session: Session, **options: object) -> list[str]:
    return sorted(hit.index for hit in session.search("common", **options))  # type: ignore[arg-type]


def test_a_hit_knows_when_its_entry_was_said() -> None:
    """The time of the entry that was found, in UTC, of pages that left the window and of the open one."""
    session = open_session(active={"min_pages": 1})
    times = ["2023-05-08T13:56:00+00:00", "2023-05-09T09:00:00+00:00", "2023-05-10T09:00:00+00:00"]
    for at, words in zip(times, [user("a zebra"), assistant("a lion"), user("a giraffe")], strict=True):
        session.append(words, at=at)
    session.fold("all")
    found = [session.search(word, include_visible=True)[0] for word in ("zebra", "lion", "giraffe")]
    assert [("usr-1/1", times[0]), ("usr-1/2", times[1]), ("usr-2/1", times[2])] == [(hit.entry, hit.at) for hit in found]


def test_by_turn(session: Session) -> None:
    """Only pages that were opened in these turns, both ends included, whatever lies beyond."""
    assert ["usr-2", "usr-3"] == found(session, turns=(2, 3))
    assert ["usr-3", "usr-4"] == found(session, turns=(3, 10**30))
    assert [] == found(session, turns=(10**30, 10**31))
    assert ["usr-4", "usr-5", "usr-6"] == found(session, turns=(4, 9), include_visible=True)


def test_by_role(session: Session) -> None:
    """Only what this role said, one or several."""
    assert ["usr-1"] == found(session, roles="user")
    assert ["usr-1", "usr-2", "usr-3", "usr-4"] == found(session, roles=["assistant", "tool"])
    assert {"usr-1/2"} == {hit.entry for hit in session.search("common first", roles="assistant", turns=(1, 1))}


def test_by_state(session: Session) -> None:
    """Only pages in these states; who asks for what stands in the window gets it."""
    assert ["usr-5"] == found(session, states="active")
    assert ["usr-6"] == found(session, states=PageState.OPEN)
    assert ["usr-1", "usr-2", "usr-3", "usr-4", "usr-6"] == found(session, states=["archived", "open"])
    session.recall("usr-2")
    assert ["usr-2"] == found(session, states=["attached"])
    session.evict("usr-3")
    assert ["usr-3"] == found(session, states=["evicted"])


def test_a_long_history_hides_nothing(session: Session) -> None:
    """What is asked for is found behind many pages that match as well."""
    talk(session, 3, first=7)
    session.extend([user("common last words"), assistant("well")])
    assert ["usr-1", "usr-10"] == found(session, roles="user", include_visible=True)


def test_the_roles_are_those_of_all_formats(session: Session) -> None:
    """A search takes every role that a wire format has, and tells in the error for any other one which these are."""
    assert {*openai.ROLES, *responses.ROLES, *anthropic.ROLES} == set(ROLES)
    assert ["usr-1", "usr-2", "usr-3", "usr-4"] == found(session, roles=ROLES)
    with pytest.raises(ConfigError, match=r"there is no role 'alien': give one or more of system, .*assistant") as caught:
        found(session, roles=["user", "alien"])
    assert "roles" == caught.value.path


@pytest.mark.parametrize("turns", [(5, 2), (-3, -1), (10**31, 10**30)])
def test_a_range_without_turns_is_an_error(session: Session, turns: tuple[int, int]) -> None:
    """A range that ends before it begins is told with what to give, not answered by nothing."""
    with pytest.raises(ConfigError, match=r"give the first and then the last, .* such as \(3, 8\)") as caught:
        found(session, turns=turns)
    assert "turns" == caught.value.path


@pytest.fixture
def diary() -> Session:
    """A page on each of three days in March, all of which are folded, and an open page on a fourth."""
    session = open_session(active={"min_pages": 1})
    for day in range(1, 5):
        session.append(user(f"common words of day {day}"), at=f"2026-03-0{day}T12:00:00+00:00")
        session.append(assistant("yes"), at=f"2026-03-0{day}T12:00:00+00:00")
    session.fold("all")
    return session


@pytest.mark.parametrize(
    ("since", "until", "pages"),
    [
        ("2026-03-02", None, [2, 3]),
        (None, "2026-03-02", [1, 2]),
        (date(2026, 3, 2), "2026-03-02", [2]),
        ("2026-03-01T12:00", datetime(2026, 3, 2, 12, 0, tzinfo=UTC), [1, 2]),
        ("2026-03-01T12:00:01Z", "2026-03-02T11:59:59", []),
        ("2026-03-02T13:00+01:00", "2026-03-02T13:00+01:00", [2]),
    ],
)
def test_by_day(diary: Session, since: str | date, until: str | date, pages: list[int]) -> None:
    """Only pages that were said between two days or times, both ends included, in UTC where no zone is named."""
    assert [f"usr-{page}" for page in pages] == found(diary, since=since, until=until)


def test_the_open_page_is_searched_by_day(diary: Session) -> None:
    """What is not complete yet has a day, too."""
    assert ["usr-4"] == found(diary, since="2026-03-04", include_visible=True)


@pytest.mark.parametrize("option", ["since", "until"])
@pytest.mark.parametrize("value", ["", "yesterday", "2026-13-01", 3, "0001-01-01T00:00+01:00"])
def test_what_is_no_time_is_an_error(diary: Session, option: str, value: object) -> None:
    """A day that cannot be read is told with what to give, and by the name of its argument."""
    with pytest.raises(ConfigError, match="such as 2026-03-01") as caught:
        found(diary, **{option: value})
    assert option == caught.value.path


def test_days_in_the_wrong_order_are_an_error(diary: Session) -> None:
    """Nothing was ever said after its end."""
    with pytest.raises(ConfigError, match="give a time that is not after until") as caught:
        found(diary, since="2026-03-02", until="2026-03-01")
    assert "since" == caught.value.path


def test_a_speaker_is_found_by_name() -> None:
    """The name that a message carries is among the words of its entry; that of a tool is not."""
    session = open_session(active={"min_pages": 1})
    session.extend([user("I like tea") | {"name": "Caroline"}, assistant("Good") | {"name": "Melanie"}, user("and so on")])
    session.fold("all")
    assert [("usr-1/1", "Caroline", "Caroline: I like tea\nMelanie: Good")] == [
        (hit.entry, hit.why, hit.snippet) for hit in session.search("Caroline")
    ]
    assert ["usr-1/2"] == [hit.entry for hit in session.search("melanie")]


@pytest.mark.parametrize("option", ["roles", "states"])
def test_a_choice_of_nothing_is_an_error(session: Session, option: str) -> None:
    """An empty list of roles or states would find nothing, ever."""
    with pytest.raises(ConfigError, match=f"leave it out to search all {option}"):
        found(session, **{option: []})


def test_base64_of_a_call_is_not_in_the_index(tmp_path: Path) -> None:
    """The words beside base64 in arguments and results are found, and the base64 is in no file but where large data is kept."""
    data = base64.b64encode(shake_128(b"picture").digest(3_000)).decode()
    call = {"name": "draw", "arguments": json.dumps({"data": data, "as": "mermaid"})}
    with Engine(f"file:{tmp_path}") as engine, engine.session("chat") as session:
        session.append(user("draw"))
        session.append({"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": call}]})
        session.append({"role": "tool", "tool_call_id": "c", "content": f"walrus {data}"})
        talk(session, 3, first=2)
        session.fold("all")
        assert [["usr-1"], ["usr-1"]] == [[hit.index for hit in session.search(word)] for word in ("mermaid", "walrus")]
    files = [path for path in tmp_path.rglob("*") if path.is_file() and data[40:90] in path.read_text("latin-1")]
    assert ["blobs"] == [path.parent.name for path in files]
