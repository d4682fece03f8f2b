"""Transcripts of agent sessions, whose calls run in threads."""

from __future__ import annotations

import builtins
import os
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

import talktree as _sync

from ..transcripts import (
    AppendedEntries,
    ListedTranscript,
    Projection,
    ProjectionReport,
    StoredTranscript,
    TranscriptFiles,
    TranscriptInfo,
    TranscriptKey,
    TranscriptMessage,
    TranscriptSummary,
)

if TYPE_CHECKING:
    from .store import Store

T = TypeVar("T")


class Transcripts:
    """The transcripts of a store: `store.transcripts`. Calls of one session run in the order in which they were made.

    The Claude Agent SDK takes a `talktree.claude.SessionStore`, which has its method names and keys.
    """

    def __init__(self, store: Store, owner: str | None = None, *, projecting: bool = False) -> None:
        self._store = store
        self._owner = owner
        self._projecting = projecting

    @property
    def sync(self) -> _sync.Transcripts:
        """The transcripts for code that is not async."""
        transcripts = self._store.sync.transcripts
        transcripts = transcripts.projecting() if self._projecting else transcripts
        return transcripts if self._owner is None else transcripts.owned_by(self._owner)

    def owned_by(self, owner: str) -> Transcripts:
        """Returns the same transcripts; what is appended through them is the data of this owner."""
        return Transcripts(self._store, owner, projecting=self._projecting)

    def projecting(self) -> Transcripts:
        """Returns the same transcripts; what is appended through them is also written to a session of the store, in one
        transaction."""
        return Transcripts(self._store, self._owner, projecting=True)

    async def project(self, key: TranscriptKey) -> Projection | None:
        """Writes what is stored of a transcript to its session; None if it has no messages, or its session was erased for
        good. Calling it again changes nothing."""
        return await self._in_order(key.project, key.session, lambda it: it.project(key))

    async def project_all(
        self,
        *,
        project: str | None = None,
        owner: str | None = None,
        written_before: datetime | int | None = None,
    ) -> ProjectionReport:
        """Projects all transcripts that `list` shows with these arguments, each in a transaction of its own."""
        return await self._run(
            lambda it: it.project_all(project=project, owner=owner, written_before=written_before)
        )

    async def projection(self, key: TranscriptKey) -> Projection | None:
        """Returns how a session shows a transcript; None if none does."""
        return await self._in_order(key.project, key.session, lambda it: it.projection(key))

    async def _run(self, call: Callable[[_sync.Transcripts], T]) -> T:
        return await self._store._run(lambda _: call(self.sync))

    async def _in_order(self, project: str, session: str, call: Callable[[_sync.Transcripts], T]) -> T:
        line = self._store._transcript_line(project, session)
        return await line.run(lambda _: call(self.sync))

    async def append(self, key: TranscriptKey, entries: Iterable[Mapping[str, Any]]) -> AppendedEntries:
        """Appends entries, all or none."""
        return await self._in_order(key.project, key.session, lambda it: it.append(key, entries))

    async def load(self, key: TranscriptKey) -> builtins.list[dict[str, Any]] | None:
        """Returns all entries in the order of the appends; None if there are none."""
        return await self._in_order(key.project, key.session, lambda it: it.load(key))

    async def list_sessions(self, project: str) -> builtins.list[ListedTranscript]:
        """Returns the sessions of a project that have a main transcript, in any order."""
        return await self._run(lambda it: it.list_sessions(project))

    async def list_session_summaries(self, project: str) -> builtins.list[TranscriptSummary]:
        """Returns the summaries of a project's sessions, in any order."""
        return await self._run(lambda it: it.list_session_summaries(project))

    async def delete(self, key: TranscriptKey) -> int:
        """Deletes a transcript, the main one with all others of its session; returns how many were deleted."""
        return await self._in_order(key.project, key.session, lambda it: it.delete(key))

    async def list_subkeys(self, project: str, session: str) -> builtins.list[str]:
        """Returns the subpaths of a session, in any order, without the main transcript."""
        return await self._in_order(project, session, lambda it: it.list_subkeys(project, session))

    async def list(
        self,
        *,
        project: str | None = None,
        owner: str | None = None,
        written_before: datetime | int | None = None,
        after: int | None = None,
        limit: int = 100,
    ) -> builtins.list[StoredTranscript]:
        """Returns at most `limit` transcripts in order of creation: those with a number above `after`."""
        return await self._run(
            lambda it: it.list(
                project=project, owner=owner, written_before=written_before, after=after, limit=limit
            )
        )

    async def delete_of_owner(self, owner: str) -> int:
        """Deletes all transcripts of an owner, and the others of a session whose main one is the owner's."""
        return await self._run(lambda it: it.delete_of_owner(owner))

    async def infos(self, project: str) -> builtins.list[TranscriptInfo]:
        """Returns the sessions of a project as lists show them, the one that was appended to last first."""
        return await self._run(lambda it: it.infos(project))

    async def info(self, project: str, session: str) -> TranscriptInfo | None:
        """Returns what a list shows of a session; None if it is unknown or hidden."""
        return await self._in_order(project, session, lambda it: it.info(project, session))

    async def messages(self, project: str, session: str) -> builtins.list[TranscriptMessage]:
        """Returns the conversation to the message that was written last; after a compaction it begins with the summary."""
        return await self._in_order(project, session, lambda it: it.messages(project, session))

    async def subagents(self, project: str, session: str) -> builtins.list[str]:
        """Returns the ids of a session's subagents, in any order."""
        return await self._in_order(project, session, lambda it: it.subagents(project, session))

    async def subagent_messages(self, project: str, session: str, agent: str) -> builtins.list[TranscriptMessage]:
        """Returns the messages of a subagent, with the call that started it; none if it is unknown."""
        return await self._in_order(project, session, lambda it: it.subagent_messages(project, session, agent))

    async def rename(self, project: str, session: str, title: str) -> None:
        """Gives a session a title; one that is unknown is created with it."""
        await self._in_order(project, session, lambda it: it.rename(project, session, title))

    async def tag(self, project: str, session: str, tag: str | None) -> None:
        """Gives a session a tag, which replaces the former one; None removes it."""
        await self._in_order(project, session, lambda it: it.tag(project, session, tag))

    async def fork(self, project: str, session: str, *, last: str | None = None, title: str | None = None) -> str:
        """Copies the conversation of a session to a new one, with new uuids; returns the id of the copy."""
        return await self._in_order(project, session, lambda it: it.fork(project, session, last=last, title=title))

    async def import_session(self, project_folder: str | os.PathLike[str], session: str) -> TranscriptFiles:
        """Imports a session of the agent's command, with its subagents; the project is the name of the folder."""
        return await self._run(lambda it: it.import_session(project_folder, session))

    async def export_session(self, project: str, session: str, projects: str | os.PathLike[str]) -> TranscriptFiles:
        """Writes a session to a folder of projects, as the agent's command keeps it; only new files, with mode 0600."""
        return await self._in_order(project, session, lambda it: it.export_session(project, session, projects))
