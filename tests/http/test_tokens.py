"""Tokens: what the file of their hashes holds, who is found by one, and what a scope is good for."""

from pathlib import Path

import pytest

from memci.errors import ConfigError, InvalidIdError
from memci.http.tokens import Scope, Tokens, new_token

PLAIN = '"0a": {"tenant": "t", "scope": "read", "sha256": "00"}\n'


def test_a_token_is_found_by_what_was_shown(tmp_path: Path) -> None:
    """Its tenant and its scope are those that it was made for."""
    path = tmp_path / "tokens.yaml"
    made = {scope: new_token(path, f"tenant of {scope}", scope) for scope in Scope}
    tokens = Tokens(path)
    for scope, token in made.items():
        caller = tokens.find(token)
        assert caller is not None
        assert (f"tenant of {scope}", scope) == (caller.tenant, caller.scope)


def test_the_file_has_no_token(tmp_path: Path) -> None:
    """Only hashes are written down, and only the owner of the file reads these."""
    path = tmp_path / "tokens.yaml"
    secret = new_token(path, "t", Scope.READ).partition("_")[2].partition("_")[2]
    assert len(secret) >= 43
    assert secret not in path.read_text()
    assert 0o600 == path.stat().st_mode & 0o777


@pytest.mark.parametrize("spoil", ["", "memci_", "memci", "x", "{}x", "x{}", "{}_", " {}", "memci_0a_", "memci_{id}_"])
def test_nobody_is_found_by_anything_else(tmp_path: Path, spoil: str) -> None:
    """A token that is cut, longer or of another secret is nobody's."""
    path = tmp_path / "tokens.yaml"
    path.write_text(PLAIN)
    token = new_token(path, "t", Scope.READ)
    assert Tokens(path).find(spoil.replace("{id}", token.split("_")[1]).replace("{}", token)) is None
    assert Tokens(path).find(token[:-1] + ("a" if token[-1] != "a" else "b")) is None


@pytest.mark.parametrize(
    ("scope", "good_for"),
    [(Scope.READ, {Scope.READ}), (Scope.WRITE, {Scope.READ, Scope.WRITE}), (Scope.ADMIN, set(Scope))],
)
def test_a_scope_holds_those_before_it(scope: Scope, good_for: set[Scope]) -> None:
    """Whoever may write may read, and whoever administers may do both."""
    assert good_for == {other for other in Scope if scope.allows(other)}


def test_a_line_that_is_taken_out_ends_a_token(tmp_path: Path) -> None:
    """The file is read again when it changes, without a new server."""
    path = tmp_path / "tokens.yaml"
    first = new_token(path, "t", Scope.READ)
    tokens = Tokens(path)
    second = new_token(path, "t", Scope.READ)
    assert None not in (tokens.find(first), tokens.find(second))
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if first.split("_")[1] not in line))
    assert tokens.find(first) is None
    assert tokens.find(second) is not None


def test_a_file_that_breaks_leaves_what_was_known(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A slip of whoever edits it locks nobody out, and the log says so."""
    path = tmp_path / "tokens.yaml"
    token = new_token(path, "t", Scope.READ)
    tokens = Tokens(path)
    path.write_text("- no mapping")
    assert tokens.find(token) is not None
    assert "the tokens stay as they were" in caplog.text


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: 1", "a"),
        ("a: {tenant: t, scope: read}", "a"),
        ("a: {tenant: t, scope: all, sha256: '00'}", "a"),
        ("a: {tenant: '', scope: read, sha256: '00'}", "a"),
        ("a: {tenant: t, scope: read, sha256: 0}", "a"),
        ("a: {tenant: t, scope: read, sha256: '00', more: x}", "a"),
        ("- a", ""),
    ],
)
def test_a_file_of_no_tokens_is_refused(tmp_path: Path, text: str, place: str) -> None:
    """The error names the token that is none, and a new one is not written into such a file."""
    path = tmp_path / "tokens.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as refusal:
        Tokens(path)
    assert place == refusal.value.path
    with pytest.raises(ConfigError):
        new_token(path, "t", Scope.READ)
    assert text == path.read_text()


def test_a_token_is_appended_to_what_there_is(tmp_path: Path) -> None:
    """Comments and tokens stay, also where the last line has no end."""
    path = tmp_path / "tokens.yaml"
    path.write_text(f"# of the support desk\n{PLAIN.rstrip()}")
    token = new_token(path, "t", Scope.READ)
    assert path.read_text().startswith(f"# of the support desk\n{PLAIN}")
    assert Tokens(path).find(token) is not None


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """A server needs it; a new token makes it, where that can be written, for a tenant that can be one."""
    with pytest.raises(ConfigError):
        Tokens(tmp_path / "none.yaml")
    with pytest.raises(ConfigError, match="cannot be written"):
        new_token(tmp_path / "no" / "tokens.yaml", "t", Scope.READ)
    with pytest.raises(InvalidIdError):
        new_token(tmp_path / "tokens.yaml", "", Scope.READ)
    assert [] == list(tmp_path.iterdir())
