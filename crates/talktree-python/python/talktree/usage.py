"""Tokens and costs of answers, and their sums."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from . import _json, _native
from .message import Message, MessageLike

#: What usage can be grouped by.
UsageGroup = Literal["model", "day", "owner", "author", "session", "source"]


@dataclass(frozen=True)
class Cost:
    """A price, in millionths of a currency."""

    micros: int
    currency: str


@dataclass(frozen=True)
class Usage:
    """The tokens of one answer.

    >>> answer = Usage(input=12, output=3).put_in(Message.assistant("Warm."))
    >>> Usage.of(answer)
    Usage(model=None, input=12, output=3, cache_read=0, cache_write=0, reasoning=0, cost=None)
    """

    model: str | None = None
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: Cost | None = None

    @classmethod
    def of(cls, message: MessageLike) -> Usage | None:
        """Returns the usage that a message has in its metadata, in the form of any provider."""
        fields = _json.loads(_native.usage_of(_json.message_text(message)))
        if fields is None:
            return None
        cost = fields.pop("cost", None)
        return cls(**fields, cost=None if cost is None else Cost(**cost))

    def put_in(self, message: MessageLike) -> Message:
        """Returns the message with this usage in its metadata."""
        return Message(_json.loads(_native.with_usage(_json.message_text(message), usage_text(self))))


def usage_text(usage: Usage) -> str:
    """Returns the JSON of a usage."""
    if not isinstance(usage, Usage):
        raise TypeError(f"usage must be a Usage, not {type(usage).__name__}")
    _json.check_counts(usage, "usage", "input", "output", "cache_read", "cache_write", "reasoning")
    fields = {name: value for name, value in vars(usage).items() if value is not None}
    if usage.cost is not None:
        if not isinstance(usage.cost, Cost):
            raise TypeError(f"usage.cost must be a Cost, not {type(usage.cost).__name__}")
        _json.check_counts(usage.cost, "usage.cost", "micros")
        fields["cost"] = vars(usage.cost)
    return _json.dumps(fields, "usage")


@dataclass(frozen=True)
class UsageTotal:
    """The usage of several answers."""

    answers: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    reasoning: int
    costs: list[Cost]


@dataclass(frozen=True)
class UsageRow:
    """The usage of a group."""

    #: The model, day, owner, author, session or source; None for answers without one.
    group: str | None
    total: UsageTotal


def usage_total(fields: dict[str, Any]) -> UsageTotal:
    """Returns the total of its JSON."""
    fields["costs"] = [Cost(**cost) for cost in fields["costs"]]
    fields.pop("group", None)
    return UsageTotal(**fields)


def usage_rows(rows: list[dict[str, Any]]) -> list[UsageRow]:
    """Returns the rows of their JSON."""
    return [UsageRow(row.pop("group"), usage_total(row)) for row in rows]


class UsageParts:
    """Which answers are counted, as the native module takes it."""

    def __init__(
        self,
        by: UsageGroup | None,
        session: str | None,
        owner: str | None,
        author: str | None,
        model: str | None,
        source: str | None,
        since: datetime | None,
        until: datetime | None,
    ) -> None:
        if by not in (None, "model", "day", "owner", "author", "session", "source"):
            raise ValueError(f"usage is grouped by model, day, owner, author, session or source, not by {by!r}")
        self.by = by
        self.session = _json.maybe_str(session, "session")
        self.owner = _json.maybe_str(owner, "owner")
        self.author = _json.maybe_str(author, "author")
        self.model = _json.maybe_str(model, "model")
        self.source = _json.maybe_str(source, "source")
        self.since = _json.maybe_time_text(since, "since")
        self.until = _json.maybe_time_text(until, "until")
