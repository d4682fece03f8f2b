"""A store, whose calls run in threads."""

from __future__ import annotations

import builtins
import os
import threading
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import talktree as _sync

from .._files import Target
from .._lines import Line, Pool, is_callback, present_loop, waiting_in
from ..embedding import Embedder, Embedding
from ..errors import ClosedError
from ..importing import FolderImport, Imported, ImportOptions, SessionImport
from ..many import Progress
from ..results import (
    Event,
    ImportReport,
    MessagePage,
    OwnerExport,
    OwnerInfo,
    SessionDetails,
    SessionInfo,
    StoreStats,
    Verified,
)
from ..settings import SessionSettings, settings_of
from ..store import Key, StoreOptions
from .many import ManySessions
from .session import Session
from .transcripts import Transcripts

if TYPE_CHECKING:
    from ..search import Unpack


class Store(ManySessions):
    """A store of conversations, as `talktree.Store`; it is opened by `async with`, or by `await Store.open(..)`.

    The arguments are those of `talktree.Store`.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, **options: Unpack[StoreOptions]) -> None:
        self._open: Callable[[], _sync.Store] = lambda: _sync.Store(path, **options)
        self._opened: _sync.Store | None = None
        self._opening = threading.Lock()
        self._pool = Pool()

    @classmethod
    async def open(cls, path: str | os.PathLike[str] | None = None, **options: Unpack[StoreOptions]) -> Store:
        """Returns an open store; `close` ends it."""
        return await cls(path, **options).__aenter__()

    @classmethod
    def over(cls, store: _sync.Store) -> Store:
        """Returns the async face of a store that is open."""
        face = cls()
        face._opened = store
        face._pool = Pool.of(store, face._pool)
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
                opened = self._open()
                Pool.of(opened, self._pool)
                self._opened = opened
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

    @property
    def _many(self) -> _sync.Store:
        return self.sync

    def __repr__(self) -> str:
        return "<Store, not opened>" if self._opened is None else repr(self._opened)

    def _line(self, id: str) -> Line:
        return self._pool.line(id)

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
        """Closes the store and everything that was opened from it, after the calls that run.

        In a callback it does not wait for them, because one of them waits for the callback.
        """
        opened = self._opened
        if opened is not None:
            is_inside = is_callback()
            # Not in a thread of the pool: the calls that it waits for may be waiting for one.
            await Pool().run(lambda call: opened._close(lambda: is_inside))
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

    async def owners(self, *, after: str | None = None, limit: int = 100) -> builtins.list[OwnerInfo]:
        """Returns at most `limit` owners of sessions or transcripts, by name: those after `after`."""
        return await self._run(lambda call: self.sync.owners(after=after, limit=limit))

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

    async def embed(self, embedder: Embedder, progress: Progress | None = None) -> Embedding:
        """Gives a vector to every message that has none of this embedder; searches with `by_meaning=embedder` find them.

        A new or changed message is pending until the next call. A cancelled call stops after its batch.
        """
        return await self._run(lambda call: self.sync.embed(embedder, call.progress(progress)))

    async def embeddings(self) -> builtins.list[Embedding]:
        """Returns which embedders the store has vectors of, by name. It counts the vectors, so it reads them all."""
        return await self._run(lambda call: self.sync.embeddings())

    async def remove_embedding(self, name: str) -> bool:
        """Removes the vectors of an embedder, such as a former model; returns whether there were any."""
        return await self._run(lambda call: self.sync.remove_embedding(name))

    async def import_file(
        self,
        path: str | os.PathLike[str],
        *,
        session: str | None = None,
        progress: Progress | None = None,
        **options: Unpack[ImportOptions],
    ) -> ImportReport:
        """Imports the conversations of a file; one that was imported before adds what is new in it."""
        return await self._run(
            lambda call: self.sync.import_file(path, session=session, progress=call.progress(progress), **options)
        )

    async def import_bytes(
        self,
        data: bytes,
        *,
        name: str = "data",
        session: str | None = None,
        progress: Progress | None = None,
        **options: Unpack[ImportOptions],
    ) -> ImportReport:
        """Imports conversations from memory, as `import_file` does; `name` is used in the report and in errors."""
        return await self._run(
            lambda call: self.sync.import_bytes(
                data, name=name, session=session, progress=call.progress(progress), **options
            )
        )

    async def import_folder(
        self,
        folder: str | os.PathLike[str],
        *,
        progress: Progress | None = None,
        **options: Unpack[ImportOptions],
    ) -> FolderImport:
        """Imports the `*.jsonl` and `*.json` below a folder, such as `~/.claude/projects`, as `import_file` does each."""
        return await self._run(
            lambda call: self.sync.import_folder(folder, progress=call.progress(progress), **options)
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

    async def export_owner(
        self, owner: str, target: Target, *, format: Literal["jsonl", "markdown"] = "jsonl"
    ) -> OwnerExport:
        """Writes all data of an owner to a path or a binary file, for a person who asks to see it or takes it elsewhere."""
        return await self._run(lambda call: self.sync.export_owner(owner, target, format=format))

    async def export_author(
        self, author: str, target: Target, *, format: Literal["jsonl", "markdown"] = "jsonl"
    ) -> OwnerExport:
        """Writes what a person wrote in all sessions to a path or a binary file, also in the sessions of others."""
        return await self._run(lambda call: self.sync.export_author(author, target, format=format))

    async def list_messages(
        self,
        *,
        author: str | None = None,
        tag: str | None = None,
        session: str | None = None,
        include_trash: bool = False,
        after: str | None = None,
        limit: int = 50,
    ) -> MessagePage:
        """Returns a page of messages, session by session in the order in which they were appended."""
        return await self._run(
            lambda call: self.sync.list_messages(
                author=author, tag=tag, session=session, include_trash=include_trash, after=after, limit=limit
            )
        )

    async def finish_erasure(self) -> bool:
        """Finishes all erasures that were interrupted, or whose log was in use; returns whether they are complete now."""
        return await self._run(lambda call: self.sync.finish_erasure())

    async def has_unfinished_erasure(self) -> bool:
        """Returns whether there is an erasure to finish, or one that is running."""
        return await self._run(lambda call: self.sync.has_unfinished_erasure())

    async def is_import_forbidden(self, id: str) -> bool:
        """Returns whether a session was erased with `forbid_import`."""
        return await self._run(lambda call: self.sync.is_import_forbidden(id))

    async def rekey(self, key: Key) -> None:
        """Encrypts the store with another key, in one transaction; backups keep their keys."""
        await self._run(lambda call: self.sync.rekey(key))

    async def stats(self) -> StoreStats:
        """Returns the size of the store."""
        return await self._run(lambda call: self.sync.stats())

    async def verify(self, progress: Progress | None = None) -> Verified:
        """Reads everything and checks every rule of the store."""
        return await self._run(lambda call: self.sync.verify(call.progress(progress)))

    async def backup(self, path: str | os.PathLike[str], progress: Progress | None = None) -> None:
        """Writes a copy while others go on writing; never over a file."""
        return await self._run(lambda call: self.sync.backup(path, call.progress(progress)))

    async def index(self, progress: Progress | None = None) -> None:
        """Brings the search index up to date; see `Store.index`."""
        await self._run(lambda call: self.sync.index(call.progress(progress)))

    async def rebuild_search(self) -> None:
        """Rebuilds the search index."""
        await self._run(lambda call: self.sync.rebuild_search())

    async def recount_tokens(self) -> None:
        """Counts the tokens of all messages again."""
        await self._run(lambda call: self.sync.recount_tokens())

    async def recount_usage(self) -> None:
        """Adds the usage of answers that an older talktree stored without counting it. Called again, it adds nothing."""
        await self._run(lambda call: self.sync.recount_usage())

    async def content_hash(self) -> str:
        """Returns a hash of the content, the same for the same content in any store."""
        return await self._run(lambda call: self.sync.content_hash())
