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
    assert plain == {"attrs", "orjson", "pyyaml", "tiktoken"}


def test_extra_all_is_all() -> None:
    """The extra ``all`` brings what every other extra brings, but for those of the developers."""
    required = [Requirement(line) for line in metadata.requires("memci") or []]
    brought: dict[str, set[str]] = {}
    for extra in metadata.metadata("memci").get_all("Provides-Extra") or []:
        brought[extra] = {each.name for each in required if each.marker and each.marker.evaluate({"extra": extra})}
    assert brought["all"] == set().union(
        *(brought[extra] for extra in brought if extra not in {"all", "dev", "docs", "test", "test-all"})
    )
