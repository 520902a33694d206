"""What the working set takes from messages, of any tool and in any format."""

import base64
import json
from hashlib import shake_128
from typing import Any

import pytest

from memci.archive.contents.noting import notes_of
from memci.archive.contents.working_set import Kind
from memci.messages.formats import format as formats
from memci.messages.message import Message


def read(*values: dict[str, Any], name: str = "openai") -> list[tuple[str, Message]]:
    wire = formats.get(name)
    return [("usr-1", wire.facts(value)) for value in values]


def texts(kind: Kind, *values: dict[str, Any], name: str = "openai") -> list[str]:
    return [note.text for note in notes_of(read(*values, name=name), 0) if note.kind is kind]


def call(arguments: object, call_id: str = "c1") -> dict[str, Any]:
    function = {"name": "anything", "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": call_id, "type": "function", "function": function}]}


def test_files_stand_with_their_folder() -> None:
    """Of a path in an argument the last two parts are noted, whatever the argument is called and however deep it stands."""
    assert ["src/app.py", "lib/util.ts", "notes.md"] == texts(
        Kind.FILE, call({"where": "/home/ann/src/app.py", "more": [{"x": "grep -n foo lib/util.ts notes.md:12"}]})
    )


def test_identifiers_are_words_that_no_language_has() -> None:
    """Words with an underscore or capitals inside, hashes and codes are identifiers; plain words, numbers and keys are none."""
    said = "open readMessage in max_tokens at 914e68cc, HAT136 ENT-96 INV-2026-0318 CV2-7K19-0442 plain HTTP 2024 in_progress"
    names = ["readMessage", "max_tokens", "914e68cc", "HAT136", "ENT-96", "INV-2026-0318", "CV2-7K19-0442", "in_progress"]
    assert names == texts(Kind.NAME, call({"some_key": said}))
    assert [] == texts(Kind.NAME, call({"status": "in_progress"}))


def test_base64_names_nothing() -> None:
    """Of base64 in an argument, in what is said and in how a command ended, no piece is an identifier or shown."""
    data = base64.b64encode(shake_128(b"picture").digest(3_000)).decode()
    answer = {"role": "tool", "tool_call_id": "c1", "content": data}
    notes = notes_of(read(call({"data": data, "command": "show"}), answer, {"role": "user", "content": f"`{data}`"}), 0)
    assert [] == [note.text for note in notes if any(piece in note.text for piece in (data[:9], data[40:49], data[-9:]))]
    assert {Kind.COMMAND} == {note.kind for note in notes}


def test_what_is_written_counts_less_than_what_is_touched() -> None:
    """A name in a long argument, which is a text or code, counts as one that is said: less than one in a short argument."""
    notes = notes_of(read(call({"path": "src/app.py", "content": "import lib.py # " + "so " * 100})), 0)
    assert {"src/app.py": 1.0, "lib.py": 0.3} == {note.text: note.weight for note in notes}


def test_urls_are_kept_whole() -> None:
    """A URL stays whole, without the punctuation after it, and gives no file."""
    assert ["https://example.org/a/b.html?x=1"] == texts(Kind.URL, call({"u": "see (https://example.org/a/b.html?x=1)."}))
    assert [] == texts(Kind.FILE, call({"u": "https://example.org/a/b.html?x=1"}))


@pytest.mark.parametrize(
    ("said", "urls"),
    [
        ("[https://x.org/a](https://x.org/b)", ["https://x.org/a", "https://x.org/b"]),
        ("(https://x.org/a),b", ["https://x.org/a"]),
        ("see [https://x.org/a], or", ["https://x.org/a"]),
        ("https://x.org/a,https://x.org/b,", ["https://x.org/a", "https://x.org/b"]),
        ("【https://x.org/a】", ["https://x.org/a"]),
        ("https://x.org/Foo_(bar)?a=[1],c", ["https://x.org/Foo_(bar)?a=[1],c"]),
    ],
)
def test_a_url_ends_where_the_text_around_it_goes_on(said: str, urls: list[str]) -> None:
    """A URL ends before a bracket that was opened before it, and before another URL; brackets and commas of its own stay."""
    assert urls == texts(Kind.URL, call({"u": said})) == texts(Kind.URL, {"role": "user", "content": said})


@pytest.mark.parametrize(
    ("key", "value", "files"),
    [
        ("x", "/srv/My Documents/annual report.docx", ["My Documents/annual report.docx"]),
        ("file_path", "annual report.docx", ["annual report.docx"]),
        ("filePath", "C:\\My Docs\\main file.cs", ["main file.cs"]),
        ("paths", ["docs/a b.md", "c.md"], ["docs/a b.md", "c.md"]),
        ("command", "cat '/srv/My Documents/a b.md' docs/c\\ d.md", ["My Documents/a b.md", "docs/c d.md"]),
        ("command", 'cd "/srv/My Documents"', ["/srv/My Documents"]),
        ("file_path", "src/a.py src/b.py", ["src/a.py", "src/b.py"]),
        ("command", "./gradlew build.sh", ["build.sh"]),
        ("x", "'/usr/bin/python a.py'", ["bin/python", "a.py"]),
        ("x", '"/a\r[usr-0] b/c d.py"', ["d.py"]),
        ("profile", "I like app.py", ["app.py"]),
    ],
)
def test_files_may_have_spaces(key: str, value: object, files: list[str]) -> None:
    """A file's name keeps its spaces where it is a whole argument, in quotes or has backslashes; commands and lists are none."""
    assert files == texts(Kind.FILE, call({key: value}))


@pytest.mark.parametrize(
    ("value", "files"),
    [
        ("отчёты/план.pdf", ["отчёты/план.pdf"]),
        ("रिपोर्ट/सूची.csv", ["रिपोर्ट/सूची.csv"]),
        ("รายงาน/ปี.pdf", ["รายงาน/ปี.pdf"]),
        ("re\u0301sume\u0301/cafe\u0301.txt", ["re\u0301sume\u0301/cafe\u0301.txt"]),
        ("python 数据/报告_最终.py 月报2024.xlsx", ["数据/报告_最终.py", "月报2024.xlsx"]),
        ("请看src/app.py文件", ["src/app.py"]),
    ],
)
def test_files_are_named_in_every_script(value: str, files: list[str]) -> None:
    """A file's name is whole in every script; where words stand side by side without spaces, it ends at the other script."""
    assert files == texts(Kind.FILE, call({"x": value})) == texts(Kind.FILE, {"role": "user", "content": f"{value}, ok"})


def test_a_named_file_may_mix_scripts() -> None:
    """An argument whose key says that it is a file is one name, whatever scripts are in it."""
    assert ["数据/报告final.xlsx"] == texts(Kind.FILE, call({"path": "数据/报告final.xlsx"}))


def test_absolute_ways_begin_with_a_slash() -> None:
    """A way of one or two parts that begins at the root, or at home, says so; one that follows a variable or a dot does not."""
    said = "/etc/passwd /top.py ~/notes.md ./run.py ${DIR}/x.py <id>/data/y.json */z.py /srv/app/pay/total.py"
    files = ["/etc/passwd", "/top.py", "~/notes.md", "run.py", "x.py", "data/y.json", "z.py", "pay/total.py"]
    assert files == texts(Kind.FILE, call({"command": said}))


def test_devices_are_no_files() -> None:
    """What lies under ``/dev``, ``/proc`` and ``/sys`` is no file of the work, unless its name says what it is."""
    said = "make >/dev/null 2>&1 < /dev/tty; cat /proc/cpuinfo /sys/class/net src/dev/null.py /dev/shm/out.json"
    assert ["dev/null.py", "shm/out.json"] == texts(Kind.FILE, call({"command": said}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("openai", call({"file_path": "src/app.py"})),
        ("responses", {"type": "function_call", "call_id": "c1", "name": "x", "arguments": '{"file_path": "src/app.py"}'}),
        (
            "anthropic",
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "x", "input": {"f": "src/app.py"}}]},
        ),
    ],
)
def test_calls_of_all_formats_are_read(name: str, value: dict[str, Any]) -> None:
    """The arguments of calls are read in all wire formats."""
    assert ["src/app.py"] == texts(Kind.FILE, value, name=name)


def test_arguments_need_not_be_json() -> None:
    """Arguments that are no JSON are read as text."""
    assert ["src/app.py"] == texts(Kind.FILE, call("open src/app.py"))


def test_commands_in_text_are_read() -> None:
    """An agent that writes its commands into its text is read there; capitals inside words count in code only."""
    said = {"role": "assistant", "content": "Let us see how YouTube does it.\n```\nedit main.py readAll\n```"}
    assert ["main.py"] == texts(Kind.FILE, said)
    assert ["readAll"] == texts(Kind.NAME, said)
    tagged = {"role": "assistant", "content": "Now.\n<command>\npython reproduce.py sumAll\n</command>"}
    assert ["sumAll"] == texts(Kind.NAME, tagged)


def test_a_command_stands_with_its_ending() -> None:
    """A command stands with the line of its result that tells of a failure, else with the last one."""
    run = call({"command": "make test"})
    failed = {"role": "tool", "tool_call_id": "c1", "content": "ok a\nFAIL: test_b\nmake: leaving\n"}
    assert "make test → FAIL: test_b" == texts(Kind.COMMAND, run, failed)[-1]
    passed = {"role": "tool", "tool_call_id": "c1", "content": "one\n12 passed\n"}
    assert "make test → 12 passed" == texts(Kind.COMMAND, run, passed)[-1]
    assert "bash -lc ls" == texts(Kind.COMMAND, call({"action": {"command": ["bash", "-lc", "ls"]}}))[-1]


def test_open_items_are_found_by_their_shape() -> None:
    """Items with a status are a list that the model keeps, by whatever keys; what is done is no longer open."""
    plan = {"plan": [{"step": "read it", "status": "completed"}, {"step": "mend it", "status": "in_progress"}]}
    assert ["mend it (in_progress)"] == texts(Kind.ITEM, call(plan))
    assert [""] == texts(Kind.ITEM, call({"todos": [{"content": "read it", "state": "done"}]}))
    assert [] == texts(Kind.ITEM, call({"rows": [{"name": "x", "colour": "red"}]}))


def test_nothing_stored_begins_a_line() -> None:
    """A note is one line, whatever stands in its source."""
    notes = notes_of(
        read({"role": "user", "content": "Always\u2028[usr-1] say so."}, call({"command": "a\n[end of page usr-1]"})), 0
    )
    assert {Kind.RULE, Kind.COMMAND} == {note.kind for note in notes}
    assert all(len(note.text.splitlines()) == 1 for note in notes)


def test_colours_of_a_terminal_are_no_words() -> None:
    """Codes for terminals in a command's result leave nothing behind."""
    result = {"role": "tool", "tool_call_id": "c1", "content": "\x1b[31m1 failed\x1b[0m, 3 passed"}
    assert ["pytest → 1 failed, 3 passed"] == texts(Kind.COMMAND, call({"command": "pytest"}), result)[-1:]
