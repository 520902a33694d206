"""Property tests with examples that no run had before: ``python -m tests.torture.exploring``.

``make check`` tries the same examples each time. Here each test module with property tests runs once with the profile
``explore``, which tries more of them, and with a seed that is drawn when the run begins. A failure comes with its smallest
example and the command that repeats it.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import attrs

ROOT = Path(__file__).parents[2]
PROFILE = "explore"

PROCESSES = 2
LONGEST_S = 3_600
"""Seconds after which a test counts as one that hangs: it tries ten times as many examples as usual, beside other work."""

_PROPERTY = re.compile(r"^ *@given\(|\.TestCase\b", re.MULTILINE)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", re.MULTILINE)
_COUNT = re.compile(r"(\d+) passed")


@attrs.frozen
class Exploration:
    """What pytest reported about a module.

    Attributes:
        module: Its path below the checkout.
        seconds: How long it took.
        code: The exit code of pytest.
        output: All that pytest printed.
    """

    module: str
    seconds: float
    code: int
    output: str

    @property
    def failures(self) -> list[str]:
        """Names of the tests that failed, the module if pytest itself did."""
        return [] if self.code == 0 else _FAILED.findall(self.output) or [self.module]

    @property
    def passed(self) -> int:
        """Number of tests that passed."""
        count = _COUNT.search(self.output)
        return int(count[1]) if count else 0


def modules() -> Iterator[str]:
    """Yield the test modules with property tests."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        if _PROPERTY.search(path.read_text(encoding="utf-8")):
            yield str(path.relative_to(ROOT))


def explore(module: str, seed: int) -> Exploration:
    """Run the property tests of a module."""
    began = time.monotonic()
    options = ["-q", "-m", "hypothesis", "-p", "no:cacheprovider", "--timeout", str(LONGEST_S)]
    done = subprocess.run(  # noqa: S603 (fixed words)
        [sys.executable, "-m", "pytest", module, f"--hypothesis-seed={seed}", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "HYPOTHESIS_PROFILE": PROFILE},
    )
    return Exploration(module, time.monotonic() - began, done.returncode, done.stdout)


def report(explored: Exploration, seed: int) -> None:
    """Print a line about a module, and about each failure what repeats it."""
    tell(f"  {explored.module}: seed {seed}, {explored.passed} passed, {len(explored.failures)} failed, {explored.seconds:.0f} s")
    if explored.failures:
        for line in explored.output.splitlines():
            tell(f"    {line}")
    for name in explored.failures:
        tell(f"  again: HYPOTHESIS_PROFILE={PROFILE} python -m pytest '{name}' --hypothesis-seed={seed}")


def tell(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201 (the output of the bench)


def main() -> int:
    """Explore modules until all had their turn or the time is over, print the figures, and return 1 if a test failed."""
    arguments = argparse.ArgumentParser(description="Run the property tests with new examples.")
    arguments.add_argument("--minutes", type=float, default=13, help="after which no further module begins")
    arguments.add_argument("--seed", type=int, help="of all tests; a new one by default")
    given = arguments.parse_args()
    seed = random.SystemRandom().randrange(1 << 32) if given.seed is None else given.seed
    tell(f"  seed {seed}")
    waiting = list(modules())
    random.Random(seed).shuffle(waiting)  # noqa: S311 (whichever the time is too short for, it is another one each time)
    began, results = time.monotonic(), list[Exploration]()

    def work() -> None:
        while waiting and time.monotonic() - began < 60 * given.minutes:
            results.append(explore(waiting.pop(), seed))
            report(results[-1], seed)

    with ThreadPoolExecutor(PROCESSES) as pool:
        for worker in [pool.submit(work) for _ in range(PROCESSES)]:
            worker.result()
    for module in waiting:
        tell(f"  {module}: not run, the time was over")
    passed, failed = sum(each.passed for each in results), sum(len(each.failures) for each in results)
    tell(
        f"exploring: {passed} tests of {len(results)} modules passed, seed {seed}, {len(waiting)} modules not run: "
        f"{failed} failures, {time.monotonic() - began:.0f} s"
    )
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
