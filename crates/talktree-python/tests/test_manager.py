"""A manager leads keys to sessions, lists them, and sums up what they cost."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
import talktree
from talktree import Block, Cost, Message, SessionDetails, SessionManager, Usage


def test_keys_lead_to_sessions(store: talktree.Store) -> None:
    bot = SessionManager(store, blocks={"memory": Block.stored().per_owner()})
    chat = bot.resume("telegram:1", owner="ada", details="First", new_id="one")
    chat.append(Message.user("hello"))
    chat.context.set("memory", "Likes tea.")
    again = bot.resumed("telegram:1", owner="ada", expire_after=timedelta(days=1))
    assert (again.session.id, again.is_new, again.former) == ("one", False, None)
    other = bot.resumed("discord:1", owner="ada")
    assert other.is_new
    block = other.session.block("memory")
    assert block is not None and block.content == "Likes tea."
    bot.end("one", "goodbye")
    fresh = bot.resumed("telegram:1", owner="ada")
    assert fresh.is_new and fresh.former == ("one", "ended")
    assert [it.session for it in bot.bindings("telegram:1")] == [fresh.session.id, "one"]
    assert bot.unbind("telegram:1") == fresh.session.id and bot.unbind("telegram:1") is None


def test_sessions_are_listed_and_changed(store: talktree.Store) -> None:
    bot = SessionManager(store)
    for n in range(5):
        bot.create(SessionDetails(name=f"talk {n}", owner="ada", source="test"), id=f"s{n}").append(
            Message.user(f"line {n}")
        )
    page = bot.list(owner="ada", limit=2)
    assert [info.id for info in page] == ["s4", "s3"] and page.after is not None
    assert [info.preview for info in bot.list(after=page.after, limit=1)] == ["line 2"]
    bot.pin("s0")
    assert [info.id for info in bot.list(pinned=True)] == ["s0"]
    bot.unpin("s0")
    bot.tag("s1", "work")
    assert [info.id for info in bot.list(tag="work")] == ["s1"]
    bot.untag("s1", "work")
    bot.rename("s1", None)
    bot.set_owner("s1", "bob")
    bot.set_metadata("s1", {"big": 2**80})
    info = bot.get("s1")
    assert info is not None and (info.name, info.owner, info.metadata, info.tags) == (None, "bob", {"big": 2**80}, [])
    bot.delete("s2")
    assert [info.id for info in bot.list(state="trash")] == ["s2"]
    with pytest.raises(talktree.SessionInTrashError):
        bot.session("s2").append(Message.user("x"))
    bot.restore("s2")
    bot.end("s3", "done")
    assert [info.id for info in bot.list(state="ended")] == ["s3"]
    bot.reopen("s3")
    bot.remove("s4")
    assert bot.get("s4") is None
    assert bot.list(since=datetime.now(timezone.utc) + timedelta(days=1)).sessions == []
    with pytest.raises(talktree.UnknownSessionError):
        bot.rename("nobody", "x")
    with pytest.raises(ValueError, match="state must be"):
        bot.list(state="gone")  # type: ignore[arg-type]


def test_search_and_forks(store: talktree.Store) -> None:
    bot = SessionManager(store, searchable_history="past conversations")
    chat = bot.resume("a", owner="ada")
    id = chat.append(Message.user("My cat is called Mozart.")).id
    assert [hit.session for hit in bot.search("cat", owner="ada")] == [chat.id]
    assert len(bot.search_by_session("cat")) == 1
    assert [it.widening for it in bot.search_alternatives("cat role:system")][0] == "for any role"
    assert "Mozart" in bot.resume("b", owner="ada").tools.call("session_search", {"query": "cat"})
    fork = bot.fork(chat.id, id, "what if")
    assert fork.history()[0].id == id
    assert bot.compact_and_split(chat.id, "A cat.").history()[0].text == "A cat."


def test_usage(store: talktree.Store) -> None:
    bot = SessionManager(store)
    chat = bot.resume("a", owner="ada")
    used = Usage("large", input=10, output=3, cost=Cost(1_500, "EUR"))
    answer = used.put_in(Message.assistant("Warm."))
    assert Usage.of(answer) == used
    assert Usage.of(Message.user("x")) is None
    chat.append(answer)
    chat.add_usage(Usage("small", output=1))
    assert chat.usage().output == 4 and chat.path().usage().output == 3
    assert store.usage(owner="ada").costs == [Cost(1_500, "EUR")]
    rows = bot.usage(by="model")
    assert sorted((row.group, row.total.output) for row in rows) == [("large", 3), ("small", 1)]
    assert bot.usage(by="owner", until=datetime(2020, 1, 1)) == []
    with pytest.raises(ValueError, match="not by 'week'"):
        bot.usage(by="week")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="usage must be a Usage, not dict"):
        chat.add_usage({"output": 1})  # type: ignore[arg-type]
