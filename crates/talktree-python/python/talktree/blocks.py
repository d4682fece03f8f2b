"""Context blocks: the labelled sections of a system prompt."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from . import _json

#: Where a stored text belongs: to one session, to the owner of the session, or to all sessions.
Scope = Literal["session", "owner", "all"]


@dataclass(frozen=True)
class Document:
    """A document of a block, under a key."""

    key: str
    content: str
    title: str | None = None
    description: str | None = None


@runtime_checkable
class WriteProvider(Protocol):
    """A block of the program's own that a model may write."""

    def get(self) -> str:
        """Returns the content."""

    def set(self, content: str) -> None:
        """Replaces the content."""


@runtime_checkable
class SkillProvider(Protocol):
    """Documents of the program's own that a model loads by key. With a method `set_keyed(document)` it may write them."""

    def get(self) -> str:
        """Returns the list of documents for the prompt."""

    def load(self, key: str) -> str | None:
        """Returns a document; None if there is none of this key."""


@runtime_checkable
class SearchProvider(Protocol):
    """Documents of the program's own that a model searches. With a method `set_keyed(document)` it may write them."""

    def get(self) -> str:
        """Returns what the prompt says about them."""

    def search(self, query: str, limit: int) -> Iterable[Document]:
        """Returns the best documents for a query."""


class Adapter:
    """A provider of the program with the methods that the native module calls."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider
        self.is_writable = callable(getattr(provider, "set_keyed", None))

    def init(self, label: str) -> None:
        init = getattr(self._provider, "init", None)
        if callable(init):
            init(label)

    def get(self) -> str:
        return _json.is_str(self._provider.get(), "what get() returns")

    def set(self, content: str) -> None:
        self._provider.set(content)

    def load(self, key: str) -> str | None:
        return _json.maybe_str(self._provider.load(key), "what load() returns")

    def search(self, query: str, limit: int) -> list[tuple[str, str | None, str | None, str]]:
        return [document_parts(it) for it in self._provider.search(query, limit)]

    def set_keyed(self, key: str, title: str | None, description: str | None, content: str) -> None:
        self._provider.set_keyed(Document(key, content, title, description))


class _Made:
    """A provider over a function that makes the text."""

    def __init__(self, make: Callable[[], str]) -> None:
        self.get = make


def document_parts(document: Document) -> tuple[str, str | None, str | None, str]:
    """Returns a document as the native module takes it."""
    if not isinstance(document, Document):
        raise TypeError(f"document must be a Document, not {type(document).__name__}")
    return (
        _json.is_str(document.key, "document.key"),
        _json.maybe_str(document.title, "document.title"),
        _json.maybe_str(document.description, "document.description"),
        _json.is_str(document.content, "document.content"),
    )


@dataclass(frozen=True)
class Block:
    """A block of the prompt; its class methods make the kinds, its methods return it with a setting.

    >>> import talktree
    >>> store = talktree.Store()
    >>> chat = store.session("s", blocks={
    ...     "soul": "Be brief.",
    ...     "memory": Block.stored().describe("Learned facts about the user").max(1_100),
    ...     "clock": Block.read(lambda: "It is noon."),
    ... })
    >>> [block.label for block in chat.blocks()]
    ['soul', 'memory', 'clock']
    """

    kind: str
    source: Any = None
    description: str | None = None
    max_tokens: int | None = None
    is_reminding: bool = False
    scope: Scope = "session"
    is_read_only: bool = False

    @classmethod
    def text(cls, text: str) -> Block:
        """A text of the program."""
        return cls("text", _json.is_str(text, "text"))

    @classmethod
    def read(cls, make: Callable[[], str]) -> Block:
        """A text that a function makes each time it is read."""
        if not callable(make):
            raise TypeError(f"make must be callable, not {type(make).__name__}")
        return cls("read", Adapter(_Made(make)))

    @classmethod
    def write(cls, provider: WriteProvider) -> Block:
        """A text that a provider of the program reads and writes."""
        return cls("write", _adapter(provider, "get", "set"))

    @classmethod
    def skills(cls, provider: SkillProvider) -> Block:
        """Documents of a provider of the program, which a model loads by key."""
        return cls("skills", _adapter(provider, "get", "load"))

    @classmethod
    def skill_folder(cls, path: str | os.PathLike[str], *, allow: Iterable[str] | None = None) -> Block:
        """The skills of a folder; with `allow` only these keys. The folder is opened with the session."""
        return cls("skill_folder", (os.fspath(path), None if allow is None else _json.strs(allow, "allow")))

    @classmethod
    def searchable(cls, provider: SearchProvider) -> Block:
        """Documents of a provider of the program, which a model searches."""
        return cls("searchable", _adapter(provider, "get", "search"))

    @classmethod
    def stored(cls) -> Block:
        """A text that the store keeps and a model may write."""
        return cls("stored")

    @classmethod
    def stored_skills(cls) -> Block:
        """Documents that the store keeps; a model loads them by key and may write them."""
        return cls("stored_skills")

    @classmethod
    def knowledge(cls) -> Block:
        """Documents that the store keeps; a model searches them and may write them."""
        return cls("knowledge")

    @classmethod
    def history(cls) -> Block:
        """What was said in the sessions of its scope, which a model searches."""
        return cls("history")

    def describe(self, description: str) -> Block:
        """Returns the block with a description, which the prompt shows."""
        return replace(self, description=_json.is_str(description, "description"))

    def max(self, tokens: int) -> Block:
        """Returns the block with a limit of its text."""
        return replace(self, max_tokens=_json.count(tokens, "tokens"))

    def remind(self) -> Block:
        """Returns the block so that its changes are shown with each request, even if the prompt is frozen."""
        return replace(self, is_reminding=True)

    def across_sessions(self) -> Block:
        """Returns the block with a text that all sessions share."""
        return replace(self, scope="all")

    def per_owner(self) -> Block:
        """Returns the block with a text that the sessions of an owner share."""
        return replace(self, scope="owner")

    def read_only(self) -> Block:
        """Returns the block so that a model cannot write it."""
        return replace(self, is_read_only=True)


def _adapter(provider: object, *methods: str) -> Adapter:
    for method in methods:
        if not callable(getattr(provider, method, None)):
            raise TypeError(f"provider must have a method {method}(), and {type(provider).__name__} has none")
    return Adapter(provider)


def block_of(block: Block | str, what: str) -> Block:
    """Returns a block; a str is a text of the program."""
    if isinstance(block, str):
        return Block.text(block)
    if not isinstance(block, Block):
        raise TypeError(f"{what} must be a Block or a str, not {type(block).__name__}")
    _json.check_counts(block, what, "max_tokens")
    return block


@dataclass(frozen=True)
class BlockInfo:
    """A block with its present content."""

    label: str
    description: str | None
    content: str
    tokens: int
    max_tokens: int | None
    is_writable: bool
    is_skill: bool
    is_searchable: bool


@dataclass(frozen=True)
class Drift:
    """A block that differs from the frozen prompt."""

    label: str
    kind: Literal["changed", "added", "removed"]
    frozen: str
    current: str


@dataclass(frozen=True)
class EntryInfo:
    """A document of a block, without its content."""

    key: str
    title: str | None
    description: str | None
    version: int
    changed_at: datetime


@dataclass(frozen=True)
class EntryVersion:
    """A version of a text; without content it says that the text was removed."""

    version: int
    title: str | None
    description: str | None
    content: str | None
    changed_at: datetime


def entry_info(fields: dict[str, Any]) -> EntryInfo:
    """Returns the document of its JSON."""
    fields["changed_at"] = _json.time(fields["changed_at"])
    return EntryInfo(**fields)


def entry_version(fields: dict[str, Any]) -> EntryVersion:
    """Returns the version of its JSON."""
    fields["changed_at"] = _json.time(fields["changed_at"])
    return EntryVersion(**fields)
