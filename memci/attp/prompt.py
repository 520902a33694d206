"""The system prompt that teaches a model ATTP, in English and Chinese; the templates lie in the folder ``prompts``."""

from importlib.resources import files
from typing import Final, Literal, get_args

from memci.attp.toolbox import Toolbox
from memci.errors import ConfigError, shown

PLACEHOLDER = "{{AVAILABLE_TOOLS}}"  # where a template wants the tools

Language = Literal["en", "zh"]

TEMPLATES: Final[dict[Language, str]] = {
    lang: files("memci.attp").joinpath("prompts", f"{lang}.md").read_text(encoding="utf-8") for lang in get_args(Language)
}
"""The built-in templates by language."""


def prompt(toolbox: Toolbox, lang: Language = "en", *, template: str | None = None) -> str:
    """Return the text that tells a model how to call the tools of a toolbox, which stand in it as Python stubs. O(its length).

    *template* is one of your own, which holds ``{{AVAILABLE_TOOLS}}``, instead of the built-in one of this language. Raises
    ``ConfigError`` where there is none in this language, or where it does not say where the tools go.
    """
    if template is None and lang not in tuple(TEMPLATES):
        message = f"there is no template in {shown(lang)}; use one of {', '.join(TEMPLATES)}, or give a template"
        raise ConfigError(message, path="lang")
    text = TEMPLATES[lang] if template is None else template
    if PLACEHOLDER not in text:
        message = f"it does not hold {PLACEHOLDER}, where the tools go"
        raise ConfigError(message, path="template")
    return text.replace(PLACEHOLDER, toolbox.stubs())
