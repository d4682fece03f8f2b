"""A manager of sessions."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import talktree as _sync

from .._lines import present_loop, waiting_in
from ..compaction import SummaryLike
from ..manager import State
from ..results import Binding, SessionDetails, SessionInfo, SessionPage
from ..settings import SessionSettings, settings_of
from .many import Erased, ManySessions
from .session import Session
from .store import Store

if TYPE_CHECKING:
    from ..search import Unpack


@dataclass(frozen=True)
class Resumed:
    """The session that a key leads to."""

    session: Session
    is_new: bool
    #: The session that it led to before, and why that was not resumed.
    former: tuple[str, str] | None


class SessionManager(ManySessions):
    """What all sessions of a bot have in common, as `talktree.SessionManager`. The store must be open."""

    def __init__(self, store: Store, **settings: Unpack[SessionSettings]) -> None:
        if not isinstance(store, Store):
            raise TypeError(f"store must be a talktree.aio.Store, not {type(store).__name__}")
        self.sync = _sync.SessionManager._over(store.sync, settings_of(settings, waiting_in(present_loop())))
        self._store = store
        self._pool = store._pool

    @property
    def _many(self) -> _sync.SessionManager:
        return self.sync

    def _wrap(self, sync: _sync.Session) -> Session:
        return Session(sync, self._store)

    async def session(self, id: str) -> Session:
        """Returns a session with the settings of the manager; its first write creates it."""
        return self._wrap(await self._run(lambda call: self.sync.session(id)))

    async def create(self, details: SessionDetails | str, *, id: str | None = None) -> Session:
        """Creates a session with these details; a str is its name."""
        return self._wrap(await self._run(lambda call: self.sync.create(details, id=id)))

    async def resume(
        self,
        key: str,
        *,
        owner: str | None = None,
        expire_after: timedelta | float | None = None,
        details: SessionDetails | str | None = None,
        new_id: str | None = None,
    ) -> Session:
        """Returns the session that an outside key leads to, such as a chat of a messenger, or a new one."""
        resumed = await self.resumed(key, owner=owner, expire_after=expire_after, details=details, new_id=new_id)
        return resumed.session

    async def resumed(
        self,
        key: str,
        *,
        owner: str | None = None,
        expire_after: timedelta | float | None = None,
        details: SessionDetails | str | None = None,
        new_id: str | None = None,
    ) -> Resumed:
        """Does what `resume` does, and returns also whether the session is new and why the former one was not resumed."""
        resumed = await self._run(
            lambda call: self.sync.resumed(key, owner=owner, expire_after=expire_after, details=details, new_id=new_id)
        )
        return Resumed(self._wrap(resumed.session), resumed.is_new, resumed.former)

    async def fork(self, id: str, at: str, name: str) -> Session:
        """Returns a new session that begins with a copy of the path to a message."""
        line = self._store._line(id)
        return self._wrap(await line.run(lambda call: self.sync.fork(id, at, name)))

    async def compact_and_split(self, id: str, summary: SummaryLike) -> Session:
        """Ends a session and continues it in a new one, which begins with the summary."""
        line = self._store._line(id)
        return self._wrap(await line.run(lambda call: self.sync.compact_and_split(id, summary)))

    async def unbind(self, key: str) -> str | None:
        """Ends the binding of a key; returns the session that it led to."""
        return await self._run(lambda call: self.sync.unbind(key))

    async def bindings(self, key: str) -> builtins.list[Binding]:
        """Returns the sessions that a key leads to and led to, the latest first."""
        return await self._run(lambda call: self.sync.bindings(key))

    async def get(self, id: str) -> SessionInfo | None:
        """Returns a session's details, also in the trash; None if there is none."""
        return await self._run(lambda call: self.sync.get(id))

    async def list(
        self,
        *,
        owner: str | None = None,
        author: str | None = None,
        source: str | None = None,
        model: str | None = None,
        tag: str | None = None,
        parent_session: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        name: str | None = None,
        pinned: bool | None = None,
        state: State = "present",
        after: str | None = None,
        limit: int | None = None,
    ) -> SessionPage:
        """Returns a page of sessions (20 by default), pinned ones first, then the latest."""
        return await self._run(
            lambda call: self.sync.list(
                owner=owner,
                author=author,
                source=source,
                model=model,
                tag=tag,
                parent_session=parent_session,
                since=since,
                until=until,
                name=name,
                pinned=pinned,
                state=state,
                after=after,
                limit=limit,
            )
        )

    async def rename(self, id: str, name: str | None) -> None:
        """Changes the name of a session; None removes it."""
        await self._run(lambda call: self.sync.rename(id, name))

    async def set_owner(self, id: str, owner: str | None) -> None:
        """Changes the owner of a session; None removes it."""
        await self._run(lambda call: self.sync.set_owner(id, owner))

    async def set_metadata(self, id: str, metadata: Any) -> None:
        """Replaces the metadata of a session; None removes it."""
        await self._run(lambda call: self.sync.set_metadata(id, metadata))

    async def tag(self, id: str, tag: str) -> None:
        """Adds a tag to a session."""
        await self._run(lambda call: self.sync.tag(id, tag))

    async def untag(self, id: str, tag: str) -> None:
        """Removes a tag of a session."""
        await self._run(lambda call: self.sync.untag(id, tag))

    async def pin(self, id: str) -> None:
        """Shows a session first in lists."""
        await self._run(lambda call: self.sync.pin(id))

    async def unpin(self, id: str) -> None:
        """Removes the pin of a session."""
        await self._run(lambda call: self.sync.unpin(id))

    async def end(self, id: str, reason: str) -> None:
        """Ends a session: its key leads to a new one the next time."""
        await self._run(lambda call: self.sync.end(id, reason))

    async def reopen(self, id: str) -> None:
        """Reopens a session that was ended."""
        await self._run(lambda call: self.sync.reopen(id))

    async def delete(self, id: str) -> None:
        """Moves a session into the trash: it is in no list and no search, and cannot be written."""
        await self._run(lambda call: self.sync.delete(id))

    async def restore(self, id: str) -> None:
        """Takes a session out of the trash."""
        await self._run(lambda call: self.sync.restore(id))

    async def remove(self, id: str) -> None:
        """Removes a session and all that belongs to it."""
        await self._run(lambda call: self.sync.remove(id))

    async def erase_session(self, id: str) -> Erased:
        """Erases a session with all that belongs to it, as `erase` does."""
        return await self.erase(sessions=[id])

    async def erase_key(self, key: str) -> Erased:
        """Erases an outside key, and the sessions that it leads to or led to. An unknown key is no error."""
        return await self.erase(keys=[key])
