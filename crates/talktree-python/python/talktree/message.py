"""Messages: dicts with the fields of the JSON, and properties for what programs ask most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, ClassVar, Protocol, TypedDict

from . import _native, _time


class Message(dict[str, Any]):
    """A message: a dict with `id`, `parent`, `role`, `parts`, `metadata`, `created_at`, `hidden` and any other fields.

    Parts have the shape of the Vercel AI SDK's `UIMessage`. All verbs take a `MessageLike`; what they return are messages of
    this class. `Message.user` and its siblings make one with an id and a time, so that appending it again is a no-op.

    >>> message = Message.user("Can we deploy on Friday?", id="m1")
    >>> message.text, message["parts"]
    ('Can we deploy on Friday?', [{'type': 'text', 'text': 'Can we deploy on Friday?'}])
    """

    @classmethod
    def new(
        cls,
        role: str,
        parts: list[dict[str, Any]],
        *,
        id: str | None = None,
        metadata: Any = None,
        created_at: datetime | None = None,
        hidden: bool = False,
    ) -> Message:
        """Returns a message of these parts, with a new id and the present time unless they are given."""
        time = created_at if created_at is not None else datetime.now(timezone.utc)
        message = cls(id=_native.new_id() if id is None else id, role=role, parts=parts)
        if metadata is not None:
            message["metadata"] = metadata
        message["created_at"] = _time.text_of(time, "created_at")
        if hidden:
            message["hidden"] = True
        return message

    @classmethod
    def user(
        cls,
        text: str,
        *,
        id: str | None = None,
        metadata: Any = None,
        created_at: datetime | None = None,
        hidden: bool = False,
    ) -> Message:
        """Returns a message of the user."""
        return cls.new("user", [text_part(text)], id=id, metadata=metadata, created_at=created_at, hidden=hidden)

    @classmethod
    def assistant(
        cls,
        text: str,
        *,
        id: str | None = None,
        metadata: Any = None,
        created_at: datetime | None = None,
        hidden: bool = False,
    ) -> Message:
        """Returns a message of the model."""
        return cls.new("assistant", [text_part(text)], id=id, metadata=metadata, created_at=created_at, hidden=hidden)

    @classmethod
    def system(
        cls,
        text: str,
        *,
        id: str | None = None,
        metadata: Any = None,
        created_at: datetime | None = None,
        hidden: bool = False,
    ) -> Message:
        """Returns a message of the program."""
        return cls.new("system", [text_part(text)], id=id, metadata=metadata, created_at=created_at, hidden=hidden)

    @property
    def id(self) -> str:
        """The id, unique in its session."""
        id: str = self["id"]
        return id

    @property
    def parent(self) -> str | None:
        """The message it follows; None for a root."""
        return self.get("parent")

    @property
    def role(self) -> str:
        """Who speaks."""
        role: str = self["role"]
        return role

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The parts, in order."""
        parts: list[dict[str, Any]] = self["parts"]
        return parts

    @property
    def metadata(self) -> Any:
        """Any JSON that the caller stored with it; None without."""
        return self.get("metadata")

    @property
    def created_at(self) -> datetime:
        """When it was created, in UTC; the first or the last `datetime`, if the year is none of 1 to 9999."""
        return _time.parsed(self["created_at"])

    @property
    def hidden(self) -> bool:
        """Whether it is kept, but not shown to a model."""
        return bool(self.get("hidden", False))

    @property
    def is_unfinished(self) -> bool:
        """Whether it is a reply that is streamed, or was when its process died: `Session.unfinished` returns those."""
        metadata = self.metadata
        return self.hidden and isinstance(metadata, Mapping) and metadata.get("unfinished") is True

    @property
    def text(self) -> str:
        """The texts of its parts, one below the other."""
        texts = (part.get("text") for part in self["parts"] if part.get("type") == "text")
        return "\n".join(text for text in texts if isinstance(text, str))

    def sent_by(self, id: str | None = None, name: str | None = None) -> Message:
        """Returns the message with its author in the metadata: an id, a name, or both.

        >>> Message.user("hello").sent_by("42", "Ada").metadata
        {'author': {'id': '42', 'name': 'Ada'}}
        """
        given = {"id": id, "name": name}
        metadata = self.get("metadata")
        fields = dict(metadata) if isinstance(metadata, Mapping) else {} if metadata is None else {"value": metadata}
        fields["author"] = {field: text for field, text in given.items() if text is not None}
        return Message(self, metadata=fields)


class _WithRole(TypedDict):
    #: Who speaks: `user`, `assistant`, `system`, `tool`, or any other.
    role: str


class MessageFields(_WithRole, total=False):
    """A message as a dict: a `role`, and what it says as `parts`, `text` or `content`.

    `Message(fields)` makes a message of a dict that a type checker does not know, or that has fields of its own.
    """

    id: str | None
    #: In the shape of the Vercel AI SDK's `UIMessage`.
    parts: Sequence[Mapping[str, Any]]
    #: A single part of text.
    text: str
    #: As chat APIs have it: a text, or a list of typed blocks as those of Anthropic and OpenAI, which become parts.
    content: str | Sequence[str | Mapping[str, Any]] | None
    #: Calls of tools beside the content, and what the result of one belongs to, as OpenAI's chat API has them.
    tool_calls: Sequence[Mapping[str, Any]] | None
    tool_call_id: str
    name: str
    metadata: Any
    created_at: datetime | str | float | None
    hidden: bool


class MessageObject(Protocol):
    """A message as a dataclass, with the fields of `MessageFields`."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def role(self) -> str:
        """Who speaks."""


#: What the verbs take as a message.
MessageLike = Message | MessageFields | MessageObject


def text_part(text: str) -> dict[str, Any]:
    """Returns a part of text."""
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}")
    return {"type": "text", "text": text}


def tool_call(name: str, call_id: str, input: Any) -> dict[str, Any]:
    """Returns a part with a call of a tool."""
    return {"type": f"tool-{name}", "toolCallId": call_id, "state": "input-available", "input": input}


def tool_result(name: str, call_id: str, output: Any) -> dict[str, Any]:
    """Returns a part with the result of a tool."""
    return {"type": f"tool-{name}", "toolCallId": call_id, "state": "output-available", "output": output}


def tool_error(name: str, call_id: str, error: str) -> dict[str, Any]:
    """Returns a part with the error of a tool."""
    return {"type": f"tool-{name}", "toolCallId": call_id, "state": "output-error", "errorText": error}
