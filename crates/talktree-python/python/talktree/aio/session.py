"""A session, whose calls run in order."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import talktree as _sync

from .._files import Target
from ..blocks import BlockInfo, Drift
from ..compaction import (
    AddedCompaction,
    BranchSummaryPlan,
    Compacted,
    Compaction,
    CompactionOptions,
    CompactionPlan,
    CompactionStatus,
    RequestTokens,
    SummaryLike,
)
from ..importing import Imported, ImportRecord
from ..message import Message, MessageLike
from ..model import StreamProvider
from ..results import (
    Appended,
    Deleted,
    Event,
    HeadEntry,
    Label,
    MessageTag,
    Retried,
    SessionDetails,
    SessionInfo,
    ToolStats,
    Updated,
)
from ..usage import Usage, UsageTotal
from .context import Context, Tools
from .many import Erased
from .path import Path, Reads, streamed
from .reply import Reply

if TYPE_CHECKING:
    from .store import Store


class Session(Reads):
    """A session: the verbs of `talktree.Session`, awaited. Its calls run in the order in which they were made."""

    sync: _sync.Session

    def __init__(self, sync: _sync.Session, store: Store) -> None:
        self.sync = sync
        self._store = store
        self._line = store._line(sync.id)

    def _wrap(self, sync: _sync.Session) -> Session:
        return Session(sync, self._store)

    @property
    def id(self) -> str:
        """The id of the session."""
        return self.sync.id

    def __repr__(self) -> str:
        return repr(self.sync)

    @property
    def context(self) -> Context:
        """The texts and documents of the blocks."""
        return Context(self.sync.context, self._line)

    @property
    def tools(self) -> Tools:
        """The tools for a model."""
        return Tools(self.sync.tools, self._line)

    def at(self, leaf: str) -> Path:
        """Returns the path to any message, with the reads of a session."""
        return Path(self.sync.at(leaf), self._line)

    def path(self) -> Path:
        """Returns the path to the head."""
        return Path(self.sync.path(), self._line)

    def subscribe(self, listener: Callable[[Event], object]) -> _sync.Subscription:
        """Calls a plain listener after each change, in the thread that made it.

        The subscription ends with its `close`, or when it is collected: keep it.
        """
        return self.sync.subscribe(listener)

    async def all_messages(self) -> AsyncIterator[Message]:
        """Yields the messages of every branch, in order of creation."""
        async for message in streamed(self._run, self.sync.all_messages()):
            yield message

    async def info(self) -> SessionInfo | None:
        """Returns the details of the session; None if nothing was written yet."""
        return await self._run(lambda call: self.sync.info())

    async def set_details(self, details: SessionDetails) -> None:
        """Sets the details that are not None; tags are added."""
        await self._run(lambda call: self.sync.set_details(details))

    async def append(self, message: MessageLike) -> Appended:
        """Appends a message to the head, which moves.

        A message that is known by its id is a no-op. A dict without an id gets one, so appending it twice stores two.

        Args:
            message: A `Message`, or a dict or a dataclass with a `role`, and `parts`, `text` or `content`.
        """
        return await self._run(lambda call: self.sync.append(message))

    async def append_to(self, parent: str, message: MessageLike) -> Appended:
        """Appends a message to any message: a branch, if that has one after it already."""
        return await self._run(lambda call: self.sync.append_to(parent, message))

    async def append_root(self, message: MessageLike) -> Appended:
        """Appends a message without a parent: a second tree in the session, if it has one."""
        return await self._run(lambda call: self.sync.append_root(message))

    async def append_if_head(self, expected: str | None, message: MessageLike) -> Appended:
        """Appends a message to the head, if that is where it is expected; None is before the first message.

        Raises:
            talktree.HeadMovedError: if it is somewhere else.
        """
        return await self._run(lambda call: self.sync.append_if_head(expected, message))

    async def append_all(self, messages: Iterable[MessageLike]) -> list[Appended]:
        """Appends a chain of messages to the head, all or none."""
        return await self._run(lambda call: self.sync.append_all(messages))

    async def append_all_to(self, parent: str | None, messages: Iterable[MessageLike]) -> list[Appended]:
        """Appends a chain of messages to any message, all or none; to None: as a root."""
        return await self._run(lambda call: self.sync.append_all_to(parent, messages))

    async def append_all_if_head(self, expected: str | None, messages: Iterable[MessageLike]) -> list[Appended]:
        """Appends a chain of messages to the head, if that is where it is expected."""
        return await self._run(lambda call: self.sync.append_all_if_head(expected, messages))

    async def append_all_to_if_head(
        self, parent: str | None, expected: str | None, messages: Iterable[MessageLike]
    ) -> list[Appended]:
        """Appends a chain of messages to any message, if the head is where it is expected; to None: as a root.

        So the end of a conversation is replaced: what was there stays, as a branch.
        """
        return await self._run(lambda call: self.sync.append_all_to_if_head(parent, expected, messages))

    async def append_answer(self, response: Mapping[str, Any]) -> Message:
        """Appends the answer of any provider, with its usage; returns the message.

        Raises:
            talktree.NoAnswerError: if the response holds no answer, such as an error of the provider.
        """
        return await self._run(lambda call: self.sync.append_answer(response))

    async def stream(self, provider: StreamProvider) -> Reply:
        """Begins a reply into which an answer of a provider is streamed, line by line.

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
        return Reply(await self._run(lambda call: self.sync.stream(provider)), self._line)

    async def begin(self, message: MessageLike) -> Appended:
        """Appends a message as an unfinished one: `stream`, for another source of events.

        `save` replaces its content, `finish` shows it, `discard` deletes it.
        """
        return await self._run(lambda call: self.sync.begin(message))

    async def save(self, message: MessageLike) -> None:
        """Replaces the content of the unfinished message of the same id, which stays unfinished.

        Raises:
            talktree.FinishedError: if someone finished it meanwhile.
            talktree.UnknownMessageError: if it was discarded.
        """
        await self._run(lambda call: self.sync.save(message))

    async def finish(self, message: MessageLike) -> None:
        """Replaces the content of the unfinished message of the same id, and shows it from then on; its usage is recorded.

        Raises:
            talktree.FinishedError: if someone finished it meanwhile.
            talktree.UnknownMessageError: if it was discarded.
        """
        await self._run(lambda call: self.sync.finish(message))

    async def discard(self, id: str) -> None:
        """Deletes an unfinished message.

        Raises:
            talktree.FinishedError: if someone finished it; it stays then.
        """
        await self._run(lambda call: self.sync.discard(id))

    async def unfinished(self) -> list[Message]:
        """Returns the unfinished messages of all branches: replies that are streamed now, and those of processes that died."""
        return await self._run(lambda call: self.sync.unfinished())

    async def edit(self, id: str, message: MessageLike) -> Appended:
        """Appends another version of a message: a sibling, which the head moves to."""
        return await self._run(lambda call: self.sync.edit(id, message))

    async def retry(self) -> Retried:
        """Moves the head back to the last question, so that the next answer is a sibling of the last one."""
        return await self._run(lambda call: self.sync.retry())

    async def question(self) -> str | None:
        """Returns the last question on the path to the head, which `retry` goes back to; None if there is none."""
        return await self._run(lambda call: self.sync.question())

    async def update(self, message: MessageLike) -> Updated:
        """Replaces the content of a stored message of the same id. The tree does not change."""
        return await self._run(lambda call: self.sync.update(message))

    async def upsert(self, message: MessageLike) -> Appended | Updated:
        """Appends a message, or replaces the content of the one with its id. A reply that streams in is for `stream`."""
        return await self._run(lambda call: self.sync.upsert(message))

    async def import_message(self, parent: str | None, message: MessageLike) -> Imported:
        """Stores a message from elsewhere with its own parent, id and time. The head moves to it if the head is at the parent."""
        return await self._run(lambda call: self.sync.import_message(parent, message))

    async def import_messages(self, records: Iterable[ImportRecord]) -> list[Imported]:
        """Stores messages from elsewhere, all or none; a record is imported only once, even if it was deleted later."""
        return await self._run(lambda call: self.sync.import_messages(records))

    async def is_imported(self, record: str) -> bool:
        """Returns whether a record of this name was imported, also if its message was deleted since."""
        return await self._run(lambda call: self.sync.is_imported(record))

    async def import_compaction(self, compaction: Compaction) -> None:
        """Adds a compaction from elsewhere with its id and time; a known id is a no-op."""
        await self._run(lambda call: self.sync.import_compaction(compaction))

    async def delete(self, *ids: str) -> Deleted:
        """Deletes messages, all or none; one that has messages below it leaves its place in the tree."""
        return await self._run(lambda call: self.sync.delete(*ids))

    async def delete_branch(self, id: str) -> Deleted:
        """Deletes a message and everything below it."""
        return await self._run(lambda call: self.sync.delete_branch(id))

    async def erase(self, *ids: str) -> Erased:
        """Erases messages: no byte of them is left in the file, in its log or in a later backup."""
        return Erased.over(await self._run(lambda call: self.sync.erase(*ids)), self._store._pool)

    async def clear(self) -> None:
        """Deletes all messages, compactions and labels; the session stays."""
        await self._run(lambda call: self.sync.clear())

    async def fork(self, at: str, name: str, *, id: str | None = None) -> Session:
        """Returns a new session that begins with a copy of the path to a message."""
        return self._wrap(await self._run(lambda call: self.sync.fork(at, name, id=id)))

    async def history(self) -> list[Message]:
        """Returns what a model should see: the messages to the head, oldest first, with compactions applied."""
        return await self._run(lambda call: self.sync.history())

    async def raw_history(self) -> list[Message]:
        """Returns the stored messages to the head, oldest first."""
        return await self._run(lambda call: self.sync.raw_history())

    async def message(self, id: str) -> Message | None:
        """Returns a message, or the summary of a compaction; None if there is none of this id."""
        return await self._run(lambda call: self.sync.message(id))

    async def is_on_path(self, id: str) -> bool:
        """Returns whether a message is on the path to the head."""
        return await self._run(lambda call: self.sync.is_on_path(id))

    async def is_ancestor(self, ancestor: str, id: str) -> bool:
        """Returns whether a message is on the path to another one."""
        return await self._run(lambda call: self.sync.is_ancestor(ancestor, id))

    async def latest_leaf(self) -> Message | None:
        """Returns the newest message without one after it."""
        return await self._run(lambda call: self.sync.latest_leaf())

    async def leaves(self) -> list[str]:
        """Returns where the branches end."""
        return await self._run(lambda call: self.sync.leaves())

    async def branches(self, id: str) -> list[Message]:
        """Returns the messages that follow a message."""
        return await self._run(lambda call: self.sync.branches(id))

    async def branches_page(self, id: str | None, *, after: str | None = None, limit: int = 50) -> list[Message]:
        """Returns a page of the messages that follow a message; of None: of the roots."""
        return await self._run(lambda call: self.sync.branches_page(id, after=after, limit=limit))

    async def roots(self) -> list[Message]:
        """Returns the messages without a parent."""
        return await self._run(lambda call: self.sync.roots())

    async def siblings(self, id: str) -> list[Message]:
        """Returns the versions of a message: what follows the same parent, itself included."""
        return await self._run(lambda call: self.sync.siblings(id))

    async def tree(
        self,
        *,
        max_children: int | None = None,
        max_main_segments: int | None = None,
        max_indent: int | None = None,
        ascii: bool = False,
        whole: bool = False,
    ) -> str:
        """Returns a drawing of the tree."""
        return await self._run(
            lambda call: self.sync.tree(
                max_children=max_children,
                max_main_segments=max_main_segments,
                max_indent=max_indent,
                ascii=ascii,
                whole=whole,
            )
        )

    async def head(self) -> str | None:
        """Returns the message that the next one is appended to; None before the first."""
        return await self._run(lambda call: self.sync.head())

    async def checkout(self, id: str) -> None:
        """Moves the head to any message."""
        await self._run(lambda call: self.sync.checkout(id))

    async def checkout_start(self) -> None:
        """Moves the head before the first message."""
        await self._run(lambda call: self.sync.checkout_start())

    async def undo_head(self) -> bool:
        """Moves the head back to where it was; returns whether it moved."""
        return await self._run(lambda call: self.sync.undo_head())

    async def redo_head(self) -> bool:
        """Takes an undo back; returns whether the head moved."""
        return await self._run(lambda call: self.sync.redo_head())

    async def head_log(self) -> list[HeadEntry]:
        """Returns where the head was."""
        return await self._run(lambda call: self.sync.head_log())

    async def label(self, name: str, id: str) -> None:
        """Gives a message a name, unique in the session; moves it if it is in use."""
        await self._run(lambda call: self.sync.label(name, id))

    async def unlabel(self, name: str) -> None:
        """Removes a label."""
        await self._run(lambda call: self.sync.unlabel(name))

    async def labels(self) -> list[Label]:
        """Returns the labels."""
        return await self._run(lambda call: self.sync.labels())

    async def labelled(self, name: str) -> str | None:
        """Returns the message of a label."""
        return await self._run(lambda call: self.sync.labelled(name))

    async def tag(self, id: str, tag: str) -> None:
        """Adds a tag to a message: a flag of a moderator, the state of a review. One that it has is no error."""
        await self._run(lambda call: self.sync.tag(id, tag))

    async def untag(self, id: str, tag: str) -> None:
        """Removes a tag of a message."""
        await self._run(lambda call: self.sync.untag(id, tag))

    async def tags(self, id: str) -> list[str]:
        """Returns the tags of a message, sorted."""
        return await self._run(lambda call: self.sync.tags(id))

    async def all_tags(self) -> list[MessageTag]:
        """Returns the tags of all messages, in the order in which the messages were appended."""
        return await self._run(lambda call: self.sync.all_tags())

    async def add_compaction(self, summary: str, first: str, last: str, *, details: Any = None) -> AddedCompaction:
        """Replaces a range of a path with a summary when a history is read. The messages stay."""
        return await self._run(lambda call: self.sync.add_compaction(summary, first, last, details=details))

    async def remove_compaction(self, id: str) -> None:
        """Removes a compaction, as if it had never been."""
        await self._run(lambda call: self.sync.remove_compaction(id))

    async def compactions(self) -> list[Compaction]:
        """Returns the compactions of all branches."""
        return await self._run(lambda call: self.sync.compactions())

    async def compaction(self, id: str) -> Compaction:
        """Returns a compaction."""
        return await self._run(lambda call: self.sync.compaction(id))

    async def compaction_status(self, id: str) -> CompactionStatus:
        """Returns whether the history shows a compaction."""
        return await self._run(lambda call: self.sync.compaction_status(id))

    async def expand(self, id: str) -> list[Message]:
        """Returns what a summary covers: messages and summaries."""
        return await self._run(lambda call: self.sync.expand(id))

    async def expand_raw(self, id: str) -> list[Message]:
        """Returns the messages that a summary covers."""
        return await self._run(lambda call: self.sync.expand_raw(id))

    async def commit(self, plan: CompactionPlan, summary: SummaryLike) -> Compacted:
        """Stores the summary of a plan.

        Raises:
            talktree.StaleError: if the range has changed since the plan was made.
            talktree.SummaryRefusedError: if the summary is blank or not shorter than the range.
        """
        return await self._run(lambda call: self.sync.commit(plan, summary))

    async def request_tokens(self) -> RequestTokens:
        """Returns the tokens of the next request."""
        return await self._run(lambda call: self.sync.request_tokens())

    async def visible_tokens(self) -> int:
        """Returns the tokens of the history, without reading it."""
        return await self._run(lambda call: self.sync.visible_tokens())

    async def plan_branch_summary(self, to: str, options: CompactionOptions | None = None) -> BranchSummaryPlan | None:
        """Returns a checkout and the prompt for a summary of the branch it leaves; None if it leaves nothing."""
        return await self._run(lambda call: self.sync.plan_branch_summary(to, options))

    async def checkout_with_summary(self, plan: BranchSummaryPlan, summary: SummaryLike) -> str:
        """Moves the head and appends the summary of the branch it leaves; returns the id of that message."""
        return await self._run(lambda call: self.sync.checkout_with_summary(plan, summary))

    async def checkout_summarized(self, to: str) -> str | None:
        """Moves the head, with a summary by the session's summarizer; returns the id of that message."""
        return await self._run(lambda call: self.sync.checkout_summarized(to))

    async def compact_and_split(self, summary: SummaryLike, *, id: str | None = None) -> Session:
        """Ends the session and continues it in a new one, which begins with the summary."""
        return self._wrap(await self._run(lambda call: self.sync.compact_and_split(summary, id=id)))

    async def prompt(self) -> str:
        """Returns the system prompt; with `cached_prompt` the same bytes until `refresh_prompt`."""
        return await self._run(lambda call: self.sync.prompt())

    async def refresh_prompt(self) -> str:
        """Makes the system prompt again, and returns it."""
        return await self._run(lambda call: self.sync.refresh_prompt())

    async def drift(self) -> list[Drift]:
        """Returns the blocks that differ from the frozen prompt."""
        return await self._run(lambda call: self.sync.drift())

    async def reminder(self) -> str | None:
        """Returns what a request says besides the frozen prompt; None if nothing changed."""
        return await self._run(lambda call: self.sync.reminder())

    async def block(self, label: str) -> BlockInfo | None:
        """Returns a block with its present content."""
        return await self._run(lambda call: self.sync.block(label))

    async def blocks(self) -> list[BlockInfo]:
        """Returns the blocks with their present contents."""
        return await self._run(lambda call: self.sync.blocks())

    async def add_usage(self, usage: Usage, message: str | None = None) -> None:
        """Adds to the usage of the session, for a message or besides the messages."""
        await self._run(lambda call: self.sync.add_usage(usage, message))

    async def usage(self) -> UsageTotal:
        """Returns the usage of all answers of the session."""
        return await self._run(lambda call: self.sync.usage())

    async def tool_stats(self) -> dict[str, ToolStats]:
        """Returns how often each tool was called."""
        return await self._run(lambda call: self.sync.tool_stats())

    async def export_jsonl(self, target: Target) -> None:
        """Writes every branch, compaction and label as JSON lines, to a path or a binary file."""
        await self._run(lambda call: self.sync.export_jsonl(target))

    async def content_hash(self) -> str:
        """Returns a hash of the content, the same for the same content in any store."""
        return await self._run(lambda call: self.sync.content_hash())
