"""A store: one file with many sessions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, overload

from . import _json, _native
from ._files import Target, written_to
from .importing import Imported, SessionImport, session_fields
from .results import (
    Alternative,
    Damage,
    DetailParts,
    Event,
    Found,
    ImportReport,
    SessionDetails,
    SessionInfo,
    SessionsFound,
    StoreStats,
    Verified,
    event_listener,
    found,
    import_report,
    session_info,
    sessions_found,
)
from .search import SearchParts, SearchSettings
from .session import Session
from .settings import SessionSettings, settings_of
from .transcripts import Transcripts
from .usage import UsageGroup, UsageParts, UsageRow, UsageTotal, usage_rows, usage_total

if TYPE_CHECKING:
    from .search import Unpack

#: Is called with what is done and the total; an exception that it raises ends the work.
Progress = Callable[[int, int], object]


@dataclass(frozen=True)
class _OpenParts:
    """How a store is opened, as the native module takes it."""

    read_only: bool
    durability: str
    busy_timeout: float | None
    cache_kib: int | None
    max_message_bytes: int | None
    idle_readers: int | None


class ImportParts:
    """How a file is imported, as the native module takes it."""

    def __init__(self, format: str | None, session: str | None, strict: bool, dry_run: bool, keep_source: bool) -> None:
        self.format = _json.maybe_str(format, "format")
        self.session = _json.maybe_str(session, "session")
        self.strict = strict
        self.dry_run = dry_run
        self.keep_source = keep_source


class Store:
    """A store of conversations, in a file or in memory.

    It may be used from any thread; several processes may open the same file. It is closed by `close`, at the end of a
    `with` block, or with its last session.

    >>> import talktree
    >>> with talktree.Store() as store:
    ...     chat = store.session("telegram:4711")
    ...     id = chat.append({"role": "user", "text": "Can we deploy on Friday?"}).id
    ...     [hit.snippet.text for hit in store.search("deploy friday", limit=5)]
    ['Can we deploy on Friday?']

    Args:
        path: The file, which is created if it is missing; None for a store in memory.
        read_only: Opens an existing file and never writes.
        durability: `full`: an acknowledged write survives a power failure. `normal`: the latest ones may be lost in one.
        busy_timeout: How long a write waits for other writers; in seconds, or as a timedelta.
        cache_kib: The page cache of each connection, in KiB.
        max_message_bytes: The limit of a message, in bytes of JSON.
        idle_readers: How many connections for reading are kept open.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        read_only: bool = False,
        durability: Literal["full", "normal"] = "full",
        busy_timeout: timedelta | float | None = None,
        cache_kib: int | None = None,
        max_message_bytes: int | None = None,
        idle_readers: int | None = None,
    ) -> None:
        if durability not in ("full", "normal"):
            raise ValueError(f"durability must be 'full' or 'normal', not {durability!r}")
        if path is None and read_only:
            raise ValueError("a store in memory cannot be read_only")
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"path must be a str or a path, not {type(path).__name__}")
        parts = _OpenParts(
            read_only, durability, _json.maybe_seconds(busy_timeout), cache_kib, max_message_bytes, idle_readers
        )
        self._path = None if path is None else os.fspath(path)
        self._native = _native.Store(self._path, parts)

    @staticmethod
    def is_open_file(path: str | os.PathLike[str]) -> bool:
        """Returns whether a store of this process has this file open; then only talktree may open or close it."""
        return _native.is_open_file(os.fspath(path))

    @property
    def closed(self) -> bool:
        """Whether the store was closed."""
        return self._native.is_closed

    def close(self) -> None:
        """Closes the store and everything that was opened from it.

        Long work is interrupted; calls that run in other threads are completed first, and so are compactions that run
        in the background. Those that have not begun are dropped. Closing twice is fine.
        """
        self._native.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Store {'in memory' if self._path is None else repr(self._path)}{' (closed)' if self.closed else ''}>"

    def interrupt(self) -> None:
        """Ends the long work that runs in other threads with an `InterruptedError` of talktree: searches, imports,
        exports, `verify`, `backup`, `stats`. Work that begins later is not affected."""
        self._native.interrupt()

    # Sessions.

    def session(self, id: str, **settings: Unpack[SessionSettings]) -> Session:
        """Returns a session; its first write creates it. `SessionSettings` lists the settings.

        >>> import talktree
        >>> store = talktree.Store()
        >>> chat = store.session(
        ...     "s",
        ...     summarizer=lambda prompt: "They said words.",
        ...     compact_after=1_000,
        ... )
        >>> for _ in range(100):
        ...     _ = chat.append({"role": "user", "text": "word " * 50})
        >>> chat.visible_tokens() <= 1_000, len(chat.raw_history())
        (True, 100)
        """
        return self._session(id, settings_of(settings))

    def _session(self, id: str, settings: dict[str, Any]) -> Session:
        return Session(self._native.session(_json.is_str(id, "id"), settings))

    def create_session(self, details: SessionDetails | str, *, id: str | None = None) -> Session:
        """Creates a session with these details; a str is its name.

        Raises:
            talktree.SessionExistsError: if there is one of this id.
        """
        return Session(self._native.create_session(id, details_of(details)))

    def sessions(self) -> list[SessionInfo]:
        """Returns all sessions, the latest first; `SessionManager.list` returns them in pages."""
        return [session_info(it) for it in _json.loads(self._native.sessions())]

    def __iter__(self) -> Iterator[SessionInfo]:
        return iter(self.sessions())

    def rename(self, id: str, name: str) -> None:
        """Changes the name of a session."""
        self._native.rename(id, name)

    def remove(self, id: str) -> None:
        """Removes a session and all that belongs to it."""
        self._native.remove(id)

    def subscribe(self, listener: Callable[[Event], object]) -> _native.Subscription:
        """Calls a listener after each change, in the thread that made it, outside every lock.

        The subscription ends with its `close`, or when it is collected: keep it. An exception of a listener goes to
        `on_error` of the session that wrote, or else to `sys.unraisablehook`.
        """
        return self._native.subscribe(event_listener(listener))

    @property
    def transcripts(self) -> Transcripts:
        """The transcripts of agent sessions, which are stored beside the sessions of talktree."""
        return Transcripts(self._native.transcripts())

    # Search.

    def search(self, text: str, **settings: Unpack[SearchSettings]) -> Found:
        """Returns the messages of all sessions that match, best first. `SearchSettings` lists the settings."""
        return found(self._native.search(SearchParts(text, dict(settings)), "hits"))

    def search_by_session(self, text: str, **settings: Unpack[SearchSettings]) -> SessionsFound:
        """Returns whole sessions, best first, each with its best hits."""
        return sessions_found(self._native.search(SearchParts(text, dict(settings)), "sessions"))

    def search_alternatives(self, text: str, **settings: Unpack[SearchSettings]) -> list[Alternative]:
        """Returns queries that find something where this one finds nothing."""
        answer = self._native.search(SearchParts(text, dict(settings)), "alternatives")
        return [Alternative(**it) for it in _json.loads(answer)]

    # Usage.

    @overload
    def usage(
        self,
        *,
        by: UsageGroup,
        session: str | None = None,
        owner: str | None = None,
        model: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[UsageRow]: ...
    @overload
    def usage(
        self,
        *,
        by: None = None,
        session: str | None = None,
        owner: str | None = None,
        model: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> UsageTotal: ...
    def usage(
        self,
        *,
        by: UsageGroup | None = None,
        session: str | None = None,
        owner: str | None = None,
        model: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> list[UsageRow] | UsageTotal:
        """Returns the usage of all answers, or of those that the arguments choose; in groups with `by`."""
        answer = _json.loads(self._native.usage(UsageParts(by, session, owner, model, source, since, until)))
        return usage_total(answer) if by is None else usage_rows(answer)

    # Import and export.

    def import_file(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,
        session: str | None = None,
        strict: bool = False,
        dry_run: bool = False,
        keep_source: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Imports the conversations of a file; one that was imported before adds what is new in it.

        Args:
            path: The file.
            format: `talktree`, `claude-code`, `pi`, `chatgpt`, `open-assistant`, `openai` or `ui-message`; None detects it.
            session: The session to import into, for a file with one conversation.
            strict: Makes the first fault of the file an error; then nothing is written.
            dry_run: Writes nothing, and reports what would be done.
            keep_source: Keeps the original record of each message in its metadata.
            progress: Is called with the bytes that are read and their total.
        """
        parts = ImportParts(format, session, strict, dry_run, keep_source)
        return import_report(_json.loads(self._native.import_file(os.fspath(path), parts, progress)))

    def import_bytes(
        self,
        data: bytes,
        *,
        name: str = "data",
        format: str | None = None,
        session: str | None = None,
        strict: bool = False,
        dry_run: bool = False,
        keep_source: bool = False,
        progress: Progress | None = None,
    ) -> ImportReport:
        """Imports conversations from memory, as `import_file` does; `name` is used in the report and in errors."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data must be bytes, not {type(data).__name__}")
        parts = ImportParts(format, session, strict, dry_run, keep_source)
        return import_report(_json.loads(self._native.import_bytes(name, bytes(data), parts, progress)))

    def import_sessions(self, sessions: Iterable[SessionImport]) -> list[list[Imported] | Exception]:
        """Stores whole new sessions in one commit.

        Returns:
            For each what was done with its records, or why it was not stored: a `SessionExistsError`, for example.
        """
        fields = [session_fields(it, f"sessions[{at}]") for at, it in enumerate(sessions)]
        outcomes = self._native.import_sessions(_json.dumps(fields, "sessions"))
        return [(imported or []) if error is None else error for imported, error in outcomes]

    def export_jsonl(self, target: Target, *, readable_only: bool = False) -> list[tuple[str, str]]:
        """Writes all sessions as JSON lines, to a path or a binary file; the contents of blocks are not among them.

        Returns:
            With `readable_only` the damaged sessions that were left out, each with the reason; without, an empty list.
        """
        left_out: list[tuple[str, str]] = written_to(
            target, lambda write: self._native.export_jsonl(write, readable_only)
        )
        return left_out

    # Care.

    def stats(self) -> StoreStats:
        """Returns the size of the store."""
        return StoreStats(**_json.loads(self._native.stats()))

    def verify(self, progress: Progress | None = None) -> Verified:
        """Reads everything and checks every rule of the store."""
        fields = _json.loads(self._native.verify(progress))
        return Verified(fields["messages"], [Damage(**it) for it in fields["damages"]])

    def backup(self, path: str | os.PathLike[str], progress: Progress | None = None) -> None:
        """Writes a copy while others go on writing; never over a file."""
        self._native.backup(os.fspath(path), progress)

    def rebuild_search(self) -> None:
        """Rebuilds the search index."""
        self._native.rebuild_search()

    def recount_tokens(self) -> None:
        """Counts the tokens of all messages again."""
        self._native.recount_tokens()

    def content_hash(self) -> str:
        """Returns a hash of the content, the same for the same content in any store."""
        return self._native.content_hash()


def details_of(details: SessionDetails | str) -> DetailParts:
    """Returns details as the native module takes them."""
    if isinstance(details, str):
        details = SessionDetails(name=details)
    if not isinstance(details, SessionDetails):
        raise TypeError(f"details must be SessionDetails or a str, not {type(details).__name__}")
    return DetailParts(details)


def estimate_tokens(text: str) -> int:
    """Returns the estimate of a text's tokens that is used without a token counter.

    >>> estimate_tokens("Can we deploy on Friday?")
    7
    """
    return _native.estimate_tokens(text)
