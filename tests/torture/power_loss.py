"""Losses of power on real file systems: ``python -m tests.torture.power_loss``. Needs root, loop devices, ext4 and XFS.

A process talks through a session on a file system in an image file. At a moment that is drawn anew each time the file system is
shut down by ioctl, so that nothing reaches the image any more, as when the power goes; it is mounted again, which replays its
journal, everything that was acknowledged is looked for, and the next process goes on.

The power is gone when the ioctl begins: what was acknowledged by then has to be there. Linux goes on to answer calls that were
under way; a process that lost its power would not have heard those answers. They are counted, and how many of them were not
true: ext4 may call a sync good whose transaction the shutdown has just thrown away, that of a plain write and fdatasync too.
"""

import argparse
import fcntl
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import attrs

from memci.errors import MemciError, StoreError
from tests.torture.forked import Forked
from tests.torture.kills import LONGEST_S
from tests.torture.kills import write as talk_on
from tests.torture.programs import has_program
from tests.torture.seeded_bugs import given_to, maker
from tests.torture.store_workload import StoreMaker, file_store
from tests.torture.talker import SESSION, opened, problem_with, read

SHUTDOWN = 0x8004587D
"""``FS_IOC_GOINGDOWN`` of Linux's ``fs/ext4/ext4.h`` and ``xfs_fs.h``: _IOR('X', 125, __u32)."""

LOG_FLUSHED, LOG_LOST = 1, 2
"""With the first flag the file system writes its own journal before it stops, with the second nothing at all."""

NEW_SHARE = 0.3
"""How often a new session is begun after a loss: the names of its files are what is lost first."""

IMAGE_BYTES = 320 << 20
FORMATS = {"ext4": ["mkfs.ext4", "-q", "-F"], "xfs": ["mkfs.xfs", "-q", "-f"]}
PACKAGES = {"ext4": "e2fsprogs", "xfs": "xfsprogs"}
"""Debian's packages with the programs that make them."""

NO_MOUNT = 4
"""Exit code where the machine does not allow it."""


class CannotMountError(Exception):
    """The machine does not allow it; the text says why."""


class FileSystem:
    """A file system in an image file.

    Attributes:
        mount_point: Where it is mounted.
    """

    def __init__(self, kind: str, directory: Path) -> None:
        self.mount_point = directory / "mounted"
        self._kind = kind
        self._image = directory / "image"
        self.mount_point.mkdir()
        with self._image.open("wb") as image:
            image.truncate(IMAGE_BYTES)
        _run(*FORMATS[kind], str(self._image))

    def mount(self) -> None:
        """Mount it, which replays its journal."""
        _run("mount", "-t", self._kind, "-o", "loop", str(self._image), str(self.mount_point))

    def unmount(self) -> None:
        """Unmount it."""
        _run("umount", str(self.mount_point))

    def lose_power(self, flag: int) -> None:
        """Let nothing reach the image any more."""
        fd = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(fd, SHUTDOWN, struct.pack("I", flag))
        finally:
            os.close(fd)


@contextmanager
def mounted(kind: str, directory: Path | None) -> Iterator[FileSystem]:
    """Make a file system, mount it, and take it away in the end.

    Raises:
        CannotMountError: The machine does not allow it.
    """
    with tempfile.TemporaryDirectory(dir=directory) as place:
        system = FileSystem(kind, Path(place))
        system.mount()
        try:
            yield system
        finally:
            system.unmount()


def write(make: StoreMaker, root: str, first: int, acknowledge: Callable[[int], None]) -> None:
    """Talk until the power goes."""
    try:
        talk_on(make, root, first, acknowledge)
    except StoreError:
        return


@attrs.define
class Figures:
    """What a run saw.

    Attributes:
        acknowledged: Messages that were acknowledged before the power went.
        late: Messages that were acknowledged while it went.
        late_gone: Losses of power after which not all of those were there.
        losses: A sentence for each promise that was broken.
    """

    acknowledged: int = 0
    late: int = 0
    late_gone: int = 0
    losses: list[str] = attrs.field(factory=list)


def run(make: StoreMaker, system: FileSystem, losses: int, seed: int) -> Figures:
    """Lose the power so often."""
    chance = random.Random(seed)  # noqa: S311 (when to lose it)
    figures, number, session = Figures(), 0, 0
    for loss in range(losses):
        root = str(system.mount_point / f"store {session}")
        writer = Forked(partial(write, make, root, number))
        if chance.random() < 0.9:  # else it goes while the session is opened
            writer.told_first()
        writer.told_within(chance.random() * LONGEST_S)
        flag = chance.choice([LOG_FLUSHED, LOG_LOST])
        in_time = writer.told_so_far()
        system.lose_power(flag)
        told, _ = writer.kill()
        system.unmount()
        system.mount()
        figures.acknowledged += len(in_time)
        figures.late += len(told) - len(in_time)
        is_last = chance.random() < NEW_SHARE
        first = number
        problem, number = look(make, root, [number - 1, *in_time][-1], len(told) - len(in_time), verify=is_last)
        if problem:
            figures.losses.append(f"loss {loss}: {problem}")
        elif number < first + len(told):
            figures.late_gone += 1
        if problem or is_last:
            shutil.rmtree(root, ignore_errors=True)
            number, session = 0, session + 1
    return figures


def look(make: StoreMaker, root: str, told: int, late: int, *, verify: bool) -> tuple[str, int]:
    """Say what is wrong with what is there, and how many messages there are.

    Args:
        make: Makes the store.
        root: Of the store.
        told: The last message that was acknowledged in time.
        late: How many were acknowledged later.
        verify: Whether everything is compared with the journal.
    """
    try:
        said = read(make, root)
        problem = problem_with(said, told, late + 2)
        if verify and not problem:
            with opened(make, root) as engine:
                # Snapshots are never synced: a torn one is found, reported, and not used.
                problems = engine.session(SESSION).verify().problems
                problem = "; ".join(each for each in problems if "/snapshots/" not in each)
    except MemciError as error:
        return f"{type(error).__name__}: {error}", 0
    return problem, len(said)


def _run(*command: str) -> None:
    if shutil.which(command[0]) is None:
        message = f"there is no {command[0]}"
        raise CannotMountError(message)
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (fixed words)
    if done.returncode:
        message = f"{' '.join(command[:3])} failed: {done.stderr.strip() or done.stdout.strip()}"
        raise CannotMountError(message)


def main() -> int:
    """Run, print the figures, and return the exit code."""
    arguments = argparse.ArgumentParser(description="Lose the power of a file system and look for what was acknowledged.")
    arguments.add_argument("--losses", type=int, default=1_000, help="half of them on each file system")
    arguments.add_argument("--systems", default="ext4,xfs")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--install", action="store_true", help="install what makes a file system where it is missing, as root")
    given = given_to(arguments)
    systems = given.systems.split(",")
    code = 0
    for kind in systems:
        losses = given.losses // len(systems)
        began = time.monotonic()
        has_program(FORMATS[kind][0], PACKAGES[kind], install=given.install)  # without it, mounted() says so
        try:
            with mounted(kind, given.directory) as system:
                figures = run(maker(given.bug, file_store), system, losses, given.seed)
        except (CannotMountError, OSError) as error:
            sys.stdout.write(f"power losses, {kind}: not run: {error}\n")
            code = code or NO_MOUNT
            continue
        sys.stdout.write(
            f"power losses, {kind}: {losses} losses of power, {figures.acknowledged} messages acknowledged before and "
            f"{figures.late} meanwhile ({figures.late_gone} times not all of the latter were there), seed {given.seed}: "
            f"{len(figures.losses)} losses, {time.monotonic() - began:.0f} s\n"
        )
        sys.stdout.writelines(f"  {loss}\n" for loss in figures.losses[:20])
        code = 1 if figures.losses else code
    return code


if __name__ == "__main__":
    sys.exit(main())
