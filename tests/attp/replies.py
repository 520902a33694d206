"""Replies as models write them, whole and broken, and texts that were made to cost a parser much."""

import re

from memci.attp.document import CodeCall
from memci.attp.runtime import toml

CODE = 'hits = search_pages("march invoices", limit=3)\n__result__ = hits[0]["index"]\n'

HEAD = '[tool_call]\nstatus = "success"\ntarget = "find the page"\n'
CALL = f"{HEAD}code = '''\n{CODE}'''\n"
THOUGHT = 'thought = """The user wants March."""\n'
DOCUMENT = f"{THOUGHT}\n{CALL}"


def with_code(code: str, quote: str = "'''") -> str:
    """Return a reply whose code stands between two lines of quotes."""
    return f"{HEAD}code = {quote}\n{code}{quote}\n"


def call_toml(call: CodeCall, *, thought: str = "") -> str:
    """Return the document that ``parse`` reads as this call and thought."""
    texts = {"status": call.status, "target": call.target, "code": call.code, "message": call.message}
    table = {name: value for name, value in texts.items() if value}
    return toml(({"thought": thought} if thought else {}) | {"tool_call": table})


def ordinary(size: int) -> str:
    """Return a reply of about this many characters, most of them code."""
    line = 'hits = search_pages("march", limit=3)\n'
    return with_code(line * max(1, (size - len(HEAD)) // len(line)))


WRAPPED = {
    "bare": DOCUMENT,
    "fence": f"```toml\n{DOCUMENT}```",
    "fence without a language": f"```\n{DOCUMENT}```\n",
    "tildes": f"~~~toml\n{DOCUMENT}~~~",
    "fence that is not closed": f"```toml\n{DOCUMENT}",
    "prose before": f"Let me look that up.\n{DOCUMENT}",
    "prose after": f"{DOCUMENT}\nI will tell you what I find.",
    "prose around a fence": f"Sure!\n\n```toml\n{DOCUMENT}```\n\nOne moment.",
    "reasoning": f"<think>\nI could write\n[tool_call]\nor so.\n</think>\n{DOCUMENT}",
    "byte order mark": f"\ufeff{DOCUMENT}",
    "CRLF": DOCUMENT.replace("\n", "\r\n"),
    "indented": "".join(f"  {line}\n" if "=" in line and "hits" not in line else f"{line}\n" for line in DOCUMENT.splitlines()),
    "comments": f"# my plan\n{DOCUMENT}# done",
    "spaces in the header": DOCUMENT.replace("[tool_call]", "[ tool_call ]  # now"),
    "array of one table": DOCUMENT.replace("[tool_call]", "[[tool_call]]"),
    "extra keys": DOCUMENT.replace("code =", 'confidence = 0.9\ntags = [\n  "a",\n]\nmeta = { x = 1 }\ncode ='),
    "three double quotes": DOCUMENT.replace("'''", '"""'),
    "status missing": DOCUMENT.replace('status = "success"\n', ""),
    "status shouted": DOCUMENT.replace('"success"', '"SUCCESS"'),
    "zero-width space before the header": DOCUMENT.replace("[tool_call]", "\u200b[tool_call]\u200b"),
    "bold header": DOCUMENT.replace("[tool_call]", "**[tool_call]**  # now"),
    "header as a heading": DOCUMENT.replace("[tool_call]", "### [tool_call]"),
    "header in a list": DOCUMENT.replace("[tool_call]", "- [tool_call]"),
    "shouted header": DOCUMENT.replace("[tool_call]", "[TOOL_CALL]"),
    "escaped header": DOCUMENT.replace("[tool_call]", r"\[tool\_call\]"),
    "special tokens": DOCUMENT.replace("[tool_call]", "<|channel|>final<|message|>[tool_call]"),
    "special tokens with a target": DOCUMENT.replace("[tool_call]", "<|channel|>commentary to=python <|message|>[tool_call]"),
    "bold header behind reasoning": f"<think>\n[tool_call]\n</think>\n{DOCUMENT.replace('[tool_call]', '**[tool_call]**')}",
    "blanks that do not break": re.sub("^(status|target|code) = ", "\u00a0\\1\u3000=\u00a0", DOCUMENT, flags=re.MULTILINE),
    "invisible characters": DOCUMENT.replace("target", "\u200b\n\ufefftarget").replace('success"', 'success"\u200b'),
    "words before the code": DOCUMENT.replace("code =", "Here's the code:\n\ncode ="),
    "Chinese words before the code": DOCUMENT.replace("code =", "\n代码如下：\ncode ="),
    "fence below the header": DOCUMENT.replace("[tool_call]\n", "[tool_call]\n```toml\n") + "```\n",
    "fence below the bold header": DOCUMENT.replace("[tool_call]\n", "**[tool_call]**\n\n```toml\n") + "```\n",
    "thought below the header": f"{HEAD}thought = \"The user wants March.\"\ncode = '''\n{CODE}'''\n",
}
"""The same call, wrapped as models wrap it."""

BROKEN = {
    "two calls": (f"{DOCUMENT}\nand then\n\n{CALL}", 13, "one [tool_call]"),
    "two calls at once": (DOCUMENT + DOCUMENT, 12, "one [tool_call]"),
    "cut off": (DOCUMENT[:-10], 6, "line that holds ''' alone"),
    "text without quotes": (DOCUMENT.replace('"find the page"', "find the page"), 5, "in quotes"),
    "quotes within quotes": (DOCUMENT.replace('"find the page"', '"find the "March" page"'), 5, "three quotes"),
    "one line too many": (DOCUMENT.replace('"find the page"', '"find\nthe page"'), 5, "'''"),
    "invented result": (f'{DOCUMENT}\n[tool_result]\nstatus = "success"\n', 11, "wait"),
    "no header": (DOCUMENT.replace("[tool_call]\n", ""), 1, "[tool_call]"),
    "only a thought": ('thought = "Let me think."', 1, "[tool_call]"),
    "no code": (f'thought = "x"\n\n{HEAD}', 4, "code = '''"),
    "blank code": (with_code("\n"), 4, "between the quotes"),
    "empty code": ("[tool_call]\ncode=''\n", 2, "between the quotes"),
    "nothing": ("[tool_call]\n", 1, 'status = "success" and code = '),
    "YAML": ("[tool_call]\nstatus: success\ncode: |\n  x = 1\n", 2, 'status = "success" and code = '),
    "YAML for the code": ('[tool_call]\nstatus = "success"\n\ncode: |\n  x = 1\n', 4, "code = '''"),
    "YAML before the code": (CALL.replace('status = "success"', "status: fail"), 2, 'status = "success"'),
    "YAML for a message": ('[tool_call]\nstatus = "fail"\nmessage: no tool sends mail\n', 3, 'write message = "…"'),
    "a list": (CALL.replace("status", "- status").replace("target", "- target"), 2, "on a line of its own"),
    "bold keys": (CALL.replace("target", "**target**").replace("code", "**code**"), 3, 'write target = "…"'),
    "code without quotes": ("[tool_call]\nf(1)\ncode = 'x'\n__result__ = code\n", 2, "code = '''"),
    "code in a fence": (f"{HEAD}```python\n{CODE}```\n", 4, "code = '''"),
    "words twice before the code": (CALL.replace("code =", "Let me see.\nHere it is:\ncode ="), 4, "on a line of its own"),
    "words before code on one line": ("[tool_call]\nHere it is:\ncode = 'x'\n", 2, "code = '''"),
    "words instead of the code": (f"{HEAD}I will look for it.", 4, "code = '''"),
    "words before the header": ("Now [tool_call]\nstatus = \"success\"\ncode = 'x'\n", 1, "line of its own"),
    "header in backticks": ("`[tool_call]`\ncode = 'x'\n", 1, "line of its own"),
    "a decorated call before another": (f"**[tool_call]**\ncode = 'x'\n\nor\n\n{CALL}", 1, "one [tool_call]"),
    "a decorated call behind another": (f"{CALL}\n**[tool_call]**\nstatus = 'success'\n", 9, "one [tool_call]"),
    "quoted call": ("> [tool_call]\n> status = \"success\"\n> code = 'x'\n", 2, "line of its own"),
    "code above the header": (f"code = '''\n{CODE}'''\nthought = 'x'\n{HEAD}", 7, "below [tool_call]"),
    "unknown status": (DOCUMENT.replace('"success"', '"maybe"'), 4, '"fail"'),
    "fail without a message": ('[tool_call]\nstatus = "fail"\n', 2, "message ="),
    "fail with code": (DOCUMENT.replace('"success"', '"fail"'), 4, '"success"'),
    "code is a number": (f"{HEAD}code = 3\n", 4, 'code = "'),
    "a key twice": (f'{HEAD}target = "again"\n', 4, "each key once"),
    "control character": (with_code("x = '\x01'\n"), 5, "control characters"),
    "half a pair": (with_code("x = '\ud800'\n"), 5, "whole character"),
    "tool_call is text": ('tool_call = "search"\n', 1, "one [tool_call]"),
    "unclear end of the code": (with_code("x = '''\na\n'''\ny = 1\n"), 4, "# comments"),
    "bracket": (DOCUMENT.replace('"find the page"', '["find"'), 5, "quotes"),
    "no value": (DOCUMENT.replace('"find the page"', ""), 5, "quotes"),
    "long key": (DOCUMENT.replace("target", "a." * 20_000 + "target"), 5, "only keys"),
    "deep value": (DOCUMENT.replace('"find the page"', "[" * 20_000), 5, "leave the key out"),
    "long value": (DOCUMENT.replace('"find the page"', f"[{'1,' * 500}]"), 5, "leave the key out"),
    "many backslashes": (with_code("\\n" * 5_000 + "\n", '"""'), 4, "between '''"),
    "many keys": (HEAD + "".join(f"k{number} = 1\n" for number in range(40)), 31, "only"),
}
"""Replies that are refused: the text, the line that is blamed, and a part of the hint."""

_SIZE = 32_000


def _filled(before: str, unit: str, after: str = "") -> str:
    return before + unit * ((_SIZE - len(before) - len(after)) // len(unit)) + after


HOSTILE = {
    "dotted key": _filled(HEAD, "a.", "b = 1\n"),
    "quoted dotted key": _filled(HEAD, "'a'.", "b = 1\n"),
    "long key": _filled(f'{HEAD}"', "\\u0041", '" = 1\n'),
    "arrays in arrays": _filled(f"{HEAD}x = ", "["),
    "tables in tables": _filled(f"{HEAD}x = ", "{a="),
    "one array": _filled(f"{HEAD}x = [", "1,", f"]\n{CALL}"),
    "arrays": HEAD + "".join(f"x{number} = [1, 1, 1]\n" for number in range(24)) + CALL.removeprefix(HEAD),
    "tables": HEAD + "".join(f"x{number} = {{a=1,b=1}}\n" for number in range(24)) + CALL.removeprefix(HEAD),
    "dates": HEAD + f"x = [{'2020-01-01T00:00:00.123456Z,' * 12}]\n" * 8 + CALL.removeprefix(HEAD),
    "keys": HEAD + "".join(f"k{number} = 1\n" for number in range(24)) + CALL.removeprefix(HEAD),
    "dotted keys": HEAD + "".join(f"k{number}.a.b.c.d.e.f = 1\n" for number in range(24)) + CALL.removeprefix(HEAD),
    "headers": CALL + "".join(f"[a.b.c.d.e.f.t{number}]\n" for number in range(24)),
    "many keys": HEAD + "".join(f"k{number} = 1\n" for number in range(3_000)),
    "many headers": HEAD + "".join(f"[t{number}]\n" for number in range(3_000)),
    "digits": _filled(f"{HEAD}x = ", "1", "\n"),
    "escapes": _filled('thought = "', "\\u0041", f'"\n{CALL}'),
    "unknown escapes": _filled('thought = "', "\\q", f'"\n{CALL}'),
    "unknown escapes in code": _filled(f'{HEAD}code = """\n', "\\d", '\n"""'),
    "newlines in Python strings": _filled(f'{HEAD}code = """\n', "x='\\n'\n", '"""'),
    "backslashes": _filled(f'{HEAD}code = """\n"', "\\\\", '\n"""'),
    "single quotes": _filled(f"{HEAD}code = ", "'"),
    "double quotes": _filled(f"{HEAD}code = ", '"'),
    "pairs of quotes": _filled(f"{HEAD}code = '''\n", "''\n"),
    "lines of three quotes": _filled(f"{HEAD}code = '''\n", "'''\n"),
    "comments": _filled(HEAD, "#\n", CALL.removeprefix(HEAD)),
    "blank lines": _filled(HEAD, "\n", CALL.removeprefix(HEAD)),
    "blanks": _filled(" ", " ", CALL),
    "lines of blanks": _filled("", " " * 99 + "\n", CALL),
    "carriage returns": _filled(HEAD, "\r"),
    "drafts": _filled("", "thought = 1\nx y\n", CALL),
    "open thoughts": _filled("", 'thought = "\n', CALL),
    "markers": _filled("", "[tool_call]\n"),
    "markers and prose": _filled("", "[tool_call]\nand then\n"),
    "reasoning": _filled("<think>", "[tool_call]\n", f"</think>\n{CALL}"),
    "open reasoning": _filled("", "<think>", f"\n{CALL}"),
    "fences": _filled("", "```toml\n", CALL),
    "results": _filled(CALL, "[tool_result]\n"),
    "fences in code": _filled(f"{HEAD}code = '''\n", "```\n", "'''"),
    "prose": _filled("", "word "),
    "decorated headers": _filled("", "**[tool_call]**\n"),
    "headers behind words": _filled("", "so [tool_call]\ncode:\n"),
    "headers on one line": _filled("", "[tool_call] ", "\ncode = "),
    "emphasis": _filled("", "*", "[tool_call]\ncode = ''\n"),
    "emphasis behind a header": _filled("[tool_call]", "*"),
    "special tokens": _filled("", "<|a|>b", "[tool_call]\ncode = ''\n"),
    "special token": _filled("<|a|>", "b", "[tool_call]\ncode = ''\n"),
    "blank lines behind a header": _filled("**[tool_call]**\n", "\n", "code"),
    "words behind a header": _filled("[tool_call]\n", "word "),
    "lines of words behind a header": _filled("[tool_call]\n", "word\n"),
    "zero-width characters": _filled(HEAD, "\u200b", f"\n{CALL.removeprefix(HEAD)}"),
    "lines of zero-width characters": _filled(HEAD, "\u200b\n", CALL.removeprefix(HEAD)),
    "a thought and prose": _filled('thought = "x"\n', "word "),
}
"""Texts that would cost a careless parser much, most of them of about 32,000 characters."""
