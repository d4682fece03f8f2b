"""How files are imported, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _json
from .compaction import Compaction
from .results import ImportReport

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack


class ImportOptions(TypedDict, total=False):
    """How files are imported, all of it optional."""

    #: The name of a format, such as `claude-code` or `chatgpt`; None detects it from the content.
    format: str | None
    #: Makes the first fault of a file an error; then nothing of the file is written.
    strict: bool
    #: Writes nothing, and reports what would be done.
    dry_run: bool
    #: Keeps the original record of each message in its metadata.
    keep_source: bool
    #: Replaces what looks like a key or a token before it is stored.
    redact: bool


class ImportParts:
    """How files are imported, as the native module takes it."""

    def __init__(self, options: Mapping[str, Any], session: str | None = None) -> None:
        _json.only_known(options, ImportOptions)
        self.format = _json.maybe_str(options.get("format"), "format")
        self.session = _json.maybe_str(session, "session")
        self.strict = bool(options.get("strict", False))
        self.dry_run = bool(options.get("dry_run", False))
        self.keep_source = bool(options.get("keep_source", False))
        self.redact = bool(options.get("redact", False))


@dataclass(frozen=True)
class FolderImport:
    """What an import of a folder read and what it could not."""

    #: The reports of the files, in order of their names.
    reports: list[ImportReport]
    #: The files and folders that were not imported, each with the reason.
    skipped: list[tuple[str, str]]


#: What an import did with a message: stored it, knew it already, or knew one of the same id that says something else.
Imported = Literal["added", "known", "differs"]


def compaction_fields(compaction: Compaction, what: str) -> dict[str, Any]:
    """Returns a compaction as the native module takes it."""
    if not isinstance(compaction, Compaction):
        raise TypeError(f"{what} must be a Compaction, not {type(compaction).__name__}")
    _json.check_counts(compaction, what, "count", "tokens_before", "tokens_after")
    return dict(vars(compaction))
