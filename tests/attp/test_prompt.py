"""The prompt teaches the form that the parser reads, and costs what the documentation says."""

import re
from pathlib import Path

import pytest

from memci.attp.document import parse
from memci.attp.prompt import PLACEHOLDER, TEMPLATES, Language, prompt
from memci.attp.toolbox import MODULES, Toolbox
from memci.errors import ConfigError
from memci.messages.tokens.counter import get_counter

LANGUAGES: tuple[Language, ...] = ("en", "zh")


@pytest.fixture
def toolbox() -> Toolbox:
    made = Toolbox()

    @made.register
    def order_status(order: str) -> str:
        """Tell where an order is; {{AVAILABLE_TOOLS}} in a docstring is text."""
        return order

    return made


@pytest.mark.parametrize("lang", LANGUAGES)
def test_tools_stand_in_the_prompt(lang: Language, toolbox: Toolbox) -> None:
    """The template's place for tools holds their stubs, and the modules are named that code may use."""
    text = prompt(toolbox, lang)
    assert toolbox.stubs() in text
    assert TEMPLATES[lang].replace(PLACEHOLDER, toolbox.stubs()) == text
    assert [] == [name for name in MODULES if name not in TEMPLATES[lang]]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_form_in_the_prompt_is_read(lang: Language) -> None:
    """The document that the prompt shows is a call."""
    shown = re.search(r"^thought = .*?^'''\n", TEMPLATES[lang], re.MULTILINE | re.DOTALL)
    assert shown is not None
    call = parse(shown[0]).call
    assert call is not None
    assert '__result__ = some_tool("text", limit=3)\n' == call.code


@pytest.mark.parametrize("lang", LANGUAGES)
def test_prompt_costs_what_is_documented(lang: Language) -> None:
    """Without tools the prompt costs as many tokens of o200k_base as docs/attp.md says, and fewer than 300."""
    tokens = get_counter("o200k_base").count(TEMPLATES[lang].replace(PLACEHOLDER, ""))
    documented = (Path(__file__).parents[2] / "docs" / "attp.md").read_text(encoding="utf-8")
    assert f"| `{lang}` | {tokens} |" in documented
    assert tokens < 300


def test_own_template_is_filled(toolbox: Toolbox) -> None:
    """A template of the application's own needs the place for the tools only."""
    assert f"Use these:\n{toolbox.stubs()}\n!" == prompt(toolbox, template="Use these:\n{{AVAILABLE_TOOLS}}\n!")


def test_template_without_a_place_is_refused(toolbox: Toolbox) -> None:
    """A template that would hide the tools, and a language that is not there, are errors that say so."""
    with pytest.raises(ConfigError, match="AVAILABLE_TOOLS"):
        prompt(toolbox, template="no tools")
    with pytest.raises(ConfigError, match="en, zh"):
        prompt(toolbox, "fr")  # type: ignore[arg-type]
