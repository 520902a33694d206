"""The commands that look at a stored session."""

import json
from pathlib import Path

import pytest

import memci
from memci.cli.exit_code import ExitCode
from memci.version import VERSION
from tests.cli.stored import CONFIG, Run, chat, store_chat
from tests.engine.pictures import picture, png, shown

HUGE = "x" * 100_000
"""More than anybody should be told again."""

ONE_SESSION = ("pages", "contents", "window", "verify", "export")
"""Commands that need no argument but the session."""


def test_version(run: Run) -> None:
    """--version tells the version."""
    assert f"memci {VERSION}\n" == run("--version").out


def test_help_tells_the_exit_codes(run: Run) -> None:
    """--help lists every exit code with its meaning."""
    lines = run("--help").out.splitlines()
    assert all(any(line.split() == [str(int(code)), *code.meaning.split()] for line in lines) for code in ExitCode)


def test_config_is_a_configuration_file(run: Run, tmp_path: Path) -> None:
    """What config prints can be used as it is, and holds the defaults."""
    path = tmp_path / "memci.yaml"
    path.write_text(run("config").out, encoding="utf-8")
    assert memci.Config() == memci.Config.from_file(path)
    assert memci.Config().to_mapping() == run("config", "--json").json()


def test_sessions(run: Run, tmp_path: Path) -> None:
    """Ids are listed one a line, sorted, whatever characters they have."""
    for session_id in ("b", "a/../c", "x\x1b[2J"):
        store = store_chat(tmp_path, session_id, chat(1))
    assert ["a/../c", "b", r"x\x1b[2J"] == run("sessions", "--store", store).out.splitlines()
    assert ["a/../c", "b", "x\x1b[2J"] == run("sessions", "--store", store, "--json").json()


def test_pages(run: Run, store: str) -> None:
    """Pages are listed oldest first, the system page included."""
    found = run("pages", "--store", store, "--json").json()
    assert ["sys-1", "usr-1", "usr-2"] == [page["index"] for page in found[:3]]
    assert (41, 40, "open") == (len(found), found[-1]["turn"], found[-1]["state"])


def test_pages_in_a_state(run: Run, store: str) -> None:
    """--state leaves only the pages in it; the table tells each one's size, and when it was said."""
    lines = run("pages", "--state", "open", "--store", store).out.splitlines()
    assert ["page", "state", "turn", "entries", "tokens", "recalls", "said", "title"] == lines[0].split()
    assert ["open"] == [line.split()[1] for line in lines[1:]]
    first_at = run("pages", "--state", "open", "--store", store, "--json").json()[0]["first_at"]
    assert f" {first_at[:10]}" in lines[1]


def test_contents(run: Run, store: str) -> None:
    """The contents page is shown as the model reads it; the document has every entry with its fields and its text."""
    text = run("contents", "--store", store).out
    found = run("contents", "--store", store, "--json").json()
    assert text.startswith("[usr-0] Contents of earlier pages")
    assert found["entries"]
    assert all(entry["text"] in text and entry["index"].startswith("usr-") for entry in found["entries"])


def test_empty_contents(run: Run, tmp_path: Path) -> None:
    """A session from which nothing has left the window has an empty contents page, which is said."""
    ran = run("contents", "--store", store_chat(tmp_path, "short", chat(1)))
    assert (ExitCode.OK, "") == (ran.code, ran.out)
    assert "the contents page is empty" in ran.err


@pytest.mark.parametrize("index", ["usr-5", "5"])
def test_show_page(run: Run, store: str, index: str) -> None:
    """A page is shown whole, with its calls and results; a bare number is one of the common segment."""
    lines = run("show", index, "--store", store).out.splitlines()
    assert lines[0].startswith("usr-5 · turn 5 · 4 entries · ")
    assert ["usr-5/1 user", "usr-5/2 assistant", "usr-5/3 tool", "usr-5/4 assistant"] == [
        line.split(" · ")[0] for line in lines[1::2]
    ]
    assert '→ price({"part": 5}) [call_5]' == lines[4]
    assert "EUR 5.50, in stock: 15" == lines[6]


def test_show_page_as_document(run: Run, store: str) -> None:
    """The document of a page has its messages as they came in."""
    found = run("show", "usr-5", "--store", store, "--json").json()
    said = chat(40)
    start = said.index({"role": "user", "content": "What does part 5 of the boiler cost, with a gasket of 5 mm?"})
    assert said[start : start + 4] == [entry["message"] for entry in found["entries"]]


@pytest.mark.parametrize("address", ["usr-5/3", "5/3"])
def test_show_entry(run: Run, store: str, address: str) -> None:
    """One entry is shown for itself."""
    found = run("show", address, "--store", store, "--json").json()
    assert [("usr-5/3", "EUR 5.50, in stock: 15")] == [
        (entry["address"], entry["message"]["content"]) for entry in found["entries"]
    ]


def test_pictures_are_described(run: Run, tmp_path: Path) -> None:
    """``show`` and ``window`` say what a picture is; their JSON, and an export, hold all of it."""
    said = [shown("openai", "look", picture("openai", png())), {"role": "assistant", "content": "seen"}]
    store = store_chat(tmp_path, "chat", said)
    for command in (["show", "usr-1"], ["window"]):
        written = run(*command, "--store", store).out
        assert "[image, 700×500, 3 kB]" in written
        assert png()[:99] not in written
        assert png() in run(*command, "--json", "--store", store).out
    assert png() in run("export", "--store", store).out


def test_showing_is_no_recall(run: Run, store: str) -> None:
    """A page that was shown has the recall count that it had."""
    run("show", "usr-2", "--store", store)
    assert 0 == run("pages", "--store", store, "--json").json()[2]["recall_count"]


def test_search(run: Run, store: str) -> None:
    """Words find the page that has them, with the entry, when it was said, and a passage."""
    found = run("search", "gasket", "of", "7", "mm", "--store", store, "--json").json()
    assert "usr-7" == found[0]["index"]
    told = run("search", "gasket of 7 mm", "--store", store).out
    assert found[0]["entry"] in told
    assert found[0]["at"][:16].replace("T", " ") in told


def test_search_is_bounded(run: Run, store: str) -> None:
    """--limit bounds the answer."""
    assert 3 == len(run("search", "boiler", "--limit", 3, "--store", store, "--json").json())


def test_search_takes_visible_pages_when_asked(run: Run, store: str) -> None:
    """Pages that stand in the window are found with --all only."""
    newest = run("pages", "--state", "open", "--store", store, "--json").json()[0]["index"]
    hidden = run("search", "gasket of 40 mm", "--store", store, "--json").json()
    shown = run("search", "gasket of 40 mm", "--all", "--store", store, "--json").json()
    assert newest not in {hit["index"] for hit in hidden}
    assert newest in {hit["index"] for hit in shown}


def test_search_is_narrowed(run: Run, store: str) -> None:
    """A search can be limited to turns, roles and states, each of which may be given several times."""
    found = run(
        "search", "boiler", "--role", "user", "--from-turn", 3, "--to-turn", 4, "--limit", 50, "--store", store, "--json"
    ).json()
    assert {"usr-3", "usr-4"} >= {hit["index"] for hit in found} != set()
    states = ("--state", "open", "--state", "active")
    visible = run("search", "gasket", *states, "--store", store, "--json").json()
    assert {"open", "active"} >= {hit["state"] for hit in visible} != set()
    assert "somewhere" in run("search", "gasket", "--state", "somewhere", "--store", store).err


def test_search_is_narrowed_to_days(run: Run, store: str) -> None:
    """--since and --until take days, both of which are searched, and the table tells which words a page holds."""
    day = run("search", "gasket of 7 mm", "--store", store, "--json").json()[0]["at"][:10]
    assert "gasket of 7 mm" in run("search", "gasket of 7 mm", "--since", day, "--until", day, "--store", store).out
    assert [] == run("search", "gasket of 7 mm", "--until", "1999-12-31", "--store", store, "--json").json()
    assert "such as 2026-03-01" in run("search", "gasket", "--since", "today", "--store", store).err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--role", "alien"), "there is no role 'alien': give one or more of system, developer, user"),
        (("--from-turn", 5, "--to-turn", 2), "no turn is in (5, 2): give the first and then the last"),
    ],
)
def test_search_for_what_cannot_be_is_wrong_usage(run: Run, store: str, options: tuple[object, ...], told: str) -> None:
    """A role that there is not, and a range that ends before it begins, are told and not answered by nothing."""
    ran = run("search", "boiler", *options, "--store", store)
    assert (ExitCode.USAGE, "") == (ran.code, ran.out)
    assert told in ran.err


def test_search_from_a_turn_that_never_comes(run: Run, store: str) -> None:
    """A range that begins beyond every turn is a range, and nothing is in it."""
    assert [] == run("search", "boiler", "--from-turn", 10**30, "--store", store, "--json").json()


def test_search_finds_nothing(run: Run, store: str) -> None:
    """No hit is an empty answer, not an error."""
    ran = run("search", "zeppelin", "--store", store)
    assert (ExitCode.OK, "") == (ran.code, ran.out)
    assert [] == run("search", "zeppelin", "--store", store, "--json").json()


def test_window(run: Run, store: str) -> None:
    """The window is that of the session as it stands, with its budget and what it is made of."""
    found = run("window", "--store", store, "--json").json()
    with memci.Engine(store, CONFIG, read_only=True) as engine, engine.session("boiler") as session:
        window = session.render(at=session.seq)
    assert (window.messages, window.tokens, 700) == (found["messages"], found["tokens"], found["budget"])
    assert sum(found["breakdown"].values()) == found["tokens"]


def test_window_over_a_budget(run: Run, store: str) -> None:
    """Where the window would have to fold to fit, that is said, and nothing is folded."""
    ran = run("window", "--budget", 300, "--store", store)
    assert ExitCode.OK == ran.code
    assert "it does not fit 300 tokens as it stands" in ran.err
    assert False is run("window", "--budget", 300, "--store", store, "--json").json()["fits"]


def test_render_gives_the_past(run: Run, store: str) -> None:
    """A past window is shown as it was."""
    first = run("render", "--at", 3, "--store", store, "--json").json()
    assert chat(40)[:1] == first["messages"][:1]
    assert 3 == first["seq"]
    last = run("window", "--store", store, "--json").json()
    assert last == run("render", "--at", last["seq"], "--store", store, "--json").json()


def test_explain_uses_the_sessions_settings(run: Run, store: str) -> None:
    """The reasons are told in the numbers of the settings that are in force in the session."""
    found = run("explain", "usr-1", "--store", store, "--json").json()
    assert ("usr-1", 700) == (found["index"], found["facts"]["budget_tokens"])
    text = run("explain", "usr-1", "--store", store).out
    assert text.startswith(f"usr-1 is {found['state']}.\n- It was folded in turn ")


def test_verify(run: Run, store: str) -> None:
    """A sound session has no problem, and the exit code says so."""
    ran = run("verify", "--store", store)
    assert ExitCode.OK == ran.code
    assert ran.out.endswith("no problem found\n")
    assert run("verify", "--store", store, "--json").json()["ok"]


def test_verify_finds_damage(run: Run, tmp_path: Path) -> None:
    """A damaged page file is a problem that is named, and exit code 1."""
    store = store_chat(tmp_path, "s", chat(30))
    (tmp_path / "default" / "s" / "pages" / "usr-1.json").write_bytes(b"{}")
    ran = run("verify", "--store", store)
    assert ExitCode.FAILED == ran.code
    assert "the file of page usr-1 is damaged" in ran.out
    found = run("verify", "--store", store, "--json")
    assert (ExitCode.FAILED, False) == (found.code, found.json()["ok"])


def test_recall_writes(run: Run, tmp_path: Path) -> None:
    """A recalled page stands in the window, its count goes up, and the session's settings stay in force."""
    store = store_chat(tmp_path, "s", chat(30))
    before = run("window", "--store", store, "--json").json()["seq"]
    ran = run("recall", "usr-3", "--store", store, "--json")
    assert ("usr-3", "attached", before + 1) == tuple(ran.json()[key] for key in ("index", "state", "seq"))
    (attached,) = run("pages", "--state", "attached", "--store", store, "--json").json()
    assert ("usr-3", 1) == (attached["index"], attached["recall_count"])
    window = run("window", "--store", store, "--json").json()
    assert 700 == window["budget"]
    assert window["breakdown"]["recalled"] > 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("pages", "--state", HUGE),
        (HUGE,),
        ("pages", f"--{HUGE}"),
        ("render", "--at", HUGE),
        ("show", HUGE),
        ("show", f"usr-1..{HUGE}"),
        ("pages", "--session", HUGE),
        ("replay", HUGE),
        ("replay", "--config", HUGE, "x"),
        ("fork", HUGE, "--session", HUGE),
        ("search", "--role", HUGE, "x"),
        ("checkpoints", "--restore", HUGE),
        ("bench", "quality", HUGE),
    ],
    ids=lambda arguments: " ".join(arguments)[:20],
)
def test_what_is_refused_is_quoted_in_part(run: Run, store: str, arguments: tuple[str, ...]) -> None:
    """Whatever is given, an error is short: the parser's own, and those of commands."""
    ran = run(*arguments, "--store", store)
    assert ExitCode.OK != ran.code
    assert 0 < len(ran.err) < 3_000


def test_what_directories_group_is_told_beside_archived_pages(run: Run, tmp_path: Path) -> None:
    """Of the pages that left the window, those without an entry of their own are counted, and found under their own state."""
    store = store_chat(tmp_path, "s", chat(120))
    hidden = run("pages", "--state", "hidden", "--store", store, "--json").json()
    assert hidden
    listed = run("pages", "--state", "archived", "--store", store)
    assert f"{len(hidden)} more are grouped in directories: --state hidden lists them\n" == listed.err
    assert "" == run("pages", "--state", "open", "--store", store).err


def test_the_list_of_a_range_is_recalled(run: Run, tmp_path: Path) -> None:
    """Of a range of pages, their list stands in the window, and shown it is read as a page is."""
    store = store_chat(tmp_path, "s", chat(30))
    listed = run("show", "usr-1..2", "--store", store).out
    assert all(f"usr-{number} " in listed for number in (1, 2))
    ran = run("recall", "usr-1..2", "--store", store, "--json")
    assert "usr-1..2" == ran.json()["index"]
    assert "usr-1..2" in run("recall", "usr-1..2", "--store", store).out
    assert run("window", "--store", store, "--json").json()["breakdown"]["recalled"] > 0


@pytest.mark.parametrize("address", ["3..6", "usr-3..usr-6"])
def test_a_range_of_bare_numbers_is_one_of_the_common_segment(run: Run, store: str, address: str) -> None:
    """Two bare numbers are a range as the index with the segment is; a range has pages, and no entries."""
    shown = run("show", address, "--store", store, "--json").json()
    assert "usr-3..6" == shown["index"]
    assert [f"usr-{number}" for number in range(3, 7)] == [page["index"] for page in shown["pages"]]
    assert ExitCode.NOT_FOUND == run("show", f"{address}/1", "--store", store).code


def test_a_root_is_shown_and_explained(run: Run, store: str) -> None:
    """The index at the head of the contents page is one that commands take: it has all pages of its segment."""
    pages = [page["index"] for page in run("pages", "--store", store, "--json").json() if page["state"] != "evicted"]
    assert [each for each in pages if each.startswith("usr")] == [
        page["index"] for page in run("show", "usr-0", "--store", store, "--json").json()["pages"]
    ]
    assert "contents page" in run("explain", "usr-0", "--store", store).out
    assert ExitCode.FAILED == run("erase", "usr-0", "--store", store, "--yes").code


def test_recall_says_that_it_writes(run: Run, tmp_path: Path) -> None:
    """People are told in which turn the page fades, and that the session was written to."""
    ran = run("recall", 3, "--store", store_chat(tmp_path, "s", chat(30)))
    assert "It was recalled, or mentioned last, in turn 30 and fades in turn 36 without another mention." in ran.out
    assert ran.err.startswith("written to session 's', now at event ")
    assert "nothing was written" in run("recall", 30, "--store", store_chat(tmp_path / "other", "s", chat(30))).err


def test_export(run: Run, store: str) -> None:
    """Every message comes back as it went in, a line each, or in one document with its time."""
    assert chat(40) == [json.loads(line) for line in run("export", "--store", store).out.splitlines()]
    found = run("export", "--format", "json", "--store", store).json()
    assert ("boiler", "openai", chat(40)) == (found["id"], found["format"], found["messages"])
    assert len(found["messages"]) == len(found["timestamps"])


def test_export_of_notes(run: Run, tmp_path: Path) -> None:
    """A document has the notes, with where they are; what is written a message a line has messages only."""
    store = store_chat(tmp_path, "s", chat(4))
    assert ExitCode.OK == run("note", "On boilers", "Drain them in May.", "--store", store).code
    found = run("export", "--format", "json", "--store", store).json()
    assert chat(4) == found["messages"] == [json.loads(line) for line in run("export", "--store", store).out.splitlines()]
    [note] = found["notes"]
    assert ("note-1", "On boilers", "usr-0", "Drain them in May.") == tuple(
        note[key] for key in ("index", "name", "parent", "text")
    )


@pytest.mark.parametrize("command", ONE_SESSION)
def test_store_from_the_environment(run: Run, store: str, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    """MEMCI_STORE names the store where --store does not."""
    monkeypatch.setenv("MEMCI_STORE", store)
    assert run(command, "--store", store) == run(command)


@pytest.mark.parametrize("command", ONE_SESSION)
def test_one_of_several_sessions_must_be_named(run: Run, tmp_path: Path, command: str) -> None:
    """Where there are several sessions, the error lists them."""
    for session_id in ("one", "two"):
        store = store_chat(tmp_path, session_id, chat(1))
    ran = run(command, "--store", store)
    assert (ExitCode.USAGE, "") == (ran.code, ran.out)
    assert "name one with --session; it holds 'one', 'two'" in ran.err
    assert ExitCode.OK == run(command, "--store", store, "--session", "two").code


def test_tenants_are_apart(run: Run, store: str) -> None:
    """A session of another tenant is not there."""
    ran = run("pages", "--store", store, "--tenant", "other")
    assert ExitCode.NOT_FOUND == ran.code
    assert "of tenant 'other'" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("show", "usr-99"), ExitCode.NOT_FOUND, "usr-99"),
        (("show", "usr-1/9"), ExitCode.NOT_FOUND, "there is no usr-1/9"),
        (("show", "page one"), ExitCode.USAGE, "'page one' is not a page index"),
        (("show", "usr-1/x"), ExitCode.USAGE, "'usr-1/x' is not the address of an entry"),
        (("explain", "usr-99"), ExitCode.NOT_FOUND, "usr-99"),
        (("recall", "usr-99"), ExitCode.NOT_FOUND, "usr-99"),
        (("render", "--at", "99999"), ExitCode.USAGE, "there is no event 99999"),
        (("pages", "--session", "nobody"), ExitCode.NOT_FOUND, "there is no session 'nobody'"),
        (("pages", "--state", "lost"), ExitCode.USAGE, "'lost'"),
        (("pages", "--store", "ftp://x"), ExitCode.USAGE, "'ftp:…' is no store: give file:./directory"),
        (("sessions", "--tenant", ""), ExitCode.USAGE, "the tenant is empty"),
    ],
)
def test_refusals(run: Run, store: str, arguments: tuple[str, ...], code: ExitCode, said: str) -> None:
    """What is not there, or cannot be asked, is one clear line and an exit code."""
    ran = run(*arguments, *(() if "--store" in arguments else ("--store", store)))
    assert (code, "") == (ran.code, ran.out)
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert "--state" in arguments or 1 == len(ran.err.splitlines())


@pytest.mark.parametrize("command", ["sessions", *ONE_SESSION])
def test_missing_store(run: Run, tmp_path: Path, command: str) -> None:
    """A store that is not there is told in one line, and not made."""
    ran = run(command, "--store", f"file:{tmp_path / 'nowhere'}")
    assert (ExitCode.NOT_FOUND, "", 1) == (ran.code, ran.out, len(ran.err.splitlines()))
    assert [] == list(tmp_path.iterdir())


def test_damaged_store(run: Run, tmp_path: Path) -> None:
    """A damaged journal is one line that names the place, and the exit code of a store that cannot be used."""
    store = store_chat(tmp_path, "s", chat(30))
    journal = tmp_path / "default" / "s" / "journal.jsonl"
    data = journal.read_bytes()
    journal.write_bytes(data.replace(b"part 2 of", b"part 3 of"))
    ran = run("render", "--at", 9, "--store", store)
    assert (ExitCode.STORE, "", 1) == (ran.code, ran.out, len(ran.err.splitlines()))
    assert "journal.jsonl" in ran.err
