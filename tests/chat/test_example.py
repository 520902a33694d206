import json
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chat.model_server import Script, serving
from tests.chat.test_long import QUESTION, attp, line, native
from tests.cli.processes import environment

pytestmark = [pytest.mark.server, pytest.mark.slow]

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(("protocol", "script"), [("native", native), ("attp", attp)])
def test_recall_loop_drives_an_endpoint(protocol: str, script: Script, tmp_path: Path) -> None:
    """The example drives the users' messages of a file against an endpoint, prints what happens, and leaves nothing."""
    said = [line(turn) for turn in range(1, 41)] + [QUESTION]
    file = tmp_path / "talk.json"
    file.write_text(json.dumps({"messages": [{"role": "user", "content": text} for text in said]}), encoding="utf-8")
    with serving(script) as server:
        done = subprocess.run(  # noqa: S603 (fixed words)
            [sys.executable, "-W", "error", EXAMPLES / "recall_loop.py", "--base-url", server.url, "--protocol", protocol, file],
            capture_output=True,
            encoding="utf-8",
            env=environment(),
            cwd=tmp_path,
            check=False,
        )
        assert [] == server.refused
    assert (0, "") == (done.returncode, done.stderr)
    marks = [printed.split()[0] for printed in done.stdout.splitlines()]
    assert {"fold", "call", "result", "recall", "window", "fade", "answer"} <= set(marks)
    assert [file] == list(tmp_path.iterdir())


def test_tidy_drives_an_endpoint(tmp_path: Path) -> None:
    """The example tidies behind an endpoint too, which takes each of its requests and offers a model seven tools more."""
    tidy = runpy.run_path(str(EXAMPLES / "tidy.py"))
    tidier = tidy["Tidier"](tidy["RECORDED"])
    with serving(lambda messages: dict(tidier.complete(messages, [], may_call=True).message)) as server:
        done = subprocess.run(  # noqa: S603 (fixed words)
            [sys.executable, "-W", "error", EXAMPLES / "tidy.py", "--base-url", server.url],
            capture_output=True,
            encoding="utf-8",
            env=environment(),
            cwd=tmp_path,
            check=False,
        )
        assert [] == server.refused
        offered = {tool["function"]["name"] for request in server.requests for tool in request["tools"]}
    assert (0, "") == (done.returncode, done.stderr)
    assert "answer  It was Thursday 19 March, between 10:00 and 12:00." == done.stdout.splitlines()[-1]
    assert {"write_note", "group_pages", "move_page", "remove_page", "open_page", "close_page", "close_topic"} <= offered
    assert [] == list(tmp_path.iterdir())
