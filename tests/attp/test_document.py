"""Replies are read as models write them, and refused with a hint where there is no one way to read them."""

import pytest

from memci.attp.document import MAX_REPLY_BYTES, CodeCall, Reply, parse
from memci.errors import AttpError, AttpSyntaxError, LimitExceededError
from tests.attp.replies import BROKEN, CALL, CODE, DOCUMENT, HEAD, WRAPPED, with_code


def code_of(text: str) -> str:
    """Return the code of a reply that has to hold a call."""
    call = parse(text).call
    assert call is not None
    return call.code


@pytest.mark.parametrize("text", WRAPPED.values(), ids=WRAPPED.keys())
def test_call_is_read_however_it_is_wrapped(text: str) -> None:
    """Fences, prose, reasoning, line ends, extra keys and small slips do not change what is read."""
    expected = CodeCall(status="success", target="find the page", code=CODE)
    assert Reply(thought="The user wants March.", call=expected) == parse(text)


def test_thought_may_be_missing() -> None:
    """A call without a thought is a call."""
    assert Reply(call=CodeCall(status="success", target="find the page", code=CODE)) == parse(CALL)


def test_failure_carries_its_message() -> None:
    """A model can say that no tool does what is needed."""
    text = '[tool_call]\nstatus = "fail"\nmessage = "no tool sends mail; write it yourself"\n'
    assert CodeCall(status="fail", message="no tool sends mail; write it yourself") == parse(text).call


@pytest.mark.parametrize(
    "text",
    [
        "It arrives on Friday.",
        "",
        "Write [tool_call] above the keys.",
        "| `[tool_call]` | opens the table |",
        "Write **[tool_call]**\nand below it the keys.",
        "A line `[tool_call]`:\nstatus: what it is",
        "**[tool_call]**",
        "[TOOL_CALL]\n\nopens the table",
        '```python\ncode = "x"\nprint(code)\n```',
        '```toml\n[project]\nname = "memci"\n```',
        'status = "open"\nowner = "me"',
        'message = "unterminated\n',
        '{"tool_call": {"code": "1"}}',
        "x" * 200_000,
        "\ud800",
    ],
)
def test_reply_without_a_call_is_a_plain_answer(text: str) -> None:
    """Whatever opens no table ``tool_call`` on a line of its own is an answer, of any size."""
    assert Reply(answer=text.strip()) == parse(text)


def test_no_content_is_an_empty_answer() -> None:
    """The content of a message may be null, which says nothing."""
    assert Reply() == parse(None)


def test_answer_behind_a_thought_is_an_answer() -> None:
    """A model that thinks in TOML and answers in words has answered."""
    assert Reply(thought="easy", answer="It is 4.") == parse('thought = "easy"\n\nIt is 4.')
    assert Reply(thought="easy", answer="It is 4.") == parse('```toml\nthought = "easy"\n```\nIt is 4.')


@pytest.mark.parametrize("code", ["__result__ = 1", "f('a')", "  indented"])
def test_code_may_stand_on_one_line(code: str) -> None:
    """Code of one line may stand in quotes of any kind that it does not hold."""
    quotes = [quote for quote in ("'''", '"""', '"', "'") if quote not in code]
    assert [code] * len(quotes) == [code_of(f"{HEAD}code = {quote}{code}{quote}") for quote in quotes]


def test_call_may_be_an_inline_table() -> None:
    """What TOML lets a model write on one line is read."""
    assert "x = 1" == code_of('tool_call = { status = "success", code = "x = 1" }')
    assert "x = 1" == code_of('tool_call.status = "success"\ntool_call.code = "x = 1"')


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    '''Say it.'''\n    return 1\n__result__ = f()\n",
        "def f():\n    '''\n    Say it.\n    '''\n    return 1\n",
        "x = '''a'''\n",
        "text = '''\n[tool_call]\n  '''\n",
    ],
)
def test_code_may_hold_its_own_quotes(code: str) -> None:
    """Code that holds the quotes around it ends at the one line that holds nothing else."""
    assert code == code_of(with_code(code))
    assert code == code_of(f"```toml\n{with_code(code)}```\nThat is '''all'''.")
    doubled = code.replace("'''", '"""')
    assert doubled == code_of(with_code(doubled, '"""'))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('x = "a\\nb"\n', 'x = "a\\nb"\n'),
        ('re.findall("\\d+", text)\n', 're.findall("\\d+", text)\n'),
        ('x = "\\n".join(re.split(r"\\s", text))\n', 'x = "\\n".join(re.split(r"\\s", text))\n'),
        ('x = \\"a\\\\nb\\"\n', 'x = "a\\nb"\n'),
        ('x = "a\\\\nb"\n', 'x = "a\\nb"\n'),
        ("x = 1\\ny = 2\n", "x = 1\ny = 2\n"),
        ("# C:\\new\nx = '\\n'\n", "# C:\\new\nx = '\\n'\n"),
    ],
)
def test_double_quotes_do_not_break_python(written: str, meant: str) -> None:
    """Between three double quotes, escapes are TOML's unless Python's are the only ones that make sense."""
    assert meant == code_of(with_code(written, '"""'))


@pytest.mark.parametrize("quote", ['"', '"""'])
def test_unknown_escapes_in_texts_are_plain_backslashes(quote: str) -> None:
    """A pattern or a path in a thought is no reason to refuse a call."""
    assert "match \\d+ in C:\\docs, \ttabs" == parse(f"thought = {quote}match \\d+ in C:\\docs, \\ttabs{quote}\n{CALL}").thought


def test_document_within_a_string_is_text() -> None:
    """Code and thoughts may speak of ATTP itself."""
    inner = f"x = 1\n{CALL.replace(chr(39), '-')}[tool_result]\n```\n"
    assert inner == code_of(with_code(inner))
    assert inner == parse(f"thought = '''\n{inner}'''\n{CALL}").thought


def test_decorated_header_within_a_string_is_text() -> None:
    """What would open a call outside of a string is a part of the text within one."""
    inner = "x = 1\n**[tool_call]**\nstatus = 'success'\n\u200bcode\u00a0= 1\nHere it is:\n"
    assert inner == code_of(with_code(inner))
    assert inner == parse(f"thought = '''\n{inner}'''\n{CALL}").thought


def test_program_is_ready_to_run() -> None:
    """A fence within the code and indentation that all lines share are no part of the program."""
    fenced = CodeCall(status="success", code=f"```python\n{CODE}```\n")
    indented = CodeCall(status="success", code="".join(f"    {line}\n" for line in CODE.splitlines()))
    assert [CODE.strip()] * 2 == [fenced.program.strip(), indented.program.strip()]
    assert CODE == CodeCall(status="success", code=CODE).program


@pytest.mark.parametrize(("text", "line", "hint"), BROKEN.values(), ids=BROKEN.keys())
def test_refusal_says_where_and_what_to_do(text: str, line: int, hint: str) -> None:
    """What cannot be read in one way only is refused with its line and what to write instead."""
    with pytest.raises(AttpSyntaxError) as caught:
        parse(text)
    assert line == caught.value.line
    assert hint in caught.value.hint
    assert 1 <= caught.value.column
    assert f"line {line}, column {caught.value.column}: {caught.value.problem}; {caught.value.hint}" == str(caught.value)


def test_lines_are_those_of_the_reply() -> None:
    """Prose and a fence before the document count, as the model sees them."""
    broken = DOCUMENT.replace('"success"', '"maybe"')
    with pytest.raises(AttpSyntaxError) as caught:
        parse(f"Well.\r\n\r\n```toml\r\n{broken}```")
    assert (7, 1) == (caught.value.line, caught.value.column)


def test_large_call_is_refused() -> None:
    """A reply with a call holds at most 64 KiB of UTF-8, and the limit names itself."""
    room = MAX_REPLY_BYTES - len(with_code("").encode())
    assert "é" * (room // 2) == code_of(with_code("é" * (room // 2)))
    with pytest.raises(LimitExceededError) as caught:
        parse(with_code("é" * (room // 2 + 1)))
    assert ("reply_bytes", MAX_REPLY_BYTES) == (caught.value.limit, caught.value.value)
    assert isinstance(caught.value, AttpError)
