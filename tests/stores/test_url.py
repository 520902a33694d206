"""Stores by URL."""

from pathlib import Path

import pytest

import memci
from memci.archive.stores.file import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.object import ObjectStore
from memci.archive.stores.postgres import PostgresStore
from memci.archive.stores.sqlite import SqliteStore
from memci.archive.stores.url import open_store, shown_url
from memci.errors import ConfigError
from memci.testing.journal_suite import TENANT, append_each


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("file:./chats", "chats"),
        ("file:chats", "chats"),
        ("file:a/b c%20ü", "a/b c%20ü"),
        ("file:{root}/abs", "abs"),
        ("file://{root}/abs", "abs"),
    ],
)
def test_a_file_url_names_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, place: str) -> None:
    """Relative and absolute paths are taken as they are, and the directory is made with the first record."""
    monkeypatch.chdir(tmp_path)
    store = open_store(url.format(root=tmp_path), "flush")
    assert isinstance(store, FileStore)
    assert "flush" == store.durability
    assert [] == list(tmp_path.iterdir())
    append_each(store.open(TENANT, "session").journal, "a")
    assert (tmp_path / place / TENANT / "session" / "journal.jsonl").is_file()
    store.close()


@pytest.mark.parametrize(("url", "place"), [("sqlite:///a b%20/chats.db", "a b%20/chats.db"), ("sqlite:///{root}/x.db", "x.db")])
def test_an_sqlite_url_names_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, place: str) -> None:
    """Relative and absolute paths are taken as they are, and the database is made with the first record."""
    monkeypatch.chdir(tmp_path)
    store = open_store(url.format(root=tmp_path), "flush")
    assert isinstance(store, SqliteStore)
    assert "flush" == store.durability
    assert [] == list(tmp_path.iterdir())
    append_each(store.open(TENANT, "session").journal, "a")
    assert (tmp_path / place).is_file()
    store.close()


def test_a_relative_directory_is_meant_from_where_it_was_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changing the working directory later does not move the store."""
    monkeypatch.chdir(tmp_path)
    store = open_store("file:chats")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    append_each(store.open(TENANT, "session").journal, "a")
    assert (tmp_path / "chats" / TENANT).is_dir()
    store.close()


def test_files_are_synced_unless_said_otherwise() -> None:
    """The durability of a store that was opened without one is ``fsync``."""
    assert "fsync" == open_store("file:./chats").durability


def test_memory_is_a_new_store_each_time() -> None:
    """Two memory stores share nothing and say what survives."""
    store = open_store("memory:")
    assert isinstance(store, MemoryStore)
    append_each(store.open(TENANT, "session").journal, "a")
    assert [] == list(open_store("memory:").sessions(TENANT))
    assert "memory" == store.durability


@pytest.mark.parametrize("scheme", ["postgresql", "postgres"])
def test_a_postgresql_url_names_a_database(scheme: str) -> None:
    """Nothing is connected to when such a store is opened, and no URL is read but for memci's own parameters."""
    store = open_store(f"{scheme}://user:secret@nowhere.invalid/chats?memci_pool=2&sslmode=require", "flush")
    assert isinstance(store, PostgresStore)
    assert ("flush", 0) == (store.durability, store.io.connections)
    store.close()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://user:secret@host/chats?sslmode=require", "postgresql://…@host/chats?…"),
        ("postgres://user:se/cr@et@host/chats?password=secret", "postgres://…@host/chats?…"),
        ("s3://bucket/prefix?secret_access_key=secret", "s3://bucket/prefix?…"),
        ("file:./what?/@", "file:./what?/@"),
        ("sqlite:///what?/@.db", "sqlite:///what?/@.db"),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    """User, password and parameters are left out of what is shown of a URL; paths are shown as they are."""
    assert shown == shown_url(url)


def test_a_config_shows_no_secret() -> None:
    """What is shown of a config names the store without its password."""
    config = memci.Config(store="postgresql://user:secret@host/chats")
    assert "store='postgresql://…@host/chats'" in repr(config)
    assert "postgresql://user:secret@host/chats" == config.store


@pytest.mark.parametrize("url", ["postgre://user:secret@host/chats", "mysql://host/chats?password=secret"])
def test_a_refused_url_shows_no_secret(url: str) -> None:
    """The error of a URL that is no store names neither password nor parameters."""
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("parameters", ["memci_pool=0", "memci_pool=x", "memci_pool=", "memci_pool=²", "memci_size=1"])
def test_a_wrong_parameter_is_refused(parameters: str) -> None:
    """A parameter of memci's own that is unknown or no number is a configuration error that shows no password."""
    with pytest.raises(ConfigError, match="memci_pool") as caught:
        open_store(f"postgresql://user:secret@host/chats?{parameters}")
    assert "store" == caught.value.path
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["s3://bucket", "gs://bucket/prefix", "az://container/prefix?account_name=x", "s3://b?region=x"])
def test_a_bucket_url_names_objects(url: str) -> None:
    """Objects are durable when the provider has acknowledged them, and opening such a store makes no request."""
    store = open_store(url)
    assert isinstance(store, ObjectStore)
    assert "fsync" == store.durability
    assert {} == store.io.requests
    store.close()


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "chats",
            "./chats",
            "file",
            "file:",
            "file://",
            "file://host/chats",
            "memory",
            "memory:x",
            "ftp://x",
            "FILE:x",
            ":",
        ),
        *("sqlite:", "sqlite:x.db", "sqlite://x.db", "sqlite:///", "sqlite:///x/", "sqlite://///x.db", "sqlite:///\0"),
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    """What is no URL of a store is a configuration error that names the known ones."""
    with pytest.raises(ConfigError, match="memory:") as caught:
        open_store(url)
    assert "store" == caught.value.path


def test_an_unknown_durability_is_refused() -> None:
    """A durability that is not known is a configuration error, whatever the store."""
    with pytest.raises(ConfigError, match="flush") as caught:
        open_store("memory:", "sometimes")
    assert "durability" == caught.value.path
