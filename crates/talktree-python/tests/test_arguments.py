"""An argument that is of a wrong type or out of range is refused by name."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, cast

import pytest
import talktree
from talktree import (
    Block,
    CompactionOptions,
    Cost,
    Document,
    Message,
    RetentionRule,
    SessionDetails,
    SessionManager,
    Summary,
    TokenCounter,
    Usage,
    model,
)

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
    "limit of a list": lambda store, chat, value: SessionManager(store).list(limit=value),
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
    "expire_after": lambda store, chat, value: SessionManager(store).resume("k", expire_after=value),
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


TEXTS: dict[str, Take] = {
    "label": lambda store, chat, value: chat.context.set(value, "x"),
    "content": lambda store, chat, value: chat.context.set("memory", value),
    "text": lambda store, chat, value: chat.context.append("memory", value),
    "label of a text": lambda store, chat, value: chat.context.remove_text(value),
    "label of a new block": lambda store, chat, value: chat.context.add(value, "x"),
    "label of a block": lambda store, chat, value: chat.context.remove(value),
    "key": lambda store, chat, value: chat.context.load("memory", value),
    "key of a removed document": lambda store, chat, value: chat.context.remove_document("memory", value),
    "query": lambda store, chat, value: chat.context.search("memory", value),
    "text to import": lambda store, chat, value: chat.context.import_text(value),
    "document.key": lambda store, chat, value: chat.context.set_document("memory", Document(value, "x")),
    "document.content": lambda store, chat, value: chat.context.set_document("memory", Document("x", value)),
    "name of a tool": lambda store, chat, value: chat.tools.call(value, {}),
    "expected": lambda store, chat, value: chat.append_if_head(value, Message.user("x")),
    "expected by a chain": lambda store, chat, value: chat.append_all_if_head(value, [Message.user("x")]),
    "to": lambda store, chat, value: chat.plan_branch_summary(value),
    "to another branch": lambda store, chat, value: chat.checkout_summarized(value),
    "message": lambda store, chat, value: chat.add_usage(Usage(input=1), value),
    "summary.text": lambda store, chat, value: chat.compact_and_split(Summary(value)),
    "summary.model": lambda store, chat, value: chat.compact_and_split(Summary("x", model=value)),
    "id": lambda store, chat, value: store.create_session("x", id=value),
    "id of a created session": lambda store, chat, value: SessionManager(store).create("x", id=value),
    "id of a session": lambda store, chat, value: SessionManager(store).get(value),
    "id of a removed session": lambda store, chat, value: SessionManager(store).remove(value),
    "id of a split session": lambda store, chat, value: SessionManager(store).compact_and_split(value, "x"),
    "at": lambda store, chat, value: SessionManager(store).fork("s", value, "x"),
    "key to unbind": lambda store, chat, value: SessionManager(store).unbind(value),
    "key of bindings": lambda store, chat, value: SessionManager(store).bindings(value),
    "name": lambda store, chat, value: store.import_bytes(b"[]", name=value),
    "text to estimate": lambda store, chat, value: talktree.estimate_tokens(value),
    "searchable_history": setting("searchable_history"),
    "a label of blocks": lambda store, chat, value: store.session("other", blocks={value: "x"}),
    "project": lambda store, chat, value: store.transcripts.list_sessions(value),
    "project of infos": lambda store, chat, value: store.transcripts.infos(value),
    "session": lambda store, chat, value: store.transcripts.messages("p", value),
    "title": lambda store, chat, value: store.transcripts.rename("p", "s", value),
    "tag": lambda store, chat, value: store.transcripts.tag("p", "s", value),
    "owner": lambda store, chat, value: store.transcripts.delete_of_owner(value),
}


@pytest.mark.parametrize("what", TEXTS)
def test_what_is_no_text_is_refused_by_name(store: talktree.Store, chat: talktree.Session, what: str) -> None:
    name = what if what.startswith("a ") else what.split(" ")[0]
    for wrong in (5, b"x", 1.5, ("x",)):
        with pytest.raises(TypeError) as caught:
            TEXTS[what](store, chat, wrong)
        assert str(caught.value).startswith(f"{name} must be ")
    with pytest.raises(UnicodeEncodeError) as other:
        TEXTS[what](store, chat, "\ud800")
    assert str(other.value).endswith(f"surrogates not allowed in {name}")
    assert chat.info() is None


OTHERS: dict[str, Take] = {
    "pinned": lambda store, chat, value: SessionManager(store).list(pinned=value),
    "is_pinned": lambda store, chat, value: chat.set_details(SessionDetails(is_pinned=value)),
    "options.target_share": compaction_options("target_share"),
    "token_counter.count": lambda store, chat, value: store.session("other", token_counter=TokenCounter("n", value)),
    "created_at": lambda store, chat, value: Message.user("x", created_at=value),
    "usage.cost": lambda store, chat, value: chat.add_usage(Usage(cost=value)),
    "truncated": lambda store, chat, value: chat.openai_chat_request(truncated=value),
    "options": lambda store, chat, value: model.truncate([], value),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_is_of_a_wrong_type_is_refused_by_name(store: talktree.Store, chat: talktree.Session, what: str) -> None:
    for wrong in ("x", b"x", ["x"]):
        with pytest.raises(TypeError) as caught:
            OTHERS[what](store, chat, wrong)
        assert str(caught.value).startswith(f"{what} must be ")


def test_what_is_none_of_the_choices_is_refused_by_name() -> None:
    nope = cast("Any", "nope")
    with pytest.raises(ValueError, match="provider must be one of anthropic, openai_chat, .*, not 'nope'"):
        model.validate_for(nope, {})
    with pytest.raises(ValueError, match="line must be 'name' or 'name_and_time', not 'nope'"):
        model.name_authors([], nope)
