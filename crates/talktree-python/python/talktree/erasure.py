"""Erasing: what is erased is in no byte of the file, of its log, or of a later backup.

A plain delete leaves words in the search index, and text in the log for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

from . import _json
from ._native import Erased as Native
from .transcripts import TranscriptKey, key_parts

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack


class Erasure(TypedDict, total=False):
    """What is erased, and how; all of it is optional.

    One erasure of many sessions costs much less than many erasures.
    """

    #: Messages by session. One that others follow leaves its place in the tree.
    messages: Mapping[str, Iterable[str]]
    #: Messages by session; each is erased with all messages below it.
    branches: Mapping[str, Iterable[str]]
    #: Sessions with all that belongs to them, also those in the trash.
    sessions: Iterable[str]
    #: Owners: their sessions, context blocks, transcripts and usage.
    owners: Iterable[str]
    #: Authors: what they wrote in all sessions. What others wrote stays, and so do the answers.
    authors: Iterable[str]
    #: Outside keys, with the sessions that they lead to or led to.
    keys: Iterable[str]
    #: Transcripts of agents; a main one with all others of its session.
    transcripts: Iterable[TranscriptKey]
    #: Erases what was deleted before, and is not in the trash.
    deleted: bool
    #: Erases copies of the messages in other sessions, too: in forks, and in the session that they were forked from.
    with_forks: bool
    #: Erases summaries that cover an erased message, too.
    with_summaries: bool
    #: Keeps the usage of what is erased in totals, without its session, owner, source and message.
    keep_totals: bool
    #: Keeps the pending items of inboxes: what was received, and is not handled yet.
    keep_items: bool
    #: Makes later imports of the erased sessions fail with a `SessionErasedError`.
    forbid_import: bool


@dataclass(frozen=True)
class ErasureExtent:
    """What an erasure removes, or removed, and what it leaves."""

    sessions: list[str]
    #: Copies included.
    messages: int
    #: Texts of context blocks, not counting their versions.
    texts: int
    summaries: int
    #: Frozen prompts.
    prompts: int
    #: Bindings of outside keys, former ones included.
    bindings: int
    #: Pending items of inboxes.
    items: int
    #: Names and metadata of sessions that stay: copies, and names that were made from an erased message.
    details: int
    #: Rows of usage, those that stay in totals included.
    usage: int
    transcripts: list[TranscriptKey]
    #: Entries of the transcripts.
    entries: int
    #: The copies that are left of erased messages, and of what else an erased session had, by session; `with_forks` erases them.
    copies_left: list[ErasureCopies]
    #: The summaries that cover an erased message and are left, also those with which a session begins that continues an erased
    #: one; `with_summaries` erases them.
    summaries_left: list[ErasureSummary]


@dataclass(frozen=True)
class ErasureCopies:
    """Copies in another session: of erased messages, and of the texts and details of an erased session."""

    session: str
    #: How many messages of it are copies.
    messages: int
    #: These messages, in the order in which they were stored.
    ids: list[str]
    #: The labels of its own context blocks that have a text of an erased session.
    blocks: list[str]
    #: Which of its details are those of an erased session: `name`, `metadata`.
    details: list[str]


@dataclass(frozen=True)
class ErasureSummary:
    """A summary that covers an erased message."""

    session: str
    #: Its id in a history.
    id: str


@dataclass(frozen=True)
class Occurrence:
    """A place of an erased text."""

    path: str
    #: In bytes from the start of the file.
    offset: int


@dataclass(frozen=True)
class ErasureProof:
    """The result of a search for erased texts in the files of a store."""

    #: How many bytes were read, of the file, its log and its shared memory.
    bytes: int
    #: How many texts were erased.
    texts: int
    #: How many of them are shorter than eight bytes, and were not looked for.
    too_short: int
    #: How many different sequences of bytes were looked for.
    sequences: int
    #: Whether the texts were so long that only a sample of their sequences was looked for.
    is_sample: bool
    #: How many of the sequences other stored content also contains.
    kept: int
    #: How many copies and summaries the erasure has left; their texts count as kept.
    left: int
    #: How many times a sequence was found that no stored content contains.
    found: int
    #: The first of these places, a hundred at most.
    occurrences: list[Occurrence]


@dataclass(frozen=True)
class Erased:
    """The outcome of an erasure: what was erased, and the copies and summaries that were kept.

    >>> import os, tempfile, talktree
    >>> with tempfile.TemporaryDirectory() as folder, talktree.Store(os.path.join(folder, "bot.db")) as store:
    ...     secret = store.session("s").append({"role": "user", "text": "The vault opens with 7-1-9-4."}).id
    ...     erased = store.erase(messages={"s": [secret]})
    ...     erased.extent.messages, erased.is_complete, erased.prove().found
    (1, True, 0)
    """

    #: What was erased, and which copies and summaries were left.
    extent: ErasureExtent
    #: The erased messages of sessions that stay, copies included: session and id.
    messages: list[tuple[str, str]]
    #: Whether the log still contains erased text, because another reader used it; `Store.finish_erasure` empties it.
    is_log_in_use: bool
    #: Whether the whole file was rewritten.
    is_rewritten: bool
    _native: Native = field(repr=False, compare=False)

    @property
    def is_complete(self) -> bool:
        """Whether the log contains no erased text."""
        return not self.is_log_in_use

    def prove(self) -> ErasureProof:
        """Reads every byte of the file, of its log and of its shared memory, and looks for the erased texts.

        It looks for each sequence of 16 bytes of the erased texts, in the form in which they were stored, and for shorter
        texts of eight bytes or more as a whole.

        Raises:
            talktree.NotErasedError: if erased text was found.
            talktree.NotProvedError: if a part of what was named was unknown, and an interrupted erasure may have named it.
            talktree.UnsupportedError: for a store in memory.
        """
        return proof(self._native.prove())

    def scan(self) -> ErasureProof:
        """Returns what `prove` found, also if that is erased text."""
        return proof(self._native.scan())


def erased_fields(native: Native) -> dict[str, Any]:
    """Returns the fields of an outcome."""
    fields = _json.loads(native.report)
    fields["extent"] = extent(fields["extent"])
    fields["messages"] = [(session, id) for session, id in fields["messages"]]
    fields["_native"] = native
    return fields  # type: ignore[no-any-return]


def extent(fields: dict[str, Any]) -> ErasureExtent:
    """Returns the extent of its JSON."""
    fields["transcripts"] = [TranscriptKey(**it) for it in fields["transcripts"]]
    fields["copies_left"] = [ErasureCopies(**it) for it in fields["copies_left"]]
    fields["summaries_left"] = [ErasureSummary(**it) for it in fields["summaries_left"]]
    return ErasureExtent(**fields)


def proof(text: str) -> ErasureProof:
    """Returns the proof of its JSON."""
    fields = _json.loads(text)
    fields["occurrences"] = [Occurrence(*it) for it in fields["occurrences"]]
    return ErasureProof(**fields)


class ErasureParts:
    """What is erased, as the native module takes it."""

    def __init__(self, what: Mapping[str, Any]) -> None:
        _json.only_known(what, Erasure)
        self.messages = _by_session(what.get("messages", {}), "messages")
        self.branches = _by_session(what.get("branches", {}), "branches")
        self.sessions = _json.strs(what.get("sessions", ()), "sessions")
        self.owners = _json.strs(what.get("owners", ()), "owners")
        self.authors = _json.strs(what.get("authors", ()), "authors")
        self.keys = _json.strs(what.get("keys", ()), "keys")
        self.transcripts = [key_parts(key) for key in what.get("transcripts", ())]
        self.deleted = bool(what.get("deleted", False))
        self.with_forks = bool(what.get("with_forks", False))
        self.with_summaries = bool(what.get("with_summaries", False))
        self.keep_totals = bool(what.get("keep_totals", False))
        self.keep_items = bool(what.get("keep_items", False))
        self.forbid_import = bool(what.get("forbid_import", False))


def _by_session(messages: object, what: str) -> list[tuple[str, list[str]]]:
    if not isinstance(messages, Mapping):
        raise TypeError(f"{what} must be a dict of ids by session, not {type(messages).__name__}")
    return [(_json.is_str(it, what), _json.strs(ids, f"{what}[{it!r}]")) for it, ids in messages.items()]
