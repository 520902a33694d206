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
    """Of a path in an argument the last two parts are noted, with a mark for those before, wherever the argument stands."""
    assert ["/home/ann/src/app.py", "lib/util.ts", "notes.md"] == texts(
        Kind.FILE, call({"where": "/home/ann/src/app.py", "more": [{"x": "grep -n foo lib/util.ts notes.md:12"}]})
    )


def test_identifiers_are_words_that_no_language_has() -> None:
    """Words with an underscore or capitals inside, hashes and codes are identifiers; plain words, numbers and keys are none."""
    said = "open readMessage in max_tokens at 914e68cc, HAT136 ENT-96 INV-2026-0318 CV2-7K19-0442 plain HTTP 2024 in_progress"
    names = ["readMessage", "max_tokens", "914e68cc", "HAT136", "ENT-96", "INV-2026-0318", "CV2-7K19-0442", "in_progress"]
    assert names == texts(Kind.NAME, call({"some_key": said}))
    assert [] == texts(Kind.NAME, call({"status": "in_progress"}))


@pytest.mark.parametrize(
    "code", ["MARE-15-SPRING", "ORD-2024-0012-B", "SECRET-ID-77", "swe-bench__humanevalfix-python", "A1-B2-C3", "max_len-b"]
)
def test_codes_of_several_parts_are_whole(code: str) -> None:
    """A code is noted with all its parts, in an argument and in what is said."""
    assert [code] == texts(Kind.NAME, call({"x": code})) == texts(Kind.NAME, {"role": "user", "content": f"Is {code} in use?"})


def test_words_with_hyphens_are_no_codes() -> None:
    """Words, dates and languages with hyphens are no identifiers, and a name that is too long is not cut."""
    said = f"kebab-case-name 2026-05-01 Content-Type en-US x-ray READ-ONLY {'a_' * 50}"
    assert [] == texts(Kind.NAME, call({"x": said})) == texts(Kind.NAME, {"role": "user", "content": said})


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
        ("x", "/srv/My Documents/annual report.docx", ["/srv/My Documents/annual report.docx"]),
        ("file_path", "annual report.docx", ["annual report.docx"]),
        ("filePath", "C:\\My Docs\\main file.cs", ["C:/My Docs/main file.cs"]),
        ("paths", ["docs/a b.md", "c.md"], ["docs/a b.md", "c.md"]),
        ("command", "cat '/srv/My Documents/a b.md' docs/c\\ d.md", ["/srv/My Documents/a b.md", "docs/c d.md"]),
        ("target", "docs/my report.md", ["docs/my report.md"]),
        ("query", "client/server code in net.py", ["net.py"]),
        ("command", 'cd "/srv/My Documents"', ["/srv/My Documents"]),
        ("file_path", "src/a.py src/b.py", ["src/a.py", "src/b.py"]),
        ("command", "./gradlew build.sh", ["build.sh"]),
        ("x", "'/usr/bin/python a.py'", ["a.py"]),
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


@pytest.mark.parametrize(
    ("key", "value", "files"),
    [
        ("file_path", "/Makefile", ["/Makefile"]),
        ("file_path", "Dockerfile", ["Dockerfile"]),
        ("path", "lib/main.zig", ["lib/main.zig"]),
        ("path", "/srv/a,b.txt", ["/srv/a,b.txt"]),
        ("path", "/srv/it's.txt", ["/srv/it's.txt"]),
        ("paths", "a.py,b.py", ["a.py", "b.py"]),
        ("path", "src/app.py:120", ["src/app.py"]),
        ("path", "src/**/*.py", []),
        ("path", "/dev/null", []),
        ("path", ".", []),
        ("path", "src", []),
        ("name", "Dockerfile", []),
    ],
)
def test_an_argument_that_is_named_a_path_is_one(key: str, value: str, files: list[str]) -> None:
    """A word under a key that ends in path or file is a file, whatever its name; lists, folders and devices are none."""
    assert files == texts(Kind.FILE, call({key: value}))


def test_ways_are_the_shortest() -> None:
    """Dots inside a way are resolved."""
    assert ["y.sh", "../lib/z.py"] == texts(Kind.FILE, call({"path": ["./x/../y.sh", "../lib/./z.py"]}))


def test_absolute_ways_begin_with_a_slash() -> None:
    """A way of one or two parts that begins at the root, or at home, says so; one that follows a variable or a dot does not."""
    said = "/etc/passwd /top.py ~/notes.md ./run.py ${DIR}/x.py <id>/data/y.json */z.py /srv/app/pay/total.py"
    files = ["/etc/passwd", "/top.py", "~/notes.md", "run.py", "x.py", "data/y.json", "z.py", "/srv/app/pay/total.py"]
    assert files == texts(Kind.FILE, call({"command": said}))


def test_devices_are_no_files() -> None:
    """What lies under ``/dev``, ``/proc`` and ``/sys`` is no file of the work, unless its name says what it is."""
    said = "make >/dev/null 2>&1 < /dev/tty; cat /proc/cpuinfo /sys/class/net src/dev/null.py /dev/shm/out.json"
    assert ["src/dev/null.py", said.rpartition(" ")[2]] == texts(Kind.FILE, call({"command": said}))


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


@pytest.mark.parametrize("order", [("c1", "c2"), ("c2", "c1")])
def test_a_command_ends_with_its_own_result(order: tuple[str, str]) -> None:
    """Of parallel calls the result of another one, before or after its own, does not end a command."""
    (run,), (read_file,) = call({"command": "pytest"})["tool_calls"], call({"path": "src/app.py"}, "c2")["tool_calls"]
    calls = {"role": "assistant", "content": None, "tool_calls": [run, read_file]}
    said = {"c1": "1 failed, 3 passed", "c2": "import os"}
    results = [{"role": "tool", "tool_call_id": each, "content": said[each]} for each in order]
    assert ["pytest → 1 failed, 3 passed"] == texts(Kind.COMMAND, calls, *results)


def test_commands_that_run_at_once_each_have_their_own_end() -> None:
    """All commands of one message are the last ones, in the order of their calls; one that was not answered has no end."""
    runs = [call({"command": command}, command)["tool_calls"][0] for command in ("ruff check .", "pytest", "make docs")]
    calls = {"role": "assistant", "content": None, "tool_calls": runs}
    ends = {"pytest": "1 failed", "ruff check .": "All checks passed!"}
    results = [{"role": "tool", "tool_call_id": each, "content": text} for each, text in ends.items()]
    assert ["ruff check . → All checks passed!", "pytest → 1 failed", "make docs"] == texts(Kind.COMMAND, calls, *results)
    again = call({"command": "ls"}, "pytest")
    assert "ls → a.py" == texts(Kind.COMMAND, calls, *results, again, {**results[0], "content": "a.py"})[-1]


@pytest.mark.parametrize(
    ("result", "ending"),
    [
        (
            'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\nValueError: bad input',
            "ValueError: bad input",
        ),
        ('Traceback (most recent call last):\n  File "a.py", line 3, in run\nKeyboardInterrupt', "KeyboardInterrupt"),
        ("2 errors:\na.c\nb.c", "b.c"),
        ("make: *** [all] Error 2\nleaving", "make: *** [all] Error 2"),
    ],
)
def test_a_line_that_announces_is_no_ending(result: str, ending: str) -> None:
    """A line of a failure that ends in a colon gives way to one that says what failed."""
    answer = {"role": "tool", "tool_call_id": "c1", "content": result}
    assert f"python a.py → {ending}" == texts(Kind.COMMAND, call({"command": "python a.py"}), answer)[-1]


@pytest.mark.parametrize(
    ("arguments", "commands"),
    [
        ({"code": "884213"}, []),
        ({"code": "2312 KM"}, []),
        ({"code": "MARE-15-SPRING"}, []),
        ({"code": "x=1"}, ["x=1"]),
        ({"code": "import os"}, ["import os"]),
        ({"code": "a\nb"}, ["a b"]),
        ({"script": "npm test"}, ["npm test"]),
        ({"command": "make"}, ["make"]),
        ({"command": "view", "path": "src/app.py"}, []),
        ({"command": "cat a.py", "path": "src"}, ["cat a.py"]),
    ],
)
def test_a_command_looks_like_one(arguments: dict[str, str], commands: list[str]) -> None:
    """A word that is called a code, or stands beside a path, is no command; code and several words are."""
    assert commands == texts(Kind.COMMAND, call(arguments))


def test_an_item_of_an_unknown_status_is_left_out_alone() -> None:
    """Of a list whose items mostly have known statuses those with others are left out; another list has no items."""
    items = [{"title": "flight", "status": "pending"}, {"title": "hotel", "status": "confirmed"}]
    assert ["flight (pending)"] == texts(Kind.ITEM, call({"items": items}))
    assert [] == texts(Kind.ITEM, call({"items": [*items, {"title": "car", "status": "offered"}]}))


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
    assert {Kind.COMMAND} == {note.kind for note in notes}
    assert all(len(note.text.splitlines()) == 1 for note in notes)


def test_colours_of_a_terminal_are_no_words() -> None:
    """Codes for terminals in a command's result leave nothing behind."""
    result = {"role": "tool", "tool_call_id": "c1", "content": "\x1b[31m1 failed\x1b[0m, 3 passed"}
    assert ["pytest → 1 failed, 3 passed"] == texts(Kind.COMMAND, call({"command": "pytest"}), result)[-1:]
