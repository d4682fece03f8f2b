"""A store: one file with many sessions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _json, _native
from ._files import Target, written_to
from ._lines import is_awaited
from .embedding import Embedder, Embedding, embedder_parts
from .importing import FolderImport, ImportOptions, ImportParts
from .many import ManySessions, Progress
from .message import Message
from .results import (
    Damage,
    DetailParts,
    Event,
    ImportReport,
    ListedMessage,
    MessagePage,
    OwnerExport,
    OwnerInfo,
    SessionDetails,
    SessionInfo,
    StoreStats,
    Verified,
    event_listener,
    import_report,
    owner_info,
    session_info,
)
from .session import Session
from .settings import SessionSettings, settings_of
from .transcripts import Transcripts

if TYPE_CHECKING:
    from .search import Unpack

#: The key of an encrypted store: 32 bytes, or a function that returns them, which is called each time a store is opened.
Key = bytes | Callable[[], bytes]


class StoreOptions(TypedDict, total=False):
    """How a store is opened, all of it optional."""

    #: Opens an existing file and never writes.
    read_only: bool
    #: `full`: an acknowledged write survives a power failure. `normal`: the latest ones may be lost in one.
    durability: Literal["full", "normal"]
    #: How long a write waits for other writers; in seconds, or as a timedelta.
    busy_timeout: timedelta | float | None
    #: The page cache of each connection, in KiB.
    cache_kib: int | None
    #: The limit of a message, in bytes of JSON.
    max_message_bytes: int | None
    #: How many connections for reading are kept open.
    idle_readers: int | None
    #: The size of a file, in bytes, up to which an erasure always rewrites it; a larger one only if it finds erased text.
    erasure_rewrites_up_to: int | None
    #: Encrypts the store: 32 bytes, or a function that returns them. A build without SQLCipher raises `UnsupportedError`.
    key: Key | None


class _OpenParts:
    """How a store is opened, as the native module takes it."""

    def __init__(self, path: object, options: Mapping[str, Any]) -> None:
        _json.only_known(options, StoreOptions)
        self.read_only = bool(options.get("read_only", False))
        self.durability = options.get("durability", "full")
        if self.durability not in ("full", "normal"):
            raise ValueError(f"durability must be 'full' or 'normal', not {self.durability!r}")
        if path is None and self.read_only:
            raise ValueError("a store in memory cannot be read_only")
        if path is not None and not isinstance(path, (str, os.PathLike)):
            raise TypeError(f"path must be a str or a path, not {type(path).__name__}")
        self.busy_timeout = _json.maybe_seconds(options.get("busy_timeout"), "busy_timeout")
        self.cache_kib = _json.maybe_count(options.get("cache_kib"), "cache_kib", _json.COUNTS_OF_32_BITS)
        self.max_message_bytes = _json.maybe_count(options.get("max_message_bytes"), "max_message_bytes")
        self.idle_readers = _json.maybe_count(options.get("idle_readers"), "idle_readers")
        rewrites_up_to = options.get("erasure_rewrites_up_to")
        self.erasure_rewrites_up_to = _json.maybe_count(rewrites_up_to, "erasure_rewrites_up_to")
        key = options.get("key")
        self.key = None if key is None else _key_bytes(key)


def _key_bytes(key: Key) -> bytes:
    """Returns the bytes of a key; an exception of its function is raised as it is."""
    found = key() if callable(key) else key
    if not isinstance(found, (bytes, bytearray)):
        raise TypeError(f"key must be bytes or a function that returns bytes, not {type(found).__name__}")
    if len(found) != 32:
        raise ValueError(f"key must have 32 bytes, not {len(found)}")
    return bytes(found)


class Store(ManySessions):
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
        options: `StoreOptions` lists them.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, **options: Unpack[StoreOptions]) -> None:
        parts = _OpenParts(path, options)
        self._path = None if path is None else os.fspath(path)
        self._native: _native.Store = _native.Store(self._path, parts)

    @classmethod
    def connect(cls, url: str, **options: Unpack[StoreOptions]) -> Store:
        """Connects to a store on a PostgreSQL server, and creates its tables if they are missing.

        Any number of hosts may use one store. Options about a file have no effect.

        Args:
            url: One of PostgreSQL's, such as `postgresql://bot@db.example/chats?schema=support`; without `schema` that is `talktree`.
            options: `StoreOptions` lists them; `read_only` and `key` are those of a file.

        Raises:
            talktree.StorageError: if the server cannot be reached.
        """
        if not isinstance(url, str):
            raise TypeError(f"url must be a str, not {type(url).__name__}")
        if not url.startswith(("postgresql://", "postgres://")):
            raise ValueError("url must begin with postgresql://")
        parts = _OpenParts(url, options)
        if parts.read_only or parts.key is not None:
            raise ValueError("a store on a server has no read_only and no key: its role and its server decide")
        store = cls.__new__(cls)
        # There may be a password in the rest.
        store._path = "postgresql://.."
        store._native = _native.Store.connect(url, parts)
        return store

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

        A callback, and code that blocks the event loop of one, may close the store, too. This does not wait for calls, because
        one of them waits for the callback: the file stays open until they are completed.
        """
        self._close(is_awaited)

    def _close(self, is_inside: Callable[[], bool]) -> None:
        self._native.close(is_inside)

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
        return Session(self._native.create_session(_json.maybe_str(id, "id"), details_of(details)))

    def sessions(self) -> list[SessionInfo]:
        """Returns all sessions, the latest first; `SessionManager.list` returns them in pages."""
        return [session_info(it) for it in _json.loads(self._native.sessions())]

    def __iter__(self) -> Iterator[SessionInfo]:
        return iter(self.sessions())

    def owners(self, *, after: str | None = None, limit: int = 100) -> list[OwnerInfo]:
        """Returns at most `limit` owners of sessions or transcripts, by name: those after `after`."""
        text = self._native.owners(_json.maybe_str(after, "after"), _json.count(limit, "limit"))
        return [owner_info(it) for it in _json.loads(text)]

    def rename(self, id: str, name: str) -> None:
        """Changes the name of a session."""
        self._native.rename(_json.is_str(id, "id"), _json.is_str(name, "name"))

    def remove(self, id: str) -> None:
        """Removes a session and all that belongs to it."""
        self._native.remove(_json.is_str(id, "id"))

    def subscribe(self, listener: Callable[[Event], object]) -> _native.Subscription:
        """Calls a listener after each change, in the thread that made it, outside every lock.

        The subscription ends with its `close`, or when it is collected: keep it. An exception of a listener goes to
        `on_error` of the session that wrote, or else to `sys.unraisablehook`.

        A listener may write. A change inside of eight callbacks that run inside each other is committed, but no listener is
        called for it; `on_error` hears of the first one.
        """
        return self._native.subscribe(event_listener(listener))

    @property
    def transcripts(self) -> Transcripts:
        """The transcripts of agent sessions, which are stored beside the sessions of talktree."""
        return Transcripts(self._native.transcripts())

    # Search by meaning.

    def embed(self, embedder: Embedder, progress: Progress | None = None) -> Embedding:
        """Gives a vector to every message that has none of this embedder: those of its text parts, up to their first 8 KiB.

        Afterwards searches with `by_meaning=embedder` find them. A new or changed message is pending until the next call. The
        embedder gets up to 64 texts at once. Its vectors are stored after each batch, so the next call continues one that
        failed or was interrupted.

        >>> import talktree
        >>> class Topics:  # calls a real model
        ...     name = "topics-1"
        ...     def embed(self, texts):
        ...         return [["doctor" in text or "Dr." in text, "song" in text] for text in texts]
        >>> store = talktree.Store()
        >>> _ = store.session("s").append({"role": "user", "text": "I see Dr. Patel on Monday."})
        >>> store.embed(Topics()).embedded
        1
        >>> [hit.snippet.text for hit in store.search("doctor", by_meaning=Topics())]
        ['I see Dr. Patel on Monday.']

        Args:
            embedder: Any object with a `name` and a method `embed(texts)`, plain or async: see `Embedder`.
            progress: Is called with how many messages are done and their total, after each batch.

        Raises:
            talktree.EmbedderError: if its vectors cannot be used, or have other dimensions than before: a changed model needs
                a new name. An exception of the embedder is raised itself.
        """
        return Embedding(**_json.loads(self._native.embed(embedder_parts(embedder, "embedder"), progress)))

    def embeddings(self) -> list[Embedding]:
        """Returns which embedders the store has vectors of, by name. It counts the vectors, so it reads them all."""
        return [Embedding(**it) for it in _json.loads(self._native.embeddings())]

    def remove_embedding(self, name: str) -> bool:
        """Removes the vectors of an embedder, such as a former model; returns whether there were any."""
        return self._native.remove_embedding(_json.is_str(name, "name"))

    # Import and export.

    def import_file(
        self,
        path: str | os.PathLike[str],
        *,
        session: str | None = None,
        progress: Progress | None = None,
        **options: Unpack[ImportOptions],
    ) -> ImportReport:
        """Imports the conversations of a file; one that was imported before adds what is new in it.

        Args:
            path: The file.
            session: The session to import into, for a file with one conversation.
            progress: Is called with the bytes that are read and their total.
            options: `ImportOptions` lists them.
        """
        parts = ImportParts(options, session)
        return import_report(_json.loads(self._native.import_file(os.fspath(path), parts, progress)))

    def import_bytes(
        self,
        data: bytes,
        *,
        name: str = "data",
        session: str | None = None,
        progress: Progress | None = None,
        **options: Unpack[ImportOptions],
    ) -> ImportReport:
        """Imports conversations from memory, as `import_file` does; `name` is used in the report and in errors."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"data must be bytes, not {type(data).__name__}")
        name, parts = _json.is_str(name, "name"), ImportParts(options, session)
        return import_report(_json.loads(self._native.import_bytes(name, bytes(data), parts, progress)))

    def import_folder(
        self,
        folder: str | os.PathLike[str],
        *,
        progress: Progress | None = None,
        **options: Unpack[ImportOptions],
    ) -> FolderImport:
        """Imports the `*.jsonl` and `*.json` below a folder, such as `~/.claude/projects`, as `import_file` does each.

        A file that cannot be imported is skipped, and the outcome says why: not every file in a folder is a conversation.

        >>> import pathlib, tempfile, talktree
        >>> with tempfile.TemporaryDirectory() as folder, talktree.Store() as store:
        ...     chat = '[{"role": "user", "content": "hi"}]'
        ...     _ = pathlib.Path(folder, "chat.json").write_text(chat)
        ...     [report.added for report in store.import_folder(folder).reports]
        [1]

        Args:
            folder: The folder.
            progress: Is called with the files that are read and their total.
            options: `ImportOptions` lists them.
        """
        reports, skipped = self._native.import_folder(os.fspath(folder), ImportParts(options), progress)
        return FolderImport([import_report(it) for it in _json.loads(reports)], skipped)

    def export_jsonl(self, target: Target, *, readable_only: bool = False) -> list[tuple[str, str]]:
        """Writes all sessions as JSON lines, to a path or a binary file; the contents of blocks are not among them.

        Returns:
            With `readable_only` the damaged sessions that were left out, each with the reason; without, an empty list.
        """
        left_out: list[tuple[str, str]] = written_to(
            target, lambda write: self._native.export_jsonl(write, readable_only)
        )
        return left_out

    def export_owner(
        self, owner: str, target: Target, *, format: Literal["jsonl", "markdown"] = "jsonl"
    ) -> OwnerExport:
        """Writes all data of an owner to a path or a binary file, for a person who asks to see it or takes it elsewhere.

        These are the owner's sessions, also those in the trash, context blocks, keys, usage and transcripts.

        >>> import io, talktree
        >>> store = talktree.Store()
        >>> chat = store.create_session(talktree.SessionDetails(owner="ann"))
        >>> _ = chat.append({"role": "user", "text": "I am Ann."})
        >>> file = io.BytesIO()
        >>> store.export_owner("ann", file).messages, b"I am Ann." in file.getvalue()
        (1, True)

        Args:
            owner: The owner.
            target: A path, or a file that is open for writing bytes.
            format: `jsonl`: everything, for programs. `markdown`: a page for people.
        """
        return self._export_person(_json.is_str(owner, "owner"), False, target, format)

    def export_author(
        self, author: str, target: Target, *, format: Literal["jsonl", "markdown"] = "jsonl"
    ) -> OwnerExport:
        """Writes what a person wrote in all sessions to a path or a binary file, also in the sessions of others.

        Nothing that others wrote is in it.

        >>> import io, talktree
        >>> store = talktree.Store()
        >>> group = store.session("group")
        >>> for id in ("ann", "bob"):
        ...     _ = group.append({"role": "user", "text": f"I am {id}.", "metadata": {"author": {"id": id}}})
        >>> file = io.BytesIO()
        >>> store.export_author("ann", file).messages, b"I am bob." in file.getvalue()
        (1, False)

        Args:
            author: The id of the author, or the name of one without an id.
            target: A path, or a file that is open for writing bytes.
            format: `jsonl`: for programs. `markdown`: a page for people.
        """
        return self._export_person(_json.is_str(author, "author"), True, target, format)

    def _export_person(self, person: str, is_author: bool, target: Target, format: str) -> OwnerExport:
        if format not in ("jsonl", "markdown"):
            raise ValueError(f"format must be 'jsonl' or 'markdown', not {format!r}")
        written = written_to(target, lambda write: self._native.export_person(person, is_author, format, write))
        return OwnerExport(**_json.loads(written))

    def list_messages(
        self,
        *,
        author: str | None = None,
        tag: str | None = None,
        session: str | None = None,
        include_trash: bool = False,
        after: str | None = None,
        limit: int = 50,
    ) -> MessagePage:
        """Returns a page of messages, session by session in the order in which they were appended.

        >>> import talktree
        >>> store = talktree.Store()
        >>> chat = store.session("group")
        >>> bad = chat.append({"role": "user", "text": "Buy now!"}).id
        >>> chat.tag(bad, "spam")
        >>> [(it.message.text, it.tags) for it in store.list_messages(tag="spam")]
        [('Buy now!', ['spam'])]

        Args:
            author: Only what this person wrote: the id of the author, or the name of one without an id.
            tag: Only messages with this tag.
            session: Only messages of this session.
            include_trash: Also messages of sessions in the trash.
            after: What an earlier page has as `after`.
            limit: How many messages, at most; 1 000 at most.
        """
        author, tag = _json.maybe_str(author, "author"), _json.maybe_str(tag, "tag")
        session, after = _json.maybe_str(session, "session"), _json.maybe_str(after, "after")
        limit = _json.count(limit, "limit")
        fields = _json.loads(self._native.list_messages((session, author, tag), bool(include_trash), after, limit))
        messages = [ListedMessage(it["session"], Message(it["message"]), it["tags"]) for it in fields["messages"]]
        return MessagePage(messages, fields["after"])

    # Care.

    def finish_erasure(self) -> bool:
        """Finishes all erasures that were interrupted, or whose log was in use; returns whether they are complete now."""
        return self._native.finish_erasure()

    def has_unfinished_erasure(self) -> bool:
        """Returns whether there is an erasure to finish, or one that is running."""
        return self._native.has_unfinished_erasure()

    def is_import_forbidden(self, id: str) -> bool:
        """Returns whether a session was erased with `forbid_import`."""
        return self._native.is_import_forbidden(_json.is_str(id, "id"))

    def rekey(self, key: Key) -> None:
        """Encrypts the store with another key, in one transaction; backups keep their keys.

        Any other store that has the file open gets a `WrongKeyError` from its next call. A store without a key does not get
        one: export it, and import it into a new store that has one.

        Raises:
            talktree.UnsupportedError: if the store has no key, or the package was built without SQLCipher.
        """
        self._native.rekey(_key_bytes(key))

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

    def index(self, progress: Progress | None = None) -> None:
        """Brings the search index up to date, which every search does before it searches.

        This takes long only after an upgrade to a version that indexes texts in another way; `progress` then shows how far
        it is. Others read, search and write meanwhile. What is stopped is continued by the next call, or by searches.
        """
        self._native.index(progress)

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
    return _native.estimate_tokens(_json.is_str(text, "text"))
