import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from memci.attp.sandbox import Sandbox
from memci.errors import SandboxError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    made = Sandbox()
    yield made
    made.close()


def workers() -> set[int]:
    """Return the ids of this process's children."""
    lists = [(task / "children").read_text().split() for task in Path("/proc/self/task").iterdir()]
    return {int(child) for children in lists for child in children}


def python(script: str) -> list[str]:
    """Run a script in a new process and return the lines that it printed, once it and all its children have ended."""
    code = "from memci.attp.sandbox import Sandbox\nfrom memci.errors import SandboxError\nimport os, sys\n" + textwrap.dedent(
        script
    )
    done = subprocess.run(  # noqa: S603 (the script above)
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert (0, "") == (done.returncode, done.stderr)
    return done.stdout.splitlines()


@contextmanager
def held(sandbox: Sandbox) -> Iterator[None]:
    """Hold a call in another thread while the block runs; afterwards it gives its result."""
    inside, leave = threading.Event(), threading.Event()

    def hold() -> str:
        inside.set()
        leave.wait(10)
        return "held"

    with ThreadPoolExecutor() as pool:
        call = pool.submit(sandbox.run, "__result__ = hold()", {"hold": hold})
        inside.wait(10)
        yield
        leave.set()
        assert "held" == call.result().value


def test_a_worker_that_is_killed_fails_its_call_alone(sandbox: Sandbox) -> None:
    """When a worker is killed, the call that it ran fails as such; a call beside it, and the next one, do not notice."""
    with held(sandbox):
        others = workers()
        tools = {"kill": lambda: os.kill((workers() - others).pop(), signal.SIGKILL)}
        with pytest.raises(SandboxError, match="no other call is concerned") as caught:
            sandbox.run("kill()\n__result__ = 1", tools)
        assert "WorkerCrashedError" == caught.value.kind
    assert sandbox.run("__result__ = 1", {}).value == 1


def test_an_idle_worker_that_is_killed_is_replaced(sandbox: Sandbox) -> None:
    """A worker that dies between two calls is not missed."""
    others = workers()
    assert sandbox.run("__result__ = 1", {}).value == 1
    for worker in workers() - others:
        os.kill(worker, signal.SIGKILL)
    assert sandbox.run("__result__ = 2", {}).value == 2


def test_closing_lets_running_code_finish(sandbox: Sandbox) -> None:
    """A call that runs while another thread closes the sandbox gives its result; the next call starts new workers."""
    with held(sandbox):
        sandbox.close()
        assert sandbox.run("__result__ = 1", {}).value == 1


def test_without_a_worker_program_nothing_hangs() -> None:
    """Where the library's program is missing or ends at once, a run says that no worker could be started."""
    script = """
        for program in ("/nowhere/monty", "/bin/true"):
            os.environ["MONTY_BIN"] = program
            try:
                Sandbox().run("__result__ = 1", {})
            except SandboxError as error:
                print(error.kind, "nowhere" in str(error))
    """
    assert ["SandboxUnavailableError False"] * 2 == python(script)


def test_nothing_starts_before_the_first_run() -> None:
    """Making a sandbox loads no library and starts no process or thread; refused code does not either."""
    script = """
        import threading
        sandbox = Sandbox()
        try:
            sandbox.run("import os", {})
        except SandboxError as error:
            print(error.kind)
        print("pydantic_monty" in sys.modules, "asyncio" in sys.modules, threading.active_count())
        sandbox.close()
    """
    assert ["ImportError", "False False 1"] == python(script)


def test_a_process_ends_without_closing_its_sandbox() -> None:
    """A program that forgets its sandbox, runs it in threads, or leaves it in a module, ends as it would without."""
    script = """
        import builtins, threading
        builtins.kept = sandbox = Sandbox()
        print(sandbox.run("__result__ = 1", {}).value)
        threads = [threading.Thread(target=sandbox.run, args=("__result__ = 2", {})) for _ in range(3)]
        for thread in threads:
            thread.start()
    """
    assert ["1"] == python(script)


def test_a_process_ends_while_code_runs() -> None:
    """A program ends while a daemon thread still waits for code."""
    script = """
        import threading
        started = threading.Event()
        sandbox = Sandbox()
        code = "begin()\\nwhile True:\\n    pass\\n__result__ = 1"
        threading.Thread(target=sandbox.run, args=(code, {"begin": started.set}), daemon=True).start()
        started.wait()
        print("ends")
    """
    assert ["ends"] == python(script)


def test_forked_before_the_first_run() -> None:
    """Processes that are forked before the first run each start workers of their own, with the same sandbox."""
    script = """
        sandbox = Sandbox()
        child = os.fork()
        os.write(1, b"%d\\n" % sandbox.run("__result__ = 1", {}).value)  # in one piece
        sandbox.close()
        if child:
            print(os.waitpid(child, 0)[1])
    """
    assert ["1", "1", "0"] == python(script)


def test_forked_after_the_first_run() -> None:
    """A process that is forked later gets an error at once, from this sandbox and from others; its parent goes on."""
    script = """
        sandbox = Sandbox()
        sandbox.run("__result__ = 1", {})
        child = os.fork()
        if not child:
            for forked in (sandbox, Sandbox()):
                try:
                    forked.run("__result__ = 1", {})
                except SandboxError as error:
                    print(error.kind, "spawn" in str(error), flush=True)
                forked.close()
            os._exit(0)
        print(os.waitpid(child, 0)[1])
        print(sandbox.run("__result__ = 2", {}).value)
    """
    assert ["ForkedProcessError True", "ForkedProcessError True", "0", "2"] == python(script)
