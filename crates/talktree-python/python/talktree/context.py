"""The context of a session: the texts and documents of its blocks."""

from __future__ import annotations

from collections.abc import Iterable

from . import _json, _native
from .blocks import (
    Block,
    BlockInfo,
    Document,
    EntryInfo,
    EntryVersion,
    block_of,
    document_parts,
    entry_info,
    entry_version,
)


class Context:
    """The blocks of a session, and what the store keeps for them.

    >>> import talktree
    >>> chat = talktree.Store().session("s", blocks={"memory": talktree.Block.stored()})
    >>> chat.context.set("memory", "Likes coffee.").content
    'Likes coffee.'
    >>> [version.content for version in chat.context.versions("memory")]
    ['Likes coffee.']
    """

    def __init__(self, native: _native.Session) -> None:
        self._native = native

    def set(self, label: str, content: str) -> BlockInfo:
        """Replaces the text of a block."""
        text = self._native.context_set(_json.is_str(label, "label"), _json.is_str(content, "content"))
        return BlockInfo(**_json.loads(text))

    def append(self, label: str, text: str) -> BlockInfo:
        """Appends a line to the text of a block."""
        block = self._native.context_append(_json.is_str(label, "label"), _json.is_str(text, "text"))
        return BlockInfo(**_json.loads(block))

    def remove_text(self, label: str) -> bool:
        """Removes the text of a block; returns whether it had one."""
        return self._native.context_remove_text(_json.is_str(label, "label"))

    def add(self, label: str, block: Block | str) -> None:
        """Adds a block to this session; the handles of the session share it."""
        self._native.context_add(_json.is_str(label, "label"), block_of(block, "block"))

    def remove(self, label: str) -> bool:
        """Takes a block away; returns whether there was one. What the store keeps for it stays."""
        return self._native.context_remove(_json.is_str(label, "label"))

    def set_document(self, label: str, document: Document) -> str:
        """Writes a document of a block; returns its key."""
        return self.set_documents(label, [document])[0]

    def set_documents(self, label: str, documents: Iterable[Document]) -> list[str]:
        """Writes documents of a block, all or none; returns their keys."""
        parts = [document_parts(it) for it in documents]
        return self._native.context_set_documents(_json.is_str(label, "label"), parts)

    def append_document(self, label: str, document: Document) -> str:
        """Appends a text to a document, which is made if it is missing; returns its key."""
        return self._native.context_append_document(_json.is_str(label, "label"), document_parts(document))

    def remove_document(self, label: str, key: str) -> bool:
        """Removes a document; returns whether there was one."""
        return self._native.context_remove_document(_json.is_str(label, "label"), _json.is_str(key, "key"))

    def documents(self, label: str) -> list[EntryInfo]:
        """Returns the documents of a block."""
        return [entry_info(it) for it in _json.loads(self._native.context_documents(_json.is_str(label, "label")))]

    def load(self, label: str, key: str) -> str | None:
        """Returns the content of a document; None if there is none."""
        return self._native.context_load(_json.is_str(label, "label"), _json.is_str(key, "key"))

    def search(self, label: str, query: str, limit: int = 10) -> list[Document]:
        """Returns the best documents of a block for a query."""
        label, query = _json.is_str(label, "label"), _json.is_str(query, "query")
        found = self._native.context_search(label, query, _json.count(limit, "limit"))
        return [Document(key, content, title, description) for key, title, description, content in found]

    def loaded(self) -> list[tuple[str, str]]:
        """Returns label and key of each document that the model has loaded and not unloaded."""
        return self._native.context_loaded()

    def unload(self, label: str, key: str) -> int | None:
        """Replaces each copy of a loaded document in the history with a short marker; returns how many, None if it is not
        loaded. The stored messages stay as they are."""
        return self._native.context_unload(_json.is_str(label, "label"), _json.is_str(key, "key"))

    def frozen_prompt(self) -> str | None:
        """Returns the frozen prompt; None if none is frozen."""
        return self._native.frozen_prompt()

    def thaw_prompt(self) -> None:
        """Removes the frozen prompt, so that the next call of `Session.prompt` makes it again."""
        self._native.thaw_prompt()

    def versions(self, label: str, key: str | None = None) -> list[EntryVersion]:
        """Returns the versions of a text, or of a document, oldest first."""
        versions = self._native.context_versions(_json.is_str(label, "label"), _json.maybe_str(key, "key"))
        return [entry_version(it) for it in _json.loads(versions)]

    def version(self, label: str, version: int, key: str | None = None) -> EntryVersion:
        """Returns one version of a text, or of a document."""
        number = _json.count(version, "version")
        found = self._native.context_version(_json.is_str(label, "label"), _json.maybe_str(key, "key"), number)
        return entry_version(_json.loads(found))

    def restore(self, label: str, version: int, key: str | None = None) -> None:
        """Writes an old version of a text again."""
        label, key = _json.is_str(label, "label"), _json.maybe_str(key, "key")
        self._native.context_restore(label, key, _json.count(version, "version"))

    def to_markdown(self) -> str:
        """Returns the texts of the blocks as Markdown."""
        return self._native.context_to_markdown()

    def import_text(self, text: str) -> list[str]:
        """Writes the texts of a Markdown page or of a system prompt to their blocks; returns the labels."""
        return self._native.context_import(_json.is_str(text, "text"))

    def stored(self) -> list[tuple[str, str]]:
        """Returns the labels of the texts that the store keeps for this session, each with its scope."""
        return self._native.context_stored()
