# Made by stubs.py.

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Literal, overload
import builtins
import os
import talktree as _sync
from . import _native
from ._files import Target
from ._lines import Line, Pool
from .blocks import Block, BlockInfo, Document, Drift, EntryInfo, EntryVersion
from .compaction import BranchSummaryPlan, Compacted, Compaction, CompactionOptions, CompactionPlan, CompactionStatus, Nothing, RequestTokens, SummaryLike, WindowUsage
from .embedding import Embedder, Embedding
from .erasure import Erasure, ErasureExtent, ErasureProof
from .importing import FolderImport, ImportOptions, Imported
from .manager import State
from .many import Progress
from .message import Message, MessageLike
from .model import AuthorLine, StreamProvider, TruncateOptions
from .results import Alternative, Appended, Binding, Deleted, Event, Found, HeadEntry, ImportReport, Label, MessagePage, MessageTag, OwnerExport, OwnerInfo, Page, Recent, RowStat, SessionDetails, SessionInfo, SessionPage, SessionsFound, StoreStats, ToolStats, Updated, Verified
from .retention import RetentionReport, RetentionRule, RetentionSettings
from .search import SearchSettings, Unpack
from .settings import SessionSettings
from .store import Key, StoreOptions
from .tools import ProgramTools
from .transcripts import AppendedEntries, ListedTranscript, Projection, ProjectionReport, StoredTranscript, TranscriptFiles, TranscriptInfo, TranscriptKey, TranscriptMessage, TranscriptSummary
from .usage import Usage, UsageGroup, UsageRow, UsageTotal

class Path:
    'The path to one message, as `Session.at` returns it: the reads of a session without moving its head.'
    sync: _sync.Path
    _store: Store
    _line: Line | Pool
    def __aiter__(self) -> AsyncIterator[Message]:
        """Yields the messages, oldest first; they are read in batches."""
    def iter_rev(self) -> AsyncIterator[Message]:
        """Yields the messages, newest first; what is not taken is not read."""
    async def recent(self, *, tokens: int | None=None, bytes: int | None=None, messages: int | None=None) -> Recent:
        """Returns the newest messages that fit a budget of tokens, bytes or messages.

        It never separates a tool call from its result, and always returns the newest message.
        """
    async def page(self, *, before: str | None=None, after: str | None=None, limit: int | None=None, author: str | None=None, tag: str | None=None) -> Page:
        """Returns a page of at most `limit` messages (50 by default): the newest, or those next to a message.

        With `author` or `tag` only what this person wrote, or messages with this tag.
        """
    async def row_stats(self) -> list[RowStat]:
        """Returns ids, roles, bytes and tokens of the messages, without reading their content."""
    async def path_length(self) -> int:
        """Returns how many messages the path has, deleted ones left out."""
    async def window_usage(self) -> WindowUsage:
        """Returns the tokens of the window, by part."""
    async def plan_compaction(self, options: CompactionOptions | None=None) -> CompactionPlan | Nothing:
        """Returns the range to compact now and the prompt for its summary, or why there is nothing to compact.

        Nothing is written or locked. Give the summary to `commit`.
        """
    async def compact(self) -> Compacted | Nothing:
        """Compacts by the summarizer or the policy of the session; returns what it did, or why there was nothing to do."""
    async def anthropic_request(self, *, tools: Sequence[Mapping[str, Any]]=(), truncated: TruncateOptions | None=None, authors: AuthorLine | None=None, cached_history: bool=False, prefill: bool=False) -> dict[str, Any]:
        """Returns a request for Anthropic's messages API: prompt, messages and tools. `model` and `max_tokens` are yours.

        Args:
            tools: Tools of the program, besides those of the session.
            truncated: Shortens old messages.
            authors: Puts a line before each message that names who wrote it.
            cached_history: Marks the history for the provider's cache.
            prefill: Lets the request end with a message of the model, which it continues.
        """
    async def openai_chat_request(self, *, tools: Sequence[Mapping[str, Any]]=(), truncated: TruncateOptions | None=None, authors: AuthorLine | None=None) -> dict[str, Any]:
        """Returns a request for OpenAI's chat completions API. `model` is yours."""
    async def openai_responses_request(self, *, tools: Sequence[Mapping[str, Any]]=(), truncated: TruncateOptions | None=None, authors: AuthorLine | None=None) -> dict[str, Any]:
        """Returns a request for OpenAI's responses API. `model` is yours."""
    async def search(self, text: str, **settings: Unpack[SearchSettings]) -> Found:
        """Returns the messages that match, best first. `SearchSettings` lists the settings.

        The text may be a question or keywords, and have phrases, `-word`, `role:user`, `after:2026-01-31`,
        `exact:"a ?? b"`; it is never a syntax error.
        """
    async def search_by_session(self, text: str, **settings: Unpack[SearchSettings]) -> SessionsFound:
        """Returns the session with its best hits, or nothing; `Store.search_by_session` finds whole sessions."""
    async def search_alternatives(self, text: str, **settings: Unpack[SearchSettings]) -> list[Alternative]:
        """Returns queries that find something where this one finds nothing."""
    async def export_markdown(self, target: Target) -> None:
        """Writes the path as a page for people, to a path or a binary file."""
    async def export_openai(self, target: Target) -> None:
        """Writes the path as a conversation of the OpenAI chat API, to a path or a binary file."""
    @property
    def leaf(self) -> str | None:
        """The leaf of the path; None for the head."""
    def raw(self) -> Path:
        """Returns the same path, of its stored messages instead of what a model should see."""
    async def history(self) -> list[Message]:
        """Returns the messages of the path, oldest first, with compactions applied unless it is raw."""
    async def raw_history(self) -> list[Message]:
        """Returns the stored messages of the path, oldest first."""
    async def usage(self) -> UsageTotal:
        """Returns the usage of the answers on the path."""

class Session:
    'A session: the verbs of `talktree.Session`, awaited. Its calls run in the order in which they were made.'
    sync: _sync.Session
    _store: Store
    _line: Line | Pool
    def __aiter__(self) -> AsyncIterator[Message]:
        """Yields the messages, oldest first; they are read in batches."""
    def iter_rev(self) -> AsyncIterator[Message]:
        """Yields the messages, newest first; what is not taken is not read."""
    def all_messages(self) -> AsyncIterator[Message]:
        """Yields the messages of every branch, in order of creation."""
    async def recent(self, *, tokens: int | None=None, bytes: int | None=None, messages: int | None=None) -> Recent:
        """Returns the newest messages that fit a budget of tokens, bytes or messages.

        It never separates a tool call from its result, and always returns the newest message.
        """
    async def page(self, *, before: str | None=None, after: str | None=None, limit: int | None=None, author: str | None=None, tag: str | None=None) -> Page:
        """Returns a page of at most `limit` messages (50 by default): the newest, or those next to a message.

        With `author` or `tag` only what this person wrote, or messages with this tag.
        """
    async def row_stats(self) -> list[RowStat]:
        """Returns ids, roles, bytes and tokens of the messages, without reading their content."""
    async def path_length(self) -> int:
        """Returns how many messages the path has, deleted ones left out."""
    async def window_usage(self) -> WindowUsage:
        """Returns the tokens of the window, by part."""
    async def plan_compaction(self, options: CompactionOptions | None=None) -> CompactionPlan | Nothing:
        """Returns the range to compact now and the prompt for its summary, or why there is nothing to compact.

        Nothing is written or locked. Give the summary to `commit`.
        """
    async def compact(self) -> Compacted | Nothing:
        """Compacts by the summarizer or the policy of the session; returns what it did, or why there was nothing to do."""
    async def anthropic_request(self, *, tools: Sequence[Mapping[str, Any]]=(), truncated: TruncateOptions | None=None, authors: AuthorLine | None=None, cached_history: bool=False, prefill: bool=False) -> dict[str, Any]:
        """Returns a request for Anthropic's messages API: prompt, messages and tools. `model` and `max_tokens` are yours.

        Args:
            tools: Tools of the program, besides those of the session.
            truncated: Shortens old messages.
            authors: Puts a line before each message that names who wrote it.
            cached_history: Marks the history for the provider's cache.
            prefill: Lets the request end with a message of the model, which it continues.
        """
    async def openai_chat_request(self, *, tools: Sequence[Mapping[str, Any]]=(), truncated: TruncateOptions | None=None, authors: AuthorLine | None=None) -> dict[str, Any]:
        """Returns a request for OpenAI's chat completions API. `model` is yours."""
    async def openai_responses_request(self, *, tools: Sequence[Mapping[str, Any]]=(), truncated: TruncateOptions | None=None, authors: AuthorLine | None=None) -> dict[str, Any]:
        """Returns a request for OpenAI's responses API. `model` is yours."""
    async def search(self, text: str, **settings: Unpack[SearchSettings]) -> Found:
        """Returns the messages that match, best first. `SearchSettings` lists the settings.

        The text may be a question or keywords, and have phrases, `-word`, `role:user`, `after:2026-01-31`,
        `exact:"a ?? b"`; it is never a syntax error.
        """
    async def search_by_session(self, text: str, **settings: Unpack[SearchSettings]) -> SessionsFound:
        """Returns the session with its best hits, or nothing; `Store.search_by_session` finds whole sessions."""
    async def search_alternatives(self, text: str, **settings: Unpack[SearchSettings]) -> list[Alternative]:
        """Returns queries that find something where this one finds nothing."""
    async def export_markdown(self, target: Target) -> None:
        """Writes the path as a page for people, to a path or a binary file."""
    async def export_openai(self, target: Target) -> None:
        """Writes the path as a conversation of the OpenAI chat API, to a path or a binary file."""
    @property
    def id(self) -> str:
        """The id of the session."""
    async def info(self) -> SessionInfo | None:
        """Returns the details of the session; None if nothing was written yet."""
    async def set_details(self, details: SessionDetails) -> None:
        """Sets the details that are not None; tags are added."""
    async def append(self, message: MessageLike) -> Appended:
        """Appends a message to the head, which moves.

        A message that is known by its id is a no-op. A dict without an id gets one, so appending it twice stores two.

        Args:
            message: A `Message`, or a dict or a dataclass with a `role`, and `parts`, `text` or `content`.
        """
    async def append_to(self, parent: str, message: MessageLike) -> Appended:
        """Appends a message to any message: a branch, if that has one after it already."""
    async def append_root(self, message: MessageLike) -> Appended:
        """Appends a message without a parent: a second tree in the session, if it has one."""
    async def append_if_head(self, expected: str | None, message: MessageLike) -> Appended:
        """Appends a message to the head, if that is where it is expected; None is before the first message.

        Raises:
            talktree.HeadMovedError: if it is somewhere else.
        """
    async def append_all(self, messages: Iterable[MessageLike]) -> list[Appended]:
        """Appends a chain of messages to the head, all or none."""
    async def append_all_to(self, parent: str | None, messages: Iterable[MessageLike]) -> list[Appended]:
        """Appends a chain of messages to any message, all or none; to None: as a root."""
    async def append_all_if_head(self, expected: str | None, messages: Iterable[MessageLike]) -> list[Appended]:
        """Appends a chain of messages to the head, if that is where it is expected."""
    async def append_all_to_if_head(self, parent: str | None, expected: str | None, messages: Iterable[MessageLike]) -> list[Appended]:
        """Appends a chain of messages to any message, if the head is where it is expected; to None: as a root.

        So the end of a conversation is replaced: what was there stays, as a branch.
        """
    async def append_answer(self, response: Mapping[str, Any]) -> Message:
        """Appends the answer of any provider, with its usage; returns the message.

        Raises:
            talktree.NoAnswerError: if the response holds no answer, such as an error of the provider.
        """
    async def stream(self, provider: StreamProvider) -> Reply:
        """Begins a reply into which an answer of a provider is streamed, line by line.

        It has an id, and is stored as an unfinished message, which no request has until it is finished. If the process dies,
        `unfinished` offers it.
        """
    async def begin(self, message: MessageLike) -> Appended:
        """Appends a message as an unfinished one: `stream`, for another source of events.

        `save` replaces its content, `finish` shows it, `discard` deletes it. Histories for models, requests, token counts and
        compactions leave it out; raw histories, searches and exports have it. It follows the head; if that is unfinished, what that follows.
        """
    async def save(self, message: MessageLike) -> None:
        """Replaces the content of the unfinished message of the same id, which stays unfinished.

        Raises:
            talktree.FinishedError: if someone finished it meanwhile.
            talktree.UnknownMessageError: if it was discarded.
        """
    async def finish(self, message: MessageLike) -> None:
        """Replaces the content of the unfinished message of the same id, and shows it from then on; its usage is recorded.

        Raises:
            talktree.FinishedError: if someone finished it meanwhile.
            talktree.UnknownMessageError: if it was discarded.
        """
    async def discard(self, id: str) -> None:
        """Deletes an unfinished message. If it is the head, the head moves to the message above, not to a reply beside it.

        Raises:
            talktree.FinishedError: if someone finished it; it stays then.
        """
    async def unfinished(self) -> list[Message]:
        """Returns the unfinished messages of all branches: replies that are streamed now, and those of processes that died."""
    async def edit(self, id: str, message: MessageLike) -> Appended:
        """Appends another version of a message: a sibling, which the head moves to."""
    async def retry(self) -> str | None:
        """Moves the head back to the last question, so that the next answer is a sibling of the last one."""
    async def question(self) -> str | None:
        """Returns the last question on the path to the head, which `retry` goes back to; None if there is none."""
    async def update(self, message: MessageLike) -> Updated:
        """Replaces the content of a stored message of the same id. The tree does not change."""
    async def upsert(self, message: MessageLike) -> Updated:
        """Appends a message, or replaces the content of the one with its id. A reply that streams in is for `stream`."""
    async def import_message(self, parent: str | None, message: MessageLike) -> Imported:
        """Stores a message from elsewhere with its own parent, id and time.

        The head moves to it if the head is at the parent, and stays otherwise.
        """
    async def import_messages(self, messages: Iterable[tuple[str | None, MessageLike]]) -> list[Imported]:
        """Stores messages from elsewhere, each with its parent, all or none.

        One that was imported before is not imported again, even if it was deleted since.
        """
    async def is_imported(self, record: str) -> bool:
        """Returns whether a record of this name was imported, also if its message was deleted since."""
    async def delete(self, *ids: str) -> Deleted:
        """Deletes messages, all or none; one that has messages below it leaves its place in the tree."""
    async def delete_branch(self, id: str) -> Deleted:
        """Deletes a message and everything below it."""
    async def erase(self, *ids: str) -> Erased:
        """Erases messages: no byte of them is left in the file, in its log or in a later backup.

        `Store.erase` also erases branches, sessions, owners and keys.

        Raises:
            talktree.UnknownMessageError: if one is not in this session; no message is erased then.
        """
    async def clear(self) -> None:
        """Deletes all messages, compactions and labels; the session stays."""
    async def fork(self, at: str, name: str, *, id: str | None=None) -> Session:
        """Returns a new session that begins with a copy of the path to a message."""
    def subscribe(self, listener: Callable[[Event], object]) -> _native.Subscription:
        """Calls a listener after each change to the sessions of this store, in the thread that made it.

        The subscription ends with its `close`, or when it is collected: keep it. `Store.subscribe` says more.
        """
    async def history(self) -> list[Message]:
        """Returns what a model should see: the messages to the head, oldest first, with compactions applied."""
    async def raw_history(self) -> list[Message]:
        """Returns the stored messages to the head, oldest first."""
    async def message(self, id: str) -> Message | None:
        """Returns a message, or the summary of a compaction; None if there is none of this id."""
    def at(self, leaf: str) -> Path:
        """Returns the path to any message, with the reads of a session."""
    def path(self) -> Path:
        """Returns the path to the head."""
    async def is_on_path(self, id: str) -> bool:
        """Returns whether a message is on the path to the head."""
    async def is_ancestor(self, ancestor: str, id: str) -> bool:
        """Returns whether a message is on the path to another one."""
    async def latest_leaf(self) -> Message | None:
        """Returns the newest message without one after it."""
    async def leaves(self) -> list[str]:
        """Returns where the branches end."""
    async def branches(self, id: str) -> list[Message]:
        """Returns the messages that follow a message."""
    async def branches_page(self, id: str | None, *, after: str | None=None, limit: int=50) -> list[Message]:
        """Returns a page of the messages that follow a message; of None: of the roots."""
    async def roots(self) -> list[Message]:
        """Returns the messages without a parent."""
    async def siblings(self, id: str) -> list[Message]:
        """Returns the versions of a message: what follows the same parent, itself included."""
    async def tree(self, *, max_children: int | None=None, max_main_segments: int | None=None, max_indent: int | None=None, ascii: bool=False, whole: bool=False) -> str:
        """Returns a drawing of the tree."""
    async def head(self) -> str | None:
        """Returns the message that the next one is appended to; None before the first."""
    async def checkout(self, id: str) -> None:
        """Moves the head to any message."""
    async def checkout_start(self) -> None:
        """Moves the head before the first message."""
    async def undo_head(self) -> bool:
        """Moves the head back to where it was; returns whether it moved."""
    async def redo_head(self) -> bool:
        """Takes an undo back; returns whether the head moved."""
    async def head_log(self) -> list[HeadEntry]:
        """Returns where the head was."""
    async def label(self, name: str, id: str) -> None:
        """Gives a message a name, unique in the session; moves it if it is in use."""
    async def unlabel(self, name: str) -> None:
        """Removes a label."""
    async def labels(self) -> list[Label]:
        """Returns the labels."""
    async def labelled(self, name: str) -> str | None:
        """Returns the message of a label."""
    async def tag(self, id: str, tag: str) -> None:
        """Adds a tag to a message: a flag of a moderator, the state of a review. One that it has is no error.

        `Store.list_messages` lists the messages with a tag.
        """
    async def untag(self, id: str, tag: str) -> None:
        """Removes a tag of a message."""
    async def tags(self, id: str) -> list[str]:
        """Returns the tags of a message, sorted."""
    async def all_tags(self) -> list[MessageTag]:
        """Returns the tags of all messages, in the order in which the messages were appended."""
    async def add_compaction(self, summary: str, first: str, last: str, *, details: Any=None) -> Compacted:
        """Replaces a range of a path with a summary when a history is read. The messages stay."""
    async def remove_compaction(self, id: str) -> None:
        """Removes a compaction, as if it had never been."""
    async def compactions(self) -> list[Compaction]:
        """Returns the compactions of all branches."""
    async def compaction(self, id: str) -> Compaction:
        """Returns a compaction."""
    async def import_compaction(self, compaction: Compaction) -> None:
        """Adds a compaction from elsewhere with its id and time; a known id is a no-op."""
    async def compaction_status(self, id: str) -> CompactionStatus:
        """Returns whether the history shows a compaction."""
    async def expand(self, id: str) -> list[Message]:
        """Returns what a summary covers: messages and summaries."""
    async def expand_raw(self, id: str) -> list[Message]:
        """Returns the messages that a summary covers."""
    async def commit(self, plan: CompactionPlan, summary: SummaryLike) -> Compacted:
        """Stores the summary of a plan.

        Raises:
            talktree.StaleError: if the range has changed since the plan was made.
            talktree.SummaryRefusedError: if the summary is blank or not shorter than the range.
        """
    async def request_tokens(self) -> RequestTokens:
        """Returns the tokens of the next request."""
    async def visible_tokens(self) -> int:
        """Returns the tokens of the history, without reading it."""
    async def plan_branch_summary(self, to: str, options: CompactionOptions | None=None) -> BranchSummaryPlan | None:
        """Returns a checkout and the prompt for a summary of the branch it leaves; None if it leaves nothing."""
    async def checkout_with_summary(self, plan: BranchSummaryPlan, summary: SummaryLike) -> str:
        """Moves the head and appends the summary of the branch it leaves; returns the id of that message."""
    async def checkout_summarized(self, to: str) -> str | None:
        """Moves the head, with a summary by the session's summarizer; returns the id of that message."""
    async def compact_and_split(self, summary: SummaryLike, *, id: str | None=None) -> Session:
        """Ends the session and continues it in a new one, which begins with the summary."""
    @property
    def context(self) -> Context:
        """The texts and documents of the blocks."""
    @property
    def tools(self) -> Tools:
        """The tools for a model."""
    async def prompt(self) -> str:
        """Returns the system prompt; with `cached_prompt` the same bytes until `refresh_prompt`."""
    async def refresh_prompt(self) -> str:
        """Makes the system prompt again, and returns it."""
    async def drift(self) -> list[Drift]:
        """Returns the blocks that differ from the frozen prompt."""
    async def reminder(self) -> str | None:
        """Returns what a request says besides the frozen prompt; None if nothing changed."""
    async def block(self, label: str) -> BlockInfo | None:
        """Returns a block with its present content."""
    async def blocks(self) -> list[BlockInfo]:
        """Returns the blocks with their present contents."""
    async def add_usage(self, usage: Usage, message: str | None=None) -> None:
        """Adds to the usage of the session, for a message or besides the messages."""
    async def usage(self) -> UsageTotal:
        """Returns the usage of all answers of the session."""
    async def tool_stats(self) -> dict[str, ToolStats]:
        """Returns how often each tool was called."""
    async def export_jsonl(self, target: Target) -> None:
        """Writes every branch, compaction and label as JSON lines, to a path or a binary file."""
    async def content_hash(self) -> str:
        """Returns a hash of the content, the same for the same content in any store."""

class Reply:
    'A reply that is streamed: the verbs of `talktree.Reply`, awaited. From `Session.stream`.\n\n    >>> import asyncio\n    >>> from talktree import aio\n    >>> async def lines():  # of your HTTP client, such as response.aiter_lines()\n    ...     yield \'data: {"id":"1","choices":[{"delta":{"content":"It is 4."},"finish_reason":"stop"}]}\'\n    ...     yield ""\n    ...     yield "data: [DONE]"\n    >>> async def main() -> None:\n    ...     async with aio.Store() as store:\n    ...         chat = await store.session("s")\n    ...         reply = await chat.stream("openai_chat")\n    ...         async for line in lines():\n    ...             await reply.push(line)\n    ...         print((await reply.finish()).text)\n    >>> asyncio.run(main())\n    It is 4.\n    '
    sync: _sync.Reply
    _store: Store
    _line: Line | Pool
    @property
    def id(self) -> str:
        """The id of the message."""
    @property
    def text(self) -> str:
        """The text so far."""
    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete, and nothing more needs to be read."""
    async def push(self, line: str) -> str | None:
        """Takes the next line of the body; returns the new text, if the line brings any.

        Raises:
            talktree.NoAnswerError: if the provider reports an error. The text before it is saved, and the reply stays unfinished.
            talktree.FinishedError: if someone else finished it.
            ValueError: after `finish`.
        """
    async def finish(self) -> Message:
        """Stores the whole answer with its usage, in one transaction, and returns it.

        Raises:
            talktree.NoAnswerError: if the body ended before the answer was complete. The text so far is saved, and the reply stays
                unfinished: `discard` it, or give it to `Session.finish`.
            talktree.FinishedError: if someone else finished it.
            talktree.UnknownMessageError: if it was discarded.
            talktree.Error: if it cannot be stored, because the session is in the trash for example: this can be called again then.
            ValueError: if it was finished before.
        """
    async def discard(self) -> None:
        """Deletes the reply.

        Raises:
            talktree.FinishedError: if it was finished; it stays then.
        """

class Context:
    'The blocks of a session, and what the store keeps for them.'
    sync: _sync.Context
    _store: Store
    _line: Line | Pool
    async def set(self, label: str, content: str) -> BlockInfo:
        """Replaces the text of a block."""
    async def append(self, label: str, text: str) -> BlockInfo:
        """Appends a line to the text of a block."""
    async def remove_text(self, label: str) -> bool:
        """Removes the text of a block; returns whether it had one."""
    async def add(self, label: str, block: Block | str) -> None:
        """Adds a block to this session; the handles of the session share it."""
    async def remove(self, label: str) -> bool:
        """Takes a block away; returns whether there was one. What the store keeps for it stays."""
    async def set_document(self, label: str, document: Document) -> str:
        """Writes a document of a block; returns its key."""
    async def set_documents(self, label: str, documents: Iterable[Document]) -> list[str]:
        """Writes documents of a block, all or none; returns their keys."""
    async def append_document(self, label: str, document: Document) -> str:
        """Appends a text to a document, which is made if it is missing; returns its key."""
    async def remove_document(self, label: str, key: str) -> bool:
        """Removes a document; returns whether there was one."""
    async def documents(self, label: str) -> list[EntryInfo]:
        """Returns the documents of a block."""
    async def load(self, label: str, key: str) -> str | None:
        """Returns the content of a document; None if there is none."""
    async def search(self, label: str, query: str, limit: int=10) -> list[Document]:
        """Returns the best documents of a block for a query."""
    async def loaded(self) -> list[tuple[str, str]]:
        """Returns label and key of each document that the model has loaded and not unloaded."""
    async def unload(self, label: str, key: str) -> int | None:
        """Replaces each copy of a loaded document in the history with a short marker; returns how many, None if it is not
        loaded. The stored messages stay as they are.
        """
    async def frozen_prompt(self) -> str | None:
        """Returns the frozen prompt; None if none is frozen."""
    async def thaw_prompt(self) -> None:
        """Removes the frozen prompt, so that the next call of `Session.prompt` makes it again."""
    async def versions(self, label: str, key: str | None=None) -> list[EntryVersion]:
        """Returns the versions of a text, or of a document, oldest first."""
    async def version(self, label: str, version: int, key: str | None=None) -> EntryVersion:
        """Returns one version of a text, or of a document."""
    async def restore(self, label: str, version: int, key: str | None=None) -> None:
        """Writes an old version of a text again."""
    async def to_markdown(self) -> str:
        """Returns the texts of the blocks as Markdown."""
    async def import_text(self, text: str) -> list[str]:
        """Writes the texts of a Markdown page or of a system prompt to their blocks; returns the labels."""
    async def stored(self) -> list[tuple[str, str]]:
        """Returns the labels of the texts that the store keeps for this session, each with its scope."""

class Tools:
    'The tools of a session.'
    sync: _sync.Tools
    _store: Store
    _line: Line | Pool
    async def answer(self, message: MessageLike, tools: ProgramTools | None=None) -> Message | None:
        """Runs the calls of a message, stores their results below it, and returns the message with them.

        Async tools run in the event loop, plain ones in a thread. While they run, other calls of the session wait, except
        those of the tools themselves.

        Returns:
            None if the message has no calls: the model has answered.
        """
    async def names(self) -> list[str]:
        """Returns the names of the tools."""
    async def anthropic(self) -> list[dict[str, Any]]:
        """Returns the tools for Anthropic's messages API."""
    async def openai_chat(self) -> list[dict[str, Any]]:
        """Returns the tools for OpenAI's chat completions API."""
    async def openai_responses(self) -> list[dict[str, Any]]:
        """Returns the tools for OpenAI's responses API."""
    async def mcp(self) -> list[dict[str, Any]]:
        """Returns the tools for a server of the Model Context Protocol."""
    async def call(self, name: str, input: Mapping[str, Any]) -> str:
        """Runs a tool and returns its answer for the model; a wrong input is an answer, too."""

class Erased:
    'The outcome of an erasure, as `talktree.Erased`.'
    sync: _sync.Erased
    _store: Store
    _line: Line | Pool
    @property
    def is_complete(self) -> bool:
        """Whether the log contains no erased text."""
    async def prove(self) -> ErasureProof:
        """Reads every byte of the file, of its log and of its shared memory, and looks for the erased texts.

        It looks for each sequence of 16 bytes of the erased texts, in the form in which they were stored, and for shorter
        texts of eight bytes or more as a whole.

        Raises:
            talktree.NotErasedError: if erased text was found.
            talktree.NotProvedError: if a part of what was named was unknown, and an interrupted erasure may have named it.
            talktree.UnsupportedError: for a store in memory.
        """
    async def scan(self) -> ErasureProof:
        """Returns what `prove` found, also if that is erased text."""
    @property
    def extent(self) -> ErasureExtent: ...
    @property
    def messages(self) -> list[tuple[str, str]]: ...
    @property
    def is_log_in_use(self) -> bool: ...
    @property
    def is_rewritten(self) -> bool: ...

class Resumed:
    'The session that a key leads to.'
    sync: Any
    _store: Store
    _line: Line | Pool
    @property
    def session(self) -> Session: ...
    @property
    def is_new(self) -> bool: ...
    @property
    def former(self) -> tuple[str, str] | None: ...

class Transcripts:
    'The transcripts of a store: `store.transcripts`. Calls of one session run in the order in which they were made.\n\n    The Claude Agent SDK takes a `talktree.claude.SessionStore`, which has its method names and keys.\n    '
    sync: _sync.Transcripts
    _store: Store
    _line: Line | Pool
    def owned_by(self, owner: str) -> Transcripts:
        """Returns the same transcripts; what is appended through them is the data of this owner.

        The owner counts when transcripts are listed by owner or erased. It limits neither reads nor deletes.
        """
    def projecting(self) -> Transcripts:
        """Returns the same transcripts; what is appended through them is also written to a session of the store, in one
        transaction.
        """
    async def project(self, key: TranscriptKey) -> Projection | None:
        """Writes what is stored of a transcript to its session; None if it has no messages, or its session was erased for
        good. Calling it again changes nothing.
        """
    async def project_all(self, *, project: str | None=None, owner: str | None=None, written_before: datetime | int | None=None) -> ProjectionReport:
        """Projects all transcripts that `list` shows with these arguments, each in a transaction of its own."""
    async def projection(self, key: TranscriptKey) -> Projection | None:
        """Returns how a session shows a transcript; None if none does."""
    async def append(self, key: TranscriptKey, entries: Iterable[Mapping[str, Any]]) -> AppendedEntries:
        """Appends entries, all or none.

        An entry whose `uuid` the transcript has is not added. No entries: nothing is done.

        Raises:
            ValueError: if an entry has a NaN or an infinity, which JSON does not have.
            talktree.InvalidValueError: if an entry is no object, or the transcript has another owner.
            talktree.TooLargeError: if an entry or the batch is too large.
        """
    async def load(self, key: TranscriptKey) -> builtins.list[dict[str, Any]] | None:
        """Returns all entries in the order of the appends; None if there are none."""
    async def list_sessions(self, project: str) -> builtins.list[ListedTranscript]:
        """Returns the sessions of a project that have a main transcript, in any order."""
    async def list_session_summaries(self, project: str) -> builtins.list[TranscriptSummary]:
        """Returns the summaries of a project's sessions, in any order."""
    async def delete(self, key: TranscriptKey) -> int:
        """Deletes a transcript, the main one with all others of its session; returns how many were deleted."""
    async def list_subkeys(self, project: str, session: str) -> builtins.list[str]:
        """Returns the subpaths of a session, in any order, without the main transcript."""
    async def list(self, *, project: str | None=None, owner: str | None=None, written_before: datetime | int | None=None, after: int | None=None, limit: int=100) -> builtins.list[StoredTranscript]:
        """Returns at most `limit` transcripts in order of creation: those with a number above `after`.

        Args:
            project: Only those of this project.
            owner: Only those of this owner.
            written_before: Only those to which nothing was appended at this time or later; a datetime, or milliseconds.
            after: The number of the last one of the list before.
            limit: How many at most.
        """
    async def delete_of_owner(self, owner: str) -> int:
        """Deletes all transcripts of an owner, and the others of a session whose main one is the owner's."""
    async def infos(self, project: str) -> builtins.list[TranscriptInfo]:
        """Returns the sessions of a project as lists show them, the one that was appended to last first.

        Sessions of subagents, and those that say nothing, are left out. No transcript is read.
        """
    async def info(self, project: str, session: str) -> TranscriptInfo | None:
        """Returns what a list shows of a session; None if it is unknown or hidden."""
    async def messages(self, project: str, session: str) -> builtins.list[TranscriptMessage]:
        """Returns the conversation to the message that was written last; after a compaction it begins with the summary."""
    async def subagents(self, project: str, session: str) -> builtins.list[str]:
        """Returns the ids of a session's subagents, in any order."""
    async def subagent_messages(self, project: str, session: str, agent: str) -> builtins.list[TranscriptMessage]:
        """Returns the messages of a subagent, with the call that started it; none if it is unknown."""
    async def rename(self, project: str, session: str, title: str) -> None:
        """Gives a session a title; one that is unknown is created with it."""
    async def tag(self, project: str, session: str, tag: str | None) -> None:
        """Gives a session a tag, which replaces the former one; None removes it."""
    async def fork(self, project: str, session: str, *, last: str | None=None, title: str | None=None) -> str:
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
    async def import_session(self, project_folder: str | os.PathLike[str], session: str) -> TranscriptFiles:
        """Imports a session of the agent's command, with its subagents; the project is the name of the folder.

        Lines that are no entries are skipped and reported. A second import adds no entry that has a `uuid`, and those
        without one again.
        """
    async def export_session(self, project: str, session: str, projects: str | os.PathLike[str]) -> TranscriptFiles:
        """Writes a session to a folder of projects, as the agent's command keeps it; only new files, with mode 0600."""

class SessionManager:
    'What all sessions of a bot have in common, as `talktree.SessionManager`. The store must be open.'
    sync: _sync.SessionManager
    _store: Store
    _line: Line | Pool
    def __init__(self, store: Store, **settings: Unpack[SessionSettings]) -> None: ...
    async def search(self, text: str, **settings: Unpack[SearchSettings]) -> Found:
        """Returns the messages of all sessions that match, best first. `SearchSettings` lists the settings."""
    async def search_by_session(self, text: str, **settings: Unpack[SearchSettings]) -> SessionsFound:
        """Returns whole sessions, best first, each with its best hits."""
    async def search_alternatives(self, text: str, **settings: Unpack[SearchSettings]) -> builtins.list[Alternative]:
        """Returns queries that find something where this one finds nothing."""
    @overload
    async def usage(self, *, by: UsageGroup, session: str | None=None, owner: str | None=None, author: str | None=None, model: str | None=None, source: str | None=None, since: datetime | None=None, until: datetime | None=None) -> builtins.list[UsageRow]: ...
    @overload
    async def usage(self, *, by: None=None, session: str | None=None, owner: str | None=None, author: str | None=None, model: str | None=None, source: str | None=None, since: datetime | None=None, until: datetime | None=None) -> UsageTotal: ...
    async def erase(self, *, progress: Progress | None=None, **what: Unpack[Erasure]) -> Erased:
        """Erases what is named: no byte of it is in the file, in the search index or in the log afterwards.

        Summaries and copies in forks are named in the outcome, and erased with `with_summaries` and `with_forks`. Copies of
        the file, such as earlier backups, are not erased. If it fails or is interrupted, the same call finishes it.

        Args:
            progress: Is called with the number of erased messages and entries of transcripts, and their total.
            what: `Erasure` lists the arguments.

        Raises:
            talktree.UnknownSessionError: and `UnknownMessageError`; nothing is erased then.
            talktree.DiskFullError: if there is no room to rewrite the file.
        """
    async def erase_owner(self, owner: str) -> Erased:
        """Erases all sessions, texts, transcripts and usage of an owner. An owner of nothing is no error."""
    async def erasure_extent(self, **what: Unpack[Erasure]) -> ErasureExtent:
        """Returns what an erasure would remove, without removing anything."""
    async def retention(self, rules: Iterable[RetentionRule]=(), *, progress: Progress | None=None, **settings: Unpack[RetentionSettings]) -> RetentionReport:
        """Discards the sessions that meet a rule, and returns which these are; with `dry_run` nothing is changed.

        The first rule that a session meets decides. A session that changes meanwhile is left alone.

        Args:
            rules: The rules, in order.
            progress: Is called with how many sessions were read, and how many there are as far as is known.
            settings: `RetentionSettings` lists them.

        Raises:
            talktree.RuleMeetsAllError: if every session meets one rule, which may be a mistake; `allow_all` allows it.
        """
    async def session(self, id: str) -> Session:
        """Returns a session with the settings of the manager; its first write creates it."""
    async def create(self, details: SessionDetails | str, *, id: str | None=None) -> Session:
        """Creates a session with these details; a str is its name."""
    async def resume(self, key: str, *, owner: str | None=None, expire_after: timedelta | float | None=None, details: SessionDetails | str | None=None, new_id: str | None=None) -> Session:
        """Returns the session that an outside key leads to, such as a chat of a messenger, or a new one.

        Args:
            key: The key.
            owner: Whom the session belongs to; the session of another owner is not resumed.
            expire_after: How long it may be idle; in seconds, or as a timedelta.
            details: The details of a new session.
            new_id: The id of a new session.
        """
    async def resumed(self, key: str, *, owner: str | None=None, expire_after: timedelta | float | None=None, details: SessionDetails | str | None=None, new_id: str | None=None) -> Resumed:
        """Does what `resume` does, and returns also whether the session is new and why the former one was not resumed."""
    async def unbind(self, key: str) -> str | None:
        """Ends the binding of a key; returns the session that it led to."""
    async def bindings(self, key: str) -> builtins.list[Binding]:
        """Returns the sessions that a key leads to and led to, the latest first."""
    async def get(self, id: str) -> SessionInfo | None:
        """Returns a session's details, also in the trash; None if there is none."""
    async def list(self, *, owner: str | None=None, author: str | None=None, source: str | None=None, model: str | None=None, tag: str | None=None, parent_session: str | None=None, since: datetime | None=None, until: datetime | None=None, name: str | None=None, pinned: bool | None=None, state: State='present', after: str | None=None, limit: int | None=None) -> SessionPage:
        """Returns a page of sessions (20 by default), pinned ones first, then the latest.

        `author` chooses the sessions in which this person wrote.
        """
    async def rename(self, id: str, name: str | None) -> None:
        """Changes the name of a session; None removes it."""
    async def set_owner(self, id: str, owner: str | None) -> None:
        """Changes the owner of a session; None removes it."""
    async def set_metadata(self, id: str, metadata: Any) -> None:
        """Replaces the metadata of a session; None removes it."""
    async def tag(self, id: str, tag: str) -> None:
        """Adds a tag to a session."""
    async def untag(self, id: str, tag: str) -> None:
        """Removes a tag of a session."""
    async def pin(self, id: str) -> None:
        """Shows a session first in lists."""
    async def unpin(self, id: str) -> None:
        """Removes the pin of a session."""
    async def end(self, id: str, reason: str) -> None:
        """Ends a session: its key leads to a new one the next time."""
    async def reopen(self, id: str) -> None:
        """Reopens a session that was ended."""
    async def delete(self, id: str) -> None:
        """Moves a session into the trash: it is in no list and no search, and cannot be written."""
    async def restore(self, id: str) -> None:
        """Takes a session out of the trash."""
    async def remove(self, id: str) -> None:
        """Removes a session and all that belongs to it."""
    async def erase_session(self, id: str) -> Erased:
        """Erases a session with all that belongs to it, as `erase` does."""
    async def erase_key(self, key: str) -> Erased:
        """Erases an outside key, and the sessions that it leads to or led to. An unknown key is no error."""
    async def fork(self, id: str, at: str, name: str) -> Session:
        """Returns a new session that begins with a copy of the path to a message."""
    async def compact_and_split(self, id: str, summary: SummaryLike) -> Session:
        """Ends a session and continues it in a new one, which begins with the summary."""

class Store:
    'A store of conversations, as `talktree.Store`; it is opened by `async with`, or by `await Store.open(..)`.\n\n    The arguments are those of `talktree.Store`.\n    '
    _opened: _sync.Store | None
    _pool: Pool
    def __init__(self, path: str | os.PathLike[str] | None=None, **options: Unpack[StoreOptions]) -> None: ...
    @classmethod
    async def open(cls, path: str | os.PathLike[str] | None=None, **options: Unpack[StoreOptions]) -> Store:
        """Returns an open store; `close` ends it."""
    @classmethod
    async def connect(cls, url: str, **options: Unpack[StoreOptions]) -> Store:
        """Returns an open store on a PostgreSQL server, as `talktree.Store.connect`; `close` ends it."""
    @classmethod
    def over(cls, store: _sync.Store) -> Store:
        """Returns the async face of a store that is open."""
    @staticmethod
    def is_open_file(path: str | os.PathLike[str]) -> bool:
        """Returns whether a store of this process has this file open; then only talktree may open or close it."""
    async def __aenter__(self) -> Store: ...
    def _opened_now(self) -> _sync.Store:
        """Returns the store, which the first call opens; for threads."""
    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None: ...
    @property
    def sync(self) -> _sync.Store:
        """The store for code that is not async.

        Raises:
            talktree.ClosedError: if it was not opened yet.
        """
    @property
    def _store(self) -> Store: ...
    @property
    def _line(self) -> Pool: ...
    def _transcript_line(self, project: str, session: str) -> Line: ...
    def __repr__(self) -> str: ...
    @property
    def closed(self) -> bool:
        """Whether the store was closed."""
    async def close(self) -> None:
        """Closes the store and everything that was opened from it, after the calls that run.

        In a callback it does not wait for them, because one of them waits for the callback.
        """
    async def session(self, id: str, **settings: Unpack[SessionSettings]) -> Session:
        """Returns a session; its first write creates it. `SessionSettings` lists the settings."""
    async def search(self, text: str, **settings: Unpack[SearchSettings]) -> Found:
        """Returns the messages of all sessions that match, best first. `SearchSettings` lists the settings."""
    async def search_by_session(self, text: str, **settings: Unpack[SearchSettings]) -> SessionsFound:
        """Returns whole sessions, best first, each with its best hits."""
    async def search_alternatives(self, text: str, **settings: Unpack[SearchSettings]) -> builtins.list[Alternative]:
        """Returns queries that find something where this one finds nothing."""
    @overload
    async def usage(self, *, by: UsageGroup, session: str | None=None, owner: str | None=None, author: str | None=None, model: str | None=None, source: str | None=None, since: datetime | None=None, until: datetime | None=None) -> builtins.list[UsageRow]: ...
    @overload
    async def usage(self, *, by: None=None, session: str | None=None, owner: str | None=None, author: str | None=None, model: str | None=None, source: str | None=None, since: datetime | None=None, until: datetime | None=None) -> UsageTotal: ...
    async def erase(self, *, progress: Progress | None=None, **what: Unpack[Erasure]) -> Erased:
        """Erases what is named: no byte of it is in the file, in the search index or in the log afterwards.

        Summaries and copies in forks are named in the outcome, and erased with `with_summaries` and `with_forks`. Copies of
        the file, such as earlier backups, are not erased. If it fails or is interrupted, the same call finishes it.

        Args:
            progress: Is called with the number of erased messages and entries of transcripts, and their total.
            what: `Erasure` lists the arguments.

        Raises:
            talktree.UnknownSessionError: and `UnknownMessageError`; nothing is erased then.
            talktree.DiskFullError: if there is no room to rewrite the file.
        """
    async def erase_owner(self, owner: str) -> Erased:
        """Erases all sessions, texts, transcripts and usage of an owner. An owner of nothing is no error."""
    async def erasure_extent(self, **what: Unpack[Erasure]) -> ErasureExtent:
        """Returns what an erasure would remove, without removing anything."""
    async def retention(self, rules: Iterable[RetentionRule]=(), *, progress: Progress | None=None, **settings: Unpack[RetentionSettings]) -> RetentionReport:
        """Discards the sessions that meet a rule, and returns which these are; with `dry_run` nothing is changed.

        The first rule that a session meets decides. A session that changes meanwhile is left alone.

        Args:
            rules: The rules, in order.
            progress: Is called with how many sessions were read, and how many there are as far as is known.
            settings: `RetentionSettings` lists them.

        Raises:
            talktree.RuleMeetsAllError: if every session meets one rule, which may be a mistake; `allow_all` allows it.
        """
    def interrupt(self) -> None:
        """Ends the long work that runs in other threads with an `InterruptedError` of talktree: searches, imports,
        exports, `verify`, `backup`, `stats`. Work that begins later is not affected.
        """
    async def create_session(self, details: SessionDetails | str, *, id: str | None=None) -> Session:
        """Creates a session with these details; a str is its name.

        Raises:
            talktree.SessionExistsError: if there is one of this id.
        """
    async def sessions(self) -> list[SessionInfo]:
        """Returns all sessions, the latest first; `SessionManager.list` returns them in pages."""
    def __aiter__(self) -> AsyncIterator[SessionInfo]: ...
    async def owners(self, *, after: str | None=None, limit: int=100) -> list[OwnerInfo]:
        """Returns at most `limit` owners of sessions or transcripts, by name: those after `after`."""
    async def rename(self, id: str, name: str) -> None:
        """Changes the name of a session."""
    async def remove(self, id: str) -> None:
        """Removes a session and all that belongs to it."""
    def subscribe(self, listener: Callable[[Event], object]) -> _native.Subscription:
        """Calls a listener after each change, in the thread that made it, outside every lock.

        The subscription ends with its `close`, or when it is collected: keep it. An exception of a listener goes to
        `on_error` of the session that wrote, or else to `sys.unraisablehook`.

        A listener may write. A change inside of eight callbacks that run inside each other is committed, but no listener is
        called for it; `on_error` hears of the first one.
        """
    @property
    def transcripts(self) -> Transcripts:
        """The transcripts of agent sessions, which are stored beside the sessions of talktree."""
    async def embed(self, embedder: Embedder, progress: Progress | None=None) -> Embedding:
        """Gives a vector to every message that has none of this embedder: those of its text parts, up to their first 8 KiB.

        Afterwards searches with `by_meaning=embedder` find them. A new or changed message is pending until the next call. The
        embedder gets up to 64 texts at once. Its vectors are stored after each batch, so the next call continues one that
        failed or was interrupted.

        Args:
            embedder: Any object with a `name` and a method `embed(texts)`, plain or async: see `Embedder`.
            progress: Is called with how many messages are done and their total, after each batch.

        Raises:
            talktree.EmbedderError: if its vectors cannot be used, or have other dimensions than before: a changed model needs
                a new name. An exception of the embedder is raised itself.
        """
    async def embeddings(self) -> list[Embedding]:
        """Returns which embedders the store has vectors of, by name. It counts the vectors, so it reads them all."""
    async def remove_embedding(self, name: str) -> bool:
        """Removes the vectors of an embedder, such as a former model; returns whether there were any."""
    async def import_file(self, path: str | os.PathLike[str], *, session: str | None=None, progress: Progress | None=None, **options: Unpack[ImportOptions]) -> ImportReport:
        """Imports the conversations of a file; one that was imported before adds what is new in it.

        Args:
            path: The file.
            session: The session to import into, for a file with one conversation.
            progress: Is called with the bytes that are read and their total.
            options: `ImportOptions` lists them.
        """
    async def import_bytes(self, data: bytes, *, name: str='data', session: str | None=None, progress: Progress | None=None, **options: Unpack[ImportOptions]) -> ImportReport:
        """Imports conversations from memory, as `import_file` does; `name` is used in the report and in errors."""
    async def import_folder(self, folder: str | os.PathLike[str], *, progress: Progress | None=None, **options: Unpack[ImportOptions]) -> FolderImport:
        """Imports the `*.jsonl` and `*.json` below a folder, such as `~/.claude/projects`, as `import_file` does each.

        A file that cannot be imported is skipped, and the outcome says why: not every file in a folder is a conversation.

        Args:
            folder: The folder.
            progress: Is called with the files that are read and their total.
            options: `ImportOptions` lists them.
        """
    async def export_jsonl(self, target: Target, *, readable_only: bool=False) -> list[tuple[str, str]]:
        """Writes all sessions as JSON lines, to a path or a binary file; the contents of blocks are not among them.

        Returns:
            With `readable_only` the damaged sessions that were left out, each with the reason; without, an empty list.
        """
    async def export_owner(self, owner: str, target: Target, *, format: Literal['jsonl', 'markdown']='jsonl') -> OwnerExport:
        """Writes all data of an owner to a path or a binary file, for a person who asks to see it or takes it elsewhere.

        These are the owner's sessions, also those in the trash, context blocks, keys, usage and transcripts.

        Args:
            owner: The owner.
            target: A path, or a file that is open for writing bytes.
            format: `jsonl`: everything, for programs. `markdown`: a page for people.
        """
    async def export_author(self, author: str, target: Target, *, format: Literal['jsonl', 'markdown']='jsonl') -> OwnerExport:
        """Writes what a person wrote in all sessions to a path or a binary file, also in the sessions of others.

        Nothing that others wrote is in it.

        Args:
            author: The id of the author, or the name of one without an id.
            target: A path, or a file that is open for writing bytes.
            format: `jsonl`: for programs. `markdown`: a page for people.
        """
    async def list_messages(self, *, author: str | None=None, tag: str | None=None, session: str | None=None, include_trash: bool=False, after: str | None=None, limit: int=50) -> MessagePage:
        """Returns a page of messages, session by session in the order in which they were appended.

        Args:
            author: Only what this person wrote: the id of the author, or the name of one without an id.
            tag: Only messages with this tag.
            session: Only messages of this session.
            include_trash: Also messages of sessions in the trash.
            after: What an earlier page has as `after`.
            limit: How many messages, at most; 1 000 at most.
        """
    async def finish_erasure(self) -> bool:
        """Finishes all erasures that were interrupted, or whose log was in use; returns whether they are complete now."""
    async def has_unfinished_erasure(self) -> bool:
        """Returns whether there is an erasure to finish, or one that is running."""
    async def is_import_forbidden(self, id: str) -> bool:
        """Returns whether a session was erased with `forbid_import`."""
    async def rekey(self, key: Key) -> None:
        """Encrypts the store with another key, in one transaction; backups keep their keys.

        Any other store that has the file open gets a `WrongKeyError` from its next call. A store without a key does not get
        one: export it, and import it into a new store that has one.

        Raises:
            talktree.UnsupportedError: if the store has no key, or the package was built without SQLCipher.
        """
    async def stats(self) -> StoreStats:
        """Returns the size of the store."""
    async def verify(self, progress: Progress | None=None) -> Verified:
        """Reads everything and checks every rule of the store."""
    async def backup(self, path: str | os.PathLike[str], progress: Progress | None=None) -> None:
        """Writes a copy while others go on writing; never over a file."""
    async def index(self, progress: Progress | None=None) -> None:
        """Brings the search index up to date, which every search does before it searches.

        This takes long only after an upgrade to a version that indexes texts in another way; `progress` then shows how far
        it is. Others read, search and write meanwhile. What is stopped is continued by the next call, or by searches.
        """
    async def rebuild_search(self) -> None:
        """Rebuilds the search index."""
    async def recount_tokens(self) -> None:
        """Counts the tokens of all messages again."""
    async def content_hash(self) -> str:
        """Returns a hash of the content, the same for the same content in any store."""
