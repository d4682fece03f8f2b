"""Transcripts of agent sessions: opaque entries by project, session and subpath.

An *entry* is a JSON object. A *transcript* is the list of entries under one key. The one without a subpath is the *main*
transcript of its session; the others are those of subagents. Transcripts that are *projected* are also sessions of the store:
trees of messages, which searches find. `talktree.claude` gives transcripts to the Claude Agent SDK.
"""

from __future__ import annotations

import builtins
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from . import _json, _native


@dataclass(frozen=True)
class TranscriptKey:
    """What a transcript is stored under. Keys are the same if all three parts are equal, byte for byte."""

    project: str
    session: str
    #: Empty for the main transcript, otherwise such as `subagents/agent-7f3a`.
    subpath: str = ""

    @property
    def is_main(self) -> bool:
        """Whether this is the main transcript of its session."""
        return not self.subpath


@dataclass(frozen=True)
class AppendedEntries:
    """What an append of entries did."""

    added: int
    #: Entries that were not added, because the transcript has one of their `uuid`.
    known: int
    #: How many of the known ones differ from the entry that is stored.
    differing: int


@dataclass(frozen=True)
class ListedTranscript:
    """A session in a list."""

    session: str
    #: When an entry was last appended to its main transcript, in milliseconds since 1970.
    mtime: int


@dataclass(frozen=True)
class TranscriptSummary:
    """The summary of a session, as the SDK's `fold_session_summary` makes it."""

    session: str
    mtime: int
    data: dict[str, Any]


@dataclass(frozen=True)
class StoredTranscript:
    """A transcript of the store."""

    #: Its place in lists, which are in order of creation.
    number: int
    key: TranscriptKey
    owner: str | None
    entries: int
    mtime: int


@dataclass(frozen=True)
class TranscriptInfo:
    """What a list shows of a session; times are in milliseconds since 1970."""

    session: str
    summary: str
    last_modified: int
    custom_title: str | None
    first_prompt: str | None
    git_branch: str | None
    cwd: str | None
    tag: str | None
    created_at: int | None


@dataclass(frozen=True)
class TranscriptMessage:
    """A message of a session's conversation."""

    #: `user` or `assistant`.
    role: str
    uuid: str
    session: str
    #: The message in the format of the provider's API.
    message: Any
    #: A subagent's messages: the tool call, and the subagent, that started it.
    parent_call: str | None
    parent_agent: str | None


@dataclass(frozen=True)
class UnreadLine:
    """A line of a file that is no entry."""

    file: str
    line: int
    why: str


@dataclass(frozen=True)
class TranscriptFiles:
    """What an import or an export of transcripts read and wrote."""

    files: list[str]
    entries: int
    #: An import's entries that the store had.
    known: int
    #: An import's lines that are no entries; they were skipped.
    unread: list[UnreadLine]
    #: An export's subpaths that are no safe names of files; they were not written.
    refused: list[str]


@dataclass(frozen=True)
class MissingParent:
    """A message whose parent is not in its transcript."""

    message: str
    #: The parent that its entry names.
    parent: str


@dataclass(frozen=True)
class Projection:
    """A transcript as a session of the store."""

    #: The session that shows the transcript.
    session: str
    #: How many of its entries are projected, from the first one on.
    entries: int
    #: How many later entries are not projected yet.
    waiting: int
    #: How many of the projected entries are not in the session although they are messages: they cannot be read as one, are
    #: too large for one, or were deleted from the session.
    left_out: int
    #: The messages whose parent is not in the transcript. Each follows the message before it.
    missing_parents: list[MissingParent]
    #: Whether the session was changed by others. Such a session gets new messages, and no message of it moves.
    is_changed: bool


@dataclass(frozen=True)
class ProjectionReport:
    """What `project_all` did."""

    #: How many transcripts are sessions now.
    sessions: int
    #: How many are not: they have no messages, or their session was erased for good.
    without_session: int
    #: How many messages have a parent that is missing.
    missing_parents: int
    #: How many entries are messages and are left out.
    left_out: int


def _projection(text: str | None) -> Projection | None:
    if text is None:
        return None
    fields = _json.loads(text)
    fields["missing_parents"] = [MissingParent(*it) for it in fields["missing_parents"]]
    return Projection(**fields)


class _Filter:
    """Which transcripts a list shows, as the native module takes it."""

    def __init__(self, project: str | None, owner: str | None, written_before: datetime | int | None) -> None:
        self.project = _json.maybe_str(project, "project")
        self.owner = _json.maybe_str(owner, "owner")
        if isinstance(written_before, datetime):
            written_before = int(written_before.timestamp() * 1_000)
        self.written_before = _json.maybe_count(written_before, "written_before", _json.MILLISECONDS)


class Transcripts:
    """The transcripts of a store: `store.transcripts`.

    The first six verbs are those of the Claude Agent SDK's `SessionStore`. The others do natively what the SDK does with
    them.

    >>> import talktree
    >>> transcripts = talktree.Store().transcripts
    >>> key = talktree.TranscriptKey("-home-ann-shop", "4b1e7d5c-90c5-4dd7-a6f1-8f8b2f4f7a10")
    >>> entries = [
    ...     {"type": "user", "uuid": "1", "message": {"role": "user", "content": "Fix the login."}},
    ...     {"type": "assistant", "uuid": "2", "parentUuid": "1", "message": {"role": "assistant", "content": "Done."}},
    ... ]
    >>> transcripts.append(key, entries)
    AppendedEntries(added=2, known=0, differing=0)
    >>> transcripts.append(key, entries)  # a retry adds nothing
    AppendedEntries(added=0, known=2, differing=0)
    >>> transcripts.load(key) == entries
    True
    >>> [info.summary for info in transcripts.infos(key.project)]
    ['Fix the login.']
    >>> [message.role for message in transcripts.messages(key.project, key.session)]
    ['user', 'assistant']
    """

    def __init__(self, native: _native.Transcripts) -> None:
        self._native = native

    def owned_by(self, owner: str) -> Transcripts:
        """Returns the same transcripts; what is appended through them is the data of this owner.

        The owner counts when transcripts are listed by owner or erased. It limits neither reads nor deletes.
        """
        return Transcripts(self._native.owned_by(_json.is_str(owner, "owner")))

    # Transcripts as sessions.

    def projecting(self) -> Transcripts:
        """Returns the same transcripts; what is appended through them is also written to a session of the store, in one
        transaction.

        >>> import talktree
        >>> store = talktree.Store()
        >>> entry = {"type": "user", "uuid": "1", "message": {"role": "user", "content": "Fix the login."}}
        >>> key = talktree.TranscriptKey("-home-ann-shop", "4b1e7d5c")
        >>> store.transcripts.projecting().append(key, [entry]).added
        1
        >>> [hit.session for hit in store.search("login").hits]
        ['4b1e7d5c']
        """
        return Transcripts(self._native.projecting())

    def project(self, key: TranscriptKey) -> Projection | None:
        """Writes what is stored of a transcript to its session; None if it has no messages, or its session was erased for
        good. Calling it again changes nothing."""
        return _projection(self._native.project(key_parts(key)))

    def project_all(
        self,
        *,
        project: str | None = None,
        owner: str | None = None,
        written_before: datetime | int | None = None,
    ) -> ProjectionReport:
        """Projects all transcripts that `list` shows with these arguments, each in a transaction of its own."""
        return ProjectionReport(**_json.loads(self._native.project_all(_Filter(project, owner, written_before))))

    def projection(self, key: TranscriptKey) -> Projection | None:
        """Returns how a session shows a transcript; None if none does."""
        return _projection(self._native.projection(key_parts(key)))

    # The contract of the SDK.

    def append(self, key: TranscriptKey, entries: Iterable[Mapping[str, Any]]) -> AppendedEntries:
        """Appends entries, all or none.

        An entry whose `uuid` the transcript has is not added. No entries: nothing is done.

        Raises:
            ValueError: if an entry has a NaN or an infinity, which JSON does not have.
            talktree.InvalidValueError: if an entry is no object, or the transcript has another owner.
            talktree.TooLargeError: if an entry or the batch is too large.
        """
        return AppendedEntries(*self._native.append(key_parts(key), _text(entries)))

    def load(self, key: TranscriptKey) -> builtins.list[dict[str, Any]] | None:
        """Returns all entries in the order of the appends; None if there are none."""
        lists = self._native.load(key_parts(key))
        return None if lists is None else list(_joined(lists))

    def list_sessions(self, project: str) -> builtins.list[ListedTranscript]:
        """Returns the sessions of a project that have a main transcript, in any order."""
        return [ListedTranscript(*it) for it in self._native.list_sessions(_json.is_str(project, "project"))]

    def list_session_summaries(self, project: str) -> builtins.list[TranscriptSummary]:
        """Returns the summaries of a project's sessions, in any order."""
        return [TranscriptSummary(*it) for it in self._summaries(project)]

    def _summaries(self, project: str) -> Iterator[tuple[str, int, dict[str, Any]]]:
        return _joined(self._native.list_session_summaries(_json.is_str(project, "project")))

    def delete(self, key: TranscriptKey) -> int:
        """Deletes a transcript, the main one with all others of its session; returns how many were deleted."""
        return self._native.delete(key_parts(key))

    def list_subkeys(self, project: str, session: str) -> builtins.list[str]:
        """Returns the subpaths of a session, in any order, without the main transcript."""
        return self._native.list_subkeys(*_pair(project, session))

    # Many of them.

    def list(
        self,
        *,
        project: str | None = None,
        owner: str | None = None,
        written_before: datetime | int | None = None,
        after: int | None = None,
        limit: int = 100,
    ) -> builtins.list[StoredTranscript]:
        """Returns at most `limit` transcripts in order of creation: those with a number above `after`.

        Args:
            project: Only those of this project.
            owner: Only those of this owner.
            written_before: Only those to which nothing was appended at this time or later; a datetime, or milliseconds.
            after: The number of the last one of the list before.
            limit: How many at most.
        """
        filter = _Filter(project, owner, written_before)
        rows = self._native.list(filter, _json.maybe_count(after, "after"), _json.count(limit, "limit"))
        return [StoredTranscript(number, TranscriptKey(*key), *rest) for number, key, *rest in rows]  # type: ignore[arg-type]

    def delete_of_owner(self, owner: str) -> int:
        """Deletes all transcripts of an owner, and the others of a session whose main one is the owner's."""
        return self._native.delete_of_owner(_json.is_str(owner, "owner"))

    # What the SDK reads and changes.

    def infos(self, project: str) -> builtins.list[TranscriptInfo]:
        """Returns the sessions of a project as lists show them, the one that was appended to last first.

        Sessions of subagents, and those that say nothing, are left out. No transcript is read.
        """
        return [TranscriptInfo(**it) for it in _json.loads(self._native.infos(_json.is_str(project, "project")))]

    def info(self, project: str, session: str) -> TranscriptInfo | None:
        """Returns what a list shows of a session; None if it is unknown or hidden."""
        fields = _json.loads(self._native.info(*_pair(project, session)))
        return None if fields is None else TranscriptInfo(**fields)

    def messages(self, project: str, session: str) -> builtins.list[TranscriptMessage]:
        """Returns the conversation to the message that was written last; after a compaction it begins with the summary."""
        return _messages(self._native.messages(*_pair(project, session)))

    def subagents(self, project: str, session: str) -> builtins.list[str]:
        """Returns the ids of a session's subagents, in any order."""
        return self._native.subagents(*_pair(project, session))

    def subagent_messages(self, project: str, session: str, agent: str) -> builtins.list[TranscriptMessage]:
        """Returns the messages of a subagent, with the call that started it; none if it is unknown."""
        return _messages(self._native.subagent_messages(*_pair(project, session), _json.is_str(agent, "agent")))

    def rename(self, project: str, session: str, title: str) -> None:
        """Gives a session a title; one that is unknown is created with it."""
        self._native.rename(*_pair(project, session), _json.is_str(title, "title"))

    def tag(self, project: str, session: str, tag: str | None) -> None:
        """Gives a session a tag, which replaces the former one; None removes it."""
        self._native.tag(*_pair(project, session), _json.maybe_str(tag, "tag"))

    def fork(self, project: str, session: str, *, last: str | None = None, title: str | None = None) -> str:
        """Copies the conversation of a session to a new one, with new uuids; returns the id of the copy.

        Args:
            project: The project.
            session: The session that is copied.
            last: The `uuid` of the last entry that is copied; None copies all.
            title: The title of the copy; None is that of the session with ` (fork)`.

        Raises:
            talktree.UnknownSessionError: if the session has no entries.
            talktree.UnknownMessageError: if `last` is not among them.
        """
        last, title = _json.maybe_str(last, "last"), _json.maybe_str(title, "title")
        return self._native.fork(*_pair(project, session), last, title)

    # Files.

    def import_session(self, project_folder: str | os.PathLike[str], session: str) -> TranscriptFiles:
        """Imports a session of the agent's command, with its subagents; the project is the name of the folder.

        Lines that are no entries are skipped and reported. A second import adds no entry that has a `uuid`, and those
        without one again.
        """
        return _files(self._native.import_session(os.fspath(project_folder), _json.is_str(session, "session")))

    def export_session(self, project: str, session: str, projects: str | os.PathLike[str]) -> TranscriptFiles:
        """Writes a session to a folder of projects, as the agent's command keeps it; only new files, with mode 0600."""
        return _files(self._native.export_session(*_pair(project, session), os.fspath(projects)))


def fold_transcript_summary(data: Mapping[str, Any] | None, entries: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Returns the data of a summary with more entries added; `data` is None for the first entries of a session.

    >>> fold_transcript_summary(None, [{"type": "tag", "tag": "ci", "isSidechain": False}])
    {'is_sidechain': False, 'tag': 'ci'}
    """
    text = None if data is None else _json.dumps(data, "data")
    folded: dict[str, Any] = _json.loads(_native.fold_transcript_summary(text, _text(entries)))
    return folded


def key_parts(key: TranscriptKey) -> tuple[str, str, str]:
    """Returns a key as the native module takes it."""
    if not isinstance(key, TranscriptKey):
        raise TypeError(f"key must be a TranscriptKey, not {type(key).__name__}")
    return *_pair(key.project, key.session), _json.is_str(key.subpath, "subpath")


def _pair(project: str, session: str) -> tuple[str, str]:
    return _json.is_str(project, "project"), _json.is_str(session, "session")


def _text(entries: Iterable[Mapping[str, Any]]) -> str:
    """Returns the JSON of entries, one after another: other threads run between two of them."""
    if isinstance(entries, (str, bytes, Mapping)) or not isinstance(entries, Iterable):
        raise TypeError(f"entries must be an iterable of dicts, not {type(entries).__name__}")
    return f"[{','.join([_json.dumps(it, f'entries[{at}]') for at, it in enumerate(entries)])}]"


def _joined(lists: Iterable[str]) -> Iterator[Any]:
    """Returns the items of JSON lists; other threads run between two lists."""
    for text in lists:
        yield from _json.loads(text)


def _messages(lists: Iterable[str]) -> builtins.list[TranscriptMessage]:
    return [TranscriptMessage(**it) for it in _joined(lists)]


def _files(text: str) -> TranscriptFiles:
    fields = _json.loads(text)
    fields["unread"] = [UnreadLine(*it) for it in fields["unread"]]
    return TranscriptFiles(**fields)
