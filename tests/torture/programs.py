"""Programs of the system that parts of the bench need."""

import os
import shutil
import subprocess


def has_program(name: str, package: str, *, install: bool) -> bool:
    """Return True if a program is on this machine; with *install*, root on Debian installs a missing one first."""
    if install and shutil.which(name) is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        command = ["apt-get", "install", "-y", "-qq", package]
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL)  # noqa: S603 (fixed words)
    return shutil.which(name) is not None
