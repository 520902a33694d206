"""Run a command, and print a line whenever it has been silent for some seconds: ``heartbeat.py TEXT COMMAND [ARGUMENT …]``."""

import os
import selectors
import subprocess
import sys
import time

SILENCE_S = 5.0


def main() -> int:
    """Pass on what the command writes, with a line of progress where it writes nothing, and return its exit code."""
    text, *command = sys.argv[1:]
    colour = {"FORCE_COLOR": "1"} if sys.stdout.isatty() else {}
    begin = time.monotonic()
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | colour) as running,  # noqa: S603 (the Makefile's words)
        selectors.DefaultSelector() as selector,
    ):
        assert running.stdout is not None
        selector.register(running.stdout, selectors.EVENT_READ)
        at_line_start = True
        say(f"{text} …\n")
        while True:
            if not selector.select(SILENCE_S):
                say(f"{'' if at_line_start else chr(10)}{text}: {time.monotonic() - begin:.0f} s so far\n")
                at_line_start = True
                continue
            piece = os.read(running.stdout.fileno(), 65_536)
            if not piece:
                break
            sys.stdout.buffer.write(piece)
            sys.stdout.flush()
            at_line_start = piece.endswith(b"\n")
    return running.returncode


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
