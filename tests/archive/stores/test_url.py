"""Stores by URL."""

import traceback
from pathlib import Path

import pytest

import memci
from memci.archive.stores.file.store import FileStore
from memci.archive.stores.memory import MemoryStore
from memci.archive.stores.objects.store import ObjectStore
from memci.archive.stores.sql.postgres import PostgresStore
from memci.archive.stores.sql.postgres_connections import _SHARED
from memci.archive.stores.sql.sqlite import SqliteStore
from memci.archive.stores.url import open_store, place_of, shown_url
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
    store = open_store(f"{scheme}://user:secret@never.{scheme}.invalid/chats?memci_pool=2&sslmode=require", "flush")
    assert isinstance(store, PostgresStore)
    assert "flush" == store.durability
    assert not any("never." in url for _, url, _, _ in _SHARED)
    store.close()


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://user:secret@host/chats?sslmode=require", "postgresql://…@host/chats?…"),
        ("postgres://user:se/cr@et@host/chats?password=secret", "postgres:…"),
        ("postgresql://host/chats?user=a@b&password=secret", "postgresql://host/chats?…"),
        ("postgresql://user:secret@[::1]:5432,other:5433/chats", "postgresql://…@[::1]:5432,other:5433/chats"),
        ("s3://bucket/prefix?secret_access_key=secret", "s3://bucket/prefix?…"),
        ("s3://key:secret@bucket", "s3:…"),
        ("redis://user:secret@host:6379/0?store=file:x", "redis://…@host:6379/0?…"),
        ("redis+unix://:secret@/run/redis?store=file:x", "redis+unix://…@/run/redis?…"),
        ("redis://user:s/secret@host?store=file:x", "redis:…"),
        ("memory:", "memory:"),
        ("memory:secret", "memory:…"),
        ("HTTPS:user:secret@host", "HTTPS:…"),
        ("mysql://user:secret@host", "mysql:…"),
        ("./chats", "./chats"),
        ("user@secret", "…"),
        ("sqlite:chats.db", "sqlite:chats.db"),
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


MALFORMED = [
    *("redis://u:s@secret@h/0?store=memory:", "redis://u:s/secret@h/0?store=memory:", "redis://u:s3?secret@h/0?store=memory:"),
    *("redis:u:secret@h", "redis://h/0?store=memory:&secret", "redis://h?store=u:secret@h", "redis://u:secret/0?store=memory:"),
    *("postgre://user:secret@host/chats", "mysql://host/chats?password=secret", "https:bob:secret@h", "http://bob:secret@h"),
    *("postgresql:bob:secret@host/db", "postgresql:/bob:secret@host/db", "POSTGRESQL://bob:secret@host/db"),
    *("sqlite://bob:secret@h/db", "sqlite:bob:secret@h/db", "file://bob:secret@h/db", "bob:secret@h/db", "bob@secret"),
    *("file://secret@h", "sqlite://h/db?key=secret", "file://h?password=secret", "sqlite:password=secret"),
    *("host=localhost password=secret dbname=x", "//bob:secret@h/db", "memory:secret"),
    *("postgresql://bob:s3@secret@127.0.0.1/db", "postgresql://bob:s3/secret@host/db", "postgresql://bob:secret/x@host/db"),
    *("postgresql://bob:1/secret@host/db", "postgresql://bob:s3?secret@host/db", "postgresql://bob:1?secret@host/db"),
    *("postgresql://bob:secret", "postgresql://bob:1?a=secret@host/db", "postgresql://bob:s3@h:secret@host/db"),
    *("postgresql://host/db?memci_pool=secret", "postgresql://host/db?memci_secret=1", "postgresql://host/db?secret"),
    *(
        "s3://key:secret@bucket",
        "s3://key:se/secret@bucket",
        "s3://key:s3?secret@bucket",
        "s3://key:s?a=secret@b",
        "s3://b?secret",
    ),
]


@pytest.mark.parametrize("url", MALFORMED)
def test_a_refused_url_shows_no_secret(url: str) -> None:
    """A malformed URL is refused when it is opened, and neither the whole traceback nor a config shows a part of its password."""
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert "store" == caught.value.path
    # The name of this test is no password.
    shown = [line for line in traceback.format_exception(caught.value) if not line.startswith("  File")]
    assert "secret" not in "".join(shown)
    assert "secret" not in repr(memci.Config(store=url))


def test_an_unescaped_password_is_refused_with_advice() -> None:
    """Where a password holds an @ as it is, the error says how to write it; written so, the URL is taken."""
    with pytest.raises(ConfigError, match="%40"):
        open_store("postgresql://bob:s3cr3t@pw@127.0.0.1/db")
    open_store("postgresql://bob:s3cr3t%40pw@127.0.0.1/db").close()


@pytest.mark.parametrize(
    "place",
    [
        *("", "host", "host:5432/db", "user@", "user@host", ":pass@host", "user:pass:more@host/db", "user:pa#ss@host/db"),
        *("/db", "user:pass@/db?host=/run/postgresql", "user:pass@%2Frun%2Fpostgresql/db", "[::1]:5432/db", "a:1,b:2,[::3]/db"),
        *(
            "host?connect_timeout=1",
            "host/?a=b&c=",
            "host/db?user=bob@corp&password=p@ss/w?rd",
            "host/db?options=-c%20a%3Db",
            "h/db?",
        ),
    ],
)
def test_clear_postgresql_urls_are_taken(place: str) -> None:
    """Whatever libpq documents of a URL is taken."""
    open_store(f"postgresql://{place}").close()


@pytest.mark.parametrize("value", [b"file:secret", ["postgresql://bob:secret@h"], {"secret": 1}])
def test_what_is_no_text_is_not_shown(value: object) -> None:
    """A store that is no text is refused by its type, in a config and by an engine."""
    with pytest.raises(ConfigError, match=type(value).__name__) as caught:
        memci.Config(store=value)  # type: ignore[arg-type]
    assert ("store", False) == (caught.value.path, "secret" in str(caught.value))
    with pytest.raises(ConfigError, match=type(value).__name__) as caught:
        memci.Engine(value)  # type: ignore[arg-type]
    assert ("store", False) == (caught.value.path, "secret" in str(caught.value))


def test_a_broken_file_shows_no_secret(tmp_path: Path) -> None:
    """The whole traceback of a file that is not YAML names the line and does not quote it."""
    path = tmp_path / "memci.yaml"
    path.write_text("store: postgresql://bob:hush@h: x", encoding="utf-8")
    with pytest.raises(ConfigError, match="line 1") as caught:
        memci.Config.from_file(path)
    assert "hush" not in "".join(traceback.format_exception(caught.value))


def test_one_place_has_many_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two URLs of one directory or one file have the same place, others have not."""
    monkeypatch.chdir(tmp_path)
    Path("link").symlink_to(tmp_path / "chats")
    directories = ["file:chats", "file:./chats/", f"file:{tmp_path}/chats", f"file://{tmp_path}/x/../chats", "file:link"]
    assert 1 == len({place_of(url) for url in directories})
    assert place_of("sqlite:///x.db") == place_of(f"sqlite:///{tmp_path}/x.db") != place_of("file:x.db")
    assert "s3://bucket/a" == place_of("s3://bucket/a")


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
    assert store.io._driver is None
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
