"""What a program has read itself, to be imported: records, and whole sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _json
from .compaction import Compaction
from .message import MessageLike
from .results import ImportReport, SessionDetails

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack


class ImportOptions(TypedDict, total=False):
    """How files are imported, all of it optional."""

    #: `talktree`, `claude-code`, `pi`, `chatgpt`, `open-assistant`, `openai` or `ui-message`; None detects it.
    format: str | None
    #: Makes the first fault of a file an error; then nothing of the file is written.
    strict: bool
    #: Writes nothing, and reports what would be done.
    dry_run: bool
    #: Keeps the original record of each message in its metadata.
    keep_source: bool


class ImportParts:
    """How files are imported, as the native module takes it."""

    def __init__(self, options: Mapping[str, Any], session: str | None = None) -> None:
        _json.only_known(options, ImportOptions)
        self.format = _json.maybe_str(options.get("format"), "format")
        self.session = _json.maybe_str(session, "session")
        self.strict = bool(options.get("strict", False))
        self.dry_run = bool(options.get("dry_run", False))
        self.keep_source = bool(options.get("keep_source", False))


@dataclass(frozen=True)
class FolderImport:
    """What an import of a folder read and what it could not."""

    #: The reports of the files, in order of their names.
    reports: list[ImportReport]
    #: The files and folders that were not imported, each with the reason.
    skipped: list[tuple[str, str]]


#: What an import did with a record: stored it, knew it already, or knew one of the same id that says something else.
Imported = Literal["added", "known", "differs"]


@dataclass(frozen=True)
class ImportRecord:
    """A message to import, with its own id and time."""

    #: The name of the record in its source. A record is imported only once, even if its message was deleted later.
    record: str
    #: The parent of the message; None for a root.
    parent: str | None
    #: A dict or a dataclass, as for `Session.append`.
    message: MessageLike


@dataclass(frozen=True)
class SessionImport:
    """A whole session to import."""

    id: str
    records: Sequence[ImportRecord] = ()
    details: SessionDetails = field(default_factory=SessionDetails)
    compactions: Sequence[Compaction] = ()
    #: Messages by label.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: The head; None for the last record.
    head: str | None = None
    #: Names of records without a message, which `Session.is_imported` knows later.
    marks: Sequence[str] = ()


def record_fields(record: ImportRecord, what: str) -> dict[str, Any]:
    """Returns a record as the native module takes it."""
    if not isinstance(record, ImportRecord):
        raise TypeError(f"{what} must be an ImportRecord, not {type(record).__name__}")
    message = _json.message_fields(record.message, f"{what}.message")
    return {"record": record.record, "parent": record.parent, "message": message}


def compaction_fields(compaction: Compaction, what: str) -> dict[str, Any]:
    """Returns a compaction as the native module takes it."""
    if not isinstance(compaction, Compaction):
        raise TypeError(f"{what} must be a Compaction, not {type(compaction).__name__}")
    _json.check_counts(compaction, what, "count", "tokens_before", "tokens_after")
    return dict(vars(compaction))


def session_fields(session: SessionImport, what: str) -> dict[str, Any]:
    """Returns a whole session as the native module takes it."""
    if not isinstance(session, SessionImport):
        raise TypeError(f"{what} must be a SessionImport, not {type(session).__name__}")
    if not isinstance(session.details, SessionDetails):
        raise TypeError(f"{what}.details must be SessionDetails, not {type(session.details).__name__}")
    if not isinstance(session.labels, Mapping):
        raise TypeError(f"{what}.labels must be a dict of messages by label, not {type(session.labels).__name__}")
    return {
        "id": _json.is_str(session.id, f"{what}.id"),
        "details": vars(session.details) | {"tags": _json.strs(session.details.tags, f"{what}.details.tags")},
        "records": [record_fields(it, f"{what}.records[{at}]") for at, it in enumerate(session.records)],
        "compactions": [
            compaction_fields(it, f"{what}.compactions[{at}]") for at, it in enumerate(session.compactions)
        ],
        "labels": list(session.labels.items()),
        "head": session.head,
        "marks": _json.strs(session.marks, f"{what}.marks"),
    }
