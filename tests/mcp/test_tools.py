"""The tools and resources of a server, as the SDK's client sees them."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import attrs
import mcp_types as types
import pytest
from mcp import MCPError

import memci
from memci import Engine
from memci.archive.catalogue.page_facts import PageState
from tests.cli.stored import CONFIG, chat, store_chat
from tests.engine.pictures import picture, png, shown
from tests.mcp.serving import Served, served, text_of

ID = "boiler 7/ü"
ROOT = "memci://boiler%207%2F%C3%BC"


@pytest.fixture(scope="module")
def boiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server for a session of 40 turns, most of them archived; some tests recall pages of it."""
    store = store_chat(tmp_path_factory.mktemp("mcp"), ID, chat(40))
    with served(store, ID) as found:
        yield found


@pytest.fixture(scope="module")
def listed(boiler: Served) -> list[types.Tool]:
    return boiler.portal.call(boiler.client.list_tools).tools


def whole(boiler: Served, address: str, limit: int) -> str:
    """Read an address range by range, and return the ranges joined."""
    text, start = "", 0
    while start >= 0:
        part = boiler.value("read_page", index=address, start=start, limit=limit)
        text, start = text + part["text"], part["next"]
    return text


@pytest.mark.slow
def test_tools_are_those_of_the_toolbox(listed: list[types.Tool]) -> None:
    """The server lists the session's tools with the toolbox's own descriptions and schemas."""
    with Engine("memory:") as engine, engine.session("any") as session:
        expected = session.toolbox.mcp()
    assert expected == [{"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema} for tool in listed]


def test_a_session_that_is_only_read_has_no_topics_to_close(boiler: Served) -> None:
    """Its tools are the others."""
    with boiler.stored() as session:
        assert ["recall_page", "read_page", "list_pages", "search_pages"] == list(session.toolbox.tools)


def test_recalling_and_closing_write(listed: list[types.Tool]) -> None:
    """A client learns which tools change the session."""
    assert ["recall_page", "close_topic"] == [
        tool.name for tool in listed if not (tool.annotations and tool.annotations.read_only_hint)
    ]


def test_results_have_schemas(listed: list[types.Tool]) -> None:
    """Every tool promises the form of its result, and it is an object."""
    assert ["object"] * 5 == [(tool.output_schema or {}).get("type") for tool in listed]


def test_server_introduces_itself(boiler: Served) -> None:
    """The instructions name the session's tools and the resource with its contents page."""
    instructions = boiler.client.instructions or ""
    assert all(name in instructions for name in ("search_pages", "read_page", "recall_page", "list_pages", f"{ROOT}/contents"))


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("list_pages", {}),
        ("list_pages", {"start": 7, "limit": 3}),
        ("read_page", {"index": "usr-2"}),
        ("read_page", {"index": "usr-2/1", "start": 4, "limit": 10}),
        ("read_page", {"index": "sys-1"}),
    ],
)
def test_reading_tools_answer_as_in_the_process(boiler: Served, name: str, arguments: dict[str, Any]) -> None:
    """What a tool answers over MCP is what the session's toolbox answers."""
    with boiler.stored() as session:
        expected = session.toolbox.call(name, arguments)
    assert expected == boiler.value(name, **arguments)


def test_hits_are_in_an_object(boiler: Served) -> None:
    """A list of hits is the value of ``result``, best first, as results are objects."""
    with boiler.stored() as session:
        expected = session.toolbox.call("search_pages", {"query": "gasket of 12 mm", "limit": 3})
    found = boiler.value("search_pages", query="gasket of 12 mm", limit=3)
    assert {"result": expected} == found
    assert "usr-12" == found["result"][0]["index"]


def test_a_page_is_recalled(boiler: Served) -> None:
    """A recall is written to the session, and answered with a receipt."""
    receipt = boiler.value("recall_page", index="usr-4")
    with boiler.stored() as session:
        facts = session.facts("usr-4")
    assert ("usr-4", facts.tokens, PageState.ATTACHED) == (receipt["index"], receipt["tokens"], facts.state)


def test_all_that_the_contents_page_shows_is_recalled(boiler: Served) -> None:
    """Each page and directory of the contents page, read as a resource, can be recalled by the index that stands there."""
    with boiler.stored() as session:
        shown = [entry.index for entry in session.contents.entries]
    contents = boiler.read(f"{ROOT}/contents")
    assert shown
    assert all(f"[{index}]" in contents for index in shown)
    assert shown == [boiler.value("recall_page", index=index)["index"] for index in shown]


@pytest.mark.parametrize("limit", [23, 8_000])
def test_ranges_are_the_pages(boiler: Served, limit: int) -> None:
    """The ranges of each page, joined, are the JSON of exactly its messages."""
    with boiler.stored() as session:
        expected = {page.index: session.page(page.index).messages for page in session.pages()[-3:] + session.pages()[:8]}
    assert expected == {index: json.loads(whole(boiler, index, limit)) for index in expected}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("recall_page", {"index": "usr-999"}),
        ("recall_page", {"index": "no index"}),
        ("recall_page", {"index": 5}),
        ("recall_page", {}),
        ("read_page", {"index": "usr-1/99"}),
        ("read_page", {"index": "usr-1", "limit": 10**9}),
        ("list_pages", {"start": 0, "page": 2}),
        ("recal_page", {"index": "usr-1"}),
    ],
)
def test_what_the_model_did_wrong_is_a_result(boiler: Served, name: str, arguments: dict[str, Any]) -> None:
    """A wrong call is answered with an error that the model reads, the very one that it gets natively."""
    call = {"id": "c1", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
    with boiler.stored() as session:
        expected = session.handle_tool_call(call)["content"]
    result = boiler.call(name, arguments)
    assert (True, expected) == (result.is_error, text_of(result))
    assert {"kind", "message"} == set(json.loads(expected)["error"])


def test_contents_page_is_a_resource(boiler: Served) -> None:
    """The first listed resource is the contents page as it is now."""
    resource, _ = boiler.portal.call(boiler.client.list_resources).resources
    with boiler.stored() as session:
        expected = session.contents.render()
    assert (f"{ROOT}/contents", expected) == (resource.uri, boiler.read(resource.uri))


def test_rules_are_a_resource(boiler: Served) -> None:
    """The rules of the session as they are now, oldest first, with all their fields; reading them writes nothing."""
    _, resource = boiler.portal.call(boiler.client.list_resources).resources
    with boiler.stored(read_only=False) as session:
        session.add_rule("Quote prices with VAT.")
        expected = [attrs.asdict(rule) for rule in session.rules()]
        before = session.seq
        assert (f"{ROOT}/rules", expected) == (resource.uri, json.loads(boiler.read(resource.uri)))
        session.refresh()
        assert before == session.seq


def test_pages_are_resources(boiler: Served) -> None:
    """The template of pages leads to a page's messages."""
    (template,) = boiler.portal.call(boiler.client.list_resource_templates).resource_templates
    with boiler.stored() as session:
        expected = session.page("usr-5").messages
    assert expected == json.loads(boiler.read(template.uri_template.replace("{index}", "usr-5")))


@pytest.mark.parametrize(
    "uri", [f"{ROOT}/pages/usr-999", f"{ROOT}/pages/%00", f"{ROOT}/page", "memci://another/contents", "file:///etc/hosts", ROOT]
)
def test_unknown_resources(boiler: Served, uri: str) -> None:
    """What is no resource of this session is refused as a parameter that is wrong."""
    with pytest.raises(MCPError) as refused:
        boiler.read(uri)
    assert types.INVALID_PARAMS == refused.value.code


def test_what_others_append_is_seen(boiler: Served) -> None:
    """Every call sees what another process wrote before it, and a recall goes behind that."""
    with boiler.stored(read_only=False) as session:
        boiler.value("list_pages")
        session.append({"role": "user", "content": "And the marmalade?"}, on_conflict="retry")
        session.append({"role": "assistant", "content": "No marmalade."}, on_conflict="retry")
        last = session.pages()[-1].index
        assert "marmalade" in boiler.value("read_page", index=last)["text"]
        boiler.value("recall_page", index="usr-6")
        session.refresh()
        assert PageState.ATTACHED is session.facts("usr-6").state


def test_concurrent_calls(boiler: Served) -> None:
    """Calls that are made at once are all answered, each with its own result."""
    indexes = [f"usr-{number}" for number in range(1, 13)]
    answers: dict[str, types.CallToolResult] = {}

    async def read(index: str) -> None:
        answers[index] = await boiler.client.call_tool("recall_page" if index == "usr-9" else "read_page", {"index": index})

    async def read_all() -> None:
        async with anyio.create_task_group() as tasks:
            for index in indexes:
                tasks.start_soon(read, index)

    boiler.portal.call(read_all)
    assert indexes == [answers[index].structured_content["index"] for index in indexes]


@pytest.mark.slow
def test_halves_of_characters_are_replaced(tmp_path: Path) -> None:
    """A lone surrogate, which UTF-8 cannot encode, is sent as U+FFFD; in a page's JSON it is an escape, as ever."""
    store = store_chat(tmp_path, "s", [{"role": "user", "content": "zeppelin \ud83d!"}, *chat(2)])
    with memci.Engine(store, CONFIG) as engine, engine.session("s") as session:
        session.begin_page("ship \udc00 sails")
        session.extend([{"role": "user", "content": "Which?"}, {"role": "assistant", "content": "This."}])
        session.begin_page()
        session.fold("all")
        messages = session.page("usr-1").messages
    with served(store, "s") as found:
        assert messages == json.loads(found.value("read_page", index="usr-1")["text"])
        assert messages == json.loads(found.read("memci://s/pages/usr-1"))
        assert "ship \ufffd sails" in found.read("memci://s/contents")


@pytest.mark.slow
def test_pictures_are_image_contents(tmp_path: Path) -> None:
    """A picture of a page that is read stands beside the text, which describes it, as the page's resource does."""
    said = [shown("openai", "look", picture("openai", png())), {"role": "assistant", "content": "seen"}]
    config = {**CONFIG, "budget": {"window": 8_000, "reserve": 0}}
    with memci.Engine(f"file:{tmp_path}", config) as engine, engine.session("pictures") as session:
        session.extend(said)
    with served(f"file:{tmp_path}", "pictures") as found:
        result = found.call("read_page", {"index": "usr-1"})
        page = found.read("memci://pictures/pages/usr-1")
    text, image = result.content
    assert isinstance(text, types.TextContent)
    assert isinstance(image, types.ImageContent)
    assert (png(), "image/png") == (image.data, image.mime_type)
    assert all("[image, 700×500, 3 kB, kept at usr-1/1]" in each and png()[:99] not in each for each in (text.text, page))
