"""Files that exports are written to."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, BinaryIO

from . import _native
from .errors import InvalidValueError

#: A path, or a file that is open for writing bytes.
Target = str | os.PathLike[str] | BinaryIO


def written_to(target: Target, export: Callable[[Callable[[bytes], Any]], Any]) -> Any:
    """Calls `export` with a function that writes to the target.

    The file of an open store is refused: to write it, even to close it, would destroy the store.
    """
    if hasattr(target, "write"):
        return export(target.write)
    path = os.fspath(target)
    if _native.is_open_file(path):
        why = "it is the file of an open store"
        raise InvalidValueError(f"path {path!r} cannot be used: {why}", what="path", given=path, why=why)
    with open(path, "wb") as file:
        return export(file.write)
