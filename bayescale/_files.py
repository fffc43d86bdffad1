"""How files are written: whole, or not at all; and how several processes add to the end of one."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

BEYOND = 2**30  # a byte that no such file reaches, since on Windows what is locked cannot be read


@contextlib.contextmanager
def put(path: Path) -> Iterator[Path]:
    """A temporary name beside ``path``, under which to write; moved into place if all went well."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def append(path: Path, made: Callable[[bytes], bytes]) -> None:
    """Add to a file what ``made`` returns, given all that it holds: in one write, while nobody else appends.

    Whoever appends in this way waits for the others, and none sees a file that another is about to change.
    The file is made if it is not there. If ``made`` raises, nothing is written.

    Raises
    ------
    OSError
        If the file cannot be opened, locked or written; what was written of it then has no end of line.
    """
    while True:
        fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        try:
            _wait(fd)
            if not _stands(fd, path):
                continue  # moved or replaced (by a version control system, say) while this process waited
            with open(fd, "rb", closefd=False) as file:
                added = made(file.read())
            if os.write(fd, added) < len(added):
                raise OSError(f"{path} is cut off: there was no room for the whole of its last line.")
            os.fsync(fd)
            return
        finally:
            os.close(fd)  # which ends the lock


def _stands(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), os.stat(path))
    except FileNotFoundError:
        return False


def _wait(fd: int) -> None:
    """Hold the file against all others who ask to, once none of them does."""
    if sys.platform == "win32":
        os.lseek(fd, BEYOND, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_LOCK, 1)
        os.lseek(fd, 0, os.SEEK_SET)
    else:
        fcntl.flock(fd, fcntl.LOCK_EX)
