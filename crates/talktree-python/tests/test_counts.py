"""A count or a duration that is out of range, or of another type, is refused by name wherever one is taken."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
import talktree
from talktree import Block, CompactionOptions, Cost, Message, RetentionRule, Usage, model

Take = Callable[[talktree.Store, talktree.Session, Any], object]


def rule(name: str) -> Take:
    return lambda store, chat, value: store.retention([RetentionRule("r", **{name: value})], dry_run=True)


def compaction_options(name: str) -> Take:
    return lambda store, chat, value: chat.plan_compaction(CompactionOptions(**{name: value}))


def truncated(name: str) -> Take:
    return lambda store, chat, value: chat.openai_chat_request(truncated=model.TruncateOptions(**{name: value}))


def usage(name: str) -> Take:
    return lambda store, chat, value: chat.add_usage(Usage(**{name: value}))


def tree(name: str) -> Take:
    return lambda store, chat, value: chat.tree(**{name: value})


def option(name: str) -> Take:
    return lambda store, chat, value: talktree.Store(**{name: value})


def setting(name: str) -> Take:
    return lambda store, chat, value: store.session("other", **{name: value})


def imported(name: str) -> Take:
    def take(store: talktree.Store, chat: talktree.Session, value: Any) -> None:
        id = chat.head() or ""
        counts: dict[str, Any] = {"count": 1, "tokens_before": 9, "tokens_after": 1, name: value}
        now = datetime.now(timezone.utc)
        chat.import_compaction(
            talktree.Compaction("c", first=id, last=id, summary="s", created_at=now, nested=[], **counts)
        )

    return take


TAKES: dict[str, Take] = {
    **{name: tree(name) for name in ("max_children", "max_main_segments", "max_indent")},
    **{name: option(name) for name in ("max_message_bytes", "idle_readers", "erasure_rewrites_up_to")},
    **{name: setting(name) for name in ("max_answer_tokens", "compact_after")},
    **{f"options.{name}": compaction_options(name) for name in vars(CompactionOptions()) if name != "target_share"},
    "compaction_options.min_tail": lambda store, chat, value: store.session(
        "other", compaction_options=CompactionOptions(min_tail=value)
    ),
    **{f"truncated.{name}": truncated(name) for name in vars(model.TruncateOptions())},
    "options.keep_whole": lambda store, chat, value: model.truncate([], model.TruncateOptions(keep_whole=value)),
    **{
        f"rules[0].{name}": rule(name)
        for name in ("more_messages_than", "more_bytes_than", "keep_sessions", "keep_messages", "keep_bytes")
    },
    **{f"usage.{name}": usage(name) for name in ("input", "output", "cache_read", "cache_write", "reasoning")},
    "usage.cost.micros": lambda store, chat, value: chat.add_usage(Usage(cost=Cost(value, "EUR"))),
    **{f"compaction.{name}": imported(name) for name in ("count", "tokens_before", "tokens_after")},
    "version": lambda store, chat, value: chat.context.version("memory", value),
    "version to restore": lambda store, chat, value: chat.context.restore("memory", value),
    "limit of a block's documents": lambda store, chat, value: chat.context.search("memory", "x", value),
    "tokens of a block": lambda store, chat, value: Block.stored().max(value),
    "blocks['x'].max_tokens": lambda store, chat, value: store.session(
        "other", blocks={"x": Block("stored", max_tokens=value)}
    ),
    "block.max_tokens": lambda store, chat, value: chat.context.add("x", Block("stored", max_tokens=value)),
    "limit": lambda store, chat, value: store.search("x", limit=value),
    "offset": lambda store, chat, value: store.search("x", offset=value),
    "limit of a page": lambda store, chat, value: chat.page(limit=value),
    "limit of branches": lambda store, chat, value: chat.branches_page(None, limit=value),
    "limit of a list": lambda store, chat, value: talktree.SessionManager(store).list(limit=value),
    "messages": lambda store, chat, value: chat.recent(messages=value),
    "limit of transcripts": lambda store, chat, value: store.transcripts.list(limit=value),
    "after": lambda store, chat, value: store.transcripts.list(after=value),
}


@pytest.mark.parametrize("what", TAKES)
def test_a_count_out_of_range_is_refused_by_name(store: talktree.Store, chat: talktree.Session, what: str) -> None:
    chat.append(Message.user("x"))
    name = what.split(" ")[0]
    for value in (-1, 2**64, 10**5_000, -(10**5_000)):
        with pytest.raises(ValueError) as caught:
            TAKES[what](store, chat, value)
        assert str(caught.value).startswith(f"{name} must be between 0 and {2**64 - 1}, not ")
    for wrong in (1.0, "5", float("nan")):
        with pytest.raises(TypeError) as other:
            TAKES[what](store, chat, wrong)
        assert str(other.value).startswith(f"{name} must be ")


def test_a_count_that_is_smaller_in_the_library_has_its_own_limits(store: talktree.Store) -> None:
    with pytest.raises(ValueError, match=f"cache_kib must be between 0 and {2**32 - 1}, not {2**32}"):
        talktree.Store(cache_kib=2**32)
    with pytest.raises(ValueError, match=f"written_before must be between -{2**63} and {2**63 - 1}, not {2**63}"):
        store.transcripts.list(written_before=2**63)
    assert store.transcripts.list(written_before=-1) == []
    talktree.Store(cache_kib=2**32 - 1).session("s").append(Message.user("x"))


DURATIONS: dict[str, Take] = {
    "busy_timeout": option("busy_timeout"),
    "timeout": lambda store, chat, value: store.search("x", timeout=value),
    "expire_after": lambda store, chat, value: talktree.SessionManager(store).resume("k", expire_after=value),
    "empty_trash_after": lambda store, chat, value: store.retention([], empty_trash_after=value, dry_run=True),
    **{f"rules[0].{name}": rule(name) for name in ("older_than", "idle_for")},
}


@pytest.mark.parametrize("what", DURATIONS)
def test_a_duration_out_of_range_is_refused_by_name(store: talktree.Store, chat: talktree.Session, what: str) -> None:
    for value in (-1, -0.001, timedelta(days=-1), float("nan"), float("inf"), 2**64, 10**400):
        with pytest.raises(ValueError) as caught:
            DURATIONS[what](store, chat, value)
        assert str(caught.value).startswith(f"{what} must be between 0 and {2**64 - 1} seconds, not ")
    for wrong in ("5", b"5", [5]):
        with pytest.raises(TypeError) as other:
            DURATIONS[what](store, chat, wrong)
        assert str(other.value).startswith(f"{what} must be seconds or a timedelta, not ")
    for right in (1, 1.5, timedelta.max, Decimal("0.5"), True):
        DURATIONS[what](store, chat, right)
