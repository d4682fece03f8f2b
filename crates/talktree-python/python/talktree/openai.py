"""A session for the OpenAI Agents SDK (`pip install talktree[openai]`).

    session = talktree.openai.Session("user:42", "agents.db")
    result = await Runner.run(agent, "Can we deploy on Friday?", session=session)

Each item is a message of the talktree session of the same id, and comes back exactly as it was given. `chat` is that session:
branches, search, summaries and views for other models are its verbs. What other parts of the program append to it, the agent
sees as items, too.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

try:
    from agents.memory import SessionABC, SessionSettings
    from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
except ImportError as error:
    raise ImportError("talktree.openai needs the OpenAI Agents SDK: pip install 'talktree[openai]'") from error

import talktree as _sync

from . import _json, aio, model
from .errors import HeadMovedError, UnknownMessageError
from .message import Message, tool_call, tool_result
from .results import Found

if TYPE_CHECKING:
    from agents import TResponseInputItem

    from .search import SearchSettings, Unpack
    from .settings import SessionSettings as ChatSettings

T = TypeVar("T")

#: Where the metadata of a message has the item that it was made of.
_FIELD = "openai_item"

#: What may be the limit of items; a negative one is none.
_LIMITS = range(-(2**63), 2**63)


@dataclass(frozen=True)
class _Snapshot:
    """The newest items of a session, for a compaction of the SDK."""

    items: list[TResponseInputItem]
    #: Whether these are all items.
    complete: bool
    #: Replaces the items from a position on; returns False, and does nothing, if they have changed since.
    replace_suffix: Callable[[int, list[TResponseInputItem]], Awaitable[bool]]


class Session(SessionABC):
    """The conversation of an agent, in a store.

    Args:
        session_id: The id of the session in the store.
        store: A store of talktree, plain or async, which the program closes; or the path of one, None for one in memory.
        session_settings: The settings of the SDK; `limit` is how many items `get_items` returns without one of its own.
        settings: The settings of `Store.session`. With `summarizer` and `compact_after`, an agent sees summaries instead of
            its oldest items, and everything stays in the store.
    """

    def __init__(
        self,
        session_id: str,
        store: _sync.Store | aio.Store | str | os.PathLike[str] | None = None,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        **settings: Unpack[ChatSettings],
    ) -> None:
        self.session_id = session_id
        given = SessionSettings() if session_settings is None else coerce_session_settings(session_settings)
        self.session_settings: SessionSettings | None = given
        self._owns_store = not isinstance(store, (_sync.Store, aio.Store))
        if isinstance(store, aio.Store):
            self._store = store
        elif isinstance(store, _sync.Store):
            self._store = aio.Store.over(store)
        else:
            self._store = aio.Store(store)
        self._settings = settings
        self._chat: aio.Session | None = None

    async def chat(self) -> aio.Session:
        """Returns the session of talktree: branches, search, summaries, views."""
        if self._chat is None:
            store = await self._store.__aenter__()
            chat = await store.session(self.session_id, **self._settings)
            # Another task may have been faster.
            self._chat = self._chat or chat
        return self._chat

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Returns the items of the present branch, or its newest ones, oldest first; all of them, if the limit is negative."""
        limit = _json.maybe_count(resolve_session_limit(limit, self.session_settings), "limit", _LIMITS)
        chat = await self.chat()
        if limit == 0:
            return []
        if limit is None or limit < 0:
            limit, messages = None, await chat.history()
        else:
            # A message is at least one item, unless a model sees nothing of it.
            messages = (await chat.recent(messages=limit)).messages
        items = [item for message in messages for item in items_of(message)]
        if limit is not None and len(items) < limit < await chat.path_length():
            items = [item for message in await chat.history() for item in items_of(message)]
        return items if limit is None else items[-limit:]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Appends items to the present branch, all or none.

        Raises:
            TypeError: naming the first item that is no dict. A dict of any form is an item, and comes back as it is.
        """
        messages = messages_of(_checked(items))
        chat = await self.chat()
        if messages:
            await _whole(chat.append_all(messages))

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the newest item of the present branch and returns it; other branches that have it keep it."""
        chat = await self.chat()
        return await _whole(chat._line.run(lambda call: _pop(chat.sync)))

    async def clear_session(self) -> None:
        """Deletes all items of all branches."""
        chat = await self.chat()
        await _whole(chat.clear())

    # What the compaction of the SDK calls. It is not a part of its protocol, but without it a compaction clears the session.

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[TResponseInputItem], bool] | None = None
    ) -> _Snapshot | None:
        """Returns the newest items, and a function that replaces the last ones of them. What it replaces stays in the store,
        as a branch. Items before them are deleted as long as `prune_prefix` says that they have expired."""
        if self._is_transforming():
            return None
        chat = await self.chat()
        messages = await chat.history()
        every = [(at, item) for at, message in enumerate(messages) for item in items_of(message)]
        skipped = max(len(every) - limit, 0)

        async def replace_suffix(start: int, output: list[TResponseInputItem]) -> bool:
            at = skipped + start
            if at >= len(every):
                return False
            first, _ = every[at]
            if at and every[at - 1][0] == first:
                return False  # in the middle of a message
            suffix, replacement = messages[first:], messages_of(_checked(output))
            return await _whole(chat._line.run(lambda call: _replaced(chat.sync, suffix, replacement, prune_prefix)))

        return _Snapshot([item for _, item in every[skipped:]], not skipped, replace_suffix)

    async def _atomic_replace_items(self, items: list[TResponseInputItem]) -> bool:
        """Replaces all items that the agent sees. What was there stays in the store, as a branch."""
        if self._is_transforming():
            return False
        chat, messages = await self.chat(), messages_of(_checked(items))
        await _whole(chat._line.run(lambda call: _all_replaced(chat.sync, messages)))
        return True

    def _is_transforming(self) -> bool:
        """Returns whether a subclass changes items on their way, which a replacement would go round."""
        return type(self).get_items is not Session.get_items or type(self).add_items is not Session.add_items

    async def search(self, text: str, **settings: Unpack[SearchSettings]) -> Found:
        """Returns the items of this session that match, best first, of all branches or with `on_path` of this one."""
        return await (await self.chat()).search(text, **settings)

    async def checkout(self, id: str | None) -> None:
        """Moves to any message: the next items are appended to it, as a branch. None is before the first.

        `chat` has the ids: `(await session.chat()).leaves()`, the hits of `search`, ..
        """
        chat = await self.chat()
        await (chat.checkout_start() if id is None else chat.checkout(id))

    async def close(self) -> None:
        """Closes the store, if it was opened by its path."""
        if self._owns_store:
            await self._store.close()


async def _whole(awaitable: Awaitable[T]) -> T:
    """Waits for a change to its end, also if the task is cancelled, so that nobody takes it for undone."""
    task = asyncio.ensure_future(awaitable)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # so that it is not reported as never retrieved
        raise cancelled
    return task.result()


def _replaced(
    chat: _sync.Session,
    suffix: list[Message],
    replacement: list[Message],
    prune_prefix: Callable[[TResponseInputItem], bool] | None,
) -> bool:
    """Replaces the last messages of the present branch, if they are still those."""
    head, view = chat.head(), chat.history()
    at = len(view) - len(suffix)
    if at < 0 or view[at:] != suffix:
        return False
    # The message that is stored before the first one, also if a model does not see it.
    parent = suffix[0].parent
    try:
        if replacement:
            chat.append_all_to_if_head(parent, head, replacement)
        else:
            _checkout(chat, parent)
    except (HeadMovedError, UnknownMessageError):
        # Another process appended to it, or deleted from it.
        return False
    if prune_prefix is not None:
        expired = itertools.takewhile(lambda message: all(map(prune_prefix, items_of(message))), view[:at])
        chat.delete(*(message.id for message in expired))
    return True


def _all_replaced(chat: _sync.Session, replacement: list[Message]) -> None:
    """Replaces all messages of the present branch that a model sees."""
    first = next(iter(chat), None)
    parent = chat.head() if first is None else first.parent
    if replacement:
        chat.append_all_to(parent, replacement)
    else:
        _checkout(chat, parent)


def _checkout(chat: _sync.Session, id: str | None) -> None:
    chat.checkout_start() if id is None else chat.checkout(id)


def _pop(chat: _sync.Session) -> TResponseInputItem | None:
    while (head := chat.head()) is not None:
        try:
            items = _removed(chat, head)
        except UnknownMessageError:
            # Another process or another store of this file removed it meanwhile, and has its item.
            if chat.head() == head:
                raise
            continue
        if items:
            return items[-1]
    return None


def _removed(chat: _sync.Session, head: str) -> list[TResponseInputItem]:
    """Removes the message at the head from the present branch; returns its items."""
    message = chat.message(head)
    items = [] if message is None or message.hidden else items_of(message)
    parent = None if message is None else message.parent
    if chat.branches(head):
        # In the middle of another branch, which keeps it.
        _checkout(chat, parent)
    else:
        chat.delete(head)
    return items


def items_of(message: Message) -> list[TResponseInputItem]:
    """Returns the items of a message: the one that it was made of, or what the responses API takes."""
    metadata = message.metadata
    if isinstance(metadata, Mapping) and _FIELD in metadata:
        return [cast("TResponseInputItem", metadata[_FIELD])]
    parts = message["parts"]
    if len(parts) == 1 and set(parts[0]) == {"type", "text"} and parts[0]["type"] == "text":
        return [cast("TResponseInputItem", {"role": message.role, "content": parts[0]["text"]})]
    view = model.to_openai_responses([message])
    return cast("list[TResponseInputItem]", view["input"] if isinstance(view, dict) else view)


def _checked(items: object) -> list[dict[str, Any]]:
    """Returns items that are dicts."""
    if not isinstance(items, (list, tuple)):
        raise TypeError(f"items must be a list of dicts, not {type(items).__name__}")
    for at, item in enumerate(items):
        if not isinstance(item, dict):
            raise TypeError(f"items[{at}] must be a dict, not {type(item).__name__}")
    return list(items)


def messages_of(items: list[dict[str, Any]]) -> list[Message]:
    """Returns messages of items, with parts that search and other models can read."""
    calls = [item for item in items if item.get("type") == "function_call"]
    names = {call["call_id"]: call["name"] for call in calls if _has_strs(call, "call_id", "name")}
    return [_message_of(item, names) for item in items]


def _has_strs(item: dict[str, Any], *fields: str) -> bool:
    return all(isinstance(item.get(field), str) for field in fields)


def _message_of(item: dict[str, Any], names: dict[str, str]) -> Message:
    role, content, kind = item.get("role"), item.get("content"), item.get("type", "message")
    if item.keys() == {"role", "content"} and isinstance(role, str) and isinstance(content, str):
        return Message.new(role, [{"type": "text", "text": content}])
    kept = {_FIELD: item}
    if kind == "function_call" and _has_strs(item, "call_id", "name"):
        return Message.new("assistant", [tool_call(item["name"], item["call_id"], _input(item))], metadata=kept)
    if kind == "function_call_output" and _has_strs(item, "call_id"):
        name = names.get(item["call_id"], "function")
        return Message.new("tool", [tool_result(name, item["call_id"], item.get("output"))], metadata=kept)
    if kind == "message" and isinstance(role, str):
        texts = [content] if isinstance(content, str) else _texts(content)
        return Message.new(role, [{"type": "text", "text": text} for text in texts], metadata=kept)
    if kind == "reasoning":
        parts = [{"type": "reasoning", "text": text} for text in _texts(item.get("summary"))]
        return Message.new("assistant", parts, metadata=kept)
    # Kinds without a text, those of later releases of the SDK, and what lacks a field.
    return Message.new("assistant", [], metadata=kept)


def _texts(parts: object) -> list[str]:
    """Returns the texts of typed parts."""
    given = parts if isinstance(parts, list) else []
    return [part["text"] for part in given if isinstance(part, dict) and _has_strs(part, "text")]


def _input(item: dict[str, Any]) -> Any:
    arguments = item.get("arguments")
    try:
        return json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return arguments
