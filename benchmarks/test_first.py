"""What the first request of a process costs."""

import json
import subprocess
import sys
from pathlib import Path

from benchmarks.report import Report

RUNS = 10
SCRIPT = """
import json, sys
from time import process_time

store, *texts = sys.argv[1:]
begin = process_time()
import memci

spent = {}
config = {"budget": {"window": 8_000, "reserve": 0}}
with memci.Engine(store, config=config) as engine:
    if not texts:
        engine.warm_up()
        spent["engine.warm_up()"] = process_time() - begin
        begin, texts = process_time(), ["Where is my order?"]
    with engine.session("first") as session:
        for text, role in zip(reversed(texts), ("user", "system")):
            session.append({"role": role, "content": text})
        session.window()
        spent["request"] = process_time() - begin
print(json.dumps(spent))
"""


def test_first_request(scratch: Path, report: Report) -> None:
    """CPU time from importing memci to the first window, the least of ten new processes; a warm process has less to do."""
    short = _least(scratch, "Where is my order?")["request"]
    long = _least(scratch, "You are a helpful assistant. " * 14, "Where is my order? It was to be here on Monday. " * 4)[
        "request"
    ]
    warm = _least(scratch)
    report.growth.append(
        {
            "first request, CPU ms": {
                "engine, session, a short message, a window": short,
                "the same with a system prompt of 400 characters and a message of 200": long,
                "`engine.warm_up()`": warm["engine.warm_up()"],
                "the first request after it": warm["request"],
            }
        }
    )
    assert warm["request"] < short


def _least(scratch: Path, *texts: str) -> dict[str, float]:
    """Return the least milliseconds of each step; the first process compiles the modules and does not count."""
    runs: list[dict[str, float]] = []
    for number in range(RUNS + 1):
        command = [sys.executable, "-c", SCRIPT, f"file:{scratch}/{len(texts)}-{number}", *texts]
        done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 (our own words)
        runs.append(json.loads(done.stdout))
    return {step: 1e3 * min(run[step] for run in runs[1:]) for step in runs[0]}
