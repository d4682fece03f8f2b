"""A path of a session, and its reads."""

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import talktree as _sync

from .._files import Target
from .._lines import Call, Line
from ..compaction import Compacted, CompactionOptions, CompactionPlan, Nothing, WindowUsage
from ..message import Message
from ..model import AuthorLine, TruncateOptions
from ..results import Alternative, Found, Page, Recent, RowStat, SessionsFound
from ..search import SearchSettings
from ..usage import UsageTotal

if TYPE_CHECKING:
    from ..search import Unpack

T = TypeVar("T")

#: How many messages a stream reads at once.
_BATCH = 100


class Reads:
    """The reads of a path: of a session to its head, of a `Path` to its leaf."""

    sync: _sync.Session | _sync.Path
    _line: Line

    async def _run(self, work: Callable[[Call[T]], T]) -> T:
        return await self._line.run(work)

    async def __aiter__(self) -> AsyncIterator[Message]:
        """Yields the messages, oldest first; they are read in batches."""
        async for message in streamed(self._run, iter(self.sync)):
            yield message

    async def iter_rev(self) -> AsyncIterator[Message]:
        """Yields the messages, newest first; what is not taken is not read."""
        async for message in streamed(self._run, reversed(self.sync)):
            yield message

    async def recent(
        self, *, tokens: int | None = None, bytes: int | None = None, messages: int | None = None
    ) -> Recent:
        """Returns the newest messages that fit a budget of tokens, bytes or messages.

        It never separates a tool call from its result, and always returns the newest message.
        """
        return await self._run(lambda call: self.sync.recent(tokens=tokens, bytes=bytes, messages=messages))

    async def page(
        self,
        *,
        before: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        author: str | None = None,
        tag: str | None = None,
    ) -> Page:
        """Returns a page of at most `limit` messages (50 by default): the newest, or those next to a message."""
        return await self._run(
            lambda call: self.sync.page(before=before, after=after, limit=limit, author=author, tag=tag)
        )

    async def row_stats(self) -> list[RowStat]:
        """Returns ids, roles, bytes and tokens of the messages, without reading their content."""
        return await self._run(lambda call: self.sync.row_stats())

    async def path_length(self) -> int:
        """Returns how many messages the path has, deleted ones left out."""
        return await self._run(lambda call: self.sync.path_length())

    async def window_usage(self) -> WindowUsage:
        """Returns the tokens of the window, by part."""
        return await self._run(lambda call: self.sync.window_usage())

    async def plan_compaction(self, options: CompactionOptions | None = None) -> CompactionPlan | Nothing:
        """Returns the range to compact now and the prompt for its summary, or why there is nothing to compact.

        Nothing is written or locked. Give the summary to `commit`.
        """
        return await self._run(lambda call: self.sync.plan_compaction(options))

    async def compact(self) -> Compacted | Nothing:
        """Compacts by the summarizer or the policy of the session; returns what it did, or why there was nothing to do."""
        return await self._run(lambda call: self.sync.compact())

    async def anthropic_request(
        self,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        truncated: TruncateOptions | None = None,
        authors: AuthorLine | None = None,
        cached_history: bool = False,
        prefill: bool = False,
    ) -> dict[str, Any]:
        """Returns a request for Anthropic's messages API: prompt, messages and tools. `model` and `max_tokens` are yours.

        Args:
            tools: Tools of the program, besides those of the session.
            truncated: Shortens old messages.
            authors: Puts a line before each message that names who wrote it.
            cached_history: Marks the history for the provider's cache.
            prefill: Lets the request end with a message of the model, which it continues.
        """
        return await self._run(
            lambda call: self.sync.anthropic_request(
                tools=tools, truncated=truncated, authors=authors, cached_history=cached_history, prefill=prefill
            )
        )

    async def openai_chat_request(
        self,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        truncated: TruncateOptions | None = None,
        authors: AuthorLine | None = None,
    ) -> dict[str, Any]:
        """Returns a request for OpenAI's chat completions API. `model` is yours."""
        return await self._run(
            lambda call: self.sync.openai_chat_request(tools=tools, truncated=truncated, authors=authors)
        )

    async def openai_responses_request(
        self,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        truncated: TruncateOptions | None = None,
        authors: AuthorLine | None = None,
    ) -> dict[str, Any]:
        """Returns a request for OpenAI's responses API. `model` is yours."""
        return await self._run(
            lambda call: self.sync.openai_responses_request(tools=tools, truncated=truncated, authors=authors)
        )

    async def search(self, text: str, **settings: Unpack[SearchSettings]) -> Found:
        """Returns the messages that match, best first. `SearchSettings` lists the settings.

        The text may be a question or keywords, and have phrases, `-word`, `role:user`, `after:2026-01-31`,
        `exact:"a ?? b"`; it is never a syntax error.
        """
        return await self._run(lambda call: self.sync.search(text, **settings))

    async def search_by_session(self, text: str, **settings: Unpack[SearchSettings]) -> SessionsFound:
        """Returns the session with its best hits, or nothing; `Store.search_by_session` finds whole sessions."""
        return await self._run(lambda call: self.sync.search_by_session(text, **settings))

    async def search_alternatives(self, text: str, **settings: Unpack[SearchSettings]) -> list[Alternative]:
        """Returns queries that find something where this one finds nothing."""
        return await self._run(lambda call: self.sync.search_alternatives(text, **settings))

    async def export_markdown(self, target: Target) -> None:
        """Writes the path as a page for people, to a path or a binary file."""
        await self._run(lambda call: self.sync.export_markdown(target))

    async def export_openai(self, target: Target) -> None:
        """Writes the path as a conversation of the OpenAI chat API, to a path or a binary file."""
        await self._run(lambda call: self.sync.export_openai(target))


class Path(Reads):
    """The path to one message, as `Session.at` returns it: the reads of a session without moving its head."""

    sync: _sync.Path

    def __init__(self, sync: _sync.Path, line: Line) -> None:
        self.sync = sync
        self._line = line

    @property
    def leaf(self) -> str | None:
        """The leaf of the path; None for the head."""
        return self.sync.leaf

    def raw(self) -> Path:
        """Returns the same path, of its stored messages instead of what a model should see."""
        return Path(self.sync.raw(), self._line)

    def __repr__(self) -> str:
        return repr(self.sync)

    async def history(self) -> list[Message]:
        """Returns the messages of the path, oldest first, with compactions applied unless it is raw."""
        return await self._run(lambda call: self.sync.history())

    async def raw_history(self) -> list[Message]:
        """Returns the stored messages of the path, oldest first."""
        return await self._run(lambda call: self.sync.raw_history())

    async def usage(self) -> UsageTotal:
        """Returns the usage of the answers on the path."""
        return await self._run(lambda call: self.sync.usage())


async def streamed(
    run: Callable[
        [Callable[[Call[builtins.list[Message]]], builtins.list[Message]]], Awaitable[builtins.list[Message]]
    ],
    messages: Iterator[Message],
) -> AsyncIterator[Message]:
    def batch(call: Call[builtins.list[Message]]) -> builtins.list[Message]:
        return [message for _, message in zip(range(_BATCH), messages)]

    while taken := await run(batch):
        for message in taken:
            yield message
