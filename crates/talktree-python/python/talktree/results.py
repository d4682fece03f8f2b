"""What the verbs return: small dataclasses that cannot be changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, overload

from . import _json
from .message import Message


@dataclass(frozen=True)
class Appended:
    """What an append did."""

    #: The id of the message.
    id: str
    #: Whether it was stored now; False if its id was known.
    is_new: bool
    #: Whether the stored message of this id says something else. It was kept.
    differs: bool


@dataclass(frozen=True)
class Updated:
    """What an update or an upsert did."""

    #: Whether an upsert appended the message.
    is_new: bool
    is_changed: bool
    #: The compactions whose summaries may still contain the old text.
    covered_by: list[str]


@dataclass(frozen=True)
class Deleted:
    """What a deletion did."""

    messages: list[str]
    #: The compactions whose summaries may still speak of what was deleted.
    covered_by: list[str]
    compactions_gone: list[str]
    compactions_back: list[str]


@dataclass(frozen=True)
class Recent:
    """The newest messages that fit a budget."""

    messages: list[Message]
    #: How many older ones were left out.
    left_out: int


@dataclass(frozen=True)
class Page:
    """A page of a path, oldest message first."""

    messages: list[Message]
    #: What to give as `before` for the page of older messages; None if there is none.
    before: str | None
    #: What to give as `after` for the page of newer messages; None if there is none.
    after: str | None


@dataclass(frozen=True)
class RowStat:
    """The size of a message."""

    id: str
    role: str
    bytes: int
    tokens: int


@dataclass(frozen=True)
class HeadEntry:
    """An entry of the head's log."""

    id: str | None
    is_present: bool


@dataclass(frozen=True)
class Label:
    """A name for a message."""

    name: str
    id: str


@dataclass(frozen=True)
class MessageTag:
    """A tag of a message."""

    message: str
    tag: str


@dataclass(frozen=True)
class ListedMessage:
    """A message of a list, with its session and its tags."""

    session: str
    message: Message
    tags: list[str]


@dataclass(frozen=True)
class MessagePage:
    """A page of a list of messages."""

    messages: list[ListedMessage]
    #: What to give as `after` for the next page; None at the end.
    after: str | None

    def __iter__(self) -> Iterator[ListedMessage]:
        return iter(self.messages)


@dataclass(frozen=True)
class SessionDetails:
    """Details of a session; what is None is not set."""

    name: str | None = None
    parent_session: str | None = None
    fork_point: str | None = None
    model: str | None = None
    source: str | None = None
    metadata: Any = None
    end_reason: str | None = None
    owner: str | None = None
    tags: Sequence[str] = ()
    is_pinned: bool | None = None
    ended_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


class DetailParts:
    """Details of a session as the native module takes them."""

    def __init__(self, details: SessionDetails) -> None:
        if not isinstance(details, SessionDetails):
            raise TypeError(f"details must be SessionDetails, not {type(details).__name__}")
        self.name = _json.maybe_str(details.name, "name")
        self.parent_session = _json.maybe_str(details.parent_session, "parent_session")
        self.fork_point = _json.maybe_str(details.fork_point, "fork_point")
        self.model = _json.maybe_str(details.model, "model")
        self.source = _json.maybe_str(details.source, "source")
        self.metadata = None if details.metadata is None else _json.dumps(details.metadata, "metadata")
        self.end_reason = _json.maybe_str(details.end_reason, "end_reason")
        self.owner = _json.maybe_str(details.owner, "owner")
        self.tags = _json.strs(details.tags, "tags")
        self.is_pinned = _json.maybe_bool(details.is_pinned, "is_pinned")
        self.ended_at = _json.maybe_time_text(details.ended_at, "ended_at")
        self.created_at = _json.maybe_time_text(details.created_at, "created_at")
        self.updated_at = _json.maybe_time_text(details.updated_at, "updated_at")


@dataclass(frozen=True)
class SessionInfo:
    """A session as a list shows it."""

    id: str
    name: str | None
    parent_session: str | None
    fork_point: str | None
    model: str | None
    source: str | None
    metadata: Any
    end_reason: str | None
    owner: str | None
    tags: list[str]
    messages: int
    last_message_at: datetime | None
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    is_pinned: bool
    deleted_at: datetime | None
    #: The first line of the first message; only in the pages of `SessionManager.list`.
    preview: str | None = None


def session_info(fields: dict[str, Any]) -> SessionInfo:
    """Returns the session of its JSON."""
    for name in ("last_message_at", "created_at", "updated_at", "ended_at", "deleted_at"):
        fields[name] = _json.maybe_time(fields[name])
    return SessionInfo(**fields)


@dataclass(frozen=True)
class OwnerInfo:
    """An owner, and what is stored of them."""

    owner: str
    #: How many sessions, those in the trash left out.
    sessions: int
    messages: int
    last_message_at: datetime | None
    transcripts: int


def owner_info(fields: dict[str, Any]) -> OwnerInfo:
    """Returns the owner of its JSON."""
    fields["last_message_at"] = _json.maybe_time(fields["last_message_at"])
    return OwnerInfo(**fields)


@dataclass(frozen=True)
class SessionPage:
    """A page of a list of sessions."""

    sessions: list[SessionInfo]
    #: What to give as `after` for the next page; None at the end.
    after: str | None

    def __iter__(self) -> Iterator[SessionInfo]:
        return iter(self.sessions)

    def __len__(self) -> int:
        return len(self.sessions)


@dataclass(frozen=True)
class Binding:
    """A key that leads, or led, to a session."""

    key: str
    session: str
    bound_at: datetime
    ended_at: datetime | None
    #: Why it ended: `expired`, `ended`, `deleted`, `other_owner`, `continued`, `unreadable`, `unbound`.
    end: str | None
    number: int


def binding(fields: dict[str, Any]) -> Binding:
    """Returns the binding of its JSON."""
    fields["bound_at"] = _json.time(fields["bound_at"])
    fields["ended_at"] = _json.maybe_time(fields["ended_at"])
    return Binding(**fields)


@dataclass(frozen=True)
class StoreStats:
    """The size of a store."""

    sessions: int
    messages: int
    hidden: int
    branching_messages: int
    max_children: int
    max_depth: int
    compactions: int
    context_entries: int
    context_versions: int
    elisions: int
    transcripts: int
    transcript_entries: int
    #: Items of inboxes that are not handled yet.
    inbox_items: int
    bytes: int


@dataclass(frozen=True)
class Damage:
    """A broken rule of a store."""

    kind: str
    what: str
    remedy: str


@dataclass(frozen=True)
class Verified:
    """What `Store.verify` found."""

    messages: int
    damages: list[Damage]


@dataclass(frozen=True)
class Note:
    """A remark of an import."""

    line: int | None
    why: str
    is_fault: bool


@dataclass(frozen=True)
class ImportReport:
    """What an import did."""

    path: str
    format: str
    records: int
    kept: int
    converted: int
    dropped: int
    added: int
    known: int
    sessions: list[str]
    erased: list[str]
    #: How many keys and tokens were replaced, by kind.
    redacted: dict[str, int]
    notes: list[Note]
    notes_left_out: int


@dataclass(frozen=True)
class OwnerExport:
    """What an export of an owner's data wrote."""

    #: The sessions, those in the trash included.
    sessions: int
    messages: int
    #: Versions of texts of context blocks.
    texts: int
    #: Outside keys that lead to those sessions, or led to them.
    bindings: int
    #: Rows of usage.
    usage: int
    #: Pending items of inboxes.
    items: int
    transcripts: int
    #: Entries of the transcripts.
    entries: int


def import_report(fields: dict[str, Any]) -> ImportReport:
    """Returns the report of its JSON."""
    fields["notes"] = [Note(**note) for note in fields["notes"]]
    return ImportReport(**fields)


@dataclass(frozen=True)
class Event:
    """A committed change to a session.

    `change` is `append`, `update`, `delete`, `clear`, `compact`, `remove_compaction`, `branch_summary`, `split`, `import`,
    `head`, `window`, `cannot_shorten`, `compaction_failed` or `remove`; `fields` has what belongs to it, such as `ids`.
    """

    session: str
    change: str
    fields: dict[str, Any]


def event_listener(listener: Callable[[Event], object]) -> Callable[[str], None]:
    """Returns a listener that takes an event as JSON."""
    if not callable(listener):
        raise TypeError(f"listener must be callable, not {type(listener).__name__}")

    def call(text: str) -> None:
        fields = _json.loads(text)
        listener(Event(fields.pop("session"), fields.pop("change"), fields))

    return call


@dataclass(frozen=True)
class Snippet:
    """A part of a message, on one line. As a str it has its matches as `**match**`."""

    #: The text, with `…` at an end where the message continues.
    text: str
    #: The matches, as ranges of `text`.
    marks: list[tuple[int, int]]
    display: str

    def marked(self, open: str, close: str) -> str:
        """Returns the text with `open` and `close` around each match. Nothing is escaped.

        >>> Snippet("a red fox", [(2, 5)], "a **red** fox").marked("<b>", "</b>")
        'a <b>red</b> fox'
        """
        pieces, at = [], 0
        for start, end in self.marks:
            pieces += [self.text[at:start], open, self.text[start:end], close]
            at = end
        return "".join([*pieces, self.text[at:]])

    def __str__(self) -> str:
        return self.display


#: `all` if a message has all that was asked for, `relaxed` if only a part of it, `meaning` if none of the words: it means
#: something near.
Matched = Literal["all", "relaxed", "meaning"]


@dataclass(frozen=True)
class Hit:
    """A message that a search found."""

    session: str
    id: str
    role: str
    created_at: datetime
    snippet: Snippet
    score: float
    matched: Matched
    #: Whether it is on the path to the head.
    on_path: bool
    #: The compaction whose summary covers it.
    under: str | None
    #: The sessions in scope that have it; forks share messages.
    sessions: list[str]


def hit(fields: dict[str, Any]) -> Hit:
    """Returns the hit of its JSON."""
    snippet = fields["snippet"]
    fields["snippet"] = Snippet(snippet["text"], [(a, b) for a, b in snippet["marks"]], snippet["display"])
    fields["created_at"] = _json.time(fields["created_at"])
    return Hit(**fields)


@dataclass(frozen=True)
class Found(Sequence[Hit]):
    """What a search found: a sequence of hits, best first."""

    hits: list[Hit]
    matched: Matched
    #: What was done because the query finds little or nothing as it is written: a dict each, with `step`, with `written`
    #: and `searched` for words, and with `hits`: how many more messages it found.
    steps: list[dict[str, Any]]
    #: Parts of the query that could not be used, in words.
    notices: list[str]
    #: Whether the time for the search was up before all was searched.
    is_partial: bool

    @overload
    def __getitem__(self, at: int) -> Hit: ...
    @overload
    def __getitem__(self, at: slice) -> list[Hit]: ...
    def __getitem__(self, at: int | slice) -> Hit | list[Hit]:
        return self.hits[at]

    def __len__(self) -> int:
        return len(self.hits)


def found(text: str) -> Found:
    """Returns what was found, of its JSON."""
    fields = _json.loads(text)
    fields["hits"] = [hit(it) for it in fields["hits"]]
    return Found(**fields)


@dataclass(frozen=True)
class SessionHit:
    """A session that a search found, with its best hits."""

    session: str
    name: str | None
    score: float
    hits: list[Hit]


@dataclass(frozen=True)
class SessionsFound(Sequence[SessionHit]):
    """What a search by session found: a sequence, best session first."""

    sessions: list[SessionHit]
    matched: Matched
    steps: list[dict[str, Any]]
    notices: list[str]
    is_partial: bool

    @overload
    def __getitem__(self, at: int) -> SessionHit: ...
    @overload
    def __getitem__(self, at: slice) -> list[SessionHit]: ...
    def __getitem__(self, at: int | slice) -> SessionHit | list[SessionHit]:
        return self.sessions[at]

    def __len__(self) -> int:
        return len(self.sessions)


def sessions_found(text: str) -> SessionsFound:
    """Returns the sessions that were found, of their JSON."""
    fields = _json.loads(text)
    fields["sessions"] = [
        SessionHit(it["session"], it["name"], it["score"], [hit(one) for one in it["hits"]])
        for it in fields["sessions"]
    ]
    return SessionsFound(**fields)


@dataclass(frozen=True)
class Alternative:
    """A query that finds something where another one found nothing."""

    #: What it gives up, for people: `for any role`, `at any time`, ..
    widening: str
    query: str


@dataclass(frozen=True)
class ToolStats:
    """How often a tool was called."""

    calls: int
    errors: int
    unanswered: int
