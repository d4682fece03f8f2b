"""A session: a conversation as a tree of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

from . import _json, _native
from ._files import Target, written_to
from .blocks import BlockInfo, Drift
from .compaction import (
    BranchSummaryPlan,
    Compacted,
    Compaction,
    CompactionOptions,
    CompactionPlan,
    CompactionStatus,
    Nothing,
    RequestTokens,
    SummaryLike,
    WindowUsage,
    compaction,
    options_of,
    summary_parts,
    compacted,
)
from .context import Context
from .erasure import Erased, erased_fields
from .importing import Imported, compaction_fields
from .message import Message, MessageLike
from .model import AuthorLine, RequestParts, StreamProvider, TruncateOptions
from .reply import Reply
from .results import (
    Alternative,
    Appended,
    Deleted,
    DetailParts,
    Event,
    Found,
    HeadEntry,
    Label,
    MessageTag,
    Page,
    Recent,
    RowStat,
    SessionDetails,
    SessionInfo,
    SessionsFound,
    ToolStats,
    Updated,
    event_listener,
    found,
    session_info,
    sessions_found,
)
from .search import SearchParts, SearchSettings
from .tools import Tools
from .usage import Usage, UsageTotal, usage_text, usage_total

if TYPE_CHECKING:
    from .search import Unpack

#: How many messages a stream reads at once.
_BATCH = 100


class _Reads:
    """The reads of a path: of a session to its head, of a `Path` to its leaf."""

    _native: _native.Session
    #: Whether searches are of the path only.
    _is_path: bool
    _leaf: str | None
    _is_raw: bool

    def recent(self, *, tokens: int | None = None, bytes: int | None = None, messages: int | None = None) -> Recent:
        """Returns the newest messages that fit a budget of tokens, bytes or messages.

        It never separates a tool call from its result, and always returns the newest message.
        """
        given = [
            (unit, count)
            for unit, max in (("tokens", tokens), ("bytes", bytes), ("messages", messages))
            if (count := _json.maybe_count(max, unit)) is not None
        ]
        if len(given) != 1:
            raise TypeError("recent() takes one of tokens, bytes and messages")
        text, left_out = self._native.recent(self._leaf, self._is_raw, *given[0])
        return Recent(_json.messages(text), left_out)

    def page(
        self,
        *,
        before: str | None = None,
        after: str | None = None,
        limit: int | None = None,
        author: str | None = None,
        tag: str | None = None,
    ) -> Page:
        """Returns a page of at most `limit` messages (50 by default): the newest, or those next to a message.

        With `author` or `tag` only what this person wrote, or messages with this tag.
        """
        before, after = _json.maybe_str(before, "before"), _json.maybe_str(after, "after")
        author, tag = _json.maybe_str(author, "author"), _json.maybe_str(tag, "tag")
        text, older, newer = self._native.page(
            self._leaf, self._is_raw, before, after, (_json.maybe_count(limit, "limit"), author, tag)
        )
        return Page(_json.messages(text), older, newer)

    def row_stats(self) -> list[RowStat]:
        """Returns ids, roles, bytes and tokens of the messages, without reading their content."""
        return [RowStat(**it) for it in _json.loads(self._native.row_stats(self._leaf, self._is_raw))]

    def path_length(self) -> int:
        """Returns how many messages the path has, deleted ones left out."""
        return self._native.path_length(self._leaf, self._is_raw)

    def __iter__(self) -> Iterator[Message]:
        """Yields the messages, oldest first; they are read in batches."""
        return _stream(self._native.stream(self._leaf, self._is_raw, False))

    def __reversed__(self) -> Iterator[Message]:
        """Yields the messages, newest first; what is not taken is not read."""
        return _stream(self._native.stream(self._leaf, self._is_raw, True))

    def window_usage(self) -> WindowUsage:
        """Returns the tokens of the window, by part."""
        return WindowUsage(**_json.loads(self._native.window_usage(self._leaf)))

    def plan_compaction(self, options: CompactionOptions | None = None) -> CompactionPlan | Nothing:
        """Returns the range to compact now and the prompt for its summary, or why there is nothing to compact.

        Nothing is written or locked. Give the summary to `commit`.
        """
        plan, why = self._native.plan_compaction(self._leaf, options_of(options))
        return Nothing(why or "") if plan is None else CompactionPlan(plan)

    def compact(self) -> Compacted | Nothing:
        """Compacts by the summarizer or the policy of the session; returns what it did, or why there was nothing to do."""
        done, why = self._native.compact(self._leaf)
        return Nothing(why or "") if done is None else compacted(*done)

    def anthropic_request(
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
        return self._request("anthropic", RequestParts(tools, truncated, authors, cached_history, prefill))

    def openai_chat_request(
        self,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        truncated: TruncateOptions | None = None,
        authors: AuthorLine | None = None,
    ) -> dict[str, Any]:
        """Returns a request for OpenAI's chat completions API. `model` is yours."""
        return self._request("openai_chat", RequestParts(tools, truncated, authors, False, False))

    def openai_responses_request(
        self,
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        truncated: TruncateOptions | None = None,
        authors: AuthorLine | None = None,
    ) -> dict[str, Any]:
        """Returns a request for OpenAI's responses API. `model` is yours."""
        return self._request("openai_responses", RequestParts(tools, truncated, authors, False, False))

    def _request(self, format: str, parts: RequestParts) -> dict[str, Any]:
        request: dict[str, Any] = _json.loads(self._native.request(self._leaf, self._is_raw, format, parts))
        return request

    def search(self, text: str, **settings: Unpack[SearchSettings]) -> Found:
        """Returns the messages that match, best first. `SearchSettings` lists the settings.

        The text may be a question or keywords, and have phrases, `-word`, `role:user`, `after:2026-01-31`,
        `exact:"a ?? b"`; it is never a syntax error.
        """
        return found(self._search(text, settings, "hits"))

    def search_by_session(self, text: str, **settings: Unpack[SearchSettings]) -> SessionsFound:
        """Returns the session with its best hits, or nothing; `Store.search_by_session` finds whole sessions."""
        return sessions_found(self._search(text, settings, "sessions"))

    def search_alternatives(self, text: str, **settings: Unpack[SearchSettings]) -> list[Alternative]:
        """Returns queries that find something where this one finds nothing."""
        return [Alternative(**it) for it in _json.loads(self._search(text, settings, "alternatives"))]

    def _search(self, text: str, settings: Mapping[str, Any], answer: str) -> str:
        return self._native.search(SearchParts(text, dict(settings)), self._is_path, self._leaf, answer)

    def export_markdown(self, target: Target) -> None:
        """Writes the path as a page for people, to a path or a binary file."""
        written_to(target, lambda write: self._native.export(self._leaf, self._is_raw, "markdown", write))

    def export_openai(self, target: Target) -> None:
        """Writes the path as a conversation of the OpenAI chat API, to a path or a binary file."""
        written_to(target, lambda write: self._native.export(self._leaf, self._is_raw, "openai", write))


class Path(_Reads):
    """The path to one message, as `Session.at` returns it: the reads of a session without moving its head."""

    _is_path = True

    def __init__(self, native: _native.Session, leaf: str | None, is_raw: bool) -> None:
        self._native = native
        self._leaf = leaf
        self._is_raw = is_raw

    @property
    def leaf(self) -> str | None:
        """The leaf of the path; None for the head."""
        return self._leaf

    def raw(self) -> Path:
        """Returns the same path, of its stored messages instead of what a model should see."""
        return Path(self._native, self._leaf, True)

    def history(self) -> list[Message]:
        """Returns the messages of the path, oldest first, with compactions applied unless it is raw."""
        return _json.messages(self._native.history(self._leaf, self._is_raw))

    def raw_history(self) -> list[Message]:
        """Returns the stored messages of the path, oldest first."""
        return _json.messages(self._native.history(self._leaf, True))

    def usage(self) -> UsageTotal:
        """Returns the usage of the answers on the path."""
        return usage_total(_json.loads(self._native.usage(True, self._leaf)))

    def __repr__(self) -> str:
        return f"<Path to {self._leaf or 'the head'} of session {self._native.id!r}>"


class Session(_Reads):
    """A session. `Store.session` and `SessionManager` return it; it may be used from any thread.

    >>> import talktree
    >>> chat = talktree.Store().session("telegram:4711")
    >>> question = chat.append({"role": "user", "text": "Name a colour"}).id
    >>> red = chat.append({"role": "assistant", "text": "red"}).id
    >>> cyan = chat.append_to(question, {"role": "assistant", "text": "cyan"}).id  # a sibling: the head is here now
    >>> [message.text for message in chat.history()]
    ['Name a colour', 'cyan']
    >>> chat.checkout(red)
    >>> [message.text for message in chat]
    ['Name a colour', 'red']
    """

    _is_path = False

    def __init__(self, native: _native.Session) -> None:
        self._native = native
        self._leaf = None
        self._is_raw = False

    @property
    def id(self) -> str:
        """The id of the session."""
        return self._native.id

    def __repr__(self) -> str:
        return f"<Session {self.id!r}>"

    def info(self) -> SessionInfo | None:
        """Returns the details of the session; None if nothing was written yet."""
        fields = _json.loads(self._native.info())
        return None if fields is None else session_info(fields)

    def set_details(self, details: SessionDetails) -> None:
        """Sets the details that are not None; tags are added."""
        self._native.set_details(DetailParts(details))

    # Write.

    def append(self, message: MessageLike) -> Appended:
        """Appends a message to the head, which moves.

        A message that is known by its id is a no-op. A dict without an id gets one, so appending it twice stores two.

        Args:
            message: A `Message`, or a dict or a dataclass with a `role`, and `parts`, `text` or `content`.
        """
        return Appended(*self._native.append(_json.message_text(message)))

    def append_to(self, parent: str, message: MessageLike) -> Appended:
        """Appends a message to any message: a branch, if that has one after it already."""
        return Appended(*self._native.append_to(_json.is_str(parent, "parent"), _json.message_text(message)))

    def append_root(self, message: MessageLike) -> Appended:
        """Appends a message without a parent: a second tree in the session, if it has one."""
        return Appended(*self._native.append_root(_json.message_text(message)))

    def append_if_head(self, expected: str | None, message: MessageLike) -> Appended:
        """Appends a message to the head, if that is where it is expected; None is before the first message.

        Raises:
            talktree.HeadMovedError: if it is somewhere else.
        """
        expected = _json.maybe_str(expected, "expected")
        return Appended(*self._native.append_if_head(expected, _json.message_text(message)))

    def append_all(self, messages: Iterable[MessageLike]) -> list[Appended]:
        """Appends a chain of messages to the head, all or none."""
        return [Appended(*it) for it in self._native.append_all(_json.messages_text(messages))]

    def append_all_to(self, parent: str | None, messages: Iterable[MessageLike]) -> list[Appended]:
        """Appends a chain of messages to any message, all or none; to None: as a root."""
        parent, chain = _json.maybe_str(parent, "parent"), _json.messages_text(messages)
        return [Appended(*it) for it in self._native.append_all_to(parent, chain)]

    def append_all_if_head(self, expected: str | None, messages: Iterable[MessageLike]) -> list[Appended]:
        """Appends a chain of messages to the head, if that is where it is expected."""
        expected, chain = _json.maybe_str(expected, "expected"), _json.messages_text(messages)
        return [Appended(*it) for it in self._native.append_all_if_head(expected, chain)]

    def append_all_to_if_head(
        self, parent: str | None, expected: str | None, messages: Iterable[MessageLike]
    ) -> list[Appended]:
        """Appends a chain of messages to any message, if the head is where it is expected; to None: as a root.

        So the end of a conversation is replaced: what was there stays, as a branch.
        """
        parent, expected = _json.maybe_str(parent, "parent"), _json.maybe_str(expected, "expected")
        chain = _json.messages_text(messages)
        return [Appended(*it) for it in self._native.append_all_to_if_head(parent, expected, chain)]

    def append_answer(self, response: Mapping[str, Any]) -> Message:
        """Appends the answer of any provider, with its usage; returns the message.

        Raises:
            talktree.NoAnswerError: if the response holds no answer, such as an error of the provider.
        """
        return Message(_json.loads(self._native.append_answer(_json.dumps(response, "response"))))

    def stream(self, provider: StreamProvider) -> Reply:
        """Begins a reply into which an answer of a provider is streamed, line by line.

        It has an id, and is stored as an unfinished message, which no request has until it is finished. If the process dies,
        `unfinished` offers it.

        >>> import talktree
        >>> chat = talktree.Store().session("s")
        >>> question = chat.append({"role": "user", "text": "2 + 2?"}).id
        >>> body = [
        ...     'data: {"id":"1","choices":[{"delta":{"content":"It is"}}]}', "",
        ...     'data: {"id":"1","choices":[{"delta":{"content":" 4."},"finish_reason":"stop"}]}', "",
        ...     "data: [DONE]",
        ... ]
        >>> reply = chat.stream("openai_chat")
        >>> for line in body:  # of your HTTP client, such as response.iter_lines()
        ...     if piece := reply.push(line):  # saved now and then
        ...         print(repr(piece), len(chat.history()))
        'It is' 1
        ' 4.' 1
        >>> reply.finish().text, len(chat.history())
        ('It is 4.', 2)
        """
        if provider not in get_args(StreamProvider):
            raise ValueError(f"provider must be one of {', '.join(get_args(StreamProvider))}, not {provider!r}")
        return Reply(self._native.reply(provider), self._native)

    def begin(self, message: MessageLike) -> Appended:
        """Appends a message as an unfinished one: `stream`, for another source of events.

        `save` replaces its content, `finish` shows it, `discard` deletes it. Histories for models, requests, token counts and
        compactions leave it out; raw histories, searches and exports have it. It follows the head; if that is unfinished, what that follows.

        >>> import talktree
        >>> chat = talktree.Store().session("s")
        >>> reply = chat.begin({"role": "assistant", "text": ""}).id
        >>> chat.save({"id": reply, "role": "assistant", "text": "It is"})
        >>> len(chat.history()), chat.unfinished()[0].text
        (0, 'It is')
        >>> chat.finish({"id": reply, "role": "assistant", "text": "It is 4."})
        >>> chat.history()[0].text, chat.unfinished()
        ('It is 4.', [])
        """
        return Appended(*self._native.begin(_json.message_text(message)))

    def save(self, message: MessageLike) -> None:
        """Replaces the content of the unfinished message of the same id, which stays unfinished.

        Raises:
            talktree.FinishedError: if someone finished it meanwhile.
            talktree.UnknownMessageError: if it was discarded.
        """
        self._native.save(_json.message_text(message))

    def finish(self, message: MessageLike) -> None:
        """Replaces the content of the unfinished message of the same id, and shows it from then on; its usage is recorded.

        Raises:
            talktree.FinishedError: if someone finished it meanwhile.
            talktree.UnknownMessageError: if it was discarded.
        """
        self._native.finish(_json.message_text(message))

    def discard(self, id: str) -> None:
        """Deletes an unfinished message. If it is the head, the head moves to the message above, not to a reply beside it.

        Raises:
            talktree.FinishedError: if someone finished it; it stays then.
        """
        self._native.discard(_json.is_str(id, "id"))

    def unfinished(self) -> list[Message]:
        """Returns the unfinished messages of all branches: replies that are streamed now, and those of processes that died.

        >>> import talktree
        >>> chat = talktree.Store().session("s")
        >>> reply = chat.begin({"role": "assistant", "text": "It is"}).id
        >>> for reply in chat.unfinished():  # after a restart: keep what there is, or `discard` it
        ...     chat.finish(reply)
        >>> chat.history()[0].text
        'It is'
        """
        return _json.messages(self._native.unfinished())

    def edit(self, id: str, message: MessageLike) -> Appended:
        """Appends another version of a message: a sibling, which the head moves to."""
        return Appended(*self._native.edit(_json.is_str(id, "id"), _json.message_text(message)))

    def retry(self) -> str | None:
        """Moves the head back to the last question, so that the next answer is a sibling of the last one."""
        return self._native.retry()

    def question(self) -> str | None:
        """Returns the last question on the path to the head, which `retry` goes back to; None if there is none."""
        return self._native.question()

    def update(self, message: MessageLike) -> Updated:
        """Replaces the content of a stored message of the same id. The tree does not change."""
        return Updated(*self._native.update(_json.message_text(message)))

    def upsert(self, message: MessageLike) -> Updated:
        """Appends a message, or replaces the content of the one with its id. A reply that streams in is for `stream`."""
        return Updated(*self._native.upsert(_json.message_text(message)))

    def import_message(self, parent: str | None, message: MessageLike) -> Imported:
        """Stores a message from elsewhere with its own parent, id and time.

        The head moves to it if the head is at the parent, and stays otherwise.
        """
        return self._native.import_message(_json.maybe_str(parent, "parent"), _json.message_text(message))

    def import_messages(self, messages: Iterable[tuple[str | None, MessageLike]]) -> list[Imported]:
        """Stores messages from elsewhere, each with its parent, all or none.

        One that was imported before is not imported again, even if it was deleted since.
        """
        fields = [
            (parent, _json.message_fields(message, f"messages[{at}]")) for at, (parent, message) in enumerate(messages)
        ]
        return self._native.import_messages(_json.dumps(fields, "messages"))

    def is_imported(self, record: str) -> bool:
        """Returns whether a record of this name was imported, also if its message was deleted since."""
        return self._native.is_imported(_json.is_str(record, "record"))

    def delete(self, *ids: str) -> Deleted:
        """Deletes messages, all or none; one that has messages below it leaves its place in the tree."""
        return Deleted(**_json.loads(self._native.delete(_json.strs(ids, "ids"))))

    def delete_branch(self, id: str) -> Deleted:
        """Deletes a message and everything below it."""
        return Deleted(**_json.loads(self._native.delete_branch(_json.is_str(id, "id"))))

    def erase(self, *ids: str) -> Erased:
        """Erases messages: no byte of them is left in the file, in its log or in a later backup.

        `Store.erase` also erases branches, sessions, owners and keys.

        Raises:
            talktree.UnknownMessageError: if one is not in this session; no message is erased then.
        """
        return Erased(**erased_fields(self._native.erase(_json.strs(ids, "ids"))))

    def clear(self) -> None:
        """Deletes all messages, compactions and labels; the session stays."""
        self._native.clear()

    def fork(self, at: str, name: str, *, id: str | None = None) -> Session:
        """Returns a new session that begins with a copy of the path to a message."""
        id, at, name = _json.maybe_str(id, "id"), _json.is_str(at, "at"), _json.is_str(name, "name")
        return Session(self._native.fork(id, at, name))

    def subscribe(self, listener: Callable[[Event], object]) -> _native.Subscription:
        """Calls a listener after each change to the sessions of this store, in the thread that made it.

        The subscription ends with its `close`, or when it is collected: keep it. `Store.subscribe` says more.
        """
        return self._native.subscribe(event_listener(listener))

    # Read.

    def history(self) -> list[Message]:
        """Returns what a model should see: the messages to the head, oldest first, with compactions applied."""
        return _json.messages(self._native.history(None, False))

    def raw_history(self) -> list[Message]:
        """Returns the stored messages to the head, oldest first."""
        return _json.messages(self._native.history(None, True))

    def message(self, id: str) -> Message | None:
        """Returns a message, or the summary of a compaction; None if there is none of this id."""
        return _json.maybe_message(self._native.message(_json.is_str(id, "id")))

    def all_messages(self) -> Iterator[Message]:
        """Yields the messages of every branch, in order of creation."""
        return _stream(self._native.all_messages())

    def at(self, leaf: str) -> Path:
        """Returns the path to any message, with the reads of a session."""
        return Path(self._native, _json.is_str(leaf, "leaf"), False)

    def path(self) -> Path:
        """Returns the path to the head."""
        return Path(self._native, None, False)

    # Branches.

    def is_on_path(self, id: str) -> bool:
        """Returns whether a message is on the path to the head."""
        return self._native.is_on_path(_json.is_str(id, "id"))

    def is_ancestor(self, ancestor: str, id: str) -> bool:
        """Returns whether a message is on the path to another one."""
        return self._native.is_ancestor(_json.is_str(ancestor, "ancestor"), _json.is_str(id, "id"))

    def latest_leaf(self) -> Message | None:
        """Returns the newest message without one after it."""
        return _json.maybe_message(self._native.latest_leaf())

    def leaves(self) -> list[str]:
        """Returns where the branches end."""
        return self._native.leaves()

    def branches(self, id: str) -> list[Message]:
        """Returns the messages that follow a message."""
        return _json.messages(self._native.branches(_json.is_str(id, "id")))

    def branches_page(self, id: str | None, *, after: str | None = None, limit: int = 50) -> list[Message]:
        """Returns a page of the messages that follow a message; of None: of the roots."""
        id, after, limit = _json.maybe_str(id, "id"), _json.maybe_str(after, "after"), _json.count(limit, "limit")
        return _json.messages(self._native.branches_page(id, after, limit))

    def roots(self) -> list[Message]:
        """Returns the messages without a parent."""
        return _json.messages(self._native.roots())

    def siblings(self, id: str) -> list[Message]:
        """Returns the versions of a message: what follows the same parent, itself included."""
        return _json.messages(self._native.siblings(_json.is_str(id, "id")))

    def tree(
        self,
        *,
        max_children: int | None = None,
        max_main_segments: int | None = None,
        max_indent: int | None = None,
        ascii: bool = False,
        whole: bool = False,
    ) -> str:
        """Returns a drawing of the tree."""
        return self._native.tree(
            _json.maybe_count(max_children, "max_children"),
            _json.maybe_count(max_main_segments, "max_main_segments"),
            _json.maybe_count(max_indent, "max_indent"),
            ascii,
            whole,
        )

    # The head and labels.

    def head(self) -> str | None:
        """Returns the message that the next one is appended to; None before the first."""
        return self._native.head()

    def checkout(self, id: str) -> None:
        """Moves the head to any message."""
        self._native.checkout(_json.is_str(id, "id"))

    def checkout_start(self) -> None:
        """Moves the head before the first message."""
        self._native.checkout(None)

    def undo_head(self) -> bool:
        """Moves the head back to where it was; returns whether it moved."""
        return self._native.undo_head()

    def redo_head(self) -> bool:
        """Takes an undo back; returns whether the head moved."""
        return self._native.redo_head()

    def head_log(self) -> list[HeadEntry]:
        """Returns where the head was."""
        return [HeadEntry(**it) for it in _json.loads(self._native.head_log())]

    def label(self, name: str, id: str) -> None:
        """Gives a message a name, unique in the session; moves it if it is in use."""
        self._native.label(_json.is_str(name, "name"), _json.is_str(id, "id"))

    def unlabel(self, name: str) -> None:
        """Removes a label."""
        self._native.unlabel(_json.is_str(name, "name"))

    def labels(self) -> list[Label]:
        """Returns the labels."""
        return [Label(**it) for it in _json.loads(self._native.labels())]

    def labelled(self, name: str) -> str | None:
        """Returns the message of a label."""
        return self._native.labelled(_json.is_str(name, "name"))

    def tag(self, id: str, tag: str) -> None:
        """Adds a tag to a message: a flag of a moderator, the state of a review. One that it has is no error.

        `Store.list_messages` lists the messages with a tag.
        """
        self._native.tag(_json.is_str(id, "id"), _json.is_str(tag, "tag"))

    def untag(self, id: str, tag: str) -> None:
        """Removes a tag of a message."""
        self._native.untag(_json.is_str(id, "id"), _json.is_str(tag, "tag"))

    def tags(self, id: str) -> list[str]:
        """Returns the tags of a message, sorted."""
        return self._native.tags(_json.is_str(id, "id"))

    def all_tags(self) -> list[MessageTag]:
        """Returns the tags of all messages, in the order in which the messages were appended."""
        return [MessageTag(**it) for it in _json.loads(self._native.all_tags())]

    # Compaction.

    def add_compaction(self, summary: str, first: str, last: str, *, details: Any = None) -> Compacted:
        """Replaces a range of a path with a summary when a history is read. The messages stay."""
        given = None if details is None else _json.dumps(details, "details")
        done = self._native.add_compaction(
            _json.is_str(summary, "summary"), _json.is_str(first, "first"), _json.is_str(last, "last"), given
        )
        return compacted(*done)

    def remove_compaction(self, id: str) -> None:
        """Removes a compaction, as if it had never been."""
        self._native.remove_compaction(_json.is_str(id, "id"))

    def compactions(self) -> list[Compaction]:
        """Returns the compactions of all branches."""
        return [compaction(it) for it in _json.loads(self._native.compactions())]

    def compaction(self, id: str) -> Compaction:
        """Returns a compaction."""
        return compaction(_json.loads(self._native.compaction(_json.is_str(id, "id"))))

    def import_compaction(self, compaction: Compaction) -> None:
        """Adds a compaction from elsewhere with its id and time; a known id is a no-op."""
        fields = compaction_fields(compaction, "compaction")
        self._native.import_compaction(_json.dumps(fields, "compaction"))

    def compaction_status(self, id: str) -> CompactionStatus:
        """Returns whether the history shows a compaction."""
        return CompactionStatus(*self._native.compaction_status(_json.is_str(id, "id")))

    def expand(self, id: str) -> list[Message]:
        """Returns what a summary covers: messages and summaries."""
        return _json.messages(self._native.expand(_json.is_str(id, "id"), False))

    def expand_raw(self, id: str) -> list[Message]:
        """Returns the messages that a summary covers."""
        return _json.messages(self._native.expand(_json.is_str(id, "id"), True))

    def commit(self, plan: CompactionPlan, summary: SummaryLike) -> Compacted:
        """Stores the summary of a plan.

        Raises:
            talktree.StaleError: if the range has changed since the plan was made.
            talktree.SummaryRefusedError: if the summary is blank or not shorter than the range.
        """
        if not isinstance(plan, CompactionPlan):
            raise TypeError(f"plan must be a CompactionPlan, not {type(plan).__name__}")
        return compacted(*self._native.commit(plan._native, summary_parts(summary)))

    def request_tokens(self) -> RequestTokens:
        """Returns the tokens of the next request."""
        return RequestTokens(**_json.loads(self._native.request_tokens()))

    def visible_tokens(self) -> int:
        """Returns the tokens of the history, without reading it."""
        return self._native.visible_tokens()

    def plan_branch_summary(self, to: str, options: CompactionOptions | None = None) -> BranchSummaryPlan | None:
        """Returns a checkout and the prompt for a summary of the branch it leaves; None if it leaves nothing."""
        plan = self._native.plan_branch_summary(_json.is_str(to, "to"), options_of(options))
        return None if plan is None else BranchSummaryPlan(plan)

    def checkout_with_summary(self, plan: BranchSummaryPlan, summary: SummaryLike) -> str:
        """Moves the head and appends the summary of the branch it leaves; returns the id of that message."""
        if not isinstance(plan, BranchSummaryPlan):
            raise TypeError(f"plan must be a BranchSummaryPlan, not {type(plan).__name__}")
        return self._native.checkout_with_summary(plan._native, summary_parts(summary))

    def checkout_summarized(self, to: str) -> str | None:
        """Moves the head, with a summary by the session's summarizer; returns the id of that message."""
        return self._native.checkout_summarized(_json.is_str(to, "to"))

    def compact_and_split(self, summary: SummaryLike, *, id: str | None = None) -> Session:
        """Ends the session and continues it in a new one, which begins with the summary."""
        return Session(self._native.compact_and_split(_json.maybe_str(id, "id"), summary_parts(summary)))

    # What the model should know.

    @property
    def context(self) -> Context:
        """The texts and documents of the blocks."""
        return Context(self._native)

    @property
    def tools(self) -> Tools:
        """The tools for a model."""
        return Tools(self._native)

    def prompt(self) -> str:
        """Returns the system prompt; with `cached_prompt` the same bytes until `refresh_prompt`."""
        return self._native.prompt(False)

    def refresh_prompt(self) -> str:
        """Makes the system prompt again, and returns it."""
        return self._native.prompt(True)

    def drift(self) -> list[Drift]:
        """Returns the blocks that differ from the frozen prompt."""
        return [Drift(**it) for it in _json.loads(self._native.drift())]

    def reminder(self) -> str | None:
        """Returns what a request says besides the frozen prompt; None if nothing changed."""
        return self._native.reminder()

    def block(self, label: str) -> BlockInfo | None:
        """Returns a block with its present content."""
        fields = _json.loads(self._native.block(_json.is_str(label, "label")))
        return None if fields is None else BlockInfo(**fields)

    def blocks(self) -> list[BlockInfo]:
        """Returns the blocks with their present contents."""
        return [BlockInfo(**it) for it in _json.loads(self._native.blocks())]

    # Usage, export.

    def add_usage(self, usage: Usage, message: str | None = None) -> None:
        """Adds to the usage of the session, for a message or besides the messages."""
        self._native.add_usage(_json.maybe_str(message, "message"), usage_text(usage))

    def usage(self) -> UsageTotal:
        """Returns the usage of all answers of the session."""
        return usage_total(_json.loads(self._native.usage(False, None)))

    def tool_stats(self) -> dict[str, ToolStats]:
        """Returns how often each tool was called."""
        return {name: ToolStats(*counts) for name, *counts in self._native.tool_stats()}

    def export_jsonl(self, target: Target) -> None:
        """Writes every branch, compaction and label as JSON lines, to a path or a binary file."""
        written_to(target, lambda write: self._native.export(None, False, "jsonl", write))

    def content_hash(self) -> str:
        """Returns a hash of the content, the same for the same content in any store."""
        return self._native.content_hash()


def _stream(messages: _native.Messages) -> Iterator[Message]:
    while batch := _json.messages(messages.next(_BATCH)):
        yield from batch
