"""What a provider answers, or does not, as memci's errors; and what URLs are refused. Nothing secret is ever shown."""

import logging
import socket
from collections.abc import Callable, Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import pytest
from obstore.store import LocalStore, MemoryStore

from memci.archive.stores.objects.io import ObjectIo, parse
from memci.archive.stores.objects.store import ObjectStore
from memci.errors import ConfigError, UnavailableError
from memci.testing.journal_suite import TENANT, append_each, new_record, texts_of

if TYPE_CHECKING:
    from tests.archive.stores.objects.s3_server import S3Server

KEY, SECRET = "shown-to-nobody-id", "shown-to-nobody-key"


class Answering(BaseHTTPRequestHandler):
    """Answers every request with the status that its path's bucket names."""

    def answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.send_response(int(self.path.split("/")[1].partition("?")[0].removeprefix("status-")))
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815 (how the base class calls them)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def answering() -> Iterator[int]:
    """The port of a server that fails."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(autouse=True)
def _credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)


def calls_of(store: ObjectStore) -> list[Callable[[], object]]:
    session = store.open(TENANT, "session")
    return [
        session.journal.head,
        lambda: session.journal.append(0, [new_record()]),
        lambda: list(session.journal.read()),
        lambda: session.pages.put({"usr-1": b""}),
        lambda: session.pages.find("usr-1"),
        lambda: session.snapshots.put(1, b"{}"),
        session.snapshots.find,
        lambda: list(store.sessions(TENANT)),
        lambda: store.delete(TENANT, "session"),
    ]


def check_silent(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    """Neither the text of an error and of its causes, nor a log, shows what is secret."""
    shown = caplog.text
    seen: BaseException | None = error
    while seen is not None:
        shown += str(seen) + repr(seen)
        seen = seen.__cause__
    assert KEY not in shown
    assert SECRET not in shown


@pytest.mark.server
@pytest.mark.parametrize(
    ("status", "text"),
    [
        (500, "answered 500"),
        (503, "answered 503"),
        (403, "credentials"),
        (401, "credentials"),
        (400, "answered 400"),
        (409, "answered"),
    ],
)
def test_what_a_provider_answers_is_an_error_with_advice(
    answering: int, status: int, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A provider that refuses or fails is ``UnavailableError`` from every call, with what to see to."""
    caplog.set_level(logging.DEBUG)
    store = ObjectStore.from_url(
        f"s3://status-{status}/p?endpoint=http://127.0.0.1:{answering}&region=x&allow_http=true&retries=0"
    )
    for call in calls_of(store):
        with pytest.raises(UnavailableError) as caught:
            call()
        check_silent(caught.value, caplog)
    with pytest.raises(UnavailableError, match=text):
        store.open(TENANT, "session").journal.head()
    store.close()


@pytest.mark.server
def test_nobody_there(caplog: pytest.LogCaptureFixture) -> None:
    """Where nothing listens, every call says that there is no answer."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        store = ObjectStore.from_url(f"s3://bucket/p?endpoint=http://127.0.0.1:{port}&region=x&allow_http=true&retries=0")
        for call in calls_of(store):
            with pytest.raises(UnavailableError, match="did not answer: see the network") as caught:
                call()
            check_silent(caught.value, caplog)
        store.close()


@pytest.mark.server
def test_a_provider_that_is_silent_is_given_up() -> None:
    """A request ends after ``timeout_s``."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        store = ObjectStore.from_url(
            f"s3://bucket?endpoint=http://127.0.0.1:{port}&region=x&allow_http=true&retries=0&timeout_s=1"
        )
        with pytest.raises(UnavailableError, match="did not answer"):
            store.open(TENANT, "session").journal.head()
        store.close()


@pytest.mark.server
def test_a_bucket_that_is_missing_is_said(s3: "S3Server") -> None:
    """No call takes a missing bucket for an empty store."""
    store = ObjectStore.from_url(s3.url("no-such-bucket", options="&retries=0"))
    for call in calls_of(store):
        with pytest.raises(UnavailableError, match="bucket"):
            call()
    store.close()


def test_a_directory_is_no_bucket(tmp_path: Path) -> None:
    """A store without conditional puts is refused when a commit needs one, and keeps what it had."""
    journal = ObjectStore(ObjectIo(lambda: LocalStore(tmp_path))).open(TENANT, "session").journal
    append_each(journal, "a")
    with pytest.raises(UnavailableError, match="file:"):
        journal.append(1, [new_record()])
    assert ["a"] == texts_of(journal)


@pytest.mark.parametrize(
    "url",
    [
        *("s3:", "s3:bucket", "s3://", "s3:///prefix", "s3://?region=x", "gs://", "az:///x", "http://host/bucket"),
        f"s3://{KEY}:{SECRET}@bucket/prefix",
        f"s3://bucket/prefix?access_key_id={KEY}&secret_access_key={SECRET}",
        f"s3://bucket/prefix?token={SECRET}",
        f"s3://bucket/prefix?endpoint=http://{KEY}:{SECRET}@host",
        f"s3://bucket/prefix#{SECRET}",
        *("s3://bucket?timeout_s=0", "s3://bucket?timeout_s=x", "s3://bucket?retries=-1", "s3://bucket?retries=99999"),
    ],
)
def test_urls_that_cannot_be_used_are_refused(url: str) -> None:
    """Such a URL is a configuration error that shows no value of an option, no user and no password."""
    with pytest.raises(ConfigError) as caught:
        ObjectStore.from_url(url)
    assert "store" == caught.value.path
    assert KEY not in str(caught.value)
    assert SECRET not in str(caught.value)


def test_an_unknown_option_is_named() -> None:
    """The error names an option that there is not, and says which there are; one without a value is not shown."""
    with pytest.raises(ConfigError, match="there is no option regoin, there are account_name"):
        ObjectStore.from_url("s3://bucket?regoin=eu-central-1")
    with pytest.raises(ConfigError, match="it has an unknown option, there are account_name") as caught:
        ObjectStore.from_url(f"s3://bucket?{SECRET}")
    assert SECRET not in str(caught.value)


def test_a_weaker_durability_is_refused() -> None:
    """There is no promise of an object store that is weaker than its provider's acknowledgement."""
    with pytest.raises(ConfigError, match="fsync") as caught:
        ObjectStore.from_url("s3://bucket", "flush")
    assert "durability" == caught.value.path


def test_options_of_a_url() -> None:
    """Options are percent-decoded, and what is not given has a default."""
    address, options, index_dir, index_bytes = parse(
        "s3://bucket/a/b?endpoint=http%3A%2F%2Fhost%3A1&memci_index=./x%20y&memci_index_bytes=7&timeout_s=5&retries=0&allow_http=true"
    )
    assert "s3://bucket/a/b" == address
    timeout = timedelta(seconds=5)
    assert {
        "config": {"endpoint": "http://host:1"},
        "client_options": {"allow_http": "true", "timeout": timeout, "connect_timeout": timeout},
        "retry_config": {"max_retries": 0, "retry_timeout": timeout},
    } == options
    assert ("./x y", 7) == (index_dir, index_bytes)
    _, options, index_dir, _ = parse("gs://b")
    assert (None, timedelta(seconds=30), 3) == (
        index_dir,
        options["client_options"]["timeout"],
        options["retry_config"]["max_retries"],
    )


@pytest.mark.parametrize("url", ["az://container/prefix", "s3://bucket?allow_http=perhaps&region=x"])
def test_what_the_driver_refuses_is_a_configuration_error(url: str) -> None:
    """An account that is missing, or an option that is no such value, is told with the first request."""
    with pytest.raises(ConfigError, match="no client") as caught:
        ObjectStore.from_url(url).open(TENANT, "session").journal.head()
    assert "store" == caught.value.path


def test_pages_need_a_session() -> None:
    """Pages and snapshots of a session that has no record are refused: nothing could tell them from those of a deleted one."""
    session = ObjectStore(ObjectIo(MemoryStore)).open(TENANT, "session")
    with pytest.raises(UnavailableError, match="append"):
        session.pages.put({"usr-1": b""})
    with pytest.raises(UnavailableError, match="append"):
        session.snapshots.put(1, b"{}")
