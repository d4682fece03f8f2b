"""The context of a session, and its tools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import talktree as _sync

from .._lines import Line, present_loop, waiting_in
from ..blocks import Block, BlockInfo, Document, EntryInfo, EntryVersion
from ..message import Message, MessageLike
from ..tools import ProgramTools


class Context:
    """The blocks of a session, and what the store keeps for them."""

    def __init__(self, sync: _sync.Context, line: Line) -> None:
        self.sync = sync
        self._run = line.run

    async def set(self, label: str, content: str) -> BlockInfo:
        """Replaces the text of a block."""
        return await self._run(lambda call: self.sync.set(label, content))

    async def append(self, label: str, text: str) -> BlockInfo:
        """Appends a line to the text of a block."""
        return await self._run(lambda call: self.sync.append(label, text))

    async def remove_text(self, label: str) -> bool:
        """Removes the text of a block; returns whether it had one."""
        return await self._run(lambda call: self.sync.remove_text(label))

    async def add(self, label: str, block: Block | str) -> None:
        """Adds a block to this session; the handles of the session share it."""
        await self._run(lambda call: self.sync.add(label, block))

    async def remove(self, label: str) -> bool:
        """Takes a block away; returns whether there was one. What the store keeps for it stays."""
        return await self._run(lambda call: self.sync.remove(label))

    async def set_document(self, label: str, document: Document) -> str:
        """Writes a document of a block; returns its key."""
        return await self._run(lambda call: self.sync.set_document(label, document))

    async def set_documents(self, label: str, documents: Iterable[Document]) -> list[str]:
        """Writes documents of a block, all or none; returns their keys."""
        return await self._run(lambda call: self.sync.set_documents(label, documents))

    async def append_document(self, label: str, document: Document) -> str:
        """Appends a text to a document, which is made if it is missing; returns its key."""
        return await self._run(lambda call: self.sync.append_document(label, document))

    async def remove_document(self, label: str, key: str) -> bool:
        """Removes a document; returns whether there was one."""
        return await self._run(lambda call: self.sync.remove_document(label, key))

    async def documents(self, label: str) -> list[EntryInfo]:
        """Returns the documents of a block."""
        return await self._run(lambda call: self.sync.documents(label))

    async def load(self, label: str, key: str) -> str | None:
        """Returns the content of a document; None if there is none."""
        return await self._run(lambda call: self.sync.load(label, key))

    async def search(self, label: str, query: str, limit: int = 10) -> list[Document]:
        """Returns the best documents of a block for a query."""
        return await self._run(lambda call: self.sync.search(label, query, limit))

    async def loaded(self) -> list[tuple[str, str]]:
        """Returns label and key of each document that the model has loaded and not unloaded."""
        return await self._run(lambda call: self.sync.loaded())

    async def unload(self, label: str, key: str) -> int | None:
        """Replaces each copy of a loaded document in the history with a short marker; returns how many, None if it is not
        loaded. The stored messages stay as they are."""
        return await self._run(lambda call: self.sync.unload(label, key))

    async def frozen_prompt(self) -> str | None:
        """Returns the frozen prompt; None if none is frozen."""
        return await self._run(lambda call: self.sync.frozen_prompt())

    async def thaw_prompt(self) -> None:
        """Removes the frozen prompt, so that the next call of `Session.prompt` makes it again."""
        await self._run(lambda call: self.sync.thaw_prompt())

    async def versions(self, label: str, key: str | None = None) -> list[EntryVersion]:
        """Returns the versions of a text, or of a document, oldest first."""
        return await self._run(lambda call: self.sync.versions(label, key))

    async def version(self, label: str, version: int, key: str | None = None) -> EntryVersion:
        """Returns one version of a text, or of a document."""
        return await self._run(lambda call: self.sync.version(label, version, key))

    async def restore(self, label: str, version: int, key: str | None = None) -> None:
        """Writes an old version of a text again."""
        await self._run(lambda call: self.sync.restore(label, version, key))

    async def to_markdown(self) -> str:
        """Returns the texts of the blocks as Markdown."""
        return await self._run(lambda call: self.sync.to_markdown())

    async def import_text(self, text: str) -> list[str]:
        """Writes the texts of a Markdown page or of a system prompt to their blocks; returns the labels."""
        return await self._run(lambda call: self.sync.import_text(text))

    async def stored(self) -> list[tuple[str, str]]:
        """Returns the labels of the texts that the store keeps for this session, each with its scope."""
        return await self._run(lambda call: self.sync.stored())


class Tools:
    """The tools of a session."""

    def __init__(self, sync: _sync.Tools, line: Line) -> None:
        self.sync = sync
        self._run = line.run

    async def answer(self, message: MessageLike, tools: ProgramTools | None = None) -> Message | None:
        """Runs the calls of a message, stores their results below it, and returns the message with them.

        Async tools run in the event loop, plain ones in a thread. While they run, other calls of the session wait, except
        those of the tools themselves.

        Returns:
            None if the message has no calls: the model has answered.
        """
        wait = waiting_in(present_loop())
        return await self._run(lambda call: self.sync._answer(message, tools, wait))

    async def names(self) -> list[str]:
        """Returns the names of the tools."""
        return await self._run(lambda call: self.sync.names())

    async def anthropic(self) -> list[dict[str, Any]]:
        """Returns the tools for Anthropic's messages API."""
        return await self._run(lambda call: self.sync.anthropic())

    async def openai_chat(self) -> list[dict[str, Any]]:
        """Returns the tools for OpenAI's chat completions API."""
        return await self._run(lambda call: self.sync.openai_chat())

    async def openai_responses(self) -> list[dict[str, Any]]:
        """Returns the tools for OpenAI's responses API."""
        return await self._run(lambda call: self.sync.openai_responses())

    async def mcp(self) -> list[dict[str, Any]]:
        """Returns the tools for a server of the Model Context Protocol."""
        return await self._run(lambda call: self.sync.mcp())

    async def call(self, name: str, input: Mapping[str, Any]) -> str:
        """Runs a tool and returns its answer for the model; a wrong input is an answer, too."""
        return await self._run(lambda call: self.sync.call(name, input))
