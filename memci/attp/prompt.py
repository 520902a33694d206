"""The system prompt that teaches a model ATTP, in English and Chinese; the templates lie in the folder ``prompts``."""

from importlib.resources import files
from typing import Final, Literal, get_args

from memci.attp.toolbox import Toolbox
from memci.errors import ConfigError, shown

PLACEHOLDER = "{{AVAILABLE_TOOLS}}"
"""Where a template wants the tools."""

Language = Literal["en", "zh"]

TEMPLATES: Final[dict[Language, str]] = {
    lang: files("memci.attp").joinpath("prompts", f"{lang}.md").read_text(encoding="utf-8") for lang in get_args(Language)
}
"""The built-in templates by language."""


def prompt(toolbox: Toolbox, lang: Language = "en", *, template: str | None = None) -> str:
    """Return the text that tells a model how to call the tools of a toolbox. O(its length).

    Args:
        toolbox: Its tools are written as Python stubs.
        lang: The language of the built-in template.
        template: A template of your own, which holds ``{{AVAILABLE_TOOLS}}``.

    Raises:
        ConfigError: There is no template in this language, or the template does not say where the tools go.
    """
    text = template
    if template is None and isinstance(lang, str):
        text = TEMPLATES.get(lang)
    if text is None:
        message = f"there is no template in {shown(lang)}; use one of {', '.join(TEMPLATES)}, or give a template"
        raise ConfigError(message, path="lang")
    if PLACEHOLDER not in text:
        message = f"it does not hold {PLACEHOLDER}, where the tools go"
        raise ConfigError(message, path="template")
    return text.replace(PLACEHOLDER, toolbox.stubs())
