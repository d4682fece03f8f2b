"""The exceptions of talktree.

`Error` is the base of all. There is one class for each error of the library, whose fields are attributes; each also is the
built-in exception that fits, where there is one: an unknown id is a `KeyError`, a refused argument a `ValueError`, a wait
that took too long a `TimeoutError`.

>>> import talktree
>>> chat = talktree.Store().session("s")
>>> try:
...     chat.checkout("nobody")
... except talktree.UnknownMessageError as error:
...     print(error.id, isinstance(error, KeyError), error.is_unknown)
nobody True True

An exception that a callback raises (a summarizer, an embedder, a provider of a block, a progress callback) is raised again as it is.
"""

from __future__ import annotations

import errno as _errno
import json as _json
from typing import Any


class Error(Exception):
    """Any error of talktree; its fields are attributes."""

    #: Whether the same call may succeed later.
    is_retryable: bool = False
    #: Whether an argument was refused: nothing was done, and the same call fails again.
    is_refused: bool = False
    #: Whether a name in the call is unknown.
    is_unknown: bool = False

    def __init__(self, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.message = message
        for name, value in fields.items():
            setattr(self, name, value)

    # A KeyError would print the representation of its text.
    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Any, ...]:
        attributes = {name: value for name, value in self.__dict__.items() if name != "message"}
        if isinstance(self, OSError):
            attributes |= {"errno": self.errno, "strerror": self.strerror, "filename": self.filename}
        return (_restore, (type(self).__name__, self.message, attributes))


class ClosedError(Error, ValueError):
    """The store was closed."""


class ForkedError(Error, RuntimeError):
    """The store, or the file, was opened before this process was forked; or another thread was in a long call then."""


class UnknownMessageError(Error, KeyError):
    """The session has no message of this id."""

    is_unknown = True
    is_refused = True
    session: str
    id: str


class FinishedError(Error):
    """The message is not unfinished any more: someone finished it. Nothing was changed."""

    session: str
    id: str


class UnknownSessionError(Error, KeyError):
    """The store has no session of this id."""

    is_unknown = True
    id: str


class SessionRemovedError(Error):
    """The session was removed after this handle had seen it."""

    id: str


class SessionInTrashError(Error):
    """The session is in the trash, where it cannot be written."""

    id: str


class SessionErasedError(Error, ValueError):
    """The session was erased, and imports of it are forbidden."""

    id: str


class NotErasedError(Error):
    """A text that was erased is still in a file of the store."""

    occurrences: int
    path: str
    offset: int


class NotProvedError(Error):
    """A part of what was named was unknown: an interrupted erasure may have deleted it, so a proof cannot look for its texts."""


class NoOwnerError(Error):
    """The session has no owner, so it has no texts of its owner."""

    session: str


class UnknownCompactionError(Error, KeyError):
    """The session has no compaction of this id."""

    is_unknown = True
    session: str
    id: str


class UnknownCallError(Error, KeyError):
    """The message has no result of this tool call."""

    is_unknown = True
    call: str


class SessionExistsError(Error, ValueError):
    """The store already has a session of this id."""

    id: str


class InvalidValueError(Error, ValueError):
    """An id, name or label is not allowed."""

    is_refused = True
    what: str
    given: str
    why: str


class MessageTooLargeError(Error, ValueError):
    """A message is larger than the store's limit."""

    id: str
    bytes: int
    max: int


class TooLargeError(Error, ValueError):
    """A value other than a message is larger than the store's limit."""

    what: str
    bytes: int
    max: int


class HeadMovedError(Error):
    """The head is not where the caller expected it. Nothing was appended."""

    is_retryable = True
    expected: str | None
    found: str | None


class NotAncestorError(Error, ValueError):
    """The first message of a range is not on the path to its last."""

    is_refused = True
    first: str
    last: str


class InsideSummaryError(Error, ValueError):
    """An end of a new compaction is inside the range of a visible summary."""

    is_refused = True
    id: str
    compaction: str


class NothingVisibleError(Error, ValueError):
    """The range has no visible message."""

    is_refused = True
    first: str
    last: str


class SummaryRefusedError(Error, ValueError):
    """The summary is blank or not shorter than its range, or its range may not be compacted."""

    is_refused = True
    why: str


class StaleError(Error):
    """The plan is stale, and nothing was stored. The caller may make another plan."""

    why: str


class PlanOfAnotherError(Error, ValueError):
    """The plan was made in another session or store."""

    planned: str
    session: str


class SummarizerError(Error):
    """The summarizer could not be called; an exception that it raises is raised itself."""

    why: str


class EmbedderError(Error):
    """The embedder could not be called, or its vectors cannot be used; an exception that it raises is raised itself."""

    why: str


class CompactionPolicyError(Error):
    """The compaction policy could not be called; an exception that it raises is raised itself."""

    why: str


class NoSummarizerError(Error):
    """A summary is needed, and the session has no summarizer."""

    session: str


class CompactionInProgressError(Error):
    """The session is being compacted already."""

    is_retryable = True
    session: str


class NoAnswerError(Error):
    """A provider's response holds no answer of a model. Nothing was stored."""

    why: str


class BlockOverLimitError(Error, ValueError):
    """A text is larger than the limit of its context block."""

    label: str
    tokens: int
    max: int


class BlockReadOnlyError(Error):
    """The context block is read-only."""

    label: str


class BlockKeyedError(Error, ValueError):
    """The context block holds documents, so a write needs a key."""

    label: str
    call: str


class BlockCannotError(Error):
    """The kind of the context block does not allow this."""

    label: str
    what: str


class UnknownBlockError(Error, KeyError):
    """There is no context block of this label."""

    is_unknown = True
    label: str


class BlockExistsError(Error, ValueError):
    """There already is a context block of this label."""

    label: str


class TooManyBlocksError(Error, ValueError):
    """A context has too many blocks."""

    max: int


class UnknownVersionError(Error, KeyError):
    """The text has no such version, or no longer has it."""

    is_unknown = True
    label: str
    key: str | None
    version: int


class ProviderError(Error):
    """The provider of a block could not be called; an exception that it raises is raised itself."""

    label: str
    why: str


class BlockBusyError(Error, TimeoutError):
    """The provider of a block was still in another call."""

    is_retryable = True
    label: str
    waited_ms: int


class TokenCounterError(Error):
    """A token counter gave no valid count. The estimate is used instead."""

    name: str
    why: str


class CallbackError(Error):
    """A callback failed where no verb can raise its error. The change before it is committed."""

    what: str
    why: str


class SessionFullError(Error):
    """The session has had the maximum number of messages."""

    session: str
    max: int


class StoreFullError(Error):
    """The store has had the maximum number of sessions."""

    max: int


class ContextFullError(Error):
    """A store has had the maximum number of context blocks, or a block that of texts."""

    what: str
    max: int


class TranscriptFullError(Error):
    """The store has had the maximum number of transcripts, or a transcript that of entries."""

    what: str
    max: int


class RuleMeetsAllError(Error, ValueError):
    """Every session of the store meets a rule of a retention."""

    rule: str
    sessions: int


class WrongKeyError(Error, ValueError):
    """The file cannot be decrypted with this key."""

    path: str
    why: str


class NotAStoreError(Error, ValueError):
    """The file is not a talktree store."""

    path: str
    why: str


class NewerStoreError(Error):
    """The store was written by a newer talktree."""

    found: int
    supported: int


class StoreMovedError(Error):
    """The file was moved, replaced or deleted while the store was open."""

    path: str


class HardLinkedError(Error):
    """The file has another name, a hard link."""

    path: str
    other: str | None


class MountedFileError(Error):
    """The file is mounted by itself, so where it comes from it would have another log: mount its folder."""

    path: str


class UnreadableLogError(Error, PermissionError):
    """The log of the store cannot be read without permission to write in its folder."""

    path: str


class OlderStoreError(Error):
    """The file was written by an older talktree, and was opened for reading only."""

    found: int
    current: int


class ReadOnlyError(Error, PermissionError):
    """The store was opened as read-only, or its file is read-only."""


class BusyError(Error, TimeoutError):
    """Other writers held the lock for longer than the busy timeout."""

    is_retryable = True
    waited_ms: int


class DiskFullError(Error, OSError):
    """The disk is full. The write was rolled back."""

    is_retryable = True


# Not the built-in InterruptedError, which is about a system call.
class InterruptedError(Error):  # noqa: A001
    """The work was stopped by `Store.interrupt`."""

    is_retryable = True


class CorruptError(Error):
    """The data breaks an invariant of the store; `Store.verify` tells more."""

    what: str


class UnsupportedError(Error):
    """The storage does not support this."""

    what: str


class IoError(Error, OSError):
    """A file could not be read or written."""

    path: str


class JsonError(Error, ValueError):
    """A text is not JSON, or the JSON has another shape than expected."""

    what: str
    why: str


class ImportFileError(Error, ValueError):
    """A file cannot be imported."""

    path: str
    line: int | None
    why: str


class StorageError(Error):
    """Any other error of the database."""

    why: str


def _build(name: str, message: str, fields: str) -> Error:
    """Returns the exception of an error of the library; called by the native module."""
    kind = globals()[name]
    error: Error = kind(message, **_json.loads(fields))
    if isinstance(error, DiskFullError):
        error.errno = _errno.ENOSPC
    if isinstance(error, IoError):
        error.filename = error.path
    return error


def _restore(name: str, message: str, attributes: dict[str, Any]) -> Error:
    error: Error = globals()[name](message, **attributes)
    return error
