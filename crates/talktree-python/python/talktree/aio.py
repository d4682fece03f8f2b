"""talktree for asyncio and trio: the same names, awaited.

Every call runs in a thread. Calls of one session run in the order in which they were made, those of different sessions side
by side. A task that is cancelled stops waiting at once: a call that waits for its turn is then never run; one that runs comes
to its end, except `verify`, `backup`, `retention` and imports, which stop. Append a message that was made before, and a repeated append is
a no-op.

>>> import asyncio
>>> from talktree import Message, aio
>>> async def main() -> None:
...     async with aio.Store() as store:  # aio.Store("bot.db") keeps it in a file
...         chat = await store.session("telegram:4711")
...         await chat.append(Message.user("Can we deploy on Friday?"))
...         for hit in await store.search("deploy friday", limit=5):
...             print(hit.session, hit.snippet)
...         async for message in chat:
...             print(message.text)
>>> asyncio.run(main())
telegram:4711 Can we **deploy** on **Friday**?
Can we deploy on Friday?

Summarizers, embedders and tools may be async; they run in the event loop of the task that made the call. Plain callbacks run in a thread.
A callback may call its session: such a call does not wait for its turn.

The verbs are made from those of the plain classes when this module is imported. Type checkers read `aio.pyi`, which
`stubs.py` beside the package makes from both.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any

import talktree as _sync

from . import manager as _manager
from ._lines import Call, Line, Pool, is_callback, present_loop, waiting_in
from .errors import ClosedError
from .message import Message, MessageLike
from .settings import SessionSettings, settings_of
from .store import StoreOptions
from .tools import ProgramTools

if TYPE_CHECKING:
    from .search import Unpack

#: How many messages a stream reads at once.
_BATCH = 100

#: The async class of each plain one.
_FACES: dict[type, Any] = {}


def _face(sync: type, *, plain: tuple[str, ...] = (), keeps_running: tuple[str, ...] = ()) -> Callable[[type], type]:
    """Makes a class the async face of a plain one: it gets each verb that it does not have itself, awaited.

    Args:
        sync: The plain class.
        plain: The verbs that do not wait for the store, and are not awaited.
        keeps_running: The verbs with a progress callback that come to their end if the task is cancelled.
    """

    def decorate(face: type) -> type:
        _FACES[sync] = face
        for name in {*dir(sync), *getattr(sync, "__dataclass_fields__", ())}:
            if name.startswith("_") or hasattr(face, name):
                continue
            verb = getattr(sync, name, None)
            if not inspect.isfunction(verb):
                setattr(face, name, property(functools.partial(_value, name), doc=verb.__doc__))
                continue
            stops = name not in keeps_running and "progress" in inspect.signature(verb).parameters
            made = _plain(verb) if name in plain else _awaited(verb, stops)
            paragraphs = (verb.__doc__ or "").split("\n\n")
            # The examples do not await.
            made.__doc__ = "\n\n".join(it for it in paragraphs if not it.lstrip().startswith(">>>"))
            setattr(face, name, made)
        return face

    return decorate


def _value(name: str, face: _Face) -> Any:
    return face._wrap(getattr(face.sync, name))


def _plain(verb: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(verb)
    def call(self: _Face, *args: Any, **kwargs: Any) -> Any:
        return self._wrap(verb(self.sync, *args, **kwargs))

    return call


def _awaited(verb: Callable[..., Any], stops: bool) -> Callable[..., Any]:
    signature = inspect.signature(verb)

    @functools.wraps(verb)
    async def call(self: _Face, *args: Any, **kwargs: Any) -> Any:
        given = signature.bind(self, *args, **kwargs)

        def work(call: Call[Any]) -> Any:
            if stops:
                given.arguments["progress"] = call.progress(given.arguments.get("progress"))
            return verb(self.sync, *given.args[1:], **given.kwargs)

        return self._wrap(await self._runs(given.arguments).run(work))

    return call


class _Face:
    """What the async classes have in common: a plain object, and what runs its calls."""

    def __init__(self, sync: Any, store: Store, runs: Line | Pool) -> None:
        self.sync = sync
        self._store = store
        self._line = runs

    def _runs(self, arguments: dict[str, Any]) -> Line | Pool:
        """Returns what runs a call with these arguments."""
        return self._line

    def _wrap(self, value: Any) -> Any:
        """Returns the async face of what has one."""
        face = _FACES.get(type(value))
        if face is None:
            return value
        return face(value, self._store, self._store._pool.line(value.id) if face is Session else self._line)

    def __repr__(self) -> str:
        return repr(self.sync)

    async def _stream(self, messages: Iterator[Message]) -> AsyncIterator[Message]:
        while taken := await self._line.run(lambda call: [message for _, message in zip(range(_BATCH), messages)]):
            for message in taken:
                yield message


class _Reads(_Face):
    def __aiter__(self) -> AsyncIterator[Message]:
        """Yields the messages, oldest first; they are read in batches."""
        return self._stream(iter(self.sync))

    def iter_rev(self) -> AsyncIterator[Message]:
        """Yields the messages, newest first; what is not taken is not read."""
        return self._stream(reversed(self.sync))


@_face(_sync.Path, plain=("raw",))
class Path(_Reads):
    """The path to one message, as `Session.at` returns it: the reads of a session without moving its head."""


@_face(_sync.Session, plain=("at", "path", "subscribe"))
class Session(_Reads):
    """A session: the verbs of `talktree.Session`, awaited. Its calls run in the order in which they were made."""

    def all_messages(self) -> AsyncIterator[Message]:
        """Yields the messages of every branch, in order of creation."""
        return self._stream(self.sync.all_messages())


@_face(_sync.Reply)
class Reply(_Face):
    """A reply that is streamed: the verbs of `talktree.Reply`, awaited. From `Session.stream`.

    >>> import asyncio
    >>> from talktree import aio
    >>> async def lines():  # of your HTTP client, such as response.aiter_lines()
    ...     yield 'data: {"id":"1","choices":[{"delta":{"content":"It is 4."},"finish_reason":"stop"}]}'
    ...     yield ""
    ...     yield "data: [DONE]"
    >>> async def main() -> None:
    ...     async with aio.Store() as store:
    ...         chat = await store.session("s")
    ...         reply = await chat.stream("openai_chat")
    ...         async for line in lines():
    ...             await reply.push(line)
    ...         print((await reply.finish()).text)
    >>> asyncio.run(main())
    It is 4.
    """


@_face(_sync.Context)
class Context(_Face):
    """The blocks of a session, and what the store keeps for them."""


@_face(_sync.Tools)
class Tools(_Face):
    """The tools of a session."""

    async def answer(self, message: MessageLike, tools: ProgramTools | None = None) -> Message | None:
        """Runs the calls of a message, stores their results below it, and returns the message with them.

        Async tools run in the event loop, plain ones in a thread. While they run, other calls of the session wait, except
        those of the tools themselves.

        Returns:
            None if the message has no calls: the model has answered.
        """
        wait = waiting_in(present_loop())
        return await self._line.run(lambda call: self.sync._answer(message, tools, wait))


@_face(_sync.Erased)
class Erased(_Face):
    """The outcome of an erasure, as `talktree.Erased`."""


@_face(_manager.Resumed)
class Resumed(_Face):
    """The session that a key leads to."""


@_face(_sync.Transcripts, plain=("owned_by", "projecting"))
class Transcripts(_Face):
    """The transcripts of a store: `store.transcripts`. Calls of one session run in the order in which they were made.

    The Claude Agent SDK takes a `talktree.claude.SessionStore`, which has its method names and keys.
    """

    def _runs(self, arguments: dict[str, Any]) -> Line | Pool:
        key = arguments.get("key")
        project = arguments.get("project") if key is None else getattr(key, "project", None)
        session = arguments.get("session") if key is None else getattr(key, "session", None)
        if project is None or session is None:
            return self._store._pool
        return self._store._transcript_line(project, session)


@_face(_sync.SessionManager, keeps_running=("erase",))
class SessionManager(_Face):
    """What all sessions of a bot have in common, as `talktree.SessionManager`. The store must be open."""

    def __init__(self, store: Store, **settings: Unpack[SessionSettings]) -> None:
        if not isinstance(store, Store):
            raise TypeError(f"store must be a talktree.aio.Store, not {type(store).__name__}")
        checked = settings_of(settings, waiting_in(present_loop()))
        super().__init__(_sync.SessionManager._over(store.sync, checked), store, store._pool)

    def _runs(self, arguments: dict[str, Any]) -> Line | Pool:
        # A fork and a split read what was appended before.
        forks = "at" in arguments or "summary" in arguments
        return self._store._pool.line(arguments["id"]) if forks else self._store._pool


@_face(_sync.Store, plain=("interrupt", "subscribe"), keeps_running=("erase",))
class Store(_Face):
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
    async def connect(cls, url: str, **options: Unpack[StoreOptions]) -> Store:
        """Returns an open store on a PostgreSQL server, as `talktree.Store.connect`; `close` ends it."""
        face = cls()
        face._open = lambda: _sync.Store.connect(url, **options)
        return await face.__aenter__()

    @classmethod
    def over(cls, store: _sync.Store) -> Store:
        """Returns the async face of a store that is open."""
        face = cls()
        face._opened = store
        face._pool = Pool.of(store, face._pool)
        return face

    @staticmethod
    def is_open_file(path: str | os.PathLike[str]) -> bool:
        """Returns whether a store of this process has this file open; then only talktree may open or close it."""
        return _sync.Store.is_open_file(path)

    async def __aenter__(self) -> Store:
        if self._opened is None:
            await self._pool.run(lambda call: self._opened_now())
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
    def _store(self) -> Store:
        return self

    @property
    def _line(self) -> Pool:
        return self._pool

    def _transcript_line(self, project: str, session: str) -> Line:
        # A session of talktree with this id would share the line: the two would only wait for each other.
        return self._pool.line(f"transcript {[project, session]!r}")

    def __repr__(self) -> str:
        return "<Store, not opened>" if self._opened is None else repr(self._opened)

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

    async def session(self, id: str, **settings: Unpack[SessionSettings]) -> Session:
        """Returns a session; its first write creates it. `SessionSettings` lists the settings."""
        checked = settings_of(settings, waiting_in(present_loop()))
        session: Session = self._wrap(await self._pool.run(lambda call: self.sync._session(id, checked)))
        return session
