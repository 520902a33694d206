import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chat.model_server import Script, serving
from tests.chat.test_long import QUESTION, attp, line, native
from tests.cli.processes import environment

EXAMPLE = Path(__file__).parents[2] / "examples" / "recall_loop.py"


@pytest.mark.parametrize(("protocol", "script"), [("native", native), ("attp", attp)])
def test_recall_loop_drives_an_endpoint(protocol: str, script: Script, tmp_path: Path) -> None:
    """The example drives the users' messages of a file against an endpoint, prints what happens, and leaves nothing."""
    said = [line(turn) for turn in range(1, 41)] + [QUESTION]
    file = tmp_path / "talk.json"
    file.write_text(json.dumps({"messages": [{"role": "user", "content": text} for text in said]}), encoding="utf-8")
    with serving(script) as server:
        done = subprocess.run(  # noqa: S603 (fixed words)
            [sys.executable, "-W", "error", EXAMPLE, "--base-url", server.url, "--protocol", protocol, file],
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
