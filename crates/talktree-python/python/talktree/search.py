"""What is searched and how."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypedDict

from . import _json
from .embedding import Embedder, embedder_parts

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack


class SearchSettings(TypedDict, total=False):
    """The settings of a search, all of them optional."""

    #: How many hits, at most; 20 by default.
    limit: int
    #: How many hits to leave out before.
    offset: int
    #: Only these sessions.
    sessions: Iterable[str]
    #: Only the sessions of this owner.
    owner: str
    #: Only what this person wrote: the id of the author, or the name of one without an id. With an empty text, all of it.
    author: str
    #: Only messages with all of these tags.
    tags: Iterable[str]
    #: Only the path to the head, of a session or of one that `sessions` names. The searches of a `Path` are of that path.
    on_path: bool
    #: Leaves out hidden messages.
    without_hidden: bool
    #: Takes the text as words, without operators.
    plain: bool
    #: Runs of characters that a message has exactly as written, all of them.
    exact: Iterable[str]
    #: How long it may take; what was found until then is returned. In seconds, or as a timedelta.
    timeout: timedelta | float
    #: What words such as `yesterday` are relative to.
    now: datetime
    #: Adds the messages that mean what the text says, by the vectors that `Store.embed` stored; plain or async.
    by_meaning: Embedder


class SearchParts:
    """A search as the native module takes it."""

    def __init__(self, text: str, settings: dict[str, Any]) -> None:
        _json.only_known(settings, SearchSettings)
        sessions = settings.get("sessions")
        self.text = _json.is_str(text, "text")
        self.sessions = None if sessions is None else _json.strs(sessions, "sessions")
        self.owner = _json.maybe_str(settings.get("owner"), "owner")
        self.author = _json.maybe_str(settings.get("author"), "author")
        self.tags = _json.strs(settings.get("tags", ()), "tags")
        self.on_path = bool(settings.get("on_path", False))
        self.without_hidden = bool(settings.get("without_hidden", False))
        self.plain = bool(settings.get("plain", False))
        self.exact = _json.strs(settings.get("exact", ()), "exact")
        self.timeout = _json.maybe_seconds(settings.get("timeout"), "timeout")
        self.limit = _json.maybe_count(settings.get("limit"), "limit")
        self.offset = _json.maybe_count(settings.get("offset"), "offset")
        embedder = settings.get("by_meaning")
        self.by_meaning = None if embedder is None else embedder_parts(embedder, "by_meaning")
        self.now = _json.maybe_time_text(settings.get("now"), "now")
