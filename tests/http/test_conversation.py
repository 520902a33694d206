"""Messages, windows, transcript and status over HTTP are those of the session."""

import json
from pathlib import Path
from typing import Any

import httpx2
from fastapi.testclient import TestClient

import memci
from memci.http.guard import Rules
from memci.http.tokens import Scope, Tokens, new_token
from tests.http.serving import CONFIG, HOST, assistant, made, problem, say, serving, user, value
from tests.together import in_loop

CHAT = "/v1/sessions/chat"


def test_a_conversation_is_what_the_session_makes_of_it(tmp_path: Path) -> None:
    """Messages that came in over HTTP are in the store, and the window is the one that the library makes."""
    store = f"file:{tmp_path}"
    with serving(store) as api:
        say(api, "chat", "the boiler", "the gasket", "the valve")
        made = value(api.post(f"{CHAT}/window", json={"budget": 200}))
        status = value(api.get(f"{CHAT}/status"))
        said = value(api.get(f"{CHAT}/transcript"))
    with memci.Engine(store, CONFIG) as engine, engine.session("chat") as session:
        window = session.render(made["seq"])
        assert made["messages"] == window.messages
        assert (made["tokens"], made["breakdown"]) == (window.tokens, dict(window.breakdown))
        assert status == {**status, "seq": session.seq, "turn": 3, "advised": session.status().advised}
        assert [each.text for each in session.transcript()] == [each["text"] for each in said]


def test_an_append_answers_where_the_messages_are(api: TestClient) -> None:
    """Each message has its address, its event and its tokens, in order."""
    stored = value(api.post(f"{CHAT}/messages", json={"messages": [user("where?"), assistant("here")]}), 201)
    assert ["usr-1/1", "usr-1/2"] == [each["address"] for each in stored]
    assert [("user", 2), ("assistant", 3)] == [(each["role"], each["seq"]) for each in stored]


def test_a_key_makes_an_append_happen_once(api: TestClient) -> None:
    """A request that is repeated with its key gets the first answer; with other messages the key is a conflict."""
    said, header = {"messages": [user("once")]}, {"Idempotency-Key": "k-1"}
    first = value(api.post(f"{CHAT}/messages", json=said, headers=header), 201)
    assert first == value(api.post(f"{CHAT}/messages", json=said, headers=header), 201)
    told = problem(api.post(f"{CHAT}/messages", json={"messages": [user("other")]}, headers=header), 409)
    assert "urn:memci:ConflictError" == told["type"]
    assert 1 == len(value(api.get(f"{CHAT}/transcript")))


def test_messages_come_with_times(api: TestClient) -> None:
    """When each was said may be told, for those of which it is known."""
    messages = [user("then"), assistant("now")]
    value(api.post(f"{CHAT}/messages", json={"messages": messages, "at": ["2026-05-08T13:56:00Z", None]}), 201)
    now, then = value(api.get(f"{CHAT}/transcript"))
    assert "2026-05-08T13:56:00+00:00" == then["at"]
    assert now["at"] > then["at"]


def test_a_transcript_goes_on_from_its_last_address(api: TestClient) -> None:
    """Part by part it is the whole conversation, newest first."""
    say(api, "chat", "one", "two", "three")
    whole = value(api.get(f"{CHAT}/transcript"))
    first = value(api.get(f"{CHAT}/transcript", params={"limit": 4}))
    assert whole == first + value(api.get(f"{CHAT}/transcript", params={"before": first[-1]["address"]}))


def test_a_window_shows_as_it_was(api: TestClient) -> None:
    """Rendering writes nothing, and gives the same messages after more was said."""
    say(api, "chat", "one")
    made = value(api.post(f"{CHAT}/window"))
    say(api, "chat", "two")
    seq = value(api.get(CHAT))["seq"]
    assert made["messages"] == value(api.get(f"{CHAT}/window", params={"at": made["seq"]}))["messages"]
    assert seq == value(api.get(f"{CHAT}/window"))["seq"] == value(api.get(CHAT))["seq"]


def test_what_a_call_adds_is_counted(api: TestClient) -> None:
    """Tools and extra text count in the window of one call."""
    say(api, "chat", "one")
    tool = {"type": "function", "function": {"name": "price", "parameters": {"type": "object", "properties": {}}}}
    made = value(api.post(f"{CHAT}/window", json={"tools": [tool], "extra": {"date": "it is Friday"}}))
    assert made["breakdown"]["tools"] > 0
    assert "it is Friday" in json.dumps(made["messages"])


def test_what_json_can_hold_comes_back(api: TestClient) -> None:
    """Integers beyond 64 bits and lone surrogates are in messages, and in every answer that has them."""
    message = {"role": "user", "content": "half a pair: \ud83d", "number": 2**70}
    body = json.dumps({"messages": [message]})
    value(api.post(f"{CHAT}/messages", content=body, headers={"Content-Type": "application/json"}), 201)
    for path in ("window", "transcript", "pages/usr-1"):
        answer = value(api.get(f"{CHAT}/{path}"))
        assert message in (answer.get("messages", []) if isinstance(answer, dict) else [each["message"] for each in answer])


def test_others_write_to_the_same_store(tmp_path: Path) -> None:
    """What another process wrote is there at the next request, and a request writes after it."""
    store = f"file:{tmp_path}"
    with serving(store) as api, memci.Engine(store, CONFIG) as engine, engine.session("chat") as session:
        session.append(user("from elsewhere"))
        assert ["from elsewhere"] == [each["text"] for each in value(api.get(f"{CHAT}/transcript"))]
        session.append(assistant("more from there"))
        value(api.post(f"{CHAT}/messages", json={"messages": [user("from here")]}), 201)
        assert 3 == len(value(api.get(f"{CHAT}/transcript")))


@in_loop
async def test_others_write_while_a_session_is_open_here(tmp_path: Path) -> None:
    """What another process wrote is there at the next request, although this one has the session open."""
    store = f"file:{tmp_path}"
    app = made(store, Rules(), CONFIG)
    transport = httpx2.ASGITransport(app=app)
    async with app.state.engine as here, here.session("chat"), httpx2.AsyncClient(transport=transport, base_url=HOST) as api:
        with memci.Engine(store, CONFIG) as engine, engine.session("chat") as session:
            session.append(user("from elsewhere"))
        assert ["from elsewhere"] == [each["text"] for each in value(await api.get(f"{CHAT}/transcript"))]


def test_a_host_may_own_the_list(api: TestClient) -> None:
    """The whole list of a host is taken over: what is new comes in, what differs goes back; and the system part is replaced."""
    said = [user("A name for a boat?"), assistant("Argo.")]
    first = value(api.post(f"{CHAT}/sync", json={"messages": said}))
    assert (0, None, ["usr-1/1", "usr-1/2"]) == (
        first["known"],
        first["rewound"],
        [each["address"] for each in first["appended"]],
    )
    second = value(api.post(f"{CHAT}/sync", json={"messages": [said[0], assistant("Pequod.")]}))
    assert (1, "usr-1/2") == (second["known"], second["rewound"])
    problem(api.post(f"{CHAT}/sync", json={"messages": [{"content": "nobody says"}]}), 422)
    assert 204 == api.put(f"{CHAT}/system", json={"messages": [{"role": "system", "content": "Be kind."}]}).status_code
    assert ["Be kind.", "A name for a boat?", "Pequod."] == [
        each["content"] for each in value(api.post(f"{CHAT}/window"))["messages"]
    ]
    problem(api.put(f"{CHAT}/system", json={"messages": [user("I am none")]}), 422)


def test_usage_is_reported_for_the_last_window(api: TestClient) -> None:
    """It calibrates the counter, although each request opens the session anew; without a window it is not accepted."""
    say(api, "chat", "one")
    assert not value(api.post(f"{CHAT}/usage", json={"prompt_tokens": 100}))["accepted"]
    made = value(api.post(f"{CHAT}/window"))
    told = value(api.post(f"{CHAT}/usage", json={"usage": {"prompt_tokens": 2 * made["tokens"], "completion_tokens": 5}}))
    assert told["accepted"]
    assert told["scale"] > 1
    assert value(api.post(f"{CHAT}/window"))["tokens"] > made["tokens"]
    assert 2 * made["tokens"] == value(api.get(f"{CHAT}/stats"))["reported_tokens"]
    problem(api.post(f"{CHAT}/usage", json={"usage": {"words": 3}}), 422)


def test_slots_stand_at_the_end(api: TestClient) -> None:
    """They are given by name, and taken away."""
    say(api, "chat", "one")
    assert {"goal": "A dry cellar", "at": "10"} == value(
        api.patch(f"{CHAT}/slots", json={"goal": "A dry cellar", "at": "10", "none": None})
    )
    assert "A dry cellar" in json.dumps(value(api.post(f"{CHAT}/window"))["messages"])
    assert {"at": "10"} == value(api.patch(f"{CHAT}/slots", json={"goal": None})) == value(api.get(f"{CHAT}/slots"))


def test_a_model_calls_its_tools(api: TestClient) -> None:
    """Schemas are in each format; a call gives the message to append, and so does one that the model got wrong."""
    say(api, "chat", "the boiler", "the gasket", "the valve")
    value(api.post(f"{CHAT}/fold", json={"pages": "all"}))
    names = [each["function"]["name"] for each in value(api.get(f"{CHAT}/tools"))]
    assert names == [each["name"] for each in value(api.get(f"{CHAT}/tools", params={"format": "anthropic"}))]
    assert ["read_page", "search_pages"] == names  # in a small window
    given = {"name": "search_pages", "arguments": {"query": "gasket"}}
    short = value(api.post(f"{CHAT}/tools", json={"call": {"id": "c1", **given}}))
    assert ("tool", "c1", "usr-2") == (short["role"], short["tool_call_id"], json.loads(short["content"])[0]["index"])
    native = {"type": "function", "function": {"name": "search_pages", "arguments": '{"query": "gasket"}'}}
    assert short == value(api.post(f"{CHAT}/tools", json={"call": {"id": "c1", **native}}))
    used = {"type": "tool_use", "name": "search_pages", "input": {"query": "gasket"}}
    assert "tool_result" == value(api.post(f"{CHAT}/tools", json={"call": {"id": "c1", **used}}))["content"][0]["type"]
    wrong = value(api.post(f"{CHAT}/tools", json={"call": {"id": "c1", "name": "none", "arguments": {}}}))
    assert "ToolNotFoundError" == json.loads(wrong["content"])["error"]["kind"]
    problem(api.post(f"{CHAT}/tools", json={"call": {"name": "search_pages"}}), 422)


def test_a_model_searches_other_sessions_of_the_tenant(tmp_path: Path) -> None:
    """Once the session chose it, its tools find and read what the token's tenant has, and nothing of another one."""
    path = tmp_path / "tokens"
    ours, theirs = ({"Authorization": f"Bearer {new_token(path, tenant, Scope.WRITE)}"} for tenant in ("ours", "theirs"))
    with serving(tokens=Tokens(path)) as api:
        for name, headers in (("trip", ours), ("chat", ours), ("secret", theirs)):
            said = {"messages": [user(f"The zeppelin of {name}.")]}
            value(api.post(f"/v1/sessions/{name}/messages", json=said, headers=headers), 201)
        assert "search_sessions" not in api.get(f"{CHAT}/tools", headers=ours).text
        value(api.patch(f"{CHAT}/config", json={"recall": {"search_sessions": True}}, headers=ours))
        names = [each["function"]["name"] for each in value(api.get(f"{CHAT}/tools", headers=ours))]
        assert ["search_sessions", "read_session_page"] == names[-2:]

        def call(name: str, **given: str) -> Any:  # noqa: ANN401 (what the tool answers)
            asked = {"call": {"id": "c1", "name": name, "arguments": given}}
            return json.loads(value(api.post(f"{CHAT}/tools", json=asked, headers=ours))["content"])

        assert ["trip"] == [row["session"] for row in call("search_sessions", query="zeppelin")]
        assert "The zeppelin of trip." in call("read_session_page", session="trip", index="usr-1")["text"]
        assert "InvalidIdError" == call("read_session_page", session="secret", index="usr-1")["error"]["kind"]
