"""A command in this process, and a store with one session."""

import pytest

from memci.cli.app import main
from tests.cli.stored import Ran, Run, chat, store_chat


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command in this process, in an environment without a store."""
    monkeypatch.delenv("MEMCI_STORE", raising=False)

    def run(*arguments: object) -> Ran:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        written = capsys.readouterr()
        return Ran(int(code), written.out, written.err)

    return run


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of a store with the session ``boiler`` of 40 turns, most of them archived. No test writes to it."""
    return store_chat(tmp_path_factory.mktemp("store"), "boiler", chat(40))
