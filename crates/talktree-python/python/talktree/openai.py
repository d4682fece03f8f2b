"""A session for the OpenAI Agents SDK (`pip install talktree[openai]`).

    session = talktree.openai.Session("user:42", "agents.db")
    result = await Runner.run(agent, "Can we deploy on Friday?", session=session)

Each item is a message of the talktree session of the same id, and comes back exactly as it was given. `chat` is that session:
branches, search, summaries and views for other models are its verbs. What other parts of the program append to it, the agent
sees as items, too.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, cast

try:
    from agents.memory import SessionABC, SessionSettings
except ImportError as error:
    raise ImportError("talktree.openai needs the OpenAI Agents SDK: pip install 'talktree[openai]'") from error

import talktree as _sync

from . import aio, model
from .errors import UnknownMessageError
from .message import Message, tool_call, tool_result
from .results import Found

if TYPE_CHECKING:
    from agents import TResponseInputItem

    from .search import SearchSettings, Unpack
    from .settings import SessionSettings as ChatSettings

T = TypeVar("T")

#: Where the metadata of a message has the item that it was made of.
_FIELD = "openai_item"


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
        self.session_settings = SessionSettings().resolve(session_settings)
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
        """Returns the items of the present branch, or its newest ones, oldest first."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        chat = await self.chat()
        if limit is None:
            messages = await chat.history()
        elif limit <= 0:
            return []
        else:
            # A message is at least one item, unless a model sees nothing of it.
            messages = (await chat.recent(messages=limit)).messages
        items = [item for message in messages for item in items_of(message)]
        if limit is not None and len(items) < limit < await chat.path_length():
            items = [item for message in await chat.history() for item in items_of(message)]
        return items if limit is None else items[-limit:]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Appends items to the present branch, all or none."""
        chat = await self.chat()
        if items:
            await _whole(chat.append_all(messages_of(cast("list[dict[str, Any]]", items))))

    async def pop_item(self) -> TResponseInputItem | None:
        """Removes the newest item of the present branch and returns it; other branches that have it keep it."""
        chat = await self.chat()
        return await _whole(chat._run(lambda call: _pop(chat.sync)))

    async def clear_session(self) -> None:
        """Deletes all items of all branches."""
        chat = await self.chat()
        await _whole(chat.clear())

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
        chat.checkout_start() if parent is None else chat.checkout(parent)
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


def messages_of(items: list[dict[str, Any]]) -> list[Message]:
    """Returns messages of items, with parts that search and other models can read."""
    names = {item["call_id"]: item["name"] for item in items if item.get("type") == "function_call"}
    return [_message_of(item, names) for item in items]


def _message_of(item: dict[str, Any], names: dict[str, str]) -> Message:
    role, content = item.get("role"), item.get("content")
    if item.keys() == {"role", "content"} and isinstance(role, str) and isinstance(content, str):
        return Message.new(role, [{"type": "text", "text": content}])
    kept = {_FIELD: item}
    kind = item.get("type", "message")
    if kind == "function_call":
        return Message.new("assistant", [tool_call(item["name"], item["call_id"], _input(item))], metadata=kept)
    if kind == "function_call_output":
        name = names.get(item["call_id"], "function")
        return Message.new("tool", [tool_result(name, item["call_id"], item.get("output"))], metadata=kept)
    if kind == "message" and isinstance(role, str):
        texts = [content] if isinstance(content, str) else [part.get("text") for part in content or []]
        parts = [{"type": "text", "text": text} for text in texts if isinstance(text, str)]
        return Message.new(role, parts, metadata=kept)
    if kind == "reasoning":
        texts = [part.get("text") for part in item.get("summary") or []]
        parts = [{"type": "reasoning", "text": text} for text in texts if isinstance(text, str)]
        return Message.new("assistant", parts, metadata=kept)
    # Kinds without a text, and those of later releases of the SDK.
    return Message.new("assistant", [], metadata=kept)


def _input(item: dict[str, Any]) -> Any:
    try:
        return json.loads(item["arguments"])
    except ValueError:
        return item["arguments"]
