"""A reply that is streamed."""

from __future__ import annotations

import talktree as _sync

from .._lines import Line
from ..message import Message


class Reply:
    """A reply that is streamed: the verbs of `talktree.Reply`, awaited. From `Session.stream`."""

    def __init__(self, sync: _sync.Reply, line: Line) -> None:
        self.sync = sync
        self._run = line.run

    def __repr__(self) -> str:
        return repr(self.sync)

    @property
    def id(self) -> str:
        """The id of the message."""
        return self.sync.id

    @property
    def text(self) -> str:
        """The text so far."""
        return self.sync.text

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete, and nothing more needs to be read."""
        return self.sync.is_complete

    async def push(self, line: str) -> str | None:
        """Takes the next line of the body; returns the new text, if the line brings any.

        Raises:
            talktree.NoAnswerError: if the provider reports an error. The text before it is saved, and the reply stays unfinished.
            talktree.FinishedError: if someone else finished it.
            ValueError: after `finish`.
        """
        return await self._run(lambda call: self.sync.push(line))

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
        return await self._run(lambda call: self.sync.finish())

    async def discard(self) -> None:
        """Deletes the reply.

        Raises:
            talktree.FinishedError: if it was finished; it stays then.
        """
        await self._run(lambda call: self.sync.discard())
