"""Files that exports are written to."""

from __future__ import annotations

import contextlib
import io
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from . import _native
from .errors import InvalidValueError

#: A path, or a file that is open for writing bytes.
Target = str | os.PathLike[str] | BinaryIO


def written_to(target: Target, export: Callable[[Callable[[bytes], Any]], Any]) -> Any:
    """Calls `export` with a function that writes to the target.

    A file that exists is replaced when the export is complete; if it fails, the file is as before. The file of an open store is
    refused: to write it, even to close it, would destroy the store.
    """
    if hasattr(target, "write"):
        return export(_whole(target))
    path = os.fspath(target)
    if _native.is_open_file(path):
        why = "it is the file of an open store"
        raise InvalidValueError(f"path {path!r} cannot be used: {why}", what="path", given=path, why=why)
    with _written_directly(path) if _is_special(path) else _replaced(path) as file:
        return export(file.write)


def _whole(file: Any) -> Callable[[bytes], None]:
    """Returns the `write` of a file as a function that writes all bytes: a raw file may write fewer than it is given."""

    def write(data: bytes) -> None:
        while data:
            count = file.write(data)
            if not count and isinstance(file, io.RawIOBase):
                raise BlockingIOError(f"the file takes no more; {len(data)} bytes of the export are not written")
            # Other objects with a `write` may have no count to return.
            if not count or type(count) is not int:
                return
            data = data[count:]

    return write


def _is_special(path: str) -> bool:
    """Returns whether a path must not be replaced: that of a pipe or a device, or a name of an open file like /dev/stdout."""
    try:
        is_regular = stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return False
    return not is_regular or os.path.abspath(path).startswith(("/dev/", "/proc/"))


def _written_directly(path: str) -> BinaryIO:
    return open(path, "wb")


def _without_name(folder: str) -> BinaryIO | None:
    """Opens a new file without a name: nothing of it is left if the process is killed. Not every system has such files."""
    flag = getattr(os, "O_TMPFILE", None)
    if flag is None or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return open(os.open(folder, flag | os.O_WRONLY, 0o666), "wb")
    except OSError:
        return None


@contextlib.contextmanager
def _replaced(path: str) -> Iterator[BinaryIO]:
    """Opens a file beside the path, and gives it the name of the path at the end of a block that raises nothing."""
    # The file that a symbolic link leads to is replaced, not the link.
    place = os.path.realpath(path)
    folder = os.path.dirname(place)
    temporary = os.path.join(folder, f".talktree-{secrets.token_hex(8)}.tmp")
    exists = os.path.exists(place)
    if exists:
        # A file without permission to write is not replaced, either.
        os.close(os.open(place, os.O_WRONLY))
    try:
        nameless = _without_name(folder)
        try:
            file = nameless or open(temporary, "xb")
        except OSError as error:
            error.filename = path
            raise
        with file:
            number = file.fileno()
            if exists:
                os.chmod(number if nameless else temporary, stat.S_IMODE(os.stat(place).st_mode))
            yield file
            file.flush()
            # Otherwise a power failure after the rename could leave an empty file.
            os.fsync(number)
            if nameless:
                # With any `src_dir_fd` the link is followed. A file can be replaced only by one that has a name.
                os.link(f"/proc/self/fd/{number}", temporary, src_dir_fd=number)
        os.replace(temporary, place)
    except BaseException:
        # A signal handler may raise after the rename, too.
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
