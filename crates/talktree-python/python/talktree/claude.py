"""A session store for the Claude Agent SDK (`pip install talktree[claude]`).

    sessions = talktree.claude.SessionStore("agents.db")
    options = ClaudeAgentOptions(session_store=sessions, resume=session_id)

The SDK appends what its agents write to the store, and resumes a session from it on any computer. It has all methods of the
SDK's protocol, for asyncio and trio. The transcripts are beside the sessions of talktree in the same file; `transcripts`
returns them for all other verbs.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Coroutine, Iterable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar, cast

import talktree as _sync

from . import _json, aio
from ._lines import present_loop
from .errors import ClosedError, Error
from .transcripts import TranscriptKey

if TYPE_CHECKING:
    from claude_agent_sdk import (
        SessionKey,
        SessionListSubkeysKey,
        SessionStoreEntry,
        SessionStoreListEntry,
        SessionSummaryEntry,
    )

T = TypeVar("T")

_logger = logging.getLogger("talktree.claude")


class StoreBusyError(Error):
    """Another process kept the store locked for too long; nothing was done, and the same call may succeed later.

    It is no `TimeoutError`, unlike `talktree.BusyError`: the SDK repeats an append that failed, but drops the entries of one
    that ended with a `TimeoutError`.
    """

    is_retryable = True


class SessionStore:
    """The sessions of agents, in a store: for `ClaudeAgentOptions(session_store=..)`.

    Calls of one session run in the order in which they were made, even if an earlier one was cancelled. An append or a delete
    that was cancelled, or that took the SDK too long, is still done; if it fails then, `logging` has the error. One object may
    serve many agents at once.

    >>> import asyncio
    >>> from talktree.claude import SessionStore
    >>> async def main() -> None:
    ...     async with SessionStore() as sessions:  # SessionStore("agents.db") keeps them in a file
    ...         key = {"project_key": "-home-ann-shop", "session_id": "4b1e7d5c-90c5-4dd7-a6f1-8f8b2f4f7a10"}
    ...         await sessions.append(key, [{"type": "user", "uuid": "1", "message": {"content": "Fix the login."}}])
    ...         print(len(await sessions.load(key)))
    ...         print([info.summary for info in await (await sessions.transcripts()).infos("-home-ann-shop")])
    >>> asyncio.run(main())
    1
    ['Fix the login.']

    Args:
        store: A store of talktree, plain or async, which the program closes; or the path of one, None for one in memory. A
            path is opened by the first call, so that a process may be forked before it.
        owner: Whose data the transcripts are that this object appends to: what lists by owner and erasures ask for.
        projecting: Whether transcripts are also sessions of the store, which searches find; each append takes longer.
    """

    def __init__(
        self,
        store: _sync.Store | aio.Store | str | os.PathLike[str] | None = None,
        *,
        owner: str | None = None,
        projecting: bool = False,
    ) -> None:
        self._owner = _json.maybe_str(owner, "owner")
        self._projecting = projecting
        self._owns_store = not isinstance(store, (_sync.Store, aio.Store))
        if isinstance(store, aio.Store):
            self._store = store
        elif isinstance(store, _sync.Store):
            self._store = aio.Store.over(store)
        else:
            self._store = aio.Store(store)
        self._shared = _Shared()
        #: From the first call on.
        self._opened: _sync.Transcripts | None = None

    def owned_by(self, owner: str) -> SessionStore:
        """Returns the same store; what is appended through it is the data of this owner.

        The first owner of a transcript stays; an append for another one is refused.
        """
        owned = SessionStore(self._store, owner=_json.is_str(owner, "owner"), projecting=self._projecting)
        owned._shared = self._shared
        return owned

    # The protocol of the SDK. These are plain functions that return coroutines: a call has its place in the order when it is
    # made, not when its task first runs.

    def append(self, key: SessionKey, entries: list[SessionStoreEntry]) -> Coroutine[Any, Any, None]:
        """Appends entries, all or none; one whose `uuid` the transcript has is not added."""
        parts, kept = _key(key), list(entries)

        def append(transcripts: _sync.Transcripts) -> None:
            transcripts.append(parts, cast("Iterable[Mapping[str, Any]]", kept))

        return self._in_order(parts, append, is_write=True)

    def load(self, key: SessionKey) -> Coroutine[Any, Any, list[SessionStoreEntry] | None]:
        """Returns all entries in the order of the appends; None if there are none."""
        parts = _key(key)
        return self._in_order(parts, lambda it: cast("list[SessionStoreEntry] | None", it.load(parts)))

    def list_sessions(self, project_key: str) -> Coroutine[Any, Any, list[SessionStoreListEntry]]:
        """Returns the sessions of a project, with the times of their last appends."""

        def list_sessions(transcripts: _sync.Transcripts) -> list[SessionStoreListEntry]:
            return [{"session_id": it.session, "mtime": it.mtime} for it in transcripts.list_sessions(project_key)]

        return self._unordered(list_sessions)

    def list_session_summaries(self, project_key: str) -> Coroutine[Any, Any, list[SessionSummaryEntry]]:
        """Returns the summaries of the same sessions, with the same times; no transcript is read."""

        def summaries(transcripts: _sync.Transcripts) -> list[SessionSummaryEntry]:
            found = transcripts._summaries(project_key)
            return [{"session_id": session, "mtime": mtime, "data": data} for session, mtime, data in found]

        return self._unordered(summaries)

    def delete(self, key: SessionKey) -> Coroutine[Any, Any, None]:
        """Deletes a transcript; the main one with all others of its session."""
        parts = _key(key)

        def delete(transcripts: _sync.Transcripts) -> None:
            transcripts.delete(parts)

        return self._in_order(parts, delete, is_write=True)

    def list_subkeys(self, key: SessionListSubkeysKey) -> Coroutine[Any, Any, list[str]]:
        """Returns the subpaths of a session, without the main transcript."""
        parts = TranscriptKey(key["project_key"], key["session_id"])
        return self._in_order(parts, lambda it: it.list_subkeys(parts.project, parts.session))

    # Beyond the protocol.

    async def transcripts(self) -> aio.Transcripts:
        """Returns the transcripts for other verbs: titles, tags, conversations, copies, files, deletes by owner."""
        transcripts = (await self._store.__aenter__()).transcripts
        transcripts = transcripts.projecting() if self._projecting else transcripts
        return transcripts if self._owner is None else transcripts.owned_by(self._owner)

    async def close(self) -> None:
        """Waits for the appends and deletes that were called, then closes the store, if it was opened by its path."""
        for write in list(self._shared.writes):
            await _done(write)
        if self._owns_store:
            await self._store.close()

    async def __aenter__(self) -> SessionStore:
        return self

    async def __aexit__(self, kind: object, error: object, traceback: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<SessionStore {self._store!r}>"

    def _call(self, call: Callable[[_sync.Transcripts], T]) -> T:
        """Runs a call in a thread."""
        try:
            transcripts = self._opened
            if transcripts is None:
                transcripts = self._store._opened_now().transcripts
                transcripts = transcripts.projecting() if self._projecting else transcripts
                transcripts = transcripts if self._owner is None else transcripts.owned_by(self._owner)
                self._opened = transcripts
            return call(transcripts)
        except TimeoutError as error:
            raise StoreBusyError(str(error)) from error

    def _in_order(
        self, key: TranscriptKey, call: Callable[[_sync.Transcripts], T], *, is_write: bool = False
    ) -> Coroutine[Any, Any, T]:
        self._store._pool.check_process()
        job = _Job(lambda: self._call(call))
        if is_write:
            self._shared.keep(job.future)
        self._store._transcript_line(key.project, key.session).enqueue(job)
        return _outcome(job.future, is_write)

    def _unordered(self, call: Callable[[_sync.Transcripts], T]) -> Coroutine[Any, Any, T]:
        job = _Job(lambda: self._call(call))
        if not self._store._pool.submit(job.run):
            job.refuse()
        return _outcome(job.future, False)


class _Shared:
    """What a store and its owned faces have in common."""

    def __init__(self) -> None:
        self.writes: set[Future[Any]] = set()

    def keep(self, write: Future[Any]) -> None:
        self.writes.add(write)
        write.add_done_callback(self.writes.discard)


class _Job:
    """A call that runs in a thread, whether or not somebody waits for it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self.future: Future[Any] = Future()

    def run(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self._work()
        except BaseException as error:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)

    def refuse(self) -> None:
        self.future.set_exception(ClosedError("the store is closed"))


async def _outcome(future: Future[T], is_write: bool) -> T:
    """Waits for a call. If the task is cancelled, a read that has not begun is never run; a write is."""
    try:
        await _done(future)
    except BaseException:
        if is_write:
            future.add_done_callback(_report)
        else:
            future.cancel()
        raise
    return future.result()


async def _done(future: Future[Any]) -> None:
    waker = present_loop().waker()
    future.add_done_callback(lambda _: waker.wake())
    await waker.wait()


def _report(abandoned: Future[Any]) -> None:
    error = abandoned.exception()
    if error is not None:
        _logger.error("a write that nobody waited for failed: %s", error)


def _key(key: SessionKey) -> TranscriptKey:
    return TranscriptKey(key["project_key"], key["session_id"], key.get("subpath") or "")
