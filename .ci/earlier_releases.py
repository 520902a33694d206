"""Run the tests of each adapter against the release of its framework before the current one, in an environment of its own.

The environments are fresh, hold the package as it is distributed with the extra of the adapter, and lie outside the checkout; the
tests run from a copy. ``earlier_releases.toml`` names the releases. With arguments, only those adapters are tested.
"""

import sys
import tempfile
import time
import tomllib
import venv
from pathlib import Path

from package_test import CONSTRAINTS, ROOT, copied, run

PINS = Path(__file__).with_suffix(".toml")
TOOLS = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist")
COPIED = ("tests", "benchmarks", "pyproject.toml")
"""The tests, and what they read."""


def main() -> None:
    """Test all that are named; the exit code of whatever fails first is the answer."""
    began = time.monotonic()
    pins = tomllib.loads(PINS.read_text(encoding="utf-8"))
    adapters = sys.argv[1:] or list(pins)
    with tempfile.TemporaryDirectory(prefix="memci-earlier-") as name:
        work = Path(name)
        run(sys.executable, "-m", "pip", "wheel", "-qq", "--no-deps", "--no-build-isolation", "--wheel-dir", work, ROOT)
        (wheel,) = work.glob("*.whl")
        copied(COPIED, work / "copy")
        for adapter in adapters:
            test(adapter, pins[adapter], wheel, work)
    tested = ", ".join(pins[adapter][0] for adapter in adapters)
    print(f"earlier releases: the tests of {len(adapters)} adapters pass with {tested}, {time.monotonic() - began:.0f} s")


def test(adapter: str, pins: list[str], wheel: Path, work: Path) -> None:
    """Install the releases with the package, and run the adapter's tests."""
    print(f"--- {adapter}: {', '.join(pins)}", flush=True)
    others = work / f"{adapter}.txt"
    pinned = {pin.partition("==")[0] for pin in pins}
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    others.write_text("\n".join(line for line in lines if line.partition("==")[0] not in pinned), encoding="utf-8")
    environment = work / adapter
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    extra = adapter.replace("_", "-")
    run(python, "-m", "pip", "install", "-qq", f"{wheel}[{extra}]", *pins, *TOOLS, cwd=work, constraints=others)
    run(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"tests/adapters/test_{adapter}.py", cwd=work / "copy")


if __name__ == "__main__":
    main()
