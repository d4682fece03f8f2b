"""A store, whose calls run in threads."""

from __future__ import annotations

import builtins
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Literal, overload

import talktree as _sync

from .._files import Target
from .._lines import Line, Pool, present_loop, waiting_in
from ..errors import ClosedError
from ..importing import Imported, SessionImport
from ..results import (
    Alternative,
    Event,
    Found,
    ImportReport,
    SessionDetails,
    SessionInfo,
    SessionsFound,
    StoreStats,
    Verified,
)
from ..search import SearchSettings
from ..settings import SessionSettings, settings_of
from ..store import Progress
from ..usage import UsageGroup, UsageRow, UsageTotal
from .session import Session
from .transcripts import Transcripts

if TYPE_CHECKING:
    from ..search import Unpack


class Store:
    """A store of conversations, as `talktree.Store`; it is opened by `async with`, or by `await Store.open(..)`.

    The arguments are those of `talktree.Store`.
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
        self._open: Callable[[], _sync.Store] = lambda: _sync.Store(
            path,
            read_only=read_only,
            durability=durability,
            busy_timeout=busy_timeout,
            cache_kib=cache_kib,
            max_message_bytes=max_message_bytes,
            idle_readers=idle_readers,
        )
        self._opened: _sync.Store | None = None
        self._opening = threading.Lock()
        self._pool = Pool()
        self._run = self._pool.run
        self._lines: weakref.WeakValueDictionary[str, Line] = weakref.WeakValueDictionary()

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        read_only: bool = False,
        durability: Literal["full", "normal"] = "full",
        busy_timeout: timedelta | float | None = None,
        cache_kib: int | None = None,
        max_message_bytes: int | None = None,
        idle_readers: int | None = None,
    ) -> Store:
        """Returns an open store; `close` ends it."""
        store = cls(
            path,
            read_only=read_only,
            durability=durability,
            busy_timeout=busy_timeout,
            cache_kib=cache_kib,
            max_message_bytes=max_message_bytes,
            idle_readers=idle_readers,
        )
        return await store.__aenter__()

    @classmethod
    def over(cls, store: _sync.Store) -> Store:
        """Returns the async face of a store that is open."""
        face = cls()
        face._opened = store
        return face

    async def __aenter__(self) -> Store:
        if self._opened is None:
            await self._run(lambda call: self._opened_now())
        return self

    def _opened_now(self) -> _sync.Store:
        """Returns the store, which the first call opens; for threads."""
        # Several tasks may begin with it at once.
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def sync(self) -> _sync.Store:
        """The store for code that is not async.

        Raises:
            talktree.ClosedError: if it was not opened yet.
        """
        if self._opened is None:
            raise ClosedError("the store was not opened; use it in `async with`, or `await Store.open(..)`")
        return self._opened

    def __repr__(self) -> str:
        return "<Store, not opened>" if self._opened is None else repr(self._opened)

    def _line(self, id: str) -> Line:
        line = self._lines.get(id)
        if line is None:
            line = self._lines[id] = Line(self._pool)
        return line

    def _transcript_line(self, project: str, session: str) -> Line:
        # A session of talktree with this id would share the line: the two would only wait for each other.
        return self._line(f"transcript {[project, session]!r}")

    def _wrap(self, sync: _sync.Session) -> Session:
        return Session(sync, self)

    @property
    def closed(self) -> bool:
        """Whether the store was closed."""
        return self._opened is not None and self._opened.closed

    async def close(self) -> None:
        """Closes the store and everything that was opened from it, after the calls that run."""
        opened = self._opened
        if opened is not None:
            # Not in a thread of the pool: the calls that it waits for may be waiting for one.
            await Pool().run(lambda call: opened.close())
        self._pool.close()

    def interrupt(self) -> None:
        """Ends the long work that runs with an `InterruptedError` of talktree."""
        self.sync.interrupt()

    async def session(self, id: str, **settings: Unpack[SessionSettings]) -> Session:
        """Returns a session; its first write creates it. `SessionSettings` lists the settings."""
        checked = settings_of(settings, waiting_in(present_loop()))
        return self._wrap(await self._run(lambda call: self.sync._session(id, checked)))

    def subscribe(self, listener: Callable[[Event], object]) -> _sync.Subscription:
        """Calls a plain listener after each change, in the thread that made it.

        The subscription ends with its `close`, or when it is collected: keep it.
        """
        return self.sync.subscribe(listener)

    @staticmethod
    def is_open_file(path: str | os.PathLike[str]) -> bool:
        """Returns whether a store of this process has this file open; then only talktree may open or close it."""
        return _sync.Store.is_open_file(path)

    async def create_session(self, details: SessionDetails | str, *, id: str | None = None) -> Session:
        """Creates a session with these details; a str is its name.

        Raises:
            talktree.SessionExistsError: if there is one of this id.
        """
        return self._wrap(await self._run(lambda call: self.sync.create_session(details, id=id)))

    async def sessions(self) -> builtins.list[SessionInfo]:
        """Returns all sessions, the latest first; `SessionManager.list` returns them in pages."""
        return await self._run(lambda call: self.sync.sessions())

    async def rename(self, id: str, name: str) -> None:
        """Changes the name of a session."""
        await self._run(lambda call: self.sync.rename(id, name))

    async def remove(self, id: str) -> None:
        """Removes a session and all that belongs to it."""
        await self._run(lambda call: self.sync.remove(id))

    @property
    def transcripts(self) -> Transcripts:
        """The transcripts of agent sessions, which are stored beside the sessions of talktree."""
        return Transcripts(self)

    async def search(self, text: str, **settings: Unpack[SearchSettings]) -> Found:
        """Returns the messages of all sessions that match, best first. `SearchSettings` lists the settings."""
        return await self._run(lambda call: self.sync.search(text, **settings))

    async def search_by_session(self, text: str, **settings: Unpack[SearchSettings]) -> SessionsFound:
        """Returns whole sessions, best first, each with its best hits."""
        return await self._run(lambda call: self.sync.search_by_session(text, **settings))

    async def search_alternatives(self, text: str, **settings: Unpack[SearchSettings]) -> builtins.list[Alternative]:
        """Returns queries that find something where this one finds nothing."""
        return await self._run(lambda call: self.sync.search_alternatives(text, **settings))

    @overload
    async def usage(
        self,
        *,
        by: UsageGroup,
        session: str | None = None,
        owner: str | None = None,
        model: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> builtins.list[UsageRow]: ...

    @overload
    async def usage(
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

    async def usage(
        self,
        *,
        by: UsageGroup | None = None,
        session: str | None = None,
        owner: str | None = None,
        model: str | None = None,
        source: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> builtins.list[UsageRow] | UsageTotal:
        """Returns the usage of all answers, or of those that the arguments choose; in groups with `by`."""
        return await self._run(
            lambda call: self.sync.usage(
                by=by, session=session, owner=owner, model=model, source=source, since=since, until=until
            )
        )

    async def import_file(
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
        return await self._run(
            lambda call: self.sync.import_file(
                path,
                format=format,
                session=session,
                strict=strict,
                dry_run=dry_run,
                keep_source=keep_source,
                progress=call.progress(progress),
            )
        )

    async def import_bytes(
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
        return await self._run(
            lambda call: self.sync.import_bytes(
                data,
                name=name,
                format=format,
                session=session,
                strict=strict,
                dry_run=dry_run,
                keep_source=keep_source,
                progress=call.progress(progress),
            )
        )

    async def import_sessions(
        self, sessions: Iterable[SessionImport]
    ) -> builtins.list[builtins.list[Imported] | Exception]:
        """Stores whole new sessions in one commit; returns for each what was done, or why it was not stored."""
        return await self._run(lambda call: self.sync.import_sessions(sessions))

    async def export_jsonl(self, target: Target, *, readable_only: bool = False) -> builtins.list[tuple[str, str]]:
        """Writes all sessions as JSON lines, to a path or a binary file; the contents of blocks are not among them.

        Returns:
            With `readable_only` the damaged sessions that were left out, each with the reason; without, an empty list.
        """
        return await self._run(lambda call: self.sync.export_jsonl(target, readable_only=readable_only))

    async def stats(self) -> StoreStats:
        """Returns the size of the store."""
        return await self._run(lambda call: self.sync.stats())

    async def verify(self, progress: Progress | None = None) -> Verified:
        """Reads everything and checks every rule of the store."""
        return await self._run(lambda call: self.sync.verify(call.progress(progress)))

    async def backup(self, path: str | os.PathLike[str], progress: Progress | None = None) -> None:
        """Writes a copy while others go on writing; never over a file."""
        return await self._run(lambda call: self.sync.backup(path, call.progress(progress)))

    async def rebuild_search(self) -> None:
        """Rebuilds the search index."""
        await self._run(lambda call: self.sync.rebuild_search())

    async def recount_tokens(self) -> None:
        """Counts the tokens of all messages again."""
        await self._run(lambda call: self.sync.recount_tokens())

    async def content_hash(self) -> str:
        """Returns a hash of the content, the same for the same content in any store."""
        return await self._run(lambda call: self.sync.content_hash())
