"""Strategies side by side: ``memci replay --preset`` and ``memci simulate``."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

import memci
from memci.cli.exit_code import ExitCode
from memci.quality.replay import Said, read_asked, read_conversation, replay, stored
from tests.cli.stored import CONFIG, Run, chat, store_chat
from tests.engine.wire import assistant, calling, result, system, user

PRESETS = "chapters,sliding,truncate"


def written(path: Path, messages: list[dict[str, Any]], **more: Any) -> Path:  # noqa: ANN401 (what a file holds)
    path.write_text(json.dumps({"messages": messages, **more}), encoding="utf-8")
    return path


def asking(number: int) -> dict[str, Any]:
    return {"question": f"What does part {number} cost?", "answer": f"{number}.50 euros", "evidence": [0]}


def test_presets_stand_side_by_side(run: Run, tmp_path: Path) -> None:
    """Each strategy has a column, in the order in which it was named, and the whole history is the last one."""
    file = written(tmp_path / "chat.json", chat(40))
    ran = run("replay", file, "--budget", 700, "--preset", PRESETS)
    assert ExitCode.OK == ran.code
    assert [*PRESETS.split(","), "whole history"] == ran.out.splitlines()[0].split(maxsplit=3)
    assert "answers at their page" not in ran.out
    found = run("replay", file, "--budget", 700, "--preset", PRESETS, "--json").json()
    assert PRESETS.split(",") == list(found["presets"])
    assert all(each["ok"] and each["messages"] == len(chat(40)) for each in found["presets"].values())
    assert found["presets"]["chapters"]["contents_tokens"] > 0 == found["presets"]["truncate"]["contents_tokens"]
    assert found["presets"]["truncate"]["verbatim_tokens"] > found["presets"]["chapters"]["verbatim_tokens"]


def test_a_preset_is_the_strategy_that_an_engine_has(run: Run, tmp_path: Path) -> None:
    """The figures are those of an engine with the preset in its settings."""
    file = written(tmp_path / "chat.json", chat(40))
    found = run("replay", file, "--budget", 700, "--preset", "truncate", "--json").json()["presets"]["truncate"]
    with memci.Engine("memory:", {"preset": "truncate", "budget": {"window": 700, "reserve": 0}}) as engine:
        alone = replay(engine, "r", [Said(message, None, "here") for message in chat(40)])
    assert (alone.sent.tokens, alone.folds) == (found["tokens_sent"], found["folds"])


def test_questions_are_looked_for(run: Run, tmp_path: Path) -> None:
    """What a file asks is looked for at its place in the last window: less of it where nothing is listed."""
    messages = chat(40)
    answers = [number for number, value in enumerate(messages) if str(value["content"]).startswith("Part ")]
    asked = [{**asking(part), "evidence": [place]} for part, place in enumerate(answers, start=1)]
    ran = run("replay", written(tmp_path / "a.json", messages, questions=asked), "--budget", 700, "--preset", PRESETS, "--json")
    found = ran.json()["presets"]
    assert found["chapters"]["at_page"] > found["sliding"]["at_page"] > 0
    assert all(each["needs"] is None for each in found.values())


def test_questions_of_several_files_move_with_their_messages(tmp_path: Path) -> None:
    """In one conversation of several files, a question's evidence is the message that it was, though system messages went."""
    first, second = chat(3), [system("Another."), *chat(3, first=4)[1:]]
    files = [
        written(tmp_path / "a.json", first, questions=[{**asking(3), "evidence": [len(first) - 1]}]),
        written(tmp_path / "b.json", second, questions=[{**asking(6), "evidence": [len(second) - 1]}]),
    ]
    said, asked = read_asked(files, read_conversation(files)[0])
    assert asked is not None
    assert [said[question.evidence[0]].message for question in asked.questions] == [first[-1], second[-1]]
    assert [each.message for each in said] == list(asked.messages)


def test_needs_are_looked_for_after_one_more_message(run: Run, tmp_path: Path) -> None:
    """With needs the user wants more at the end, and what stands in the window then is counted."""
    needs = [{"kind": "identifier", "text": "part 40 of"}, {"kind": "identifier", "text": "nowhere"}]
    file = written(tmp_path / "a.json", chat(40), needs=needs)
    found = run("replay", file, "--budget", 700, "--preset", "truncate", "--json").json()["presets"]["truncate"]
    assert (0.5, None, len(chat(40)) + 1) == (found["needs"], found["at_page"], found["messages"])


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--preset", "chapters,slidng"), "did you mean sliding?"),
        (("--preset", "chapters,,sliding"), "preset"),
        (("--preset", "chapters", "--store", "memory:"), "--store"),
        (("--preset", "chapters", "--policy", "spill"), "--policy"),
        (("--preset", "chapters", "--durability", "fsync"), "--durability"),
    ],
)
def test_what_cannot_be_compared_is_refused(run: Run, tmp_path: Path, options: tuple[str, ...], told: str) -> None:
    """A name that is none, and options of a session that is kept, are wrong usage."""
    ran = run("replay", written(tmp_path / "chat.json", chat(2)), *options)
    assert ExitCode.USAGE == ran.code
    assert told in ran.err


def test_questions_that_cannot_be_used_are_refused(run: Run, tmp_path: Path) -> None:
    """A question without evidence names its place in the file."""
    file = written(tmp_path / "chat.json", chat(2), questions=[{"question": "What?", "answer": "that"}])
    ran = run("replay", file, "--preset", "chapters")
    assert ExitCode.USAGE == ran.code
    assert "questions[0]" in ran.err


# A stored session


def contents(root: Path) -> dict[str, str]:
    """Return the hash of each file below a directory."""
    found = sorted(path for path in root.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


@pytest.mark.slow
def test_a_stored_session_is_simulated(run: Run, tmp_path: Path) -> None:
    """Its messages are played under the presets beside its own settings; the store is as it was."""
    store = store_chat(tmp_path / "store", "boiler", chat(40))
    before = contents(tmp_path)
    found = run("simulate", "--store", store, "--preset", "truncate,query_only", "--json").json()
    assert ["now", "truncate", "query_only"] == list(found["presets"])
    assert all(each["ok"] and each["messages"] == len(chat(40)) for each in found["presets"].values())
    with memci.Engine("memory:", CONFIG) as engine:
        alone = replay(engine, "r", [Said(message, None, "here") for message in chat(40)])
    assert alone.sent.tokens == found["presets"]["now"]["tokens_sent"]
    ran = run("simulate", "--store", store, "--preset", "truncate")
    assert ExitCode.OK == ran.code
    assert ["now", "truncate", "whole history"] == ran.out.splitlines()[0].split(maxsplit=2)
    assert before == contents(tmp_path)


def test_what_a_session_chose_is_what_it_has_now(run: Run, tmp_path: Path) -> None:
    """A session that was configured is compared with the strategy that it chose."""
    with memci.Engine(f"file:{tmp_path}", CONFIG) as engine, engine.session("boiler") as session:
        session.configure(preset="sliding")
        session.extend(chat(30))
        session.window()
    found = run("simulate", "--store", f"file:{tmp_path}", "--preset", "sliding,chapters", "--json").json()["presets"]
    assert found["now"] == found["sliding"] != found["chapters"]


def test_messages_are_played_in_the_order_in_which_they_came() -> None:
    """A late result is where it was said, the system part stands first, and what was rewound or replaced is gone."""
    late = [user("look it up"), calling("a"), user("meanwhile?"), assistant("yes"), result("a")]
    with memci.Engine("memory:", CONFIG) as engine, engine.session("chat") as session:
        session.extend([system("Be terse."), *late, user("no"), assistant("what?")])
        session.rewind(session.append(user("never mind")).address)
        session.set_system([system("Be kind.")])
        assert [system("Be kind."), *late, user("no"), assistant("what?")] == [said.message for said in stored(session)]


def test_answers_of_attp_stay_in_their_turns() -> None:
    """What a session gave as an answer of ATTP opens no turn when it is played again."""
    with memci.Engine("memory:", CONFIG) as engine, engine.session("chat") as session:
        session.append(user("what is there?"))
        reply = 'thought = "look"\n[tool_call]\nstatus = "success"\ntarget = "pages"\ncode = \'__result__ = list_pages()\'\n'
        session.extend([assistant(reply), session.attp(reply).message(), assistant("Nothing yet.")])
        said = stored(session)
        assert [False, False, True, False] == [each.attp for each in said]
        assert 1 == session.turn == replay(engine, "again", said).turns


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (("--session", "none", "--preset", "sliding"), ExitCode.NOT_FOUND, "no session 'none'"),
        (("--preset", "slidng"), ExitCode.USAGE, "did you mean sliding?"),
        ((), ExitCode.USAGE, "--preset"),
    ],
)
def test_what_cannot_be_simulated_is_refused(run: Run, store: str, options: tuple[str, ...], code: ExitCode, told: str) -> None:
    """A session that is not there, a name that is none, and no name at all."""
    ran = run("simulate", "--store", store, *options)
    assert code == ran.code
    assert told in ran.err
