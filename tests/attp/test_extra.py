"""Without the packages of the extra attp, what needs them says so, and the rest works."""

import sys

import pytest

import memci
from memci.attp import Runtime, Toolbox, parse
from memci.attp.runtime import Result
from memci.errors import ConfigError

REPLY = "[tool_call]\nstatus = \"success\"\ncode = '''\n__result__ = 1\n'''\n"


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the packages of the extra away."""
    for package in ("pydantic_monty", "tomli", "tomli_w"):
        monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.usefixtures("bare")
def test_documents_need_the_extra() -> None:
    """A reply that calls a tool cannot be read, no document can be written, and the errors name the extra."""
    for use in (lambda: parse(REPLY), lambda: Result(value=1).to_toml()):
        with pytest.raises(ConfigError, match="install memci with its extra attp"):
            use()


def test_code_needs_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code cannot run without its sandbox; this is the application's to mend, and so it is raised."""
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    with Runtime(Toolbox()) as runtime, pytest.raises(ConfigError, match=r"pydantic_monty is not installed.* extra attp"):
        runtime.run(REPLY)


@pytest.mark.usefixtures("bare")
def test_native_tools_and_plain_answers_do_without() -> None:
    """Native tool calls, schemas, the prompt and answers in plain text need no extra."""
    with memci.Engine("memory:") as engine, engine.session("plain") as session:
        session.extend([{"role": role, "content": "Where is my order?"} for role in ("user", "assistant") * 3])
        session.fold("all")
        assert "Where is my order?" in str(session.toolbox.call("read_page", {"index": "usr-1"}))
        assert session.toolbox.call("recall_page", {"index": "usr-1"})["index"] == "usr-1"
        assert "search_pages" in session.attp_prompt()
        assert session.attp("It is on its way.").answer == "It is on its way."
        assert session.toolbox.openai()
