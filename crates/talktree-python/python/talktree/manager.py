"""A manager: what all sessions of a bot have in common."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from . import _json, _native
from .compaction import SummaryLike, summary_parts
from .erasure import Erased
from .many import ManySessions
from .results import Binding, SessionDetails, SessionInfo, SessionPage, binding, session_info
from .session import Session
from .settings import SessionSettings, settings_of
from .store import Store, details_of

if TYPE_CHECKING:
    from .search import Unpack

#: Which sessions a list shows.
State = Literal["present", "open", "ended", "trash"]


@dataclass(frozen=True)
class Resumed:
    """The session that a key leads to."""

    session: Session
    is_new: bool
    #: The session that it led to before, and why that was not resumed.
    former: tuple[str, str] | None


class _Filter:
    """A filter of sessions as the native module takes it."""

    def __init__(
        self,
        owner: str | None,
        author: str | None,
        source: str | None,
        model: str | None,
        tag: str | None,
        parent_session: str | None,
        since: datetime | None,
        until: datetime | None,
        name: str | None,
        pinned: bool | None,
        state: State,
    ) -> None:
        if state not in ("present", "open", "ended", "trash"):
            raise ValueError(f"state must be present, open, ended or trash, not {state!r}")
        self.owner = _json.maybe_str(owner, "owner")
        self.author = _json.maybe_str(author, "author")
        self.source = _json.maybe_str(source, "source")
        self.model = _json.maybe_str(model, "model")
        self.tag = _json.maybe_str(tag, "tag")
        self.parent_session = _json.maybe_str(parent_session, "parent_session")
        self.since = _json.maybe_time_text(since, "since")
        self.until = _json.maybe_time_text(until, "until")
        self.name = _json.maybe_str(name, "name")
        self.is_pinned = _json.maybe_bool(pinned, "pinned")
        self.state = state


class _Resume:
    """A resume as the native module takes it."""

    def __init__(
        self,
        key: str,
        owner: str | None,
        expire_after: timedelta | float | None,
        details: SessionDetails | str | None,
        new_id: str | None,
    ) -> None:
        self.key = _json.is_str(key, "key")
        self.owner = _json.maybe_str(owner, "owner")
        self.expire_after = _json.maybe_seconds(expire_after, "expire_after")
        self.details = None if details is None else details_of(details)
        self.new_id = _json.maybe_str(new_id, "new_id")


class SessionManager(ManySessions):
    """What all sessions of a bot have in common, and verbs over many of them.

    The settings are those of `Store.session`; `SessionSettings` lists them.

    >>> import talktree
    >>> from datetime import timedelta
    >>> store = talktree.Store()
    >>> bot = talktree.SessionManager(
    ...     store,
    ...     blocks={"soul": "You are a helpful assistant.", "memory": talktree.Block.stored().per_owner()},
    ...     searchable_history="past conversations",
    ...     cached_prompt=True,
    ... )
    >>> chat = bot.resume("telegram:4711", owner="user:42", expire_after=timedelta(days=1))
    >>> _ = chat.append({"role": "user", "text": "What shall we eat?"})
    >>> [session.preview for session in bot.list(owner="user:42")]
    ['What shall we eat?']
    """

    def __init__(self, store: Store, **settings: Unpack[SessionSettings]) -> None:
        if not isinstance(store, Store):
            raise TypeError(f"store must be a talktree.Store, not {type(store).__name__}")
        self._native: _native.Manager = _native.Manager(store._native, settings_of(settings))

    @classmethod
    def _over(cls, store: Store, settings: dict[str, Any]) -> SessionManager:
        manager = cls.__new__(cls)
        manager._native = _native.Manager(store._native, settings)
        return manager

    def session(self, id: str) -> Session:
        """Returns a session with the settings of the manager; its first write creates it."""
        return Session(self._native.session(_json.is_str(id, "id")))

    def create(self, details: SessionDetails | str, *, id: str | None = None) -> Session:
        """Creates a session with these details; a str is its name."""
        return Session(self._native.create(_json.maybe_str(id, "id"), details_of(details)))

    def resume(
        self,
        key: str,
        *,
        owner: str | None = None,
        expire_after: timedelta | float | None = None,
        details: SessionDetails | str | None = None,
        new_id: str | None = None,
    ) -> Session:
        """Returns the session that an outside key leads to, such as a chat of a messenger, or a new one.

        Args:
            key: The key.
            owner: Whom the session belongs to; the session of another owner is not resumed.
            expire_after: How long it may be idle; in seconds, or as a timedelta.
            details: The details of a new session.
            new_id: The id of a new session.
        """
        return self.resumed(key, owner=owner, expire_after=expire_after, details=details, new_id=new_id).session

    def resumed(
        self,
        key: str,
        *,
        owner: str | None = None,
        expire_after: timedelta | float | None = None,
        details: SessionDetails | str | None = None,
        new_id: str | None = None,
    ) -> Resumed:
        """Does what `resume` does, and returns also whether the session is new and why the former one was not resumed."""
        session, is_new, former = self._native.resume(_Resume(key, owner, expire_after, details, new_id))
        return Resumed(Session(session), is_new, former)

    def unbind(self, key: str) -> str | None:
        """Ends the binding of a key; returns the session that it led to."""
        return self._native.unbind(_json.is_str(key, "key"))

    def bindings(self, key: str) -> builtins.list[Binding]:
        """Returns the sessions that a key leads to and led to, the latest first."""
        return [binding(it) for it in _json.loads(self._native.bindings(_json.is_str(key, "key")))]

    def get(self, id: str) -> SessionInfo | None:
        """Returns a session's details, also in the trash; None if there is none."""
        fields = _json.loads(self._native.get(_json.is_str(id, "id")))
        return None if fields is None else session_info(fields)

    def list(
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
        """Returns a page of sessions (20 by default), pinned ones first, then the latest.

        `author` chooses the sessions in which this person wrote.
        """
        filter = _Filter(owner, author, source, model, tag, parent_session, since, until, name, pinned, state)
        after, limit = _json.maybe_str(after, "after"), _json.maybe_count(limit, "limit")
        fields = _json.loads(self._native.list(filter, after, limit))
        return SessionPage([session_info(it) for it in fields["sessions"]], fields["after"])

    def rename(self, id: str, name: str | None) -> None:
        """Changes the name of a session; None removes it."""
        self._change(id, "name", _json.maybe_str(name, "name"))

    def set_owner(self, id: str, owner: str | None) -> None:
        """Changes the owner of a session; None removes it."""
        self._change(id, "owner", _json.maybe_str(owner, "owner"))

    def set_metadata(self, id: str, metadata: Any) -> None:
        """Replaces the metadata of a session; None removes it."""
        self._change(id, "metadata", metadata)

    def tag(self, id: str, tag: str) -> None:
        """Adds a tag to a session."""
        self._change(id, "tag", _json.is_str(tag, "tag"))

    def untag(self, id: str, tag: str) -> None:
        """Removes a tag of a session."""
        self._change(id, "untag", _json.is_str(tag, "tag"))

    def pin(self, id: str) -> None:
        """Shows a session first in lists."""
        self._change(id, "pin", True)

    def unpin(self, id: str) -> None:
        """Removes the pin of a session."""
        self._change(id, "pin", False)

    def end(self, id: str, reason: str) -> None:
        """Ends a session: its key leads to a new one the next time."""
        self._change(id, "end", _json.is_str(reason, "reason"))

    def reopen(self, id: str) -> None:
        """Reopens a session that was ended."""
        self._change(id, "reopen", None)

    def delete(self, id: str) -> None:
        """Moves a session into the trash: it is in no list and no search, and cannot be written."""
        self._change(id, "delete", None)

    def restore(self, id: str) -> None:
        """Takes a session out of the trash."""
        self._change(id, "restore", None)

    def _change(self, id: str, kind: str, value: Any) -> None:
        self._native.change(_json.is_str(id, "id"), kind, _json.dumps(value, kind))

    def remove(self, id: str) -> None:
        """Removes a session and all that belongs to it."""
        self._native.remove(_json.is_str(id, "id"))

    def erase_session(self, id: str) -> Erased:
        """Erases a session with all that belongs to it, as `erase` does."""
        return self.erase(sessions=[id])

    def erase_key(self, key: str) -> Erased:
        """Erases an outside key, and the sessions that it leads to or led to. An unknown key is no error."""
        return self.erase(keys=[key])

    def fork(self, id: str, at: str, name: str) -> Session:
        """Returns a new session that begins with a copy of the path to a message."""
        return Session(self._native.fork(_json.is_str(id, "id"), _json.is_str(at, "at"), _json.is_str(name, "name")))

    def compact_and_split(self, id: str, summary: SummaryLike) -> Session:
        """Ends a session and continues it in a new one, which begins with the summary."""
        return Session(self._native.compact_and_split(_json.is_str(id, "id"), summary_parts(summary)))
