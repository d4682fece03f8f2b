"""A reply that is streamed."""

from __future__ import annotations

from . import _json, _native
from .message import Message


class Reply:
    """A reply that is streamed: from `Session.stream`.

    It is stored as an unfinished message from the start, and saved once a second or every 4 KiB, when a line brings text. If the
    process dies, it stays unfinished: `Session.unfinished` offers it.
    """

    def __init__(self, native: _native.Reply, session: _native.Session) -> None:
        self._native = native
        self._session = session
        self._is_complete = False

    def __repr__(self) -> str:
        return f"<Reply {self.id!r} of session {self._session.id!r}>"

    @property
    def id(self) -> str:
        """The id of the message."""
        return self._native.id

    @property
    def text(self) -> str:
        """The text so far."""
        return self._native.text

    @property
    def is_complete(self) -> bool:
        """Whether the answer is complete, and nothing more needs to be read."""
        return self._is_complete

    def push(self, line: str) -> str | None:
        """Takes the next line of the body; returns the new text, if the line brings any.

        Raises:
            talktree.NoAnswerError: if the provider reports an error. The text before it is saved, and the reply stays unfinished.
            talktree.FinishedError: if someone else finished it.
            ValueError: after `finish`.
        """
        piece, self._is_complete = self._native.push(_json.is_str(line, "line"))
        return piece

    def finish(self) -> Message:
        """Stores the whole answer with its usage, in one transaction, and returns it.

        Raises:
            talktree.NoAnswerError: if the body ended before the answer was complete. The text so far is saved, and the reply stays
                unfinished: `discard` it, or give it to `Session.finish`.
            talktree.FinishedError: if someone else finished it.
            talktree.UnknownMessageError: if it was discarded.
            talktree.Error: if it cannot be stored, because the session is in the trash for example: this can be called again then.
            ValueError: if it was finished before.
        """
        return Message(_json.loads(self._native.finish()))

    def discard(self) -> None:
        """Deletes the reply.

        Raises:
            talktree.FinishedError: if it was finished; it stays then.
        """
        self._session.discard(self.id)
