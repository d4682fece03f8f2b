"""Retention: rules that say which sessions are discarded, and how. Nothing is discarded unless a program runs rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from . import _json
from .erasure import ErasureCopies

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack

#: What is done with a discarded session: it is put into the trash, from which it can be restored; it is removed for good;
#: or it is erased, so that no byte of it is left in the file.
RetentionAction = Literal["trash", "remove", "erase"]


@dataclass(frozen=True)
class RetentionRule:
    """A rule: a session that meets all its conditions is discarded. Pinned sessions stay.

    A rule has a name, which reports and errors show, at least one condition, and at most one total (`keep_..`).

    >>> from datetime import timedelta
    >>> import talktree
    >>> rule = talktree.RetentionRule("stale", source="telegram", idle_for=timedelta(days=90), action="remove")
    >>> talktree.Store().retention([rule], dry_run=True).sessions
    []
    """

    name: str
    _: KW_ONLY
    #: Sessions of this owner, from this program or file, with this model, with this tag.
    owner: str | None = None
    source: str | None = None
    model: str | None = None
    tag: str | None = None
    #: Sessions that were ended.
    is_ended: bool = False
    #: Sessions that were created at least so long ago; in seconds, or as a timedelta.
    older_than: timedelta | float | None = None
    #: Sessions whose last message is at least so old; in seconds, or as a timedelta.
    idle_for: timedelta | float | None = None
    #: Sessions with more messages than this, on all branches.
    more_messages_than: int | None = None
    #: Sessions whose messages take more than this, in bytes of JSON.
    more_bytes_than: int | None = None
    #: Keeps the newest sessions, so many at most, and discards the others.
    keep_sessions: int | None = None
    #: Keeps the newest sessions that have together at most so many messages, and discards the others.
    keep_messages: int | None = None
    #: Keeps the newest sessions whose messages take together at most so many bytes of JSON, and discards the others.
    keep_bytes: int | None = None
    #: Applies the total (`keep_..`) to each owner separately.
    is_per_owner: bool = False
    action: RetentionAction = "trash"


@dataclass(frozen=True)
class RuleReport:
    """What one rule discarded."""

    rule: str
    action: RetentionAction
    sessions: int
    messages: int
    #: In bytes of JSON.
    bytes: int


@dataclass(frozen=True)
class DiscardedSession:
    """A session that was discarded."""

    id: str
    name: str | None
    owner: str | None
    rule: str
    action: RetentionAction
    messages: int
    #: In bytes of JSON.
    bytes: int
    last_message_at: datetime | None


@dataclass(frozen=True)
class RetentionReport:
    """What a run of rules discarded, or what it would discard."""

    #: What each rule discarded, in order. The term of the trash, if there is one, is last, as `trash`.
    rules: list[RuleReport]
    #: First those from the trash, then the others.
    sessions: list[DiscardedSession]
    #: The sessions that still have copies of erased messages; empty in a dry run.
    copies_left: list[ErasureCopies]
    #: Whether the log still contains erased text, because another reader used it; `Store.finish_erasure` empties it.
    is_log_in_use: bool


class RetentionSettings(TypedDict, total=False):
    """How rules are run, all of it optional."""

    #: Removes sessions that have been in the trash for this long; in seconds, or as a timedelta.
    empty_trash_after: timedelta | float
    #: Allows rules that every session of a store meets, which otherwise are a `RuleMeetsAllError`.
    allow_all: bool
    #: Computes ages at this time instead of the present.
    as_of: datetime
    #: Discards nothing, and reports what would be discarded.
    dry_run: bool


class RetentionParts:
    """Rules, and how they are run, as the native module takes them."""

    def __init__(self, rules: Iterable[RetentionRule], settings: dict[str, Any]) -> None:
        _json.only_known(settings, RetentionSettings)
        if isinstance(rules, RetentionRule) or not isinstance(rules, Iterable):
            raise TypeError(f"rules must be an iterable of RetentionRule, not {type(rules).__name__}")
        self.rules = [_RuleParts(rule, f"rules[{at}]") for at, rule in enumerate(rules)]
        self.empty_trash_after = _json.maybe_seconds(settings.get("empty_trash_after"), "empty_trash_after")
        self.allow_all = bool(settings.get("allow_all", False))
        self.as_of = _json.maybe_time_text(settings.get("as_of"), "as_of")
        self.dry_run = bool(settings.get("dry_run", False))


_TOTALS = ("keep_sessions", "keep_messages", "keep_bytes")


class _RuleParts:
    """A rule as the native module takes it."""

    def __init__(self, rule: RetentionRule, what: str) -> None:
        if not isinstance(rule, RetentionRule):
            raise TypeError(f"{what} must be a RetentionRule, not {type(rule).__name__}")
        if rule.action not in ("trash", "remove", "erase"):
            raise ValueError(f"{what}.action must be trash, remove or erase, not {rule.action!r}")
        _json.check_counts(rule, what, "more_messages_than", "more_bytes_than", *_TOTALS)
        totals = [name for name in _TOTALS if getattr(rule, name) is not None]
        if len(totals) > 1:
            raise ValueError(f"{what} has {' and '.join(totals)}; a rule has one total")
        self.name = _json.is_str(rule.name, f"{what}.name")
        self.owner = _json.maybe_str(rule.owner, f"{what}.owner")
        self.source = _json.maybe_str(rule.source, f"{what}.source")
        self.model = _json.maybe_str(rule.model, f"{what}.model")
        self.tag = _json.maybe_str(rule.tag, f"{what}.tag")
        self.is_ended = bool(rule.is_ended)
        self.older_than = _json.maybe_seconds(rule.older_than, f"{what}.older_than")
        self.idle_for = _json.maybe_seconds(rule.idle_for, f"{what}.idle_for")
        self.more_messages_than = rule.more_messages_than
        self.more_bytes_than = rule.more_bytes_than
        self.keep_sessions = rule.keep_sessions
        self.keep_messages = rule.keep_messages
        self.keep_bytes = rule.keep_bytes
        self.is_per_owner = bool(rule.is_per_owner)
        self.action = rule.action


def retention_report(text: str) -> RetentionReport:
    """Returns the report of its JSON."""
    fields = _json.loads(text)
    return RetentionReport(
        rules=[RuleReport(**it) for it in fields["rules"]],
        sessions=[_discarded(it) for it in fields["sessions"]],
        copies_left=[ErasureCopies(**it) for it in fields["copies_left"]],
        is_log_in_use=fields["is_log_in_use"],
    )


def _discarded(fields: dict[str, Any]) -> DiscardedSession:
    fields["last_message_at"] = _json.maybe_time(fields["last_message_at"])
    return DiscardedSession(**fields)
