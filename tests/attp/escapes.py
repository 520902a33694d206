"""Code that tries to get out of a sandbox, or to bring down what it runs in.

Most of it is known from published escapes: of RestrictedPython (CVE-2023-37271, CVE-2023-41039, CVE-2025-22153), asteval
(CVE-2025-24359), evaluators of agent frameworks, template engines, and the "pyjails" of security contests. Each goes with the
names of the errors and limits that may end it.
"""

import textwrap

import attrs


@attrs.frozen
class Escape:
    """One attempt.

    Attributes:
        code: What the model wrote; without a ``__result__``, the last line is its value.
        ends: The kinds of error, and the limits, of which one has to end it.
    """

    code: str
    ends: frozenset[str]

    @property
    def program(self) -> str:
        """The code with a result."""
        if "__result__" in self.code:
            return self.code
        head, _, last = self.code.rpartition("\n")
        return f"{head}\n__result__ = {last}"


def _all(ends: str, **attempts: str) -> dict[str, Escape]:
    return {name.replace("_", " "): Escape(code, frozenset(ends.split())) for name, code in attempts.items()}


def _caught(code: str) -> str:
    """Return code that runs some code again and again, whatever it raises."""
    return f"while True:\n    try:\n{textwrap.indent(code, ' ' * 8)}\n    except BaseException:\n        pass\n__result__ = 1"


IMPORTS = _all(
    "ImportError",
    import_os="import os\nos.system('id')",
    import_os_as="import os as math\nmath.system('id')",
    import_from="from os import system\nsystem('id')",
    import_star="from os import *\nsystem('id')",
    import_of_an_allowed_module_and_another="import json, subprocess\nsubprocess.run('id')",
    import_relative="from . import secrets\nsecrets",
    import_in_a_function="def f():\n    import sys\n    return sys.modules\nf()",
    import_in_an_except="try:\n    1 / 0\nexcept ZeroDivisionError:\n    import ctypes\n__result__ = 1",
    import_function="__import__('os').system('id')",
    import_function_by_another_name="load = __import__\nload('os')",
    importlib="import importlib\nimportlib.import_module('os')",
    pickle="import pickle\npickle.loads(b\"cos\\nsystem\\n(S'id'\\ntR.\")",
    future="from __future__ import annotations\n1",
    sleep="import time\ntime.sleep(60)",
    sleep_async="import asyncio\nawait asyncio.sleep(60)",
)

BUILTINS = _all(
    "NameError",
    eval_call="eval('1+1')",
    eval_by_another_name="run = eval\nrun('1+1')",
    eval_in_wide_letters="ｅｖａｌ('1+1')",
    eval_in_a_default="def f(run=eval):\n    return run('1+1')\nf()",
    exec_import="exec('import os')\n__result__ = 1",
    exec_as_decorator="@exec\n@input\nclass A:\n    pass\n__result__ = 1",
    compile_call="compile('1', 'x', 'eval')",
    open_file="open('/etc/passwd').read()",
    open_for_writing="open('/proc/self/mem', 'wb')",
    input_call="input('password: ')",
    builtins_name="__builtins__",
    builtins_item="__builtins__['open']('/etc/passwd')",
    loader="__loader__.load_module('os')",
    globals_call="globals()['os']",
    vars_call="vars()",
    dir_call="dir()",
    breakpoint_call="breakpoint()",
    help_call="help()",
    exit_call="exit()",
    license_call="license()",
    memory_view="memoryview(b'abc')",
    getattr_dunder="getattr((), '__class__')",
    getattr_built="getattr('', '__cla' + 'ss__')",
    setattr_call="setattr(json, 'dumps', print)\n__result__ = 1",
    attrgetter="attrgetter('__class__')(1)",
    call_of_the_host="_memci_call('find', '{}')",
    call_of_the_host_with_more_underscores="__memci_call('find', '{}')",
    replacing_the_sandboxs_own="def _memci_text(value):\n    return 1\n__result__ = 1",
    own_call_through_global="def f():\n    global _memci_call\n    _memci_call = print\n__result__ = f()",
    endless_argument_of_an_unknown_name="x = ('a',)\nfor _ in range(60):\n    x = (x, x)\nunknown({x: 1})",
)

ATTRIBUTES = _all(
    "AttributeError",
    subclasses="().__class__.__base__.__subclasses__()",
    mro="''.__class__.__mro__[1].__subclasses__()",
    globals_of_a_function="(lambda: 0).__globals__['os']",
    closure="(lambda x: lambda: x)(1).__closure__[0].cell_contents",
    code_object="(lambda: 0).__code__.co_consts",
    globals_of_a_tool="find.__globals__",
    self_of_a_builtin="print.__self__",
    module_of_a_builtin="len.__module__",
    init_globals="class A:\n    def __init__(self):\n        pass\nA().__init__.__globals__",
    dict_of_an_instance="class A:\n    pass\nA().__dict__",
    class_in_f_string="f'{().__class__}'",
    class_in_format="'{0.__class__.__mro__}'.format(())",
    class_in_format_by_name="'{x.__init__}'.format(x=())",
    class_in_format_item="'{0[0].__class__}'.format([1])",
    class_in_format_map="'{x.__class__}'.format_map({'x': 1})",
    traceback="try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    __result__ = error.__traceback__.tb_frame.f_globals",
    traceback_of_a_tool="try:\n    broken()\nexcept RuntimeError as error:\n    __result__ = error.__traceback__",
    frames_of_a_tool="try:\n    broken()\nexcept RuntimeError as error:\n    __result__ = error.tb_frame",
    context_of_a_tool="try:\n    broken()\nexcept RuntimeError as error:\n    __result__ = error.__context__",
    object_of_an_error="try:\n    ''.nothing\nexcept AttributeError as error:\n    __result__ = error.obj",
    frame_of_a_generator="(x for x in [1]).gi_frame.f_back.f_builtins",
    frame_of_a_coroutine="async def f():\n    pass\nf().cr_frame",
    module_in_a_module="json.codecs.sys",
    module_in_a_modules_module="json.decoder.scanner",
    private_module_in_a_module="random._os.system('id')",
    builtins_of_a_module="math.__builtins__",
    spec="__spec__.loader",
    loader_of_a_module="math.__loader__",
    compiler_of_re="re._compiler",
    file_of_a_module="json.__file__",
    pattern_of_attributes="match 1:\n    case int(__class__=found):\n        __result__ = found",
    replacing_in_a_module="json.dumps = print\n__result__ = 1",
    class_assignment="class A:\n    pass\nclass B:\n    pass\na = A()\na.__class__ = B\n__result__ = 1",
    mangled="class A:\n    def f(self):\n        return self.__secret\nA().f()",
    subclasses_of_type="type.__subclasses__(type)",
    mro_call="str.mro()",
)

LANGUAGE = _all(
    "NotImplementedError TypeError",
    generator_frames="def f():\n    yield g.gi_frame.f_back.f_back\ng = f()\n__result__ = [x for x in g]",
    metaclass="class M(type):\n    pass\n__result__ = 1",
    metaclass_getitem="class M:\n    __getitem__ = len\nclass A(metaclass=M):\n    pass\n__result__ = A['x']",
    class_from_type="type('A', (object,), {'__del__': print})",
    inheritance="class A(str):\n    pass\n__result__ = A('x')",
    class_item="class A:\n    __class_getitem__ = len\nA['abc']",
    deleting="x = 1\ndel x\n__result__ = 1",
    groups="try:\n    1 / 0\nexcept* Exception as group:\n    __result__ = group",
    function_as_result="lambda: 1",
    builtin_as_result="print",
    class_as_result="class A:\n    pass\nA",
    instance_as_result="class A:\n    pass\nA()",
    module_as_result="json",
    function_for_a_tool="find(lambda: 1)",
    instance_for_a_tool="class A:\n    pass\nfind(A())",
    tool_as_a_key="find({print: 1})",
)

_LAUGHS = "x = ['ha']\nfor _ in range(60):\n    x = [x, x]\n"
_HASHES = "x = ('ha',)\nfor _ in range(60):\n    x = (x, x)\n"

TIME = _all(
    "time_s memory_bytes",
    loop="while True:\n    pass\n__result__ = 1",
    loop_that_catches=_caught("while True:\n    pass"),
    loop_in_a_builtin="sum(range(10 ** 15))",
    loop_in_an_operator="10 ** 15 in range(0, 10 ** 18, 7) or max(range(10 ** 15))",
    loop_in_a_comparison=f"{_LAUGHS}y = ['ha']\nfor _ in range(60):\n    y = [y, y]\nx == y",
    text_of_an_endless_value=f"{_LAUGHS}str(x)",
    f_string_of_an_endless_value=f"{_LAUGHS}f'{{x}}'",
    percent_of_an_endless_value=f"{_LAUGHS}'%s' % x",
    format_of_an_endless_value=f"{_LAUGHS}'{{}}'.format(x)",
    printing_an_endless_value=f"{_LAUGHS}print(x)\n__result__ = 1",
    factorial="math.factorial(10 ** 7)",
    growing_number="x = 7\nwhile True:\n    x = x * x + 1\n__result__ = 1",
)

MEMORY = _all(
    "memory_bytes time_s",
    list_times="[0] * 10 ** 10",
    text_times="'x' * 10 ** 11",
    text_doubled="x = 'x'\nwhile True:\n    x += x\n__result__ = 1",
    list_grown="x = []\nwhile True:\n    x.append('x' * 1000)\n__result__ = 1",
    list_grown_that_catches="x = [1]\n" + _caught("while True:\n    x.extend(x)"),
    dict_grown="x = {}\nwhile True:\n    x[len(x)] = [len(x)] * 100\n__result__ = 1",
    comprehension="len([i for i in range(10 ** 12)])",
    power="10 ** 10 ** 10",
    power_of_powers="9 ** 9 ** 9 ** 9",
    shift="1 << 10 ** 11",
    width_of_a_format="f'{1:>10000000000}'",
    width_of_a_percent="'%10000000000d' % 1",
    justified="'x'.ljust(10 ** 11)",
    joined="'x'.join(['y' * 10 ** 6] * 10 ** 4)",
    replaced="('x' * 10 ** 7).replace('x', 'yyyyyyyyyy')",
    json_of_an_endless_value=f"{_LAUGHS}json.dumps(x)",
    endless_result=f"{_LAUGHS}x",
    endless_argument=f"{_LAUGHS}find(x)",
    message_of_an_error="raise ValueError('x' * 10 ** 8)\n__result__ = 1",
    pattern="re.sub('x', 'y' * 10 ** 7, 'x' * 10 ** 4)",
)

DEPTH = _all(
    "depth",
    function="def f():\n    return f()\nf()",
    two_functions="def f():\n    return g()\ndef g():\n    return f()\nf()",
    function_of_itself="(lambda f: f(f))(lambda f: f(f))",
    text_of_itself="class A:\n    def __repr__(self):\n        return repr(self)\nrepr(A())",
    equal_to_itself="class A:\n    def __eq__(self, other):\n        return self == other\nA() == A()",
    deep_result="x = []\nfor _ in range(1000):\n    x = [x]\n__result__ = x",
    deep_argument="x = []\nfor _ in range(1000):\n    x = [x]\nfind(x)",
)

OUTPUT = _all(
    "output_bytes time_s",
    printing="while True:\n    print('x' * 1000)\n__result__ = 1",
    printing_that_catches=_caught("print('x' * 1000)"),
    printing_at_once="print('x' * 10 ** 6)\n__result__ = 1",
    long_result="'x' * 10 ** 6",
    long_result_behind_a_shadow="len = lambda text: 0\n__result__ = 'x' * 10 ** 6",
    long_argument="find('x' * 10 ** 6)",
)

CALLS = _all(
    "calls",
    calling="while True:\n    find(1)\n__result__ = 1",
    calling_that_catches=_caught("find(1)"),
    calling_what_fails=_caught("broken()"),
    asking_for_names=_caught("unknown"),
    calling_names=_caught("unknown(1)"),
)

PARSER = _all(
    "SyntaxError",
    deep_brackets="[" * 5000 + "]" * 5000,
    deep_unary="-" * 20_000 + "1",
    deep_attributes="x" + ".a" * 20_000,
    deep_sum="1" + "+1" * 20_000,
    deep_calls="f" + "()" * 20_000,
    deep_else="if 0:\n    pass\n" + "elif 0:\n    pass\n" * 3_000 + "__result__ = 1",
    null_byte="'\x00'",
    result_in_an_open_string="__result__ = '''1",
    code_after_the_end="__result__ = 1\\\n",
)

SIZE = _all("code_bytes", comment="__result__ = 1\n#" + "x" * 70_000)

CLOSERS = _all(
    "SystemExit KeyboardInterrupt",
    system_exit="raise SystemExit\n__result__ = 1",
    interrupt="raise KeyboardInterrupt\n__result__ = 1",
)

ESCAPES = {
    f"{group}: {name}": escape
    for group, attempts in {
        "import": IMPORTS,
        "built-in": BUILTINS,
        "attribute": ATTRIBUTES,
        "language": LANGUAGE,
        "time": TIME,
        "memory": MEMORY,
        "depth": DEPTH,
        "output": OUTPUT,
        "calls": CALLS,
        "parser": PARSER,
        "size": SIZE,
        "closer": CLOSERS,
    }.items()
    for name, escape in attempts.items()
}
