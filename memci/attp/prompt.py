"""The system prompt that teaches a model ATTP, in English and Chinese."""

from typing import Literal

from memci.attp.toolbox import Toolbox
from memci.errors import ConfigError, shown

PLACEHOLDER = "{{AVAILABLE_TOOLS}}"
"""Where a template wants the tools."""

Language = Literal["en", "zh"]

_ENGLISH = """\
# Tools

To answer the user, write plain text. To use tools, write nothing but one TOML document:

thought = \"\"\"why, and with which tool\"\"\"

[tool_call]
status = "success"
target = "what this call is for"
code = '''
__result__ = some_tool("text", limit=3)
'''

- `code` is Python. It calls the tools below as plain functions, several if need be, and assigns what you want to see to \
`__result__`: plain data, short.
- Never write ''' inside `code`. End it with a line that holds ''' alone, and end your reply there.
- No import; datetime, json, math, random, re and statistics are there. No files, no network, no names that begin with _ but \
`__result__`, no yield, del or class that inherits. Time, memory and output are limited; nothing is kept from one call to \
the next.
- The answer comes as [tool_result], with `result` or `error`. After an error, mend the call or do without it. Never write \
[tool_result] yourself.
- If no tool can do what is needed, write status = "fail" and, in place of `code`, message = "what is missing, and what to do \
instead".

Available tools:

```python
{{AVAILABLE_TOOLS}}
```
"""

_CHINESE = """\
# 工具

回答用户时，直接写普通文字。要用工具时，只写一个 TOML 文档，不写别的：

thought = \"\"\"为什么，用哪个工具\"\"\"

[tool_call]
status = "success"
target = "这次调用的目的"
code = '''
__result__ = some_tool("text", limit=3)
'''

- `code` 是 Python，像普通函数一样调用下列工具，可调用多个，并把要看的内容赋给 `__result__`：纯数据，要简短。
- `code` 中不要出现 '''；用单独一行 ''' 结束，回复到此为止。
- 不要 import；datetime、json、math、random、re、statistics 可直接使用。不能访问文件和网络，\
除 `__result__` 外不能用以 _ 开头的名称，不支持 yield、del 和类的继承。时间、内存、输出有限；两次调用之间什么都不保留。
- 结果以 [tool_result] 返回，含 `result` 或 `error`。出错时修改后重试，或改用别的办法。不要自己写 [tool_result]。
- 如果没有工具能完成，写 status = "fail"，并用 message = "缺什么，可以怎么做" 代替 `code`。

可用工具：

```python
{{AVAILABLE_TOOLS}}
```
"""

TEMPLATES: dict[Language, str] = {"en": _ENGLISH, "zh": _CHINESE}
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
