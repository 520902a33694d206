"""A process that makes writers and lets them be killed; run as ``python -m tests.engine.killed_writer``.

Each line on its standard input is a task, ``talk``, root, first number and acknowledgements, or ``fold``, root and place, with
tabs between. For each one it forks a writer, so that only one interpreter has to start, and prints how the writer ended and
what it acknowledged last.
"""

import os
import signal
import sys
from pathlib import Path

from memci.archive.disk import FileIo
from memci.archive.stores.file.store import FileStore
from memci.engine.engine import Engine
from memci.engine.session import Session
from tests.torture.talker import CONFIG, text_of


class KillingIo(FileIo):
    """Kills its own process right before or right after a call to the operating system.

    Attributes:
        left: How many such places are still to pass; ``None`` for any number.
    """

    left: int | None = None

    def pass_place(self) -> None:
        """Die here, or come one place nearer."""
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.left is not None:
            self.left -= 1

    def open(self, path: str, flags: int) -> int:
        self.pass_place()
        fd = super().open(path, flags)
        self.pass_place()
        return fd

    def write(self, fd: int, data: bytes | memoryview) -> int:
        """Write, with a place to die in the middle of the bytes."""
        self.pass_place()
        half = super().write(fd, data[: len(data) // 2])
        self.pass_place()
        written = half + super().write(fd, data[half:])
        self.pass_place()
        return written

    def sync(self, fd: int) -> None:
        self.pass_place()
        super().sync(fd)
        self.pass_place()

    def sync_directory(self, path: str) -> None:
        self.pass_place()
        super().sync_directory(path)
        self.pass_place()

    def rename(self, old: str, new: str) -> None:
        self.pass_place()
        super().rename(old, new)
        self.pass_place()

    def unlink(self, path: str) -> None:
        self.pass_place()
        super().unlink(path)
        self.pass_place()

    def make_directory(self, path: str) -> None:
        self.pass_place()
        super().make_directory(path)
        self.pass_place()


def open_session(root: Path | str, io: FileIo | None = None) -> Session:
    """Open the session that is written to."""
    return Engine(FileStore(root, io=io), CONFIG).session("chat")


def append(session: Session, number: int) -> None:
    """Say a message; every second one opens a page."""
    session.append({"role": "assistant" if number % 2 else "user", "content": text_of(number)}, key=str(number))


def talk(root: str, first: int, told: int) -> None:
    """Append messages for ever, and tell of each."""
    session = open_session(root)
    while True:
        append(session, first)
        os.write(told, b"%d\n" % first)
        first += 1


def fold(root: str, place: int, told: int) -> None:
    """Fold everything, to be killed at a place; tell of it where there are fewer."""
    io = KillingIo()
    session = open_session(root, io)
    io.left = place
    session.fold("all")
    os.write(told, b"%d\n" % place)


def run(task: str, root: str, number: int, acknowledgements: int) -> tuple[int, int]:
    """Fork a writer, kill it after so many acknowledgements, and return its wait status and the last number that it told."""
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(reading)
        (talk if task == "talk" else fold)(root, number, writing)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        lines = [pipe.readline() for _ in range(acknowledgements)]
        if task == "talk":
            os.kill(pid, signal.SIGKILL)
        lines += pipe.read().splitlines(keepends=True)
    _, status = os.waitpid(pid, 0)
    told = [int(line) for line in lines if line.endswith(b"\n")]
    return status, told[-1] if told else -1


def main() -> None:
    """Do the tasks of the standard input."""
    for line in sys.stdin:
        task, root, number, *rest = line.rstrip("\n").split("\t")
        status, told = run(task, root, int(number), int(rest[0]) if rest else 0)
        sys.stdout.write(f"{status} {told}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
