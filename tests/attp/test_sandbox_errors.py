import pytest
from hypothesis import given
from hypothesis import strategies as st

from memci.attp.host_error import MAX_MESSAGE_CHARS, safe_message, sandbox_name
from memci.errors import PageEvictedError, PageNotFoundError, StoreError


class OwnError(Exception):
    pass


class OwnLookupError(OwnError, KeyError):
    pass


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("cannot open /var/lib/memci/pages/usr-1.json", "cannot open …"),
        ("cannot open '/home/ann/My Files/a.txt': no", "cannot open '…': no"),
        ('see "/srv/x y/z"', 'see "…"'),
        ("see ~/.ssh/id_rsa.", "see …"),
        ("in C:\\Users\\ann\\memci\\a.py", "in …"),
        ("file:///etc/passwd is not there", "… is not there"),
        ("<Store object at 0x7f00deadbeef> is closed", "<Store object> is closed"),
        ("read at 0x7FFFDEADBEEF", "read"),
        ("connection to 10.0.0.5:5432 refused", "connection to … refused"),
        ("broken\nTraceback (most recent call last):\n  File \"/a/b.py\", line 1\nKeyError: 'x'", "broken"),
        ("half \ud800", "half \\ud800"),
    ],
)
def test_nothing_of_the_machine_is_told(message: str, expected: str) -> None:
    """Paths, memory and network addresses, and tracebacks are taken out of a message; the rest stays."""
    assert expected == safe_message(ValueError(message))


@pytest.mark.parametrize(
    "message",
    [
        "page usr-12/3 has no entry 9",
        "use and/or",
        "3/4 of 10",
        "at 10:30",
        "version 1.2.3",
        "limit: 1–50",
        "未找到页面 usr-3",
        "0x1F",
    ],
)
def test_ordinary_messages_stay_whole(message: str) -> None:
    """What only looks a little like a path or an address is told as it is."""
    assert message == safe_message(ValueError(message))


def test_system_errors_tell_what_happened_without_the_file() -> None:
    """Of an error of the system, its sentence is told, and not the path that it names."""
    assert "No such file or directory" == safe_message(FileNotFoundError(2, "No such file or directory", "/etc/shadow"))


def test_a_missing_key_is_told_without_quotes() -> None:
    """A ``KeyError`` tells its key, as the sandbox writes it."""
    assert "usr-3" == safe_message(KeyError("usr-3"))


def test_memcis_errors_say_what_to_do() -> None:
    """The advice in memci's own errors reaches the model."""
    assert "search" in safe_message(PageEvictedError("usr-3"))
    assert "there is no page usr-99" == safe_message(PageNotFoundError("there is no page usr-99", index="usr-99"))


@given(text=st.text(max_size=3_000))
def test_messages_have_an_end(text: str) -> None:
    """No message is longer than a model should read, and each can be written as UTF-8."""
    message = safe_message(ValueError(text))
    assert len(message) <= MAX_MESSAGE_CHARS
    message.encode()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError(), "ValueError"),
        (OwnLookupError(), "KeyError"),
        (FileNotFoundError(), "FileNotFoundError"),
        (ConnectionError(), "OSError"),
        (UnicodeDecodeError("utf-8", b"", 0, 1, ""), "ValueError"),
        (OwnError(), "RuntimeError"),
        (StoreError(), "RuntimeError"),
    ],
)
def test_exceptions_keep_their_kind(error: Exception, expected: str) -> None:
    """The sandbox sees the nearest of Python's exceptions that it knows, and a ``RuntimeError`` for all others."""
    assert expected == sandbox_name(error)
